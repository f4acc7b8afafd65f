"""The description of an arm and the files it comes from."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armid.robot.elementary import Elementary, Move
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from armid.robot.robot import Drive, Frame, Joint, JointKind, Limits, Link, Robot, Source

if TYPE_CHECKING:
    from armid.robot.catalogue import catalogue_names
    from armid.robot.dh_table import in_dh_frames
    from armid.robot.load import load_robot
    from armid.robot.urdf.arm import parse_urdf
    from armid.robot.urdf.write import new_urdf, updated_urdf
    from armid.robot.yaml_file import parse_yaml, to_yaml

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "Drive",
    "Elementary",
    "Frame",
    "Geometry",
    "Joint",
    "JointKind",
    "Limits",
    "Link",
    "Mesh",
    "Move",
    "Robot",
    "Source",
    "Sphere",
    "catalogue_names",
    "in_dh_frames",
    "load_robot",
    "new_urdf",
    "parse_urdf",
    "parse_yaml",
    "to_yaml",
    "updated_urdf",
]

# The readers bring in YAML and XML parsers, which nothing that only computes needs: loaded when first used.
_LATER = {
    "catalogue_names": "catalogue",
    "in_dh_frames": "dh_table",
    "load_robot": "load",
    "new_urdf": "urdf.write",
    "parse_urdf": "urdf.arm",
    "parse_yaml": "yaml_file",
    "to_yaml": "yaml_file",
    "updated_urdf": "urdf.write",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
