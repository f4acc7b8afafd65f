"""A recording as it was made: named channels over time, what the run was like, where the bytes came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.documents import write_arrays, write_json
from armid.errors import InputError, ShapeError, UnknownNameError
from armid.folders import answer_folder
from armid.notes import Note, Severity
from armid.outcome import Check, InputFile, Outcome, Provenance
from armid.page import Table
from armid.robot.robot import Robot


class Channel(StrEnum):
    """What a recorded channel is. Every channel has one column per joint, in SI units."""

    POSITION = "position"
    """Joint position [rad or m]."""
    VELOCITY = "velocity"
    """Joint velocity [rad/s or m/s]."""
    ACCELERATION = "acceleration"
    """Joint acceleration [rad/s^2 or m/s^2]; kept, but derived again when conditioning."""
    MOTOR_POSITION = "position.motor"
    """Motor-side position, scaled to the joint [rad or m]."""
    COMMANDED_POSITION = "position.commanded"
    """What the controller asked for [rad or m]."""
    LINK_TORQUE = "torque.link"
    """After the transmission: joint torque sensors [N m or N]."""
    MOTOR_TORQUE = "torque.motor"
    """Before the transmission, scaled to the joint [N m or N]."""
    CURRENT = "torque.current"
    """Motor current [A] (or permille of a rated torque): torque up to an unknown gain per joint."""
    COMMANDED_TORQUE = "torque.commanded"
    """What the controller asked the drive for [N m or N]."""
    EXTERNAL_TORQUE = "torque.external"
    """The controller's own estimate of external torque [N m or N]."""
    TEMPERATURE = "temperature"
    """[degrees Celsius]."""

    @property
    def is_torque(self) -> bool:
        """Whether rows of the torque model can explain it."""
        return self in MEASURED_TORQUES


MEASURED_TORQUES = (Channel.LINK_TORQUE, Channel.MOTOR_TORQUE, Channel.CURRENT, Channel.COMMANDED_TORQUE)
"""In the order of preference when several are there and none is asked for."""


class Clock(StrEnum):
    """What the time of a log rests on."""

    COLUMN = "column"
    """The file has a time column."""
    STEP = "step"
    """The user or a mapping gave a fixed step."""
    INFERRED = "inferred"
    """No clock; the step is the one that makes the velocity the derivative of the position."""
    UNKNOWN = "unknown"
    """No clock at all: `time` counts samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What the run was like.

    Args:
        payload: mass carried beyond the robot itself [kg]; None when nobody said, 0 when none.
        payload_centre: its centre of mass in the flange frame [m], when known.
        tool: name of the tool.
        mounting: gravity in the base frame [m/s^2] if the robot was not mounted as its description says.
        temperature: of the drives or the room [degrees Celsius].
        remark: anything else.
    """

    payload: float | None = None
    payload_centre: tuple[float, float, float] | None = None
    tool: str = ""
    mounting: tuple[float, float, float] | None = None
    temperature: float | None = None
    remark: str = ""

    @property
    def loaded(self) -> bool:
        """Whether a payload was carried, as far as anybody said."""
        return bool(self.payload)


@dataclass(frozen=True, slots=True)
class LogSource:
    """Where the numbers came from.

    Args:
        files: paths as given, with the SHA-256 of their raw bytes.
        reader: which reader and preset or mapping produced the channels.
        sensors: sensor file that the mapping names, resolved; the channels are as recorded, `identify` undoes what it says.
    """

    files: tuple[tuple[str, str], ...] = ()
    reader: str = ""
    sensors: str = ""


