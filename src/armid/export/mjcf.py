"""An arm as MJCF text.

Written by us rather than by MuJoCo's own exporter, so that inertias stand as full tensors to all digits. Traps that are
avoided: `balanceinertia` and `boundmass` would silently change an inertia, a default `inertiafromgeom` would replace it,
degrees are MuJoCo's default angle unit, and a body's frame must stand at its joint.

A torque offset has no attribute of its own. It is written as a spring so soft and so far away that its force is constant: passive
like the offset itself, so that forward and inverse dynamics have it, and without an actuator that others must know of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.inertial import six, to_centre_of_mass
from armid.robot.geometry import THINNEST, Box, Capsule, Cylinder, Geometry, Sphere
from armid.robot.quaternion import quaternion_from_matrix
from armid.robot.robot import Joint, JointKind, Robot
from armid.robot.urdf.quoting import quoteattr
from armid.robot.urdf.text import xml_comment

_TENSOR_ORDER = (0, 3, 5, 1, 2, 4)
"""MJCF's fullinertia lists xx yy zz xy xz yz."""

_FAR = 1e7
"""[rad or m] to the rest of the spring that stands for an offset: its force changes by 1e-7 of itself per radian, and single
precision still holds it."""

_OFFSET_WORDS = (
    "Torque offsets stand as springs so soft and so far away that their force is constant: offset = -stiffness x springref. "
    "They add a large constant to MuJoCo's potential energy."
)


def mjcf_text(robot: Robot, *, comments: Sequence[str] = ()) -> str:
    """The robot as a MuJoCo model: armature, friction loss, damping, offsets, full inertias, gravity of its mounting.

    Args:
        robot: with inertial parameters for every link.
        comments: written at the top.
    """
    told = (*comments, *((_OFFSET_WORDS,) if robot.drive("offset").any() else ()))
    lines = [
        *(xml_comment(line) for line in told),
        f"<mujoco model={quoteattr(robot.name)}>",
        '  <compiler angle="radian" autolimits="true" balanceinertia="false" boundmass="0" boundinertia="0"'
        ' inertiafromgeom="false"/>',
        f'  <option gravity="{_numbers(robot.gravity)}" integrator="implicitfast"/>',
        "  <worldbody>",
        *(f"    {_geom(shape, np.eye(4))}" for shape in robot.geometry if _geom(shape, np.eye(4))),
    ]
    T_body_link, offsets = np.eye(4), joint_offsets(robot)
    for i, (joint, link) in enumerate(zip(robot.joints, robot.links, strict=True)):
        before, after = joint.around_variable()
        indent = "    " + "  " * i
        lines.append(f"{indent}<body name={quoteattr(link.name)} {_place(T_body_link @ before)}>")
        lines += [f"{indent}  {line}" for line in (_inertial(link.inertial, after), _joint(robot, joint, offsets[i]))]
        lines += [f"{indent}  {geom}" for geom in (_geom(shape, after) for shape in link.geometry) if geom]
        T_body_link = after
    deepest = "    " + "  " * robot.n_joints
    lines += [
        f"{deepest}<site name={quoteattr(frame.name)} {_place(T_body_link @ frame.T_link_frame)}/>"
        for frame in robot.frames
        if frame.link == robot.n_joints
    ]
    lines += ["    " + "  " * i + "</body>" for i in reversed(range(robot.n_joints))]
    lines += ["  </worldbody>", *_coupling(robot), "</mujoco>", ""]
    return "\n".join(lines)


def _numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(v) + 0.0) for v in values)


def _place(T: FloatArray) -> str:
    return f'pos="{_numbers(T[:3, 3])}" quat="{_numbers(quaternion_from_matrix(T[:3, :3]))}"'


def _inertial(inertial: FloatArray | None, T_body_link: FloatArray) -> str:
    mass, centre, I = to_centre_of_mass(np.zeros(10) if inertial is None else inertial)
    R = T_body_link[:3, :3]
    position = T_body_link[:3, 3] + R @ centre
    full = six(R @ I @ R.T)[list(_TENSOR_ORDER)]
    return f'<inertial mass="{mass!r}" pos="{_numbers(position)}" fullinertia="{_numbers(full)}"/>'


def joint_offsets(robot: Robot) -> FloatArray:
    """Torque offsets of the drives as they act on the joints of the geometry [N m or N], shape [n_joints]."""
    offsets = robot.drive("offset")
    return np.asarray(
        offsets if robot.coupling is None else np.linalg.solve(robot.coupling.T, offsets), dtype=np.float64
    )


def _joint(robot: Robot, joint: Joint, offset: float) -> str:
    variable = joint.transforms[joint.variable_index]
    axis = [0.0, 0.0, 0.0]
    axis[variable.motion.axis] = float(variable.sign)
    kind = "slide" if joint.kind is JointKind.PRISMATIC else "hinge"
    attributes = [f"name={quoteattr(joint.name)}", f'type="{kind}"', f'axis="{_numbers(axis)}"']
    if robot.coupling is None:
        drive = joint.drive
        attributes += [
            f'armature="{drive.rotor_inertia!r}"',
            f'damping="{drive.viscous!r}"',
            f'frictionloss="{drive.coulomb!r}"',
        ]
    if offset != 0.0:
        attributes.append(f'stiffness="{abs(float(offset)) / _FAR!r}" springref="{-_FAR if offset > 0.0 else _FAR!r}"')
    limits = joint.limits
    if isfinite(limits.lower) and isfinite(limits.upper):
        attributes.append(f'range="{_numbers((limits.lower, limits.upper))}"')
    if isfinite(limits.torque):
        attributes.append(f'actuatorfrcrange="{_numbers((-limits.torque, limits.torque))}"')
    return f"<joint {' '.join(attributes)}/>"


def _coupling(robot: Robot) -> list[str]:
    """Coupled drives as fixed tendons that carry the drives' rotor inertia and friction."""
    if robot.coupling is None:
        return []
    D = np.linalg.inv(robot.coupling)
    lines = ["  <tendon>"]
    for i, joint in enumerate(robot.joints):
        drive = joint.drive
        lines.append(
            f'    <fixed name={quoteattr("drive_" + joint.name)} armature="{drive.rotor_inertia!r}"'
            f' damping="{drive.viscous!r}" frictionloss="{drive.coulomb!r}">'
        )
        for k, other in enumerate(robot.joints):
            if D[i, k] != 0.0:
                lines.append(f'      <joint joint={quoteattr(other.name)} coef="{float(D[i, k])!r}"/>')
        lines.append("    </fixed>")
    return [*lines, "  </tendon>"]


def _geom(geometry: Geometry, T_body_link: FloatArray) -> str:
    """One shape; meshes are left out, because MJCF must find their files beside it."""
    place = _place(T_body_link @ geometry.T_link_shape)
    shape = geometry.shape
    match shape:
        case Box():
            kind, size = "box", [0.5 * s for s in shape.size]
        case Sphere():
            kind, size = "sphere", [shape.radius]
        case Cylinder():
            kind, size = "cylinder", [shape.radius, 0.5 * shape.length]
        case Capsule():
            kind, size = "capsule", [shape.radius, 0.5 * shape.length]
        case _:
            return ""
    collides = "" if geometry.collision else ' contype="0" conaffinity="0"'
    return f'<geom type="{kind}" size="{_numbers([max(value, THINNEST) for value in size])}" {place}{collides}/>'
