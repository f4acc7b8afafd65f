"""Logs of any length: the same samples, a piece at a time, in constant memory.

Pieces overlap by as much as the filters remember, so each can be conditioned by itself, two at a time, and the result is that of
the whole to rounding. A log whose stamps jitter is gone through once before, for its stamps alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby, repeat

import numpy as np

from armid.errors import InputError
from armid.logs.conditioning.clocks import StretchClock, ordinary_step_of, stretch_clocks
from armid.logs.conditioning.even import Piece, cut_at_gaps, even_pieces, rebased, without_corrupt
from armid.logs.conditioning.folding import folded_parts
from armid.logs.conditioning.grid import EVIDENCE_ROWS, PIECE_SAMPLES, Span, parts_within, resolved_settings
from armid.logs.conditioning.parts import MIN_STRETCH, Uniform, averaged_part, with_period
from armid.logs.conditioning.settings import Conditioning, VelocitySource
from armid.logs.conditioning.spool import Spool
from armid.logs.conditioning.timebase import TimeBase, chosen_base
from armid.logs.conditioning.uniform import Stretch, check_step, even_step, is_uniform, ordinary_step, stretches
from armid.logs.conditioning.window import conditioned, conditioned_range, decimation, is_long_enough, trimmed_edge
from armid.logs.health.refuse import LogRefusedError, refuse_errors
from armid.logs.health.rows import usable_rows
from armid.logs.log import Channel, Clock, Log
from armid.logs.read import LogStream, joined_logs
from armid.logs.samples import Samples, concatenated
from armid.memory import give_back
from armid.notes import Note, Severity
from armid.robot.robot import Robot

CHUNK_ROWS = 1 << 15
"""Rows per piece: two megabytes per channel, fifty times the memory of ordinary filters."""

_WORKERS = 2

_ENDLESS = 1 << 62
"""Rows of a stretch whose end is not in sight."""

_MEMORY = 1.5
"""Overlap over the rows after which a filter's response has decayed to a billionth: derivatives magnify what is left."""

SPOOL_SAMPLES = 1 << 24
"""Samples that are put aside for the next time they are asked for: 4 GB on disk for seven joints. More are conditioned again."""

