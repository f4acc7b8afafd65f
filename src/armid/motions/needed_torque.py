"""Torque limits where a description gives none, or none that is meant: what drives of the described links would need."""

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


_LEAST_USED = 0.1
"""Of its torque limit, what the busiest joint needs at least, reserve included, for the limits to be meant: 1000 N m on every
joint of an arm of half a kilogram is a number that some program asked for. Arms with real limits need a third or more."""


def torque_limits(robot: Robot) -> FloatArray:
    """Torque limits [N m or N], shape [n_joints]: as described and meant, else as needed; zero where no mass is described."""
    limits = robot.limit("torque")
    needed = _needed_torque(robot)
    if _placeholders(limits, needed):
        return np.where(needed > 0.0, needed, limits)
    return np.where(np.isfinite(limits), limits, needed)


def limits_are_placeholders(robot: Robot) -> bool:
    """Whether the described torque limits are so far beyond what the described links can use that they say nothing of drives."""
    return _placeholders(robot.limit("torque"), _needed_torque(robot))


def _placeholders(limits: FloatArray, needed: FloatArray) -> bool:
    known = np.isfinite(limits) & (needed > 0.0)
    return bool(known.any() and (needed[known] < _LEAST_USED * limits[known]).all())


def _needed_torque(robot: Robot) -> FloatArray:
    """What drives of the described links need, with a reserve [N m or N], shape [n_joints]; zero for links without mass."""
    limits, _ = motion_limits(robot)
    rng = np.random.default_rng(0)
    q = rng.uniform(limits.lower, limits.upper, size=(_TRIED, robot.n_joints))
    qdd = rng.uniform(-limits.acceleration, limits.acceleration, size=q.shape)
    torque = inverse_dynamics(robot, q, np.zeros_like(q), qdd, inertial=robot.inertial, drives=True)
    return np.asarray(_RESERVE * np.abs(torque).max(axis=0))
