"""`armid simulate`: run a motion on the embedded robot, write its log and the truth."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, OutOption, RobotArgument, TipOption
from armid.cli.output import EXIT_UNTRUSTED, check_folder, console, emit, show_files, show_notes, verb

if TYPE_CHECKING:
    from armid.arrays import FloatArray
    from armid.notes import Note
    from armid.robot.robot import Robot
    from armid.simulation.files import Job
    from armid.simulation.scenario import Scenario


class RecordedChannels(StrEnum):
    """What is recorded."""

    LOG = "log"
    TRACKER = "tracker"
    CONTROLLER_MODEL = "controller-model"


class Controllers(StrEnum):
    """How the arm is driven."""

    PD = "pd"
    COMPUTED_TORQUE = "computed-torque"
    HAND = "hand"


class SensorKind(StrEnum):
    """How well the arm measures."""

    PERFECT = "perfect"
    TYPICAL = "typical"


FormatOption = Annotated[
    list[str] | None,
    typer.Option("--format", help="csv, npz, parquet, libfranka, rtde, mcap or all; may be repeated; csv by default."),
]
MistakeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mistake",
        help="torque-sign[=JOINT,...], degrees, joint-order=A,B, gravity-compensated, mounting; may be repeated.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("simulate")(simulate)


@verb
def simulate(
    robot: RobotArgument,
    trajectory: Annotated[
        Path,
        typer.Argument(metavar="TRAJECTORY", help="Trajectory (JSON or CSV); postures (CSV) for --record tracker."),
    ],
    record: Annotated[
        RecordedChannels, typer.Option(help="A log of the motion, tool poses, or the controller's model.")
    ] = (RecordedChannels.LOG),
    scenario: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML with every setting (docs/simulation.md).")
    ] = None,
    controller: Annotated[Controllers | None, typer.Option(help="How the arm is driven; pd by default.")] = None,
    sensors: Annotated[SensorKind | None, typer.Option(help="How well it measures; typical by default.")] = None,
    formats: FormatOption = None,
    rate_hz: Annotated[
        float | None, typer.Option("--rate-hz", help="Rate of the log; the controller's by default.")
    ] = None,
    control_rate_hz: Annotated[
        float | None, typer.Option("--control-rate-hz", help="1000 by default; outside 1000 to 8000 with a warning.")
    ] = None,
    variation: Annotated[
        float | None, typer.Option(help="Specimen's deviation from the description, e.g. 0.2.")
    ] = None,
    payload_mass: Annotated[
        float | None, typer.Option("--payload-mass", help="Point mass at the tip frame, in kg.")
    ] = None,
    locked: Annotated[list[str] | None, typer.Option("--lock", metavar="JOINT", help="Held by its brake.")] = None,
    mistake: MistakeOption = None,
    start: Annotated[
        str | None,
        typer.Option("--start", metavar="Q1,Q2,...", help="Where the arm stands; it must start there, at rest."),
    ] = None,
    approach: Annotated[
        float | None, typer.Option("--approach-seconds", help="Time for a smooth way from --start into the motion.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Repetitions with seeds SEED, SEED+1, ...")] = 1,
    processes: Annotated[int, typer.Option(min=1, help="How many run at a time.")] = 1,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    out: OutOption = Path("simulation"),
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of everything random; the scenario's by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the embedded robot along a motion; write its log and the truth."""
    from armid.notes import Severity
    from armid.robot.load import load_robot

    began = perf_counter()
    check_folder(out)
    arm = load_robot(robot, base=base, tip=tip)
    plan = planned(arm, scenario, seed)
    plan = with_flags(arm, plan, controller, sensors, scenario is None)
    plan = with_physics(arm, plan, control_rate_hz, payload_mass, tuple(locked or ()))
    plan = with_logging(arm, plan, rate_hz, variation, mistake or [])
    if record is RecordedChannels.LOG:
        jobs = planned_jobs(arm, trajectory, plan, start, approach, runs, formats or ["csv"], out)
        result = recorded_log(jobs, processes)
    else:
        result = recorded_postures(arm, trajectory, plan, record, out)
    said = (*arm.notes, *((*plan.physics.notes, *left_out(formats or [])) if record is RecordedChannels.LOG else ()))
    warnings = [note for note in said if note.severity is Severity.WARNING]
    result["notes"] = [note.as_dict() for note in warnings]
    result["seconds"] = perf_counter() - began
    show_notes(warnings)
    report(result)
    emit(result, as_json=as_json)
    if any(event["severity"] == "error" for event in result["events"]):
        raise typer.Exit(EXIT_UNTRUSTED)


