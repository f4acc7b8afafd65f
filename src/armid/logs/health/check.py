"""Is this log what it claims to be?"""

from __future__ import annotations

import numpy as np

from armid.logs.health.channels import channel_findings
from armid.logs.health.clock import clock_findings
from armid.logs.health.findings import finding
from armid.logs.health.motion import motion_findings
from armid.logs.health.torque import torque_findings
from armid.logs.log import Log, matched
from armid.notes import Note, Severity
from armid.robot.robot import Robot


def check_log(log: Log, robot: Robot) -> Log:
    """The log in the robot's joint order, with everything found about it as notes.

    Structure first; tests of the torque need motion that makes sense and are left out where it does not.

    Args:
        log: as read.
        robot: nominal arm; its masses are used when it has some, the shape of its links otherwise.
    """
    # Infinite and absurd numbers are findings of their own; arithmetic on them must not raise.
    with np.errstate(all="ignore"):
        return found_in(matched(log, robot), robot)


def found_in(ordered: Log, robot: Robot) -> Log:
    """The log with its findings; columns are in order."""
    found = list(clock_findings(ordered))
    if any(note.code in ("too-short", "time-frozen") for note in found):
        return ordered.with_notes(tuple(found))
    found += channel_findings(ordered, robot)
    found += motion_findings(ordered, robot)
    if not ordered.torques:
        found.append(no_torque(ordered))
    elif not spoiled(found):
        found += torque_findings(ordered, robot)
    return ordered.with_notes(tuple(found))


def no_torque(log: Log) -> Note:
    channels = ", ".join(channel.value for channel in log.channels)
    return finding(
        "no-torque", Severity.ERROR, log.name, f"no torque among {channels}", "name the torque columns in a mapping"
    )


def spoiled(found: list[Note]) -> bool:
    """Whether errors in the motion itself would make every torque test fail for that reason."""
    return any(
        note.severity is Severity.ERROR
        and note.code in ("degrees", "clock-unit", "torque-dead", "corrupt-values", "not-finite")
        for note in found
    )
