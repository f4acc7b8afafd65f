"""Logs of any length: the same samples, a piece at a time, in constant memory.

Pieces overlap by as much as the filters remember, so each can be conditioned by itself, two at a time, and the result is that of
the whole to rounding. A log whose stamps jitter is gone through once before, for its stamps alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np

from armid.errors import InputError
from armid.logs.conditioning.clocks import StretchClock, ordinary_step_of, stretch_clocks
from armid.logs.conditioning.condition import resolved_settings
from armid.logs.conditioning.even import Piece, cut_at_gaps, even_pieces, even_rows, rebased, without_corrupt
from armid.logs.conditioning.folding import folded_parts
from armid.logs.conditioning.parts import MIN_STRETCH, Uniform, with_period
from armid.logs.conditioning.settings import Conditioning, VelocitySource
from armid.logs.conditioning.timebase import TimeBase, chosen_base
from armid.logs.conditioning.uniform import Stretch, check_step, even_step, is_uniform, ordinary_step, stretches
from armid.logs.conditioning.window import conditioned, conditioned_range, decimation, is_long_enough, trimmed_edge
from armid.logs.health.refuse import LogRefusedError, refuse_errors
from armid.logs.health.rows import usable_rows
from armid.logs.log import Channel, Clock, Log
from armid.logs.read import LogStream, joined_logs
from armid.logs.samples import Samples
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.signals.filters import LowPass

CHUNK_ROWS = 1 << 16
"""Rows per piece: a few megabytes per channel, a hundred times the memory of ordinary filters."""

WORKERS = 2

ENDLESS = 1 << 62
"""Rows of a stretch whose end is not in sight."""

MEMORY = 1.5
"""Overlap over the rows after which a filter's response has decayed to a billionth: derivatives magnify what is left."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Window:
    """Rows of one stretch between gaps, with those before and after that the filters need.

    Args:
        log: rows of the window.
        rate: of the stretch [Hz].
        offset: rows of the stretch before the window.
        start, stop: rows of the window whose samples are wanted.
        ends: whether the stretch ends here.
    """

    log: Log
    rate: float
    offset: int
    start: int
    stop: int
    ends: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamPlan:
    """What all windows share.

    Args:
        settings: with every open choice made on the first piece.
        step: ordinary step of the log [s].
        clocks: of the stretches, in order.
        margin: overlap of windows, in rows.
        notes: why.
    """

    settings: Conditioning
    step: float
    clocks: Iterator[StretchClock]
    margin: int
    notes: tuple[Note, ...]


def condition_stream(stream: LogStream, robot: Robot, settings: Conditioning | None = None) -> Iterator[Samples]:
    """Conditioned samples of a long log, piece by piece, in order.

    Open choices (cut-off, rate, whether stamps or even counting are time) are made on the first piece. With a period, every
    stretch between gaps gives its mean period.

    Args:
        stream: from `open_log`, opened with the robot so that its joints are in order.
        robot: the arm.
        settings: see `Conditioning`.

    Raises:
        LogRefusedError: errors that are not accepted; `clock-ticks` for a log of a reader that polls its controller, whose time
            only the whole log tells; `clock-drift` when stamps stray from even counting later on.
    """
    settings = settings or Conditioning()
    pieces = checked_pieces(stream.chunks(CHUNK_ROWS), settings, robot)
    first = next(pieces, None)
    if first is None:
        raise InputError(stream.mapping.name, "no samples")
    plan = planned(first, stream, settings)
    gap = settings.gap * plan.step
    cut = cut_at_gaps((without_velocity(p, settings) for p in chain([first], pieces)), gap, plan.clocks)
    even = even_pieces(without_corrupt(rebased(cut, plan.step, settings), gap, settings), settings)
    if settings.period is not None:
        for part in folded_parts(even, settings.period):
            if is_long_enough(part, plan.settings):
                yield replace(conditioned(part, plan.settings), notes=plan.notes)
        return
    with ThreadPoolExecutor(WORKERS) as pool:
        pending: deque[Future[Samples | None]] = deque()
        for window in windows(even, plan):
            pending.append(pool.submit(window_samples, window, plan))
            if len(pending) > WORKERS:
                yield from finished(pending.popleft(), plan.notes)
        while pending:
            yield from finished(pending.popleft(), plan.notes)


def finished(future: Future[Samples | None], notes: tuple[Note, ...]) -> Iterator[Samples]:
    samples = future.result()
    if samples is not None and len(samples):
        yield replace(samples, notes=(*samples.notes, *notes))


def checked_pieces(pieces: Iterable[Log], settings: Conditioning, robot: Robot) -> Iterator[Log]:
    """The pieces, each with the columns conditioning needs, refused when it has errors nobody accepted."""
    for piece in pieces:
        refuse_errors(piece, settings.accept)
        if piece.clock is Clock.UNKNOWN:
            raise InputError(piece.name, "no clock, so no derivatives", "give the sampling step")
        if len(piece.joints) != robot.n_joints:
            raise InputError(piece.name, f"{len(piece.joints)} joints for the {robot.n_joints} of {robot.name}")
        if not piece.torques:
            raise InputError(piece.name, "no torque channel")
        # Velocity tells the time base on the first piece, and is kept for those who want it measured.
        wanted = (Channel.POSITION, Channel.VELOCITY, *piece.torques)
        yield replace(piece, channels={c: v for c, v in piece.channels.items() if c in wanted})


