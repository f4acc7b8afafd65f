"""The density of the noise by frequency, freed from what the fit took out of the residuals.

A fit takes noise away where its rows are: of a slow motion at low frequencies, and most of it when the log is short. Residuals
then look quieter there than the noise was, and just there it decides how well parameters are known. With A the rows in units of
their noise and B = (A^T A)^-1, the residual r = (I - A B A^T) e has at a frequency f, where the density S changes little,

    E |r(f)|^2 = S(f) (L - a(f)^* B a(f)),    a(f) = sum_t A_t exp(-2 pi i f t),

for L samples, whole or of a block of them. Long recordings are looked at in blocks, whose squares are added: the more there
are, the better the density is known. Frequencies are pooled, from zero on, until residuals hold at least half of the noise of
each pool: what the fit has emptied borrows the density of the neighbours above, and nothing is assumed of its shape elsewhere
(noise of positions, differentiated twice, grows with frequency up to the low-pass; a resonance has a peak).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.autoregression import Autoregression, autoregression_of
from armid.estimation.estimate import Estimate
from armid.estimation.noise import ResidualStretch
from armid.estimation.reversals import noise_along
from armid.estimation.run import Run
from armid.estimation.runs import lengths_of
from armid.kernels.evaluate import compiled_rows

_GRID = 2048
"""Frequencies at which densities are looked at, in a turn: 0.02 Hz apart at ordinary conditioned rates."""

_EMPTY = 0.01
"""Share of the noise at a frequency below which residuals say nothing about it: an offset takes all of it at rest."""

_POOLED = 8
"""Independent values of the periodogram that are always pooled: sixteen degrees of freedom."""

_HELD = 0.5
"""Least share of its noise that the residuals of a pool hold: they then say more about it than the fit took."""

_FLOOR = 1e-5
"""Of the largest density, what is left beyond a low-pass: a recursion of a few terms cannot follow it deeper."""

_SHORT = 1 << 15
"""Samples of a log up to which the fit's share is looked at: it falls with their number, and what it costs grows with it."""


@dataclass(frozen=True, eq=False)
class NoiseSpectrum:
    """Residuals by frequency, from zero to half the rate.

    Args:
        power: |r(f)|^2, summed over stretches, shape [channels, n_frequencies].
        left: samples whose noise the residuals still hold, shape [channels, n_frequencies].
        count: samples.
        width: neighbouring frequencies that are always pooled: the few lowest decide, and the highest of few is mostly chance.
    """

    power: FloatArray
    left: FloatArray
    count: int
    width: int = 1

    def density(self, channel: int) -> FloatArray:
        """Of the noise, the same within a pool, shape [n_frequencies]."""
        starts = np.arange(0, self.power.shape[1], self.width)
        size = np.diff([*starts, self.power.shape[1]])
        power, left = (np.add.reduceat(values[channel], starts) for values in (self.power, self.left))
        found = np.repeat(pooled(power, left, self.count * size), size)
        return np.maximum(found, _FLOOR * found.max())

    def models(self, max_order: int) -> tuple[Autoregression, ...]:
        """An autoregression per channel."""
        covariances = (np.fft.irfft(self.density(c), _GRID)[: max_order + 1] for c in range(len(self.power)))
        return tuple(autoregression_of(covariance, self.count) for covariance in covariances)


def noise_spectrum(
    stretches: Sequence[ResidualStretch],
    runs: Sequence[Run],
    estimate: Estimate,
    B: FloatArray,
    *,
    repeated: FloatArray,
) -> NoiseSpectrum:
    """Of the residuals of an estimate.

    Args:
        stretches: its residuals, of the runs.
        runs: the motions.
        estimate: for its noise and base parameters.
        B: (A^T W A)^-1.
        repeated: of `repeat_growth`, shape [channels]: what is the same in m periods has an m-th of the independent samples,
            and the fit takes m times the share of it.
    """
    count = sum(len(s.residuals) for s in stretches)
    power = sum(np.abs(np.fft.rfft(block, _GRID, axis=0).T) ** 2 for s in stretches for block in _blocks(s.residuals))
    taken = _taken(runs, estimate, B) if sum(lengths_of(runs)) <= _SHORT else 0.0
    left = count - repeated[:, np.newaxis] * taken + np.zeros_like(power)
    width = round(_POOLED * max(1.0, _GRID * len(stretches) / count))
    heard = left > _EMPTY * count
    # A fit with as many parameters as samples leaves nothing anywhere: what little there is then counts at its least share.
    deaf = ~heard.any(axis=1)
    left[deaf], heard[deaf] = _EMPTY * count, True
    return NoiseSpectrum(np.where(heard, power, 0.0), np.where(heard, left, 0.0), count, width)


def _blocks(values: FloatArray) -> Iterator[FloatArray]:
    return (values[first : first + _GRID] for first in range(0, len(values), _GRID))


def _taken(runs: Sequence[Run], estimate: Estimate, B: FloatArray) -> FloatArray:
    """a(f)^* B a(f) by channel, summed over blocks, shape [channels, n_frequencies]."""
    columns = estimate.base.independent
    values, vectors = np.linalg.eigh((B + B.T) / 2.0)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    total = np.zeros((len(runs[0].channels), _GRID // 2 + 1))
    block, own = np.zeros((0, len(total), len(columns))), list[npt.NDArray[np.intp]]()
    for run in runs:
        seen = [np.flatnonzero(np.isin(columns, felt)) for felt in compiled_rows(run.source).channel_columns]
        along = noise_along(run, estimate.sigma)
        for part, begins, A in run.blocks():
            if begins and not (run.continues and part.start == 0):
                total += _share(block, own, root)
                block = block[:0]
            own = seen
            block = np.concatenate([block, A[:, :, columns] / along[part][:, :, np.newaxis]])
            while len(block) >= _GRID:
                total += _share(block[:_GRID], own, root)
                block = block[_GRID:]
    return total + _share(block, own, root)


def _share(rows: FloatArray, seen: Sequence[npt.NDArray[np.intp]], root: FloatArray) -> FloatArray:
    """Of one block of rows, shape [n_samples, channels, columns]; nothing of an empty one."""
    if not len(rows):
        return np.zeros((rows.shape[1], _GRID // 2 + 1))
    by_channel = [np.fft.rfft(rows[:, c, own], _GRID, axis=0) @ root[own] for c, own in enumerate(seen)]
    return np.array([np.sum(np.abs(a) ** 2, axis=1) for a in by_channel])


def pooled(power: FloatArray, left: FloatArray, whole: FloatArray) -> FloatArray:
    """Densities of pools of neighbours, each as small as it can be and still hold its share of the noise, shape [n].

    Args:
        power: squares of residuals, shape [n].
        left: samples whose noise they hold, shape [n].
        whole: samples there would be without a fit, shape [n].
    """
    ends, first = [0], 0
    for end in range(1, len(power) + 1):
        if left[first:end].sum() >= _HELD * whole[first:end].sum():
            ends.append(end)
            first = end
    # What is left over at the top belongs to the last pool; a fit that took most of everything leaves a single one.
    ends = [*(ends[:-1] if len(ends) > 1 else ends), len(power)]
    sums = [(power[a:b].sum() / max(left[a:b].sum(), 1e-300), b - a) for a, b in pairwise(ends)]
    return np.repeat([density for density, _ in sums], [size for _, size in sums])
