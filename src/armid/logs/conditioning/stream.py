"""Logs of any length: the same samples, a piece at a time, in constant memory.

Pieces overlap by as much as the filters remember, so each can be conditioned by itself, two at a time, and the result is that of
the whole to rounding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.conditioning.condition import resolved_settings
from armid.logs.conditioning.filters import LowPass
from armid.logs.conditioning.parts import MIN_STRETCH, Uniform
from armid.logs.conditioning.settings import Conditioning, VelocitySource
from armid.logs.conditioning.uniform import UNIFORM_JITTER, check_step, ordinary_step, resampled, stale_rows
from armid.logs.conditioning.window import conditioned_range, decimation, is_long_enough, trimmed_edge
from armid.logs.health.refuse import LogRefusedError, refuse_errors
from armid.logs.health.rows import Mask, usable_rows
from armid.logs.log import Channel, Clock, Log
from armid.logs.read import LogStream, joined_logs
from armid.logs.samples import Samples
from armid.notes import Note, Severity
from armid.robot.robot import Robot

CHUNK_ROWS = 1 << 16
"""Rows per piece: a few megabytes per channel, a hundred times the memory of ordinary filters."""

WORKERS = 2

MAX_UNUSABLE = 0.01
"""Share of corrupt rows in a piece above which the log is refused unless `corrupt-values` is accepted."""


@dataclass(frozen=True, eq=False)
class Window:
    """Rows of one stretch between gaps, with those before and after that the filters need.

    Args:
        log: rows of the window.
        offset: rows of the stretch before the window.
        start, stop: rows of the window whose samples are wanted.
        ends: whether the stretch ends here.
    """

    log: Log
    offset: int
    start: int
    stop: int
    ends: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What all windows share: resolved settings, rate of the log [Hz], overlap and trimmed edge in rows."""

    settings: Conditioning
    rate: float
    margin: int
    edge: int


def condition_stream(stream: LogStream, robot: Robot, settings: Conditioning | None = None) -> Iterator[Samples]:
    """Conditioned samples of a long log, piece by piece, in order.

    Open choices (cut-off, rate) are made on the first piece. Recorded stamps are taken at their word.

    Args:
        stream: from `open_log`, opened with the robot so that its joints are in order.
        robot: the arm.
        settings: see `Conditioning`; repetitions cannot be averaged in pieces.

    Raises:
        LogRefusedError: errors that are not accepted.
    """
    settings = settings or Conditioning()
    if settings.period is not None:
        raise InputError("period", "repetitions of a log in pieces cannot be averaged", "read the log as a whole")
    pieces = checked_pieces(stream.chunks(CHUNK_ROWS), settings, robot)
    first = next(pieces, None)
    if first is None:
        raise InputError(stream.mapping.name, "no samples")
    plan, notes = planned(first, settings)
    with ThreadPoolExecutor(WORKERS) as pool:
        pending: deque[Future[Samples | None]] = deque()
        even = even_pieces(cut_at_gaps(chained(first, pieces), settings.gap / plan.rate), 1.0 / plan.rate, settings)
        for window in windows(even, plan):
            pending.append(pool.submit(window_samples, window, plan))
            if len(pending) > WORKERS:
                yield from finished(pending.popleft(), notes)
        while pending:
            yield from finished(pending.popleft(), notes)


def finished(future: Future[Samples | None], notes: list[Note]) -> Iterator[Samples]:
    samples = future.result()
    if samples is not None and len(samples):
        yield replace(samples, notes=(*samples.notes, *notes))


def chained(first: Log, rest: Iterator[Log]) -> Iterator[Log]:
    yield first
    yield from rest


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
        wanted = (Channel.POSITION, *piece.torques)
        if settings.velocity is VelocitySource.MEASURED:
            wanted = (*wanted, Channel.VELOCITY)
        yield replace(piece, channels={c: v for c, v in piece.channels.items() if c in wanted})


def planned(first: Log, settings: Conditioning) -> tuple[Plan, list[Note]]:
    """Choices made on the first piece."""
    step = ordinary_step(first.time)
    if step <= 0.0 or len(first) < MIN_STRETCH:
        raise InputError(first.name, f"{len(first)} rows whose time does not advance")
    check_step(first.name, step)
    part = even_part(even_piece(first, step, first.time[0], first.time[-1]), 1.0 / step)
    resolved, notes = resolved_settings([part], settings)
    assert resolved.cutoff is not None
    assert resolved.torque_cutoff is not None
    filters = [LowPass(part.rate, cutoff, settings.order) for cutoff in (resolved.cutoff, resolved.torque_cutoff)]
    edge = trimmed_edge(1 << 62, part.rate, resolved)
    margin = max(edge, *(f.settling for f in filters)) + 16
    return Plan(resolved, part.rate, margin, edge), notes


def cut_at_gaps(pieces: Iterable[Log], longest: float) -> Iterator[tuple[Log, bool]]:
    """Pieces cut where time jumps, each with whether a new stretch begins with it; rows that step back are left out."""
    last = -np.inf
    for piece in pieces:
        kept = forward_rows(piece, last)
        time = kept.time
        if len(time) == 0:
            continue
        cuts = np.flatnonzero(np.diff(time, prepend=last) > longest)
        bounds = np.unique(np.concatenate([[0], cuts, [len(time)]]))
        for start, stop in pairwise(bounds):
            whole = stop - start == len(time)
            yield (kept if whole else kept.rows(int(start), int(stop))), bool(start in cuts)
        last = float(time[-1])


