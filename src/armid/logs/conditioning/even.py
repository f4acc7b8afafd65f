"""Pieces of a long log on an even grid that runs on from piece to piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

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


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of one stretch between gaps, with the stretch's clock.

    Args:
        log: the rows.
        begins: whether the stretch begins here.
        clock: of the stretch.
        part: of the recording, counted from 0, when it is split.
    """

    log: Log
    begins: bool
    clock: StretchClock
    part: int = 0


def cut_at_gaps(pieces: Iterable[Log], gap: float, clocks: Iterator[StretchClock]) -> Iterator[Piece]:
    """Pieces cut where time jumps by more than `gap` [s]; rows that step back are left out."""
    last, clock = -np.inf, StretchClock(step=gap)
    for piece in pieces:
        mask = forward_mask(piece.time, last)
        kept = piece if mask.all() else piece.selected(mask)
        for start, stop in bounds(kept.time, last, gap):
            before = last if start == 0 else float(kept.time[start - 1])
            begins = not kept.time[start] - before <= gap
            if begins:
                clock = next(clocks)
            yield Piece(kept if stop - start == len(kept) else kept.rows(start, stop), begins, clock)
        if len(kept):
            last = float(kept.time[-1])


def rebased(pieces: Iterable[Piece], step: float, settings: Conditioning) -> Iterator[Piece]:
    """Pieces whose stamps are replaced by the line through them over the sample count, where their clock has one.

    Raises:
        LogRefusedError: stamps stray from the line, as the beginning of the log did not suggest; `clock-drift` accepts it.
    """
    last, number = -np.inf, 0.0
    for piece in pieces:
        clock, stamps = piece.clock, piece.log.time
        if clock.start is None:
            yield piece
            continue
        if piece.begins:
            last, number = -np.inf, 0.0
        count = number + np.cumsum(counts(stamps, last, step)[clock.missing])
        time = np.asarray(clock.start + clock.slope * count)
        last, number = float(stamps[-1]), float(count[-1])
        off = wander(stamps - time)
        if off > WANDER * step and "clock-drift" not in settings.accept:
            text = (
                f"stamps stray from even counting by {off * 1e3:.3g} ms around {stamps[0]:.6g} s, as they do not at the "
                "beginning: read the log as a whole, or cut it"
            )
            raise LogRefusedError(piece.log.name, [Note("clock-drift", Severity.ERROR, text, piece.log.name)])
        yield replace(piece, log=replace(piece.log, time=time))


def without_corrupt(pieces: Iterable[Piece], gap: float, settings: Conditioning) -> Iterator[Piece]:
    """Pieces without rows that are missing or absurd, cut again where so many follow each other that they leave a gap [s].

    Raises:
        LogRefusedError: there are more than a few of them.
    """
    last, begins = -np.inf, True
    for piece in pieces:
        log = piece.log
        begins = begins or piece.begins
        if all(within(log[channel], ABSURD[channel]) for channel in needed(log)):
            jump = log.time[0] - last > gap
            yield replace(piece, begins=begins or bool(jump))
            last, begins = float(log.time[-1]), False
            continue
        _check_usable(log, settings)
        bad = np.any([corrupt(log[channel], ABSURD[channel]).any(axis=1) for channel in needed(log)], axis=0)
        kept = log.selected(~bad)
        for start, stop in bounds(kept.time, last, gap):
            before = last if start == 0 else float(kept.time[start - 1])
            jump = not kept.time[start] - before <= gap
            yield Piece(kept.rows(start, stop), begins or jump, piece.clock)
            begins = False
        if len(kept):
            last = float(kept.time[-1])


def _with_next(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, Piece | None]]:
    """Every piece with the next of the same stretch."""
    held: Piece | None = None
    for piece in pieces:
        if held is not None:
            yield held, None if piece.begins else piece
        held = piece
    if held is not None:
        yield held, None


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


def even_pieces(pieces: Iterable[Piece], settings: Conditioning) -> Iterator[Piece]:
    """Pieces on the even grid of their stretch, corrupt and stale rows filled from their neighbours.

    Pieces that are even and clean pass as they are; from the first that is not, the rest of the stretch is resampled.
    """
    delay = settings.torque_delay
    grid = Grid(0.0, 1.0)
    tail: Log | None = None
    rough, spoiled = False, False
    for piece, following in _with_next(pieces):
        log, step = piece.log, piece.clock.step
        if piece.begins:
            # Torque is known where the motion is only from its own delay on.
            skip = max(0.0, np.ceil(-delay / step - 1e-9))
            grid, tail, spoiled = Grid(float(log.time[0]) + step * skip, step), None, False
            rough = delay != 0.0 or not piece.clock.aligned
        ends = following is None
        border = following is not None and _border_is_spoiled(log, following.log)
        if not (rough or spoiled or border) and _is_clean(log, grid):
            yield replace(piece, log=replace(log, time=grid.times(len(log))), begins=grid.done == 0)
            grid.done += len(log)
        else:
            _check_usable(log, settings)
            rough = True
            block = log if tail is None else joined_logs([tail, log])
            count = grid.before(reach(block, delay, ends=ends))
            if count > 0:
                yield replace(piece, log=_even_rows(block, grid.times(count), delay), begins=grid.done == 0)
                grid.done += count
        spoiled = border
        kept = _CONTEXT + _LOOK_AHEAD + int(np.ceil(abs(delay) / step))
        source = log if len(log) >= kept or tail is None else joined_logs([tail, log])
        tail = source.rows(max(0, len(source) - kept), len(source))


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