def planned(arm: Robot, path: Path | None, seed: int | None) -> Scenario:
    """The scenario of a file, or the default one; a seed on the command line comes first."""
    from armid.simulation.scenario import Scenario
    from armid.simulation.settings_file import load_scenario

    plan = Scenario() if path is None else load_scenario(path, arm)
    return plan if seed is None else replace(plan, seed=seed)


def with_flags(
    arm: Robot, plan: Scenario, controller: Controllers | None, sensors: SensorKind | None, bare: bool
) -> Scenario:
    from armid.simulation.settings_file import controller_from, sensors_from

    if controller is not None:
        plan = replace(plan, controller=controller_from(controller.value, "--controller"))
    if sensors is not None or bare:
        kind = (sensors or SensorKind.TYPICAL).value
        plan = replace(plan, sensors=sensors_from(kind, arm, "--sensors"))
    return plan


def with_physics(
    arm: Robot, plan: Scenario, control_rate_hz: float | None, payload_mass: float | None, locked: tuple[str, ...]
) -> Scenario:
    import numpy as np

    from armid.parameters.inertial import from_centre_of_mass

    physics = plan.physics
    if control_rate_hz is not None:
        physics = replace(physics, control_rate_hz=control_rate_hz)
    if payload_mass is not None:
        tip = arm.tip.T_link_frame[:3, 3]
        physics = replace(physics, payload=from_centre_of_mass(payload_mass, tip, np.zeros((3, 3))))
    return replace(plan, physics=replace(physics, locked=locked) if locked else physics)


def with_logging(
    arm: Robot, plan: Scenario, rate_hz: float | None, variation: float | None, mistakes: list[str]
) -> Scenario:
    if rate_hz is not None:
        plan = replace(plan, sensors=replace(plan.sensors, clock=replace(plan.sensors.clock, rate_hz=rate_hz)))
    if variation is not None:
        plan = replace(plan, variation=variation)
    for text in mistakes:
        plan = replace(plan, mistakes=replace(plan.mistakes, **mistake_fields(arm, text)))
    return plan


def mistake_fields(arm: Robot, text: str) -> dict[str, Any]:
    """`torque-sign=joint2,joint4` and the like as fields of `Mistakes`."""
    from armid.errors import InputError, UnknownNameError

    code, _, argument = text.partition("=")
    joints = tuple(name for name in argument.split(",") if name)
    for name in joints:
        arm.joint_index(name)
    match code:
        case "torque-sign":
            return {"wrong_sign": joints or arm.joint_names}
        case "degrees":
            return {"degrees": True}
        case "joint-order":
            if len(joints) != 2:
                raise InputError("--mistake joint-order", f"{len(joints)} joints", "two joint names: joint-order=A,B")
            return {"swapped": ((joints[0], joints[1]),)}
        case "gravity-compensated":
            return {"gravity_compensated": True}
        case "mounting":
            return {"upside_down": True}
    raise UnknownNameError(
        "mistake", code, ("torque-sign", "degrees", "joint-order", "gravity-compensated", "mounting")
    )


