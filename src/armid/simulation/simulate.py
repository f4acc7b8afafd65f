"""Run a motion on the embedded robot: the function behind `armid simulate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt

from armid.apart import refuse_inputs_within
from armid.arrays import FloatArray
from armid.documents import plain
from armid.errors import InputError
from armid.motions.limits_file import with_limits
from armid.motions.trajectory_files import input_of, trajectory_of
from armid.notes import Note, Severity
from armid.outcome import InputFile, Provenance
from armid.parameters.inertial import from_centre_of_mass
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.simulation.assumed import FRICTION_RATIO, ROTOR_RATIO, AssumedDrives
from armid.simulation.controllers import Controller
from armid.simulation.files import Job, RunRecord, record_of, run_jobs, write_experiment
from armid.simulation.measure import with_mistake
from armid.simulation.motions import Approached, CommandedMotion, check_acceleration, in_joint_order
from armid.simulation.physics import Physics
from armid.simulation.postures import postures_of, run_postures, write_posture_experiment
from armid.simulation.scenario import Experiment, Scenario, run_scenario
from armid.simulation.sensors import Sensors
from armid.simulation.settings_file import controller_from, load_scenario, sensors_from
from armid.simulation.simulation import RecordedChannels, Simulation, log_name
from armid.simulation.truth import settings_values
from armid.simulation.writers import ALL, LogFormat, formats_of, left_out
from armid.threads import one_blas_thread
from armid.words import choice, number, numbers

_TYPICAL = "typical"
"""Sensors when nothing says how well the arm measures."""


@one_blas_thread
def simulate(
    robot: str | Path | Robot,
    trajectory: str | Path | CommandedMotion | npt.ArrayLike,
    *,
    record: str | RecordedChannels = RecordedChannels.LOG,
    scenario: str | Path | Scenario | None = None,
    controller: str | Controller | None = None,
    sensors: str | Sensors | None = None,
    formats: str | Sequence[str | LogFormat] = "csv",
    rate_hz: float | None = None,
    control_rate_hz: float | None = None,
    variation: float | None = None,
    payload_mass: float | None = None,
    rotor_ratio: float | None = None,
    friction_ratio: float | None = None,
    sensed_friction: float | None = None,
    locked: Sequence[str] = (),
    mistakes: Sequence[str] = (),
    start: str | npt.ArrayLike | None = None,
    approach_seconds: float | None = None,
    limits_file: str | Path | None = None,
    max_acceleration: str | npt.ArrayLike | None = None,
    max_jerk: str | npt.ArrayLike | None = None,
    max_torque: str | npt.ArrayLike | None = None,
    runs: int = 1,
    processes: int = 1,
    seed: int | None = None,
    out: str | Path | None = None,
    base: str | None = None,
    tip: str | None = None,
) -> Simulation:
    """Runs the embedded robot along a motion, or measures it at postures; gives its log and the truth.

    Args:
        robot: URDF or YAML path, catalogue name, or a robot: the arm as its users believe it to be.
        trajectory: commanded motion: a file (JSON or CSV) or a trajectory. For `tracker` and `controller-model`, postures: a
            CSV file or an array [rad or m], shape [n_poses, n_joints].
        record: log, tracker (poses of the tool) or controller-model (gravity vectors and inertia matrices).
        scenario: every setting at once, from a YAML file (docs/simulation.md) or as an object; what follows comes first.
        controller: pd, computed-torque, hand, or a controller.
        sensors: perfect, typical, or sensors; typical ones without a scenario.
        formats: of the log files: csv, npz, parquet, libfranka, rtde, mcap, or all that this machine can write.
        rate_hz: of the log; the controller's when None.
        control_rate_hz: of the controller.
        variation: how much the specimen differs from its description, relative, 0 to 1.
        payload_mass: point mass at the tip frame [kg].
        rotor_ratio: rotor inertia over the inertia each joint carries, for joints whose description has none; 0.5, 0 for none.
            Nothing is assumed about a robot object unless one of the two ratios is given.
        friction_ratio: the same for friction, over the torque of a brisk motion; 0.05.
        sensed_friction: share of friction and offset on the links' side of the joint torque sensors, 0 to 1: 0 for sensors
            behind the gears; the scenario's, else the description's (a note says so), else all of it, when None.
        locked: joints held by their brakes.
        mistakes: of whoever logged it: torque-sign[=JOINT,...], degrees, joint-order=A,B, gravity-compensated, mounting.
        start: where the arm stands at rest [rad or m], shape [n_joints]; already in the motion's first state when None.
        approach_seconds: time for a smooth way from `start` into the motion.
        limits_file: limits the description cannot hold, or narrower ones; YAML (docs/formats.md).
        max_acceleration, max_jerk, max_torque: the same for all joints or one each, shape [n_joints].
        runs: repetitions with seeds counting up.
        processes: how many run at a time, when they are written as they finish.
        seed: of everything random; the scenario's when None.
        out: folder into which every run is written as it finishes, so that memory holds one; None keeps all in memory.
        base, tip: links of a URDF where the arm begins and ends.

    Returns:
        The simulation: `.log`, `.truth`, `.save(folder)`. Untrusted when a motion had to be stopped.

    Raises:
        CommandError: a motion the arm cannot be asked to follow.
        GainError: gains that are unstable at this rate.
        SimulationError: a motion that had to be stopped, unless the scenario says that faults are recorded.
        InputError: something asked for that cannot be.
    """
    refuse_inputs_within(out, (robot, trajectory, scenario, limits_file))
    if not number("runs", runs) >= 1:
        raise InputError("runs", f"{runs}", "expected one or more")
    if payload_mass is not None and not number("payload_mass", payload_mass) >= 0.0:
        raise InputError("payload_mass", f"{payload_mass}", "expected kilograms, not negative")
    began = perf_counter()
    wanted, kinds = choice("record", record, RecordedChannels), formats_of(formats)
    arm, assumed = _arm(robot, base, tip, rotor_ratio, friction_ratio)
    arm = with_limits(arm, limits_file, max_acceleration=max_acceleration, max_jerk=max_jerk, max_torque=max_torque)
    plan = _scenario(arm, scenario, controller, sensors, seed)
    plan = replace(plan, physics=_physics(arm, plan.physics, control_rate_hz, payload_mass, tuple(locked)))
    if sensed_friction is not None:
        plan = replace(plan, physics=replace(plan.physics, sensed_friction=sensed_friction))
    plan = _logging(arm, plan, rate_hz, variation, mistakes)
    done = Simulation(
        robot=arm,
        scenario=plan,
        record=wanted,
        formats=kinds,
        notes=(*_warnings(arm.notes), *assumed, *_sensor_notes(arm, plan.physics)),
        provenance=_provenance(arm, trajectory, plan),
    )
    if wanted is not RecordedChannels.LOG:
        tracked = wanted is RecordedChannels.TRACKER
        measured = run_postures(arm, postures_of(trajectory, arm), plan, tracked=tracked)  # type: ignore[arg-type]
        files = () if out is None else write_posture_experiment(measured, Path(out))
        return replace(done, postures=measured, files=files, wall_seconds=perf_counter() - began)
    stands = None if start is None else _joint_values(start, arm)
    motion = _motion(trajectory_of(trajectory), arm, stands, approach_seconds)  # type: ignore[arg-type]
    if limits_file is not None or max_acceleration is not None:
        check_acceleration(arm, in_joint_order(motion, arm))
    plans = [replace(plan, seed=plan.seed + k) for k in range(runs)]
    records, experiments = _all_runs(arm, motion, plans, stands, kinds, out, processes)
    named = formats.split(",") if isinstance(formats, str) else formats
    extra = left_out(kinds) if ALL in named else ()
    return replace(
        done,
        runs=records,
        experiments=experiments,
        files=tuple(file for one in records for file in one.files),
        notes=(*done.notes, *_warnings(plan.physics.notes), *extra),
        wall_seconds=perf_counter() - began,
    )


def _arm(
    robot: str | Path | Robot,
    base: str | None,
    tip: str | None,
    rotor_ratio: float | None,
    friction_ratio: float | None,
) -> tuple[Robot, tuple[Note, ...]]:
    """The arm with drives where its description has none, and what was assumed about them."""
    arm = robot if isinstance(robot, Robot) else load_robot(robot, base=base, tip=tip)
    if isinstance(robot, Robot) and rotor_ratio is None and friction_ratio is None:
        return arm, ()
    drives = AssumedDrives(
        ROTOR_RATIO if rotor_ratio is None else rotor_ratio,
        FRICTION_RATIO if friction_ratio is None else friction_ratio,
    )
    return drives.apply(arm)


def _all_runs(
    arm: Robot,
    motion: CommandedMotion,
    plans: Sequence[Scenario],
    start: FloatArray | None,
    formats: tuple[LogFormat, ...],
    out: str | Path | None,
    processes: int,
) -> tuple[tuple[RunRecord, ...], tuple[Experiment, ...]]:
    """Every run in short, and those that stay in memory: all of them, or one that was written."""
    if out is not None and len(plans) > 1:
        jobs = [
            Job(
                robot=arm,
                motion=motion,
                scenario=plan,
                directory=Path(out),
                name=log_name(k, len(plans)),
                formats=formats,
                start=start,
            )
            for k, plan in enumerate(plans)
        ]
        return tuple(run_jobs(jobs, processes=processes)), ()
    experiments = tuple(run_scenario(arm, motion, plan, start=start) for plan in plans)
    files = () if out is None else write_experiment(experiments[0], Path(out), formats=formats)
    return tuple(record_of(experiment, motion.duration, files) for experiment in experiments), experiments


def _scenario(
    arm: Robot,
    scenario: str | Path | Scenario | None,
    controller: str | Controller | None,
    sensors: str | Sensors | None,
    seed: int | None,
) -> Scenario:
    """The scenario given, or a perfect arm with typical sensors; then what was said beside it."""
    plan = load_scenario(Path(scenario), arm) if isinstance(scenario, str | Path) else scenario or Scenario()
    if seed is not None:
        plan = replace(plan, seed=seed)
    if controller is not None:
        law = controller_from(controller, "controller") if isinstance(controller, str) else controller
        plan = replace(plan, controller=law)
    if sensors is None and scenario is None:
        sensors = _TYPICAL
    if sensors is not None:
        chosen = sensors_from(sensors, arm, "sensors") if isinstance(sensors, str) else sensors
        plan = replace(plan, sensors=chosen)
    return plan


def _physics(
    arm: Robot, physics: Physics, control_rate_hz: float | None, payload_mass: float | None, locked: tuple[str, ...]
) -> Physics:
    if control_rate_hz is not None:
        physics = replace(physics, control_rate_hz=control_rate_hz)
    if payload_mass is not None:
        tip = arm.tip.T_link_frame[:3, 3]
        physics = replace(physics, payload=from_centre_of_mass(payload_mass, tip, np.zeros((3, 3))))
    return replace(physics, locked=locked) if locked else physics


def _logging(
    arm: Robot, plan: Scenario, rate_hz: float | None, variation: float | None, mistakes: Sequence[str]
) -> Scenario:
    if rate_hz is not None:
        plan = replace(plan, sensors=replace(plan.sensors, clock=replace(plan.sensors.clock, rate_hz=rate_hz)))
    if variation is not None:
        plan = replace(plan, variation=variation)
    for text in mistakes:
        plan = replace(plan, mistakes=with_mistake(plan.mistakes, text, arm))
    return plan


def _motion(
    motion: CommandedMotion, arm: Robot, stands: FloatArray | None, approach_seconds: float | None
) -> CommandedMotion:
    ordered = in_joint_order(motion, arm)
    if approach_seconds is None:
        return ordered
    if stands is None:
        raise InputError("approach", "from nowhere", "say where the arm stands: start")
    return Approached(stands, approach_seconds, ordered)


def _joint_values(values: str | npt.ArrayLike, arm: Robot) -> FloatArray:
    if isinstance(values, str):
        return np.array(numbers("start", values, arm.n_joints, "0,0.5,-1, in rad or m"))
    return np.asarray(values, dtype=np.float64)


def _warnings(notes: Sequence[Note]) -> tuple[Note, ...]:
    return tuple(note for note in notes if note.severity is Severity.WARNING)


def _sensor_notes(arm: Robot, physics: Physics) -> tuple[Note, ...]:
    """Says where the joint torque sensors sit, when the description decides it."""
    shares = arm.drive("sensed_friction")
    if physics.sensed_friction is not None or (shares == 1.0).all():
        return ()
    low, high = 100.0 * float(shares.min()), 100.0 * float(shares.max())
    part = f"{low:g} %" if low == high else f"{low:g} to {high:g} %"
    text = (
        f"joint torque sensors of {arm.name} are behind the gears, as its description says: joint torque holds {part} of the "
        "friction, motor torque all of it; --sensed-friction 1 puts all of it behind them"
    )
    return (Note("sensor-behind-gears", Severity.INFO, text),)


def _provenance(arm: Robot, trajectory: object, plan: Scenario) -> Provenance:
    inputs = (InputFile(arm.source.path, arm.source.sha256, "robot"), *input_of(trajectory, "trajectory"))
    return Provenance(inputs=inputs, settings=plain(settings_values(plan)), seed=plan.seed)
