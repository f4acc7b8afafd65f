"""`armid design`: an excitation trajectory within all limits."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, OutOption, RobotArgument, SeedOption, TipOption
from armid.cli.output import check_folder, console, emit, show_files, show_notes, verb
from armid.errors import InputError

if TYPE_CHECKING:
    from armid.design.design import Design, DesignSettings
    from armid.design.search import Budget, Search
    from armid.design.search import Progress as Found
    from armid.design.sequential import LockedStage
    from armid.robot.robot import Robot
    from armid.scene.cell import Cell


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("design")(verb(design))


def design(
    robot: RobotArgument,
    friction: Annotated[
        str, typer.Option(help="Comma-separated: viscous, coulomb, offset; empty for none.")
    ] = "viscous,coulomb",
    rotor_inertia: Annotated[bool, typer.Option("--rotor-inertia", help="Rotor inertia of every drive.")] = False,
    torques: Annotated[str, typer.Option(help="Where torque is measured: link, motor, both or difference.")] = "link",
    period: Annotated[str, typer.Option(help="Seconds: 20, several with commas, or a range 10:30 to search.")] = "20",
    harmonics: Annotated[int, typer.Option(min=2, help="Of the Fourier series.")] = 10,
    spline_knots: Annotated[int | None, typer.Option(min=4, help="Splines with this many knots instead.")] = None,
    start: Annotated[
        str | None, typer.Option(help="Pose it starts and ends at, rad or m with commas; free by default.")
    ] = None,
    home: Annotated[
        str | None, typer.Option(help="Where the robot stands: adds the approach and the way back.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Periods to run.")] = 1,
    margin: Annotated[float, typer.Option(help="Fraction of every limit left unused.")] = 0.05,
    limits: Annotated[
        str, typer.Option(help="Limits that count, with commas.")
    ] = "position,velocity,acceleration,jerk,torque",
    cell: Annotated[str | None, typer.Option(help="Cell file, or the name of one that comes along.")] = None,
    self_collision: Annotated[bool, typer.Option(help="Keep the arm clear of itself.")] = True,
    analytic_bounds: Annotated[
        bool,
        typer.Option(
            "--analytic-bounds", help="Sums of amplitudes keep position and velocity limits (thesis eq. 3.55)."
        ),
    ] = False,
    resonance_hz: Annotated[float | None, typer.Option(help="The highest harmonic stays below it.")] = None,
    criterion: Annotated[str, typer.Option(help="condition, log-det, smallest or worst-deviation.")] = "condition",
    noise: Annotated[
        str | None, typer.Option(help="Torque noise of each joint [N m], with commas; equal by default.")
    ] = None,
    goal_condition: Annotated[
        float | None,
        typer.Option(help="Condition number to attain, with --goal-reserve; found by a first run by default."),
    ] = None,
    goal_reserve: Annotated[
        str | None, typer.Option(help="Mean torque reserve to attain: joint6=0.9,joint7=0.9 (fraction of the limit).")
    ] = None,
    goal_weights: Annotated[str | None, typer.Option(help="Of the goals' misses, condition number first.")] = None,
    payload_mass: Annotated[float, typer.Option(help="Carried at the tip [kg], for torques.")] = 0.0,
    payload_centre: Annotated[str, typer.Option(help="Its centre of mass in the tip frame [m].")] = "0,0,0",
    rank: Annotated[
        int,
        typer.Option(
            min=0, help="Run this many of the best motions on the embedded robot and keep what identifies best."
        ),
    ] = 0,
    sequential: Annotated[bool, typer.Option("--sequential", help="Locked-joint plan, tip to base.")] = False,
    seconds: Annotated[float, typer.Option(help="Time to search; 0 for no limit (then give --starts).")] = 60.0,
    starts: Annotated[int | None, typer.Option(min=1, help="Random starts instead of time: repeats exactly.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core by default.")] = None,
    resume: Annotated[Path | None, typer.Option(help="search.json of an earlier run to go on from.")] = None,
    rate_hz: Annotated[float, typer.Option(help="Of the sampled files.")] = 100.0,
    seed: SeedOption = 0,
    out: OutOption = Path("design"),
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """An excitation trajectory that excites every parameter and that the arm can run as it is.

    For example `armid design iiwa14 --seconds 20 --home 0,0,0,0,0,0,0`. Ctrl-C keeps the best motion so far.
    """
    from armid.cli.poses import named_cell
    from armid.design.criterion import DesignCriterion
    from armid.design.design import design_excitation
    from armid.design.search import Budget
    from armid.design.statement import DesignSettings, with_payload
    from armid.parameters.effects import effects_of
    from armid.robot.load import load_robot
    from armid.words import choice

    began = perf_counter()
    check_folder(out)
    if rate_hz <= 0.0:
        raise InputError("--rate-hz", f"{rate_hz}", "must be positive")
    arm = load_robot(robot, base=base, tip=tip)
    if payload_mass:
        arm = with_payload(arm, payload_mass, numbers("--payload-centre", payload_centre, 3))
    n = arm.n_joints
    settings = DesignSettings(
        effects=effects_of(friction, rotor_inertia=rotor_inertia, torques=torques),
        periods=periods("--period", period),
        harmonics=harmonics,
        knots=spline_knots,
        start=None if start is None else numbers("--start", start, n),
        home=None if home is None else numbers("--home", home, n),
        margin=margin,
        limits=frozenset(part.strip() for part in limits.split(",") if part.strip()),
        analytic=analytic_bounds,
        resonance_hz=resonance_hz,
        self_collision=self_collision,
        criterion=choice("--criterion", criterion, DesignCriterion),
        noise=None if noise is None else numbers("--noise", noise, n),
        goal_condition=goal_condition,
        goal_reserve=reserves(goal_reserve),
        goal_weights=None if goal_weights is None else numbers("--goal-weights", goal_weights, None),
        repetitions=repeat,
    )
    surroundings = named_cell(cell)
    budget = Budget(seconds=seconds or None, starts=starts, workers=workers or default_workers(seconds))
    if sequential:
        from armid.design.sequential import design_sequential

        stages = design_sequential(arm, settings, cell=surroundings, budget=budget, seed=seed)
        result = sequential_result(stages, out, rate_hz)
        if not as_json:
            show_stages(stages, result)
    else:
        earlier = None if resume is None else earlier_search(resume, arm, settings)
        with display(budget, as_json) as watch:
            found = design_excitation(
                arm, settings, cell=surroundings, budget=budget, seed=seed, watch=watch, resume=earlier
            )
        ranking: list[dict[str, Any]] = []
        if rank:
            found, ranking = best_in_simulation(found, rank, surroundings, seed)
        result = design_result(found, written(found, out, rate_hz)) | ({"ranking": ranking} if rank else {})
        if not as_json:
            show(found, result)
    emit(result | {"seconds": perf_counter() - began}, as_json=as_json)


START_UP = 10.0
"""[s] A search shorter than this is over before further processes have started: it runs in this one."""


def default_workers(seconds: float) -> int:
    """One process per core when the search is long enough to use them."""
    return 1 if 0.0 < seconds < START_UP else cores()


def best_in_simulation(found: Design, count: int, cell: Cell | None, seed: int) -> tuple[Design, list[dict[str, Any]]]:
    """The motion whose run on the embedded robot identifies best, and how the others did ([Halper2024], algorithm 2)."""
    from armid.design.design import alternatives, redesigned
    from armid.design.statement import families_of
    from armid.motions.basis import Basis
    from armid.studies.ranking import rank_motions

    candidates = alternatives(found)[:count]
    bases: tuple[Basis, ...] = families_of(found.robot, found.settings)
    motions = [bases[c.family].trajectory(c.coefficients, found.robot.joint_names) for c in candidates]
    ranked = rank_motions(found.robot, motions, seed=seed)
    table = [
        {
            "start": candidates[r.index].start,
            "condition_number": candidates[r.index].condition_number,
            "predicted_error": r.predicted,
            "achieved_error": r.achieved,
        }
        for r in ranked
    ]
    return redesigned(found, candidates[ranked[0].index], cell=cell, seed=seed), table


def cores() -> int:
    """Cores this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def numbers(flag: str, text: str, count: int | None) -> list[float]:
    """Comma-separated numbers, exactly `count` of them unless that is None."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(flag, f"{text!r} is not a list of numbers", "for example 0,0.5,-1") from None
    if count is not None and len(values) != count:
        raise InputError(flag, f"{len(values)} numbers", f"expected {count}")
    return values


PERIODS_IN_RANGE = 5


def periods(flag: str, text: str) -> tuple[float, ...]:
    """One period, several, or equally spaced ones over a range `low:high`."""
    if ":" not in text:
        return tuple(numbers(flag, text, None))
    low, high = numbers(flag, text.replace(":", ","), 2)
    if not 0.0 < low < high:
        raise InputError(flag, f"{text!r}", "a range of periods has its shorter one first")
    return tuple(low + (high - low) * k / (PERIODS_IN_RANGE - 1) for k in range(PERIODS_IN_RANGE))


def reserves(text: str | None) -> dict[str, float]:
    """`joint6=0.9,joint7=0.9` as a mapping."""
    out: dict[str, float] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, _, value = part.partition("=")
        try:
            out[name.strip()] = float(value)
        except ValueError:
            raise InputError("--goal-reserve", f"{part!r}", "expected JOINT=FRACTION") from None
        if not 0.0 < out[name.strip()] <= 1.0:
            raise InputError("--goal-reserve", f"{part!r}", "a reserve is a fraction of the torque limit, 0 to 1")
    return out


def earlier_search(path: Path, robot: Robot, settings: DesignSettings) -> Search:
    """The search to go on from."""
    from armid.design.search_files import load_search
    from armid.design.statement import families_of

    return load_search(path, families_of(robot, settings), robot.n_joints)


def display(budget: Budget, quiet: bool) -> Any:
    """A context that shows progress and gives the function to report it to."""
    from contextlib import contextmanager

    @contextmanager
    def shown() -> Any:
        if quiet:
            yield None
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("searching"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[state]}"))
        with Progress(*columns, console=console(), transient=True) as bar:
            total = budget.seconds or float(budget.starts or 1)
            line = bar.add_task("search", total=total, state="")

            def report(progress: Found) -> None:
                best = (
                    f"best condition number {progress.best:.2f}"
                    if progress.best < float("inf")
                    else "nothing certified yet"
                )
                done = progress.seconds if budget.seconds else float(progress.explored)
                bar.update(line, completed=min(done, total), state=f"{progress.explored} starts, {best}")

            yield report

    return shown()


def written(found: Design, folder: Path, rate_hz: float) -> list[str]:
    """Coefficients, samples, JointTrajectory in both notations, the page, and the search to resume from."""
    from armid.design.search_files import save_search
    from armid.motions.trajectory_files import save_csv, save_joint_trajectory, save_trajectory
    from armid.report.design import design_report
    from armid.report.render import write_report

    folder.mkdir(parents=True, exist_ok=True)
    files = [
        save_trajectory(found.trajectory, folder / "trajectory.json", robot=found.robot.name),
        save_csv(found.trajectory, folder / "trajectory.csv", rate_hz=rate_hz),
        save_joint_trajectory(found.trajectory, folder / "joint_trajectory.json", rate_hz=rate_hz),
        save_joint_trajectory(found.trajectory, folder / "joint_trajectory.yaml", rate_hz=rate_hz),
        write_report(design_report(found), folder / "design.html"),
        save_search(found.search, folder / "search.json"),
    ]
    return [str(path) for path in files]


def design_result(found: Design, files: list[str]) -> dict[str, Any]:
    """The JSON object."""
    proof, search = found.certificate, found.search
    result: dict[str, Any] = {
        "robot": found.robot.name,
        "condition_number": found.condition_number,
        "condition_number_scaled": found.condition_number_scaled,
        "base_parameters": len(found.base),
        "feasible": proof.feasible,
        "limit_usage": found.limit_usage,
        "margin": found.settings.margin,
        "clearance": proof.clearance,
        "closest": proof.closest,
        "baseline_condition_number": found.baseline,
        "hull_distance": None if found.hulls is None else found.hulls.distance,
        "period": found.excitation.period,
        "duration": found.trajectory.duration,
        "seconds": search.seconds,
        "search_seconds": search.seconds,
        "starts": search.explored,
        "evaluations": search.evaluations,
        "history": search.history,
        "interrupted": search.interrupted,
        "notes": [note.as_dict() for note in found.notes],
        "files": files,
    }
    if len(found.misses):
        result["goal_misses"] = found.misses
        result["goals_attained"] = bool((found.misses <= 0.0).all())
    return result


def show(found: Design, result: dict[str, Any]) -> None:
    """The table for people."""
    from rich.table import Table

    screen = console()
    screen.print(
        f"[bold]{found.robot.name}[/bold]: condition number [bold]{found.condition_number:.2f}[/bold] over "
        f"{len(found.base)} base parameters, {found.trajectory.duration:.1f} s, certified at every instant"
    )
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("joint")
    for name in found.certificate.usage:
        table.add_column(f"{name} %", justify="right")
    for j, joint in enumerate(found.robot.joint_names):
        table.add_row(joint, *(f"{100 * values[j]:.1f}" for values in found.certificate.usage.values()))
    screen.print(table)
    if found.certificate.closest:
        screen.print(
            f"closest: {found.certificate.closest}, {1000 * found.certificate.clearance:.1f} mm beyond the margin"
        )
    for entry in result.get("ranking", []):
        screen.print(
            f"start {entry['start']}: condition number {entry['condition_number']:.2f}, relative parameter error predicted "
            f"{100 * entry['predicted_error']:.2g} %, achieved {100 * entry['achieved_error']:.2g} %"
        )
    if len(found.misses):
        attained = "attained" if result["goals_attained"] else "not attained"
        screen.print(f"goals {attained}: misses {', '.join(f'{100 * m:+.1f} %' for m in found.misses)}")
    show_notes(found.notes)
    show_files(result["files"])


def sequential_result(stages: tuple[LockedStage, ...], folder: Path, rate_hz: float) -> dict[str, Any]:
    """Writes the experiments of a plan, in the order they are run, and describes them."""
    from armid.design.sequential import stage_notes
    from armid.motions.trajectory_files import save_csv, save_trajectory

    folder.mkdir(parents=True, exist_ok=True)
    experiments, files = [], []
    for k, stage in enumerate(stages):
        stem = folder / f"experiment{k + 1}"
        own = [
            str(save_trajectory(stage.trajectory, stem.with_suffix(".json"), robot=stage.design.robot.name)),
            str(save_csv(stage.trajectory, stem.with_suffix(".csv"), rate_hz=rate_hz)),
        ]
        files += own
        experiments.append(
            design_result(stage.design, own) | {"locked": stage.locked, "first_moving_joint": stage.joint + 1}
        )
    worst: dict[str, float] = {
        name: max(e["limit_usage"][name] for e in experiments) for name in experiments[0]["limit_usage"]
    }
    return {
        "condition_number": max(e["condition_number"] for e in experiments),
        "base_parameters": max(e["base_parameters"] for e in experiments),
        "feasible": all(e["feasible"] for e in experiments),
        "limit_usage": worst,
        "seconds": sum(e["seconds"] for e in experiments),
        "experiments": experiments,
        "notes": [note.as_dict() for note in stage_notes(stages)],
        "files": files,
    }


def show_stages(stages: tuple[LockedStage, ...], result: dict[str, Any]) -> None:
    """One line per experiment."""
    screen = console()
    for k, stage in enumerate(stages):
        locked = ", ".join(f"{q:.3f}" for q in stage.locked) or "none"
        screen.print(
            f"experiment {k + 1}: joints from {stage.trajectory.joint_names[stage.joint]} move, locked at [{locked}]; "
            f"{len(stage.design.base)} base parameters, condition number {stage.design.condition_number:.2f}"
        )
    show_files(result["files"])
