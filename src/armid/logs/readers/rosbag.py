"""ROS 2 bags and MCAP files with sensor_msgs/JointState, read without ROS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, MissingDependencyError, UnknownNameError
from armid.logs.readers.table import Layout, Skipped, Table, first_line, refuse_bomb
from armid.notes import Note, Severity

_JOINT_STATE = "sensor_msgs/msg/JointState"
_LOOK_AHEAD = 500
"""Messages looked at to learn which joints a topic carries: publishers of parts of a robot alternate within a few."""
_FIELDS = ("position", "velocity", "effort")
_NEEDED = ("position", "effort")
"""Without these a message says nothing about torque; velocity can be derived."""


@dataclass(eq=False, kw_only=True)
class BagTable:
    """One topic of JointState messages; joints by name, in the order of the first complete message."""

    path: Path
    topic: str
    joints: tuple[str, ...]
    fields: tuple[str, ...]
    guesses: tuple[Note, ...]
    named: bool = True
    skipped: Skipped = field(default_factory=Skipped)
    bare: int = 0
    """Messages without position or effort, left out."""

    @property
    def names(self) -> tuple[str, ...]:
        return ("time", *self.fields)

    @property
    def notes(self) -> tuple[Note, ...]:
        notes = list(self.guesses)
        if self.skipped.rows:
            message = (
                f"{self.skipped.rows} message(s) on {self.topic} without all of {', '.join(self.joints)} left out: "
                "several publishers share the topic"
            )
            notes.append(Note("partial-messages", Severity.INFO, message, self.path.name))
        if self.bare:
            message = f"{self.bare} message(s) on {self.topic} without position or effort left out: record a topic that has both"
            notes.append(Note("bare-messages", Severity.WARNING, message, self.path.name))
        return tuple(notes)

    def chunks(self, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        self.skipped, self.bare = Skipped(), 0
        times: list[float] = []
        values: dict[str, list[FloatArray]] = {name: [] for name in self.fields}
        for time, message in messages(self.path, self.topic):
            sample = self.sample(message)
            if sample is None:
                self.skipped.row(0)
                continue
            if any(np.isnan(sample[name]).all() for name in _NEEDED if name in sample):
                self.bare += 1
                continue
            times.append(time)
            for name, value in sample.items():
                values[name].append(value)
            if len(times) == rows:
                yield self.table(times, values)
                times, values = [], {name: [] for name in self.fields}
        if times:
            yield self.table(times, values)

    def table(self, times: list[float], values: dict[str, list[FloatArray]]) -> Table:
        return {"time": np.array(times)} | {name: np.array(rows) for name, rows in values.items()}

    def sample(self, message: Any) -> dict[str, FloatArray] | None:
        names = tuple(message.name)
        if names != self.joints and not set(self.joints) <= set(names):
            return None
        order = [names.index(name) for name in self.joints]
        out = {}
        for name in self.fields:
            value = _values_of(message, name)
            out[name] = value[order] if len(value) == len(names) else np.full(len(order), np.nan)
        return out


def open_bag(path: Path, layout: Layout) -> BagTable:
    """The JointState topic of a bag: the one named, or the one with most messages.

    Raises:
        InputError: damaged, or no JointState in it.
        UnknownNameError: the named topic does not exist.
    """
    for file in sorted(path.glob("*.mcap")) if path.is_dir() else [path]:
        _check_chunks(file)
    counts = _topics(path)
    if not counts:
        raise InputError(path, f"no topic of type {_JOINT_STATE}")
    if layout.topic is not None and layout.topic not in counts:
        raise UnknownNameError(f"{_JOINT_STATE} topic in {path.name}", layout.topic, counts)
    topic = layout.topic or max(counts, key=lambda name: counts[name])
    seen: Counter[tuple[str, ...]] = Counter()
    filled: set[str] = set()
    for i, (_, message) in enumerate(messages(path, topic)):
        names = tuple(str(name) for name in message.name)
        seen[names] += 1
        filled |= {name for name in _FIELDS if len(names) and len(_values_of(message, name)) == len(names)}
        if i >= _LOOK_AHEAD:
            break
    joints = max(seen, key=lambda names: (len(names), seen[names]), default=())
    if not joints or "position" not in filled:
        raise InputError(path, f"messages on {topic} carry no joint positions")
    if len(set(joints)) != len(joints):
        raise InputError(path, f"a joint appears twice in messages on {topic}: {', '.join(joints)}")
    text = f"joint states of {topic} ({counts[topic]} messages)"
    others = [name for name in counts if name != topic]
    if others and layout.topic is None:
        text += f"; also there: {', '.join(others)} (choose with `topic`)"
    guess = Note("reader-guess", Severity.INFO, text, path.name)
    return BagTable(
        path=path,
        topic=topic,
        joints=joints,
        fields=tuple(name for name in _FIELDS if name in filled),
        guesses=(guess,),
    )


def _values_of(message: Any, name: str) -> FloatArray:
    """A field of a message; empty when its type, which the bag defines itself, has none."""
    return np.asarray(getattr(message, name, ()), dtype=np.float64).ravel()


def _topics(path: Path) -> dict[str, int]:
    """JointState topics and their message counts.

    Raises:
        InputError: the bag's own list of topics is damaged.
    """
    with _opened(path) as reader:
        counts: dict[str, int] = {}
        for connection in reader.connections:
            if connection.msgtype == _JOINT_STATE:
                if not isinstance(connection.topic, str) or not isinstance(connection.msgcount, int):
                    raise InputError(path, "a topic of the bag has no name, or no whole number of messages")
                counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
        return counts


def messages(path: Path, topic: str) -> Iterator[tuple[float, Any]]:
    """Time [s] and message: the header's stamp, or the time of recording when the stamp is zero."""
    with _opened(path) as reader:
        chosen = [c for c in reader.connections if c.topic == topic and c.msgtype == _JOINT_STATE]
        stream = reader.messages(connections=chosen)
        while True:
            try:
                connection, recorded, raw = next(stream)
                message = reader.deserialize(raw, connection.msgtype)
                stamp = message.header.stamp
                nanoseconds = stamp.sec * 1_000_000_000 + stamp.nanosec
                message.name  # noqa: B018 - the type is the bag's own and may lack it
            except StopIteration:
                return
            except Exception as error:  # damage surfaces as whatever the decoder stumbles over
                raise InputError(path, f"damaged bag: {type(error).__name__}: {first_line(error)}") from None
            yield (nanoseconds or recorded) * 1e-9, message


