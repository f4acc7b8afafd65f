"""The page about a recording: what was found, and its channels over time."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.logs.log import Channel, Clock, Log
from armid.page import Block, Figure, Paragraph, Report, Section
from armid.report.notes import note_tables
from armid.report.plots import BLUE, COLOURS, DASHES, axes, line

_FIGURES = {
    Channel.POSITION: ("position", "position [rad or m]"),
    Channel.VELOCITY: ("velocity", "velocity [rad/s or m/s]"),
    Channel.ACCELERATION: ("acceleration", "acceleration [rad/s² or m/s²]"),
    Channel.LINK_TORQUE: ("torque.link", "torque [N m or N]"),
    Channel.MOTOR_TORQUE: ("torque.motor", "motor torque [N m or N]"),
    Channel.CURRENT: ("torque.current", "motor current [A]"),
    Channel.COMMANDED_TORQUE: ("torque.commanded", "commanded torque [N m or N]"),
}
"""Channels that are drawn, with the name of the figure and the title of its axis."""


def log_page(log: Log) -> Report:
    """Everything the page shows."""
    sections = [_findings(log), _channels(log), Section("ranges", "Ranges", tuple(log._tables()))]
    return Report(
        title=log.name,
        subtitle=log._heading(),
        verdict=str(log.verdict) if log.checks else "",
        reasons=log.reasons,
        sections=tuple(sections),
    )


def _findings(log: Log) -> Section:
    if not log.notes:
        said = "nothing was found" if log.checked else "not checked"
        return Section("findings", "Findings", (Paragraph(said, "faint"),))
    return Section("findings", "Findings", note_tables(log.notes))


def _channels(log: Log) -> Section:
    blocks: list[Block] = []
    for channel, (name, title) in _FIGURES.items():
        if channel in log:
            blocks.append(_figure(log, name, title, log[channel]))
    if log.clock is Clock.COLUMN and len(log) > 1:
        blocks.append(_steps(log))
    return Section("channels", "Channels over time", tuple(blocks))


def _figure(log: Log, name: str, title: str, values: FloatArray) -> Figure:
    sound = np.isfinite(log.time) & np.isfinite(values).all(axis=1)
    count = len(COLOURS)
    data = tuple(
        line(log.time[sound], values[sound, j], joint, COLOURS[j % count], dash=DASHES[j // count % len(DASHES)])
        for j, joint in enumerate(log.joints)
    )
    time = "sample" if log.clock is Clock.UNKNOWN else "time [s]"
    return Figure(name, data, axes(time, title), caption=f"{name} as recorded")


def _steps(log: Log) -> Figure:
    """From each row to the next; a straight line is an even clock."""
    step = 1e3 * np.diff(log.time)
    sound = np.isfinite(step)
    data = (line(log.time[1:][sound], step[sound], "step", BLUE),)
    return Figure("steps", data, axes("time [s]", "step [ms]"), caption="time from each row to the next")
