"""Torque limits where a description gives none: what drives of the described links would need."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.dynamics import inverse_dynamics
from armid.motions.limits import motion_limits
from armid.robot.robot import Robot

_RESERVE = 2.0
"""Torque limit assumed where none is described, over the largest torque that the described links ask of brisk motion."""
_TRIED = 200
"""Random states that this torque is taken from."""


def torque_limits(robot: Robot) -> FloatArray:
    """Torque limits [N m or N], shape [n_joints]: as described, else as needed; zero where no mass is described either."""
    limits = robot.limit("torque")
    if np.isfinite(limits).all():
        return np.asarray(limits)
    return np.where(np.isfinite(limits), limits, _needed_torque(robot))


def _needed_torque(robot: Robot) -> FloatArray:
    """What drives of the described links need, with a reserve [N m or N], shape [n_joints]; zero for links without mass."""
    limits, _ = motion_limits(robot)
    rng = np.random.default_rng(0)
    q = rng.uniform(limits.lower, limits.upper, size=(_TRIED, robot.n_joints))
    qdd = rng.uniform(-limits.acceleration, limits.acceleration, size=q.shape)
    torque = inverse_dynamics(robot, q, np.zeros_like(q), qdd, inertial=robot.inertial, drives=True)
    return np.asarray(_RESERVE * np.abs(torque).max(axis=0))
