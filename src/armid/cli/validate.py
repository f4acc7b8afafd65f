"""`armid validate`: does a stored result predict motion it has never seen?"""

from __future__ import annotations

from armid.cli import options as opt
from armid.cli.output import progress, render, verb


@verb
def validate(
    result: opt.ResultArgument,
    logs: opt.LogsArgument,
    step: opt.StepOption = None,
    data_root: opt.DataRootOption = None,
    accept: opt.AcceptOption = None,
    parameters: opt.ParametersOption = "consistent",
    out: opt.OptionalOutOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Predict the torque of other logs with a stored result."""
    from armid.identification.validate import validate as validated
    from armid.logs.read import ReadOptions

    with progress() as tell:
        tell("predicting")
        answer = validated(
            result,
            logs,
            accept=accept or (),
            options=ReadOptions(step=step, data_root=data_root),
            parameters=parameters,
        )
    render(answer, as_json=as_json, out=out)
