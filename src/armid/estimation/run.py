"""One motion as the estimators see it: rows of a source, the measured values, where sampling is uniform."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.cluster.tree import Plus, tree_sum
from armid.errors import InputError, ShapeError
from armid.information.accumulate import accumulate
from armid.information.information import ChannelInformation, Information, total, triangular
from armid.information.status import EstimationError, Status
from armid.kernels.evaluate import evaluate_rows, residuals
from armid.kernels.source import RowSource

_BLOCK = 1024
"""Samples per pass block: a few megabytes of dense rows."""

_TOLD = "_told"
"""Where a run keeps what was made of it."""


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

    def as_recorded(self, values: FloatArray) -> FloatArray:
        """Torques or their errors in the units in which they were recorded, shape [n_samples, n_channels]."""
        return values * np.array(self.torque_scale) if self.torque_scale else values

    @property
    def duration(self) -> float:
        """[s]."""
        return sum(stop - start for start, stop in self.segments) / self.rate

    def information(self) -> Information:
        """One streaming pass, the first time it is asked for."""
        return self.told(_accumulated)

    def told(self, function: Callable[[Run], Information]) -> Information:
        """What a function makes of this motion; kept with it, so that it is found once."""
        known: dict[Callable[[Run], Information], Information] = self.__dict__.setdefault(_TOLD, {})
        if function not in known:
            known[function] = function(self)
        return known[function]

    def __getstate__(self) -> dict[str, Any]:
        """The motion alone: what follows from it is found again where it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != _TOLD}

    def __sizeof__(self) -> int:
        """Bytes of its arrays, by which a worker knows when to put some aside."""
        return self.inputs.nbytes + self.y.nbytes + (0 if self.y_raw is None else self.y_raw.nbytes)

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


def _accumulated(run: Run) -> Information:
    return accumulate(run.source, run.inputs, run.y)


Answer = TypeVar("Answer")


@runtime_checkable
class KeptRuns(Protocol):
    """Runs that are kept somewhere: they know how passes over them are done, and keep their sums."""

    def each(self, function: Callable[..., Answer], *along: Sequence[Any]) -> Iterator[Answer]: ...

    def summed(self, function: Callable[[Run], Information]) -> Information: ...

    def gathered(self, function: Callable[..., Answer], plus: Plus[Answer], *along: Sequence[Any]) -> Answer: ...


def each_run(runs: Sequence[Run], function: Callable[..., Answer], *along: Sequence[Any]) -> Iterator[Answer]:
    """What a function says of every run, in order: one pass, where the runs are.

    Args:
        runs: the motions.
        function: picklable; gives something small.
        along: what else it is given, one of each per run.
    """
    return runs.each(function, *along) if isinstance(runs, KeptRuns) else map(function, runs, *along)


def names_of(runs: Sequence[Run]) -> list[str]:
    """Of the recording of every run; those of one recording follow on one another."""
    return list(each_run(runs, _name_of))


def _name_of(run: Run) -> str:
    return run.name


def summed(runs: Sequence[Run], function: Callable[[Run], Information]) -> Information:
    """The sum of what every run tells, by a function that is picklable; one pass, where the runs are, the first time."""
    if not runs:
        raise InputError("runs", "there are none", "give at least one recording")
    return runs.summed(function) if isinstance(runs, KeptRuns) else total(run.told(function) for run in runs)


def gathered(runs: Sequence[Run], function: Callable[..., Answer], plus: Plus[Answer], *along: Sequence[Any]) -> Answer:
    """The sum of what a function says of every run, along one tree: one pass, where the runs are, and only the sum comes back.

    Args:
        runs: the motions, at least one.
        function, plus: picklable.
        along: what else the function is given, one of each per run.
    """
    if isinstance(runs, KeptRuns):
        return runs.gathered(function, plus, *along)
    return tree_sum(map(function, runs, *along), plus)


def information_of(runs: Sequence[Run]) -> Information:
    """All runs together; channels of the same name merge."""
    return summed(runs, Run.information)


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
