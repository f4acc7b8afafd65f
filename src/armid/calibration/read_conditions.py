"""What came with the rows of a poses file beside the measurement: joint torque, temperature, time."""

from __future__ import annotations

from collections.abc import Sequence

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
TIME = ("t", "time", "timestamp", "stamp")


def conditions(table: PosesTable) -> dict[str, FloatArray]:
    """Temperature and time, where there are such columns."""
    out = {}
    for label, names in (
        ("temperature", TEMPERATURE),
        ("time", TIME),
    ):
        column = find(table, names)
        if column is not None:
            values = table.numbers(column)
            if np.isfinite(values).all():
                out[label] = values
    return out
