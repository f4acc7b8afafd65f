"""Findings about a log, held or streamed; the torque is tested on the very samples that conditioning gives everybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from armid.errors import InputError
from armid.logs.conditioning.grid import Span, resolved_settings
from armid.logs.conditioning.held import HeldGrid, log_bytes
from armid.logs.conditioning.settings import Conditioning
from armid.logs.health.check import UNREADABLE, log_findings, row_findings, torque_tests
from armid.logs.log import Clock, Log
from armid.logs.read import joined_logs
from armid.logs.samples import Samples, concatenated
from armid.notes import Note
from armid.robot.robot import Robot

_ASSUMED_STEP = 0.01
"""[s] For a log without a clock: the signs of slopes do not depend on it."""

_BLOCK_BYTES = 16 << 20
"""Of a long log looked at together: two minutes of seven joints at 1 kHz."""

_LASTING = ("too-little-motion", "quantised", "torque-dead", "torque-untested")
"""Findings about what is missing: of a long log they are true when most blocks have them, for any arm rests now and then."""


def held_findings(log: Log, robot: Robot, grid: HeldGrid, parts: Sequence[Span] = ()) -> tuple[Note, ...]:
    """Everything found about a log in memory.

    Args:
        log: columns in the robot's order.
        robot: nominal arm.
        grid: of this log; its samples under automatic conditioning stay with it for others.
        parts: that it is going to be used in, in order of time; the whole when there are none.
    """
    return log_findings(log, robot, lambda: _samples_in_parts(log, grid, parts))


def _samples_in_parts(log: Log, grid: HeldGrid, parts: Sequence[Span]) -> Samples:
    """The samples of the parts of a log under the conditioning that the first of them chooses: those that a fit will ask for.

    Raises:
        InputError: nothing usable is left.
    """
    if not parts or log.clock is Clock.UNKNOWN:
        return _automatic_samples(log, grid)
    try:
        return concatenated([grid.whole(_chosen_on(grid, parts[0]), part) for part in parts])
    except InputError:  # too short to be divided; whoever uses the parts will say so
        return _automatic_samples(log, grid)


def _automatic_samples(log: Log, grid: HeldGrid) -> Samples:
    """The samples of a log under automatic conditioning; a log without a clock is given one.

    Raises:
        InputError: nothing usable is left.
    """
    if log.clock is Clock.UNKNOWN:
        timed = replace(log, time=np.arange(float(len(log))) * _ASSUMED_STEP, clock=Clock.STEP)
        grid = HeldGrid(lambda: timed)
    span = Span(log.name)
    return grid.whole(_chosen_on(grid, span), span)


def _chosen_on(grid: HeldGrid, span: Span) -> Conditioning:
    """Automatic conditioning, with the choices of a span."""
    return resolved_settings(grid.evidence(Conditioning(), span), Conditioning())[0]


def streamed_findings(pieces: Iterable[Log], robot: Robot) -> tuple[Note, ...]:
    """Everything found about a log that comes in pieces, looked at block by block.

    Rows are looked at in every block. What the torque tells (sign, unit, order, mounting, lag, payload) hardly changes within a
    log: the first block, the second, the fourth, the eighth and so on are tested.
    """
    found: list[list[Note]] = []
    with np.errstate(all="ignore"):
        for number, block in enumerate(_blocks(pieces), start=1):
            notes = list(row_findings(block, robot))
            if number & (number - 1) == 0 and not any(note.code in UNREADABLE for note in notes):
                notes += _block_tests(block, robot, notes)
            found.append(notes)
    return merged(found)


def _block_tests(block: Log, robot: Robot, found: Sequence[Note]) -> Iterator[Note]:
    """What the torque of a block tells."""
    yield from torque_tests(block, robot, found, lambda: _automatic_samples(block, HeldGrid(lambda: block)))


def _blocks(pieces: Iterable[Log]) -> Iterator[Log]:
    """Pieces joined to blocks; a rest too short to be judged by itself is part of the last one."""
    held: list[Log] = []
    ready: Log | None = None
    for piece in pieces:
        held.append(piece)
        if sum(log_bytes(log) for log in held) >= _BLOCK_BYTES:
            if ready is not None:
                yield ready
            ready, held = joined_logs(held), []
    if held:
        rest = joined_logs(held)
        if ready is not None and len(rest) < len(ready) // 10:
            rest, ready = joined_logs([ready, rest]), None
        if ready is not None:
            yield ready
        ready = rest
    if ready is not None:
        yield ready


def merged(found: Sequence[Sequence[Note]]) -> tuple[Note, ...]:
    """One note per code and subject: the first; what is lasting only when most blocks have it."""
    out: dict[tuple[str, str], Note] = {}
    often = Counter(key for notes in found for key in {(note.code, note.subject) for note in notes})
    for note in (note for notes in found for note in notes):
        key = (note.code, note.subject)
        if note.code not in _LASTING or 2 * often[key] >= len(found):
            out.setdefault(key, note)
    return tuple(out.values())
