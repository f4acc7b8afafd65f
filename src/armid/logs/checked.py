"""Recordings that were read and checked once, used from what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from armid.logs.conditioning.grid import Span
from armid.logs.conditioning.held import HeldGrid
from armid.logs.conditioning.stream import StreamedGrid
from armid.logs.log import Log
from armid.logs.read import LogStream, ReadOptions, joined_logs, open_log
from armid.logs.recording import PIECE_ROWS, Recording, open_recording
from armid.logs.references import CheckedFile, Halves, RecordingReference
from armid.robot.robot import Robot


def referenced(recording: Recording, path: str, options: ReadOptions | None) -> Recording:
    """A whole recording that others can read from its file as well; only of one too long to be held this is of use.

    Args:
        recording: as `open_recording` made it.
        path, options: of the file.
    """
    known = CheckedFile(
        source=path, name=recording.name, facts=recording._facts, extent=recording._extent, streamed=recording.streamed
    )
    recording.reference = RecordingReference(checked=known, options=options)
    return recording


def checked_file(
    source: str | Path,
    robot: Robot,
    *,
    options: ReadOptions | None = None,
    fraction: float | None = None,
    shares: Sequence[float] = (),
) -> CheckedFile:
    """Reads and checks a recording and keeps what is known of it.

    Args:
        source, robot, options: as `open_recording` takes them.
        fraction: of the time, where it is going to be split.
        shares: for `Recording.clock_steps`.

    Raises:
        InputError: unreadable, or not understood.
    """
    found = open_recording(source, robot, options=options, fraction=fraction)
    known = None
    if fraction is not None and len(found) > 1:
        first, last = found.split(fraction)
        known = Halves(
            fraction=fraction,
            extents=(first._extent, last._extent),
            steps=(first.clock_steps(shares), last.clock_steps(shares)),
        )
    return CheckedFile(
        source=str(source),
        name=found.name,
        facts=found._facts,
        extent=found._extent,
        streamed=found.streamed,
        steps=found.clock_steps(shares),
        halves=known,
    )


def recording_of(checked: CheckedFile, robot: Robot, *, options: ReadOptions | None = None) -> Recording:
    """The recording itself; its numbers are read when they are needed.

    Args:
        checked: what is known of it.
        robot, options: as for the check.
    """

    def stream() -> LogStream:
        return open_log(checked.source, robot, options=options).knowing(checked.facts.source)

    def load() -> Log:
        return joined_logs(list(stream().chunks(PIECE_ROWS)))

    reference = RecordingReference(checked=checked, options=options)
    grid = StreamedGrid(stream(), robot) if checked.streamed else HeldGrid(load)
    made = Recording(grid, robot, Span(checked.name), checked.extent, checked.facts, reference=reference)
    made._steps = checked.steps
    return made
