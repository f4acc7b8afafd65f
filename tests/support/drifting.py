"""An identified arm that goes on while something of it changes: streams made by Pinocchio, which shares no code with us."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pinocchio as pin

from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.logs import Channel, Clock, Log
from armid.logs.check import check_log
from armid.online.estimator import OnlineEstimator
from armid.parameters.effects import Effects
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.simulation.variation import varied
from support.chains import pinocchio_model

EFFECTS = Effects(viscous=True, coulomb=True, offset=True)
ENCODER = 2e-5
"""Noise of positions [rad]."""

_MIDDLE = {"panda": (0.0, 0.0, 0.0, -1.2, 0.0, 1.2, 0.0), "ur10e": (0.0, -1.2, 1.2, -1.0, -1.0, 0.0)}
"""Poses about which an arm may move within its limits [rad]; others about zero."""


@dataclass(frozen=True)
class Stream:
    """What an arm did and what its sensors say.

    Args:
        time: [s], shape [n_samples].
        q, qd, qdd: true motion, shape [n_samples, n_joints].
        read: positions as read, likewise.
        torque: as read [N m].
    """

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    read: np.ndarray
    torque: np.ndarray

    @property
    def later(self) -> np.ndarray:
        """Samples of the second half."""
        return self.time >= 0.5 * self.time[-1]


Change = Callable[[Stream, Robot], Stream]


def motion(name: str, joints: int, seed: int, rate: float, seconds: float, size: float, period: float) -> Stream:
    """Five harmonics of random amplitudes on every joint."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    w = 2.0 * np.pi / period * np.arange(1, 6) * (1.0 + 0.03 * rng.uniform(-1.0, 1.0, 5))
    a, b = rng.normal(size=(2, joints, 5)) * size / np.sqrt(np.arange(1, 6))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q = s @ a.T + c @ b.T + np.array(_MIDDLE.get(name, (0.0,) * joints))
    return Stream(t, q, (c * w) @ a.T - (s * w) @ b.T, -(s * w**2) @ a.T - (c * w**2) @ b.T, q, np.empty((0, joints)))


