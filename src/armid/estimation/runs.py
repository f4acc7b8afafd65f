"""Runs of any length in flat memory: what does not fit is put aside in a temporary file, or kept by the workers of a cluster."""

from __future__ import annotations

import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import IO, Any, overload

import numpy as np

from armid.arrays import FloatArray
from armid.cluster.tree import Plus, branch_heights, tree_sum
from armid.cluster.workers import Kept, Workers
from armid.estimation.run import Answer, Run, each_run
from armid.information.information import Information, added, total
from armid.kernels.source import RowSource
from armid.memory import give_back
from armid.notes import Note

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
        self._loaded = 0
        self._sums: dict[Callable[[Run], Information], Information] = {}

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
            self._loaded += 1
            if self._loaded % _GIVEN_BACK_AFTER == 0:
                give_back()
            self._held = held = k, self._load(k)
            _let_go_of_others(self)
        return held[1]

    def __iter__(self) -> Iterator[Run]:
        yield from (self[k] for k in range(len(self)))
        give_back()

    def each(self, function: Callable[..., Answer], *along: Sequence[Any]) -> Iterator[Answer]:
        """See `each_run`."""
        return map(function, self, *along)

    def summed(self, function: Callable[[Run], Information]) -> Information:
        """See `armid.estimation.run.summed`; one pass, the first time it is asked for."""
        if function not in self._sums:
            self._sums[function] = self._sum(function)
        return self._sums[function]

    def _sum(self, function: Callable[[Run], Information]) -> Information:
        return total(map(function, self))

    def gathered(self, function: Callable[..., Answer], plus: Plus[Answer], *along: Sequence[Any]) -> Answer:
        """See `armid.estimation.run.gathered`."""
        return tree_sum(map(function, self, *along), plus)

    def map(self, change: Callable[[Run], Run]) -> Runs:
        """The same runs, each changed whenever it is loaded."""
        return Runs(lambda k: change(self[k]), self.lengths)

    def changed(self, change: Callable[..., Run], *along: Sequence[Any]) -> Sequence[Run]:
        """See `changed_runs`."""
        shelf = RunShelf()
        for run in map(change, self, *along):
            shelf.append(run)
        return shelf.runs()


@dataclass(frozen=True, eq=False)
class Pile:
    """Runs of one recording, or of a few.

    Args:
        parts: of them, such as the training and the held-out one, with their runs.
        notes: on how they came about.
    """

    parts: tuple[tuple[Run, ...], ...]
    notes: tuple[Note, ...] = ()

    def __sizeof__(self) -> int:
        return sum(run.__sizeof__() for part in self.parts for run in part)


class RunsElsewhere(Runs):
    """Runs that are kept by workers: passes are done there, and one that is asked for here is fetched.

    Args:
        workers: who keep them.
        piles: of one recording each, or of as many.
        lengths: samples of every run, pile by pile.
        part: of the recordings.
    """

    def __init__(
        self, workers: Workers, piles: Sequence[Kept], lengths: Sequence[Sequence[int]], *, part: int = 0
    ) -> None:
        own = [(pile, counts) for pile, counts in zip(piles, lengths, strict=True) if counts]
        self._workers, self._part = workers, part
        self._piles, self._by_pile = tuple(pile for pile, _ in own), tuple(tuple(counts) for _, counts in own)
        self._places = tuple((k, i) for k, counts in enumerate(self._by_pile) for i in range(len(counts)))
        super().__init__(self._fetched, [count for counts in self._by_pile for count in counts])

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        if not isinstance(index, slice):
            return super().__getitem__(index)
        chosen: list[list[int]] = [[] for _ in self._piles]
        for pile, place in self._places[index]:
            chosen[pile].append(place)
        piles = self._workers.keep(_Picked(self._part), self._piles, chosen)
        lengths = [[own[k] for k in places] for own, places in zip(self._by_pile, chosen, strict=True)]
        return RunsElsewhere(self._workers, piles, lengths)

    def _fetched(self, index: int) -> Run:
        pile, place = self._places[index]
        (run,) = self._workers.each(_One(self._part, place), [self._piles[pile]])
        return run

    def __iter__(self) -> Iterator[Run]:
        # A pile at a time: all of them would be all logs.
        for pile in self._piles:
            for runs in self._workers.each(_Every(self._part, _unchanged), [pile]):
                yield from runs

    def each(self, function: Callable[..., Answer], *along: Sequence[Any]) -> Iterator[Answer]:
        for answers in self._workers.each(_Every(self._part, function), self._piles, *self._dealt(along)):
            yield from answers

    def _sum(self, function: Callable[[Run], Information]) -> Information:
        return self.gathered(function, added)

    def gathered(self, function: Callable[..., Answer], plus: Plus[Answer], *along: Sequence[Any]) -> Answer:
        heights = branch_heights([len(own) for own in self._by_pile])
        if heights is None:
            return tree_sum(self.each(function, *along), plus)
        own = _Sum(self._part, function, plus)
        return self._workers.summed(own, self._piles, plus, *self._dealt(along), heights=heights)

    def map(self, change: Callable[[Run], Run]) -> Runs:
        return self.changed(change)

    def changed(self, change: Callable[..., Run], *along: Sequence[Any]) -> RunsElsewhere:
        piles = self._workers.keep(_Changed(self._part, change), self._piles, *self._dealt(along))
        return RunsElsewhere(self._workers, piles, self._by_pile)

    def _dealt(self, along: Sequence[Sequence[Any]]) -> list[list[Sequence[Any]]]:
        """What there is one of per run, by pile."""
        edges = np.cumsum([0, *(len(own) for own in self._by_pile)]).tolist()
        return [[values[a:b] for a, b in pairwise(edges)] for values in along]


