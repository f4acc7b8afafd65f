"""The experiment of [Khosla1985], tables 4 to 6, replayed on MuJoCo: a six-axis arm, two motions, two sets of starting values.

Computed torque at 500 Hz with a model that is 20 % wrong, fed by 16-bit resolvers; torque is what was commanded. The work says
that its four estimates agree within 5 % of the printed values. A base parameter is held against the sum of the magnitudes it is
made of: `link3.Iyz` about the origin of its frame is 4e-5, the difference of 1.87e-3 about the centre of mass (the value that
[Khosla1985] prints) and 1.83e-3 of Steiner's part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.documents import plain, write_json
from armid.estimation.estimate import Estimate
from armid.identifiability.base import BaseParameters
from armid.identifiability.structure import structural_base
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.evaluate import evaluate_rows
from armid.logs.conditioning import VelocitySource
from armid.logs.log import Log
from armid.motions.fourier import FourierTrajectory
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.parameters.effects import Effects, TorqueSide
from armid.parameters.inertial import from_centre_of_mass
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from armid.sequential.estimate import TipToBase
from armid.sequential.stages import Staging, stages_of_log
from armid.sequential.start import nominal_values
from armid.simulation.controllers import ComputedTorque
from armid.simulation.feedback import Feedback
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import PositionSensor, Sensors, TorqueSensor, VelocitySensor
from armid.threads import one_blas_thread

ARM = "cmu-dd-arm2-6"
RATE = 500.0
"""[Hz] [Khosla1985] samples every 2 ms, and its controller runs at that rate."""
PERIOD = 10.0
"""[s] Of a motion; a longer replay repeats it."""
STARTS = (0.0, 0.8)
"""Starting values, of the true ones."""
AGREEMENT = 0.05
"""Of their size: the work's own figure for its four experiments."""
_CANDIDATES = 400
"""Random motions of which the best is run."""
_HARMONICS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySensors:
    """How well the arm measures.

    Args:
        bits: of the resolvers, per turn.
        tachometer: noise of the recorded velocity [rad/s].
        torque_bits: of the torque, over its range; 0 for exact.
    """

    bits: int = 16
    tachometer: float = 1e-3
    torque_bits: int = 0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SixAxisReplay(Outcome):
    """What four experiments found.

    Args:
        robot: the arm.
        base: what can be identified.
        truth: of the base parameters, shape [r].
        size: sum of the magnitudes each is made of, shape [r].
        estimates: two motions times two sets of starting values.
        seconds: of each motion.
        provenance: what it came from.
    """

    robot: Robot
    base: BaseParameters
    truth: FloatArray
    size: FloatArray
    estimates: tuple[Estimate, ...]
    seconds: float
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def spread(self) -> FloatArray:
        """Largest difference between any two of the four, shape [r]."""
        return np.asarray(np.ptp([e.values for e in self.estimates], axis=0))

    @property
    def error(self) -> FloatArray:
        """Largest distance of the four to the truth, shape [r]."""
        return np.asarray(np.abs(np.array([e.values for e in self.estimates]) - self.truth).max(axis=0))

    def beyond(self, share: float) -> dict[str, float]:
        """Parameters whose four values differ by more than this share of the true value itself."""
        ratio = self.spread / np.abs(self.truth)
        return {name: float(r) for name, r in zip(self.base.names, ratio, strict=True) if r > share}

    @property
    def agreeing(self) -> int:
        """Parameters whose four values lie within 5 % of their size of one another."""
        return int((self.spread <= AGREEMENT * self.size).sum())

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        """Agreement of the four with one another, and with the truth."""
        names = self.base.names
        out = []
        for code, values, what in (
            ("four-agree", self.spread, "differ among the four experiments"),
            ("truth-found", self.error, "are off the truth"),
        ):
            share = values / self.size
            worst = int(np.argmax(share))
            text = f"parameters {what} by at most {100 * share[worst]:.2g} % of their size, {names[worst]} most"
            out.append(
                Check(
                    code=code,
                    passed=bool(share[worst] <= AGREEMENT),
                    value=float(share[worst]),
                    limit=AGREEMENT,
                    message=text,
                    subject=names[worst],
                )
            )
        return tuple(out)

    def _heading(self) -> str:
        return (
            f"{self.robot.name}: {self.agreeing} of {len(self.base)} identifiable parameters within 5 % in four experiments "
            f"of {self.seconds:g} s"
        )

    def _tables(self) -> tuple[Table, ...]:
        header = ("parameter", "true", "motion 1 from zero", "from 80 %", "motion 2 from zero", "from 80 %", "spread")
        rows = tuple(
            (
                name,
                f"{self.truth[k]:.6f}",
                *(f"{e.values[k]:.6f}" for e in self.estimates),
                f"{100 * self.spread[k] / self.size[k]:.2g} %",
            )
            for k, name in enumerate(self.base.names)
        )
        caption = "Base parameters in SI units, and how far the four are apart over the sum of what each is made of"
        return (Table(header, rows, caption=caption),)

    def as_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = plain(
            {
                "work": "khosla1985",
                "robot": self.robot.name,
                "seconds_each": self.seconds,
                "parameters": [
                    {
                        "name": name,
                        "true": self.truth[k],
                        "estimates": [e.values[k] for e in self.estimates],
                        "size": self.size[k],
                        "spread": self.spread[k],
                    }
                    for k, name in enumerate(self.base.names)
                ],
                "within_5_percent": self.agreeing,
                "base_parameters": len(self.base),
                "verdict": str(self.verdict),
                "reasons": list(self.reasons),
            }
        )
        return out

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `study.json`."""
        return (write_json(Path(folder) / "study.json", self.as_dict()),)


@one_blas_thread
def replay_khosla(
    *,
    seconds: float = PERIOD,
    friction: float = 0.0,
    velocity: VelocitySource = VelocitySource.POSITION,
    torque_delay: float = -0.5 / RATE,
    hold: bool = False,
    sensors: ReplaySensors | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> SixAxisReplay:
    """Two motions and two sets of starting values, link after link from the tip.

    Args:
        seconds: of each motion; 10 of them, repeated.
        friction: share of the catalogue's; the work calls its direct drives free of it.
        velocity: derived, or of the tachometers.
        torque_delay: how late torque is stamped [s]; a command is held for a period, so it acts half of one after its stamp.
        hold: what a stage found stays fixed in later ones.
        sensors: how well the arm measures.
        seed: of motions and noise.
        progress: told what is being done.
    """
    robot = _arm(friction)
    effects = Effects(rotor_inertia=True, torques=TorqueSide.MOTOR, viscous=friction > 0.0, coulomb=friction > 0.0)
    source = TorqueRows(robot, effects)
    base, truth = structural_base(source), nominal_values(robot, source.space)
    size = np.abs(base.projection) @ _magnitudes(robot, source, truth)
    settings = Staging(effects=effects, velocity=velocity, torque_delay=torque_delay)
    found = []
    for k in (1, 2):
        progress(f"motion {k} of 2")
        motion = _motion(robot, np.random.default_rng(2 * seed + k), friction=friction > 0.0)
        log = _recorded(robot, motion, seconds, sensors or ReplaySensors(), 2 * seed + k)
        stages = stages_of_log(log, robot, settings)
        found += [TipToBase(hold=hold).fit(source, stages, start=share * truth).over(base) for share in STARTS]
    return SixAxisReplay(
        robot=robot,
        base=base,
        truth=base.values(truth),
        size=size,
        estimates=tuple(found),
        seconds=seconds,
        provenance=Provenance(settings={"seconds": seconds, "friction": friction}, seed=seed),
    )


def _arm(friction: float) -> Robot:
    """The six-axis arm with a share of the catalogue's friction."""
    robot = load_robot(ARM)
    drives = [
        replace(j.drive, viscous=friction * j.drive.viscous, coulomb=friction * j.drive.coulomb) for j in robot.joints
    ]
    return replace(robot, joints=tuple(replace(j, drive=d) for j, d in zip(robot.joints, drives, strict=True)))