def without_velocity(piece: Log, settings: Conditioning) -> Log:
    """The piece without a velocity that is not asked for."""
    if settings.velocity is VelocitySource.MEASURED:
        return piece
    return replace(piece, channels={c: v for c, v in piece.channels.items() if c is not Channel.VELOCITY})


def planned(first: Log, stream: LogStream, settings: Conditioning) -> StreamPlan:
    """Choices made on the first piece."""
    step = ordinary_step(first.time)
    if step <= 0.0 or len(first) < MIN_STRETCH:
        raise InputError(first.name, f"{len(first)} rows whose time does not advance")
    check_step(first.name, step)
    longest = max(stretches(first, usable_rows(first), settings.gap), key=lambda s: len(s.time), default=None)
    if longest is None or len(longest.time) < MIN_STRETCH:
        raise InputError(first.name, f"no stretch of {MIN_STRETCH} samples without a gap at the beginning")
    based, clocks, notes = time_base(longest, stream, settings)
    grid = with_period(even_step(based), settings.period)
    count = int((based.time[-1] - based.time[0]) / grid) + 1
    whole = without_velocity(replace(based.log, time=based.time), settings)
    part = even_part(even_rows(whole, based.time[0] + grid * np.arange(count)), 1.0 / grid)
    resolved, chosen = resolved_settings([part], settings)
    assert resolved.cutoff is not None
    assert resolved.torque_cutoff is not None
    filters = [LowPass(part.rate, cutoff, settings.order) for cutoff in (resolved.cutoff, resolved.torque_cutoff)]
    edge = trimmed_edge(ENDLESS, part.rate, resolved)
    margin = int(MEMORY * max(edge, *(f.settling for f in filters))) + 16
    return StreamPlan(settings=resolved, step=based.step, clocks=clocks, margin=margin, notes=(*notes, *chosen))


def time_base(
    longest: Stretch, stream: LogStream, settings: Conditioning
) -> tuple[Stretch, Iterator[StretchClock], list[Note]]:
    """The first stretch on its time base, the clocks of all stretches, and the reason.

    Raises:
        LogRefusedError: `clock-ticks`.
    """
    if longest.log.clock is not Clock.COLUMN or is_uniform(longest.time, longest.step):
        exact = even_step(longest)
        return longest, repeat(StretchClock(step=with_period(exact, settings.period))), []
    step = ordinary_step_of(stream.stamps(CHUNK_ROWS), float(np.median(np.diff(longest.time))))
    kind, based, note = chosen_base(replace(longest, step=step))
    if kind is TimeBase.TICKS:
        if "clock-ticks" not in settings.accept:
            text = (
                "rows were polled from a controller, some twice and some not at all, and lie on its ticks rather than on their "
                "stamps: read the log as a whole, or accept the stamps"
            )
            name = longest.log.name
            raise LogRefusedError(name, [Note("clock-ticks", Severity.ERROR, text, name)])
        kind, based, note = TimeBase.STAMPS, replace(longest, step=step), None
    found = stretch_clocks(stream.stamps(CHUNK_ROWS), step, settings.gap * step, counted=kind is TimeBase.COUNTED)
    clocks = (clock.with_step(with_period(clock.step, settings.period)) for clock in list(found))
    return based, clocks, [note] if note is not None else []


def windows(pieces: Iterable[Piece], plan: StreamPlan) -> Iterator[Window]:
    """Overlapping windows of each stretch between gaps."""
    held: list[Log] = []
    rate, offset, wanted = 1.0, 0, 0
    for piece in pieces:
        if piece.begins and held:
            whole = joined_logs(held)
            yield Window(log=whole, rate=rate, offset=offset, start=wanted - offset, stop=len(whole), ends=True)
            held, offset, wanted = [], 0, 0
        rate = 1.0 / piece.clock.step
        held.append(piece.log)
        rows = sum(len(log) for log in held)
        if rows > 3 * plan.margin:
            whole = joined_logs(held)
            yield Window(
                log=whole, rate=rate, offset=offset, start=wanted - offset, stop=rows - plan.margin, ends=False
            )
            wanted = offset + rows - plan.margin
            # What the next window needs before its first wanted row.
            held = [whole.rows(rows - 2 * plan.margin, rows)]
            offset += rows - 2 * plan.margin
    if held:
        whole = joined_logs(held)
        yield Window(log=whole, rate=rate, offset=offset, start=wanted - offset, stop=len(whole), ends=True)


def window_samples(window: Window, plan: StreamPlan) -> Samples | None:
    """Samples of one window, at the instants the whole stretch would have them; None when there are none."""
    part = even_part(window.log, window.rate)
    count = len(part.time)
    whole = window.offset == 0 and window.ends
    if count < MIN_STRETCH or (whole and not is_long_enough(part, plan.settings)):
        return None
    edge = trimmed_edge(count if whole else ENDLESS, part.rate, plan.settings)
    every = decimation(part.rate, plan.settings)
    # Instants are counted from the first one kept of the whole stretch.
    first = max(window.start, edge - window.offset)
    first += (edge - window.offset - first) % every
    stop = count - edge if window.ends else window.stop
    return conditioned_range(part, plan.settings, first, stop) if stop > first else None


def even_part(log: Log, rate: float) -> Uniform:
    return Uniform(log=log, time=log.time, rate=rate, channels=dict(log.channels), variances={})
