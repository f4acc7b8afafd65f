"""Rows of base parameters and imperfections beside the recorded torque, thinned out, in units of their noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.estimation.imperfections import (
    FOLDS,
    BlockFactors,
    channel_lengths,
    correlation_length,
)
from armid.estimation.recording import torque_source
from armid.estimation.reversals import noise_along
from armid.estimation.run import Run, each_run, gathered
from armid.estimation.runs import before, lengths_of
from armid.identifiability.base import BaseParameters
from armid.identification.elapsed import Place, places
from armid.identification.sensors import motion_of
from armid.information.information import triangular, triangular_by_channel
from armid.kernels.evaluate import evaluate_rows, residuals
from armid.parameters.space import named_parameters
from armid.rows.imperfections import ColumnReference, Columns, Imperfection

MOST_SAMPLES = 12_000
"""Of the training motion on which imperfections are weighed; residuals hold together for ten samples and more, so that thinning
out a longer log loses little, and the cost does not grow with it."""

_AT_ONCE = 1024
"""Samples whose rows are held at a time: ten megabytes of seven joints with all imperfections."""


def reference_of(runs: Sequence[Run], standard: FloatArray, *, recorded_velocity: bool) -> ColumnReference:
    """Scales of the training motion, in one pass; of two sides of the drives, that behind the gears."""
    found = list(each_run(runs, _Scales(np.array(standard))))
    speed, load = (np.max([part[k] for part in found], axis=0) for k in range(2))
    sums = np.sum([part[2] for part in found], axis=0)
    count, total, squares, acceleration = sums
    return ColumnReference(
        standard=np.array(standard),
        speed=speed,
        load=load,
        size=np.sqrt(np.maximum(squares / count - (total / count) ** 2, 0.0)),
        acceleration=np.sqrt(acceleration / count),
        recorded_velocity=recorded_velocity,
    )


@dataclass(frozen=True, eq=False)
class _Scales:
    """Of one run: largest speeds and loads, and the sums that means are formed of, shape [4, n_joints]."""

    standard: FloatArray

    def __call__(self, run: Run) -> tuple[FloatArray, FloatArray, FloatArray]:
        n = torque_source([run]).robot.n_joints
        links = np.array([not one.of_joint for one in named_parameters(tuple(run.source.columns))])
        rigid, torque = run.predicted(np.where(links, self.standard, 0.0))[:, :n], run.y[:, :n]
        squares = (torque, torque**2, run.inputs[:, 2 * n : 3 * n] ** 2)
        sums = np.array([np.full(n, float(len(run))), *(values.sum(axis=0) for values in squares)])
        return np.abs(run.inputs[:, n : 2 * n]).max(axis=0), np.abs(rigid).max(axis=0), sums


def every_of(runs: Sequence[Run], most: int = MOST_SAMPLES) -> int:
    """Every how many samples of these runs are looked at, so that there are not more than `most`."""
    return max(1, -(-sum(lengths_of(runs)) // most))


@dataclass(frozen=True, eq=False)
class RowNoise:
    """Noise of rows without imperfections; factors of tolerances were chosen beside it and mean something beside it only.

    Args:
        sigma: per channel far from reversals [N m or N].
        rows_per_sample: how many samples tell as much as one independent one.
        classes: by name of a channel, or of its class near reversals, as the estimate has it [N m or N].
        lengths: samples of every channel that tell as much as one independent one; `rows_per_sample` is their median.
    """

    sigma: FloatArray
    rows_per_sample: float
    classes: Mapping[str, float]
    lengths: FloatArray

    def weights(self, run: Run) -> FloatArray:
        """Of the rows of a run, shape [n_samples, n_channels].

        Rows near a joint's own reversal weigh by their own noise: friction turns around there at a time that no velocity tells,
        which looks like a torque that is early or late.
        """
        far = np.array([self.classes[name] for name in run.channels])
        return far / (noise_along(run, self.classes) * self.sigma * np.sqrt(self.rows_per_sample))


class RowsBeside:
    """Rows `[A Z y]` of some runs, thinned out.

    Args:
        runs: the motions.
        base: whose columns A has.
        items: whose columns Z has.
        most: samples that are looked at.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        base: BaseParameters,
        items: Sequence[Imperfection],
        *,
        most: int = MOST_SAMPLES,
    ) -> None:
        self._runs, self._base, self._items = runs, base, items
        self._every = every_of(runs, most)

    def noise(self, estimate: Estimate) -> RowNoise:
        """Noise of every channel, and how many samples make one independent one."""
        sigma = np.array([estimate.sigma[name] for name in self._runs[0].channels])
        found = each_run(self._runs, _CorrelationLengths(estimate.standard, estimate.sigma, self._every))
        lengths = channel_lengths(list(found))
        return RowNoise(sigma, float(np.median(lengths)), estimate.sigma, lengths)

    def thinned(self, noise: RowNoise, most: int) -> RowNoise:
        """Noise that was found on up to `most` samples, for rows as thin as these: fewer make one independent one."""
        ratio = every_of(self._runs, most) / self._every
        return replace(noise, rows_per_sample=max(1.0, noise.rows_per_sample * ratio))

    def blocks(self, reference: ColumnReference, noise: RowNoise, folds: int = FOLDS) -> BlockFactors:
        """Factors of blocks of time."""
        tolerances = np.array([item.tolerance for item in self._items])
        return BlockFactors(len(self._base), self._factors(reference, noise, folds), tolerances)

    def factor(self, reference: ColumnReference, noise: RowNoise) -> FloatArray:
        """One triangular factor of everything."""
        return self._factors(reference, noise, 1)[0]

    def _factors(self, reference: ColumnReference, noise: RowNoise, folds: int) -> list[FloatArray]:
        """Triangular factors of blocks of time: those of every run, put together."""
        lengths = lengths_of(self._runs)
        thin = [-(-length // self._every) for length in lengths]
        rows = _RowFactors(
            base=tuple(self._base.independent),
            items=tuple(self._items),
            reference=reference,
            noise=noise,
            every=self._every,
            thinned=sum(thin),
            folds=folds,
        )
        width = len(self._base) + len(self._items) + 1
        found = gathered(self._runs, rows, _stacked, places(self._runs, self._items), before(thin))
        # In one layout of memory, so that what follows rounds alike wherever they come from.
        return [np.array(found.get(k, np.zeros((width, width))), order="C") for k in range(folds)]


def _stacked(parts: Sequence[dict[int, FloatArray]]) -> dict[int, FloatArray]:
    """Factors of blocks of time of a few runs, block by block."""
    blocks = sorted({k for part in parts for k in part})
    same = {k: [part[k] for part in parts if k in part] for k in blocks}
    return {k: own[0] if len(own) == 1 else triangular(np.vstack(own)) for k, own in same.items()}


@dataclass(frozen=True, eq=False)
class _CorrelationLengths:
    """Of the residuals of one run by channel, and its thinned samples."""

    standard: FloatArray
    sigma: Mapping[str, float]
    every: int

    def __call__(self, run: Run) -> tuple[list[float], int]:
        thin = slice(None, None, self.every)
        left = residuals(run.source, run.inputs[thin], run.y[thin], self.standard) / noise_along(run, self.sigma)[thin]
        return [correlation_length(column) for column in left.T], len(left)


@dataclass(frozen=True, eq=False, kw_only=True)
class _RowFactors:
    """Triangular factors of the rows `[A Z y]` of one run, by block of time.

    Args:
        base: columns of A.
        items: whose columns Z has.
        reference, noise: where columns are taken, and what rows weigh.
        every: of the samples is looked at.
        thinned: samples of all runs that are.
        folds: blocks of time.
    """

    base: tuple[int, ...]
    items: tuple[Imperfection, ...]
    reference: ColumnReference
    noise: RowNoise
    every: int
    thinned: int
    folds: int

    def __call__(self, run: Run, place: Place, seen: int) -> dict[int, FloatArray]:
        """Of a run at its place among all, before which so many samples are looked at."""
        factors: dict[int, FloatArray] = {}
        for start, dense in self._dense(run, place):
            block = np.minimum((seen + start + np.arange(len(dense))) * self.folds // self.thinned, self.folds - 1)
            for k in np.unique(block).tolist():
                factor = triangular_by_channel(dense if self.folds == 1 else dense[block == k])
                factors[k] = triangular(np.vstack([factors[k], factor])) if k in factors else factor
        return factors

    def _dense(self, run: Run, place: Place) -> Iterator[tuple[int, FloatArray]]:
        """Weighted rows of a run at its place among all, in pieces: its start, rows [n, channels, columns]."""
        thin = slice(None, None, self.every)
        inputs, y, weights = run.inputs[thin], run.y[thin], self.noise.weights(run)[thin]
        Z = Columns(motion_of(run, every=self.every, place=place), self.reference).of(self.items)
        for start in range(0, len(y), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            A = evaluate_rows(run.source, inputs[part])[:, :, list(self.base)]
            rows = np.concatenate([A, Z[part], y[part, :, np.newaxis]], axis=2)
            rows *= weights[part, :, np.newaxis]
            yield start, rows
