"""`armid demo`: the whole story on the embedded robot."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import JsonOption, OutOption, SeedOption
from armid.cli.output import EXIT_UNTRUSTED, check_folder, console, emit, show_files, verb

if TYPE_CHECKING:
    from armid.studies.demo import Ending


class Mistake(StrEnum):
    """Mirrors `armid.studies.demo.Fault` without importing it."""

    none = "none"
    torque_sign = "torque-sign"
    lag = "lag"
    mounting = "mounting"


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("demo")(demo)


@verb
def demo(
    robot: Annotated[
        str, typer.Option("--robot", help="Catalogue name, URDF or YAML with inertial parameters.")
    ] = "iiwa14",
    starts: Annotated[int, typer.Option("--starts", min=1, help="Random starts of the search for the excitation.")] = 4,
    fault: Annotated[Mistake, typer.Option("--fault", help="A mistake to make on purpose.")] = Mistake.none,
    out: OutOption = Path("demo"),
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Design, run, identify, validate, export and report on the embedded robot: an arm learns its body."""
    from armid.cli.command_line import command_record
    from armid.studies.demo import Fault, Story, tell_story

    started = perf_counter()
    check_folder(out)
    screen = console()
    story = Story(robot=robot, starts=starts, fault=Fault(fault.value), seed=seed)

    def tell(text: str) -> None:
        screen.print(f"[dim]{perf_counter() - started:5.1f} s[/dim]  {text}")

    ending = tell_story(story, out, progress=tell, command=command_record())
    result = ending.result
    show(ending, out)
    emit(contract(ending, out, perf_counter() - started), as_json=as_json)
    if result.verdict != "trusted":
        raise typer.Exit(EXIT_UNTRUSTED)


def contract(ending: Ending, out: Path, seconds: float) -> dict[str, Any]:
    """What checks from outside rely on, and a few more."""
    result = ending.result
    return {
        "verdict": result.verdict,
        "reasons": list(result.reasons),
        "report": ending.report,
        "urdf": ending.exports[0].files[0] if ending.exports else None,
        "mjcf": ending.exports[1].files[0] if ending.exports else None,
        "result": out / "result",
        "condition_number": result.condition_number,
        "excitation_condition_number": ending.design.condition_number,
        "held_out_relative_error": result.relative_error["held_out"],
        "true_parameters_in_99_interval": ending.inside,
        "base_parameters": ending.parameters,
        "seconds": seconds,
    }


def show(ending: Ending, out: Path) -> None:
    """A short table for people, and where things are."""
    from rich.table import Table

    result, screen = ending.result, console()
    table = Table(title=f"{result.robot.name}: {ending.parameters} base parameters, torque error on motion never seen")
    for title in ("joint", "identified [N m]", "of its torque", "description [N m]"):
        table.add_column(title, justify="left" if title == "joint" else "right")
    for joint, nominal in zip(result.joints, result.joints_nominal, strict=True):
        table.add_row(
            joint.name,
            f"{joint.held_out.rmse:.3f}",
            f"{100 * joint.held_out.relative:.2f} %",
            f"{nominal.held_out.rmse:.3f}",
        )
    screen.print(table)
    screen.print(
        f"over all joints {100 * result.relative_error['held_out']:.2f} %; excitation condition number "
        f"{ending.design.condition_number:.1f}; {ending.inside} of {ending.parameters} true parameters in their 99 % interval"
    )
    colour = "green" if result.verdict == "trusted" else "red"
    screen.print(f"[bold {colour}]{result.verdict}[/bold {colour}]")
    for reason in result.reasons:
        screen.print(f"  - {reason}", markup=False)
    show_files([export.files[0] for export in ending.exports], "model   ")
    show_files([ending.report], "report  ")