def _motion(robot: Robot, rng: np.random.Generator, *, friction: bool) -> FourierTrajectory:
    """Ten seconds of five harmonics: of random motions within the limits the one whose worst parameter is known best.

    Expected deviations of unit noise over a parameter's size; a small condition number leaves small parameters of the middle
    links unknown. With Coulomb friction rows near reversals are left out, of which that criterion knows nothing: there the
    smallest condition number of fewer motions serves better.
    """
    source = TorqueRows(robot, Effects() if friction else Effects(rotor_inertia=True, torques=TorqueSide.MOTOR))
    base = structural_base(source)
    size = np.abs(base.projection) @ _magnitudes(robot, source, nominal_values(robot, source.space))
    t = np.arange(0.0, PERIOD, 0.1)
    best, score = None, np.inf
    for _ in range(_CANDIDATES // 10 if friction else _CANDIDATES):
        candidate = _within_limits(robot, rng)
        A = evaluate_rows(source, np.hstack(candidate.sample(t)))[:, :, base.independent].reshape(-1, len(base))
        worst = float(np.linalg.cond(A)) if friction else _worst_deviation(A * size)
        if worst < score:
            best, score = candidate, worst
    assert best is not None
    return best


def _worst_deviation(A: FloatArray) -> float:
    """Largest standard deviation that rows with unit noise leave; infinite where some direction is not excited."""
    R = np.linalg.qr(A, mode="r")
    return np.inf if np.linalg.cond(R) > 1e12 else float(np.linalg.norm(np.linalg.inv(R), axis=1).max())


def _within_limits(robot: Robot, rng: np.random.Generator) -> FourierTrajectory:
    """Random coefficients, scaled until position, velocity and torque keep a fifth of their limits in hand."""
    n = robot.n_joints
    a, b = rng.normal(size=(2, n, _HARMONICS)) / np.arange(1.0, _HARMONICS + 1.0)
    offset = rng.uniform(-0.5, 0.5, n)
    t = np.arange(0.0, PERIOD, 0.02)
    unit = FourierTrajectory(robot.joint_names, PERIOD, offset, a, b)
    q, qd, _ = unit.sample(t)
    room = 0.8 * robot.limit("upper") - np.abs(offset)
    scale = np.minimum(room / np.abs(q - offset).max(axis=0), 0.8 * robot.limit("velocity") / np.abs(qd).max(axis=0))
    while True:
        trial = replace(unit, sine=a * scale[:, np.newaxis], cosine=b * scale[:, np.newaxis])
        if (np.abs(inverse_dynamics(robot, *trial.sample(t))).max(axis=0) < 0.8 * robot.limit("torque")).all():
            return trial
        scale = 0.9 * scale


def _recorded(robot: Robot, motion: FourierTrajectory, seconds: float, sensors: ReplaySensors, seed: int) -> Log:
    """One experiment: computed torque with a model 20 % wrong, fed by the resolvers; torque is what was commanded."""
    grain = 2.0 * np.pi / 2**sensors.bits
    steps = tuple(2.0 * robot.limit("torque") / 2**sensors.torque_bits) if sensors.torque_bits else 0.0
    scenario = Scenario(
        controller=ComputedTorque(),
        physics=Physics(control_rate_hz=RATE, collisions=False, feedback=Feedback(resolution=grain, cutoff_hz=100.0)),
        sensors=Sensors(
            position=PositionSensor(resolution=grain),
            velocity=VelocitySensor(noise=sensors.tachometer),
            torque=None,
            motor=TorqueSensor(resolution=steps),
        ),
        model_variation=0.2,
        seed=seed,
    )
    experiment = run_scenario(robot, motion.repeated(max(1, round(seconds / PERIOD))), scenario)
    assert not experiment.run.faults, experiment.run.faults
    return experiment.log


def _magnitudes(robot: Robot, source: TorqueRows, values: FloatArray) -> FloatArray:
    """Of every standard parameter; an inertia counts with its part about the centre of mass and with Steiner's part."""
    out = np.abs(values)
    columns = {(p.body, p.quantity): k for k, p in enumerate(source.space.parameters) if p.of_link}
    names = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    for i in range(robot.n_joints):
        mass, *first = robot.inertial[10 * i : 10 * i + 4]
        steiner = from_centre_of_mass(mass, np.array(first) / mass, np.zeros((3, 3)))[4:]
        about_centre = robot.inertial[10 * i + 4 : 10 * i + 10] - steiner
        for name, own, moved in zip(names, about_centre, steiner, strict=True):
            out[columns[i, name]] = abs(own) + abs(moved)
    return out
