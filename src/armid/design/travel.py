"""In which order to visit poses: short travel by nearest neighbour and 2-opt, then collision-checked transitions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.design.approach import NoTransitionError, edge_is_free, safe_waypoints
from armid.motions.limits import MotionLimits
from armid.motions.transition import TransitionTrajectory, quickest_transition
from armid.robot.robot import Robot
from armid.scene.scene import Scene


def travel_times(poses: FloatArray, limits: MotionLimits) -> FloatArray:
    """Time of the slowest joint between any two poses at full speed [s], shape [n, n]."""
    return np.asarray((np.abs(poses[:, np.newaxis] - poses) / limits.velocity).max(axis=2))


_NEIGHBOURS = 8
"""Nearest poses of each whose straight way is checked before the order is chosen."""

_DETOUR = 3.0
"""A way around an obstacle is taken to be this many times as long as the straight one."""


def travel_order(poses: FloatArray, limits: MotionLimits, scene: Scene, *, first: int = 0) -> npt.NDArray[np.intp]:
    """A short open tour that starts with a given pose and prefers straight ways that are free."""
    D = travel_times(poses, limits)
    blocked = np.ones_like(D, dtype=np.bool_)
    for i, row in enumerate(D):
        for j in np.argsort(row)[1 : 1 + _NEIGHBOURS]:
            blocked[i, j] = blocked[j, i] = not edge_is_free(scene, poses[i], poses[j])
    D = np.where(blocked, _DETOUR * D, D)
    left = set(range(len(poses))) - {first}
    tour = [first]
    while left:
        nearest = min(left, key=lambda k: (D[tour[-1], k], k))
        tour.append(nearest)
        left.remove(nearest)
    return np.array(_two_opt(tour, D), dtype=np.intp)


def _two_opt(tour: list[int], D: FloatArray) -> list[int]:
    """Reverses stretches of the tour while that shortens it; the first pose stays first."""
    improved = True
    while improved:
        improved = False
        for i in range(1, len(tour) - 1):
            for j in range(i + 1, len(tour)):
                after = D[tour[j], tour[j + 1]] - D[tour[i], tour[j + 1]] if j + 1 < len(tour) else 0.0
                if D[tour[i - 1], tour[i]] - D[tour[i - 1], tour[j]] + after > 1e-12:
                    tour[i : j + 1] = reversed(tour[i : j + 1])
                    improved = True
    return tour


def route(
    robot: Robot, poses: FloatArray, limits: MotionLimits, scene: Scene, rng: np.random.Generator
) -> tuple[TransitionTrajectory | None, tuple[int, ...], tuple[str, ...]]:
    """A free motion through all poses in their order, resting in each.

    Returns:
        The motion (None for a single pose), the way-point index of every pose, and what could not be reached, in words.
    """
    if len(poses) < 2:
        return None, (0,) * len(poses), ()
    points, places, problems = [poses[0]], [0], []
    for k, (a, b) in enumerate(pairwise(poses)):
        try:
            points += list(safe_waypoints(scene, a, b, limits, rng)[1:])
        except NoTransitionError as problem:
            problems.append(f"from pose {k + 1} to pose {k + 2}: {problem}")
            points.append(b)
        places.append(len(points) - 1)
    return quickest_transition(robot.joint_names, np.array(points), limits), tuple(places), tuple(problems)
