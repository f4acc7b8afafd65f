"""Check a recording of any length."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from armid.logs.health.check import check_log
from armid.logs.log import Log
from armid.logs.read import ReadOptions, joined_logs, open_log
from armid.notes import Note
from armid.robot.robot import Robot

WHOLE_ROWS = 2_000_000
"""A log up to this long is checked as a whole, half a gigabyte at most; a longer one piece by piece."""


def check_file(path: str | Path, robot: Robot, *, options: ReadOptions | None = None) -> Log:
    """Reads and checks a recording. Of one that does not fit in memory the first piece is returned, with the findings of all.

    Args:
        path: data file or mapping.
        robot: nominal arm.
        options: what the file does not say itself.
    """
    stream = open_log(path, robot, options=options)
    held: list[Log] = []
    count = 0
    found: list[Note] = []
    first: Log | None = None
    for piece in stream.chunks():
        held.append(piece)
        count += len(piece)
        if count >= WHOLE_ROWS:
            checked = check_log(joined_logs(held), robot)
            first = first or checked
            found += checked.notes
            held, count = [], 0
    if held:
        checked = check_log(joined_logs(held), robot)
        # A rest too short to judge by itself says nothing new.
        if first is None or len(checked) > WHOLE_ROWS // 10:
            first = first or checked
            found += checked.notes
    assert first is not None  # a stream without samples raises
    return replace(first, source=stream.provenance(), notes=()).with_notes(merged([*stream.notes, *found]))


def merged(notes: Iterable[Note]) -> tuple[Note, ...]:
    """One note per code and subject: the first."""
    out: dict[tuple[str, str], Note] = {}
    for note in notes:
        out.setdefault((note.code, note.subject), note)
    return tuple(out.values())
