"""One motion as the estimators see it: rows of a source, the measured values, where sampling is uniform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import InputError, ShapeError
from armid.information.accumulate import accumulate
from armid.information.information import ChannelInformation, Information, total, triangular
from armid.information.status import EstimationError, Status
from armid.kernels.evaluate import evaluate_rows, residuals
from armid.kernels.source import RowSource

_BLOCK = 4096
"""Samples per pass block: a few megabytes of dense rows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """A motion nothing of which is shared with another run.

    Args:
        name: of the motion, for messages and for leaving it out.
        source: what was measured.
        inputs: shape [n_samples, len(source.inputs)].
        y: measured values, shape [n_samples, len(source.channels)].
        segments: (start, stop) of stretches of uniform sampling; the whole by default.
        rate: samples per second [Hz].
        y_raw: the measured values before low-pass filtering, where known.
        continues: whether it goes on where the run before it in its sequence ended: one motion, cut for memory.
        torque_scale: by which values are multiplied per channel to be as they were recorded, when gains of sensors were undone;
            errors are told in recorded units.
        smear: time over which the low-pass spreads a jump [s], one period of its cut-off; zero where nothing was filtered.
        reversals: for every channel, where its own joint turned around, in samples from the first one of this run (between two
            samples, and before or after the run where that is known), ascending; empty when the source knows no joints.
    """

    name: str
    source: RowSource
    inputs: FloatArray
    y: FloatArray
    segments: tuple[tuple[int, int], ...] = ()
    rate: float = 1.0
    y_raw: FloatArray | None = None
    continues: bool = False
    torque_scale: tuple[float, ...] = ()
    smear: float = 0.0
    reversals: tuple[FloatArray, ...] = ()

    def __post_init__(self) -> None:
        x = samples("inputs", self.inputs, len(self.source.inputs))
        y = samples("y", self.y, len(self.source.channels))
        if len(x) != len(y):
            raise ShapeError("y", y.shape, f"[{len(x)}, {len(self.source.channels)}]")
        object.__setattr__(self, "inputs", x)
        object.__setattr__(self, "y", y)
        if not self.segments:
            object.__setattr__(self, "segments", ((0, len(x)),))

    def __len__(self) -> int:
        return len(self.y)

    @property
    def channels(self) -> tuple[str, ...]:
        return self.source.channels

    @property
    def duration(self) -> float:
        """[s]."""
        return sum(stop - start for start, stop in self.segments) / self.rate

    def information(self) -> Information:
        """One streaming pass, the first time it is asked for."""
        return self._information

    @cached_property
    def _information(self) -> Information:
        return accumulate(self.source, self.inputs, self.y)

    def blocks(self, *, backward: bool = False) -> Iterator[tuple[slice, bool, FloatArray]]:
        """Dense rows block by block, never across segments: (samples, whether a segment starts here, rows [b, channels, p]).

        Args:
            backward: from the last block to the first; a segment then starts at its end. Rows within a block stay in order.
        """
        for start, stop in reversed(self.segments) if backward else self.segments:
            firsts = range(start, stop, _BLOCK)
            for first in reversed(firsts) if backward else firsts:
                part = slice(first, min(first + _BLOCK, stop))
                begins = part.stop == stop if backward else first == start
                yield part, begins, evaluate_rows(self.source, self.inputs[part])

    def predicted(self, standard: npt.ArrayLike) -> FloatArray:
        """A pi for a full parameter vector, shape [n_samples, n_channels]."""
        return self.y - self.residuals(standard)

    def residuals(self, standard: npt.ArrayLike) -> FloatArray:
        """Y - A pi, shape [n_samples, n_channels]."""
        return residuals(self.source, self.inputs, self.y, standard)

    def window(self, start: int, stop: int) -> Run:
        """Samples start to stop alone, as one stretch of uniform sampling."""
        return replace(
            self,
            inputs=self.inputs[start:stop],
            y=self.y[start:stop],
            y_raw=None if self.y_raw is None else self.y_raw[start:stop],
            segments=((0, stop - start),),
            reversals=tuple(times - start for times in self.reversals),
        )

    def with_measured(self, y: FloatArray) -> Run:
        """The same motion with other measured values."""
        return replace(self, y=y)


@runtime_checkable
class SummedRuns(Protocol):
    """Runs that keep their Information themselves."""

    def information(self) -> Information: ...


def information_of(runs: Sequence[Run]) -> Information:
    """All runs together; channels of the same name merge."""
    if not runs:
        raise InputError("runs", "there are none", "give at least one recording")
    return runs.information() if isinstance(runs, SummedRuns) else total(run.information() for run in runs)


def weighted_information(runs: Sequence[Run], weights: Sequence[FloatArray]) -> Information:
    """Information with every row multiplied by its own weight; one streaming pass.

    Args:
        runs: the motions.
        weights: per run, shape [n_samples, n_channels].
    """
    return total(_weighted(run, w) for run, w in zip(runs, weights, strict=True))


def _weighted(run: Run, weights: FloatArray) -> Information:
    p = len(run.source.columns)
    factors = [np.zeros((p + 1, p + 1)) for _ in run.channels]
    seen = [np.zeros(p, dtype=bool) for _ in run.channels]
    for part, _, A in run.blocks():
        for c, factor in enumerate(factors):
            rows = np.column_stack([A[:, c], run.y[part, c]]) * weights[part, c, np.newaxis]
            seen[c] |= np.any(A[:, c] != 0.0, axis=0)
            factors[c] = triangular(np.vstack([factor, rows]))
    channels = []
    for c, name in enumerate(run.channels):
        columns = np.flatnonzero(seen[c])
        factor = triangular(factors[c][:, [*columns, p]])
        channels.append(ChannelInformation(name, columns, factor, float(len(run))))
    return Information(tuple(run.source.columns), tuple(channels))


def check_rows(runs: Sequence[Run], n_parameters: int) -> None:
    """Refuses fewer rows than parameters.

    Raises:
        EstimationError: with the counts.
    """
    rows = sum(run.y.size for run in runs)
    if rows < n_parameters:
        raise EstimationError(Status.TOO_FEW_ROWS, f"{rows} rows for {n_parameters} parameters")
