"""Pieces of a long log on an even grid that runs on from piece to piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.conditioning.clocks import StretchClock, bounds, counts, forward_mask
from armid.logs.conditioning.settings import Conditioning
from armid.logs.conditioning.timebase import WANDER, wander
from armid.logs.conditioning.uniform import UNIFORM_JITTER, resampled, stale_rows
from armid.logs.health.refuse import LogRefusedError
from armid.logs.health.rows import ABSURD, corrupt, needed, usable_rows, within
from armid.logs.log import Channel, Log
from armid.logs.read import joined_logs
from armid.notes import Note, Severity

_MAX_UNUSABLE = 0.01
"""Share of corrupt rows in a piece above which the log is refused unless `corrupt-values` is accepted."""

_CONTEXT = 64
"""Rows kept of what came before: a spline forgets its ends by a factor of four with every row."""

_LOOK_AHEAD = 32
"""Rows at the end of a piece that wait for the next before they are resampled."""

_BORDER = 200
"""Rows on both sides of a border between pieces, looked at together for spikes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Piece:
    """Rows of one stretch between gaps, with the stretch's clock.

    Args:
        log: the rows.
        begins: whether the stretch begins here.
        clock: of the stretch.
        part: of the recording, counted from 0, when it is split.
        stretch: on its even grid the number of the stretch.
        row: of that grid where the piece begins.
    """

    log: Log
    begins: bool
    clock: StretchClock
    part: int = 0
    stretch: int = 0
    row: int = 0


@dataclass(eq=False)
class Grid:
    """The even grid of the stretch being read: where it begins, and how many instants of it are done."""

    origin: float
    step: float
    done: int = 0

    def times(self, count: int) -> FloatArray:
        return np.asarray(self.origin + self.step * (self.done + np.arange(count)), dtype=np.float64)

    def before(self, time: float) -> int:
        """Instants not done yet up to a time."""
        # Half a thousandth of a step of slack: the last instant must not be lost to rounding.
        return int(np.floor((time - self.origin) / self.step + 5e-4)) + 1 - self.done


@dataclass(eq=False, kw_only=True)
class StreamState:
    """Where a stream stands between two of its pieces: with this, and the rows that follow, it can be taken up again.

    Args:
        stamp: of the last row as recorded [s].
        clock: of the stretch it is in.
        clocks: that were used so far.
        counted: stamp of the last row that was counted [s].
        number: of that row.
        time: of the last row that can be used [s].
        pieces: without corrupt rows, so far.
        grid: of the stretch.
        stretch: number of that grid.
        tail: the last rows, with which the next are resampled.
        rough: whether the rest of the stretch is resampled.
        spoiled: whether a spike or a repeated row lies where the next piece begins.
    """

    stamp: float = -np.inf
    clock: StretchClock | None = None
    clocks: int = 0
    counted: float = -np.inf
    number: float = 0.0
    time: float = -np.inf
    pieces: int = 0
    grid: Grid = field(default_factory=lambda: Grid(0.0, 1.0))
    stretch: int = 0
    tail: Log | None = None
    rough: bool = False
    spoiled: bool = False

    def kept(self) -> StreamState:
        """As it is now."""
        return replace(self, grid=copy(self.grid))


def cut_at_gaps(
    pieces: Iterable[Log], gap: float, clocks: Iterator[StretchClock], state: StreamState
) -> Iterator[Piece]:
    """Pieces cut where time jumps by more than `gap` [s]; rows that step back are left out."""
    for piece in pieces:
        mask = forward_mask(piece.time, state.stamp)
        kept = piece if mask.all() else piece.selected(mask)
        for start, stop in bounds(kept.time, state.stamp, gap):
            before = state.stamp if start == 0 else float(kept.time[start - 1])
            begins = not kept.time[start] - before <= gap
            if begins or state.clock is None:
                state.clock = next(clocks)
                state.clocks += 1
            own = kept if stop - start == len(kept) else kept.rows(start, stop)
            yield Piece(log=own, begins=begins, clock=state.clock)
        if len(kept):
            state.stamp = float(kept.time[-1])


def rebased(pieces: Iterable[Piece], step: float, settings: Conditioning, state: StreamState) -> Iterator[Piece]:
    """Pieces whose stamps are replaced by the line through them over the sample count, where their clock has one.

    Raises:
        LogRefusedError: stamps stray from the line, as the beginning of the log did not suggest; `clock-drift` accepts it.
    """
    for piece in pieces:
        clock, stamps = piece.clock, piece.log.time
        if clock.start is None:
            yield piece
            continue
        if piece.begins:
            state.counted, state.number = -np.inf, 0.0
        count = state.number + np.cumsum(counts(stamps, state.counted, step)[clock.missing])
        time = np.asarray(clock.start + clock.slope * count)
        state.counted, state.number = float(stamps[-1]), float(count[-1])
        off = wander(stamps - time)
        if off > WANDER * step and "clock-drift" not in settings.accept:
            text = (
                f"stamps stray from even counting by {off * 1e3:.3g} ms around {stamps[0]:.6g} s, as they do not at the "
                "beginning: read the log as a whole, or cut it"
            )
            raise LogRefusedError(piece.log.name, [Note("clock-drift", Severity.ERROR, text, piece.log.name)])
        yield replace(piece, log=replace(piece.log, time=time))


