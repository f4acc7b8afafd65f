"""`armid check`: is this log what it claims to be?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, RobotArgument, TipOption
from armid.cli.output import EXIT_UNTRUSTED, console, emit, save_json, verb

if TYPE_CHECKING:
    from armid.logs import Log
    from armid.notes import Note

COLOURS = {"info": "dim", "warning": "yellow", "error": "bold red"}


def register(app: typer.Typer) -> None:
    app.command("check")(check)


@verb
def check(
    robot: RobotArgument,
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Recordings: any known format, or mapping files (.yaml).")
    ],
    step: Annotated[
        float | None, typer.Option("--step", metavar="SECONDS", help="Sampling step of files without a clock.")
    ] = None,
    side: Annotated[
        str | None, typer.Option("--side", metavar="link|motor|current|commanded", help="Where torque was measured.")
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", metavar="PRESET", help="csv, npz, parquet, mat, libfranka, rtde, ...")
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="JointState topic of a ROS bag.")] = None,
    data_root: Annotated[
        Path | None, typer.Option("--data-root", metavar="DIR", help="Where mapping files find recordings.")
    ] = None,
    gravity: Annotated[
        str | None,
        typer.Option("--gravity", metavar="X,Y,Z", help="In the base frame [m/s^2]; the description's by default."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Also write the findings there.")] = None,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Is this log what it claims to be? Clock, units, signs, joint order, lag, mounting."""
    from armid.logs import ReadOptions, check_log
    from armid.robot.load import load_robot

    arm = load_robot(robot, base=base, tip=tip, gravity=three_numbers(gravity) if gravity else None)
    options = ReadOptions(format=format, step=step, side=side, data_root=data_root, topic=topic)
    checked = [check_log(log, arm, options=options) for log in logs]
    result = summary(checked)
    for log in checked:
        show(log)
    save_json(result, out, "check.json")
    emit(result, as_json=as_json)
    if not result["ok"]:
        raise typer.Exit(EXIT_UNTRUSTED)


def three_numbers(text: str) -> list[float]:
    """`0,0,-9.81` as numbers."""
    from armid.errors import InputError

    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 3:
        raise InputError("--gravity", f"{text!r}", "expected three numbers, as in 0,0,-9.81")
    return values


def summary(checked: list[Log]) -> dict[str, Any]:
    """The JSON of the command contract."""
    from armid.notes import Severity

    problems = [
        {**note.as_dict(), "log": log.name}
        for log in checked
        for note in log.notes
        if note.severity is not Severity.INFO
    ]
    guesses = [
        {**note.as_dict(), "log": log.name} for log in checked for note in log.notes if note.severity is Severity.INFO
    ]
    return {
        "ok": not any(problem["severity"] == "error" for problem in problems),
        "problems": problems,
        "notes": guesses,
        "logs": [
            {
                "name": log.name,
                "samples": len(log),
                "seconds": log.duration,
                "channels": [channel.value for channel in log.channels],
                "reader": log.source.reader,
                "files": [{"path": path, "sha256": digest} for path, digest in log.source.files],
            }
            for log in checked
        ],
    }


def show(log: Log) -> None:
    """The findings as a table, worst first."""
    from rich.table import Table

    order = {"error": 0, "warning": 1, "info": 2}
    table = Table(title=f"{log.name}: {len(log)} samples", title_justify="left", show_lines=False)
    for heading in ("", "code", "where", "finding"):
        table.add_column(heading, overflow="fold")
    for note in sorted(log.notes, key=lambda n: order[n.severity.value]):
        table.add_row(*cells(note))
    screen = console()
    screen.print(table)
    verdict = "[bold red]not to be used as it is[/]" if log.errors else "[green]usable[/]"
    screen.print(f"{log.name}: {verdict}")


def cells(note: Note) -> tuple[str, str, str, str]:
    from rich.markup import escape

    colour = COLOURS[note.severity.value]
    return f"[{colour}]{note.severity.value}[/]", note.code, escape(note.subject), escape(note.message)
