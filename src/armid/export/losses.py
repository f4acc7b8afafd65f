"""What a format cannot hold of an identified arm, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armid.export.formats import Format
from armid.identification.result import Result
from armid.identification.sensors import Imperfections
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot
from armid.rows.imperfections import KINDS

HELD: dict[Format, tuple[str, ...]] = {
    Format.URDF: ("rotor_inertia", "viscous", "coulomb"),
    Format.MJCF: ("rotor_inertia", "viscous", "coulomb", "offset"),
    Format.PYTHON: ("rotor_inertia", "viscous", "coulomb", "offset"),
    Format.C: ("rotor_inertia", "viscous", "coulomb", "offset"),
    Format.MATLAB: ("rotor_inertia", "viscous", "coulomb", "offset"),
}
"""Quantities of a drive that a file of each format holds; JSON holds everything."""

PLAIN_URDF = ("viscous", "coulomb")
"""What is left for programs that do not know Drake's rotor tags."""


def losses(result: Result, robot: Robot, target: Format) -> tuple[str, ...]:
    """Everything a file of this format drops.

    Args:
        result: of the identification.
        robot: what the file is about.
        target: the format.
    """
    return (
        *_not_in_format(robot, target),
        *_friction_lost(result, target),
        *_beside_lost(result, target),
    )


def to_know(result: Result, target: Format) -> tuple[str, ...]:
    """What a reader of any file of this result should know, though the format drops nothing by it.

    Args:
        result: of the identification.
        target: the format; JSON holds errors of the sensors by their sizes.
    """
    undone = () if target is Format.JSON or result.imperfections is None else _undone(result.imperfections)
    return (*undone, *_links_unknown(result))


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first few names, and how many more there are."""
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


def _not_in_format(robot: Robot, target: Format) -> tuple[str, ...]:
    match target:
        case Format.URDF:
            return _not_in_urdf(robot)
        case Format.MJCF:
            return not_in_mjcf(robot)
        case _:
            return ()


def _offsets(robot: Robot) -> str:
    """Which joints have one."""
    return listed([joint.name for joint in robot.joints if joint.drive.offset != 0.0])


def _not_in_urdf(robot: Robot) -> tuple[str, ...]:
    missing = []
    if np.any(robot.drive("rotor_inertia") != 0.0):
        missing.append(
            "rotor inertia for most readers: URDF has no element for it; it stands in Drake's tags and in the joint properties "
            "beside the file (MJCF's armature holds it)"
        )
    if np.any(robot.drive("offset") != 0.0):
        missing.append(f"torque offsets (a constant per joint: {_offsets(robot)})")
    if robot.coupling is not None:
        missing.append("joint coupling: positions in the URDF are those of the geometry, not of the drives")
    if not np.allclose(robot.gravity[:2], 0.0) or robot.gravity[2] > 0.0:
        missing.append("the mounting: URDF leaves the direction of gravity to the reader")
    return tuple(missing)


def not_in_mjcf(robot: Robot) -> tuple[str, ...]:
    """What MJCF cannot hold of this robot."""
    missing = []
    if np.isfinite(robot.drive("stiffness")).any():
        missing.append("joint elasticity: the exported joints are rigid")
    if any(np.isfinite(robot.limit(which)).any() for which in ("velocity", "acceleration", "jerk")):
        missing.append("velocity, acceleration and jerk limits")
    return tuple(missing)


def _friction_lost(result: Result, target: Format) -> tuple[str, ...]:
    """That only our JSON holds friction beyond viscous, Coulomb and offset, when there is some."""
    if target is Format.JSON or not result.effects.shapes:
        return ()
    words = ", ".join(result.effects.shapes)
    return (f"friction beyond viscous and Coulomb ({words}): armid's JSON has it all",)


def _beside_lost(result: Result, target: Format) -> tuple[str, ...]:
    """What the model has beside bodies and linear friction, which only our JSON holds; errors of the sensors are none of it."""
    if target is Format.JSON or result.imperfections is None:
        return ()
    undone = _undone(result.imperfections)
    return tuple(line for line in result.imperfections.sentences() if line not in undone)


def _undone(found: Imperfections) -> tuple[str, ...]:
    """The errors of the sensors alone: they belong to the recordings, and the arm does not have them."""
    return _of_sensors(found).sentences()


def _of_sensors(found: Imperfections) -> Imperfections:
    sizes = tuple(sized for sized in found.sizes if KINDS[sized.item.family].sensors)
    return replace(found, sizes=sizes, before=None if found.before is None else _of_sensors(found.before))


def _links_unknown(result: Result) -> tuple[str, ...]:
    """Said when the links' values in a file are not this result's: motor less joint torque is about the drives alone."""
    if result.effects.torques is not TorqueSide.DIFFERENCE:
        return ()
    return ("no identified links: motor less joint torque says nothing of them, the description's own stand here",)
