"""One arm on one date, identified: the piece of work that a worker does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import ArmidError
from armid.fleets.table import Visit
from armid.folders import new_file
from armid.identification.identify import identify
from armid.identification.result import Result
from armid.notes import Note, Severity
from armid.robot.load import load_robot


@dataclass(frozen=True, kw_only=True)
class VisitTask:
    """A visit to be identified.

    Args:
        visit: which.
        words: as `armid.identify` takes them.
        base, tip: ends of the arm in a description with several.
        sent: content of the files by path, where a worker cannot read them itself.
    """

    visit: Visit
    words: Mapping[str, Any] = field(default_factory=dict)
    base: str | None = None
    tip: str | None = None
    sent: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """Files it reads: logs, and the description when it is one."""
        return (*self.visit.logs, *((self.visit.robot,) if Path(self.visit.robot).is_file() else ()))

    def digests(self) -> dict[str, str]:
        """SHA-256 of the bytes of every file."""
        return {path: sha256(Path(path).read_bytes()).hexdigest() for path in self.files if Path(path).is_file()}


@dataclass(frozen=True, eq=False, kw_only=True)
class VisitResult:
    """What is kept of an identified visit.

    Args:
        visit: which.
        verdict: `trusted`, `untrusted`, or `refused` when nothing could be identified.
        reasons: why it is not trusted.
        relative_error: held out, all joints stacked; not a number when refused.
        names, units: of the base parameters.
        values, covariance: shape [r] and [r, r].
        complete: whether the motion determines every parameter that a perfect one would.
        set_aside: logs that were not used, with the reason.
        notes: number of findings by code.
        seconds: it took.
    """

    visit: Visit
    verdict: str
    reasons: tuple[str, ...] = ()
    relative_error: float = float("nan")
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    values: FloatArray = field(default_factory=lambda: np.zeros(0))
    covariance: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    complete: bool = False
    set_aside: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether it is part of the statistics: trusted, with every parameter determined."""
        return self.verdict == "trusted" and self.complete

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations, shape [r]."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def as_dict(self) -> dict[str, Any]:
        """For the file in which it is kept; floats to their last bit."""
        return {
            "arm": self.visit.arm,
            "date": self.visit.date,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "relative_error": self.relative_error,
            "names": list(self.names),
            "units": list(self.units),
            "values": self.values.tolist(),
            "covariance": self.covariance.tolist(),
            "complete": self.complete,
            "set_aside": dict(self.set_aside),
            "notes": dict(self.notes),
            "seconds": self.seconds,
        }

    @staticmethod
    def from_dict(visit: Visit, value: Mapping[str, Any]) -> VisitResult:
        """The inverse of `as_dict`."""
        error = value["relative_error"]
        r = len(value["names"])
        return VisitResult(
            visit=visit,
            verdict=str(value["verdict"]),
            reasons=tuple(map(str, value["reasons"])),
            relative_error=float("nan") if error is None else float(error),
            names=tuple(map(str, value["names"])),
            units=tuple(map(str, value["units"])),
            values=np.array(value["values"], dtype=float).reshape(r),
            covariance=np.array(value["covariance"], dtype=float).reshape(r, r),
            complete=bool(value["complete"]),
            set_aside={str(name): str(why) for name, why in value["set_aside"].items()},
            notes={str(code): int(count) for code, count in value["notes"].items()},
            seconds=float(value["seconds"]),
        )


def identify_visit(task: VisitTask) -> VisitResult:
    """Identifies one visit; a log or arm that cannot be used is an answer, not an error."""
    if not task.sent:
        return _identified(task)
    with TemporaryDirectory(prefix="armid-visit-") as folder:
        moved = {path: _put(Path(folder), k, path, content) for k, (path, content) in enumerate(task.sent.items())}
        here = replace(
            task.visit,
            robot=moved.get(task.visit.robot, task.visit.robot),
            logs=tuple(moved.get(path, path) for path in task.visit.logs),
        )
        return replace(_identified(replace(task, visit=here, sent={})), visit=task.visit)


def _put(folder: Path, number: int, path: str, content: bytes) -> str:
    """A file as it was sent, under its own name."""
    place = folder / str(number) / Path(path).name
    with new_file(place) as file:
        file.write(content)
    return str(place)


def _identified(task: VisitTask) -> VisitResult:
    visit = task.visit
    try:
        robot = load_robot(visit.robot, base=task.base, tip=task.tip)
        result = identify(robot, list(visit.logs), payload=visit.payload, **task.words)
    except ArmidError as error:
        return VisitResult(visit=visit, verdict="refused", reasons=(str(error),))
    return kept(visit, result)


def kept(visit: Visit, result: Result) -> VisitResult:
    """What is kept of a result."""
    rank = 0 if result.evidence is None else result.evidence.structural_rank
    return VisitResult(
        visit=visit,
        verdict=str(result.verdict),
        reasons=result.reasons,
        relative_error=float(result.relative_error["held_out"]),
        names=result.estimate.names,
        units=result.estimate.units,
        values=result.estimate.values,
        covariance=result.estimate.covariance,
        complete=0 < rank <= len(result.estimate),
        set_aside={note.subject: note.message for note in result.notes if note.code == "log-set-aside"},
        notes=_counted(result.notes),
        seconds=result.seconds,
    )


def _counted(notes: tuple[Note, ...]) -> dict[str, int]:
    codes = [note.code for note in notes if note.severity is not Severity.INFO]
    return {code: codes.count(code) for code in dict.fromkeys(codes)}
