"""What friction beyond viscous + Coulomb + offset multiplies: asymmetric, Stribeck, smooth, load-dependent, of coupled joints.

Every shape is linear but for one velocity scale per joint (Stribeck, smooth), a presliding distance, or the load itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.experiments.torque import ShapeColumn
from armid.parameters.effects import Effects
from armid.robot.robot import Robot


class Shape(StrEnum):
    """What is added to the linear friction model of a joint; the words of `--friction`."""

    ASYMMETRIC = "asymmetric"
    """viscous_asymmetry * |qd|: other slopes in either direction (other levels are the offset)."""
    STRIBECK = "stribeck"
    """stribeck * sign(qd) exp(-(qd / scale)^2): more friction near standstill."""
    SMOOTH = "smooth"
    """coulomb * tanh(qd / scale): a sign without a jump."""
    LOAD = "load"
    """coulomb_load * |load torque| sign(qd): friction that grows with what the gear carries."""


def shape_values(
    shape: Shape,
    qd: FloatArray,
    *,
    scale: float = 1.0,
    load: FloatArray | None = None,
    direction: FloatArray | None = None,
) -> FloatArray:
    """The column of one joint, shape [n_samples].

    Args:
        shape: which.
        qd: velocity [rad/s or m/s], shape [n_samples].
        scale: velocity scale, for Stribeck and smooth.
        load: torque the gear carries, for load-dependent friction, shape [n_samples].
        direction: of Coulomb friction, between -1 and 1, where better known than by the sign of qd.
    """
    way = np.sign(qd) if direction is None else direction
    match shape:
        case Shape.ASYMMETRIC:
            return np.abs(qd)
        case Shape.STRIBECK:
            return way * np.exp(-((qd / scale) ** 2))
        case Shape.SMOOTH:
            return np.tanh(qd / scale)
        case Shape.LOAD:
            if load is None:
                raise InputError("load", "load-dependent friction needs the load torque", "fit once without it first")
            return np.abs(load) * way


@dataclass(frozen=True, eq=False)
class Shapes:
    """What a friction model needs besides its linear parameters.

    Args:
        presliding: distance over which Coulomb friction turns around, per joint [rad or m]; zero for at once.
        scales: velocity scale of Stribeck or smooth friction, per joint [rad/s or m/s]; empty without one.
        load: standard parameters of the bodies whose torque is the load, by name; None without.
    """

    presliding: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    load: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.load is not None:
            object.__setattr__(self, "load", MappingProxyType(dict(self.load)))

    def scaled(self, factor: float) -> Shapes:
        """The same with all velocity scales multiplied."""
        return replace(self, scales=tuple(factor * s for s in self.scales))


def smoothed(direction: FloatArray, qd: FloatArray, effects: Effects, shapes: Shapes) -> FloatArray:
    """What the Coulomb parameter multiplies before the low-pass, shape [n_samples, n_joints]."""
    if not effects.smooth:
        return direction
    return np.column_stack(
        [shape_values(Shape.SMOOTH, qd[:, j], scale=scale) for j, scale in enumerate(checked_scales(shapes, qd))]
    )


def column_values(
    columns: Sequence[ShapeColumn],
    robot: Robot,
    qd: FloatArray,
    direction: FloatArray,
    shapes: Shapes,
    load: FloatArray | None,
) -> FloatArray:
    """Inputs of the shape columns before the low-pass, shape [n_samples, n_columns].

    Args:
        columns: of the torque rows.
        robot: for its coupling.
        qd: of the drives, shape [n_samples, n_joints].
        direction: of Coulomb friction, shape [n_samples, n_joints].
        shapes: scales.
        load: rigid torque, shape [n_samples, n_joints]; None when no column needs it.
    """
    out = np.empty((len(qd), len(columns)))
    for k, column in enumerate(columns):
        j = column.joint
        way = direction[:, j]
        match column.quantity:
            case "viscous_asymmetry":
                out[:, k] = shape_values(Shape.ASYMMETRIC, qd[:, j])
            case "stribeck":
                scale = checked_scales(shapes, qd)[j]
                out[:, k] = shape_values(Shape.STRIBECK, qd[:, j], scale=scale, direction=way)
            case "coulomb_load":
                carried = None if load is None else load[:, j]
                out[:, k] = shape_values(Shape.LOAD, qd[:, j], load=carried, direction=way)
            case "coupled_viscous":
                out[:, k] = joint_velocity(robot, qd, j)
            case "coupled_coulomb":
                out[:, k] = np.sign(joint_velocity(robot, qd, j))
    return out


def joint_velocity(robot: Robot, qd: FloatArray, j: int) -> FloatArray:
    """Velocity of joint j itself, which several drives move, shape [n_samples]."""
    assert robot.coupling is not None
    return np.asarray(qd @ robot.coupling[j])


def checked_scales(shapes: Shapes, qd: FloatArray) -> tuple[float, ...]:
    """The velocity scales.

    Raises:
        InputError: there are none, or not one per joint.
    """
    if len(shapes.scales) != qd.shape[1]:
        raise InputError(
            "friction", f"{len(shapes.scales)} velocity scales for {qd.shape[1]} joints", "search for them"
        )
    return shapes.scales
