"""`armid study`: nominal or calibrated kinematics x random way-points or optimised motion, on the embedded robot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import JsonOption, OutOption, SeedOption
from armid.cli.output import console, emit, verb

if TYPE_CHECKING:
    from armid.studies.kinematics.study import Study


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("study")(study)


@verb
def study(
    robot: Annotated[
        str, typer.Option("--robot", help="Catalogue name, URDF or YAML with inertial parameters.")
    ] = "lwr4plus",
    correction: Annotated[
        Path | None,
        typer.Option(
            "--correction",
            metavar="FILE",
            help="How the real arm deviates (correction.json); published for lwr4plus, else drawn.",
        ),
    ] = None,
    trajectory: Annotated[
        list[Path] | None,
        typer.Option(
            "--trajectory", metavar="FILE", help="Optimised motion of armid design; repeatable. Else searched."
        ),
    ] = None,
    motions: Annotated[int, typer.Option("--motions", min=1, help="Motions of each kind.")] = 4,
    repetitions: Annotated[int, typer.Option("--repetitions", min=2, help="Recordings of each motion.")] = 3,
    seconds: Annotated[float, typer.Option("--seconds", help="Length of the motions [s].")] = 25.0,
    starts: Annotated[int, typer.Option("--starts", min=1, help="Random starts of each search.")] = 1,
    poses: Annotated[int, typer.Option("--poses", min=4, help="Poses measured for the calibration.")] = 17,
    variation: Annotated[
        float, typer.Option("--variation", min=0.0, max=1.0, help="Of inertias and friction from their description.")
    ] = 0.2,
    payload_kg: Annotated[
        float | None,
        typer.Option("--payload-kg", min=0.0, help="Carried in half of the runs; 3.28 for lwr4plus, else none."),
    ] = None,
    torques: Annotated[
        str, typer.Option("--torques", metavar="link|motor|both", help="Where torque is measured; both is model 2.")
    ] = "both",
    cutoff_hz: Annotated[float, typer.Option("--cutoff-hz", help="Low-pass on motion and torque.")] = 10.0,
    out: OutOption = Path("study"),
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Repeat [Kolyubin2017]'s study: what calibrated kinematics and an optimised motion do to the dynamic parameters."""
    started = perf_counter()
    from armid.documents import replacing
    from armid.parameters.effects import effects_of
    from armid.report.render import write_report
    from armid.report.study import study_report
    from armid.robot.load import load_robot
    from armid.studies.kinematics.files import TABLE, study_table, write_study
    from armid.studies.kinematics.study import StudySettings, run_study

    arm = load_robot(robot)
    settings = StudySettings(
        motions=motions,
        repetitions=repetitions,
        seconds=seconds,
        starts=starts,
        trajectories=tuple(trajectory or ()),
        poses=poses,
        variation=variation,
        payload=payload_kg,
        torques=effects_of("none", torques=torques).torques,
        cutoff=cutoff_hz,
        correction=correction,
        seed=seed,
    )
    with replacing(out, marker=TABLE, what="study") as place, progress() as tell:
        found = run_study(arm, settings, progress=tell)
        tell("writing", 0.99)
        written = [*write_study(found, place), write_report(study_report(found), place / "report.html")]
        names = [path.relative_to(place) for path in written]
    result = study_table(found) | {
        "seconds": perf_counter() - started,
        "report": out / "report.html",
        "files": [out / name for name in names],
    }
    show(found, out)
    emit(result, as_json=as_json)


@contextmanager
def progress() -> Iterator[Callable[[str, float], None]]:
    """A bar that says what is being done; silent when stderr is not a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = console()
    if not screen.is_terminal:
        yield lambda _text, _share: None
        return
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=screen) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda text, share: bar.update(task, description=text, completed=share)


def show(found: Study, out: Path) -> None:
    """A table for people."""
    from rich.table import Table

    from armid.studies.kinematics.files import case_summary

    screen = console()
    title = f"{found.robot.name}: {int(found.essential.sum())} essential of {len(found.base)} base parameters, medians"
    table = Table(title=title)
    for column in ("kinematics", "motion", "spread", "error", "held-out torque"):
        table.add_column(column, justify="left" if column in ("kinematics", "motion") else "right")
    for case in found.cases:
        row: dict[str, Any] = case_summary(found, case)
        cells = ("median_relative_spread", "median_relative_error", "relative_error_held_out")
        table.add_row(case.kinematics, case.motion, *(f"{100 * row[name]:.3f} %" for name in cells))
    screen.print(table)
    k = found.kinematics
    screen.print(
        f"tool position error {1e3 * k.position_before.mean:.3f} -> {1e3 * k.position_after.mean:.3f} mm (mean at fresh poses)"
    )
    screen.print(f"report  {out / 'report.html'}")
