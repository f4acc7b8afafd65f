"""`armid plan`: the fastest motion along a path that the identified arm can follow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import JsonOption, OutOption, SeedOption
from armid.cli.output import check_folder, console, emit, show_files, show_notes, verb

if TYPE_CHECKING:
    from armid.planning.plan import Plan


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("plan")(plan)


@verb
def plan(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="Folder written by armid identify.")],
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="Waypoints (CSV), tool line or arc (YAML), or a trajectory (JSON).")
    ],
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Probability with which all torque limits hold, given the parameters' covariance; e.g. 0.99."
        ),
    ] = None,
    margin: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of every limit left unused.")] = 0.0,
    jerk: Annotated[bool, typer.Option("--jerk/--no-jerk", help="Respect jerk limits.")] = True,
    cell: Annotated[Path | None, typer.Option(metavar="FILE", help="What surrounds the arm (docs/formats.md).")] = None,
    collisions: Annotated[
        bool, typer.Option("--collisions/--no-collisions", help="Check the arm against itself.")
    ] = True,
    loaded: Annotated[
        bool, typer.Option("--loaded/--unloaded", help="Whether the arm carries the payload of the loaded runs.")
    ] = True,
    passive: Annotated[
        str | None, typer.Option(metavar="JOINT", help="Draw the motion generator with this joint not driven.")
    ] = None,
    points: Annotated[int, typer.Option(min=50, max=20000, help="Grid of the path.")] = 1000,
    rate_hz: Annotated[float, typer.Option("--rate-hz", min=1.0, max=10000.0, help="Of the files' samples.")] = 1000.0,
    force: Annotated[
        bool, typer.Option("--force", help="Plan with an untrusted result too; files are marked UNVALIDATED.")
    ] = False,
    out: OutOption = Path("plan"),
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Time-optimal motion along a path within torque, velocity, acceleration and jerk limits."""
    from armid.identification.result import load_result
    from armid.planning.errors import PlanRefusedError
    from armid.planning.model import model_of_result, model_of_robot
    from armid.planning.path_files import load_path
    from armid.planning.plan import PlanSettings, plan_motion
    from armid.planning.plan_files import UNVALIDATED, save_plan
    from armid.report.plan import plan_report
    from armid.report.render import write_report

    check_folder(out)
    stored = load_result(result)
    if stored.reasons and not force:
        raise PlanRefusedError(stored.reasons)
    robot = stored.robot
    if passive is not None:
        robot.joint_index(passive)
    model = model_of_result(stored, loaded=loaded)
    settings = PlanSettings(
        points=points, limits=None if jerk else without_jerk(robot), confidence=confidence, margin=margin, seed=seed
    )
    done = plan_motion(load_path(path, robot), model, settings, scene=scene_of(robot, cell, collisions))
    described = model_of_robot(robot, effects=stored.effects) if all(link.is_sound for link in robot.links) else None
    files = list(save_plan(done, out, rate_hz=rate_hz, trusted=not stored.reasons))
    page = out / ("plan.html" if not stored.reasons else f"plan-{UNVALIDATED}.html")
    files.append(write_report(plan_report(done, reasons=stored.reasons, described=described, passive=passive), page))
    show(done, stored.verdict, files)
    emit(summary(done, stored.verdict, files), as_json=as_json)


def without_jerk(robot: Any) -> Any:
    """The robot's limits with jerk left free."""
    from armid.planning.constraints import planning_limits

    return planning_limits(robot)[0].but(jerk=float("inf"))


def scene_of(robot: Any, cell: Path | None, collisions: bool) -> Any:
    """What the arm must keep clear of; nothing when neither the cell nor the arm itself is to be checked."""
    from armid.scene.cell import load_cell
    from armid.scene.scene import build_scene

    if cell is None and not collisions:
        return None
    return build_scene(robot, load_cell(cell) if cell is not None else None, self_collision=collisions)


def summary(done: Plan, verdict: str, files: list[Path]) -> dict[str, Any]:
    """The JSON object."""
    usage = done.usage.worst()
    return {
        "duration": done.duration,
        "torque_usage": usage["torque"],
        "limit_usage": usage,
        "joints": [
            {"name": name, "torque_usage": float(done.usage.torque[:, j].max())}
            for j, name in enumerate(done.model.robot.joint_names)
        ],
        "duration_without_jerk_limits": done.profile.duration,
        "duration_certain": done.duration_certain,
        "longer": done.longer,
        "probability": done.probability,
        "deviations": done.kappa,
        "verdict": verdict,
        "notes": [note.as_dict() for note in done.notes],
        "files": files,
    }


def show(done: Plan, verdict: str, files: list[Path]) -> None:
    """The same for people."""
    screen = console()
    if verdict != "trusted":
        screen.print("[bold red]UNVALIDATED[/bold red]: planned with a result that is not to be trusted")
    limited = {name: share for name, share in done.usage.worst().items() if share > 0.0}
    usage = ", ".join(f"{name} {100 * share:.1f} %" for name, share in limited.items())
    screen.print(f"[bold]{done.duration:.3f} s[/bold] from rest to rest; largest use of limits: {usage}")
    if done.probability is not None:
        screen.print(
            f"all torque limits hold with probability {done.probability:.3f}; that costs {100 * done.longer:.2f} % of time"
        )
    show_notes(done.notes)
    show_files(files)
