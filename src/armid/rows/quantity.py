"""What is measured, as a word, and the sources of rows that stand for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from armid.errors import InputError
from armid.kernels.source import RowSource
from armid.parameters.effects import Effects, PayloadRuns
from armid.parameters.space import ParameterSpace
from armid.robot.robot import Robot
from armid.rows.axis_inertia import AxisInertiaRows
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows
from armid.rows.pose import ChainErrors, PoseMeasure, PoseRows
from armid.rows.torque import TorqueRows


@runtime_checkable
class ArmSource(RowSource, Protocol):
    """A source of rows in the standard parameters of an arm; its first inputs are the positions."""

    @property
    def robot(self) -> Robot: ...

    @property
    def space(self) -> ParameterSpace: ...


class Quantity(StrEnum):
    """What is measured."""

    TORQUE = "torque"
    GRAVITY = "gravity"
    INERTIA_MATRIX = "inertia-matrix"
    AXIS_INERTIA = "axis-inertia"
    POSE = "pose"


_DYNAMIC: dict[Quantity, Any] = {
    Quantity.TORQUE: TorqueRows,
    Quantity.GRAVITY: GravityRows,
    Quantity.INERTIA_MATRIX: InertiaMatrixRows,
    Quantity.AXIS_INERTIA: AxisInertiaRows,
}


@dataclass(frozen=True, slots=True)
class Tracking:
    """How a pose is measured.

    Args:
        frame: name of the tracked frame; the tip by default.
        measure: the whole pose, points, or distances of points.
        points: fixed to the frame [m].
        model: which constants are in question; by default what the description calls for.
    """

    frame: str | None = None
    measure: PoseMeasure = PoseMeasure.POSE
    points: tuple[tuple[float, float, float], ...] = ((0.0, 0.0, 0.0),)
    model: ChainErrors | None = None


def sources_for(
    robot: Robot, quantities: Sequence[Quantity], effects: Effects, tracking: Tracking | None = None
) -> tuple[RowSource, ...]:
    """The sources of rows that stand for these measurements, over one parameter vector.

    Effects that none of the quantities can hold (friction in a gravity vector) are left out of the vector.

    Raises:
        InputError: poses together with something else.
    """
    if Quantity.POSE in quantities:
        if len(quantities) > 1:
            raise InputError(
                "quantity", "pose together with another quantity", "kinematics and dynamics are inspected apart"
            )
        t = tracking or Tracking()
        return (PoseRows(robot=robot, frame=t.frame, measure=t.measure, model=t.model, points=t.points),)
    if Quantity.TORQUE not in quantities:
        effects = Effects(rotor_inertia=effects.rotor_inertia, payload=effects.payload)
    if Quantity.AXIS_INERTIA in quantities:
        effects = replace(effects, rotor_inertia=True)
    runs = (True, False) if effects.payload is PayloadRuns.BOTH else (True,)
    return tuple(_DYNAMIC[quantity](robot, effects, loaded=loaded) for loaded in runs for quantity in quantities)
