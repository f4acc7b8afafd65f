"""An arm learns its body: design, run, identify, validate, export, report, on the embedded robot.

The arm that runs is another specimen than the one described: its bodies, rotors and friction differ by 20 % or so, which
nothing here may know except to score the answer at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np

from armid.design.design import Design, DesignSettings, design_excitation
from armid.design.search import Budget
from armid.export.export import Export, Format, export_result
from armid.identification.pipeline import Identification, identify
from armid.identification.records import CommandRecord
from armid.identification.result import Result
from armid.kernels.compiled import thread_count
from armid.logs.conditioning import Conditioning
from armid.logs.health.check import check_log
from armid.logs.log import Log
from armid.logs.read import read_log
from armid.motions.trajectory_files import save_csv, save_trajectory
from armid.parameters.effects import Effects, TorqueSide
from armid.report.identification import identification_report
from armid.report.render import write_report
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.simulation.measure import Mistakes, hanging, measure
from armid.simulation.motions import CommandedMotion
from armid.simulation.physics import Physics
from armid.simulation.run import simulate
from armid.simulation.sensors import ChannelLag, Sensors, typical_sensors
from armid.simulation.truth import true_parameters
from armid.simulation.variation import varied
from armid.simulation.writers import LogFormat, write_log

EFFECTS = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True, torques=TorqueSide.MOTOR)

STANDSTILL = 0.5
"""[s] Left out before and after the join of two periods, where the arm rests: dry friction is then whatever holds it, between
its two signs, which no velocity tells. Sixteen samples of a thousand there made up five sixths of the training error."""

NORMAL_99 = 2.5758293035489004
"""Two-sided 99 % quantile of the normal distribution."""


class Fault(StrEnum):
    """A mistake to make on purpose, to see that it does not get through."""

    NONE = "none"
    SIGN = "torque-sign"
    """All torques are logged with the opposite sign."""
    LAG = "lag"
    """Torque is logged 15 ms late."""
    MOUNTING = "mounting"
    """The arm is mounted the other way up than its description says."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """Settings of the demonstration.

    Args:
        robot: catalogue name or file.
        period: of the excitation [s].
        repetitions: how often it is run after a first time that is not used; the runs are averaged.
        starts: random starts of the search for the excitation; a number of starts, unlike a time, repeats exactly.
        variation: how much the specimen differs from its description, relative.
        fault: a mistake to make.
        seed: of everything random.
    """

    robot: str = "iiwa14"
    period: float = 20.0
    repetitions: int = 3
    starts: int = 4
    variation: float = 0.2
    fault: Fault = Fault.NONE
    seed: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Ending:
    """What the demonstration leaves behind.

    Args:
        design: of the excitation.
        result: of the identification.
        report: page.
        exports: written files, empty for an untrusted result.
        inside, parameters: how many true base parameters lie in their 99 % interval, and of how many.
    """

    design: Design
    result: Result
    report: Path
    exports: tuple[Export, ...]
    inside: int
    parameters: int


Progress = Callable[[str], None]


def tell_story(
    story: Story, folder: Path, *, progress: Progress = lambda _: None, command: CommandRecord | None = None
) -> Ending:
    """Runs everything and writes it to a folder.

    Args:
        story: settings.
        folder: where trajectories, logs, result, exports and report go.
        progress: told in words what is being done.
        command: the command line that tells it, for the report.

    Raises:
        ArmidError: a stage refuses to go on, with the reason.
    """
    robot = load_robot(story.robot)
    specimen = varied(robot, story.variation, np.random.default_rng([story.seed, 1]))
    if story.fault is Fault.MOUNTING:
        specimen = hanging(specimen)
    progress("designing a motion that excites everything")
    # One period more than is used: the first starts from standstill and is another motion than its repetitions.
    training = designed(robot, story, story.repetitions + 1)
    progress("designing another motion for validation")
    validation = designed(robot, replace(story, starts=1, seed=story.seed + 1), 1)
    logs = []
    for name, design in (("training", training), ("validation", validation)):
        save_trajectory(design.trajectory, made(folder) / f"{name}.json", robot=robot.name)
        save_csv(design.trajectory, folder / f"{name}.csv", rate_hz=100.0)
        progress(f"running the {name} motion on the embedded robot ({design.trajectory.duration:.0f} s)")
        logs.append(recorded(robot, specimen, design.trajectory, story, folder / f"{name}_log.csv"))
    logs[0] = logs[0].split(1.0 / (story.repetitions + 1))[1]
    held = 0.5 / Physics().control_rate_hz  # a torque command is held for a tick: it acts half of one after its stamp
    conditioning = Conditioning(period=story.period, trim=STANDSTILL, torque_delay=-held)
    settings = Identification(effects=EFFECTS, conditioning=conditioning, seed=story.seed)
    result = identify(robot, logs[:1], logs[1:], settings, progress=progress)
    if command:
        result = replace(result, provenance=replace(result.provenance, command=command.line, typed=command))
    progress("writing the result, its export and the report")
    result.save(folder / "result")
    exports = exported(result, folder)
    report = write_report(identification_report(result), folder / "report.html")
    inside, total = coverage(result, specimen)
    return Ending(design=training, result=result, report=report, exports=exports, inside=inside, parameters=total)


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def designed(robot: Robot, story: Story, repetitions: int) -> Design:
    """A motion within all limits, with some margin."""
    settings = DesignSettings(effects=replace(EFFECTS, offset=False), periods=(story.period,), repetitions=repetitions)
    budget = Budget(seconds=None, starts=story.starts, workers=min(story.starts, thread_count()))
    return design_excitation(robot, settings, budget=budget, seed=story.seed)


def recorded(robot: Robot, specimen: Robot, motion: CommandedMotion, story: Story, path: Path) -> Log:
    """Runs a motion and logs it to a file with realistic sensors; returns the file as it is read back, checked."""
    sensors: Sensors = typical_sensors(robot.limit("torque"))
    if story.fault is Fault.LAG:
        sensors = replace(sensors, lag=ChannelLag(torque=0.015, motor=0.015))
    wrong = Mistakes(
        wrong_sign=robot.joint_names if story.fault is Fault.SIGN else (), upside_down=story.fault is Fault.MOUNTING
    )
    run = simulate(specimen, motion, declared=robot)
    seed = int(np.random.default_rng([story.seed, 2, len(run.time)]).integers(2**31))
    log = measure(run, replace(sensors, torque=None), mistakes=wrong, declared=robot, seed=seed)
    write_log(log, path, LogFormat.CSV)
    return check_log(read_log(path, robot), robot)


def exported(result: Result, folder: Path) -> tuple[Export, ...]:
    """The identified arm for other programs, if it may leave."""
    if result.verdict != "trusted":
        return ()
    return tuple(export_result(result, target, folder) for target in (Format.URDF, Format.MJCF))


def coverage(result: Result, specimen: Robot) -> tuple[int, int]:
    """How many true base parameters lie in their 99 % interval, and of how many."""
    from armid.simulation.plant import build_plant

    truth = true_parameters(build_plant(specimen), EFFECTS.torques)
    base = result.estimate.base
    low, high = result.estimate.interval(NORMAL_99)
    true = [sum(weight * truth[name] for name, weight in base.terms(k).items()) for k in range(len(result.estimate))]
    inside = [a <= value <= b for a, value, b in zip(low, true, high, strict=True)]
    return sum(inside), len(inside)
