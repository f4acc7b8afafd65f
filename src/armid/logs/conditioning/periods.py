"""Motions that were repeated: the mean of the repetitions, and how far they scatter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.log import Channel, Log

_RECURS = 0.03
"""Root-mean-square difference between repetitions, as a fraction of the motion's own spread, below which it repeats itself."""


@dataclass(frozen=True, eq=False)
class Averaged:
    """Mean over repetitions and variance of that mean, shape [samples per period, n]."""

    mean: FloatArray
    variance: FloatArray
    repetitions: int


def averaged(values: FloatArray, per_period: int) -> Averaged:
    """The mean of whole repetitions; the variance of the mean is the scatter over K (K - 1).

    Args:
        values: uniform samples, shape [n_samples, n].
        per_period: samples per period.
    """
    count = len(values) // per_period
    if count < 1:
        raise InputError("period", f"{per_period} samples long, but only {len(values)} samples are there")
    folded = values[: count * per_period].reshape(count, per_period, -1)
    mean = folded.mean(axis=0)
    if count == 1:
        return Averaged(mean, np.zeros_like(mean), 1)
    return Averaged(mean, folded.var(axis=0, ddof=1) / count, count)


def detected_period(log: Log) -> float | None:
    """The shortest time after which the motion repeats itself [s]; None when it does not, or only once fits in the log."""
    q = log[Channel.POSITION]
    time = log.time
    if len(q) < 100 or not np.isfinite(q).all() or not (np.diff(time) > 0).all():
        return None
    step = float(np.median(np.diff(time)))
    grid = np.arange(time[0], time[-1], max(step, (time[-1] - time[0]) / 20_000))
    x = np.column_stack([np.interp(grid, time, column) for column in q.T])
    x = x - x.mean(axis=0)
    spread = float((x**2).sum(axis=1).mean())
    if spread <= 0.0:
        return None
    distance = _lag_distance(x) / (2.0 * spread)
    limit = _RECURS**2
    # Away from lag zero first: the motion must leave before it can come back.
    away = np.flatnonzero(distance > 0.2)
    if len(away) == 0:
        return None
    back = np.flatnonzero(distance[away[0] :] < limit)
    if len(back) == 0:
        return None
    start = away[0] + int(back[0])
    end = start + int(np.argmax(distance[start:] >= limit)) if (distance[start:] >= limit).any() else len(distance)
    best = start + int(np.argmin(distance[start:end]))
    return float(best * (grid[1] - grid[0]))


def _lag_distance(x: FloatArray) -> FloatArray:
    """Mean square distance between x[k] and x[k + lag], for lags up to half the length, by FFT."""
    count = len(x)
    size = 2 ** int(np.ceil(np.log2(2 * count)))
    X = np.fft.rfft(x, size, axis=0)
    correlation = np.fft.irfft(np.abs(X) ** 2, size, axis=0).sum(axis=1)[: count // 2 + 1]
    power = np.concatenate([[0.0], np.cumsum((x**2).sum(axis=1))])
    lags = np.arange(len(correlation))
    head, tail = power[count - lags], power[count] - power[lags]
    return (head + tail - 2.0 * correlation) / (count - lags)
