"""The density of the noise by frequency, freed from what the fit took out of the residuals.

A fit takes noise away where its rows are: of a slow motion at low frequencies, and most of it when the log is short. Residuals
then look quieter there than the noise was, and just there it decides how well parameters are known. With A the rows in units of
their noise and B = (A^T A)^-1, the residual r = (I - A B A^T) e has at a frequency f, where the density S changes little,

    E |r(f)|^2 = S(f) (L - a(f)^* B a(f)),    a(f) = sum_t A_t exp(-2 pi i f t),

for L samples. What torque measures and models leave out (friction, drift, filtered noise of sensors) never grows with
frequency; the density that explains |r(f)|^2 best among those that never do is the pooled one of isotonic regression, which
lends to frequencies that the fit has emptied the density of their neighbours above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

_FLOOR = 1e-5
"""Of the density at rest, what is left beyond a low-pass: a recursion of a few terms cannot follow it deeper."""

_SHORT = 1 << 16
"""Samples of a log up to which the fit's share matters; of a longer one it is less than a hundredth."""


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
        """Of the noise, never growing with frequency, shape [n_frequencies]."""
        starts = np.arange(0, self.power.shape[1], self.width)
        power, left = (np.add.reduceat(values[channel], starts) for values in (self.power, self.left))
        found = np.repeat(falling(power, left), np.diff([*starts, self.power.shape[1]]))
        return np.maximum(found, _FLOOR * found[0])

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
    power = sum(np.abs(np.fft.rfft(_folded(s.residuals, 0), axis=0).T) ** 2 for s in stretches)
    taken = _taken(runs, estimate, B) if sum(lengths_of(runs)) <= _SHORT else 0.0
    left = count - repeated[:, np.newaxis] * taken + np.zeros_like(power)
    width = round(_POOLED * max(1.0, _GRID * len(stretches) / count))
    heard = left > _EMPTY * count
    # A fit with as many parameters as samples leaves nothing anywhere: what little there is then counts at its least share.
    deaf = ~heard.any(axis=1)
    left[deaf], heard[deaf] = _EMPTY * count, True
    return NoiseSpectrum(np.where(heard, power, 0.0), np.where(heard, left, 0.0), count, width)


def _folded(values: FloatArray, start: int) -> FloatArray:
    """Sums of values that are whole turns of the grid apart: their transform is that of the values, at its frequencies."""
    out = np.zeros((_GRID, *values.shape[1:]))
    first = 0
    while first < len(values):
        at = (start + first) % _GRID
        part = values[first : first + _GRID - at]
        out[at : at + len(part)] += part
        first += len(part)
    return out


def _taken(runs: Sequence[Run], estimate: Estimate, B: FloatArray) -> FloatArray:
    """a(f)^* B a(f) by channel, summed over stretches, shape [channels, n_frequencies]."""
    columns = estimate.base.independent
    root: FloatArray = np.linalg.cholesky((B + B.T) / 2.0 + 1e-14 * np.diag(np.diag(B))).astype(np.float64)
    total = np.zeros((len(runs[0].channels), _GRID // 2 + 1))
    folded: FloatArray | None = None
    place = 0
    for run in runs:
        seen = [np.flatnonzero(np.isin(columns, own)) for own in compiled_rows(run.source).channel_columns]
        along = noise_along(run, estimate.sigma)
        for part, begins, A in run.blocks():
            if folded is None or (begins and not (run.continues and part.start == 0)):
                total += 0.0 if folded is None else _share(folded, seen, root)
                folded, place = np.zeros((_GRID, len(total), len(columns))), 0
            folded += _folded(A[:, :, columns] / along[part][:, :, np.newaxis], place)
            place += len(A)
    return total if folded is None else total + _share(folded, seen, root)


def _share(folded: FloatArray, seen: Sequence[npt.NDArray[np.intp]], root: FloatArray) -> FloatArray:
    """Of one stretch."""
    by_channel = [np.fft.rfft(folded[:, c, own], axis=0) @ root[own] for c, own in enumerate(seen)]
    return np.array([np.sum(np.abs(a) ** 2, axis=1) for a in by_channel])


def falling(power: FloatArray, weight: FloatArray) -> FloatArray:
    """The values s that never grow and make squares `power` of variance `weight * s` most likely, shape [n].

    Neighbours that would grow are pooled until none does (isotonic regression).
    """
    sums: list[tuple[float, float, int]] = []
    for p, w in zip(power.tolist(), weight.tolist(), strict=True):
        block = (p, w, 1)
        while sums and sums[-1][0] * block[1] <= block[0] * sums[-1][1]:
            before = sums.pop()
            block = before[0] + block[0], before[1] + block[1], before[2] + block[2]
        sums.append(block)
    return np.repeat([p / max(w, 1e-300) for p, w, _ in sums], [n for _, _, n in sums])
