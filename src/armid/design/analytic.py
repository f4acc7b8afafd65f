"""The analytic bounds of the [Halper2024] (eqs. 3.55d-e) as constraints on the coefficients, with gradients.

    (|bias - middle| + sum_k amplitude_k) <= half range        sum_k k w amplitude_k <= velocity limit

They hold at every instant by themselves, at the price of excluding many motions that would fit. Eq. 3.55f without its division
by the number of harmonics follows from these two: no term of a sum of amplitudes exceeds the sum.
"""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.motions.basis import FourierBasis, anchor_of
from armid.motions.limits import MotionLimits


class AnalyticBounds:
    """Usage of the two bounds by coefficients of a Fourier basis.

    Args:
        basis: family of motions.
        limits: margins already taken off.
    """

    def __init__(self, basis: FourierBasis, limits: MotionLimits) -> None:
        self.harmonics = basis.harmonics
        self.raw = basis.raw_coefficients
        self.anchor = anchor_of(basis, len(limits.lower))
        self.limits = limits
        self.frequencies = 2.0 * np.pi / basis.period * np.arange(1.0, basis.harmonics + 1.0)

    def _parts(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Bias from the middle [n], sines and cosines [L, n], amplitudes [L, n]."""
        raw, L = self.raw @ coefficients, self.harmonics
        sine, cosine = raw[1 : 1 + L], raw[1 + L :]
        return raw[0] + self.anchor - self.limits.middle, sine, cosine, np.hypot(sine, cosine)

    def usage(self, coefficients: FloatArray) -> FloatArray:
        """Position bounds of all joints, then velocity bounds, over their limits, shape [2 n]."""
        bias, _, _, amplitude = self._parts(coefficients)
        position = (np.abs(bias) + amplitude.sum(axis=0)) / self.limits.half_range
        return np.concatenate([position, self.frequencies @ amplitude / self.limits.velocity])

    def pull(self, weights: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Gradient of `sum(weights * usage)` by the coefficients, shape [size, n]."""
        bias, sine, cosine, amplitude = self._parts(coefficients)
        n = len(bias)
        by_position, by_velocity = weights[:n] / self.limits.half_range, weights[n:] / self.limits.velocity
        by_amplitude = by_position + np.outer(self.frequencies, by_velocity)
        # An amplitude of zero has no direction; zero is one of its subgradients.
        share = by_amplitude / np.where(amplitude > 0.0, amplitude, 1.0)
        raw_bar = np.vstack([np.sign(bias) * by_position, share * sine, share * cosine])
        return self.raw.T @ raw_bar
