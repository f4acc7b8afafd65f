"""Options of `armid check` alone, and the tables of thresholds it prints instead of an answer."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from armid.cli.output import emit

SideWord = Literal["link", "motor", "current", "commanded"]


def _format_word(text: str) -> str:
    """A reader or preset."""
    from armid.logs.readers.files import OPENERS, PRESETS

    if text not in OPENERS and text not in PRESETS:
        raise typer.BadParameter(f"no {text!r}; there are: {', '.join((*OPENERS, *PRESETS))}")
    return text


def _thresholds_asked(context: typer.Context, asked: bool) -> None:
    """Prints the thresholds and ends before a robot and a log are missed."""
    if asked:
        _show_thresholds(as_json=bool(context.params.get("as_json")))
        raise typer.Exit


def _show_thresholds(*, as_json: bool) -> None:
    """The tables of thresholds, of logs, of results, of calibrations and of observations."""
    from dataclasses import asdict

    from armid.calibration.thresholds import CALIBRATION
    from armid.identification import thresholds as of_results
    from armid.logs.health import thresholds as of_logs
    from armid.observation.thresholds import OBSERVATION
    from armid.outcome import text_table
    from armid.thresholds import thresholds_table

    tables = {
        "logs": of_logs.THRESHOLDS,
        "results": of_results.THRESHOLDS,
        "calibrations": CALIBRATION,
        "observations": OBSERVATION,
    }
    for what, found in tables.items():
        typer.echo(text_table(thresholds_table(f"What decides what is said about {what}", found)) + "\n", err=as_json)
    emit({what: [asdict(each) for each in found] for what, found in tables.items()}, as_json=as_json)


SideOption = Annotated[SideWord | None, typer.Option("--side", help="Where torque was measured.")]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="PRESET", parser=_format_word, help="csv, npz, parquet, mat, libfranka, rtde, ..."
    ),
]
TopicOption = Annotated[str | None, typer.Option("--topic", help="JointState topic of a ROS bag.")]
FaultsOption = Annotated[
    bool,
    typer.Option("--faults", help="Also fit the arm to each log and print what could be wrong, with an answer each."),
]
ThresholdsOption = Annotated[
    bool,
    typer.Option(
        "--thresholds",
        callback=_thresholds_asked,
        help="Print the numbers that decide what is said about logs and results; needs neither ROBOT nor LOG.",
    ),
]
EagerJsonOption = Annotated[
    bool, typer.Option("--json", is_eager=True, help="One JSON object on stdout; everything else on stderr.")
]
