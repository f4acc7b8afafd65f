"""Recordings for people: read and checked in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from armid.documents import write_json
from armid.logs.log import Log, LogTotal
from armid.logs.read import ReadOptions, unchecked_log
from armid.logs.recording import Recording, open_recording
from armid.notes import Severity
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.robot.robot import Robot

_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.INFO)
"""Worst first."""


def read_log(
    path: str | Path,
    robot: str | Path | Robot,
    *,
    step: float | None = None,
    side: str | None = None,
    format: str | None = None,
    topic: str | None = None,
    data_root: str | Path | None = None,
    options: ReadOptions | None = None,
) -> Log:
    """A recording, read and checked: `print(log)` lists what was found, `log.ok` says whether it may be used.

    Args:
        path: data file of any known kind, the directory of a ROS 2 bag, or a mapping (.yaml) that names columns, units, signs.
        robot: orders the columns by joint name, and is the nominal arm of the check; a file, a catalogue name or a Robot.
        step: sampling step of a file without a clock [s].
        side: where torque was measured, when the file does not say: `link`, `motor`, `current` or `commanded`.
        format: reader or preset (`csv`, `npz`, `parquet`, `mat`, `libfranka`, `rtde`, ...); found out when None.
        topic: JointState topic of a ROS bag.
        data_root: where a mapping's files are.
        options: all of these together, instead of one by one.

    Returns:
        Channels in SI units, shape [n_samples, n_joints], columns in the robot's joint order.

    Raises:
        InputError: unreadable, or not understood; never a traceback from a library.
    """
    arm = _robot_of(robot)
    options = options or ReadOptions(format=format, step=step, side=side, data_root=data_root, topic=topic)
    opened = open_recording(path, arm, options=options)
    if not opened.streamed:
        return opened.log
    whole = unchecked_log(path, arm, options=options)
    return replace(whole, source=opened.source, notes=opened.notes, checked=True)


def check_log(
    log: str | Path | Log,
    robot: str | Path | Robot,
    *,
    step: float | None = None,
    side: str | None = None,
    format: str | None = None,
    topic: str | None = None,
    data_root: str | Path | None = None,
    options: ReadOptions | None = None,
) -> Log:
    """Is this log what it claims to be? Clock, units, signs, joint order, lag, mounting.

    Args:
        log: as read, or a file of any length. Of one that is too long to be held the first rows are returned, with what was
            found in all of it and its length in `total`.
        robot: nominal arm; its masses are used when it has some, the shape of its links otherwise.
        step, side, format, topic, data_root, options: see `read_log`; for files.

    Returns:
        The log in the robot's joint order, with everything found about it as notes.
    """
    arm = _robot_of(robot)
    if isinstance(log, Log):
        return open_recording(replace(log, checked=False), arm).log
    options = options or ReadOptions(format=format, step=step, side=side, data_root=data_root, topic=topic)
    return _log_of(open_recording(log, arm, options=options))


def _robot_of(robot: str | Path | Robot) -> Robot:
    if isinstance(robot, Robot):
        return robot
    from armid.robot.load import load_robot

    return load_robot(robot)


def _log_of(recording: Recording) -> Log:
    if not recording.streamed:
        return recording.log
    total = LogTotal(len(recording), recording.duration)
    first = next(recording.pieces())
    return replace(first, source=recording.source, notes=recording.notes, checked=True, total=total)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CheckedLogs(Outcome):
    """What was found about several logs.

    Args:
        logs: checked.
    """

    logs: tuple[Log, ...]

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        return tuple(
            replace(check, message=f"{log.name}: {check.message}", subject=check.subject or log.name)
            for log in self.logs
            for check in log.checks
        )

    @property
    def provenance(self) -> Provenance:  # type: ignore[override]
        return Provenance(inputs=tuple(file for log in self.logs for file in log.provenance.inputs))

    @property
    def ok(self) -> bool:
        """Whether all of them may be used."""
        return all(log.ok for log in self.logs)

    def _heading(self) -> str:
        return "\n".join(log._heading() for log in self.logs)

    def _tables(self) -> tuple[Table, ...]:
        return tuple(_findings(log) for log in self.logs if log.notes)

    def as_dict(self) -> dict[str, Any]:
        each = [log.as_dict() for log in self.logs]
        lists = {key: [item for one in each for item in one[key]] for key in ("problems", "notes", "logs")}
        return {"ok": self.ok, "verdict": self.verdict.value, **lists}

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes what was found as `check.json`."""
        return (write_json(Path(folder) / "check.json", self.as_dict()),)


def _findings(log: Log) -> Table:
    """What was found about a log, worst first."""
    order: Sequence[Severity] = _SEVERITIES
    notes = sorted(log.notes, key=lambda note: order.index(note.severity))
    rows = tuple((note.severity.value, note.code, note.subject, note.message) for note in notes)
    return Table(
        ("", "code", "where", "finding"),
        rows,
        caption=f"{log.name}: {'usable' if log.ok else 'not to be used as it is'}",
    )
