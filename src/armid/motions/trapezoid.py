"""Trapezoidal-velocity motion through way-points: the usual baseline, not optimised.

Every segment is a linear segment with parabolic blends, all joints starting and stopping together.
Acceleration jumps, so jerk is unbounded: fine for comparison, not for a robot with a jerk limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import InputError, ShapeError
from armid.motions.trajectory import Motion, times


@dataclass(frozen=True, eq=False)
class TrapezoidalTrajectory:
    """Rest-to-rest segments with trapezoidal velocity.

    Args:
        joint_names: columns.
        waypoints: [rad or m], shape [n_waypoints, n_joints].
        velocity, acceleration: largest magnitudes used, shape [n_joints].
    """

    joint_names: tuple[str, ...]
    waypoints: FloatArray
    velocity: FloatArray
    acceleration: FloatArray

    def __post_init__(self) -> None:
        n = len(self.joint_names)
        for name in ("waypoints", "velocity", "acceleration"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        if self.waypoints.ndim != 2 or self.waypoints.shape[1] != n or len(self.waypoints) < 2:
            raise ShapeError("waypoints", self.waypoints.shape, f"[2 or more, {n}]")
        for name in ("velocity", "acceleration"):
            if not (getattr(self, name) > 0.0).all() or getattr(self, name).shape != (n,):
                raise InputError(name, f"{getattr(self, name).tolist()}", f"expected {n} positive numbers")

    @cached_property
    def _segments(self) -> tuple[FloatArray, FloatArray]:
        """Per segment its duration and its blend time, common to all joints."""
        step = np.abs(np.diff(self.waypoints, axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            # The unit profile has peak velocity 1/(T - b) and acceleration 1/(b (T - b)).
            v = np.nanmin(np.where(step > 0.0, self.velocity / step, np.inf), axis=1)
            a = np.nanmin(np.where(step > 0.0, self.acceleration / step, np.inf), axis=1)
        still = ~np.isfinite(v)
        v, a = np.where(still, 1.0, v), np.where(still, 1.0, a)
        blend = np.minimum(v / a, 1.0 / np.sqrt(a))
        total = np.where(v / a < 1.0 / np.sqrt(a), 1.0 / v + v / a, 2.0 / np.sqrt(a))
        return np.where(still, 0.0, total), np.where(still, 1.0, blend)

    @cached_property
    def _ends(self) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(self._segments[0])])

    @property
    def duration(self) -> float:
        return float(self._ends[-1])

    def sample(self, t: npt.ArrayLike) -> Motion:
        time = np.clip(times(t), 0.0, self.duration)
        total, blend = self._segments
        k = np.clip(np.searchsorted(self._ends, time, side="right") - 1, 0, len(total) - 1)
        s, v, a = _unit_trapezoid(time - self._ends[k], total[k], blend[k])
        step = (self.waypoints[1:] - self.waypoints[:-1])[k]
        scaled = (x[:, np.newaxis] * step for x in (s, v, a))
        moved, qd, qdd = scaled
        return self.waypoints[k] + moved, qd, qdd

    def jerk(self, t: npt.ArrayLike) -> FloatArray:
        """Zero inside the phases; infinite for the motion as a whole wherever a phase ends."""
        return np.full((len(times(t)), len(self.joint_names)), np.inf)


def _unit_trapezoid(t: FloatArray, total: FloatArray, blend: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Position, velocity, acceleration from 0 to 1 in `total` seconds, accelerating and braking for `blend` seconds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        v = 1.0 / (total - blend)
        a = v / blend
    rest = total - t
    up, down = t < blend, rest < blend
    s = np.where(up, a * t**2 / 2, np.where(down, 1.0 - a * rest**2 / 2, v * (t - blend / 2)))
    velocity = np.where(up, a * t, np.where(down, a * rest, v))
    acceleration = np.where(up, a, np.where(down, -a, 0.0))
    still = total == 0.0
    return np.where(still, 0.0, s), np.where(still, 0.0, velocity), np.where(still, 0.0, acceleration)


def random_waypoints(
    joint_names: tuple[str, ...],
    lower: FloatArray,
    upper: FloatArray,
    velocity: FloatArray,
    acceleration: FloatArray,
    *,
    count: int,
    rng: np.random.Generator,
) -> TrapezoidalTrajectory:
    """Through `count` poses drawn evenly between the position limits."""
    points = rng.uniform(lower, upper, size=(count, len(joint_names)))
    return TrapezoidalTrajectory(joint_names, points, velocity, acceleration)
