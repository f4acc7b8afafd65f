"""Smooth motion from rest to rest between poses: how the robot gets to an experiment and back.

Along each straight piece s(t) = 10 x^3 - 15 x^4 + 6 x^5, x = t/T: velocity and acceleration vanish at both ends,
their peaks are 15/8 /T and 10/sqrt(3) /T^2, and the jerk's is 60 /T^3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import ShapeError
from armid.motions.limits import MotionLimits
from armid.motions.trajectory import Motion, times

_PEAK_VELOCITY = 15.0 / 8.0
_PEAK_ACCELERATION = 10.0 / np.sqrt(3.0)
_PEAK_JERK = 60.0

EASE = 1.002
"""Slower than quickest by this factor: a limit touched exactly cannot be certified between samples."""

_SHORTEST = 1e-3
"""[s]: a transition between two equal poses still has a duration."""


@dataclass(frozen=True, eq=False)
class TransitionTrajectory:
    """Straight pieces in joint space through way-points, at rest in each.

    Args:
        joint_names: columns.
        waypoints: [rad or m], shape [n_waypoints, n_joints].
        durations: of the pieces [s], shape [n_waypoints - 1].
    """

    joint_names: tuple[str, ...]
    waypoints: FloatArray
    durations: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "waypoints", read_only(self.waypoints))
        object.__setattr__(self, "durations", read_only(self.durations))
        if self.waypoints.ndim != 2 or self.waypoints.shape[1] != len(self.joint_names):
            raise ShapeError("waypoints", self.waypoints.shape, f"[n_waypoints, {len(self.joint_names)}]")
        if self.durations.shape != (len(self.waypoints) - 1,) or not (self.durations > 0.0).all():
            raise ShapeError("durations", self.durations.shape, f"[{len(self.waypoints) - 1}], all positive")

    @cached_property
    def _ends(self) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(self.durations)])

    @property
    def duration(self) -> float:
        return float(self._ends[-1])

    def sample(self, t: npt.ArrayLike) -> Motion:
        x, T, step, start = self._local(times(t))
        return (
            start + step * (10 * x**3 - 15 * x**4 + 6 * x**5),
            step * (30 * x**2 - 60 * x**3 + 30 * x**4) / T,
            step * (60 * x - 180 * x**2 + 120 * x**3) / T**2,
        )

    def jerk(self, t: npt.ArrayLike) -> FloatArray:
        x, T, step, _ = self._local(times(t))
        return step * (60 - 360 * x + 360 * x**2) / T**3

    def _local(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        clipped = np.clip(t, 0.0, self.duration)
        k = np.clip(np.searchsorted(self._ends, clipped, side="right") - 1, 0, len(self.durations) - 1)
        T = self.durations[k][:, np.newaxis]
        x = (clipped - self._ends[k])[:, np.newaxis] / T
        return x, T, (self.waypoints[1:] - self.waypoints[:-1])[k], self.waypoints[k]

    def reversed(self) -> TransitionTrajectory:
        """The way back."""
        return TransitionTrajectory(self.joint_names, self.waypoints[::-1], self.durations[::-1])


def quickest_transition(
    joint_names: tuple[str, ...], waypoints: npt.ArrayLike, limits: MotionLimits
) -> TransitionTrajectory:
    """The shortest durations that keep every joint within its velocity, acceleration and jerk limits."""
    points = np.asarray(waypoints, dtype=np.float64)
    step = np.abs(np.diff(points, axis=0))
    durations = np.maximum.reduce(
        [
            _PEAK_VELOCITY * step / limits.velocity,
            np.sqrt(_PEAK_ACCELERATION * step / limits.acceleration),
            np.cbrt(_PEAK_JERK * step / limits.jerk),
        ]
    ).max(axis=1)
    return TransitionTrajectory(joint_names, points, np.maximum(EASE * durations, _SHORTEST))
