"""Autoregressive models of residuals, fitted over segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.signals.recursive import LANES, filter_packs, packed, unpacked


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
        h = recursive_filter(coefficients, pulse)[0][:, 0]
        if count >= longest or np.abs(h[-count // 4 :]).max() < tolerance * np.abs(h).max():
            return h
        count *= 4


_STABLE = 1.0 - 1e-12
"""Largest radius of a pole: those of a fitted model lie inside the unit circle, but rounding may leave one on its edge."""


def recursive_filter(
    coefficients: FloatArray, x: FloatArray, state: FloatArray | None = None
) -> tuple[FloatArray, FloatArray | None]:
    """Columns of x through 1 / a(z), and the state afterwards.

    As a cascade of second-order sections: the expanded polynomial of a slow, high-order model amplifies rounding until the
    recursion diverges, its pairs of poles do not.

    Args:
        coefficients: (1, a_1, ..., a_m).
        x: shape [n, k].
        state: of an earlier call on the samples before; None at the start.
    """
    if len(coefficients) == 1 or len(x) == 0:
        return x, state
    sections = _sections(tuple(coefficients.tolist()))
    packs = packed(x)
    after = np.zeros((len(packs), len(sections), 2, LANES)) if state is None else np.array(state)
    filter_packs(packs, sections, state=after)
    return unpacked(packs, x.shape[1]), after


@lru_cache(maxsize=32)
def _sections(coefficients: tuple[float, ...]) -> FloatArray:
    """1 / a(z) as rows [1 0 0 1 a1 a2], shape [sections, 6]; the poles nearest the unit circle come last."""
    roots = np.roots(coefficients)
    roots *= np.minimum(1.0, _STABLE / np.maximum(np.abs(roots), 1e-300))
    upper, real = roots[roots.imag > 0.0], np.sort(roots[roots.imag == 0.0].real)
    real = np.append(real, [0.0] * (len(real) % 2)).reshape(-1, 2)
    a1 = np.concatenate([-2.0 * upper.real, -real.sum(axis=1)])
    a2 = np.concatenate([np.abs(upper) ** 2, real.prod(axis=1)])
    one, none = np.ones(len(a1)), np.zeros(len(a1))
    order = np.argsort(np.abs(a2), kind="stable")
    return np.stack([one, none, none, one, a1, a2], axis=1)[order]


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


def autoregression_of(covariance: FloatArray, count: int) -> Autoregression:
    """The recursion of Levinson and Durbin on autocovariances; the order minimises Akaike's information criterion.

    Args:
        covariance: at lags 0, 1, ..., shape [max_order + 1].
        count: samples behind it.
    """
    a, error = np.array([1.0]), float(covariance[0])
    if not error > 0.0 or count < 8:
        return Autoregression(a, float(np.sqrt(max(error, 0.0))))
    best = (count * np.log(error), a, error)
    for order in range(1, min(len(covariance), count // 4 + 1)):
        k = -float(a @ covariance[order:0:-1]) / error
        if not abs(k) < 1.0 or error * (1.0 - k * k) <= 1e-14 * covariance[0]:
            break
        a = np.concatenate([a, [0.0]]) + k * np.concatenate([[0.0], a[::-1]])
        error *= 1.0 - k * k
        score = count * np.log(error) + 2.0 * order
        if score < best[0]:
            best = (score, a, error)
    return Autoregression(best[1], float(np.sqrt(best[2])))
