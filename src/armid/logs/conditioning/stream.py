"""Logs of any length: the same samples, a piece at a time, in constant memory.

Pieces overlap by as much as the filters remember, so each can be conditioned by itself, two at a time, and the result is that of
the whole to rounding. A log whose stamps jitter is gone through once before, for its stamps alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby, islice, repeat

import numpy as np

from armid.errors import InputError
from armid.logs.conditioning.clocks import StretchClock, ordinary_step_of, stretch_clocks
from armid.logs.conditioning.even import Piece, StreamState, cut_at_gaps, even_pieces, rebased, without_corrupt
from armid.logs.conditioning.folding import folded_parts
from armid.logs.conditioning.grid import EVIDENCE_ROWS, Span, parts_within, resolved_settings
from armid.logs.conditioning.parts import MIN_STRETCH, Uniform, averaged_part, with_period
from armid.logs.conditioning.settings import Conditioning, VelocitySource
from armid.logs.conditioning.spool import Spool
from armid.logs.conditioning.timebase import TimeBase, chosen_base
from armid.logs.conditioning.uniform import Stretch, check_step, even_step, is_uniform, ordinary_step, stretches
from armid.logs.conditioning.window import conditioned, is_long_enough
from armid.logs.conditioning.windows import even_part, merged_pieces, window_samples, windows_of
from armid.logs.health.refuse import LogRefusedError, refuse_errors
from armid.logs.health.rows import usable_rows
from armid.logs.log import Channel, Clock, Log
from armid.logs.read import LogStream, joined_logs
from armid.logs.samples import Samples
from armid.memory import give_back
from armid.notes import Note, Severity
from armid.robot.robot import Robot

CHUNK_ROWS = 1 << 15
"""Rows per piece: two megabytes per channel, fifty times the memory of ordinary filters."""

_WORKERS = 2

SPOOL_SAMPLES = 1 << 24
"""Samples that are put aside for the next time they are asked for: 4 GB on disk for seven joints. More are conditioned again."""

RowChange = Callable[[Log], Log]
"""A change of a log row by row, such as a correction of its encoders."""


@dataclass(frozen=True, eq=False)
class Timing:
    """What the stamps of a long log amount to.

    Args:
        step: ordinary step [s].
        clocks: of the stretches, in order; one for all when it is known without counting.
        notes: why.
    """

    step: float
    clocks: StretchClock | tuple[StretchClock, ...]
    notes: tuple[Note, ...]

    def each(self, used: int = 0) -> Iterator[StretchClock]:
        """In order, without those that are used already."""
        return repeat(self.clocks) if isinstance(self.clocks, StretchClock) else islice(self.clocks, used, None)


class StreamedGrid:
    """A log read from its file whenever it is needed, piece by piece; samples conditioned once are put aside on disk.

    Args:
        stream: opened with the robot, so that its joints are in order.
        robot: the arm.
        change: applied to every piece.
    """

    def __init__(self, stream: LogStream, robot: Robot, change: RowChange | None = None) -> None:
        self.stream = stream
        self.robot = robot
        self.change = change
        self._timings: dict[tuple[float, float | None], Timing] = {}
        self._spools: dict[tuple[Conditioning, Span], Spool] = {}
        self._families: dict[Span, tuple[Span, ...]] = {}
        self._endless: set[tuple[Conditioning, Span]] = set()

    def divide(self, parts: tuple[Span, ...]) -> None:
        """Parts that are conditioned together from now on, in one pass over the file; in order of time."""
        self._families |= dict.fromkeys(parts, parts)

    @property
    def families(self) -> Mapping[Span, tuple[Span, ...]]:
        """Spans that are conditioned together."""
        return self._families

    def raw(self) -> Iterator[Log]:
        """The rows as recorded, in pieces."""
        try:
            for piece in self.stream.again().chunks(CHUNK_ROWS):
                yield piece if self.change is None else self.change(piece)
        finally:
            # Whoever wanted the first pieces alone does not come to the end.
            give_back()

    def evidence(self, settings: Conditioning, span: Span) -> list[Uniform]:
        held: list[list[Piece]] = []
        rows = 0
        for piece in in_spans(self.even(settings), (span,)):
            if piece.begins or not held:
                held.append([])
            held[-1].append(piece)
            rows += len(piece.log)
            if rows >= EVIDENCE_ROWS:
                break
        whole = [even_part(joined_logs([p.log for p in own]), 1.0 / own[0].clock.step) for own in held]
        parts = parts_within(whole, span, EVIDENCE_ROWS)
        if settings.period is not None:
            parts = [averaged_part(part, settings.period) for part in parts]
        return parts

    def notes(self, settings: Conditioning) -> tuple[Note, ...]:
        return self.timing(settings).notes

    def even(
        self, settings: Conditioning, pieces: Iterable[Log] | None = None, state: StreamState | None = None
    ) -> Iterator[Piece]:
        """The log on its even grid, cut at gaps.

        Args:
            settings: with gap and delay.
            pieces: as recorded; all of them by default.
            state: of the stream before these; it goes along with them.
        """
        timing, state = self.timing(settings), state or StreamState()
        gap = settings.gap * timing.step
        raw = self.raw() if pieces is None else pieces
        wanted = (_without_velocity(piece, settings) for piece in _checked_pieces(raw, settings, self.robot))
        cut = cut_at_gaps(wanted, gap, timing.each(state.clocks), state)
        whole = without_corrupt(rebased(cut, timing.step, settings, state), gap, settings, state)
        return even_pieces(whole, settings, state)

    def timing(self, settings: Conditioning) -> Timing:
        """The time base of the log, found out once.

        Raises:
            LogRefusedError: `clock-ticks` for a log of a reader that polls its controller, whose time only the whole log tells.
        """
        key = (settings.gap, settings.period)
        if key not in self._timings:
            self._timings[key] = _time_base(self._beginning(settings), self.stream.again(), settings)
        return self._timings[key]

    def knows(self, settings: Conditioning, timing: Timing) -> None:
        """Time base that was found out elsewhere."""
        self._timings[settings.gap, settings.period] = timing

    def _beginning(self, settings: Conditioning) -> Stretch:
        """The longest stretch of the first rows."""
        held: list[Log] = []
        for piece in _checked_pieces(self.raw(), settings, self.robot):
            held.append(piece)
            if sum(len(log) for log in held) >= EVIDENCE_ROWS:
                break
        if not held:
            raise InputError(self.stream.mapping.name, "no samples")
        first = joined_logs(held)
        step = ordinary_step(first.time)
        if step <= 0.0 or len(first) < MIN_STRETCH:
            raise InputError(first.name, f"{len(first)} rows whose time does not advance")
        check_step(first.name, step)
        longest = max(stretches(first, usable_rows(first), settings.gap), key=lambda s: len(s.time), default=None)
        if longest is None or len(longest.time) < MIN_STRETCH:
            raise InputError(first.name, f"no stretch of {MIN_STRETCH} samples without a gap at the beginning")
        return longest

    def samples(
        self, settings: Conditioning, span: Span, *, alone: bool = False, begin: bool = False
    ) -> Iterator[Samples]:
        """Pieces in order; conditioned in one pass with those of the span's family, and read back the next time.

        Args:
            settings: resolved.
            span: wanted.
            alone: leave the rest of its family out.
            begin: whoever asks will stop early: conditioned as they are asked for, and not put aside.
        """
        key = (settings, span)
        if key not in self._spools and key not in self._endless and not begin:
            self._fill(settings, (span,) if alone else self._families.get(span, (span,)))
        if key in self._spools:
            yield from self._spools[key].pieces()
        else:
            yield from merged_pieces(piece for _, piece in self.conditioned(settings, (span,)))

    def _fill(self, settings: Conditioning, family: tuple[Span, ...]) -> None:
        """Conditions a family of spans and puts their samples aside, unless there are too many."""
        spools = {(settings, span): Spool() for span in family}
        for part, own in groupby(self.conditioned(settings, family), key=lambda pair: pair[0]):
            spool = spools[settings, family[part]]
            for piece in merged_pieces(piece for _, piece in own):
                spool.add(piece)
                if sum(len(each) for each in spools.values()) > SPOOL_SAMPLES:
                    self._endless |= set(spools)
                    return
        self._spools |= spools

    def conditioned(self, settings: Conditioning, spans: tuple[Span, ...]) -> Iterator[tuple[int, Samples]]:
        """Samples of each window, with the number of the span it lies in; settings are resolved."""
        even = in_spans(self.even(settings), spans)
        if settings.period is not None:
            for k, own in groupby(even, key=lambda piece: piece.part):
                for part in folded_parts(own, settings.period):
                    if is_long_enough(part, settings):
                        yield k, conditioned(part, settings)
            return
        with ThreadPoolExecutor(_WORKERS) as pool:
            pending: deque[tuple[int, Future[Samples | None]]] = deque()
            for window in windows_of(even, settings):
                pending.append((window.place.part, pool.submit(window_samples, window, settings)))
                if len(pending) > _WORKERS:
                    yield from finished(*pending.popleft())
            while pending:
                yield from finished(*pending.popleft())


def condition_stream(stream: LogStream, robot: Robot, settings: Conditioning | None = None) -> Iterator[Samples]:
    """Conditioned samples of a long log, piece by piece, in order.

    Open choices (cut-off, rate, whether stamps or even counting are time) are made on the first rows. With a period, every
    stretch between gaps gives its mean period. Nothing is put aside; see `Recording` for a log that is needed again.

    Args:
        stream: from `open_log`, opened with the robot so that its joints are in order.
        robot: the arm.
        settings: see `Conditioning`.

    Raises:
        LogRefusedError: errors that are not accepted; `clock-ticks` for a log of a reader that polls its controller, whose time
            only the whole log tells; `clock-drift` when stamps stray from even counting later on.
    """
    grid, span = StreamedGrid(stream, robot), Span(stream.mapping.name)
    wanted = settings or Conditioning()
    resolved, chosen = resolved_settings(grid.evidence(wanted, span), wanted)
    for _, piece in grid.conditioned(resolved, (span,)):
        yield replace(piece, notes=(*piece.notes, *grid.notes(wanted), *chosen))


def in_spans(pieces: Iterable[Piece], spans: tuple[Span, ...]) -> Iterator[Piece]:
    """Pieces cut at the borders of spans, each a stretch of its own, under the span's name; the rest is left out."""
    begins = True
    part = -1
    for piece in pieces:
        begins = begins or piece.begins
        for k, span in enumerate(spans):
            first, last = (int(i) for i in np.searchsorted(piece.log.time, (span.start, span.stop)))
            if first >= last:
                continue
            log = piece.log if last - first == len(piece.log) else piece.log.rows(first, last)
            named = log if log.name == span.name else replace(log, name=span.name)
            yield Piece(
                log=named,
                begins=begins or k != part,
                clock=piece.clock,
                part=k,
                stretch=piece.stretch,
                row=piece.row + first,
            )
            begins, part = False, k
        if part == len(spans) - 1 and float(piece.log.time[-1]) >= spans[-1].stop:
            return