def forward_rows(piece: Log, last: float) -> Log:
    """The rows whose time is later than every row before."""
    if (np.diff(piece.time, prepend=last) > 0.0).all():
        return piece
    finite = np.where(np.isfinite(piece.time), piece.time, -np.inf)
    latest = np.maximum.accumulate(np.concatenate([[last], finite]))[:-1]
    return piece.selected(np.asarray(finite > latest))


CONTEXT = 24
"""Rows kept of what came before: a spline forgets its ends within a few."""

LOOK_AHEAD = 8
"""Rows at the end of a piece that wait for the next before they are resampled."""


def even_pieces(pieces: Iterable[tuple[Log, bool]], step: float, settings: Conditioning) -> Iterator[tuple[Log, bool]]:
    """Pieces on an even grid that runs on from piece to piece, corrupt and stale rows filled from their neighbours.

    Pieces that are even and clean pass as they are; from the first that is not, the rest of the stretch is resampled.
    """
    tail: Log | None = None
    due, rough, begins = 0.0, False, True
    for piece, new in pieces:
        if new:
            if tail is not None and rough:
                yield even_piece(tail, step, due, float(tail.time[-1])), begins
            tail, rough, begins = None, False, True
        if not rough and is_clean(piece, step):
            yield piece, begins
            tail, due, begins = (
                piece.rows(max(0, len(piece) - CONTEXT), len(piece)),
                float(piece.time[-1]) + step,
                False,
            )
            continue
        check_usable(piece, settings)
        block = piece if tail is None else joined_logs([tail, piece])
        due = float(block.time[0]) if tail is None else due
        rough = True
        until = float(block.time[max(0, len(block) - LOOK_AHEAD)])
        if until >= due:
            even = even_piece(block, step, due, until)
            yield even, begins
            due, begins = float(even.time[-1]) + step, False
        tail = block.rows(max(0, len(block) - CONTEXT), len(block))
    if tail is not None and rough and tail.time[-1] >= due:
        yield even_piece(tail, step, due, float(tail.time[-1])), begins


def is_clean(piece: Log, step: float) -> bool:
    """Whether a piece can be used as it is."""
    even = len(piece) < 2 or bool(np.abs(np.diff(piece.time) - step).max() <= UNIFORM_JITTER * step)
    return even and bool(usable_rows(piece).all()) and not bool(stale_rows(piece[Channel.POSITION]).any())


def check_usable(piece: Log, settings: Conditioning) -> None:
    """Refuses a piece with more than a few corrupt rows, unless that is accepted."""
    bad = 1.0 - float(usable_rows(piece).mean())
    if bad > MAX_UNUSABLE and "corrupt-values" not in settings.accept:
        text = f"{bad:.1%} of the rows from {piece.time[0]:.6g} s to {piece.time[-1]:.6g} s are missing or corrupt"
        raise LogRefusedError(piece.name, [Note("corrupt-values", Severity.ERROR, text, piece.name)])


def even_piece(block: Log, step: float, start: float, until: float) -> Log:
    """Rows of a block resampled at start, start + step, ... up to `until`."""
    # Half a thousandth of a step of slack: the last instant must not be lost to rounding.
    count = max(1, int(np.floor((until - start) / step + 5e-4)) + 1)
    grid = np.asarray(start + step * np.arange(count), dtype=np.float64)
    good = usable_rows(block)
    stale = stale_rows(block[Channel.POSITION])
    channels = {}
    for channel, values in block.channels.items():
        fresh = good & ~stale if channel is Channel.POSITION else good & ~(stale & stale_rows(values))
        channels[channel] = filled(block.time, values, grid, fresh & np.isfinite(values).all(axis=1))
    return replace(block, time=grid, channels=channels)


def filled(time: FloatArray, values: FloatArray, grid: FloatArray, fresh: Mask) -> FloatArray:
    """Values on the grid from the fresh rows."""
    if fresh.sum() < 2:
        raise InputError("log", f"no usable rows between {time[0]:.6g} s and {time[-1]:.6g} s")
    return resampled(time, values, grid, fresh)


def windows(pieces: Iterable[tuple[Log, bool]], plan: Plan) -> Iterator[Window]:
    """Overlapping windows of each stretch between gaps."""
    held: list[Log] = []
    offset = wanted = 0
    for piece, new in pieces:
        if new and held:
            whole = joined_logs(held)
            yield Window(whole, offset, wanted - offset, len(whole), True)
            held, offset, wanted = [], 0, 0
        held.append(piece)
        rows = sum(len(log) for log in held)
        if rows > 3 * plan.margin:
            whole = joined_logs(held)
            yield Window(whole, offset, wanted - offset, rows - plan.margin, False)
            wanted = offset + rows - plan.margin
            # What the next window needs before its first wanted row.
            held = [whole.rows(rows - 2 * plan.margin, rows)]
            offset += rows - 2 * plan.margin
    if held:
        whole = joined_logs(held)
        yield Window(whole, offset, wanted - offset, len(whole), True)


def window_samples(window: Window, plan: Plan) -> Samples | None:
    """Samples of one window, at the instants the whole stretch would have them; None when there are none."""
    part = even_part(window.log, plan.rate)
    count = len(part.time)
    whole = window.offset == 0 and window.ends
    if count < MIN_STRETCH or (whole and not is_long_enough(part, plan.settings)):
        return None
    edge = trimmed_edge(count, part.rate, plan.settings) if whole else plan.edge
    every = decimation(part.rate, plan.settings)
    # Instants are counted from the first one kept of the whole stretch.
    first = max(window.start, edge - window.offset)
    first += (edge - window.offset - first) % every
    stop = count - edge if window.ends else window.stop
    return conditioned_range(part, plan.settings, first, stop) if stop > first else None


def even_part(log: Log, rate: float) -> Uniform:
    return Uniform(log, log.time, rate, dict(log.channels), {})
