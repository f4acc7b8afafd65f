"""How the path parameter moves with time, and the joint motion that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.motions.trajectory import Motion, quintic, quintic_through, times
from armid.planning.path import Path


@dataclass(frozen=True, eq=False)
class TimeLaw:
    """theta(t), a polynomial of degree five or less between instants.

    Args:
        time: instants, ascending from 0 [s], shape [n + 1].
        coefficients: of each piece over its normalised time 0..1, lowest first, shape [6, n].
    """

    time: FloatArray
    coefficients: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", read_only(self.time))
        object.__setattr__(self, "coefficients", read_only(self.coefficients))

    @property
    def duration(self) -> float:
        return float(self.time[-1])

    def derivatives(self, t: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The parameter and three derivatives at times t [s], each of shape [len(t)]; from the end on nothing accelerates."""
        clipped = np.clip(times(t), 0.0, self.duration)
        k = np.clip(np.searchsorted(self.time, clipped, side="right") - 1, 0, len(self.time) - 2)
        h = self.time[k + 1] - self.time[k]
        s = (clipped - self.time[k]) / h
        own = self.coefficients[:, k]
        going = clipped < self.duration
        acceleration, jerk = quintic(own, s, 2) / h**2 * going, quintic(own, s, 3) / h**3 * going
        return quintic(own, s, 0), quintic(own, s, 1) / h, acceleration, jerk

    def slowed(self, factor: float) -> TimeLaw:
        """The same path, `factor` times as long ([Hollerbach1984])."""
        return replace(self, time=self.time * factor)


def constant_acceleration(theta: FloatArray, x: FloatArray) -> TimeLaw:
    """The law with theta'^2 = x at the points and constant acceleration between them.

    Args:
        theta: points, shape [n + 1].
        x: squared speeds, positive between the ends, shape [n + 1].
    """
    speed = np.sqrt(x)
    step = np.diff(theta)
    h = 2.0 * step / (speed[1:] + speed[:-1])
    zero = np.zeros_like(h)
    coefficients = np.array([theta[:-1], h * speed[:-1], 0.5 * h * (speed[1:] - speed[:-1]), zero, zero, zero])
    return TimeLaw(np.concatenate([[0.0], np.cumsum(h)]), coefficients)


def through_states(time: FloatArray, theta: FloatArray, speed: FloatArray, acceleration: FloatArray) -> TimeLaw:
    """The law with given position, speed and acceleration at instants, each of shape [n + 1]; quintic between."""
    h = np.diff(time)
    start = (theta[:-1], h * speed[:-1], h**2 * acceleration[:-1])
    end = (theta[1:], h * speed[1:], h**2 * acceleration[1:])
    return TimeLaw(time, quintic_through(start, end))


@dataclass(frozen=True, eq=False)
class PathTrajectory:
    """A motion that never leaves its path: q(t) = Phi(theta(t)), [Kolyubin2017] eq. 33.

    Args:
        path: the path.
        law: theta(t).
    """

    path: Path
    law: TimeLaw

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.path.joint_names

    @property
    def duration(self) -> float:
        return self.law.duration

    def sample(self, t: npt.ArrayLike) -> Motion:
        theta, v, a, _ = (x[:, np.newaxis] for x in self.law.derivatives(t))
        q, first, second, _ = self.path.derivatives(theta[:, 0])
        return q, first * v, second * v**2 + first * a

    def jerk(self, t: npt.ArrayLike) -> FloatArray:
        theta, v, a, j = (x[:, np.newaxis] for x in self.law.derivatives(t))
        _, first, second, third = self.path.derivatives(theta[:, 0])
        return third * v**3 + 3.0 * second * v * a + first * j