def planned_jobs(
    arm: Robot,
    trajectory: Path,
    plan: Scenario,
    start: str | None,
    approach: float | None,
    runs: int,
    formats: list[str],
    out: Path,
) -> list[Job]:
    """One job per run, with seeds counting up."""
    from armid.errors import InputError
    from armid.motions.trajectory_files import load_trajectory
    from armid.simulation.files import Job
    from armid.simulation.motions import Approached, CommandedMotion, in_joint_order

    motion: CommandedMotion = in_joint_order(load_trajectory(trajectory), arm)
    stands = None if start is None else joint_values(start, arm)
    if approach is not None:
        if stands is None:
            raise InputError("--approach-seconds", "an approach from nowhere", "say where the arm stands with --start")
        motion = Approached(stands, approach, motion)
    kinds = chosen_formats(formats)
    return [
        Job(
            robot=arm,
            motion=motion,
            scenario=replace(plan, seed=plan.seed + k),
            directory=out,
            name="log" if runs == 1 else f"log{k + 1}",
            formats=kinds,
            start=stands,
        )
        for k in range(runs)
    ]


def joint_values(text: str, arm: Robot) -> FloatArray:
    """`0,0.5,...` as positions."""
    import numpy as np

    from armid.errors import InputError

    try:
        values = np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise InputError("--start", f"{text!r}", "numbers separated by commas, in rad or m") from None
    if len(values) != arm.n_joints:
        raise InputError("--start", f"{len(values)} numbers", f"{arm.n_joints}, one per joint")
    return values


def recorded_log(jobs: list[Job], processes: int) -> dict[str, Any]:
    from armid.simulation.files import run_jobs

    outcomes = run_jobs(jobs, processes=processes)
    return {
        "files": [file for outcome in outcomes for file in outcome.files],
        "samples": sum(outcome.samples for outcome in outcomes),
        "duration": sum(outcome.duration for outcome in outcomes),
        "seed": jobs[0].scenario.seed,
        "runs": len(jobs),
        "events": [event.as_dict() for outcome in outcomes for event in outcome.events],
    }


def chosen_formats(names: list[str]) -> tuple[Any, ...]:
    """The formats asked for; `all` means those this machine can write.

    Raises:
        UnknownNameError: no such format.
        MissingDependencyError: one asked for by name needs a library that is not installed; said before anything runs.
    """
    from armid.errors import UnknownNameError
    from armid.simulation.writers import LogFormat, missing_library

    if "all" in names:
        return tuple(kind for kind in LogFormat if missing_library(kind) is None)
    for name in names:
        if name not in {kind.value for kind in LogFormat}:
            raise UnknownNameError("log format", name, (*(kind.value for kind in LogFormat), "all"))
    kinds = tuple(dict.fromkeys(LogFormat(name) for name in names))
    for missing in filter(None, map(missing_library, kinds)):
        raise missing
    return kinds


def left_out(names: list[str]) -> list[Note]:
    """One warning for each format that `all` could not mean on this machine."""
    from armid.notes import Note, Severity
    from armid.simulation.writers import LogFormat, missing_library

    if "all" not in names:
        return []
    return [
        Note("format-left-out", Severity.WARNING, f"not written: {missing}", kind.value)
        for kind in LogFormat
        if (missing := missing_library(kind)) is not None
    ]


def recorded_postures(arm: Robot, path: Path, plan: Scenario, record: RecordedChannels, out: Path) -> dict[str, Any]:
    from armid.errors import InputError
    from armid.motions.postures import load_postures
    from armid.simulation.postures import write_posture_experiment

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(out, f"cannot be created: {error.strerror or error}") from None
    q = load_postures(path, arm)
    files = write_posture_experiment(arm, q, plan, out, tracked=record is RecordedChannels.TRACKER)
    return {"files": files, "samples": len(q), "seed": plan.seed, "events": []}


def report(result: dict[str, Any]) -> None:
    """For people: what was written, and what happened on the way."""
    screen = console()
    if "duration" in result:
        speed = result["duration"] / max(result["seconds"], 1e-9)
        screen.print(f"{result['duration']:.1f} s of motion in {result['seconds']:.2f} s ({speed:.0f} times real time)")
    for event in result["events"]:
        screen.print(f"{event['code']}: {event['message']}", style="yellow", markup=False)
    show_files(result["files"])