RowChange = Callable[[Log], Log]
"""A change of a log row by row, such as a correction of its encoders."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Window:
    """Rows of one stretch between gaps, with those before and after that the filters need.

    Args:
        log: rows of the window.
        rate: of the stretch [Hz].
        offset: rows of the stretch before the window.
        start, stop: rows of the window whose samples are wanted.
        ends: whether the stretch ends here.
        part: of the recording.
    """

    log: Log
    rate: float
    offset: int
    start: int
    stop: int
    ends: bool
    part: int


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

    def each(self) -> Iterator[StretchClock]:
        return repeat(self.clocks) if isinstance(self.clocks, StretchClock) else iter(self.clocks)


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

    def raw(self) -> Iterator[Log]:
        """The rows as recorded, in pieces."""
        for piece in self.stream.again().chunks(CHUNK_ROWS):
            yield piece if self.change is None else self.change(piece)
        give_back()

    def evidence(self, settings: Conditioning, span: Span) -> list[Uniform]:
        held: list[list[Piece]] = []
        rows = 0
        for piece in _in_spans(self.even(settings), (span,)):
            if piece.begins or not held:
                held.append([])
            held[-1].append(piece)
            rows += len(piece.log)
            if rows >= EVIDENCE_ROWS:
                break
        whole = [_even_part(joined_logs([p.log for p in own]), 1.0 / own[0].clock.step) for own in held]
        parts = parts_within(whole, span, EVIDENCE_ROWS)
        if settings.period is not None:
            parts = [averaged_part(part, settings.period) for part in parts]
        return parts

    def notes(self, settings: Conditioning) -> tuple[Note, ...]:
        return self.timing(settings).notes

    def even(self, settings: Conditioning) -> Iterator[Piece]:
        """The log on its even grid, cut at gaps."""
        timing = self.timing(settings)
        gap = settings.gap * timing.step
        wanted = (_without_velocity(piece, settings) for piece in _checked_pieces(self.raw(), settings, self.robot))
        cut = cut_at_gaps(wanted, gap, timing.each())
        return even_pieces(without_corrupt(rebased(cut, timing.step, settings), gap, settings), settings)

    def timing(self, settings: Conditioning) -> Timing:
        """The time base of the log, found out once.

        Raises:
            LogRefusedError: `clock-ticks` for a log of a reader that polls its controller, whose time only the whole log tells.
        """
        key = (settings.gap, settings.period)
        if key not in self._timings:
            self._timings[key] = _time_base(self._beginning(settings), self.stream.again(), settings)
        return self._timings[key]

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
            yield from _merged_pieces(piece for _, piece in self.conditioned(settings, (span,)))

    def _fill(self, settings: Conditioning, family: tuple[Span, ...]) -> None:
        """Conditions a family of spans and puts their samples aside, unless there are too many."""
        spools = {(settings, span): Spool() for span in family}
        for part, own in groupby(self.conditioned(settings, family), key=lambda pair: pair[0]):
            spool = spools[settings, family[part]]
            for piece in _merged_pieces(piece for _, piece in own):
                spool.add(piece)
                if sum(len(each) for each in spools.values()) > SPOOL_SAMPLES:
                    self._endless |= set(spools)
                    return
        self._spools |= spools

    def conditioned(self, settings: Conditioning, spans: tuple[Span, ...]) -> Iterator[tuple[int, Samples]]:
        """Samples of each window, with the number of the span it lies in; settings are resolved."""
        even = _in_spans(self.even(settings), spans)
        if settings.period is not None:
            for k, own in groupby(even, key=lambda piece: piece.part):
                for part in folded_parts(own, settings.period):
                    if is_long_enough(part, settings):
                        yield k, conditioned(part, settings)
            return
        with ThreadPoolExecutor(_WORKERS) as pool:
            pending: deque[tuple[int, Future[Samples | None]]] = deque()
            for window in _windows(even, settings):
                pending.append((window.part, pool.submit(_window_samples, window, settings)))
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


def _in_spans(pieces: Iterable[Piece], spans: tuple[Span, ...]) -> Iterator[Piece]:
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
            yield Piece(named, begins or k != part, piece.clock, k)
            begins, part = False, k
        if part == len(spans) - 1 and float(piece.log.time[-1]) >= spans[-1].stop:
            return


def _merged_pieces(pieces: Iterable[Samples]) -> Iterator[Samples]:
    """Samples that follow on one another in pieces of about `PIECE_SAMPLES`."""
    held: list[Samples] = []
    for piece in pieces:
        if held and (not piece.segments[0].continues or sum(len(each) for each in held) >= PIECE_SAMPLES):
            yield _joined_piece(held)
            held = []
        held.append(piece)
    if held:
        yield _joined_piece(held)


def _joined_piece(pieces: Sequence[Samples]) -> Samples:
    """Pieces that follow on one another as one, of one segment."""
    whole = concatenated(pieces)
    return replace(whole, segments=(replace(whole.segments[0], stop=len(whole)),))


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


def overlap(rate: float, settings: Conditioning) -> int:
    """Rows by which windows overlap."""
    assert settings.cutoff is not None
    assert settings.torque_cutoff is not None
    filters = [settings.low_pass(rate, cutoff) for cutoff in (settings.cutoff, settings.torque_cutoff)]
    return int(_MEMORY * max(trimmed_edge(_ENDLESS, rate, settings), *(f.settling for f in filters))) + 16


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


def _windows(pieces: Iterable[Piece], settings: Conditioning) -> Iterator[Window]:
    """Overlapping windows of each stretch between gaps."""
    held: list[Log] = []
    rate, part, offset, wanted, margin = 1.0, 0, 0, 0, 0

    def window(*, ends: bool) -> Window:
        whole = joined_logs(held)
        stop = len(whole) if ends else len(whole) - margin
        return Window(log=whole, rate=rate, offset=offset, start=wanted - offset, stop=stop, ends=ends, part=part)

    for piece in pieces:
        if piece.begins:
            if held:
                yield window(ends=True)
            held, offset, wanted, part = [], 0, 0, piece.part
            rate = 1.0 / piece.clock.step
            margin = overlap(rate, settings)
        held.append(piece.log)
        rows = sum(len(log) for log in held)
        if rows > 3 * margin:
            found = window(ends=False)
            yield found
            wanted = offset + rows - margin
            # What the next window needs before its first wanted row.
            held = [found.log.rows(rows - 2 * margin, rows)]
            offset += rows - 2 * margin
    if held:
        yield window(ends=True)


def _window_samples(window: Window, settings: Conditioning) -> Samples | None:
    """Samples of one window, at the instants the whole stretch would have them; None when there are none."""
    part = _even_part(window.log, window.rate)
    count = len(part.time)
    whole = window.offset == 0 and window.ends
    if count < MIN_STRETCH or (whole and not is_long_enough(part, settings)):
        return None
    edge = trimmed_edge(count if whole else _ENDLESS, part.rate, settings)
    every = decimation(part.rate, settings)
    # Instants are counted from the first one kept of the whole stretch.
    first = max(window.start, edge - window.offset)
    first += (edge - window.offset - first) % every
    stop = count - edge if window.ends else window.stop
    if stop <= first:
        return None
    samples = conditioned_range(part, settings, first, stop)
    continues = window.offset + first > edge
    return replace(samples, segments=tuple(replace(s, continues=continues) for s in samples.segments))


def _even_part(log: Log, rate: float) -> Uniform:
    return Uniform(log=log, time=log.time, rate=rate, channels=dict(log.channels), variances={})