def without_corrupt(pieces: Iterable[Piece], gap: float, settings: Conditioning, state: StreamState) -> Iterator[Piece]:
    """Pieces without rows that are missing or absurd, cut again where so many follow each other that they leave a gap [s].

    Raises:
        LogRefusedError: there are more than a few of them.
    """
    begins = state.pieces == 0
    for piece in pieces:
        log = piece.log
        begins = begins or piece.begins
        if all(within(log[channel], ABSURD[channel]) for channel in needed(log)):
            jump = log.time[0] - state.time > gap
            state.pieces += 1
            yield replace(piece, begins=begins or bool(jump))
            state.time, begins = float(log.time[-1]), False
            continue
        _check_usable(log, settings)
        bad = np.any([corrupt(log[channel], ABSURD[channel]).any(axis=1) for channel in needed(log)], axis=0)
        kept = log.selected(~bad)
        for start, stop in bounds(kept.time, state.time, gap):
            before = state.time if start == 0 else float(kept.time[start - 1])
            jump = not kept.time[start] - before <= gap
            state.pieces += 1
            yield Piece(log=kept.rows(start, stop), begins=begins or jump, clock=piece.clock)
            begins = False
        if len(kept):
            state.time = float(kept.time[-1])


def _with_next(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, Piece | None]]:
    """Every piece with the next of the same stretch."""
    held: Piece | None = None
    for piece in pieces:
        if held is not None:
            yield held, None if piece.begins else piece
        held = piece
    if held is not None:
        yield held, None


def even_pieces(pieces: Iterable[Piece], settings: Conditioning, state: StreamState) -> Iterator[Piece]:
    """Pieces on the even grid of their stretch, corrupt and stale rows filled from their neighbours.

    Pieces that are even and clean pass as they are; from the first that is not, the rest of the stretch is resampled.
    """
    delay = settings.torque_delay
    for piece, following in _with_next(pieces):
        log, step = piece.log, piece.clock.step
        if piece.begins:
            _begin(piece, delay, state)
        grid = state.grid
        ends = following is None
        border = following is not None and _border_is_spoiled(log, following.log)
        if not (state.rough or state.spoiled or border) and _is_clean(log, grid):
            yield _placed(replace(log, time=grid.times(len(log))), piece, state)
        else:
            _check_usable(log, settings)
            state.rough = True
            block = log if state.tail is None else joined_logs([state.tail, log])
            count = grid.before(reach(block, delay, ends=ends))
            if count > 0:
                yield _placed(_even_rows(block, grid.times(count), delay), piece, state)
        state.spoiled = border
        kept = _CONTEXT + _LOOK_AHEAD + int(np.ceil(abs(delay) / step))
        source = log if len(log) >= kept or state.tail is None else joined_logs([state.tail, log])
        state.tail = source.rows(max(0, len(source) - kept), len(source))


def _begin(piece: Piece, delay: float, state: StreamState) -> None:
    """A new grid, from the first row on at which the torque is known too: from its own delay on [s]."""
    step = piece.clock.step
    skip = max(0.0, np.ceil(-delay / step - 1e-9))
    state.grid = Grid(float(piece.log.time[0]) + step * skip, step)
    state.stretch += 1
    state.tail, state.spoiled = None, False
    state.rough = delay != 0.0 or not piece.clock.aligned


def _placed(log: Log, piece: Piece, state: StreamState) -> Piece:
    """Rows of the grid that are done with this."""
    row = state.grid.done
    state.grid.done += len(log)
    return Piece(log=log, begins=row == 0, clock=piece.clock, part=piece.part, stretch=state.stretch, row=row)


def reach(block: Log, delay: float, *, ends: bool) -> float:
    """The last time at which a block can be resampled [s]: to its end, or some rows before while more follows."""
    row = len(block) - 1 if ends else max(0, len(block) - _LOOK_AHEAD)
    return float(block.time[row]) - max(0.0, delay)


def _is_clean(log: Log, grid: Grid) -> bool:
    """Whether a piece lies on the grid and can be used as it is."""
    even = bool(np.abs(log.time - grid.times(len(log))).max() <= UNIFORM_JITTER * grid.step)
    return even and bool(usable_rows(log).all()) and not bool(stale_rows(log[Channel.POSITION]).any())


def _border_is_spoiled(log: Log, following: Log) -> bool:
    """Whether a spike or a repeated row lies where two pieces meet, which neither can see alone."""
    here = min(len(log), _BORDER)
    block = joined_logs([log.rows(len(log) - here, len(log)), following.rows(0, min(len(following), _BORDER))])
    near = slice(max(0, here - 4), here + 4)
    return not bool(usable_rows(block)[near].all()) or bool(stale_rows(block[Channel.POSITION])[near].any())


def _check_usable(piece: Log, settings: Conditioning) -> None:
    """Refuses a piece with more than a few corrupt rows, unless that is accepted."""
    bad = 1.0 - float(usable_rows(piece).mean())
    if bad > _MAX_UNUSABLE and "corrupt-values" not in settings.accept:
        text = f"{bad:.1%} of the rows from {piece.time[0]:.6g} s to {piece.time[-1]:.6g} s are missing or corrupt"
        raise LogRefusedError(piece.name, [Note("corrupt-values", Severity.ERROR, text, piece.name)])


def _even_rows(block: Log, grid: FloatArray, delay: float = 0.0) -> Log:
    """Rows of a block resampled at the instants of a grid; torque that much earlier [s]."""
    good = usable_rows(block)
    stale = stale_rows(block[Channel.POSITION])
    channels = {}
    for channel, values in block.channels.items():
        fresh = good & ~stale if channel is Channel.POSITION else good & ~(stale & stale_rows(values))
        fresh = fresh & np.isfinite(values).all(axis=1)
        if fresh.sum() < 2:
            raise InputError(block.name, f"no usable rows between {block.time[0]:.6g} s and {block.time[-1]:.6g} s")
        channels[channel] = resampled(block.time - (delay if channel.is_torque else 0.0), values, grid, fresh)
    return replace(block, time=grid, channels=channels)
