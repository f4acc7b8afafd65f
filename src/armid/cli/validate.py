"""`armid validate`: does a stored result predict motion it has never seen?"""

from __future__ import annotations

from typing import Any

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import progress, render, verb


@verb
@groups.takes(groups.reading)
def validate(
    result: opt.ResultArgument,
    logs: opt.LogsArgument,
    parameters: opt.ParametersOption = "consistent",
    out: opt.OptionalOutOption = None,
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """Predict the torque of other logs with a stored result."""
    from armid.identification.validate import validate as validated

    with progress() as tell:
        tell("predicting")
        answer = validated(result, logs, parameters=parameters, **asked)
    render(answer, as_json=as_json, out=out)
