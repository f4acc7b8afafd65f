"""Arms as URDF files: a new one for any arm, or the file it came from with new values."""

from __future__ import annotations

from math import isfinite

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.inertial import transformed
from armid.robot.elementary import Elementary, product
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from armid.robot.robot import Joint, JointKind, Limits, Link, Robot
from armid.robot.urdf.quoting import quoteattr
from armid.robot.urdf.text import NO_LIMIT, free_name, inertial_lines, numbers, origin_tag
from armid.robot.urdf.update import updated_urdf

__all__ = ["new_urdf", "updated_urdf"]

_SAME = 1e-12
"""Entries of two homogeneous matrices closer than this are the same pose up to round-off."""


def new_urdf(robot: Robot) -> str:
    """The text of a URDF file with the same arm.

    URDF wants the link frame on the joint axis. Where the robot's own link frame lies elsewhere (standard
    Denavit-Hartenberg), the URDF link sits at the axis and a massless link `<name>_frame` marks the original frame.
    Damping and friction go into `<dynamics>`; rotor inertia, offsets and a coupling between drives have no place in the
    format (with a coupling, URDF joints are the geometric ones). Gravity is the world's: mount the base accordingly.
    """
    lines = ['<?xml version="1.0"?>', f"<robot name={quoteattr(robot.name)}>"]
    lines += _link(Link(robot.base, geometry=robot.geometry), np.eye(4))
    used = {robot.base, *robot.link_names}
    before, parent = np.eye(4), robot.base
    T_urdf_link = [before]
    for joint, link in zip(robot.joints, robot.links, strict=True):
        k = joint.variable_index
        variable = joint.transforms[k]
        origin = before @ product((*joint.transforms[:k], Elementary(motion=variable.motion, value=variable.value)))
        before = product(joint.transforms[k + 1 :])
        lines += _joint(joint, parent, link.name, origin)
        lines += _link(link, before)
        T_urdf_link.append(before)
        parent = link.name
    lines += _frames(robot, T_urdf_link, used)
    return "\n".join((*lines, "</robot>")) + "\n"


def _frames(robot: Robot, T_urdf_link: list[FloatArray], used: set[str]) -> list[str]:
    """Fixed links for link frames off the axis and for the robot's own frames, the tip last."""
    names = (robot.base, *robot.link_names)
    wanted = [
        (f"{names[i]}_frame", names[i], T)
        for i, T in enumerate(T_urdf_link)
        if not np.allclose(T, np.eye(4), rtol=0.0, atol=_SAME)
    ]
    for frame in robot.frames:
        T = T_urdf_link[frame.link] @ frame.T_link_frame
        if frame.name != names[frame.link] or not np.allclose(T, np.eye(4), rtol=0.0, atol=_SAME):
            wanted.append((frame.name, names[frame.link], T))
    lines: list[str] = []
    for wish, parent, T in wanted:
        name = free_name(wish, used)
        lines += [
            f"  <link name={quoteattr(name)}/>",
            f'  <joint name={quoteattr(free_name(name + "_fixed", used))} type="fixed">',
            f"    <parent link={quoteattr(parent)}/>",
            f"    <child link={quoteattr(name)}/>",
            f"    {origin_tag(T)}",
            "  </joint>",
        ]
    return lines


def _joint(joint: Joint, parent: str, child: str, origin: FloatArray) -> list[str]:
    variable = joint.transforms[joint.variable_index]
    axis = [0.0, 0.0, 0.0]
    axis[variable.motion.axis] = float(variable.sign)
    limits = joint.limits
    kind = "prismatic" if joint.kind is JointKind.PRISMATIC else "revolute"
    if kind == "revolute" and not (isfinite(limits.lower) or isfinite(limits.upper)):
        kind = "continuous"
    lines = [
        f"  <joint name={quoteattr(joint.name)} type={quoteattr(kind)}>",
        f"    <parent link={quoteattr(parent)}/>",
        f"    <child link={quoteattr(child)}/>",
        f"    {origin_tag(origin)}",
        f'    <axis xyz="{numbers(axis)}"/>',
    ]
    if kind != "continuous" or limits != Limits():
        lines.append(f"    <limit {_limit_attributes(limits, kind)}/>")
    if joint.drive.viscous or joint.drive.coulomb:
        lines.append(f'    <dynamics damping="{joint.drive.viscous!r}" friction="{joint.drive.coulomb!r}"/>')
    return [*lines, "  </joint>"]


def _limit_attributes(limits: Limits, kind: str) -> str:
    pairs = [("velocity", limits.velocity), ("effort", limits.torque)]
    if kind != "continuous":
        pairs = [("lower", limits.lower), ("upper", limits.upper), *pairs]
    return " ".join(f'{key}="{_limit(value, key)}"' for key, value in pairs)


def _limit(value: float, key: str) -> str:
    if isfinite(value):
        return repr(float(value))
    return f"-{NO_LIMIT}" if key == "lower" else NO_LIMIT


def _link(link: Link, T_urdf_link: FloatArray) -> list[str]:
    lines = [f"  <link name={quoteattr(link.name)}>"]
    if link.inertial is not None:
        lines += [f"    {line}" for line in inertial_lines(transformed(link.inertial, T_urdf_link))]
    for geometry in link.geometry:
        lines += [f"    {line}" for line in _geometry(geometry, T_urdf_link @ geometry.T_link_shape)]
    return [*lines, "  </link>"] if len(lines) > 1 else [f"  <link name={quoteattr(link.name)}/>"]


def _geometry(geometry: Geometry, T: FloatArray) -> list[str]:
    tag = "collision" if geometry.collision else "visual"
    shapes = _shape_tags(geometry)
    lines: list[str] = []
    for shape, offset in shapes:
        local = np.eye(4)
        local[2, 3] = offset
        lines += [f"<{tag}>", f"  {origin_tag(T @ local)}", f"  <geometry>{shape}</geometry>", f"</{tag}>"]
    return lines


def _shape_tags(geometry: Geometry) -> list[tuple[str, float]]:
    """The shape as URDF primitives with their offset along z; a capsule is a cylinder and two spheres there."""
    shape = geometry.shape
    if isinstance(shape, Box):
        return [(f'<box size="{numbers(shape.size)}"/>', 0.0)]
    if isinstance(shape, Sphere):
        return [(f'<sphere radius="{shape.radius!r}"/>', 0.0)]
    if isinstance(shape, Mesh):
        return [(f'<mesh filename={quoteattr(shape.path)} scale="{numbers(shape.scale)}"/>', 0.0)]
    cylinder = (f'<cylinder radius="{shape.radius!r}" length="{shape.length!r}"/>', 0.0)
    if isinstance(shape, Cylinder):
        return [cylinder]
    assert isinstance(shape, Capsule)
    ball = f'<sphere radius="{shape.radius!r}"/>'
    return [cylinder, (ball, 0.5 * shape.length), (ball, -0.5 * shape.length)]
