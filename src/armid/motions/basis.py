"""Motions that are linear in their coefficients: q(t) = anchor + sum_k phi_k(t) c_k, the same phi for every joint.

Being at rest at the start (and so, for a periodic motion, at the end) is built in by keeping only combinations
of the raw functions that satisfy it: a search can move freely in what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import null_space

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import MotionLimits
from armid.motions.spline import SplineTrajectory, rest_spline

N_DERIVATIVES = 4
"""Position, velocity, acceleration, jerk."""


class Basis(Protocol):
    """A family of motions with the number of free coefficients per joint."""

    @property
    def size(self) -> int:
        """Free coefficients per joint."""

    @property
    def period(self) -> float:
        """[s]."""

    @property
    def start(self) -> FloatArray | None:
        """The pose at time zero, or None when the search may choose it."""

    def matrices(self, t: FloatArray) -> FloatArray:
        """phi_k and its first three derivatives at times t, shape [4, n_samples, size]."""

    def trajectory(
        self, coefficients: FloatArray, joint_names: tuple[str, ...]
    ) -> FourierTrajectory | SplineTrajectory:
        """The motion with these coefficients, shape [size, n_joints]."""

    def random(self, limits: MotionLimits, rng: np.random.Generator) -> FloatArray:
        """Coefficients of a motion that uses a fair part of the limits, shape [size, n_joints]."""


def anchor_of(basis: Basis, n_joints: int) -> FloatArray:
    """The constant the sum is added to, shape [n_joints]."""
    return np.zeros(n_joints) if basis.start is None else basis.start


@dataclass(frozen=True, eq=False)
class FourierBasis:
    """Finite Fourier series with bias ([Kolyubin2017] eq. 23), at rest at time zero.

    Args:
        period: [s].
        harmonics: number of them.
        start: pose at time zero [rad or m], shape [n_joints]; free when None.
        at_rest: whether velocity and acceleration vanish at time zero.
    """

    period: float
    harmonics: int
    start: FloatArray | None = None
    at_rest: bool = True

    def __post_init__(self) -> None:
        if not self.period > 0.0:
            raise InputError("period", f"{self.period} s", "must be positive")
        if self.size < 1:
            raise InputError(
                "harmonics", f"{self.harmonics}", "at least 2, so that a motion at rest at its start exists"
            )

    @property
    def size(self) -> int:
        return 1 + 2 * self.harmonics - 2 * self.at_rest - (self.start is not None)

    @property
    def raw_coefficients(self) -> FloatArray:
        """Raw coefficients (bias, sines, cosines) of each free one, shape [1 + 2 L, size]."""
        k = np.arange(1.0, self.harmonics + 1.0)
        # Weighted by 1/k: each free coefficient then moves velocities by about the same amount.
        weights = np.concatenate([[1.0], 1.0 / k, 1.0 / k])
        zero = np.zeros(self.harmonics)
        conditions = []
        if self.at_rest:
            conditions += [np.concatenate([[0.0], k, zero]), np.concatenate([[0.0], zero, k**2])]
        if self.start is not None:
            conditions.append(np.concatenate([[1.0], zero, np.ones(self.harmonics)]))
        Z = null_space(np.array(conditions) * weights) if conditions else np.eye(len(weights))
        return weights[:, np.newaxis] * Z

    def matrices(self, t: FloatArray) -> FloatArray:
        w = 2.0 * np.pi / self.period * np.arange(1.0, self.harmonics + 1.0)
        raw = np.zeros((N_DERIVATIVES, len(t), 1 + 2 * self.harmonics))
        raw[0, :, 0] = 1.0
        for order in range(N_DERIVATIVES):
            phase = np.outer(t, w) + order * np.pi / 2
            raw[order, :, 1 : 1 + self.harmonics] = np.sin(phase) * w**order
            raw[order, :, 1 + self.harmonics :] = np.cos(phase) * w**order
        return raw @ self.raw_coefficients

    def trajectory(self, coefficients: FloatArray, joint_names: tuple[str, ...]) -> FourierTrajectory:
        raw = self.raw_coefficients @ coefficients
        offset = raw[0] + anchor_of(self, len(joint_names))
        L = self.harmonics
        return FourierTrajectory(joint_names, self.period, offset, raw[1 : 1 + L].T, raw[1 + L :].T)

    def random(self, limits: MotionLimits, rng: np.random.Generator) -> FloatArray:
        return _scaled_to_limits(self, rng.normal(size=(self.size, len(limits.lower))), limits, rng)


@dataclass(frozen=True, eq=False)
class SplineBasis:
    """Quintic splines with free values at equally spaced knots, at rest at both ends, ending where they start.

    Args:
        period: [s].
        knots: number of them, both ends included.
        start: pose at time zero [rad or m], shape [n_joints]; free when None.
    """

    period: float
    knots: int
    start: FloatArray | None = None

    def __post_init__(self) -> None:
        if not self.period > 0.0:
            raise InputError("period", f"{self.period} s", "must be positive")
        if self.knots < 4:
            raise InputError("knots", f"{self.knots}", "at least 4")

    @property
    def size(self) -> int:
        return self.knots - 1 - (self.start is not None)

    @property
    def _values(self) -> FloatArray:
        """Knot values of each free coefficient, shape [knots, size]: the first and last knot share one."""
        inner = np.vstack([np.zeros(self.knots - 2), np.eye(self.knots - 2), np.zeros(self.knots - 2)])
        if self.start is not None:
            return inner
        ends = np.zeros((self.knots, 1))
        ends[[0, -1]] = 1.0
        return np.hstack([ends, inner])

    def matrices(self, t: FloatArray) -> FloatArray:
        spline = rest_spline(self.period, self._values)
        return np.stack([spline(t, order) for order in range(N_DERIVATIVES)])

    def trajectory(self, coefficients: FloatArray, joint_names: tuple[str, ...]) -> SplineTrajectory:
        return SplineTrajectory(
            joint_names, self.period, self._values @ coefficients + anchor_of(self, len(joint_names))
        )

    def random(self, limits: MotionLimits, rng: np.random.Generator) -> FloatArray:
        return _scaled_to_limits(self, rng.uniform(-1.0, 1.0, size=(self.size, len(limits.lower))), limits, rng)


_START_SAMPLES = 64
"""Instants at which a random start is compared with the limits: only its size is set by them."""


def _scaled_to_limits(
    basis: Basis, coefficients: FloatArray, limits: MotionLimits, rng: np.random.Generator
) -> FloatArray:
    """Each joint's motion centred in its range and stretched until it uses half to all of its tightest limit."""
    P = basis.matrices(np.linspace(0.0, basis.period, _START_SAMPLES, endpoint=False))
    q, qd, qdd, qddd = (phi @ coefficients for phi in P)
    middle = (q.max(axis=0) + q.min(axis=0)) / 2
    room = limits.half_range
    if basis.start is not None:
        middle = np.zeros_like(middle)
        room = np.maximum(np.minimum(limits.upper - basis.start, basis.start - limits.lower), 0.1 * limits.half_range)
    usage = np.maximum.reduce(
        [
            np.abs(q - middle).max(axis=0) / room,
            np.abs(qd).max(axis=0) / limits.velocity,
            np.abs(qdd).max(axis=0) / limits.acceleration,
            np.abs(qddd).max(axis=0) / limits.jerk,
        ]
    )
    stretched = coefficients * (rng.uniform(0.5, 1.0, size=usage.shape) / usage)
    if basis.start is not None:
        return stretched
    # The constant motion is in the family: the coefficients that are closest to it in the least-squares sense are it.
    constant = np.linalg.lstsq(P[0], np.ones(_START_SAMPLES), rcond=None)[0]
    q = P[0] @ stretched
    return stretched + np.outer(constant, limits.middle - (q.max(axis=0) + q.min(axis=0)) / 2)


def search_grid(period: float, count: int) -> FloatArray:
    """Instants of a periodic motion, the end left out since it is the start again."""
    return np.linspace(0.0, period, count, endpoint=False)
