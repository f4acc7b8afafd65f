"""Drives of an arm as a table beside its URDF: what simulators take joint by joint (armature, friction, damping)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from armid.robot.robot import JointKind, Robot

SCHEMA = "armid.joint-properties/1"


def joint_properties(robot: Robot, *, comments: Sequence[str] = ()) -> str:
    """YAML text: for every joint armature, damping, friction and offset, as Isaac Sim, USD and MuJoCo call them.

    Args:
        robot: the identified arm.
        comments: written at the top.
    """
    lines = [*(f"# {line}" for line in comments)]
    lines += [
        "# armature [kg m^2 or kg] at the joint; damping [N m s/rad or N s/m]; friction [N m or N], constant against the motion;",
        "# offset [N m or N] of the measured torque. Isaac Sim and USD call them armature, damping and joint friction too.",
        f"schema: {SCHEMA}",
        f"robot: {json.dumps(robot.name)}",
        "joints:",
    ]
    for joint in robot.joints:
        drive = joint.drive
        kind = "prismatic" if joint.kind is JointKind.PRISMATIC else "revolute"
        lines += [
            f"  {json.dumps(joint.name)}:",
            f"    kind: {kind}",
            f"    armature: {drive.rotor_inertia!r}",
            f"    damping: {drive.viscous!r}",
            f"    friction: {drive.coulomb!r}",
            f"    offset: {drive.offset!r}",
        ]
    return "\n".join(lines) + "\n"
