"""What a motion is: joint positions, velocities, accelerations and jerks as functions of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, finite, read_only
from armid.errors import InputError, ShapeError

Motion = tuple[FloatArray, FloatArray, FloatArray]
"""Positions [rad or m], velocities and accelerations, each of shape [n_samples, n_joints]."""


class Trajectory(Protocol):
    """A motion of all joints, from time zero to `duration`.

    Outside that interval a trajectory holds its first or last pose, unless it is periodic by nature.
    """

    @property
    def joint_names(self) -> tuple[str, ...]:
        """From base to tip; the columns of every array."""

    @property
    def duration(self) -> float:
        """[s]."""

    def sample(self, t: npt.ArrayLike) -> Motion:
        """Positions, velocities and accelerations at times t [s], shape [n_samples]."""

    def jerk(self, t: npt.ArrayLike) -> FloatArray:
        """Third derivative of the positions, shape [n_samples, n_joints]; infinite where acceleration jumps."""


def times(t: npt.ArrayLike) -> FloatArray:
    """Times as a finite vector."""
    return finite("t", np.atleast_1d(np.asarray(t, dtype=np.float64)))


def grid(duration: float, rate_hz: float) -> FloatArray:
    """Times from 0 to the end at a rate, the end itself included, shape [n_samples]."""
    if not rate_hz > 0.0:
        raise InputError("rate", f"{rate_hz} Hz", "must be positive")
    count = max(round(duration * rate_hz), 1)
    return np.linspace(0.0, duration, count + 1)


@dataclass(frozen=True, eq=False)
class SequenceTrajectory:
    """Motions one after the other; each must start where the one before ends.

    Args:
        parts: at least one, of the same joints.
    """

    parts: tuple[Trajectory, ...]

    JOIN_TOLERANCE = 1e-6
    """[rad or m]: what decimal text loses, far below what a controller would notice."""

    def __post_init__(self) -> None:
        for k, (a, b) in enumerate(zip(self.parts, self.parts[1:], strict=False)):
            if a.joint_names != b.joint_names:
                raise InputError("trajectory", f"part {k + 2} moves {b.joint_names}, part {k + 1} {a.joint_names}")
            gap = np.abs(a.sample(a.duration)[0] - b.sample(0.0)[0])[0]
            if gap.max() > self.JOIN_TOLERANCE:
                joint = a.joint_names[int(gap.argmax())]
                raise InputError(
                    "trajectory",
                    f"part {k + 2} starts {gap.max():.3g} away from where part {k + 1} ends (joint {joint})",
                    "insert a transition",
                )

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.parts[0].joint_names

    @property
    def starts(self) -> FloatArray:
        """When each part starts, and the end, shape [n_parts + 1]."""
        return np.concatenate([[0.0], np.cumsum([part.duration for part in self.parts])])

    @property
    def duration(self) -> float:
        return float(self.starts[-1])

    def sample(self, t: npt.ArrayLike) -> Motion:
        time = times(t)
        q, qd, qdd = (np.empty((len(time), len(self.joint_names))) for _ in range(3))
        for part, mask, local in self._pieces(time):
            q[mask], qd[mask], qdd[mask] = part.sample(local)
        return q, qd, qdd

    def jerk(self, t: npt.ArrayLike) -> FloatArray:
        time = times(t)
        out = np.empty((len(time), len(self.joint_names)))
        for part, mask, local in self._pieces(time):
            out[mask] = part.jerk(local)
        return out

    def _pieces(self, time: FloatArray) -> list[tuple[Trajectory, npt.NDArray[np.bool_], FloatArray]]:
        """For each part that is asked for: itself, which samples, and its own times."""
        starts = self.starts
        index = np.clip(np.searchsorted(starts, time, side="right") - 1, 0, len(self.parts) - 1)
        pieces = []
        for k, part in enumerate(self.parts):
            mask = index == k
            if mask.any():
                pieces.append((part, mask, np.clip(time[mask] - starts[k], 0.0, part.duration)))
        return pieces


@dataclass(frozen=True, eq=False)
class SampledTrajectory:
    """A motion known at instants, as read from a table; between them a quintic through all three derivatives.

    Args:
        joint_names: columns.
        time: ascending, first at zero [s], shape [n].
        q, qd, qdd: shape [n, n_joints].
    """

    joint_names: tuple[str, ...]
    time: FloatArray
    q: FloatArray
    qd: FloatArray
    qdd: FloatArray

    def __post_init__(self) -> None:
        shape = (len(self.time), len(self.joint_names))
        for name in ("q", "qd", "qdd"):
            values = getattr(self, name)
            if values.shape != shape:
                raise ShapeError(name, values.shape, f"[{shape[0]}, {shape[1]}]")
            object.__setattr__(self, name, read_only(finite(name, values)))
        if len(self.time) < 2 or not (np.diff(self.time) > 0.0).all():
            raise InputError("time", "times do not ascend", "at least two samples with growing time are needed")
        object.__setattr__(self, "time", read_only(self.time - self.time[0]))

    @property
    def duration(self) -> float:
        return float(self.time[-1])

    def sample(self, t: npt.ArrayLike) -> Motion:
        coefficients, s, h = self._local(times(t))
        return quintic(coefficients, s, 0), quintic(coefficients, s, 1) / h, quintic(coefficients, s, 2) / h**2

    def jerk(self, t: npt.ArrayLike) -> FloatArray:
        coefficients, s, h = self._local(times(t))
        return quintic(coefficients, s, 3) / h**3

    def _local(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Polynomial coefficients of the intervals, the place in them from 0 to 1, and their length."""
        clipped = np.clip(t, 0.0, self.duration)
        k = np.clip(np.searchsorted(self.time, clipped, side="right") - 1, 0, len(self.time) - 2)
        h = (self.time[k + 1] - self.time[k])[:, np.newaxis]
        start = (self.q[k], h * self.qd[k], h**2 * self.qdd[k])
        end = (self.q[k + 1], h * self.qd[k + 1], h**2 * self.qdd[k + 1])
        return quintic_through(start, end), ((clipped - self.time[k]) / h[:, 0])[:, np.newaxis], h


def quintic_through(start: Sequence[FloatArray], end: Sequence[FloatArray]) -> FloatArray:
    """Coefficients, lowest first on the first axis, of the polynomial on [0, 1] with these values, slopes and curvatures."""
    (p0, v0, a0), (p1, v1, a1) = start, end
    # What the quadratic from the start misses at the end; the cubic, quartic and quintic terms make up for it.
    d0, d1, d2 = p1 - p0 - v0 - a0 / 2, v1 - v0 - a0, a1 - a0
    return np.stack([p0, v0, a0 / 2, 10 * d0 - 4 * d1 + d2 / 2, -15 * d0 + 7 * d1 - d2, 6 * d0 - 3 * d1 + d2 / 2])


def quintic(coefficients: FloatArray, s: FloatArray, order: int) -> FloatArray:
    """Value (order 0) or derivative of a polynomial with coefficients on the first axis, at s."""
    powers = np.arange(len(coefficients))
    total = np.zeros(np.broadcast_shapes(coefficients.shape[1:], s.shape))
    for k in powers[order:]:
        factor = float(np.prod(np.arange(k - order + 1, k + 1))) if order else 1.0
        total = total + factor * coefficients[k] * s ** int(k - order)
    return total
