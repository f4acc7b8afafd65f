"""What a result came from, as records: recordings, the command, and both with the files behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from armid.outcome import InputFile, Provenance

STEP_SHARES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
"""Shares of the steps of a clock at which a result keeps their length: enough for a picture of jitter and of gaps."""


@dataclass(frozen=True, kw_only=True)
class LogRecord:
    """A recording a result rests on.

    Args:
        name: of the log.
        samples: rows, before conditioning.
        start_s, end_s: first and last time stamp of the part that was used.
        files: with the SHA-256 of their bytes; for a log made in memory its name, with the hash of its arrays.
        reader: that read it.
        steps_s: of the clock, the quantiles at `STEP_SHARES`; none for a recording of a sample or two.
    """

    name: str
    samples: int
    start_s: float
    end_s: float
    files: tuple[tuple[str, str], ...]
    reader: str = ""
    steps_s: tuple[float, ...] = ()

    def overlaps(self, other: LogRecord) -> bool:
        """Whether some of the same motion is in both: a file in common, and a stretch of time."""
        shared = {digest for _, digest in self.files} & {digest for _, digest in other.files} - {""}
        return bool(shared) and self.start_s < other.end_s and other.start_s < self.end_s

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "files": [{"path": path, "sha256": digest} for path, digest in self.files]}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> LogRecord:
        files = tuple((file["path"], file["sha256"]) for file in values["files"])
        return LogRecord(**{**values, "files": files, "steps_s": tuple(values.get("steps_s", ()))})


@dataclass(frozen=True, kw_only=True)
class CommandRecord:
    """The command line as it was typed.

    Args:
        line: quoted for a shell; empty when a program made the result.
        folder: it was typed in.
        files: it names beside robot and logs, with hashes.
    """

    line: str = ""
    folder: str = ""
    files: tuple[tuple[str, str], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        files = [{"path": path, "sha256": digest} for path, digest in self.files]
        return {"line": self.line, "folder": self.folder, "files": files}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> CommandRecord:
        files = tuple((file["path"], file["sha256"]) for file in values["files"])
        return CommandRecord(line=values["line"], folder=values["folder"], files=files)


@dataclass(frozen=True, kw_only=True)
class ResultProvenance(Provenance):
    """What a result came from.

    Args:
        robot_name: of the description; its file is among the inputs.
        train, held_out: recordings, in order.
        typed: the command line, when there was one.
    """

    robot_name: str = ""
    train: tuple[LogRecord, ...] = ()
    held_out: tuple[LogRecord, ...] = ()
    typed: CommandRecord = field(default_factory=CommandRecord)

    @property
    def robot(self) -> InputFile:
        """The description."""
        return next((file for file in self.inputs if file.role == "robot"), InputFile("", "", "robot"))

    def logs(self) -> Iterator[tuple[str, LogRecord]]:
        """Every recording with its role."""
        yield from (("train", log) for log in self.train)
        yield from (("held-out", log) for log in self.held_out)

    def as_dict(self) -> dict[str, Any]:
        robot = self.robot
        typed = {"command": self.typed.as_dict()} if self.typed.line else {}
        return {
            "robot": {"name": self.robot_name, "path": robot.path, "sha256": robot.sha256},
            "train": [log.as_dict() for log in self.train],
            "held_out": [log.as_dict() for log in self.held_out],
            "versions": dict(self.versions),
            "settings": dict(self.settings),
            "seed": self.seed,
            **typed,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> ResultProvenance:
        robot = values["robot"]
        typed = values.get("command")
        train, held_out = (tuple(LogRecord.from_dict(log) for log in values[part]) for part in ("train", "held_out"))
        return result_provenance(
            InputFile(robot["path"], robot["sha256"], "robot"),
            robot_name=robot["name"],
            train=train,
            held_out=held_out,
            settings=values["settings"],
            seed=values.get("seed"),
            versions=values["versions"],
            typed=CommandRecord() if typed is None else CommandRecord.from_dict(typed),
        )


def result_provenance(
    robot: InputFile, *, train: Sequence[LogRecord], held_out: Sequence[LogRecord], **more: Any
) -> ResultProvenance:
    """Provenance whose inputs are the robot and every file of the logs.

    Args:
        robot: the description.
        train, held_out: recordings.
        more: other fields of `ResultProvenance`.
    """
    files = [
        InputFile(path, digest, role)
        for role, logs in (("train", train), ("held-out", held_out))
        for log in logs
        for path, digest in log.files
    ]
    typed: CommandRecord = more.get("typed", CommandRecord())
    return ResultProvenance(
        inputs=(robot, *files), train=tuple(train), held_out=tuple(held_out), command=typed.line, **more
    )
