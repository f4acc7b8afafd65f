"""Arms with drives of a plausible size, and recordings of them along random Fourier motions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.consistency.plausible import inertia_at_joints
from armid.kernels.dynamics import inverse_dynamics
from armid.logs import Channel, Clock, Log
from armid.logs.check import check_log
from armid.robot import Robot
from armid.simulation.variation import varied


def drives(robot: Robot, *, rotor: float, friction: float = 0.5, offset: float = 0.05) -> Robot:
    """The arm with rotors of `rotor` times what a joint carries (a wrist's at least a hundredth of the largest), and friction."""
    carried = inertia_at_joints(robot)
    carried = np.maximum(carried, 0.01 * carried.max())
    joints = tuple(
        replace(
            joint,
            drive=replace(
                joint.drive,
                rotor_inertia=float(rotor * m),
                viscous=float(friction * m**0.5),
                coulomb=float(2.0 * friction * m**0.5),
                offset=offset,
            ),
        )
        for joint, m in zip(robot.joints, carried, strict=True)
    )
    return replace(robot, joints=joints)


def scaled_bodies(robot: Robot, *, seed: int, spread: float, factor: float = 1.0) -> Robot:
    """A specimen of the arm: bodies varied by a spread, and all of them by a factor."""
    other = varied(robot, spread, np.random.default_rng(seed)) if spread else robot
    return replace(other, links=tuple(replace(link, inertial=factor * link.inertial) for link in other.links))


def motion(robot: Robot, seed: int, seconds: float, rate: float):
    """Time, q, qd, qdd of a random Fourier motion within the limits."""
    rng = np.random.default_rng(seed)
    t, w = np.arange(int(seconds * rate)) / rate, 2.0 * np.pi / 10.0 * np.arange(1, 6)
    a, b = rng.normal(size=(2, robot.n_joints, 5)) / np.sqrt(np.arange(1, 6))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, qd = s @ a.T + c @ b.T, (c * w) @ a.T - (s * w) @ b.T
    low, high = np.maximum(robot.limit("lower"), -2.5), np.minimum(robot.limit("upper"), 2.5)
    size = np.minimum(0.42 * (high - low) / np.abs(q).max(axis=0), 1.5 / np.abs(qd).max(axis=0))
    return t, (low + high) / 2.0 + size * q, size * qd, size * (-(s * w**2) @ a.T - (c * w**2) @ b.T)


def recorded(
    robot: Robot, truth: Robot, *, seed: int, seconds: float = 20.0, rate: float = 100.0, noise: float = 0.005
) -> Log:
    """A checked recording of the specimen; noise is a fraction of each joint's largest torque."""
    t, q, qd, qdd = motion(robot, seed, seconds, rate)
    rng = np.random.default_rng(seed + 100)
    tau = inverse_dynamics(truth, q, qd, qdd, drives=True)
    size = np.maximum(np.abs(tau).max(axis=0), 0.02 * np.abs(tau).max())
    channels = {
        Channel.POSITION: q + rng.normal(0.0, 2e-5, q.shape),
        Channel.LINK_TORQUE: tau + noise * size * rng.normal(size=q.shape),
    }
    log = Log(name=f"run{seed}", joints=robot.joint_names, time=t, channels=channels, named=True, clock=Clock.COLUMN)
    return check_log(log, robot)
