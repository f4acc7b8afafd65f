"""Intervals of `armid sequential` with sensors that are a little wrong: how many hold the truth.

Arms move on the embedded robot (MuJoCo) and, apart from our own dynamics, as Pinocchio computes their torque; all joints at once,
or one recording per joint with those before it on their brakes. The same sensors record all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pinocchio as pin

import armid
from armid.arrays import FloatArray
from armid.estimation.estimate import NORMAL_95, Estimate
from armid.identifiability.structure import structural_base
from armid.identification.metrics import nominal_standard
from armid.logs.log import Channel, Clock, Log
from armid.motions.fourier import FourierTrajectory
from armid.parameters.effects import effects_of
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from armid.sequential.estimate import TipToBase
from armid.sequential.sensors import beside_sensors
from armid.sequential.stages import Staging, stages_of_log
from support.chains import pinocchio_model

ARMS = ("cmu-dd-arm2", "ur10e", "panda")
MOTIONS = 5
RATE = 250.0
"""[Hz]"""
FRICTION = "viscous,coulomb"
GAIN, ZERO, DELAY = (0.02, 0.05), float(np.radians(0.5)), 2e-3
"""Deviations of what is wrong with sensors: of gains between these, of zeros [rad], of delays of torque [s]."""
NOISE = 0.003
"""Of a joint's torque, root mean square, in Pinocchio's logs; the embedded robot has its typical sensors."""
ACCEPTED = ("torque-lag", "mounting", "joint-order")
"""Errors of logs that delays bring about, and poses of a few joints with weights and zeros a little wrong."""
ENCODER_NOISE = 2e-5
"""[rad]"""


@dataclass(frozen=True)
class Wrong:
    """What is wrong with the sensors of every joint."""

    gain: FloatArray
    zero: FloatArray
    delay: FloatArray

    @classmethod
    def drawn(cls, n: int, rng: np.random.Generator, share: float) -> Wrong:
        gain = rng.uniform(*GAIN) * rng.standard_normal(n)
        return cls(share * gain, share * ZERO * rng.standard_normal(n), share * DELAY * rng.standard_normal(n))

    def recorded(self, log: Log, name: str) -> Log:
        """Position and torque as these sensors would have recorded them."""
        late = [
            np.interp(log.time - d, log.time, tau)
            for d, tau in zip(self.delay, log[Channel.LINK_TORQUE].T, strict=True)
        ]
        channels = {
            Channel.POSITION: log[Channel.POSITION] + self.zero,
            Channel.LINK_TORQUE: (1.0 + self.gain) * np.column_stack(late),
        }
        return replace(log, channels=channels, notes=(), name=name)


def sequential_sensors(*, quick: bool) -> None:
    """A row for every kind of recordings and simulator, all arms together; sensors a little wrong, and as they should be."""
    print(f"95 % intervals that hold the truth, {', '.join(ARMS)}; widths are medians of ratios")
    print(
        "| sensors | recordings | torque by | from noise alone | beside sensors | width over noise alone | `identify` | "
        "width over that of `identify` |\n|---|---|---|---|---|---|---|---|"
    )
    motions = range(1 if quick else MOTIONS)
    for share, locked, by_pinocchio in product((1.0, 0.0), (False, True), (False, True)):
        parts = [_of_motion(name, k, share, locked, by_pinocchio) for name in ARMS for k in motions]
        alone, beside, wider, whole, ratio = (np.concatenate(column) for column in zip(*parts, strict=True))
        theirs = f"{_held(whole)} | {np.median(ratio):.2f}" if len(whole) else "- | -"
        what = f"{'a little wrong' if share else 'right'} | {'one per joint' if locked else 'one'}"
        by = "Pinocchio" if by_pinocchio else "MuJoCo"
        ours = f"{_held(alone)} | {_held(beside)} | {np.median(wider):.2f}"
        print(f"| {what} | {by} | {ours} | {theirs} |", flush=True)


def _held(inside: FloatArray) -> str:
    return f"{int(inside.sum())} of {len(inside)}, {100 * inside.mean():.0f} %"


def _of_motion(name: str, seed: int, share: float, locked: bool, by_pinocchio: bool) -> tuple[FloatArray, ...]:
    """Of every base parameter: inside from noise alone, beside sensors, wider by; inside by `identify`, width over its own."""
    robot = armid.load_robot(name)
    logs = list(_logs(robot, seed, share, locked, by_pinocchio))
    source = TorqueRows(robot, effects_of(FRICTION, rotor_inertia=False, torques="link", shapes=False))
    staging = Staging(effects=source.effects, accept=ACCEPTED)
    stages = [stage for log in logs for stage in stages_of_log(log, robot, staging)]
    stages.sort(key=lambda stage: -robot.joint_index(stage.joint))
    found, base = TipToBase().fit(source, stages), structural_base(source)
    alone = found.over(base)
    beside = beside_sensors(found, source, stages, recorded_velocity=False, hold=False).over(base)
    wider = beside.standard_deviations / alone.standard_deviations
    if locked:
        return _inside(robot, alone), _inside(robot, beside), wider, np.empty(0), np.empty(0)
    whole = armid.identify(robot, logs, friction=FRICTION, accept=ACCEPTED).estimate
    theirs = dict(zip(whole.names, whole.standard_deviations, strict=True))
    ours = zip(beside.names, beside.standard_deviations, strict=True)
    ratio = np.array([own / theirs[n] for n, own in ours if n in theirs])
    return _inside(robot, alone), _inside(robot, beside), wider, _inside(robot, whole), ratio


def _inside(robot: Robot, found: Estimate) -> FloatArray:
    truth = found.base.values(nominal_standard(robot, found.base.parameters))
    return np.abs(found.values - truth) <= NORMAL_95 * found.standard_deviations


def _logs(robot: Robot, seed: int, share: float, locked: bool, by_pinocchio: bool) -> Iterator[Log]:
    """One recording, or one per joint from the tip with those before it on their brakes."""
    n = robot.n_joints
    wrong = Wrong.drawn(n, np.random.default_rng([seed, 7]), share)
    for first in reversed(range(n)) if locked else (0,):
        number = 100 * seed + first
        motion = _motion(robot, number, first)
        if by_pinocchio:
            log = _computed(robot, motion, np.random.default_rng([number, 8]))
        else:
            brakes = robot.joint_names[:first]
            log = armid.simulate(robot, motion, rate_hz=RATE, seed=number, locked=brakes).log
        yield wrong.recorded(log, f"stage{first + 1}")


def _motion(robot: Robot, seed: int, first: int) -> FourierTrajectory:
    """Ten seconds of smooth random motion of the joints from the first on; the others stand somewhere."""
    rng = np.random.default_rng(seed)
    low, high = np.maximum(robot.limit("lower"), -1.5), np.minimum(robot.limit("upper"), 1.5)
    moves = np.arange(robot.n_joints) >= first
    size = 0.12 * (moves * (high - low))[:, np.newaxis] / np.arange(1, 6)
    a, b = (rng.uniform(-1.0, 1.0, size.shape) * size for _ in range(2))
    pose = 0.5 * (low + high) + 0.1 * (high - low) * np.where(moves, 0.0, rng.uniform(-1.0, 1.0, len(low)))
    return FourierTrajectory(robot.joint_names, 10.0, pose, a, b)


def _computed(robot: Robot, motion: FourierTrajectory, rng: np.random.Generator) -> Log:
    """Torque of the links by Pinocchio, with friction and noise."""
    t = np.arange(0.0, 10.0, 1.0 / RATE)
    q, qd, qdd = motion.sample(t)
    model = pinocchio_model(robot)
    data = model.createData()
    tau = np.array([pin.rnea(model, data, *sample) for sample in zip(q, qd, qdd, strict=True)])
    tau += robot.drive("viscous") * qd + robot.drive("coulomb") * np.sign(qd)
    channels = {
        Channel.POSITION: q + ENCODER_NOISE * rng.standard_normal(q.shape),
        Channel.LINK_TORQUE: tau + NOISE * np.sqrt(np.mean(tau**2, axis=0)) * rng.standard_normal(q.shape),
    }
    return Log(name="log", joints=robot.joint_names, time=t, channels=channels, named=True, clock=Clock.COLUMN)
