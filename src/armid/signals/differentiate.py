"""First and second derivatives of uniformly sampled columns."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray

Derivatives = tuple[FloatArray, FloatArray]

# Taylor coefficients of central differences with error O(h^8), offsets 1..4.
_FIRST_8 = (4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0)
_SECOND_8 = (8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0)


class Differentiator(StrEnum):
    """How velocity and acceleration are derived from position."""

    CENTRAL = "central"
    """(x[k+1] - x[k-1]) / 2h, applied twice for the acceleration [Halper2024]. Amplitude -(wh)^2/6."""
    CENTRAL_8 = "central-8"
    """Eighth-order central differences on nine points for both derivatives: exact for anything the low-pass leaves."""
    LEAST_SQUARES = "least-squares"
    """Slope of the parabola through five points [Khosla1985]; more smoothing, no delay."""
    LEAST_SQUARES_CAUSAL = "least-squares-causal"
    """The same on past samples only, two samples late; everything else is delayed along with it."""
    SAVITZKY_GOLAY = "savitzky-golay"
    """Derivatives of a local quartic over a window of about one period of the cut-off."""
    SPECTRAL = "spectral"
    """Exact for periodic motion: multiplication by i w in the Fourier domain. Needs whole periods."""
    SPLINE = "spline"
    """Derivatives of a cubic smoothing spline whose smoothing matches the cut-off."""


def derivatives(
    x: FloatArray,
    rate: float,
    method: Differentiator,
    *,
    cutoff: float = np.inf,
    periodic: bool = False,
    keep: slice = slice(None),
) -> Derivatives:
    """First and second derivative of each column.

    Args:
        x: uniform samples, shape [n_samples, n].
        rate: [Hz].
        method: how.
        cutoff: of what is in the signal [Hz]; window and smoothing of the local fits follow it.
        periodic: the last sample is followed by the first.
        keep: samples wanted; far fewer are computed where the method allows it.

    Returns:
        x' and x'' at the samples kept. `LEAST_SQUARES_CAUSAL` returns both four samples late.
    """
    if method is Differentiator.SPECTRAL:
        first, second = _spectral(x, rate)
        return first[keep], second[keep]
    if method is Differentiator.CENTRAL_8 and len(x) > 8:
        return _central_8(_extended(x, 4, periodic), rate, range(len(x))[keep])
    function: Callable[[FloatArray, float], Derivatives]
    match method:
        case Differentiator.CENTRAL:
            function, reach = central, 2
        case Differentiator.LEAST_SQUARES:
            function, reach = least_squares, 4
        case Differentiator.LEAST_SQUARES_CAUSAL:
            function, reach = _least_squares_causal, 8
        case Differentiator.SAVITZKY_GOLAY:
            window = _savitzky_golay_window(rate, cutoff, len(x))
            function, reach = (lambda y, r: _savitzky_golay(y, r, window)), window
        case Differentiator.CENTRAL_8:
            function, reach = central, 2  # too short for nine points
        case _:
            function, reach = (lambda y, r: spline(y, r, cutoff)), int(4 * rate / cutoff) if cutoff < rate else 16
    reach = min(reach, len(x) - 1)
    wide = _extended(x, reach, periodic)
    first, second = function(wide, rate)
    return first[reach:-reach][keep], second[reach:-reach][keep]


def _extended(x: FloatArray, reach: int, periodic: bool) -> FloatArray:
    """The signal continued at both ends: around the period, or by odd reflection, which keeps slope and value."""
    if periodic:
        return np.concatenate([x[-reach:], x, x[:reach]])
    return np.concatenate([2.0 * x[0] - x[reach:0:-1], x, 2.0 * x[-1] - x[-2 : -reach - 2 : -1]])


def central(x: FloatArray, rate: float) -> Derivatives:
    """Second-order central differences, twice."""
    first = np.gradient(x, 1.0 / rate, axis=0)
    return first, np.gradient(first, 1.0 / rate, axis=0)


def _central_8(wide: FloatArray, rate: float, at: range) -> Derivatives:
    """Eighth-order central differences at some samples of a signal continued by four at both ends."""
    first, second = (np.empty((wide.shape[1], len(at))).T for _ in range(2))
    # One column after the other, in place: they stay in cache.
    for x, slope, bend in zip(wide.T, first.T, second.T, strict=True):
        _nine_points(x, at, slope, bend)
    first *= rate
    second *= rate**2
    return first, second


def _nine_points(x: FloatArray, at: range, slope: FloatArray, bend: FloatArray) -> None:
    """Differences of one column, per step; see `_central_8`."""

    def shifted(k: int) -> FloatArray:
        return x[at.start + 4 + k : at.stop + 4 + k : at.step]

    slope[:] = 0.0
    np.multiply(shifted(0), -205.0 / 72.0, out=bend)
    part = np.empty_like(slope)
    for k, (a, b) in enumerate(zip(_FIRST_8, _SECOND_8, strict=True), start=1):
        ahead, behind = shifted(k), shifted(-k)
        np.subtract(ahead, behind, out=part)
        part *= a
        slope += part
        np.add(ahead, behind, out=part)
        part *= b
        bend += part


def least_squares(x: FloatArray, rate: float) -> Derivatives:
    """Slope (-2 f[-2] - f[-1] + f[1] + 2 f[2]) / 10 T, twice: of the least-squares parabola [Khosla1985]."""
    first = _five_point(x, rate)
    return first, _five_point(first, rate)


def _least_squares_causal(x: FloatArray, rate: float) -> Derivatives:
    """The same from past samples: the first derivative is two samples late, the second four; both are given four late."""
    first, second = least_squares(x, rate)
    return _delayed(first, 4), _delayed(second, 4)


def _five_point(x: FloatArray, rate: float) -> FloatArray:
    out = np.zeros_like(x)
    out[2:-2] = (2.0 * (x[4:] - x[:-4]) + x[3:-1] - x[1:-3]) * (rate / 10.0)
    return out


def _delayed(x: FloatArray, by: int) -> FloatArray:
    """The signal some samples later; the first value is held before it."""
    return np.concatenate([np.repeat(x[:1], by, axis=0), x[:-by]])


def _savitzky_golay_window(rate: float, cutoff: float, count: int) -> int:
    """Odd window 2 M + 1 whose own -3 dB point lies at the cut-off.

    [Schafer2011]: at (order + 1) / (3.2 M - 4.6) of half the rate; the 4.6 is left out, which costs wide windows nothing.
    """
    width = 5.0 / 3.2 * rate / cutoff if cutoff < rate else 7.0
    return int(np.clip(2 * round(width / 2.0) + 1, 7, max(7, count // 2 * 2 - 1)))


def _savitzky_golay(x: FloatArray, rate: float, window: int) -> Derivatives:
    """Derivatives of the quartic fitted to each window."""
    from scipy.signal import savgol_filter

    h = 1.0 / rate
    first = savgol_filter(x, window, 4, deriv=1, delta=h, axis=0)
    return np.asarray(first), np.asarray(savgol_filter(x, window, 4, deriv=2, delta=h, axis=0))


def _spectral(x: FloatArray, rate: float) -> Derivatives:
    """Multiplication by i w and (i w)^2; x holds whole periods."""
    w = 2.0j * np.pi * np.fft.rfftfreq(len(x), 1.0 / rate)
    X = np.fft.rfft(x, axis=0)
    if len(x) % 2 == 0:
        # The Nyquist line has no sign, hence no slope.
        w = w.copy()
        w[-1] = 0.0
    column = w.reshape(-1, *(1,) * (x.ndim - 1))
    return np.fft.irfft(column * X, len(x), axis=0), np.fft.irfft(column**2 * X, len(x), axis=0)


def spline(x: FloatArray, rate: float, cutoff: float) -> Derivatives:
    """Derivatives of the cubic smoothing spline with frequency response 1 / (1 + (f / cutoff)^4).

    Penalty lambda with `sum (y - f)^2 + lambda int f''^2` responds as 1 / (1 + lambda h w^4).
    """
    from scipy.interpolate import make_smoothing_spline

    t = np.arange(len(x)) / rate
    lam = rate / (2.0 * np.pi * cutoff) ** 4 if cutoff < rate else 0.0
    first, second = np.empty_like(x), np.empty_like(x)
    for j in range(x.shape[1]):
        curve = make_smoothing_spline(t, x[:, j], lam=lam)
        first[:, j], second[:, j] = curve.derivative(1)(t), curve.derivative(2)(t)
    return first, second
