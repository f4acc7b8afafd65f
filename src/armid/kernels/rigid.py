"""Rigid-body torque of the drives as a source of rows, over the links' standard parameters alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from armid.errors import UnknownNameError
from armid.kernels.evaluate import SMALL
from armid.kernels.source import Row
from armid.parameters.inertial import INERTIAL_NAMES, N_INERTIAL
from armid.recursion.dynamics import regressor
from armid.recursion.motion import geometric_coordinates
from armid.recursion.scalars import ARRAYS, Scalar, Scalars
from armid.robot.robot import Robot


def rigid_rows(robot: Robot, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
    """Row of every drive over the columns `10 link + k`: C^T Y(C q, C qd, C qdd) with the coupling C.

    Args:
        robot: the arm.
        inputs: drive positions, velocities, accelerations, one after the other.
        scalars: what they are made of.
    """
    motion = inputs[: 3 * robot.n_joints]
    if scalars is ARRAYS and all(_is_short_column(value) for value in motion):
        return [dict(row) for row in _kept_rows(robot, np.array(motion).tobytes())]
    return _rigid_rows(robot, motion, scalars)


def _is_short_column(value: Scalar) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and len(value) <= SMALL and value.dtype == np.float64


@lru_cache(maxsize=4)
def _kept_rows(robot: Robot, motion: bytes) -> list[Row]:
    """Rows at a few samples; whoever asks about other friction along the same motion asks for them again."""
    values = np.frombuffer(motion).reshape(3 * robot.n_joints, -1)
    return _rigid_rows(robot, list(values), ARRAYS)


def _rigid_rows(robot: Robot, motion: Sequence[Scalar], scalars: Scalars) -> list[Row]:
    n = robot.n_joints
    q, qd, qdd = (geometric_coordinates(robot, motion[k * n : (k + 1) * n], scalars) for k in range(3))
    geometric: list[Row] = [
        {
            link * N_INERTIAL + k: value
            for link, ten in enumerate(entries)
            if ten is not None
            for k, value in enumerate(ten)
        }
        for entries in regressor(robot, q, qd, qdd, scalars)
    ]
    if robot.coupling is None:
        return geometric
    return [combined_row([float(w) for w in robot.coupling[:, i]], geometric, scalars) for i in range(n)]


def combined_row(weights: Sequence[float], rows: Sequence[Row], scalars: Scalars) -> Row:
    """Sum of weights times rows."""
    out: Row = {}
    for weight, row in zip(weights, rows, strict=True):
        if weight == 0.0:
            continue
        factor = scalars.constant(float(weight))
        for column, value in row.items():
            term = value if weight == 1.0 else factor * value
            out[column] = out[column] + term if column in out else term
    return out


@dataclass(frozen=True)
class RigidRows:
    """Rows of `tau = Y(q, qd, qdd) inertial`.

    Args:
        robot: the arm.
        joints: names of the drives whose rows are wanted; all by default.
    """

    robot: Robot
    joints: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in self.joints or ():
            if name not in self.robot.joint_names:
                raise UnknownNameError("joint", name, self.robot.joint_names)

    @property
    def channels(self) -> tuple[str, ...]:
        return self.robot.joint_names if self.joints is None else self.joints

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"link{i + 1}.{name}" for i in range(self.robot.n_joints) for name in INERTIAL_NAMES)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(f"{kind}{i + 1}" for kind in ("q", "qd", "qdd") for i in range(self.robot.n_joints))

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        rows = rigid_rows(self.robot, inputs, scalars)
        return [rows[self.robot.joint_index(name)] for name in self.channels]