@dataclass(frozen=True, slots=True)
class LogTotal:
    """How long a recording is of which a log holds the first rows only: rows, and seconds from the first to the last."""

    rows: int
    seconds: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Log(Outcome):
    """A recording: raw, named, immutable. Read and checked by `armid.read_log`; `print(log)` lists what was found.

    Args:
        name: of the recording, for messages.
        joints: name of each column of the channels.
        time: [s], shape [n_samples]; as recorded, so neither uniform nor even increasing for certain.
        channels: one array per channel, shape [n_samples, n_joints], SI units.
        named: whether the joint names come from the file (then they decide the order) or only count columns.
        clock: what `time` rests on.
        conditions: of the run.
        source: provenance.
        notes: what the reader guessed and what health checks found.
        checked: whether its health was checked; `notes` hold what was found.
        total: of the recording, when these are the first rows of one that is too long to be held.
    """

    _page = "armid.report.log:log_page"

    name: str
    joints: tuple[str, ...]
    time: FloatArray
    channels: Mapping[Channel, FloatArray]
    named: bool = False
    clock: Clock = Clock.COLUMN
    conditions: Conditions = field(default_factory=Conditions)
    source: LogSource = field(default_factory=LogSource)
    notes: tuple[Note, ...] = ()
    checked: bool = False
    total: LogTotal | None = None

    def __post_init__(self) -> None:
        time = frozen(self.time)
        if time.ndim != 1:
            raise ShapeError(f"{self.name}: time", time.shape, "[n_samples]")
        twice = sorted({name for name in self.joints if self.joints.count(name) > 1})
        if twice:
            raise InputError(self.name, f"joint {twice[0]!r} appears twice")
        channels = {}
        for channel, values in self.channels.items():
            array = frozen(values)
            if array.shape != (len(time), len(self.joints)):
                raise ShapeError(f"{self.name}: {channel.value}", array.shape, f"[{len(time)}, {len(self.joints)}]")
            channels[Channel(channel)] = array
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "channels", MappingProxyType(channels))

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, channel: Channel) -> FloatArray:
        if channel not in self.channels:
            raise UnknownNameError(f"channel in {self.name}", channel.value, [c.value for c in self.channels])
        return self.channels[channel]

    def __contains__(self, channel: object) -> bool:
        return channel in self.channels

    @property
    def duration(self) -> float:
        """From the earliest to the latest sample [s]; zero when there is none."""
        finite = self.time[np.isfinite(self.time)]
        return float(np.max(finite) - np.min(finite)) if len(finite) else 0.0

    @property
    def torques(self) -> tuple[Channel, ...]:
        """The torque channels it has, preferred first."""
        return tuple(channel for channel in MEASURED_TORQUES if channel in self.channels)

    @property
    def errors(self) -> tuple[Note, ...]:
        """Notes that keep it from being used."""
        return tuple(note for note in self.notes if note.severity is Severity.ERROR)

    @property
    def ok(self) -> bool:
        """Whether nothing was found that keeps it from being used."""
        return not self.errors

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        """One failed check per error found; a single passed one when there is none. Nothing for a log nobody checked."""
        errors = self.errors
        if not errors:
            sound = Check(code="health", passed=True, value=0.0, limit=0.0, message="nothing speaks against its use")
            return (sound,) if self.checked else ()
        return tuple(
            Check(code=note.code, passed=False, value=1.0, limit=0.0, message=_reason(note), subject=note.subject)
            for note in errors
        )

    @property
    def provenance(self) -> Provenance:  # type: ignore[override]
        """The files it was read from."""
        files = tuple(InputFile(path, digest, "log") for path, digest in self.source.files)
        return Provenance(inputs=files, settings={"reader": self.source.reader})

    def _heading(self) -> str:
        rows, seconds = (len(self), self.duration) if self.total is None else (self.total.rows, self.total.seconds)
        names = ", ".join(channel.value for channel in self.channels)
        return f"{self.name}: {rows} samples over {seconds:.6g} s, {len(self.joints)} joints, {names}"

    def _tables(self) -> tuple[Table, ...]:
        rows = []
        for channel, values in self.channels.items():
            for name, column in zip(self.joints, values.T, strict=True):
                sound = column[np.isfinite(column)]
                low, high = (float(sound.min()), float(sound.max())) if len(sound) else (np.nan, np.nan)
                rows.append((channel.value, name, low, high))
        return (Table(("channel", "joint", "smallest", "largest"), tuple(rows), caption="What was recorded, SI units"),)

    def as_dict(self) -> dict[str, Any]:
        """The keys of `armid check --json`."""
        found = [{**note.as_dict(), "log": self.name} for note in self.notes]
        rows, seconds = (len(self), self.duration) if self.total is None else (self.total.rows, self.total.seconds)
        return {
            "ok": self.ok,
            "verdict": self.verdict.value,
            "problems": [note for note in found if note["severity"] != Severity.INFO.value],
            "notes": [note for note in found if note["severity"] == Severity.INFO.value],
            "logs": [
                {
                    "name": self.name,
                    "samples": rows,
                    "seconds": seconds,
                    "channels": [channel.value for channel in self.channels],
                    "reader": self.source.reader,
                    "files": [{"path": path, "sha256": digest} for path, digest in self.source.files],
                }
            ],
        }

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes the recording as arrays (.npz) with the names of its joints, which `read_log` goes by; whole or not at all.

        Args:
            folder: path of the file, or a folder in which it gets the log's name. When the conditions of the run are known, a
                mapping (.yaml) beside it says them: read that, then.
        """
        path = Path(folder)
        path = path if path.suffix == ".npz" else path / f"{self.name}.npz"
        arrays = {_ARRAY_NAMES[channel]: values for channel, values in self.channels.items()}
        arrays |= {"joint_names": np.array(self.joints)}
        said = {key: value for key, value in asdict(self.conditions).items() if value not in (None, "")}
        with answer_folder(path.parent, f"log {path.stem}"):
            written = [write_arrays(path, arrays if self.clock is Clock.UNKNOWN else {"time": self.time, **arrays})]
            if said:
                # JSON is YAML.
                written.append(write_json(path.with_suffix(".yaml"), {"file": path.name, "conditions": said}))
        return tuple(written)

    def with_notes(self, notes: tuple[Note, ...]) -> Log:
        """The same log with further notes; one already there is not repeated."""
        return replace(self, notes=(*self.notes, *(note for note in notes if note not in self.notes)))

    def rows(self, start: int, stop: int) -> Log:
        """Samples start..stop-1, everything else unchanged. No copy."""
        return self.selected(slice(start, stop))

    def selected(self, index: slice | npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Log:
        """The samples an index or mask picks."""
        return replace(
            self,
            time=self.time[index],
            channels={channel: values[index] for channel, values in self.channels.items()},
        )

    def split(self, fraction: float) -> tuple[Log, Log]:
        """The part before and the part after `fraction` of the time, for holding out; a motion belongs to one only."""
        if not 0.0 < fraction < 1.0:
            raise InputError("fraction", f"{fraction} is not between 0 and 1")
        if len(self) < 2:
            raise InputError(self.name, f"{len(self)} sample(s) cannot be split")
        # By elapsed recording time, so that gaps and jitter do not shift the boundary.
        end = self.time[0] + fraction * (self.time[-1] - self.time[0])
        cut = int(np.searchsorted(np.maximum.accumulate(self.time), end))
        first, last = self.rows(0, cut), self.rows(cut, len(self))
        return replace(first, name=f"{self.name} (first part)"), replace(last, name=f"{self.name} (last part)")


_ARRAY_NAMES: Mapping[Channel, str] = {
    Channel.POSITION: "q",
    Channel.VELOCITY: "qd",
    Channel.ACCELERATION: "qdd",
    Channel.MOTOR_POSITION: "q_motor",
    Channel.COMMANDED_POSITION: "q_commanded",
    Channel.LINK_TORQUE: "tau_link",
    Channel.MOTOR_TORQUE: "tau_motor",
    Channel.CURRENT: "current",
    Channel.COMMANDED_TORQUE: "tau_commanded",
    Channel.EXTERNAL_TORQUE: "tau_external",
    Channel.TEMPERATURE: "temperature",
}
"""Under which a channel is saved; words the readers know."""


def _reason(note: Note) -> str:
    """An error in words, with what it is about."""
    about = f"{note.subject}: " if note.subject and note.subject not in note.message else ""
    return f"{note.code}: {about}{note.message}"


def frozen(values: npt.ArrayLike) -> FloatArray:
    """A read-only float64 array; copied only when somebody else could still write to it."""
    array = np.asarray(values, dtype=np.float64)
    if not array.flags.writeable and (array.base is None or _is_read_only_view(array)):
        return array
    return read_only(array)


def _is_read_only_view(array: FloatArray) -> bool:
    """Whether the owner of a view's memory is itself a read-only array."""
    base = array.base
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return isinstance(base, np.ndarray) and not base.flags.writeable


