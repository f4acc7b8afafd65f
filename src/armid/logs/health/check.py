"""Is this log what it claims to be?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from armid.logs.health.channels import channel_findings
from armid.logs.health.clock import clock_findings
from armid.logs.health.findings import finding
from armid.logs.health.motion import motion_findings
from armid.logs.health.torque import torque_findings
from armid.logs.log import Log
from armid.logs.samples import Samples
from armid.notes import Note, Severity
from armid.robot.robot import Robot


def log_findings(log: Log, robot: Robot, conditioned: Callable[[], Samples]) -> tuple[Note, ...]:
    """Everything found about a log.

    Structure first; tests of the torque need motion that makes sense and are left out where it does not.

    Args:
        log: columns in the robot's order.
        robot: nominal arm; its masses are used when it has some, the shape of its links otherwise.
        conditioned: the samples of the log under automatic conditioning; asked for only when the torque is tested.
    """
    # Infinite and absurd numbers are findings of their own; arithmetic on them must not raise.
    with np.errstate(all="ignore"):
        found = [*row_findings(log, robot)]
        if any(note.code in UNREADABLE for note in found):
            return tuple(found)
        return (*found, *torque_tests(log, robot, found, conditioned))


UNREADABLE = ("too-short", "time-frozen")
"""Findings after which nothing more can be said about a log."""


def row_findings(log: Log, robot: Robot) -> Iterator[Note]:
    """What the rows themselves tell: clock, numbers, motion."""
    clock = list(clock_findings(log))
    yield from clock
    if not any(note.code in UNREADABLE for note in clock):
        yield from channel_findings(log, robot)
        yield from motion_findings(log, robot)


def torque_tests(log: Log, robot: Robot, found: Sequence[Note], conditioned: Callable[[], Samples]) -> Iterator[Note]:
    """What the torque tells, given what was found about the rows."""
    if not log.torques:
        yield _no_torque(log)
    elif not spoiled(found):
        yield from torque_findings(log, robot, conditioned)


def _no_torque(log: Log) -> Note:
    channels = ", ".join(channel.value for channel in log.channels)
    return finding(
        "no-torque", Severity.ERROR, log.name, f"no torque among {channels}", "name the torque columns in a mapping"
    )


def spoiled(found: Sequence[Note]) -> bool:
    """Whether errors in the motion itself would make every torque test fail for that reason."""
    return any(
        note.severity is Severity.ERROR
        and note.code in ("degrees", "clock-unit", "torque-dead", "corrupt-values", "not-finite")
        for note in found
    )