def _unchanged(run: Run) -> Run:
    return run


@dataclass(frozen=True)
class _One:
    """One run of a pile."""

    part: int
    place: int

    def __call__(self, pile: Pile) -> Run:
        return pile.parts[self.part][self.place]


@dataclass(frozen=True)
class _Every:
    """What a function says of every run of a part of a pile."""

    part: int
    function: Callable[..., Any]

    def __call__(self, pile: Pile, *along: Sequence[Any]) -> list[Any]:
        return [self.function(*own) for own in zip(pile.parts[self.part], *along, strict=True)]


@dataclass(frozen=True)
class _Sum:
    """The sum of what the runs of a part of a pile tell: as many as a branch of the tree of all has are that branch."""

    part: int
    function: Callable[..., Any]
    plus: Plus[Any]

    def __call__(self, pile: Pile, *along: Sequence[Any]) -> Any:
        return tree_sum(map(self.function, pile.parts[self.part], *along), self.plus)


@dataclass(frozen=True)
class _Picked:
    """Some runs of a part of a pile."""

    part: int

    def __call__(self, pile: Pile, places: Sequence[int]) -> Pile:
        return Pile((tuple(pile.parts[self.part][k] for k in places),))


@dataclass(frozen=True)
class _Changed:
    """The runs of one part of a pile, changed."""

    part: int
    change: Callable[..., Run]

    def __call__(self, pile: Pile, *along: Sequence[Any]) -> Pile:
        return Pile((tuple(self.change(*own) for own in zip(pile.parts[self.part], *along, strict=True)),))


_GIVEN_BACK_AFTER = 12
"""Runs loaded: what a pass frees and the C library keeps grows by some ten megabytes with each."""

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


def changed_runs(runs: Sequence[Run], change: Callable[..., Run], *along: Sequence[Any]) -> Sequence[Run]:
    """Every run changed now; put aside again when they were, or kept by the same workers.

    Args:
        runs: the motions.
        change: picklable.
        along: what else it is given, one of each per run.
    """
    return runs.changed(change, *along) if isinstance(runs, Runs) else tuple(map(change, runs, *along))


def before(counts: Sequence[int]) -> list[int]:
    """How many there are before each."""
    return [0, *np.cumsum(counts)[:-1].tolist()] if len(counts) else []


def lengths_of(runs: Sequence[Run]) -> tuple[int, ...]:
    """Samples of every run, without loading any."""
    return runs.lengths if isinstance(runs, Runs) else tuple(len(run) for run in runs)


def thinned_runs(runs: Sequence[Run], count: int) -> tuple[Run, ...]:
    """Evenly chosen samples of all runs, about as many as said, for questions that do not ask what came before a sample.

    Those with the same rows, such as the pieces of a long log, are one run.
    """
    stride = max(1, sum(lengths_of(runs)) // count)
    by_source: dict[RowSource, list[Run]] = {}
    for run in each_run(runs, partial(_every, stride=stride)):
        by_source.setdefault(run.source, []).append(run)
    return tuple(_together(same) for same in by_source.values())


def _every(run: Run, stride: int) -> Run:
    """Every so many-th sample of a run, in arrays of its own."""
    return replace(
        run,
        inputs=np.array(run.inputs[::stride]),
        y=np.array(run.y[::stride]),
        y_raw=None,
        rate=run.rate / stride,
        segments=((0, len(run.y[::stride])),),
        continues=False,
        reversals=(),
    )


def _together(runs: Sequence[Run]) -> Run:
    """Samples of several runs as those of the first."""
    if len(runs) == 1:
        return runs[0]
    y = np.concatenate([run.y for run in runs])
    return replace(runs[0], inputs=np.concatenate([run.inputs for run in runs]), y=y, segments=((0, len(y)),))


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
