"""Whether one model predicts a joint's torque worse than another, beyond what chance can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.quantiles import student_quantile
from armid.estimation.run import Run
from armid.identification.thresholds import COMPARISON_CONFIDENCE, TOLERATED_RATIO

BLOCK_SECONDS = 1.0
"""Squared errors are averaged over blocks this long before their scatter is taken: residuals of arms are correlated over
tenths of a second, and samples that close are not independent evidence."""
_CONFIDENCE = COMPARISON_CONFIDENCE.value
TOLERATED = TOLERATED_RATIO.value
_FEWEST_BLOCKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One channel's held-out error under two models.

    Args:
        name: of the channel.
        rmse, rmse_other: of the model judged and of the one it is compared with [N m or N].
        excess: mean of e^2 - (TOLERATED e_other)^2 - floor^2 over blocks [N^2 m^2]; negative is good.
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


class BlockSquares:
    """Mean squared errors of one model over blocks of time, run by run; never across segments.

    Args:
        channels: names.
        seconds: length of the blocks.
    """

    def __init__(self, channels: Sequence[str], seconds: float = BLOCK_SECONDS) -> None:
        self.channels = tuple(channels)
        self.seconds = seconds
        self._means: list[FloatArray] = []
        self._weights: list[float] = []

    def add(self, run: Run, residual: FloatArray, still: npt.NDArray[np.bool_] | None = None) -> None:
        """One more run.

        Args:
            run: the motion.
            residual: shape [n_samples, n_channels].
            still: samples at which the joint of a channel is at rest, which say nothing here: friction may hold anything there.
                Blocks without any other are left out.
        """
        squares = residual**2 if still is None else np.where(still, 0.0, residual) ** 2
        length = max(1, round(self.seconds * run.rate))
        for start, stop in run.segments:
            for first in range(start, stop, length):
                part = slice(first, min(first + length, stop))
                if still is not None and still[part].all():
                    continue
                self._means.append(squares[part].mean(axis=0))
                self._weights.append(float(part.stop - part.start))

    def merge(self, other: BlockSquares) -> None:
        """Those of further runs."""
        self._means += other._means
        self._weights += other._weights

    def __len__(self) -> int:
        return len(self._means)

    @property
    def means(self) -> FloatArray:
        """Shape [blocks, channels]."""
        return np.array(self._means)

    @property
    def shares(self) -> FloatArray:
        """Of the samples in every block; shape [blocks]."""
        weights = np.array(self._weights)
        return weights / weights.sum()


def compared_blocks(
    mine: BlockSquares,
    theirs: BlockSquares,
    *,
    tolerated: float = TOLERATED,
    floor: FloatArray | float = 0.0,
    confidence: float = _CONFIDENCE,
) -> tuple[Comparison, ...]:
    """Compares two models on the same held-out motion, channel by channel.

    Student's distribution over block means of the excess of squared error gives the confidence, shared among channels
    (Bonferroni).

    Args:
        mine: errors of the model judged.
        theirs: of the one it must not be worse than.
        tolerated: ratio of errors up to which a model does not count as worse.
        floor: error that would not matter on top of that [N m or N], shape [n_channels].
        confidence: of the comparison of all channels together.
    """
    if not len(mine):
        return ()
    share = mine.shares
    excess = mine.means - tolerated**2 * theirs.means - np.square(floor)
    mean = share @ excess
    half = _half_width(excess - mean, share, len(mine.channels), confidence)
    rmse, rmse_other = np.sqrt(share @ mine.means), np.sqrt(share @ theirs.means)
    return tuple(
        Comparison(
            name=name,
            rmse=float(rmse[k]),
            rmse_other=float(rmse_other[k]),
            excess=float(mean[k]),
            uncertainty=float(half[k]),
        )
        for k, name in enumerate(mine.channels)
    )


def compared(runs: Sequence[Run], standard: FloatArray, other: FloatArray) -> tuple[Comparison, ...]:
    """Compares two full parameter vectors on held-out runs, channel by channel.

    Args:
        runs: nothing of which was used for either model.
        standard: parameters of the model judged.
        other: of the one it must not be worse than.
    """
    channels = runs[0].channels if len(runs) else ()
    mine, theirs = BlockSquares(channels), BlockSquares(channels)
    for run in runs:
        mine.add(run, run.residuals(standard))
        theirs.add(run, run.residuals(other))
    return compared_blocks(mine, theirs)


def _half_width(deviations: FloatArray, share: FloatArray, channels: int, confidence: float) -> FloatArray:
    """One-sided half width of the mean of each column, at the joint confidence of all channels."""
    count = len(share)
    if count < _FEWEST_BLOCKS:
        return np.full(channels, inf)
    quantile = student_quantile(1.0 - (1.0 - confidence) / channels, count - 1)
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
