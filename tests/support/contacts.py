"""Recordings with and without somebody pushing the arm."""

from __future__ import annotations

import numpy as np

import armid
from armid.arrays import FloatArray
from armid.logs.log import Channel, Log
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import motion_limits
from armid.robot.robot import Robot

RATE = 500.0


def recorded(robot: Robot, *, seconds: float, seed: int, push: FloatArray | None = None, noise: float = 0.05) -> Log:
    """A simulated motion with torque noise; `push` is an external torque [n, n_joints] that the drives did not have to give."""
    rng = np.random.default_rng(seed)
    limits = motion_limits(robot)[0]
    size = 0.08 * limits.half_range[:, np.newaxis]
    motion = FourierTrajectory(
        joint_names=robot.joint_names,
        period=seconds,
        repetitions=1,
        offset=limits.middle + 0.3,
        sine=size * rng.normal(size=(robot.n_joints, 5)),
        cosine=size * rng.normal(size=(robot.n_joints, 5)),
    )
    t = np.arange(0.0, seconds, 1.0 / RATE)
    q, qd, qdd = motion.sample(t)
    tau = armid.inverse_dynamics(robot, q, qd, qdd, drives=True)
    tau = tau + noise * rng.normal(size=tau.shape) - (0.0 if push is None else push)
    return Log(
        name=f"run{seed}",
        joints=robot.joint_names,
        time=t,
        channels={Channel.POSITION: q + 1e-6 * rng.normal(size=q.shape), Channel.LINK_TORQUE: tau},
    )


def bump(seconds: float, n_joints: int, joint: int, size: float, at: float, lasts: float = 0.4) -> FloatArray:
    t = np.arange(0.0, seconds, 1.0 / RATE)
    out = np.zeros((len(t), n_joints))
    inside = (t >= at) & (t < at + lasts)
    out[inside, joint] = size
    return out
