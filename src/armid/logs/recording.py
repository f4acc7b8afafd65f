"""A log ready to be conditioned: opened once, put on its even grid once, whatever its length."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.conditioning.grid import Span, halves, noise_levels, resolved_settings, segments_joined
from armid.logs.conditioning.held import HeldGrid, log_bytes
from armid.logs.conditioning.repetitions import Repetition, repetition
from armid.logs.conditioning.settings import Conditioning
from armid.logs.conditioning.stream import RowChange, StreamedGrid
from armid.logs.facts import Extent, Facts, LogFacts, extents_at, facts_of
from armid.logs.health.find import held_findings, streamed_findings
from armid.logs.health.refuse import refuse_notes
from armid.logs.log import Channel, Log, matched
from armid.logs.read import LogStream, ReadOptions, joined_logs, open_log
from armid.logs.references import RecordingReference
from armid.logs.row_groups import RowGroup, row_groups
from armid.logs.samples import Samples, concatenated, with_context
from armid.memory import give_back, share_heap
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.threads import one_blas_thread

HELD_BYTES = 64 << 20
"""Numbers of a log that is held in memory: 380,000 rows of seven joints with position, velocity and torque, six minutes at 1 kHz.
A longer one is read again whenever it is needed, and conditioned samples of it are put aside on disk."""

_MOTION_ROWS = 1 << 17
"""Rows that repetitions are looked for in: more would not place them better than to a hundredth of a sample."""

PIECE_ROWS = 1 << 15
"""Rows read at a time."""


class Recording(Facts):
    """A log ready to be conditioned.

    Made by `open_recording`. A log of up to `HELD_BYTES` is put on its even grid once, and grid and samples are shared by
    everybody who asks: its health check, a fit, other cut-offs, both sources of velocity, both parts of a split. A longer one is
    streamed from its file in bounded memory: each conditioning is one pass over the file for all parts of a split, its samples
    are put aside in a temporary file and read back when they are asked for again. Both give the same numbers to rounding.

    Recordings of many files share one limit of memory (`armid.logs.shelf`): what had to make room is read again.
    """

    def __init__(
        self,
        grid: HeldGrid | StreamedGrid,
        robot: Robot,
        span: Span,
        extent: Extent,
        facts: LogFacts,
        *,
        earlier: Recording | None = None,
        reference: RecordingReference | None = None,
    ) -> None:
        self._grid = grid
        self._earlier = earlier
        self.reference = reference
        self.robot = robot
        super().__init__(extent, facts)
        self._span = span
        self._resolved: dict[Conditioning, tuple[Conditioning, tuple[Note, ...]]] = {}
        self._looked = False
        self._repetition: Repetition | None = None
        self._levels: dict[Hashable, Mapping[Channel, FloatArray]] = {}
        self._steps: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        return self._span.name

    @property
    def streamed(self) -> bool:
        """Whether it is too long to be held."""
        return isinstance(self._grid, StreamedGrid)

    @property
    def is_later_part(self) -> bool:
        """Whether it is what was cut off the end of another one."""
        return self._earlier is not None

    def __repr__(self) -> str:
        how = "streamed" if self.streamed else "held"
        return f"<Recording {self.name}: {len(self)} rows, {self.duration:.6g} s, {how}>"

    @property
    def log(self) -> Log:
        """The rows as recorded, with the notes.

        Raises:
            InputError: it is too long to be held; `pieces()` goes through it.
        """
        if isinstance(self._grid, StreamedGrid):
            raise InputError(self.name, f"{len(self)} rows are more than is held in memory", "go through `pieces()`")
        log = self._grid.log
        own = log if len(log) == len(self) else log.rows(self._extent.first, self._extent.last)
        return replace(own, name=self.name, source=self.source, notes=self.notes, checked=self._facts.checked)

    @property
    def first_times(self) -> FloatArray:
        """Times of its rows [s]; of one too long to be held those of its first piece, none when it begins further on."""
        if not isinstance(self._grid, StreamedGrid):
            return self._grid.time[self._extent.first : self._extent.last]
        return next(self.pieces()).time if self._extent.first == 0 else np.empty(0)

    def clock_steps(self, shares: Sequence[float]) -> tuple[float, ...]:
        """Quantiles of the steps of the clock [s], found once; of one too long to be held those of its first piece.

        Args:
            shares: of the steps that are shorter; the same whenever this is asked.
        """
        if self._steps is None:
            steps = np.diff(self.first_times[np.isfinite(self.first_times)])
            self._steps = tuple(float(step) for step in np.quantile(steps, shares)) if len(steps) else ()
        return self._steps

    def pieces(self) -> Iterator[Log]:
        """The rows as recorded, in order, in pieces of bounded size."""
        if not isinstance(self._grid, StreamedGrid):
            yield self.log
            return
        seen = 0
        for piece in self._grid.raw():
            start, stop = max(self._extent.first - seen, 0), min(self._extent.last - seen, len(piece))
            seen += len(piece)
            if start < stop:
                yield replace(piece.rows(start, stop), name=self.name)
            if seen >= self._extent.last:
                return

    def split(self, fraction: float) -> tuple[Recording, Recording]:
        """The part before and the part after `fraction` of the time, for holding out; a motion belongs to one only.

        The even grid of the whole is cut, not made anew. Filters see one part only.
        """
        if not 0.0 < fraction < 1.0:
            raise InputError("fraction", f"{fraction} is not between 0 and 1")
        if len(self) < 2:
            raise InputError(self.name, f"{len(self)} sample(s) cannot be split")
        cut = self._extent.at(fraction)
        spans = halves(self._span, cut)
        self._grid.divide(spans)
        known = None if self.reference is None else self.reference.halves(fraction)
        extents = extents_at(self._times(), self._extent, cut) if known is None else known.extents
        there = [None if self.reference is None else self.reference.then("split", (fraction,), k) for k in range(2)]
        grid, earlier = self._grid, self._earlier
        first = Recording(grid, self.robot, spans[0], extents[0], self._facts, earlier=earlier, reference=there[0])
        last = Recording(grid, self.robot, spans[1], extents[1], self._facts, earlier=first, reference=there[1])
        if known is not None:
            first._steps, last._steps = known.steps
        period = None if self._repetition is None else self._repetition.period
        return first._knowing(period), last._knowing(period)

    def _times(self) -> Iterator[FloatArray]:
        """Times of all rows of the file, in order [s]."""
        if isinstance(self._grid, StreamedGrid):
            yield from self._grid.stream.stamps()
        else:
            yield self._grid.time

    def repetition(self) -> Repetition:
        """The motion that repeats itself: its period, and where in the recording it is; found once.

        Raises:
            InputError: nothing comes twice.
        """
        found = self._found_repetition()
        if found is None:
            hint = "record whole periods one after the other, or leave --average out"
            raise InputError(self.name, "no motion in it comes twice, so there is nothing to average", hint)
        return found

    def _found_repetition(self) -> Repetition | None:
        if not self._looked:
            self._looked, self._repetition = True, repetition(*self._thinned())
        return self._repetition

    def _knowing(self, period: float | None) -> Recording:
        """The same, whose motion comes again after a known time [s]."""
        if period is not None:
            self._looked = True
            self._repetition = Repetition(period=period, start_s=self.start_s, stop_s=self.end_s)
        return self

    def repeated(self) -> Recording:
        """Its whole repetitions alone, without the way there and standstill at the ends.

        Raises:
            InputError: nothing comes twice.
        """
        found = self.repetition()
        stop = found.start_s + found.count * found.period
        cut = self.between(found.start_s, stop + 0.5 * self.duration / len(self))
        cut.reference = None if self.reference is None else self.reference.then("repeated")
        return cut._knowing(found.period)

    def between(self, start_s: float, stop_s: float) -> Recording:
        """What was recorded from one time to another [s]."""
        span = Span(self.name, max(start_s, self._span.start), min(stop_s, self._span.stop))
        self._grid.divide((span,))
        _, later = extents_at(self._times(), self._extent, span.start)
        own, _ = extents_at(self._times(), later, span.stop)
        there = None if self.reference is None else self.reference.then("between", (start_s, stop_s))
        return Recording(self._grid, self.robot, span, own, self._facts, earlier=self._earlier, reference=there)

    def _thinned(self) -> tuple[FloatArray, FloatArray]:
        """Time and position of at most `_MOTION_ROWS` usable rows, evenly chosen."""
        every = max(1, len(self) // _MOTION_ROWS)
        time: list[FloatArray] = []
        q: list[FloatArray] = []
        seen = 0
        for piece in self.pieces():
            own = slice(-seen % every, None, every)
            time.append(piece.time[own])
            q.append(piece[Channel.POSITION][own])
            seen += len(piece)
        t, x = np.concatenate(time), np.concatenate(q)
        good = np.isfinite(x).all(axis=1) & (np.diff(t, prepend=-np.inf) > 0.0)
        return t[good], x[good]

    def _own(self, settings: Conditioning) -> Conditioning:
        """Settings with the period of this recording, when its repetitions are to be averaged."""
        if not settings.average:
            return settings
        found = self._found_repetition()
        return replace(settings, period=None if found is None else found.period, average=False)

    def changed(self, change: RowChange) -> Recording:
        """The recording with every row changed, such as by a correction of its encoders.

        Args:
            change: from a log to one with as many rows, each depending on that row alone; notes it adds are kept.
        """
        grid = self._grid
        other: HeldGrid | StreamedGrid
        if isinstance(grid, StreamedGrid):
            own = grid.change
            other = StreamedGrid(grid.stream, self.robot, change if own is None else lambda log: change(own(log)))
        else:
            other = HeldGrid(lambda: change(grid.log))
        if not self._span.whole:
            other.divide((self._span,))
        sample = next(self.pieces()).rows(0, 1)
        added = tuple(note for note in change(sample).notes if note not in sample.notes)
        facts = replace(self._facts, notes=(*self.notes, *added))
        period = None if self._repetition is None else self._repetition.period
        moved = Recording(other, self.robot, self._span, self._extent, facts, earlier=self._earlier)
        return moved._knowing(period)

    def resolved(self, settings: Conditioning | None = None) -> Conditioning:
        """The settings with every automatic choice (cut-off, rate) made; once, and remembered.

        Choices rest on the first `EVIDENCE_ROWS` rows, whether the log is held or streamed.

        Raises:
            LogRefusedError: the log has errors that `settings.accept` does not name.
            InputError: nothing to condition.
        """
        return self._choices(settings or Conditioning())[0]

    def conditioning_notes(self, settings: Conditioning | None = None) -> tuple[Note, ...]:
        """What is to be said about how samples under these settings come about: gaps, time base, chosen cut-off."""
        return self._choices(settings or Conditioning())[1]

    def _choices(self, settings: Conditioning) -> tuple[Conditioning, tuple[Note, ...]]:
        refuse_notes(self.name, self.notes, settings.accept)
        if settings not in self._resolved:
            with np.errstate(all="ignore"):
                own = self._own(settings)
                notes = (*self._grid.notes(own), *self._averaging_notes(settings))
                if None in (settings.cutoff, settings.torque_cutoff, settings.rate):
                    resolved, chosen = resolved_settings(self._grid.evidence(own, self._span), settings)
                else:
                    resolved, chosen = settings, []
            found = resolved, (*notes, *chosen)
            self._resolved[settings] = found
            self._resolved.setdefault(resolved, found)
        return self._resolved[settings]

    def _averaging_notes(self, settings: Conditioning) -> tuple[Note, ...]:
        """Over what was averaged."""
        if not settings.average:
            return ()
        found = self._found_repetition()
        if found is None or found.count < 2:
            text = "no motion in it comes twice: used as it is, not averaged"
        else:
            text = f"mean of {found.count} repetitions of {found.period:.6g} s from {found.start_s:.3f} s on"
        return (Note("averaged", Severity.INFO, text, self.name),)

    def _noise(self, settings: Conditioning) -> Mapping[Channel, FloatArray]:
        """Standard deviation of the noise of each channel; a later part of a log has the sensors of the earlier one."""
        if self._earlier is not None:
            return self._earlier._noise(settings)
        own = self._own(settings)
        key = (own.gap, own.period, own.torque_delay, own.velocity if self.streamed else None)
        if key not in self._levels:
            self._levels[key] = noise_levels(self._grid.evidence(own, self._span))
        return self._levels[key]

    def samples(
        self, settings: Conditioning | None = None, *, context: int = 0, alone: bool = False, begin: bool = False
    ) -> Iterator[Samples]:
        """Conditioned samples in pieces of bounded size, in order, never across a gap.

        A piece has one segment; `segment.continues` says whether it follows on the piece before without a gap. The numbers are
        those of `condition`, to rounding.

        Args:
            settings: see `Conditioning`; automatic where it leaves a choice.
            context: samples of the neighbouring pieces of the same stretch that each piece repeats before and after its own, for
                filters that must not see the border; `segment.lead` and `segment.trail` count them.
            alone: the other part of a split will not be asked for under these settings, so that a pass over a long file need not
                condition it as well.
            begin: only the first pieces are wanted, so that a long file need not be read to its end.

        Raises:
            LogRefusedError: the log has errors that `settings.accept` does not name.
            InputError: nothing left to condition.
        """
        resolved, notes = self._choices(settings or Conditioning())
        with np.errstate(all="ignore"):
            pieces = with_context(
                self._grid.samples(self._own(resolved), self._span, alone=alone, begin=begin), context
            )
            noise = self._noise(resolved)
            empty = True
            for piece in pieces:
                empty = False
                yield piece.described(
                    settings=resolved, noise=noise, sources=(self.source,), notes=(*piece.notes, *notes)
                )
        if empty:
            raise InputError(self.name, "nothing is left after trimming the ends", "trim less")

    def row_groups(self, settings: Conditioning, *, context: int, size: Callable[[int], int]) -> list[RowGroup] | None:
        """The pieces of `samples` in groups that others read and condition; None where the log is not divided.

        Args:
            settings: see `Conditioning`.
            context: see `samples`.
            size: pieces of a group, from how many there are.
        """
        resolved, notes = self._choices(settings)
        grid, reference = self._grid, self.reference
        if not isinstance(grid, StreamedGrid) or grid.change is not None or reference is None:
            return None
        own = self._own(resolved)
        if own.period is not None:
            return None
        facts = {"settings": resolved, "noise": dict(self._noise(resolved)), "sources": (self.source,), "notes": notes}
        return row_groups(
            grid,
            self._span,
            own,
            size=size,
            context=context,
            source=reference.checked.source,
            options=reference.options,
            facts=facts,
        )

    def condition(self, settings: Conditioning | None = None, *, alone: bool = False) -> Samples:
        """All samples at once, for those that fit in memory; with the notes of the log. Arguments as for `samples`."""
        whole = concatenated(self.samples(settings, alone=alone))
        return whole.described(segments=segments_joined(whole.segments), notes=(*self.notes, *whole.notes))


@one_blas_thread
def open_recording(
    source: str | Path | Log,
    robot: Robot,
    *,
    options: ReadOptions | None = None,
    check: bool = True,
    fraction: float | None = None,
) -> Recording:
    """A recording, read and checked.

    Args:
        source: data file of any known kind, the directory of a ROS 2 bag, a mapping (.yaml), or a log in memory.
        robot: orders the columns by joint name; the nominal arm of the health check.
        options: what the file does not say itself.
        check: whether the health of the log is checked. A log that has been is not checked again.
        fraction: of the time, where it is going to be split: the check then looks at the very samples of the two parts.

    Raises:
        InputError: unreadable, or not understood.
    """
    if isinstance(source, Log):
        ordered = matched(source, robot)
        return _held(ordered, robot, lambda: ordered, check=check and not source.checked, fraction=fraction)
    stream = open_log(source, robot, options=options)
    chunks = stream.chunks(PIECE_ROWS)
    held: list[Log] = []
    for piece in chunks:
        held.append(piece)
        if sum(log_bytes(log) for log in held) > HELD_BYTES:
            return _streamed(stream, robot, _let_go(held, chunks), check=check)
    log = replace(joined_logs(held), source=stream.provenance()).with_notes(stream.notes)
    known = log.source
    held.clear()  # the check needs the room

    def load() -> Log:
        # Opened anew: some readers hold what they have read.
        again = open_log(source, robot, options=options).knowing(known)
        return joined_logs(list(again.chunks(PIECE_ROWS)))

    return _held(log, robot, load, check=check, fraction=fraction)


def _let_go(held: list[Log], rest: Iterator[Log]) -> Iterator[Log]:
    """The pieces held, each let go as it is handed on, and those to come."""
    while held:
        yield held.pop(0)
    yield from rest


def _held(log: Log, robot: Robot, load: Callable[[], Log], *, check: bool, fraction: float | None = None) -> Recording:
    """A recording whose log is in memory; `load` gives it again when it has made room for others."""
    grid, span = HeldGrid(load), Span(log.name)
    grid.hold(log)
    ends = (float(log.time[0]), float(log.time[-1])) if len(log) else (0.0, 0.0)
    extent = Extent(first=0, last=len(log), start_s=ends[0], end_s=ends[1])
    parts = () if fraction is None else halves(span, extent.at(fraction))
    grid.divide(parts)
    found = held_findings(log, robot, grid, parts) if check else ()
    facts = facts_of(log.with_notes(found), checked=check or log.checked)
    return Recording(grid, robot, span, extent, facts)


def _streamed(stream: LogStream, robot: Robot, pieces: Iterator[Log], *, check: bool) -> Recording:
    """A recording that is read from its file whenever it is needed; the pieces are those of the first time."""
    share_heap()
    tally = _Tally()
    counted = tally.over(pieces)
    found = streamed_findings(counted, robot) if check else ()
    deque(counted, maxlen=0)
    give_back()
    assert tally.begin is not None  # a stream without samples raises
    whole = replace(tally.begin, source=stream.provenance(), notes=()).with_notes((*stream.notes, *found))
    extent = Extent(first=0, last=tally.rows, start_s=float(whole.time[0]), end_s=tally.end_s)
    return Recording(StreamedGrid(stream, robot), robot, Span(whole.name), extent, facts_of(whole, checked=check))


@dataclass(eq=False)
class _Tally:
    """What is noted while a log goes by: its first row, how many there are, and the time of the last [s]."""

    begin: Log | None = None
    rows: int = 0
    end_s: float = 0.0

    def over(self, pieces: Iterable[Log]) -> Iterator[Log]:
        for piece in pieces:
            # A copy, not a view that would keep the whole piece.
            self.begin = self.begin or piece.selected(np.array([0]))
            self.rows += len(piece)
            self.end_s = float(piece.time[-1])
            yield piece