def finished(part: int, future: Future[Samples | None]) -> Iterator[tuple[int, Samples]]:
    samples = future.result()
    if samples is not None and len(samples):
        yield part, samples


def _checked_pieces(pieces: Iterable[Log], settings: Conditioning, robot: Robot) -> Iterator[Log]:
    """The pieces, each with the columns conditioning needs, refused when it has errors nobody accepted."""
    for piece in pieces:
        refuse_errors(piece, settings.accept)
        if piece.clock is Clock.UNKNOWN:
            raise InputError(piece.name, "no clock, so no derivatives", "give the sampling step")
        if len(piece.joints) != robot.n_joints:
            raise InputError(piece.name, f"{len(piece.joints)} joints for the {robot.n_joints} of {robot.name}")
        if not piece.torques:
            raise InputError(piece.name, "no torque channel")
        # Velocity tells the time base on the first rows, and is kept for those who want it measured.
        wanted = (Channel.POSITION, Channel.VELOCITY, *piece.torques)
        yield replace(piece, channels={c: v for c, v in piece.channels.items() if c in wanted})


def _without_velocity(piece: Log, settings: Conditioning) -> Log:
    """The piece without a velocity that is not asked for."""
    if settings.velocity is VelocitySource.MEASURED:
        return piece
    return replace(piece, channels={c: v for c, v in piece.channels.items() if c is not Channel.VELOCITY})


