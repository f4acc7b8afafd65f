"""What a recording is, apart from its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.logs.log import MEASURED_TORQUES, Channel, Clock, Conditions, Log, LogSource
from armid.notes import Note, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Rows of a recording.

    Args:
        first, last: of the file, counted from 0; last is not in.
        start_s, end_s: time of the first and the last of them [s].
    """

    first: int
    last: int
    start_s: float
    end_s: float

    def at(self, fraction: float) -> float:
        """The time after a fraction of it [s]."""
        return self.start_s + fraction * (self.end_s - self.start_s)


@dataclass(frozen=True, eq=False, kw_only=True)
class LogFacts:
    """What a recording is, apart from its numbers.

    Args:
        joints: names, in the robot's order.
        channels: what was recorded.
        clock: what its time rests on.
        conditions: of the run.
        source: files with their hashes.
        notes: of reader and health check.
        checked: whether its health was checked.
    """

    joints: tuple[str, ...]
    channels: tuple[Channel, ...]
    clock: Clock
    conditions: Conditions
    source: LogSource
    notes: tuple[Note, ...]
    checked: bool


class Facts:
    """What is known of a recording, or of a part of it, without its numbers.

    Args:
        extent: rows and times.
        facts: see `LogFacts`.
    """

    def __init__(self, extent: Extent, facts: LogFacts) -> None:
        self._extent = extent
        self._facts = facts

    @property
    def joints(self) -> tuple[str, ...]:
        return self._facts.joints

    @property
    def channels(self) -> tuple[Channel, ...]:
        """What was recorded."""
        return self._facts.channels

    @property
    def torques(self) -> tuple[Channel, ...]:
        """The torque channels it has, preferred first."""
        return tuple(channel for channel in MEASURED_TORQUES if channel in self.channels)

    @property
    def conditions(self) -> Conditions:
        """Of the run."""
        return self._facts.conditions

    @property
    def source(self) -> LogSource:
        """Files with the SHA-256 of their bytes."""
        return self._facts.source

    @property
    def notes(self) -> tuple[Note, ...]:
        """What reader and health check found; of the whole log, in every part of it."""
        return self._facts.notes

    @property
    def ok(self) -> bool:
        """Whether nothing was found that keeps it from being used."""
        return not any(note.severity is Severity.ERROR for note in self.notes)

    @property
    def start_s(self) -> float:
        """Time of the first row [s]."""
        return self._extent.start_s

    @property
    def end_s(self) -> float:
        """Time of the last row [s]."""
        return self._extent.end_s

    @property
    def duration(self) -> float:
        """From the first to the last row [s]."""
        return self.end_s - self.start_s

    def __len__(self) -> int:
        """Rows as recorded."""
        return self._extent.last - self._extent.first

    def __contains__(self, channel: object) -> bool:
        return channel in self.channels


def facts_of(log: Log, *, checked: bool) -> LogFacts:
    return LogFacts(
        joints=log.joints,
        channels=tuple(log.channels),
        clock=log.clock,
        conditions=log.conditions,
        source=log.source,
        notes=log.notes,
        checked=checked,
    )


def extents_at(times: Iterable[FloatArray], whole: Extent, cut: float) -> tuple[Extent, Extent]:
    """The rows before and from the first on that is not before `cut` [s]; time steps back now and then."""
    seen, latest, before = 0, -np.inf, whole.start_s
    for piece in times:
        own = piece[max(whole.first - seen, 0) : max(whole.last - seen, 0)]
        if len(own):
            running = np.maximum(np.maximum.accumulate(own), latest)
            k = int(np.searchsorted(running, cut))
            if k < len(own):
                row = max(seen, whole.first) + k
                before = float(own[k - 1]) if k else before
                return (
                    Extent(first=whole.first, last=row, start_s=whole.start_s, end_s=before),
                    Extent(first=row, last=whole.last, start_s=float(own[k]), end_s=whole.end_s),
                )
            latest, before = float(running[-1]), float(own[-1])
        seen += len(piece)
    end = Extent(first=whole.last, last=whole.last, start_s=whole.end_s, end_s=whole.end_s)
    return whole, end
