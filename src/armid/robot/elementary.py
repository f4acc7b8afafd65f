"""Elementary transforms: every arm is a chain of Tx Ty Tz Rx Ry Rz with constants, and one variable per joint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import cos, sin

import numpy as np

from armid.arrays import FloatArray, snapped


class Move(StrEnum):
    """A translation along, or a rotation about, one coordinate axis of the current frame."""

    TX = "Tx"
    TY = "Ty"
    TZ = "Tz"
    RX = "Rx"
    RY = "Ry"
    RZ = "Rz"

    @property
    def is_rotation(self) -> bool:
        return self.value[0] == "R"

    @property
    def axis(self) -> int:
        """0, 1, 2 for x, y, z."""
        return "xyz".index(self.value[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementary:
    """One elementary transform, applied on the right: `T_a_c = T_a_b @ T_b_c`.

    Args:
        motion: which axis, translation or rotation.
        value: constant part [m or rad].
        symbol: name of the constant in closed forms (`d3`); None when the value is part of the structure.
        variable: whether the joint variable q is added to the constant: `value + sign * q`.
        sign: +1 or -1, only meaningful for a variable.
    """

    motion: Move
    value: float = 0.0
    symbol: str | None = None
    variable: bool = False
    sign: int = 1

    def matrix(self, q: float = 0.0) -> FloatArray:
        """The homogeneous 4 x 4 matrix at joint position q [rad or m]."""
        return elementary_matrix(self.motion, self.value + self.sign * q if self.variable else self.value)


def elementary_matrix(motion: Move, amount: float) -> FloatArray:
    """Homogeneous matrix of one elementary motion by `amount` [m or rad]."""
    T = np.eye(4)
    i = motion.axis
    if not motion.is_rotation:
        T[i, 3] = amount
        return T
    j, k = (i + 1) % 3, (i + 2) % 3
    c, s = snapped(cos(amount)), snapped(sin(amount))
    T[j, j], T[j, k], T[k, j], T[k, k] = c, -s, s, c
    return T


def product(transforms: Iterable[Elementary], q: float = 0.0) -> FloatArray:
    """Homogeneous matrix of a chain with its variable (if any) at q."""
    T = np.eye(4)
    for element in transforms:
        T = T @ element.matrix(q)
    return T


def from_matrix(T: FloatArray) -> tuple[Elementary, ...]:
    """Tx Ty Tz Rz Ry Rx (the URDF's xyz and rpy) that multiply to T; identity factors are left out."""
    x, y, z = (float(v) for v in T[:3, 3])
    roll, pitch, yaw = rpy(T[:3, :3])
    parts = (
        (Move.TX, x),
        (Move.TY, y),
        (Move.TZ, z),
        (Move.RZ, yaw),
        (Move.RY, pitch),
        (Move.RX, roll),
    )
    return tuple(Elementary(motion=motion, value=value) for motion, value in parts if value != 0.0)


def rpy(R: FloatArray) -> tuple[float, float, float]:
    """Fixed-axis roll, pitch, yaw [rad]: R = Rz(yaw) Ry(pitch) Rx(roll); roll = 0 at the singularity."""
    flat = np.hypot(R[0, 0], R[1, 0])
    pitch = float(np.arctan2(-R[2, 0], flat))
    roll = 0.0 if flat < 1e-12 else float(np.arctan2(R[2, 1], R[2, 2]))
    # Yaw from R Rx(-roll), whose y axis is (-sin yaw, cos yaw, 0): close to the singularity roll is ill-determined,
    # and only so does yaw make up for it.
    y = R[:, 1] * cos(roll) - R[:, 2] * sin(roll)
    return roll, pitch, float(np.arctan2(-y[0], y[1]))


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> FloatArray:
    """R = Rz(yaw) Ry(pitch) Rx(roll), shape [3, 3]."""
    return (elementary_matrix(Move.RZ, yaw) @ elementary_matrix(Move.RY, pitch) @ elementary_matrix(Move.RX, roll))[
        :3, :3
    ]
