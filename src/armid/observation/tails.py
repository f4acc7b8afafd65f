"""How often something rare happens, from recordings in which it hardly happened.

What stands out is counted in blocks longer than its memory. The largest blocks give the tail: excesses over its start are
exponential, of the value or of its square. A tail that is known by m excesses is not known exactly. The chance that a new
block passes a level, averaged over what the tail may be, is `(1 + x / (m b))^-m` where m excesses have the mean b: heavier than
`exp(-x / b)`, and the more so the less was recorded. Excesses that come together in one part of the recordings count as fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray

_TAIL = 0.3
"""Share of the block maxima that the tail is fitted to."""

_ENOUGH = 10
"""Excesses that a tail should have; of few blocks up to half are taken for it."""

_EVIDENCE = 2.0
"""By which the logarithm of the likelihood must favour a light tail: in doubt it is heavy, and alarms fewer than stated."""

_MEMORIES = 2.0
"""Length of a block in memories: what is left of the correlation then is a seventh."""

_SHORTEST_BLOCK = 0.2
"""[s]: contacts last longer than this."""


@dataclass(frozen=True, eq=False)
class Peaks:
    """Largest value of every block.

    Args:
        values: shape [n_blocks].
        part: of the recordings that each block lies in, shape [n_blocks].
        seconds: length of a block.
    """

    values: FloatArray
    part: np.ndarray[tuple[int, ...], np.dtype[np.intp]]
    seconds: float

    @property
    def start(self) -> float:
        """Of the tail."""
        count = len(self.values)
        share = max(_TAIL * count, min(_ENOUGH, 0.5 * count))
        return float(np.sort(self.values)[max(count - 1 - round(share), 0)])

    def excesses(self, power: int) -> tuple[FloatArray, np.ndarray[tuple[int, ...], np.dtype[np.intp]]]:
        """By how much the power of the largest exceeds that of the start, and in which parts."""
        above = self.values > self.start
        return self.values[above] ** power - self.start**power, self.part[above]


def block_peaks(values: FloatArray, ends: Sequence[int], step: float) -> Peaks:
    """Largest values of blocks that are longer than what is remembered.

    Args:
        values: shape [n].
        ends: of the parts of the recordings, samples.
        step: between samples [s].
    """
    length = max(int(np.ceil(max(_MEMORIES * _memory(values, step), _SHORTEST_BLOCK) / step)), 1)
    count = len(values) // length
    middles = length * np.arange(count) + length // 2
    return Peaks(
        values[: count * length].reshape(count, length).max(axis=1, initial=0.0),
        np.searchsorted(np.asarray(ends), middles, side="right"),
        length * step,
    )


def crowding(peaks: Peaks) -> float:
    """By how much excesses that come together tell less than their number: 1 when they come independently.

    The variance of their mean, by parts of the recordings, over that of as many independent exponential ones; and the variance
    of their number over that of chance. The larger counts.
    """
    excess, part = peaks.excesses(1)
    parts = int(peaks.part.max()) + 1
    if parts < 2 or not len(excess):
        return 1.0
    count = np.bincount(part, minlength=parts).astype(float)
    amount = np.bincount(part, weights=excess, minlength=parts)
    share = np.bincount(peaks.part, minlength=parts) / len(peaks.part)
    many, mean = count.sum(), amount.sum() / count.sum()
    few = parts / (parts - 1.0)
    sizes = few * float(np.sum((amount - mean * count) ** 2)) / (many * mean**2)
    numbers = few * float(np.sum((count - many * share) ** 2)) / many
    return max(sizes, numbers)


def rare_level(peaks: Peaks, per_hour: float, crowded: float = 1.0) -> float:
    """The level that is passed so many times an hour.

    Args:
        peaks: of what was recorded.
        per_hour: times an hour.
        crowded: see `crowding`.
    """
    excess, _ = peaks.excesses(1)
    if not len(excess):
        return peaks.start
    rate = len(excess) / (len(peaks.values) * peaks.seconds) * 3600.0
    known = max(len(excess) / max(crowded, 1.0), 1.0)
    heavy, light = (_Tail.through(peaks, power, known) for power in (1, 2))
    tail = light if light.likelihood > heavy.likelihood + _EVIDENCE else heavy
    return tail.level(max(rate / per_hour, 1.0))


@dataclass(frozen=True, kw_only=True)
class _Tail:
    """Values whose power exceeds that of a start by exponentially distributed amounts: 2 for Gaussian tails, 1 for heavier ones.

    Args:
        start: of the tail.
        power: 1 or 2.
        excess: mean of the power's excess.
        known: number of independent excesses that it is known by.
        likelihood: logarithm of the density of the values.
    """

    start: float
    power: int
    excess: float
    known: float
    likelihood: float

    @classmethod
    def through(cls, peaks: Peaks, power: int, known: float) -> _Tail:
        excess, _ = peaks.excesses(power)
        mean = float(excess.mean())
        values = (excess + peaks.start**power) ** (1.0 / power)
        likelihood = float(np.sum(np.log(power * values ** (power - 1)) - np.log(mean) - excess / mean))
        return cls(start=peaks.start, power=power, excess=mean, known=known, likelihood=likelihood)

    def level(self, rarer: float) -> float:
        """What is passed so many times more rarely than the start, averaged over what the tail may be."""
        beyond = self.known * (rarer ** (1.0 / self.known) - 1.0)
        return float((self.start**self.power + self.excess * beyond) ** (1.0 / self.power))


def _memory(z: FloatArray, step: float) -> float:
    """[s] after which the autocorrelation has fallen below 1/e."""
    x = z - z.mean()
    size = 1 << (2 * len(x) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(x, size)) ** 2
    correlation = np.fft.irfft(spectrum)[: len(x) // 2]
    if not len(correlation) or not correlation[0] > 0.0:
        return 0.0
    below = np.flatnonzero(correlation < correlation[0] / np.e)
    return float(below[0]) * step if len(below) else len(x) * step / 2.0
