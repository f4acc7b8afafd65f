"""Where a motion repeats itself, and after which time: for averaging over its repetitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray

_RECURS = 0.03
"""Root-mean-square difference between repetitions, as a fraction of the motion's own spread, below which it repeats itself."""
_AWAY = 0.2
"""Mean square distance, of twice the spread: so far the motion must have gone before it can come back."""
_RESEMBLES = 0.5
"""The same, below which a lag is looked at more closely: a log that stands still for half of its time stays below it."""
_MOST_LAGS = 40
"""Lags that are looked at, shortest first."""
_GRID = 20_000
"""Samples in which a motion is compared with itself."""
_SMOOTHING = 0.05
"""Of the lag, over which the distance is averaged: noise of a single sample says nothing."""
_BESIDE = 3
"""Samples on either side of a proposed lag that are tried."""
_BORDER = 0.1
"""Of a period, left out where the motion comes from another one or goes over into another one."""
_WHOLE = 0.98
"""Of a period that must come again: a log of exactly two has lost a sample or two at its ends."""
_ROUNDS = 6
"""Of refinement; each one squares the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """A motion that comes again.

    Args:
        period: [s].
        start_s, stop_s: between which it does [s]; what is before and after (an approach, standstill) is another motion.
    """

    period: float
    start_s: float
    stop_s: float

    @property
    def count(self) -> int:
        """Whole repetitions."""
        return int((self.stop_s - self.start_s) / self.period + 1.0 - _WHOLE)


def repetition(time: FloatArray, q: FloatArray) -> Repetition | None:
    """The shortest time after which a motion repeats itself, and where it does; None when no whole period comes twice.

    The mean distance between the motion and itself some time later proposes lags. A lag is a period when, over a stretch as long
    as itself at least, the motion in which moves, every piece of the stretch is found again that much later.

    Args:
        time: [s], shape [n_samples]; strictly increasing.
        q: positions, shape [n_samples, n_joints].
    """
    if len(q) < 100 or not np.isfinite(q).all() or not (np.diff(time) > 0).all():
        return None
    grid = np.linspace(time[0], time[-1], min(_GRID, int((time[-1] - time[0]) / np.median(np.diff(time))) + 1))
    x = _on(grid, time, q)
    x = x - x.mean(axis=0)
    spread = float((x**2).sum(axis=1).mean())
    if spread <= 0.0:
        return None
    for rough in _candidates(lag_distance(x) / (2.0 * spread)):
        # What does not repeat itself, such as the way there, moves the minimum by a sample or two.
        near = range(max(1, rough - _BESIDE), rough + _BESIDE + 1)
        lag, run = max(((k, _longest_run(_near(x, k, spread))) for k in near), key=lambda pair: _length(pair[1]))
        if _length(run) < _WHOLE * lag or not _moves(x[run.start : run.stop], spread):
            continue
        step = float(grid[1] - grid[0])
        first, last = float(grid[run.start]), float(grid[run.stop - 1]) + lag * step
        period = _refined(time, q, lag * step, first, last)
        return _without_borders(period, first, last, float(time[0]), float(time[-1]))
    return None


def _without_borders(period: float, first: float, last: float, begin: float, end: float) -> Repetition:
    """The repetition without a tenth of a period where another motion goes over into it, if two whole ones remain.

    Positions there agree before velocity and torque do.
    """
    start = first + (_BORDER * period if first > begin else 0.0)
    stop = last - (_BORDER * period if last < end - 0.5 * _BORDER * period else 0.0)
    inner = Repetition(period=period, start_s=start, stop_s=min(stop, end))
    return inner if inner.count >= 2 else Repetition(period=period, start_s=first, stop_s=min(last, end))


def _on(grid: FloatArray, time: FloatArray, q: FloatArray) -> FloatArray:
    return np.column_stack([np.interp(grid, time, column) for column in q.T])


def _candidates(distance: FloatArray) -> list[int]:
    """Lags at which the distance has a local minimum, after the motion has been away; shortest first."""
    away = np.flatnonzero(distance > _AWAY)
    if len(away) == 0:
        return []
    inner = np.arange(max(1, away[0]), len(distance) - 1)
    lowest = (distance[inner] <= distance[inner - 1]) & (distance[inner] <= distance[inner + 1])
    return [int(k) for k in inner[lowest & (distance[inner] < _RESEMBLES)][:_MOST_LAGS]]


def _near(x: FloatArray, lag: int, spread: float) -> npt.NDArray[np.bool_]:
    """Where the motion is found again some samples later, or half a sample beside it: no period is a whole number of them."""
    square = ((x[lag:] - x[:-lag]) ** 2).sum(axis=1)
    beside = (np.gradient(x, axis=0)[:-lag] ** 2).sum(axis=1) / 4.0
    width = max(1, int(_SMOOTHING * lag))
    smooth = np.convolve(square - beside, np.full(width, 1.0 / width), mode="same")
    return np.asarray(smooth < 2.0 * spread * _RECURS**2)


def _length(run: slice) -> int:
    return int(run.stop - run.start)


def _longest_run(near: npt.NDArray[np.bool_]) -> slice:
    """The longest stretch of yes."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], near.astype(np.int8), [0]])))
    if len(edges) == 0:
        return slice(0, 0)
    starts, stops = edges[::2], edges[1::2]
    k = int(np.argmax(stops - starts))
    return slice(int(starts[k]), int(stops[k]))


def _moves(x: FloatArray, spread: float) -> bool:
    """Whether a stretch is more than standstill."""
    own = float(((x - x.mean(axis=0)) ** 2).sum(axis=1).mean())
    return own > _AWAY * spread


def _refined(time: FloatArray, q: FloatArray, period: float, first: float, last: float) -> float:
    """The period to a small part of a sample: Gauss-Newton on the distance to the motion as many periods later as there are.

    A shift by k periods is k times as sensitive to the period, and is tried once fewer periods have brought it near.
    """
    for k in range(1, max(1, int((last - first) / period + 1e-6) - 1) + 1):
        for _ in range(_ROUNDS):
            t = time[(time >= first) & (time + k * period <= last)]
            if len(t) < 20:
                break
            here, later = _on(t, time, q), _on(t + k * period, time, q)
            slope = np.gradient(later, t, axis=0)
            change = float((slope * (here - later)).sum() / (slope**2).sum()) / k
            period += change
            if abs(change) < 1e-9 * period:
                break
    return period


def lag_distance(x: FloatArray) -> FloatArray:
    """Mean square distance between x[k] and x[k + lag], for lags up to a little more than half the length, by FFT."""
    count = len(x)
    size = 2 ** int(np.ceil(np.log2(2 * count)))
    X = np.fft.rfft(x, size, axis=0)
    correlation = np.fft.irfft(np.abs(X) ** 2, size, axis=0).sum(axis=1)[: int(0.55 * count) + 1]
    power = np.concatenate([[0.0], np.cumsum((x**2).sum(axis=1))])
    lags = np.arange(len(correlation))
    head, tail = power[count - lags], power[count] - power[lags]
    return np.asarray((head + tail - 2.0 * correlation) / (count - lags))
