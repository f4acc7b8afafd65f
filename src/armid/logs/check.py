"""Recordings for people: read and checked in one call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from armid.logs.log import Log
from armid.logs.read import ReadOptions
from armid.logs.recording import open_recording
from armid.robot.robot import Robot


def check_log(log: str | Path | Log, robot: Robot, *, options: ReadOptions | None = None) -> Log:
    """The log in the robot's joint order, with everything found about it as notes.

    Args:
        log: as read, or a file.
        robot: nominal arm.
        options: what the file does not say itself.
    """
    if isinstance(log, Log):
        return open_recording(replace(log, checked=False), robot).log
    return open_recording(log, robot, options=options).log