MCAP_MAGIC = b"\x89MCAP0\r\n"
_CHUNK = 0x06


def _check_chunks(path: Path) -> None:
    """Refuses an MCAP file whose chunks promise more than their bytes can hold; nothing is expanded."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(MCAP_MAGIC)) != MCAP_MAGIC:
            return
        # Records: one byte for the kind, eight for the length. A chunk begins with two times, then its expanded size.
        while len(head := file.read(9)) == 9:
            kind, length = head[0], int.from_bytes(head[1:], "little")
            if kind == _CHUNK:
                body = file.read(min(length, 24))
                refuse_bomb(path, length, int.from_bytes(body[16:24], "little"))
                length -= len(body)
            if length < 0 or file.tell() + length > size:
                return
            file.seek(length, 1)


def _opened(path: Path) -> Any:
    """An open reader; types come from the bag, or from a ROS 2 distribution when the bag has none."""
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingDependencyError("rosbags", "reading ROS bags", "ros") from None
    try:
        reader = AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE))
        reader.open()
    except Exception as error:  # SQLite, YAML, MCAP and type parsers each raise their own
        raise InputError(
            path, f"not a readable ROS 2 bag or MCAP: {type(error).__name__}: {first_line(error)}"
        ) from None
    return Closing(reader)


@dataclass(eq=False)
class Closing:
    """A reader that is open already and closes at the end of the block."""

    reader: Any

    def __enter__(self) -> Any:
        return self.reader

    def __exit__(self, *_: object) -> None:
        self.reader.close()
