"""What friction beyond viscous + Coulomb + offset multiplies: asymmetric, Stribeck, smooth, load-dependent, of coupled joints.

Every shape is linear but for one velocity scale per joint (Stribeck, smooth), a presliding distance, or the load itself.

Columns are given at several points around each sample, for the low-pass to see them as densely as it saw the torque: at the
samples alone, or averaged between them, a jump looks smoother than it was and Coulomb friction comes out too large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.parameters.effects import Effects
from armid.robot.robot import Robot
from armid.rows.presliding import SUBSTEPS, contact_along, contact_state
from armid.rows.torque import ShapeColumn


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
    """The column of one joint, shaped like the velocity.

    Args:
        shape: which.
        qd: velocity [rad/s or m/s], of any shape.
        scale: velocity scale, for Stribeck and smooth.
        load: torque the gear carries, for load-dependent friction, shaped like qd.
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
        widths: velocity over which Coulomb friction turns around, per joint [rad/s or m/s]: coulomb * tanh(qd / width); zero for
            at once, and where it turns around over a distance.
    """

    presliding: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    load: Mapping[str, float] | None = None
    widths: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.load is not None:
            object.__setattr__(self, "load", MappingProxyType(dict(self.load)))

    def scaled(self, factor: float) -> Shapes:
        """The same with all velocity scales multiplied."""
        return replace(self, scales=tuple(factor * s for s in self.scales))


@dataclass(frozen=True, eq=False)
class Velocity:
    """Velocity over a stretch of uniform sampling, known between the samples too.

    Args:
        qd, qdd: velocity and acceleration of the drives, shape [n_samples, n_joints].
        rate: [Hz]; infinite takes the samples as they are.
        between: velocity at points of the interval around each sample, where better known than by the samples' slopes; shape
            [n_samples, points, n_joints].
    """

    qd: FloatArray
    qdd: FloatArray
    rate: float = np.inf
    between: FloatArray | None = None

    def around(self, j: int) -> FloatArray:
        """Velocity of drive j at points of each interval, shape [n_samples, points]; linear there unless known better."""
        if self.between is not None:
            return self.between[..., j]
        if not np.isfinite(self.rate):
            return self.qd[:, [j]]
        fraction = (np.arange(SUBSTEPS) + 0.5) / SUBSTEPS - 0.5
        return self.qd[:, [j]] + self.qdd[:, [j]] * (fraction / self.rate)

    def of_joint(self, robot: Robot, j: int) -> FloatArray:
        """Velocity of joint j itself, which several drives move, likewise."""
        assert robot.coupling is not None
        return np.asarray(sum(c * self.around(k) for k, c in enumerate(robot.coupling[j]) if c != 0.0))


def smoothed(direction: FloatArray, velocity: Velocity, effects: Effects, shapes: Shapes) -> FloatArray:
    """What the Coulomb parameter multiplies before the low-pass, shape [n_samples, points, n_joints] like the direction."""
    if not effects.smooth:
        return direction
    scales = _checked_scales(shapes, direction.shape[2])
    return np.stack(
        [shape_values(Shape.SMOOTH, velocity.around(j), scale=scale) for j, scale in enumerate(scales)], axis=2
    )


def column_values(
    columns: Sequence[ShapeColumn],
    robot: Robot,
    velocity: Velocity,
    direction: FloatArray,
    shapes: Shapes,
    load: FloatArray | None,
) -> FloatArray:
    """Inputs of the shape columns before the low-pass, shape [n_samples, points, n_columns].

    Args:
        columns: of the torque rows.
        robot: for its coupling.
        velocity: of the drives.
        direction: of Coulomb friction, shape [n_samples, points, n_joints].
        shapes: scales.
        load: rigid torque, shape [n_samples, n_joints]; None when no column needs it.
    """
    out = np.empty((*direction.shape[:2], len(columns)))
    for k, column in enumerate(columns):
        j = column.joint
        match column.quantity:
            case "viscous_asymmetry":
                out[..., k] = shape_values(Shape.ASYMMETRIC, velocity.around(j))
            case "stribeck":
                out[..., k] = stribeck(velocity, j, direction[..., j], shapes)
            case "coulomb_load":
                carried = None if load is None else _between(load[:, j], direction.shape[1])
                out[..., k] = shape_values(Shape.LOAD, velocity.around(j), load=carried, direction=direction[..., j])
            case "coupled_viscous":
                out[..., k] = velocity.of_joint(robot, j)
            case "coupled_coulomb":
                out[..., k] = np.sign(velocity.of_joint(robot, j))
    return out


def _between(values: FloatArray, points: int) -> FloatArray:
    """Smooth values at points around each sample, shape [n_samples, points]."""
    k = np.arange(len(values))[:, np.newaxis] + ((np.arange(points) + 0.5) / points - 0.5)
    return np.interp(k, np.arange(len(values)), values)


def stribeck(velocity: Velocity, j: int, direction: FloatArray, shapes: Shapes) -> FloatArray:
    """Stribeck friction of drive j per unit of its amount, shape [n_samples, points].

    Where friction turns around over a distance, its direction is that of the contact and not of the velocity.
    """
    qd = velocity.around(j)
    scale = _checked_scales(shapes, velocity.qd.shape[1])[j]
    if shapes.presliding and shapes.presliding[j] > 0.0:
        return direction * np.exp(-((qd / scale) ** 2))
    return shape_values(Shape.STRIBECK, qd, scale=scale)


def _checked_scales(shapes: Shapes, joints: int) -> tuple[float, ...]:
    """The velocity scales.

    Raises:
        InputError: there are none, or not one per joint.
    """
    if len(shapes.scales) != joints:
        raise InputError("friction", f"{len(shapes.scales)} velocity scales for {joints} joints", "search for them")
    return shapes.scales


def friction_directions(q: FloatArray, velocity: Velocity, shapes: Shapes) -> FloatArray:
    """Direction of Coulomb friction at points around each sample of a stretch, shape [n_samples, SUBSTEPS, n_joints].

    It turns around over a distance, over a range of velocity, or where the velocity does, as the shapes say for each joint.

    Args:
        q: position of the drives, shape [n_samples, n_joints].
        velocity: of the same samples.
        shapes: with distances and widths; none for at once.
    """
    out = np.empty((len(q), SUBSTEPS, q.shape[1]))
    none = (0.0,) * q.shape[1]
    # A jump has no course to follow: when it happens is least noisy as the filtered velocity has it.
    smooth = replace(velocity, between=None)
    for j, (distance, width) in enumerate(zip(shapes.presliding or none, shapes.widths or none, strict=True)):
        if distance > 0.0 and velocity.between is not None:
            out[:, :, j] = contact_along(velocity.around(j), velocity.rate, distance)
        elif distance > 0.0:
            out[:, :, j] = contact_state(q[:, j], velocity.qd[:, j], velocity.rate, distance)
        elif width > 0.0:
            out[:, :, j] = np.tanh(velocity.around(j) / width)
        else:
            change = velocity.qdd[:, j][:, np.newaxis]
            out[:, :, j] = averaged_sign(smooth.around(j), change, velocity.rate * SUBSTEPS)
    return out


def averaged_sign(qd: FloatArray, qdd: FloatArray, rate: float) -> FloatArray:
    """Sign of the velocity averaged over each sampling interval, the velocity taken as linear there.

    A reversal between two samples is so placed where it happened.
    """
    half_change = np.maximum(np.abs(qdd) * 0.5 / rate, 1e-12)
    return np.clip(qd / half_change, -1.0, 1.0)