def matched(log: Log, robot: Robot) -> Log:
    """The log with its columns in the order of the robot's joints.

    Names decide when the file has them; further joints in the file (a gripper, a second arm) are left out and named in
    a note. Without names the columns must be as many as the joints and are taken in order.

    Raises:
        InputError: a joint of the robot is not in the log, or the number of columns differs.
    """
    if not log.named:
        if len(log.joints) != robot.n_joints:
            raise InputError(
                log.name,
                f"{len(log.joints)} columns per channel for the {robot.n_joints} joints of {robot.name}",
                "name the joints and columns in a mapping file",
            )
        return replace(log, joints=robot.joint_names)
    if log.joints == robot.joint_names:
        return log
    missing = [name for name in robot.joint_names if name not in log.joints]
    if missing:
        raise InputError(
            log.name,
            f"no joint named {missing[0]!r}: the file has {', '.join(log.joints)}; "
            f"{robot.name} has {', '.join(robot.joint_names)}",
            "is it a recording of this arm? If so, rename them with `joints:` in a mapping file",
        )
    order = [log.joints.index(name) for name in robot.joint_names]
    extra = [name for name in log.joints if name not in robot.joint_names]
    message = f"columns reordered by joint name: the file has {', '.join(log.joints)}"
    if extra:
        message += f"; {', '.join(extra)} left out"
    note = Note("joint-order-by-name", Severity.INFO, message, log.name)
    channels = {channel: read_only(values[:, order]) for channel, values in log.channels.items()}
    return replace(log, joints=robot.joint_names, channels=channels).with_notes((note,))
