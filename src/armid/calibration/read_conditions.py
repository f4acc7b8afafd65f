"""What came with the rows of a poses file beside the measurement: joint torque, temperature, time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.poses_table import PosesTable, find
from armid.errors import InputError

_TORQUE_TITLES = ("tau_{}", "tau{}", "torque_{}", "torque{}", "{}_torque", "effort_{}", "{}_effort")
"""How columns of joint torques are titled, by the joint's name or number."""


def torque_columns(table: PosesTable, joint_names: Sequence[str]) -> tuple[str, ...]:
    """Columns of the measured torque of every joint in kinematic order; none when there are none.

    Raises:
        InputError: some joints have one and others do not.
    """
    numbers = [str(k) for k in range(1, len(joint_names) + 1)]
    for words in ([name.lower() for name in joint_names], numbers):
        for title in _TORQUE_TITLES:
            names = [title.format(word) for word in words]
            found = [name in table.columns for name in names]
            if all(found):
                return tuple(names)
            if any(found):
                lost = names[found.index(False)]
                raise InputError(
                    table.where,
                    f"joint torques without {lost}",
                    f"one column per joint, in N m: {', '.join(names)}; or none of them",
                )
    return ()


def measured_torque(table: PosesTable, joint_names: Sequence[str]) -> FloatArray | None:
    """Torque of the drives that hold the arm, shape [n, n_joints]; None when the file has none."""
    columns = torque_columns(table, joint_names)
    return np.column_stack([table.numbers(name) for name in columns]) if columns else None


TEMPERATURE = ("temp", "temp_c", "temperature", "temperature_c")
TIME = ("t", "time", "timestamp", "stamp", "datetime", "date_time")


def conditions(table: PosesTable) -> dict[str, FloatArray]:
    """Temperature and time [s], where there are such columns and they can be read."""
    out = {}
    for label, names in (
        ("temperature", TEMPERATURE),
        ("time", TIME),
    ):
        column = find(table, names)
        values = None if column is None else _amounts(table, column)
        if values is not None and np.isfinite(values).all():
            out[label] = values
    return out


def unread_conditions(table: PosesTable) -> tuple[str, ...]:
    """Columns of temperature and time in words or dates that nobody here understands."""
    columns = (find(table, names) for names in (TEMPERATURE, TIME))
    return tuple(column for column in columns if column is not None and _amounts(table, column) is None)


def _amounts(table: PosesTable, column: str) -> FloatArray | None:
    """A column as numbers, dates and times as seconds; None where it holds neither."""
    cells = table.columns[column]
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        pass
    times = [_seconds(cell) for cell in cells]
    known = np.array([np.nan if time is None else time for time in times])
    return None if None in times else _past_midnight(known)


_DATES = ("%d.%m.%Y %H:%M:%S.%f", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")
"""Dates that are not as in ISO 8601; a month before its day is left unread, since nothing tells it from the reverse."""
_TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:[.,]\d+)?))?$")


def _seconds(cell: str) -> float | None:
    """A time of day or a date with one, in seconds; None when it is neither."""
    if match := _TIME_OF_DAY.match(cell):
        hours, minutes, seconds = match.groups()
        return 3600.0 * int(hours) + 60.0 * int(minutes) + float((seconds or "0").replace(",", "."))
    with suppress(ValueError):
        return datetime.fromisoformat(cell).replace(tzinfo=UTC).timestamp()
    for form in _DATES:
        with suppress(ValueError):
            return datetime.strptime(cell, form).replace(tzinfo=UTC).timestamp()
    return None


_DAY = 86_400.0


def _past_midnight(times: FloatArray) -> FloatArray:
    """Times of day that go on counting where a day ends: the clock falls back by more than half of one."""
    if times.max() > 2.0 * _DAY:
        return times
    falls = np.diff(times, prepend=times[0]) < -0.5 * _DAY
    return times + _DAY * np.cumsum(falls)
