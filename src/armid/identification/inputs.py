"""What people hand over, as objects: a path or a name becomes a robot, a log or a result; objects pass unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from armid.errors import InputError
from armid.logs.check import check_log
from armid.logs.log import Log
from armid.logs.read import ReadOptions, unchecked_log
from armid.outcome import InputFile
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.words import several

if TYPE_CHECKING:
    from armid.identification.result import Result

RobotInput = str | Path | Robot
LogInput = str | Path | Log
LogsInput = LogInput | Sequence[LogInput]

_RESULT_FILE = "result.json"
"""By which a result's folder is known."""


def robot_of(
    robot: RobotInput,
    *,
    base: str | None = None,
    tip: str | None = None,
    gravity: tuple[float, ...] | None = None,
) -> Robot:
    """A robot from a URDF path, a YAML path or a catalogue name; a robot as it is (with another gravity when given)."""
    if isinstance(robot, Robot):
        return robot if gravity is None else robot.with_gravity(gravity)
    return load_robot(robot, base=base, tip=tip, gravity=gravity)


def result_of(result: str | Path | Result) -> Result:
    """A result from its folder, or as it is."""
    from armid.identification.result import Result, load_result

    return result if isinstance(result, Result) else load_result(result)


def is_result(source: object) -> bool:
    """Whether something names or is a result rather than a robot."""
    from armid.identification.result import Result

    if isinstance(source, str | Path):
        path = Path(source)
        return path.name == _RESULT_FILE or (path / _RESULT_FILE).is_file()
    return isinstance(source, Result)


def result_folder(source: str | Path) -> Path:
    """The folder of a stored result, named by itself or by the `result.json` in it."""
    path = Path(source)
    return path.parent if path.name == _RESULT_FILE else path


@dataclass(frozen=True, slots=True)
class Recordings:
    """How recordings are read.

    Args:
        step: sampling step of files without a clock [s].
        data_root: where mapping files find recordings.
        checked: whether each is held against the robot first; findings are then among its notes.
    """

    step: float | None = None
    data_root: str | Path | None = None
    checked: bool = False

    def read(self, logs: LogsInput, robot: Robot) -> list[Log]:
        """Logs from paths; logs as they are."""
        found = several("logs", logs, (str, Path, Log), "recordings: paths or Logs, one or several")
        if not found:
            raise InputError("logs", "there are none", "give one recording or several")
        options = ReadOptions(step=self.step, data_root=self.data_root)
        read = [log if isinstance(log, Log) else unchecked_log(log, robot, options=options) for log in found]
        return [check_log(log, robot) for log in read] if self.checked else read


def files_of(robot: Robot, logs: Sequence[Log] = (), *, role: str = "train") -> tuple[InputFile, ...]:
    """The files behind a robot and some recordings, for the provenance of an answer."""
    described = InputFile(robot.source.path, robot.source.sha256, "robot")
    return described, *(InputFile(path, digest, role) for log in logs for path, digest in log.source.files)


def file_of(path: str | Path, role: str) -> InputFile:
    """A file that an answer rests on, with the hash of its bytes; a folder (a recording in several files) without."""
    place = Path(path)
    digest = hashlib.sha256(place.read_bytes()).hexdigest() if place.is_file() else ""
    return InputFile(str(path), digest, role)
