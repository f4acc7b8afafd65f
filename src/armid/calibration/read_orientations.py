"""Rotation matrices of the numbers that a poses file has for an orientation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.pose_titles import LAST_ROW
from armid.calibration.poses_table import PosesTable
from armid.calibration.words import QUATERNION_ORDERS
from armid.errors import InputError
from armid.kinematics.rotations import matrix_from_euler, matrix_from_quaternion, nearest_rotation, rotation_exp

Mask = npt.NDArray[np.bool_]


def angles_as(values: FloatArray, reading: str) -> FloatArray:
    """Rotation matrices of three numbers read as Euler angles or as a rotation vector [rad]."""
    if reading == "rotation-vector":
        return rotation_exp(values)
    return matrix_from_euler(values, reading.removeprefix("euler-"))


_NOT_UNIT = 0.02
"""How far a quaternion's norm may be from one: two decimals of each component."""


def quaternions(table: PosesTable, raw: FloatArray, seen: Mask, reading: str) -> FloatArray:
    """Rotation matrices of quaternions in either order; refuses those that are not of unit length."""
    norm = np.linalg.norm(raw, axis=1)
    bad = np.flatnonzero(seen & (np.abs(norm - 1.0) > _NOT_UNIT))
    if len(bad):
        raise InputError(
            f"{table.where}, line {table.lines[bad[0]]}",
            f"quaternion of length {norm[bad[0]]:.4g} ({len(bad)} of {len(raw)} rows are not normalised)",
            "columns mixed up, angles instead of a quaternion, or a lost digit: a rotation has length 1",
        )
    unit = np.where(seen[:, np.newaxis], raw, [1.0, 0.0, 0.0, 0.0]) / np.where(seen, norm, 1.0)[:, np.newaxis]
    # Columns named qw qx qy qz that really hold x y z w: the first column is x.
    return matrix_from_quaternion(unit if reading == QUATERNION_ORDERS[0] else np.roll(unit, 1, axis=1))


def check_last_row(table: PosesTable) -> None:
    """Refuses homogeneous matrices whose last row is not 0 0 0 1: they were written column by column, or are none."""
    present = [
        (name, value) for name, value in zip(LAST_ROW, (0.0, 0.0, 0.0, 1.0), strict=True) if name in table.columns
    ]
    for name, value in present:
        bad = np.flatnonzero(np.abs(table.numbers(name) - value) > _NOT_UNIT)
        if len(bad):
            raise InputError(
                f"{table.where}, line {table.lines[bad[0]]}",
                f"{table.columns[name][bad[0]]} in column {table.titles[name]!r}: the last row of a pose is 0 0 0 1",
                "titles count row, then column; exchange the two where the matrix was written column by column",
            )


def matrices(table: PosesTable, raw: FloatArray, seen: Mask) -> FloatArray:
    """Rotation matrices given entry by entry, row by row; refuses those that are none."""
    R = np.where(seen[:, np.newaxis], raw, np.eye(3).ravel()).reshape(-1, 3, 3)
    bad = np.flatnonzero(
        (np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max(axis=(1, 2)) > _NOT_UNIT) | (np.linalg.det(R) < 0)
    )
    if len(bad):
        raise InputError(
            f"{table.where}, line {table.lines[bad[0]]}",
            f"r11 ... r33 is no rotation matrix ({len(bad)} of {len(R)} rows)",
            "its rows must be orthogonal unit vectors of a right-handed frame",
        )
    return nearest_rotation(R)
