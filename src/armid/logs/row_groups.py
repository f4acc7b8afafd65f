"""One long file divided among workers: each reads and conditions its rows, to the very samples that one pass over the file gives.

Where the windows of a log lie, and so which samples form a piece, follows from its clock alone. One pass over the file without
filters places them (`row_groups`) and notes the state of the stream at every piece that was read; a worker takes it up there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from armid.logs.conditioning.even import Piece, StreamState
from armid.logs.conditioning.grid import Span
from armid.logs.conditioning.settings import Conditioning
from armid.logs.conditioning.stream import CHUNK_ROWS, StreamedGrid, Timing, in_spans
from armid.logs.conditioning.windows import (
    Window,
    WindowPlace,
    joined_piece,
    opens_piece,
    window_samples,
    windows_of,
)
from armid.logs.log import Channel, Log
from armid.logs.read import LogStream, ReadOptions, RowPlace, joined_logs, open_log
from armid.logs.samples import Samples, with_context
from armid.logs.timing import ClockGuess
from armid.robot.robot import Robot


@dataclass(frozen=True, eq=False, kw_only=True)
class _Mark:
    """The stream when a piece of the file is asked for.

    Args:
        state: of everything up to the even grid, which lags by one piece: it has not seen the last one yet.
        rows, used: of the file, gone through so far.
        first: time and position of the first row of the piece that comes.
    """

    state: StreamState
    rows: int
    used: int
    first: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class _Survey:
    """Where the windows of a long log lie.

    Args:
        marks: one per piece of the file, and one for its end.
        windows: that give samples, in order, of every part.
        seekable: whether the file can be read from any row on.
    """

    marks: tuple[_Mark, ...]
    windows: tuple[tuple[WindowPlace, ...], ...]
    seekable: bool

    def taken_up(self, stretch: int, row: int) -> int:
        """The last piece of the file with which the stream can be taken up before a row of an even grid."""
        last = 0
        for k in range(1, len(self.marks) - 1):
            if self._position(k) > (stretch, row):
                break
            # The grid lags by one piece, so this and the one before must be whole.
            last = k if self._is_whole(k - 1) and self._is_whole(k) else last
        return last

    def read_up_to(self, stretch: int, row: int) -> int:
        """Pieces of the file to be read for all rows of an even grid before this one, and the one after that."""
        count = len(self.marks) - 1
        return next((k + 1 for k in range(count) if self._position(k) >= (stretch, row)), count)

    def _position(self, k: int) -> tuple[int, int]:
        """Stretch and row of the even grid that are done before a piece of the file is put on it."""
        state = self.marks[k + 1].state
        return state.stretch, state.grid.done

    def _is_whole(self, k: int) -> bool:
        """Whether no gap cuts a piece of the file."""
        return self.marks[k + 1].state.pieces - self.marks[k].state.pieces == 1

    def state_at(self, k: int) -> StreamState:
        """Of the stream before a piece of the file, up to the even grid."""
        if k == 0:
            return StreamState()
        grid, before = self.marks[k + 1].state, self.marks[k].state
        return replace(
            before,
            grid=grid.grid,
            stretch=grid.stretch,
            tail=grid.tail,
            rough=grid.rough,
            spoiled=grid.spoiled,
        )

    def place(self, k: int, stop: int) -> RowPlace:
        """Of a piece of the file, and the lengths of those from there on before another one."""
        rows = [mark.rows for mark in self.marks[k : stop + 1]]
        return RowPlace(rows=rows[0], used=self.marks[k].used, lengths=tuple(b - a for a, b in pairwise(rows)))


_surveys: WeakKeyDictionary[StreamedGrid, dict[tuple[Conditioning, tuple[Span, ...]], _Survey]] = WeakKeyDictionary()
"""Of logs that are open: a log is gone through once for all its parts, and for everybody who asks."""


def _surveyed(grid: StreamedGrid, settings: Conditioning, spans: tuple[Span, ...]) -> _Survey:
    """One pass over a log without filters."""
    known = _surveys.setdefault(grid, {})
    key = (settings, spans)
    if key not in known:
        stream, state = grid.stream.again(), StreamState()
        marks = _Marks(stream, state)
        even = in_spans(grid.even(settings, marks.pieces(), state), spans)
        places = [window.place for window in windows_of(even, settings)]
        useful = [place for place in places if place.samples(settings)]
        known[key] = _Survey(
            marks=marks.all(),
            windows=tuple(tuple(p for p in useful if p.part == part) for part in range(len(spans))),
            seekable=stream.seekable,
        )
    return known[key]


class _Marks:
    """Notes the state of a stream before every piece of the file, and at its end.

    Args:
        stream: of the file.
        state: goes along with its pieces.
    """

    def __init__(self, stream: LogStream, state: StreamState) -> None:
        self._stream, self._state = stream, state
        self._marks: list[_Mark] = []
        self._ended = False

    def pieces(self) -> Iterator[Log]:
        """Of the file."""
        read = (0, 0)
        for piece in self._stream.chunks(CHUNK_ROWS):
            self._note(read, _first_row(piece))
            read = self._stream.read
            yield piece
        self._note(read)
        self._ended = True

    def _note(self, read: tuple[int, int], first: tuple[float, ...] = ()) -> None:
        self._marks.append(_Mark(state=self._state.kept(), rows=read[0], used=read[1], first=first))

    def all(self) -> tuple[_Mark, ...]:
        """After the last piece that was asked for."""
        if not self._ended:
            self._note(self._stream.read)
        return tuple(self._marks)


def _first_row(log: Log) -> tuple[float, ...]:
    return (float(log.time[0]), *map(float, log[Channel.POSITION][0])) if len(log) else ()


@dataclass(frozen=True, eq=False, kw_only=True)
class RowGroup:
    """Some pieces of the samples of a long log: where its rows are, and what is known from the pass over the whole.

    Args:
        source, options: of the file, as `open_log` takes them.
        settled: its clock.
        settings: of the conditioning, resolved.
        timing: of the whole log.
        name: of the part of the log.
        chunk: pieces of the file before those that are read here.
        place: of the first of them.
        first: time and position of its first row.
        seekable: whether the file can be read from there on.
        state: of the stream there.
        windows: with samples of these pieces.
        pieces: windows of each.
        lead, trail: whether the first and the last piece are only the neighbours of those wanted.
        context: samples of its neighbours that each piece has.
        facts: what else the samples of this log carry.
    """

    source: str
    options: ReadOptions | None
    settled: ClockGuess | None
    settings: Conditioning
    timing: Timing
    name: str
    chunk: int
    place: RowPlace
    first: tuple[float, ...]
    seekable: bool
    state: StreamState
    windows: tuple[WindowPlace, ...]
    pieces: tuple[int, ...]
    lead: bool
    trail: bool
    context: int
    facts: dict[str, Any]

    def samples(self, robot: Robot) -> Iterator[Samples]:
        """The pieces wanted, in order; see `Recording.samples`.

        Args:
            robot: whose joints give the order of the columns.
        """
        stream = open_log(self.source, robot, options=self.options).knowing(self.facts["sources"][0])
        stream.settled = self.settled
        grid = StreamedGrid(stream, robot)
        grid.knows(self.settings, self.timing)
        even = grid.even(self.settings, self._rows(stream), self.state.kept())
        conditioned = (window_samples(window, self.settings) for window in _at(self.windows, even, self.name))
        found = (samples for samples in conditioned if samples is not None)
        whole = (joined_piece(list(islice(found, count))) for count in self.pieces)
        with np.errstate(all="ignore"):
            for k, piece in enumerate(with_context(whole, self.context)):
                if (k or not self.lead) and (k < len(self.pieces) - 1 or not self.trail):
                    yield piece.described(**{**self.facts, "notes": (*piece.notes, *self.facts["notes"])})

    def _rows(self, stream: LogStream) -> Iterator[Log]:
        """Pieces of the file from the place on; from its beginning where another row stands there."""
        if self.seekable and stream.seekable:
            pieces = stream.chunks(CHUNK_ROWS, self.place)
            begin = next(pieces, None)
            if begin is not None and _first_row(begin) == self.first:
                return chain((begin,), pieces)
        return islice(stream.again().chunks(CHUNK_ROWS), self.chunk, self.chunk + len(self.place.lengths))


def _at(places: Sequence[WindowPlace], pieces: Iterator[Piece], name: str) -> Iterator[Window]:
    """Windows at their places on the even grid."""
    held: list[Piece] = []
    for place in places:
        stop = place.row + place.count
        held = [p for p in held if p.stretch == place.stretch and p.row + len(p.log) > place.row]
        while not held or held[-1].row + len(held[-1].log) < stop:
            piece = next(pieces)
            if piece.stretch == place.stretch and piece.row + len(piece.log) > place.row:
                held.append(piece)
        log = joined_logs([piece.log for piece in held])
        yield Window(replace(log.rows(place.row - held[0].row, stop - held[0].row), name=name), place)


def row_groups(
    grid: StreamedGrid,
    span: Span,
    settings: Conditioning,
    *,
    size: Callable[[int], int],
    context: int,
    source: str,
    options: ReadOptions | None,
    facts: dict[str, Any],
) -> list[RowGroup]:
    """The samples of a part of a long log in groups of neighbouring pieces.

    Args:
        grid: of the log.
        span: the part.
        settings: resolved.
        size: pieces of a group, from how many there are.
        context: samples of its neighbours that each piece is to have.
        source, options: of the file.
        facts: what else the samples carry.
    """
    spans = grid.families.get(span, (span,))
    survey = _surveyed(grid, settings, spans)
    pieces = _pieces_of(survey.windows[spans.index(span)], settings)
    count = size(len(pieces))
    out = []
    for k in range(0, len(pieces), count):
        lead = k > 0 and _continues(pieces[k], settings)
        trail = k + count < len(pieces) and _continues(pieces[k + count], settings)
        own = pieces[k - lead : k + count + trail]
        windows = tuple(window for piece in own for window in piece)
        chunk = survey.taken_up(windows[0].stretch, windows[0].row)
        place = survey.place(chunk, survey.read_up_to(windows[-1].stretch, windows[-1].row + windows[-1].count))
        out.append(
            RowGroup(
                source=source,
                options=options,
                settled=grid.stream.settled,
                settings=settings,
                timing=grid.timing(settings),
                name=span.name,
                chunk=chunk,
                place=place,
                first=survey.marks[chunk].first,
                seekable=survey.seekable,
                state=survey.state_at(chunk),
                windows=windows,
                pieces=tuple(map(len, own)),
                lead=lead,
                trail=trail,
                context=context,
                facts=facts,
            )
        )
    return out


def _pieces_of(windows: Sequence[WindowPlace], settings: Conditioning) -> list[list[WindowPlace]]:
    """Windows whose samples form one piece each, as `merged_pieces` puts them together."""
    out: list[list[WindowPlace]] = []
    held = 0
    for window in windows:
        if not out or opens_piece(held, continues=_continues([window], settings)):
            out.append([])
            held = 0
        out[-1].append(window)
        held += window.samples(settings)
    return out


def _continues(piece: Sequence[WindowPlace], settings: Conditioning) -> bool:
    """Whether a piece follows on the one before."""
    kept = piece[0].kept(settings)
    return kept is not None and piece[0].continues(kept[0], settings)
