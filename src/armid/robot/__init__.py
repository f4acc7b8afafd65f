"""The description of an arm and the files it comes from."""

from typing import TYPE_CHECKING, Any

from armid.robot.elementary import Elementary, Motion
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from armid.robot.robot import Drive, Frame, Joint, JointKind, Limits, Link, Robot, Source

if TYPE_CHECKING:
    from armid.robot.catalogue import catalogue_names
    from armid.robot.load import load_robot

__all__ = [
    "Box", "Capsule", "Cylinder", "Drive", "Elementary", "Frame", "Geometry", "Joint", "JointKind",
    "Limits", "Link", "Mesh", "Motion", "Robot", "Source", "Sphere", "catalogue_names", "load_robot",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # The readers bring in YAML and XML parsers, which nothing that only computes needs.
    if name == "load_robot":
        from armid.robot.load import load_robot

        return load_robot
    if name == "catalogue_names":
        from armid.robot.catalogue import catalogue_names

        return catalogue_names
    raise AttributeError(name)
