"""Motions that repeat themselves: what the residual does alike in every period is told only once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.noise import ResidualStretch

_SAME = 0.03
"""Root mean square difference of positions one period apart, over their spread: closer than this the motion repeats itself."""
_SHORTEST_SECONDS = 1.0
"""No excitation has a shorter period, and noise that slow is in the autoregression anyway."""


def period_of(stretch: ResidualStretch) -> int | None:
    """Samples after which a motion starts again; None when it does not, not within its half, or was interrupted."""
    if stretch.positions.shape[1] == 0 or not stretch.alone:
        return None
    q = stretch.positions - stretch.positions.mean(axis=0)
    spread = float(np.sum(q.var(axis=0)))
    first, last = round(_SHORTEST_SECONDS * stretch.rate), len(q) // 2
    if spread == 0.0 or last <= first:
        return None
    apart = differences(q)
    # A slow motion resembles itself a little later, too: the period is where it comes back after having been away.
    away = np.maximum.accumulate(apart) > 10.0 * _SAME**2 * spread
    back = np.flatnonzero(away[first : last + 1] & (apart[first : last + 1] < _SAME**2 * spread))
    if len(back) == 0:
        return None
    near = slice(first + int(back[0]), min(first + int(back[0]) + first, last + 1))
    return near.start + int(np.argmin(apart[near]))


def differences(q: FloatArray) -> FloatArray:
    """Mean squared difference of samples by lag, summed over columns, shape [n_samples // 2 + 1]."""
    count = len(q)
    size = 1 << (2 * count - 1).bit_length()
    # Column by column: the transforms of a long motion are larger than the motion.
    columns = (np.fft.irfft(np.abs(np.fft.rfft(column, size)) ** 2, size)[: count // 2 + 1] for column in q.T)
    cross = sum(columns, np.zeros(count // 2 + 1))
    energy = np.concatenate([[0.0], np.cumsum(np.sum(q**2, axis=1))])
    lags = np.arange(count // 2 + 1)
    pairs = count - lags
    return np.asarray((energy[pairs] + (energy[-1] - energy[lags]) - 2.0 * cross) / pairs)


def repeat_growth(stretches: Sequence[ResidualStretch]) -> FloatArray:
    """By how much the variance of estimates grows because residuals repeat with the motion, shape [n_channels]; 1 without.

    With a share s of the residual that is the same in each of m periods, m periods tell as much about that share as one:
    variance times (1 - s) + m s. The share is the correlation of residuals one period apart. Stretches weigh by their length.
    """
    growth, weight = np.zeros(stretches[0].residuals.shape[1]), 0
    for stretch in stretches:
        r = stretch.residuals
        period = period_of(stretch)
        factor = np.ones(r.shape[1])
        if period is not None:
            a, b = r[:-period], r[period:]
            power = np.sqrt(np.sum(a**2, axis=0) * np.sum(b**2, axis=0))
            share = np.clip(np.sum(a * b, axis=0) / np.maximum(power, 1e-300), 0.0, 1.0)
            factor = 1.0 - share + len(r) / stretch.share / period * share
        growth += len(r) * factor
        weight += len(r)
    return growth / max(weight, 1)
