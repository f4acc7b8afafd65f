"""Any arm rewritten in Denavit-Hartenberg frames: the axes decide the table, the arm stays the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.inertial import transformed
from armid.robot.dh import Convention, Row, transforms
from armid.robot.elementary import from_matrix, product
from armid.robot.robot import Frame, Joint, JointKind, Link, Robot
from armid.robot.symbols import Symbols
from armid.robot.urdf.attributes import exact_angle

_PARALLEL = 1e-9
"""Sine of the angle below which two axes count as parallel; their common normal is then not unique."""
_NO_LENGTH = 1e-12
"""[m] Lengths below this are round-off."""


@dataclass(frozen=True, eq=False)
class _Axis:
    """Where a joint turns or slides at zero, in the base frame: a point, a unit direction."""

    point: FloatArray
    direction: FloatArray
    slides: bool


def in_dh_frames(robot: Robot, convention: Convention) -> Robot:
    """The same arm with link frames by Denavit and Hartenberg: z on the joint axes, x on their common normals.

    Joint variables keep their zero and sign. What stands between the base and the first axis goes in front of the
    first row, so every base frame is possible. Inertial parameters, shapes and frames move along with the links.

    Args:
        robot: any arm.
        convention: standard or modified rows.

    Returns:
        An arm with the same forward kinematics for every frame it names, and the same torques.
    """
    zero = _link_poses(robot)
    axes = [_axis(joint, T) for joint, T in zip(robot.joints, zero[:-1], strict=True)]
    start, rows = _modified_rows(axes)
    front = from_matrix(start)
    symbols = Symbols()
    joints = []
    for i, joint in enumerate(robot.joints):
        after = rows[i + 1] if i + 1 < len(rows) else Row()
        row = rows[i] if convention is Convention.MODIFIED else replace(rows[i], alpha=after.alpha, a=after.a)
        chain = transforms(_named(row, i + 1, symbols), convention, joint.kind)
        joints.append(
            Joint(
                name=joint.name,
                kind=joint.kind,
                transforms=(*front, *chain) if i == 0 else chain,
                limits=joint.limits,
                drive=joint.drive,
            )
        )
    return _carried(robot, zero, tuple(joints))


def _link_poses(robot: Robot) -> list[FloatArray]:
    """T_base_link at zero for the base and every link."""
    out = [np.eye(4)]
    for joint in robot.joints:
        out.append(out[-1] @ joint.transform())
    return out


def _axis(joint: Joint, T_base_parent: FloatArray) -> _Axis:
    k = joint.variable_index
    element = joint.transforms[k]
    T = T_base_parent @ product(joint.transforms[:k])
    return _Axis(T[:3, 3], element.sign * T[:3, element.motion.axis], joint.kind is JointKind.PRISMATIC)


def _modified_rows(axes: list[_Axis]) -> tuple[FloatArray, list[Row]]:
    """T_base_0 and the modified rows; frame 0 is frame 1 at zero."""
    frames: list[FloatArray] = []
    for i, axis in enumerate(axes):
        before = frames[-1] if frames else None
        frames.append(_frame(axis, axes[i + 1] if i + 1 < len(axes) else None, before))
    rows = [Row()]
    for previous, frame in pairwise(frames):
        rows.append(_row(np.linalg.inv(previous) @ frame))
    return frames[0], rows


def _frame(axis: _Axis, following: _Axis | None, before: FloatArray | None) -> FloatArray:
    """A frame with z along the axis, x along the common normal to the next one, origin at its foot."""
    z = axis.direction
    # Where nothing else decides: as close to the previous frame's origin as the axis comes.
    near = before[:3, 3] if before is not None else axis.point
    # A slide has a direction but no place, so its line may as well go through that origin.
    on_axis = near if axis.slides else axis.point + z * float(z @ (near - axis.point))
    x = _across(before[:3, 0], z) if before is not None else None
    origin = on_axis
    if following is not None:
        n = np.cross(z, following.direction)
        if np.linalg.norm(n) > _PARALLEL:
            x = n / np.linalg.norm(n)
            origin = on_axis if following.slides else _foot(replace(axis, point=on_axis), following)
        elif not following.slides:
            gap = following.point - on_axis
            gap -= z * float(z @ gap)
            if np.linalg.norm(gap) > _NO_LENGTH:
                x = gap / np.linalg.norm(gap)
    if x is None:
        x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
        x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = x, np.cross(z, x), z, origin
    return T


def _across(v: FloatArray, z: FloatArray) -> FloatArray | None:
    """The part of v perpendicular to z, of length one; None when there is none."""
    w = v - z * float(z @ v)
    norm = np.linalg.norm(w)
    return w / norm if norm > _PARALLEL else None


def _foot(a: _Axis, b: _Axis) -> FloatArray:
    """The point of axis a nearest to axis b (not parallel)."""
    c = float(a.direction @ b.direction)
    gap = b.point - a.point
    s = float((a.direction - c * b.direction) @ gap) / (1.0 - c * c)
    return a.point + s * a.direction


def _row(T: FloatArray) -> Row:
    """alpha, a, theta, d of T = Rx(alpha) Tx(a) Rz(theta) Tz(d)."""
    alpha = float(np.arctan2(-T[1, 2], T[2, 2]))
    theta = float(np.arctan2(-T[0, 1], T[0, 0]))
    a, d = float(T[0, 3]), float(T[:3, 3] @ T[:3, 2])
    tidy = [0.0 if abs(length) < _NO_LENGTH else length for length in (a, d)]
    return Row(alpha=exact_angle(alpha), a=tidy[0], d=tidy[1], theta=exact_angle(theta))


def _named(row: Row, number: int, symbols: Symbols) -> Row:
    return replace(
        row, a_symbol=symbols.automatic(f"a{number}", row.a), d_symbol=symbols.automatic(f"d{number}", row.d)
    )


def _carried(robot: Robot, old: list[FloatArray], joints: tuple[Joint, ...]) -> Robot:
    """Bodies, shapes and frames expressed in the new link frames."""
    bare = replace(robot, joints=joints)
    moves = [np.linalg.inv(new) @ T for new, T in zip(_link_poses(bare), old, strict=True)]
    links = tuple(_moved(link, T) for link, T in zip(robot.links, moves[1:], strict=True))
    named = robot.frames or (Frame(f"{robot.tip.name}_tip", robot.n_joints),)
    frames = tuple(replace(f, transforms=from_matrix(moves[f.link] @ f.T_link_frame)) for f in named)
    return replace(bare, links=links, frames=frames)


def _moved(link: Link, T: FloatArray) -> Link:
    inertial = None if link.inertial is None else transformed(link.inertial, T)
    shapes = tuple(replace(g, T_link_shape=T @ g.T_link_shape) for g in link.geometry)
    return replace(link, inertial=inertial, geometry=shapes)
