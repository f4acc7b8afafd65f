"""Shapes and poses as robot and cell files write them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armid.arrays import FloatArray
from armid.robot.document import Field
from armid.robot.elementary import rotation_from_rpy
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Shape, Sphere

SHAPES = ("box", "sphere", "cylinder", "capsule", "mesh")
POSE = ("xyz", "rpy", "rpy_deg")


def read_pose(fields: Mapping[str, Field]) -> FloatArray:
    """Homogeneous matrix from `xyz` [m] and fixed-axis `rpy` [rad] or `rpy_deg`; shape [4, 4]."""
    T = np.eye(4)
    if "rpy" in fields and "rpy_deg" in fields:
        raise fields["rpy"].error("both rpy and rpy_deg", "give one")
    if "rpy" in fields:
        T[:3, :3] = rotation_from_rpy(*fields["rpy"].vector(3))
    if "rpy_deg" in fields:
        T[:3, :3] = rotation_from_rpy(*np.radians(fields["rpy_deg"].vector(3)))
    if "xyz" in fields:
        T[:3, 3] = fields["xyz"].vector(3)
    return T


def read_geometry(field: Field) -> tuple[Geometry, ...]:
    """A list of shapes placed in a link."""
    return tuple(_one(entry) for entry in field.items())


def _one(entry: Field) -> Geometry:
    fields = entry.keys((*SHAPES, *POSE, "collision"))
    T = read_pose(fields)
    shape, T_pose_shape = read_shape(entry, fields)
    collision = fields["collision"].flag() if "collision" in fields else True
    return Geometry(shape, T @ T_pose_shape, collision)


def read_shape(entry: Field, fields: Mapping[str, Field]) -> tuple[Shape, FloatArray]:
    """The one shape among the keys, and where it stands when it is given by its end points."""
    given = [key for key in SHAPES if key in fields]
    if len(given) != 1:
        raise entry.error(f"{len(given)} shapes", f"give exactly one of {', '.join(SHAPES)}")
    field = fields[given[0]]
    if given[0] == "box":
        size = field.keys(("size",), required=("size",))["size"]
        return Box(_positive_triple(size)), np.eye(4)
    if given[0] == "sphere":
        return Sphere(_positive(field.keys(("radius",), required=("radius",))["radius"])), np.eye(4)
    if given[0] == "mesh":
        inner = field.keys(("path", "scale"), required=("path",))
        scale = inner["scale"].vector(3) if "scale" in inner else np.ones(3)
        return Mesh(inner["path"].name(), (float(scale[0]), float(scale[1]), float(scale[2]))), np.eye(4)
    return _along_z(field, Capsule if given[0] == "capsule" else Cylinder)


def _along_z(field: Field, kind: type[Capsule] | type[Cylinder]) -> tuple[Shape, FloatArray]:
    """A capsule or cylinder by radius and length along z, or by the end points of its axis."""
    inner = field.keys(("radius", "length", "from", "to"), required=("radius",))
    radius = _positive(inner["radius"])
    if "length" in inner:
        if "from" in inner or "to" in inner:
            raise field.error("length together with from or to", "give a length, or both end points")
        return kind(radius, _positive(inner["length"])), np.eye(4)
    if "from" not in inner or "to" not in inner:
        raise field.error("neither length nor both end points", "give length, or from and to")
    start, end = inner["from"].vector(3), inner["to"].vector(3)
    length = float(np.linalg.norm(end - start))
    if length == 0.0:
        raise field.error("from and to are the same point", "use a sphere")
    return kind(radius, length), pose_along(start, end)


def pose_along(start: FloatArray, end: FloatArray) -> FloatArray:
    """A frame midway between two points with its z axis from the first to the second; shape [4, 4]."""
    z = (end - start) / np.linalg.norm(end - start)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = x, np.cross(z, x), z, 0.5 * (start + end)
    return T


def _positive(field: Field) -> float:
    value = field.number()
    if value <= 0.0:
        raise field.error(f"{value:g} is not positive")
    return value


def _positive_triple(field: Field) -> tuple[float, float, float]:
    x, y, z = field.vector(3)
    if min(x, y, z) <= 0.0:
        raise field.error(f"a box of size {[float(x), float(y), float(z)]}", "every edge must be positive")
    return float(x), float(y), float(z)
