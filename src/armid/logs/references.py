"""Where a recording can be had again: on another machine, or later, without reading and checking it anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from armid.logs.facts import Extent, LogFacts
from armid.logs.read import ReadOptions
from armid.robot.robot import Robot

if TYPE_CHECKING:
    from armid.logs.recording import Recording


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckedFile:
    """What is known of a recording that was read and checked once: enough to use it later, or on another machine.

    Args:
        source: path as it was given.
        name: of the recording.
        facts: what it is and what was found.
        extent: its rows and times.
        streamed: whether it is too long to be held.
        steps: quantiles of the steps of its clock [s].
        halves: what is known of its two parts, when it is going to be split.
    """

    source: str
    name: str
    facts: LogFacts
    extent: Extent
    streamed: bool = False
    steps: tuple[float, ...] = ()
    halves: Halves | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Halves:
    """The two parts of a recording that is split.

    Args:
        fraction: of the time in the first.
        extents: rows and times of both.
        steps: quantiles of the steps of their clocks [s].
    """

    fraction: float
    extents: tuple[Extent, Extent]
    steps: tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordingReference:
    """Where a recording can be had again, also on another machine that reads the same file.

    Args:
        checked: the file.
        options: as for the check.
        steps: what was done with it since: method of `Recording`, arguments, and which of several parts it gave.
    """

    checked: CheckedFile
    options: ReadOptions | None = None
    steps: tuple[tuple[str, tuple[float, ...], int | None], ...] = ()

    def then(self, method: str, arguments: tuple[float, ...] = (), part: int | None = None) -> RecordingReference:
        """The reference of what a method gives."""
        return replace(self, steps=(*self.steps, (method, arguments, part)))

    def halves(self, fraction: float) -> Halves | None:
        """What is known of the parts of the whole file, split there."""
        known = self.checked.halves
        return known if known is not None and known.fraction == fraction and not self.steps else None

    def opened(self, robot: Robot) -> Recording:
        """The recording.

        Args:
            robot: as for the check.
        """
        from armid.logs.checked import recording_of

        return self.of(recording_of(self.checked, robot, options=self.options))

    def of(self, whole: Recording) -> Recording:
        """The recording from that of the whole file."""
        recording = whole
        for method, arguments, part in self.steps:
            made = getattr(recording, method)(*arguments)
            recording = made if part is None else made[part]
        return recording