def torque(robot: Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Rigid torque by Pinocchio, and friction of the drives [N m], shape [n_samples, n_joints]."""
    model = pinocchio_model(robot)
    data = model.createData()
    rigid = np.array([pin.rnea(model, data, *row) for row in zip(q, qd, qdd, strict=True)])
    return rigid + friction(robot, qd) + robot.drive("offset")


def friction(robot: Robot, qd: np.ndarray) -> np.ndarray:
    return robot.drive("viscous") * qd + robot.drive("coulomb") * np.sign(qd)


def specimen(name: str, seed: int) -> Robot:
    """An arm of the catalogue with other bodies, and with friction."""
    robot, rng = load_robot(name), np.random.default_rng(seed)
    n = robot.n_joints
    joints = []
    for i, joint in enumerate(robot.joints):
        grown = 0.5 + 2.0 * (n - i) / n
        drive = replace(
            joint.drive,
            viscous=grown * rng.uniform(0.7, 1.3),
            coulomb=grown * rng.uniform(0.7, 1.3),
            offset=0.1 * (-1) ** i,
            rotor_inertia=0.0,
        )
        joints.append(replace(joint, drive=drive))
    return replace(varied(robot, 0.15, rng), joints=tuple(joints))


@cache
def identified(name: str, seed: int, noise: float) -> tuple[Robot, Result]:
    """The specimen, and what two recordings of it tell."""
    truth = specimen(name, seed)
    robot = load_robot(name)

    def recorded(number: int) -> Log:
        m, rng = motion(name, robot.n_joints, number, 100.0, 30.0, 0.35, 10.0), np.random.default_rng(number)
        channels = {
            Channel.POSITION: m.q + ENCODER * rng.normal(size=m.q.shape),
            Channel.LINK_TORQUE: torque(truth, m.q, m.qd, m.qdd) + noise * rng.normal(size=m.q.shape),
        }
        log = Log(
            name=f"run{number}",
            joints=robot.joint_names,
            time=m.time,
            channels=channels,
            named=True,
            clock=Clock.COLUMN,
        )
        return check_log(log, robot)

    settings = Identification(effects=EFFECTS)
    return truth, run_identification(robot, [recorded(seed + 3)], [recorded(seed + 4)], settings)


def watched(
    name: str,
    change: Change | None = None,
    *,
    arm: int = 0,
    noise: float = 0.05,
    seed: int = 61,
    rate: float = 100.0,
    seconds: float = 60.0,
    size: float = 0.35,
    period: float = 10.0,
    derivatives: bool = False,
) -> OnlineEstimator:
    """The estimator after a stream.

    Args:
        name: of the arm.
        change: what happens to it; nothing by default.
        arm: seed of the specimen.
        noise: of torque [N m].
        seed: of motion and noise.
        rate: [Hz].
        seconds: of the stream.
        size, period: of the motion [rad, s].
        derivatives: whether the stream brings them, instead of positions alone.
    """
    truth, result = identified(name, arm, noise)
    s = motion(name, truth.n_joints, seed, rate, seconds, size, period)
    s = replace(s, torque=torque(truth, s.q, s.qd, s.qdd))
    s = s if change is None else change(s, truth)
    rng = np.random.default_rng(seed + 1000)
    tau, read = s.torque + noise * rng.normal(size=s.q.shape), s.read + ENCODER * rng.normal(size=s.q.shape)
    online = OnlineEstimator(result, rate=rate)
    for k, t in enumerate(s.time):
        if derivatives:
            online.update(s.read[k], s.qd[k], s.qdd[k], tau[k])
        else:
            online.update_positions(read[k], tau[k], time=float(t))
    return online


def zero(joint: int, degrees: float) -> Change:
    """An encoder slips half way."""

    def change(s: Stream, truth: Robot) -> Stream:
        read = s.read.copy()
        read[s.later, joint] += np.radians(degrees)
        return replace(s, read=read)

    return change


def gain(joint: int, share: float) -> Change:
    """A torque sensor loses or gains half way."""

    def change(s: Stream, truth: Robot) -> Stream:
        tau = s.torque.copy()
        tau[s.later, joint] *= 1.0 + share
        return replace(s, torque=tau)

    return change


def offset(joint: int, amount: float) -> Change:
    """A torque sensor steps half way [N m]."""

    def change(s: Stream, truth: Robot) -> Stream:
        tau = s.torque.copy()
        tau[s.later, joint] += amount
        return replace(s, torque=tau)

    return change


def rubbing(joint: int, share: float) -> Change:
    """Friction of a joint grows by this share from begin to end."""

    def change(s: Stream, truth: Robot) -> Stream:
        tau = s.torque.copy()
        tau[:, joint] += share * s.time / s.time[-1] * friction(truth, s.qd)[:, joint]
        return replace(s, torque=tau)

    return change


def late(joint: int | None, seconds: float) -> Change:
    """Torque, of one joint or of all, comes late from half way on."""

    def change(s: Stream, truth: Robot) -> Stream:
        past = [np.stack([np.interp(s.time - seconds, s.time, c) for c in x.T], 1) for x in (s.q, s.qd, s.qdd)]
        delayed, tau = torque(truth, *past), s.torque.copy()
        joints = slice(None) if joint is None else joint
        tau[s.later, joints] = delayed[s.later, joints]
        return replace(s, torque=tau)

    return change


def load(mass: float) -> Change:
    """The arm picks something up half way [kg], 15 cm out along the last link."""

    def change(s: Stream, truth: Robot) -> Stream:
        centre = np.array([0.02, 0.0, 0.15])
        I = mass * (centre @ centre * np.eye(3) - np.outer(centre, centre)) + 0.002 * np.eye(3)
        inertial = np.array(truth.inertial).reshape(-1, 10)
        inertial[-1] += [mass, *(mass * centre), I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]]
        tau, carrying = s.torque.copy(), torque(truth.with_inertial(inertial.reshape(-1)), s.q, s.qd, s.qdd)
        tau[s.later] = carrying[s.later]
        return replace(s, torque=tau)

    return change
