"""The description of an arm and the files it comes from."""

from armid.robot.elementary import Elementary, Motion
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from armid.robot.robot import Drive, Frame, Joint, JointKind, Limits, Link, Robot, Source

__all__ = [
    "Box", "Capsule", "Cylinder", "Drive", "Elementary", "Frame", "Geometry", "Joint", "JointKind",
    "Limits", "Link", "Mesh", "Motion", "Robot", "Source", "Sphere",
]  # fmt: skip
