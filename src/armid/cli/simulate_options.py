"""Options of `armid simulate` alone, in groups; names are those of `armid.simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from armid.cli.groups import Keywords

ControllerWord = Literal["pd", "computed-torque", "hand"]
SensorsWord = Literal["perfect", "typical"]
FORMATS = ("csv", "npz", "parquet", "libfranka", "rtde", "mcap", "all")
MISTAKES = ("torque-sign", "degrees", "joint-order", "gravity-compensated", "mounting")


def _repeatable(flag: str, known: tuple[str, ...], metavar: str, text: str) -> Any:
    """An option that may be repeated: words of a fixed set, with or without `=` and more behind them. Gives them as typed."""

    def parse(text: str) -> str:
        word = text.partition("=")[0]
        if word not in known:
            raise typer.BadParameter(f"no {word!r}; there are: {', '.join(known)}")
        return text

    return typer.Option(flag, parser=parse, metavar=metavar, help=f"{text}; may be repeated.")


FormatOption = Annotated[
    list[str] | None, _repeatable("--format", FORMATS, "WORD", f"{', '.join(FORMATS)}; csv by default")
]
MistakeOption = Annotated[
    list[str] | None,
    _repeatable(
        "--fault",
        MISTAKES,
        "WORD[=JOINT,...]",
        "torque-sign[=JOINT,...], degrees, joint-order=A,B, gravity-compensated, mounting",
    ),
]


def settings(
    scenario: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML with every setting (docs/simulation.md).")
    ] = None,
    controller: Annotated[ControllerWord | None, typer.Option(help="How the arm is driven; pd by default.")] = None,
    sensors: Annotated[SensorsWord | None, typer.Option(help="How well it measures; typical by default.")] = None,
    formats: FormatOption = None,
    rate_hz: Annotated[
        float | None, typer.Option("--rate-hz", help="Rate of the log; the controller's by default.")
    ] = None,
    control_rate_hz: Annotated[
        float | None, typer.Option("--control-rate-hz", help="1000 by default; outside 1000 to 8000 with a warning.")
    ] = None,
    mistakes: MistakeOption = None,
) -> Keywords:
    """How the arm is driven and how it measures."""
    return dict(locals())


def specimen(
    variation: Annotated[
        float | None, typer.Option(help="Specimen's deviation from the description, e.g. 0.2.")
    ] = None,
    payload_mass: Annotated[
        float | None, typer.Option("--payload-kg", help="Point mass at the tip frame, in kg.")
    ] = None,
    rotor_ratio: Annotated[
        float | None,
        typer.Option(
            "--rotor-ratio",
            help="Rotor inertia over what a joint carries, where the description has none; 0.5 by default, 0 for none.",
        ),
    ] = None,
    friction_ratio: Annotated[
        float | None,
        typer.Option(
            "--friction-ratio",
            help="Friction over working torque, where the description has none; 0.05 by default, 0 for none.",
        ),
    ] = None,
    sensed_friction: Annotated[
        float | None,
        typer.Option(
            "--sensed-friction",
            min=0.0,
            max=1.0,
            help="Share of friction that joint torque sensors feel; 0 behind the gears; the description's by default.",
        ),
    ] = None,
    locked: Annotated[
        list[str] | None, typer.Option("--lock", metavar="JOINT", help="Joint that its brake holds; repeatable.")
    ] = None,
) -> Keywords:
    """How the arm differs from its description."""
    return dict(locals())


def beginning(
    start: Annotated[
        str | None, typer.Option(metavar="Q1,Q2,...", help="Where the arm stands; it must start there, at rest.")
    ] = None,
    approach_seconds: Annotated[
        float | None, typer.Option(help="Time for a smooth way from --start into the motion.")
    ] = None,
) -> Keywords:
    """Where the arm stands before the motion."""
    return dict(locals())


def repetitions(
    runs: Annotated[int, typer.Option(min=1, help="Repetitions with seeds SEED, SEED+1, ...")] = 1,
    processes: Annotated[int, typer.Option(min=1, help="How many run at a time.")] = 1,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of everything random; the scenario's by default.")
    ] = None,
) -> Keywords:
    """How often, and with which random numbers."""
    return dict(locals())
