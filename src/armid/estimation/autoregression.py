"""Autoregressive models of residuals, fitted over segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray, read_only


@dataclass(frozen=True, eq=False)
class Autoregression:
    """e_t = innovation_t - sum_k a_k e_(t-k).

    Args:
        coefficients: (1, a_1, ..., a_m), shape [m + 1].
        innovation: standard deviation of the innovations.
    """

    coefficients: FloatArray
    innovation: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", read_only(self.coefficients))

    @property
    def order(self) -> int:
        return len(self.coefficients) - 1

    @property
    def gain(self) -> float:
        """Standard deviation at zero frequency over that of the innovations: 1 / |a(1)|."""
        return 1.0 / abs(float(self.coefficients.sum()))

    def variance(self) -> float:
        """Variance of the process: innovation variance times the energy of its impulse response."""
        return self.innovation**2 * float(np.sum(impulse_response(self.coefficients) ** 2))

    def correlation_length(self) -> float:
        """Samples per independent sample: spectral density at zero over the variance; at least 1."""
        return max((self.gain * self.innovation) ** 2 / max(self.variance(), 1e-300), 1.0)

    def squared_correlation(self) -> float:
        """Sum over all lags of the squared autocorrelation: samples per independent square; 1 for white noise."""
        h = impulse_response(self.coefficients)
        size = 1 << (2 * len(h) - 1).bit_length()
        density = np.abs(np.fft.rfft(h, size)) ** 2
        covariance = np.fft.irfft(density, size)
        return float(np.sum(covariance**2) / max(float(covariance[0] ** 2), 1e-300))


def impulse_response(coefficients: FloatArray, *, tolerance: float = 1e-6, longest: int = 1 << 17) -> FloatArray:
    """Of 1 / a(z), long enough that what is cut off is negligible."""
    count = 256
    while True:
        pulse = np.zeros((count, 1))
        pulse[0] = 1.0
        h = recursive_filter(coefficients, pulse, np.zeros((max(len(coefficients) - 1, 1), 1)))[0][:, 0]
        if count >= longest or np.abs(h[-count // 4 :]).max() < tolerance * np.abs(h).max():
            return h
        count *= 4


_BLOCK = 64
"""Samples that the recursion takes at once: small matrix products instead of one step per sample."""


def recursive_filter(coefficients: FloatArray, x: FloatArray, state: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns of x through 1 / a(z), and the state afterwards.

    Within a block y = H (x - P y_before): H holds the impulse response, P what earlier outputs still say.

    Args:
        coefficients: (1, a_1, ..., a_m).
        x: shape [n, k].
        state: the last outputs, the newest last, shape [max(m, 1), k]; zero at the start.
    """
    m = len(coefficients) - 1
    if m == 0 or len(x) == 0:
        return x, state
    H, P = _block_matrices(coefficients)
    out, before = np.empty(x.shape), state
    for start in range(0, len(x), _BLOCK):
        part = x[start : start + _BLOCK]
        n = len(part)
        out[start : start + n] = H[:n, :n] @ (part - P[:n] @ before)
        before = out[start : start + n][-m:] if n >= m else np.vstack([before, out[start : start + n]])[-m:]
    return out, np.array(before)


def _block_matrices(coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower triangular impulse response, shape [BLOCK, BLOCK], and weights of the m outputs before, shape [BLOCK, m]."""
    m = len(coefficients) - 1
    h = np.zeros(_BLOCK)
    h[0] = 1.0
    for i in range(1, _BLOCK):
        past = h[max(i - m, 0) : i][::-1]
        h[i] = -float(coefficients[1 : len(past) + 1] @ past)
    lag = np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK))
    P = np.zeros((_BLOCK, m))
    for i in range(min(_BLOCK, m)):
        P[i, i:] = coefficients[:i:-1][: m - i]
    return np.where(lag >= 0, h[np.maximum(lag, 0)], 0.0), P


def fit_autoregression(segments: Sequence[FloatArray], *, max_order: int) -> Autoregression:
    """Burg's recursion over several segments; the order minimises Akaike's information criterion.

    The Bayesian one would leave out a slow, weak part beside fast noise, and that part decides how well offsets are known.

    Args:
        segments: residuals of uniform stretches, each shape [n].
        max_order: highest order tried.
    """
    usable = [np.asarray(s, dtype=np.float64) for s in segments if len(s) > 2]
    count = sum(len(s) for s in usable)
    power = sum(float(s @ s) for s in usable) / max(count, 1)
    if power == 0.0 or count < 8:
        return Autoregression(np.array([1.0]), float(np.sqrt(power)))
    longest = min(max_order, count // 4, min(len(s) for s in usable) - 2)
    forward, backward = [s[1:] for s in usable], [s[:-1] for s in usable]
    a, error = np.array([1.0]), power
    best = (count * np.log(power), a, power)
    for order in range(1, longest + 1):
        cross = sum(float(f @ b) for f, b in zip(forward, backward, strict=True))
        size = sum(float(f @ f) + float(b @ b) for f, b in zip(forward, backward, strict=True))
        if size == 0.0:
            break
        k = -2.0 * cross / size
        a = np.concatenate([a, [0.0]]) + k * np.concatenate([[0.0], a[::-1]])
        error *= 1.0 - k * k
        if error <= 1e-14 * power:
            break
        score = count * np.log(error) + 2.0 * order
        if score < best[0]:
            best = (score, a, error)
        forward, backward = (
            [(f + k * b)[1:] for f, b in zip(forward, backward, strict=True)],
            [(b + k * f)[:-1] for f, b in zip(forward, backward, strict=True)],
        )
    return Autoregression(best[1], float(np.sqrt(best[2])))