def _time_base(longest: Stretch, stream: LogStream, settings: Conditioning) -> Timing:
    """The time base of a log, decided on a stretch of its beginning.

    Raises:
        LogRefusedError: `clock-ticks`.
    """
    if longest.log.clock is not Clock.COLUMN or is_uniform(longest.time, longest.step):
        return Timing(longest.step, StretchClock(step=with_period(even_step(longest), settings.period)), ())
    step = ordinary_step_of(stream.stamps(CHUNK_ROWS), float(np.median(np.diff(longest.time))))
    kind, _, note = chosen_base(replace(longest, step=step))
    if kind is TimeBase.TICKS:
        if "clock-ticks" not in settings.accept:
            text = (
                "rows were polled from a controller, some twice and some not at all, and lie on its ticks rather than on their "
                "stamps: read the log as a whole, or accept the stamps"
            )
            name = longest.log.name
            raise LogRefusedError(name, [Note("clock-ticks", Severity.ERROR, text, name)])
        kind, note = TimeBase.STAMPS, None
    found = stretch_clocks(stream.stamps(CHUNK_ROWS), step, settings.gap * step, counted=kind is TimeBase.COUNTED)
    clocks = tuple(clock.with_step(with_period(clock.step, settings.period)) for clock in found)
    return Timing(step, clocks, (note,) if note is not None else ())
