"""`armid validate`: does a stored result predict motion it has never seen?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.identify import checked_log, read_options
from armid.cli.options import AcceptOption, DataRootOption, JsonOption, LogsArgument, StepOption
from armid.cli.output import EXIT_UNTRUSTED, console, emit, progress, verb

if TYPE_CHECKING:
    from armid.identification.revalidate import Revalidation


def register(app: typer.Typer) -> None:
    app.command("validate")(validate)


@verb
def validate(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="Folder written by armid identify.")],
    logs: LogsArgument,
    step: StepOption = None,
    data_root: DataRootOption = None,
    accept: AcceptOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the torque of other logs with a stored result."""
    from time import perf_counter

    started = perf_counter()
    from armid.identification.result import load_result
    from armid.identification.revalidate import revalidate

    with progress() as tell:
        tell("reading")
        stored = load_result(result)
        options = read_options(step, data_root)
        read = [checked_log(path, stored.robot, options) for path in logs]
        tell("predicting")
        outcome = revalidate(stored, read, accept=tuple(accept or ()))
    show(outcome)
    emit({**contract(outcome), "seconds": perf_counter() - started}, as_json=as_json)
    if outcome.verdict != "trusted":
        raise typer.Exit(EXIT_UNTRUSTED)


def contract(outcome: Revalidation) -> dict[str, Any]:
    """The keys checks from outside rely on, and a few more."""
    return {
        "joints": [joint.as_dict() for joint in outcome.joints],
        "joints_raw": [joint.as_dict() for joint in outcome.joints_raw],
        "relative_error_held_out": outcome.relative_error,
        "verdict": outcome.verdict,
        "reasons": list(outcome.reasons),
        "conditioning": dict(outcome.conditioning),
    }


def show(outcome: Revalidation) -> None:
    from rich.table import Table

    screen = console()
    table = Table(title=f"held-out torque error {100 * outcome.relative_error:.2f} %")
    for column in ("joint", "train RMSE", "held-out RMSE", "relative"):
        table.add_column(column, justify="left" if column == "joint" else "right")
    for joint in outcome.joints:
        table.add_row(
            joint.name,
            f"{joint.train.rmse:.4g}",
            f"{joint.held_out.rmse:.4g}",
            f"{100 * joint.held_out.relative:.1f} %",
        )
    screen.print(table)
    screen.print(f"[bold {'green' if outcome.verdict == 'trusted' else 'red'}]{outcome.verdict}[/]")
    for reason in outcome.reasons:
        screen.print(f"  - {reason}", markup=False)
