"""Quintic splines with free values at the knots: local, not periodic, at rest at both ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.interpolate import BSpline, make_interp_spline

from armid.arrays import FloatArray, read_only
from armid.errors import InputError, ShapeError
from armid.motions.trajectory import Motion, times

DEGREE = 5
"""Accelerations and jerks stay continuous, and both ends can be at rest."""


@dataclass(frozen=True, eq=False)
class SplineTrajectory:
    """A quintic spline through values at equally spaced knots, with zero velocity and acceleration at both ends.

    Args:
        joint_names: columns.
        period: time from the first knot to the last [s].
        values: positions at the knots [rad or m], shape [n_knots, n_joints].
        repetitions: how often it is run; needs the last value to equal the first.
    """

    joint_names: tuple[str, ...]
    period: float
    values: FloatArray
    repetitions: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))
        if self.values.ndim != 2 or self.values.shape[1] != len(self.joint_names) or len(self.values) < 3:
            raise ShapeError("values", self.values.shape, f"[3 or more knots, {len(self.joint_names)}]")
        if not self.period > 0.0:
            raise InputError("period", f"{self.period} s", "a period must be positive")
        if self.repetitions > 1 and not np.allclose(self.values[0], self.values[-1], rtol=0.0, atol=1e-9):
            raise InputError("repetitions", f"{self.repetitions}", "an open spline cannot be repeated")

    @property
    def duration(self) -> float:
        return self.period * self.repetitions

    @cached_property
    def spline(self) -> BSpline:
        return rest_spline(self.period, self.values)

    def sample(self, t: npt.ArrayLike) -> Motion:
        time = self._within(times(t))
        return self.spline(time), self.spline(time, 1), self.spline(time, 2)

    def jerk(self, t: npt.ArrayLike) -> FloatArray:
        return np.asarray(self.spline(self._within(times(t)), 3))

    def repeated(self, repetitions: int) -> SplineTrajectory:
        """The same motion run that many times."""
        return replace(self, repetitions=repetitions)

    def slowed(self, factor: float) -> SplineTrajectory:
        """The same path, `factor` times as long."""
        return replace(self, period=self.period * factor)

    def derivative_bound(self, order: int) -> FloatArray:
        """Largest coefficient of a derivative, shape [n_joints]: a B-spline stays inside the hull of its coefficients."""
        return np.abs(self.spline.derivative(order).c).max(axis=0)

    def _within(self, t: FloatArray) -> FloatArray:
        clipped = np.clip(t, 0.0, self.duration)
        # The very end belongs to the last period, not to the start of one more.
        return np.where(clipped >= self.duration, self.period, np.mod(clipped, self.period))


def rest_spline(period: float, values: FloatArray) -> BSpline:
    """The quintic spline at rest at both ends through values at equally spaced knots."""
    knots = np.linspace(0.0, period, len(values))
    zero = np.zeros(values.shape[1:])
    at_rest = [(1, zero), (2, zero)]
    return make_interp_spline(knots, values, k=DEGREE, bc_type=(at_rest, at_rest))
