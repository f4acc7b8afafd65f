"""Intervals from fits to redrawn blocks, beside those from the scores of one fit.

The clustered covariance of `intervals` holds the geometry of the rows fixed. A block bootstrap does not: bins of a joint, or of
the recording, are drawn with replacement and the arm is fitted again, so that a direction which a few bins alone show is as
uncertain as it is. Of the two answers the wider one counts.

A redrawn recording has two thirds of the rows, some of them twice: fits to it scatter more for that alone. How much more is seen
on bins of random rows, parted anew for every draw, and taken out of all ways alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.hold_out import kept_together, start_of
from armid.calibration.intervals import ClusteredSpread, bins_of, whitener
from armid.calibration.solve import settled_values
from armid.cluster.workers import InProcess, Workers, in_order
from armid.kinematics.measurement import IntArray, Measurements, joined
from armid.threads import one_blas_thread

_PIECE = 10
"""Fits of one piece of work: a second or two, against some milliseconds to send it."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class RedrawTask:
    """Some redrawn recordings, for whoever does the work.

    Args:
        fit: to all measurements; where to start from.
        measurements: these.
        bins: a bin per configuration, shape [n].
        draws: bins that make up each redrawn recording, shape [k, bins].
    """

    fit: KinematicFit
    measurements: Measurements
    bins: IntArray
    draws: IntArray


@one_blas_thread
def redrawn_values(task: RedrawTask) -> FloatArray:
    """Parameters fitted to every redrawn recording, with the same weights, unknowns and prior, shape [k, p]."""
    blocks = [task.measurements.subset(task.bins == b) for b in range(int(task.bins.max()) + 1)]
    fit = task.fit
    return np.array(
        [
            settled_values(fit.model, joined(blocks[b] for b in drawn), fit.after, fit.settings.solver)
            for drawn in task.draws
        ]
    )


def bootstrapped(
    spread: ClusteredSpread,
    fit: KinematicFit,
    measurements: Measurements,
    count: int,
    *,
    seed: int,
    workers: Workers | None = None,
) -> ClusteredSpread:
    """The spread with what redrawn bins show where that is wider.

    Args:
        spread: from the scores of the fit.
        fit: to these measurements.
        measurements: what was fitted.
        count: redrawn recordings for every way to part them.
        seed: of the draws.
        workers: who fits them; this process by default.
    """
    unit = np.unique(kept_together(measurements), return_inverse=True)[1].astype(np.intp)
    ways = [_whole(bins, unit) for bins in bins_of(fit, measurements).values()]
    if not ways:
        return spread
    rng, number, every = np.random.default_rng(seed), _count(ways[0]), len(ways) * count
    parted = [(bins, rng.integers(0, _count(bins), (count, _count(bins)))) for bins in ways]
    parted += [(_random(rng, unit, number), rng.integers(0, number, (1, number))) for _ in range(count)]
    start = start_of(fit)
    tasks = [
        RedrawTask(fit=start, measurements=measurements, bins=bins, draws=draws[k : k + _PIECE])
        for bins, draws in parted
        for k in range(0, len(draws), _PIECE)
    ]
    values = np.concatenate(in_order(workers or InProcess(), redrawn_values, tasks, "redrawn recordings"))
    factors = [
        _factor(part, _count(bins))
        for part, bins in zip(values[:every].reshape(-1, count, values.shape[1]), ways, strict=True)
    ]
    W = whitener(spread.plain, np.diag(spread.plain) > 0.0)
    inflated = np.sum((W @ _factor(values[every:], number)) ** 2) / np.sum((W @ spread.rows) ** 2)
    return replace(spread, redrawn=tuple(factor / np.sqrt(max(inflated, 1.0)) for factor in factors))


def _count(bins: IntArray) -> int:
    return int(bins.max()) + 1


def _factor(values: FloatArray, bins: int) -> FloatArray:
    """Square-root factor of the variance that redrawn values show, shape [p, draws]."""
    return np.sqrt(bins / ((bins - 1.0) * (len(values) - 1.0))) * (values - values.mean(axis=0)).T


def _whole(bins: IntArray, unit: IntArray) -> IntArray:
    """The same bins with both ends of a length in one."""
    first = np.unique(unit, return_index=True)[1]
    return np.unique(bins[first][unit], return_inverse=True)[1].astype(np.intp)


def _random(rng: np.random.Generator, unit: IntArray, bins: int) -> IntArray:
    """Bins of equal counts without order."""
    return rng.permutation(np.arange(_count(unit)) % bins)[unit]
