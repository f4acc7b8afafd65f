"""`armid validate`: does a stored result predict motion it has never seen?"""

from __future__ import annotations

import typer

from armid.cli.options import AcceptOption, DataRootOption, JsonOption, LogsArgument, ResultArgument, StepOption
from armid.cli.output import progress, render, verb


def register(app: typer.Typer) -> None:
    app.command("validate")(validate)


@verb
def validate(
    result: ResultArgument,
    logs: LogsArgument,
    step: StepOption = None,
    data_root: DataRootOption = None,
    accept: AcceptOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the torque of other logs with a stored result."""
    from time import perf_counter

    started = perf_counter()
    from armid.identification.validate import validate as validated
    from armid.logs.read import ReadOptions

    with progress() as tell:
        tell("predicting")
        answer = validated(result, logs, accept=accept or (), options=ReadOptions(step=step, data_root=data_root))
    render(answer, as_json=as_json, started=started)
