"""An arm learns its body: design, run, identify, validate, export, report, on the embedded robot.

The arm that runs is another specimen than the one described: its bodies, rotors and friction differ by 20 % or so, which
nothing here may know except to score the answer at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from armid.apart import refuse_inputs_within
from armid.design.design import design_motion
from armid.design.motion import Design
from armid.documents import plain
from armid.export.export import Export, Format, export_result
from armid.folders import answer_folder
from armid.identification.origins import CommandRecord
from armid.identification.pipeline import Identification, run_identification
from armid.identification.result import Result
from armid.kernels.compiled import thread_count
from armid.logs.check import read_log
from armid.logs.conditioning import Conditioning
from armid.logs.log import Log
from armid.motions.needed_torque import torque_limits
from armid.motions.sample_table import save_csv
from armid.motions.trajectory import Trajectory
from armid.motions.trajectory_files import save_trajectory
from armid.notes import Note, Severity
from armid.outcome import Check, InputFile, Outcome, Provenance
from armid.page import Report, Table
from armid.parameters.effects import Effects, TorqueSide
from armid.report.identification import identification_report
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.simulation.arm_spec import inertial_of
from armid.simulation.controllers import PdGravity
from armid.simulation.measure import Mistakes
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario
from armid.simulation.sensors import ChannelLag, Sensors, typical_sensors
from armid.simulation.simulate import simulate
from armid.simulation.simulation import Simulation
from armid.simulation.variation import varied
from armid.simulation.writers import LogFormat, write_log
from armid.threads import one_blas_thread
from armid.words import choice

_EFFECTS = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True, torques=TorqueSide.MOTOR)

STANDSTILL = 0.5
"""[s] Left out before and after the join of two periods, where the arm rests: dry friction is then whatever holds it, between
its two signs, which no velocity tells. Sixteen samples of a thousand there made up five sixths of the training error."""

_NORMAL_99 = 2.5758293035489004
"""Two-sided 99 % quantile of the normal distribution."""

_UNLIKELY = 1e-4
"""Chance below which too many true parameters outside their intervals are more than bad luck."""


class Mistake(StrEnum):
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
    fault: Mistake = Mistake.NONE
    seed: int = 0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Demonstration(Outcome):
    """What the demonstration leaves behind.

    Args:
        design: of the excitation.
        result: of the identification; its verdict is this one's.
        folder: where everything is.
        page_file: the report.
        exports: written files, empty for an untrusted result.
        inside, parameters: how many true base parameters lie in their 99 % interval, and of how many.
        provenance: what it came from.
    """

    _page = "armid.studies.demo:demonstration_page"

    design: Design
    result: Result
    folder: Path
    page_file: Path
    exports: tuple[Export, ...]
    inside: int
    parameters: int
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        """Those of the result, and whether its intervals hold the truth, which only a simulation knows."""
        least = _fewest_inside(self.parameters)
        coverage = Check(
            code="coverage",
            passed=self.inside >= least,
            value=float(self.inside),
            limit=float(least),
            message=f"{self.inside} of {self.parameters} true parameters lie in their 99 % intervals",
            decisive=False,
        )
        return (*self.result.checks, coverage)

    @property
    def notes(self) -> tuple[Note, ...]:  # type: ignore[override]
        """Warnings of the result; everything else is in its report."""
        return tuple(note for note in self.result.notes if note.severity is not Severity.INFO)

    @property
    def condition_number(self) -> float:
        """Of the stacked base regressor of the training log."""
        return self.result.condition_number

    @property
    def held_out_relative_error(self) -> float:
        """Over all joints, on the motion never seen."""
        return self.result.relative_error["held_out"]

    @property
    def urdf(self) -> Path | None:
        """The identified arm; None when it may not leave."""
        return self.exports[0].files[0] if self.exports else None

    @property
    def mjcf(self) -> Path | None:
        """The same for MuJoCo."""
        return self.exports[1].files[0] if self.exports else None

    @property
    def files(self) -> tuple[Path, ...]:
        """What to look at: models and report."""
        return (*(export.files[0] for export in self.exports), self.page_file)

    def _heading(self) -> str:
        return (
            f"{self.result.robot.name}: {self.parameters} base parameters, excitation condition number "
            f"{self.design.condition_number:.1f}, held-out torque error {100 * self.held_out_relative_error:.2f} %"
        )

    def _tables(self) -> tuple[Table, ...]:
        rows = tuple(
            (joint.name, joint.held_out.rmse, f"{100 * joint.held_out.relative:.2f} %", nominal.held_out.rmse)
            for joint, nominal in zip(self.result.joints, self.result.joints_nominal, strict=True)
        )
        header = ("joint", "identified [N m]", "of its torque", "description [N m]")
        truth = ((self.inside, self.parameters),)
        return (
            Table(header, rows, caption="Torque error on a motion never seen"),
            Table(("true parameters in their 99 % interval", "of"), truth),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "report": self.page_file,
            "urdf": self.urdf,
            "mjcf": self.mjcf,
            "result": self.folder / "result",
            "condition_number": self.condition_number,
            "excitation_condition_number": self.design.condition_number,
            "held_out_relative_error": self.held_out_relative_error,
            "true_parameters_in_99_interval": self.inside,
            "base_parameters": self.parameters,
        }

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """The result as a folder of `armid identify`; everything else was written where it ran."""
        return self.result.save(folder)


def demonstration_page(demonstration: Demonstration) -> Report:
    """The page of its result."""
    return identification_report(demonstration.result)


def _fewest_inside(count: int) -> int:
    """Of that many true values, so few lie in their 99 % intervals only once in `1 / UNLIKELY` times."""
    from scipy.stats import binom

    return int(binom.ppf(_UNLIKELY, count, 0.99))


Progress = Callable[[str], None]


@one_blas_thread
def demo(
    out: str | Path = "demo",
    *,
    robot: str | Path = "iiwa14",
    starts: int = 4,
    fault: str | Mistake = Mistake.NONE,
    seed: int = 0,
    progress: Progress | None = None,
    command: CommandRecord | None = None,
) -> Demonstration:
    """The whole story on the embedded robot: design, simulate, identify, validate, export, report.

    Args:
        out: folder where trajectories, logs, result, exports and report go.
        robot: URDF or YAML path or catalogue name; with inertial parameters.
        starts: random starts of the search for the excitation.
        fault: a mistake to make on purpose: none, torque-sign, lag or mounting.
        seed: of everything random.
        progress: told in words what is being done.
        command: the command line that tells it, for the report.

    Raises:
        ArmidError: a stage refuses to go on, with the reason.
    """
    refuse_inputs_within(out, [robot])
    story = Story(robot=str(robot), starts=starts, fault=choice("fault", fault, Mistake), seed=seed)
    return tell_story(story, Path(out), progress=progress or (lambda _: None), command=command)


def tell_story(
    story: Story, folder: Path, *, progress: Progress = lambda _: None, command: CommandRecord | None = None
) -> Demonstration:
    """The story with all its settings; see `demo`."""
    robot = load_robot(story.robot)
    for link in range(robot.n_joints):
        inertial_of(robot, link)  # what cannot be simulated is refused before the search for a motion
    specimen = varied(robot, story.variation, np.random.default_rng([story.seed, 1]))
    progress("1 of 6: designing a motion that excites everything")
    # One period more than is used: the first starts from standstill and is another motion than its repetitions.
    training = designed(robot, story, story.repetitions + 1)
    progress("2 of 6: designing another motion for validation")
    validation = designed(robot, replace(story, starts=1, seed=story.seed + 1), 1)
    logs: list[Log] = []
    runs: list[Simulation] = []
    for stage, (name, design) in enumerate((("training", training), ("validation", validation)), start=3):
        with answer_folder(folder, f"demonstration {name}"):
            save_trajectory(design.trajectory, folder / f"{name}.json", robot=robot.name)
            save_csv(design.trajectory, folder / f"{name}.csv", rate_hz=100.0, robot=robot)
        progress(f"{stage} of 6: running the {name} motion on the embedded robot ({design.trajectory.duration:.0f} s)")
        runs.append(_record(robot, specimen, design.trajectory, story))
        with answer_folder(folder, f"demonstration {name} log"):
            path = write_log(runs[-1].log, folder / f"{name}_log.csv", LogFormat.CSV)
        logs.append(read_log(path, robot))
    logs[0] = logs[0].split(1.0 / (story.repetitions + 1))[1]
    held = 0.5 / Physics().control_rate_hz  # a torque command is held for a tick: it acts half of one after its stamp
    conditioning = Conditioning(period=story.period, trim=STANDSTILL, torque_delay=-held)
    settings = Identification(effects=_EFFECTS, conditioning=conditioning, seed=story.seed)
    result = run_identification(robot, logs[:1], logs[1:], settings, progress=lambda text: progress(f"5 of 6: {text}"))
    if command:
        result = replace(result, provenance=replace(result.provenance, command=command.line, typed=command))
    progress("6 of 6: writing the result, its export and the report")
    result.save(folder / "result")
    inside, total = _coverage(result, runs[0])
    return Demonstration(
        design=training,
        result=result,
        folder=folder,
        page_file=result.report(folder / "report.html"),
        exports=_export(result, folder),
        inside=inside,
        parameters=total,
        provenance=Provenance(
            inputs=(InputFile(robot.source.path, robot.source.sha256, "robot"),),
            settings=plain(asdict(story)),
            seed=story.seed,
        ),
    )


def designed(robot: Robot, story: Story, repetitions: int) -> Design:
    """A motion within all limits, with some margin."""
    return design_motion(
        robot,
        friction=replace(_EFFECTS, offset=False),
        criterion="condition",
        period=story.period,
        repeat=repetitions,
        seconds=None,
        starts=story.starts,
        workers=min(story.starts, thread_count()),
        seed=story.seed,
    )


def _record(robot: Robot, specimen: Robot, motion: Trajectory, story: Story) -> Simulation:
    """A motion of the specimen, its controller knowing only the description, its motor torque read by realistic sensors."""
    sensors: Sensors = replace(typical_sensors(torque_limits(robot)), torque=None)
    if story.fault is Mistake.LAG:
        sensors = replace(sensors, lag=ChannelLag(torque=0.015, motor=0.015))
    ticks = round(motion.duration * Physics().control_rate_hz) + 1
    scenario = Scenario(
        controller=PdGravity(model=robot),
        sensors=sensors,
        mistakes=Mistakes(
            wrong_sign=robot.joint_names if story.fault is Mistake.SIGN else (),
            upside_down=story.fault is Mistake.MOUNTING,
        ),
        seed=int(np.random.default_rng([story.seed, 2, ticks]).integers(2**31)),
    )
    return simulate(specimen, motion, scenario=scenario)


def _export(result: Result, folder: Path) -> tuple[Export, ...]:
    """The identified arm for other programs, if it may leave."""
    if result.reasons:
        return ()
    return tuple(export_result(result, target, folder) for target in (Format.URDF, Format.MJCF))


def _coverage(result: Result, run: Simulation) -> tuple[int, int]:
    """How many true base parameters lie in their 99 % interval, and of how many."""
    truth: Mapping[str, float] = run.truth["parameters"][_EFFECTS.torques.value]
    base = result.estimate.base
    low, high = result.estimate.interval(_NORMAL_99)
    true = [sum(weight * truth[name] for name, weight in base.terms(k).items()) for k in range(len(result.estimate))]
    inside = [a <= value <= b for a, value, b in zip(low, true, high, strict=True)]
    return sum(inside), len(inside)
