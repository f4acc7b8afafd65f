"""Runs of any length in flat memory: what does not fit is put aside in a temporary file and read back run by run."""

from __future__ import annotations

import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import IO, overload

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run
from armid.information.information import Information, total
from armid.kernels.source import RowSource
from armid.memory import give_back

HELD_BYTES = 16 << 20
"""Of all runs together that are held in memory: 47,000 samples of seven joints; longer motion is put aside."""


class Runs(Sequence[Run]):
    """Runs that are loaded when they are asked for; the last one loaded stays at hand, of the last few sequences used.

    Args:
        load: gives the run at an index.
        lengths: samples of every run.
    """

    def __init__(self, load: Callable[[int], Run], lengths: Sequence[int]) -> None:
        self._load = load
        self.lengths = tuple(lengths)
        self._held: tuple[int, Run] | None = None
        self._information: Information | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        if isinstance(index, slice):
            chosen = range(len(self))[index]
            return Runs(lambda k: self[chosen[k]], [self.lengths[k] for k in chosen])
        k = range(len(self))[index]
        held = self._held
        if held is None or held[0] != k:
            self._held = None
            self._held = held = k, self._load(k)
            _let_go_of_others(self)
        return held[1]

    def __iter__(self) -> Iterator[Run]:
        yield from (self[k] for k in range(len(self)))
        give_back()

    def information(self) -> Information:
        """Of all runs together: one pass over them, the first time it is asked for."""
        if self._information is None:
            self._information = total(run.information() for run in self)
        return self._information

    def map(self, change: Callable[[Run], Run]) -> Runs:
        """The same runs, each changed whenever it is loaded."""
        return Runs(lambda k: change(self[k]), self.lengths)


_MOST_HOLDING = 3
"""Sequences that have a run at hand: one that is read, what it is changed into, and one beside it. A run takes 20 MB, and a fit
makes a dozen sequences of the same motion."""

_HOLDING: OrderedDict[int, weakref.ref[Runs]] = OrderedDict()
_HOLDING_LOCK = Lock()


def _let_go_of_others(runs: Runs) -> None:
    """The sequence has a run at hand; the one that used its own longest ago lets it go."""
    with _HOLDING_LOCK:
        _HOLDING[id(runs)] = weakref.ref(runs)
        _HOLDING.move_to_end(id(runs))
        while len(_HOLDING) > _MOST_HOLDING:
            other = _HOLDING.popitem(last=False)[1]()
            if other is not None:
                other._held = None


def map_runs(runs: Sequence[Run], change: Callable[[Run], Run]) -> Sequence[Run]:
    """Every run changed: at once when they are in memory, else whenever one is loaded."""
    return runs.map(change) if isinstance(runs, Runs) else tuple(change(run) for run in runs)


def lengths_of(runs: Sequence[Run]) -> tuple[int, ...]:
    """Samples of every run, without loading any."""
    return runs.lengths if isinstance(runs, Runs) else tuple(len(run) for run in runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a run is in the file, and what of it is small.

    Args:
        run: with empty arrays.
        offset: in numbers from the beginning of the file.
        samples: how many.
        raw: whether the torque before filtering is there.
    """

    run: Run
    offset: int
    samples: int
    raw: bool


class RunShelf:
    """Takes runs one by one and gives them back as a sequence.

    Args:
        held_bytes: up to which they stay in memory.
    """

    def __init__(self, held_bytes: int = HELD_BYTES) -> None:
        self._limit = held_bytes
        self._bytes = 0
        self._held: list[Run] = []
        self._places: list[_Place] = []
        self._file: IO[bytes] | None = None
        self._end = 0

    def append(self, run: Run) -> None:
        """One more run; once there are too many for memory, all go to the file."""
        if self._file is None:
            self._held.append(run)
            self._bytes += sum(array.nbytes for array in _arrays(run))
            if self._bytes <= self._limit:
                return
            self._file = tempfile.TemporaryFile(prefix="armid-runs-", buffering=0)  # noqa: SIM115 - lives as long as we do
            weakref.finalize(self, self._file.close)
            for held in self._held:
                self._put(held)
            self._held.clear()
            return
        self._put(run)

    def _put(self, run: Run) -> None:
        assert self._file is not None
        for array in _arrays(run):
            # Columns are contiguous in the file as they are in memory.
            np.ascontiguousarray(array.T).tofile(self._file)
        # Fresh arrays: a view of nothing would keep the whole in memory.
        small = replace(
            run,
            inputs=np.empty((0, run.inputs.shape[1])),
            y=np.empty((0, run.y.shape[1])),
            y_raw=None,
            segments=run.segments,
        )
        self._places.append(_Place(run=small, offset=self._end, samples=len(run), raw=run.y_raw is not None))
        self._end += sum(array.size for array in _arrays(run))

    def runs(self) -> Sequence[Run]:
        """All of them, in order."""
        if self._file is None:
            return tuple(self._held)
        places = tuple(self._places)
        return Runs(lambda k: self._get(places[k]), [place.samples for place in places])

    def _get(self, place: _Place) -> Run:
        file = self._file
        assert file is not None
        file.seek(place.offset * np.dtype(np.float64).itemsize)

        def read(columns: int) -> FloatArray:
            flat = np.fromfile(file, dtype=np.float64, count=columns * place.samples)
            return flat.reshape(columns, place.samples).T

        source: RowSource = place.run.source
        inputs, y = read(len(source.inputs)), read(len(source.channels))
        return replace(place.run, inputs=inputs, y=y, y_raw=read(len(source.channels)) if place.raw else None)


def _arrays(run: Run) -> tuple[FloatArray, ...]:
    return (run.inputs, run.y) if run.y_raw is None else (run.inputs, run.y, run.y_raw)
