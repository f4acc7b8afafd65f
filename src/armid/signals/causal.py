"""Velocity and acceleration from past samples only, everything delayed by the same known time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError


@dataclass(frozen=True)
class LocalPolynomial:
    """Derivatives at the middle of a window, from the least-squares polynomial through it; [Khosla1985] sec. 5.1 in general.

    Value and both derivatives come from one polynomial, and torque passes the same smoothing: all that enters the model is
    late by exactly half a window, so nothing is out of step.

    Args:
        rate: samples per second [Hz].
        half_window: samples on either side of the middle.
        degree: of the polynomial; 2 with a half window of 2 gives the slope formula of [Khosla1985].
    """

    rate: float
    half_window: int = 10
    degree: int = 4

    def __post_init__(self) -> None:
        if not self.rate > 0.0:
            raise InputError("rate", f"{self.rate} Hz", "a positive number")
        if not (self.degree >= 2 and 2 * self.half_window >= self.degree):
            raise InputError(
                "half_window", f"{self.half_window} for degree {self.degree}", "degree 2 or more, and enough samples"
            )

    @property
    def width(self) -> int:
        return 2 * self.half_window + 1

    @property
    def delay(self) -> float:
        """[s]."""
        return self.half_window / self.rate

    @cached_property
    def weights(self) -> FloatArray:
        """Rows that give value, first and second derivative when multiplied with a window, shape [3, width]."""
        fit, scale = self.fit
        return np.stack([fit[0], fit[1] / scale, 2.0 * fit[2] / scale**2])

    @cached_property
    def slopes(self) -> FloatArray:
        """Rows that give the first derivative at the start and at the end of a window, shape [2, width]."""
        fit, scale = self.fit
        powers = np.arange(self.degree + 1)
        return np.stack([(powers * end ** np.maximum(powers - 1, 0)) @ fit / scale for end in (-1.0, 1.0)])

    @cached_property
    def fit(self) -> tuple[FloatArray, float]:
        """From a window to the coefficients of its polynomial in t / scale, shape [degree + 1, width]; and the scale [s]."""
        t = np.arange(-self.half_window, self.half_window + 1) / self.rate
        scale = max(self.half_window / self.rate, 1e-300)
        V = np.vander(t / scale, self.degree + 1, increasing=True)
        return np.asarray(np.linalg.pinv(V), dtype=np.float64), scale


class CausalDifferentiator:
    """Samples in, delayed states out.

    Args:
        polynomial: how derivatives are taken.
        n_joints: columns of position.
        n_torques: columns of torque.
    """

    def __init__(self, polynomial: LocalPolynomial, n_joints: int, n_torques: int) -> None:
        self.polynomial = polynomial
        self.n_joints = n_joints
        width = polynomial.width
        # Two copies of the ring one after the other: every window is one contiguous slice.
        self._ring = np.zeros((2 * width, n_joints + n_torques))
        self._count = 0
        self._weights = np.vstack([polynomial.weights, polynomial.slopes])
        self.one_way = np.ones(n_joints, dtype=np.bool_)

    def reset(self) -> None:
        """Forgets the window, after a gap in the stream."""
        self._count = 0

    def push(self, q: FloatArray, torque: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """One sample; once the window is full, the state half a window ago.

        Afterwards `one_way` says which joints did not turn back within the window. Where one did, its torque is smoothed over the
        jump of Coulomb friction, and the sign of its velocity is not.

        Returns:
            (q, qd, qdd) side by side [3 n_joints] and torque [n_torques] `polynomial.delay` seconds ago, or None.
        """
        width, n = self.polynomial.width, self.n_joints
        place = self._count % width
        for row in (place, place + width):
            self._ring[row, :n] = q
            self._ring[row, n:] = torque
        self._count += 1
        if self._count < width:
            return None
        start = (place + 1) % width
        out = self._weights @ self._ring[start : start + width]
        v = out[[1, 3, 4], :n]
        self.one_way = (v.min(axis=0) > 0.0) | (v.max(axis=0) < 0.0)
        return out[:3, :n].reshape(-1), out[0, n:]
