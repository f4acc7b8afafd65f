"""Whether one model predicts a joint's torque worse than another, beyond what chance can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run

BLOCK_SECONDS = 1.0
"""Squared errors are averaged over blocks this long before their scatter is taken: residuals of arms are correlated over
tenths of a second, and samples that close are not independent evidence."""
CONFIDENCE = 0.99
"""Of the comparison of all joints together; each joint gets its share of the remaining percent."""
TOLERATED = 1.1
"""Ratio of errors up to which a model does not count as worse. Estimated parameters carry noise that a description which
happens to be exact does not; a tenth is far more than that noise costs and far less than any mistake does."""
FEWEST_BLOCKS = 3


@dataclass(frozen=True, slots=True)
class Comparison:
    """One channel's held-out error under two models.

    Args:
        name: of the channel.
        rmse, rmse_other: of the model judged and of the one it is compared with [N m or N].
        excess: mean of e^2 - (TOLERATED e_other)^2 over blocks [N^2 m^2]; negative is good.
        uncertainty: half width of the one-sided interval of that mean; infinite with too little data.
    """

    name: str
    rmse: float
    rmse_other: float
    excess: float
    uncertainty: float

    @property
    def worse(self) -> bool:
        """Worse by more than is tolerated, beyond the confidence of the comparison."""
        return self.excess > self.uncertainty


def compared(runs: Sequence[Run], standard: FloatArray, other: FloatArray) -> tuple[Comparison, ...]:
    """Compares two full parameter vectors on held-out runs, channel by channel.

    The excess of squared error is averaged over blocks of a second; Student's distribution over these block means gives
    the confidence, shared among channels (Bonferroni).

    Args:
        runs: nothing of which was used for either model.
        standard: parameters of the model judged.
        other: of the one it must not be worse than.
    """
    mine, theirs = ([run.residuals(values) for run in runs] for values in (standard, other))
    return compared_residuals(runs, mine, theirs)


def compared_residuals(
    runs: Sequence[Run],
    mine_of: Sequence[FloatArray],
    theirs_of: Sequence[FloatArray],
    *,
    tolerated: float = TOLERATED,
    confidence: float = CONFIDENCE,
    seconds: float = BLOCK_SECONDS,
) -> tuple[Comparison, ...]:
    """The same from residuals, for models with different rows.

    Args:
        runs: for their channels, rates and segments.
        mine_of, theirs_of: residuals of both models, per run, shape [n_samples, n_channels].
        tolerated: ratio of errors up to which a model does not count as worse.
        confidence: of the comparison of all channels together.
        seconds: length of the blocks over which squared errors are averaged.
    """
    if not runs:
        return ()
    names = runs[0].channels
    blocks = [
        block for run, a, b in zip(runs, mine_of, theirs_of, strict=True) for block in block_means(run, a, b, seconds)
    ]
    mine, theirs, weights = (np.array(column) for column in zip(*blocks, strict=True))
    share = weights / weights.sum()
    excess = mine - tolerated**2 * theirs
    mean = share @ excess
    half = half_width(excess - mean, share, len(names), confidence)
    rmse, rmse_other = np.sqrt(share @ mine), np.sqrt(share @ theirs)
    return tuple(
        Comparison(name, *(float(x[k]) for x in (rmse, rmse_other, mean, half))) for k, name in enumerate(names)
    )


def block_means(
    run: Run, residual: FloatArray, other: FloatArray, seconds: float
) -> Iterator[tuple[FloatArray, FloatArray, float]]:
    """Mean squared errors of both models per channel in every block, and the samples in it; never across segments."""
    mine, theirs = residual**2, other**2
    length = max(1, round(seconds * run.rate))
    for start, stop in run.segments:
        for first in range(start, stop, length):
            part = slice(first, min(first + length, stop))
            yield mine[part].mean(axis=0), theirs[part].mean(axis=0), float(part.stop - part.start)


def half_width(deviations: FloatArray, share: FloatArray, channels: int, confidence: float) -> FloatArray:
    """One-sided half width of the mean of each column, at the joint confidence of all channels."""
    from scipy.stats import t

    count = len(share)
    if count < FEWEST_BLOCKS:
        return np.full(channels, inf)
    quantile = float(t.ppf(1.0 - (1.0 - confidence) / channels, count - 1))
    variance = share**2 @ deviations**2 * count / (count - 1)
    return quantile * np.sqrt(variance)


def stacked(comparisons: Sequence[Comparison]) -> tuple[float, float]:
    """Root of the mean squared error over all channels, of both models; NaN when nothing was compared."""
    if not comparisons:
        return nan, nan
    return (
        sqrt(sum(c.rmse**2 for c in comparisons) / len(comparisons)),
        sqrt(sum(c.rmse_other**2 for c in comparisons) / len(comparisons)),
    )
