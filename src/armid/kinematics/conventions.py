"""Any serial arm in Denavit-Hartenberg form: same joints, same link frames, other numbers.

Modified (Khalil-Kleinfinger): `T_{i-1,i} = Rx(alpha_i) Tx(a_i) Rz(theta_i) Tz(d_i)`; z_i is joint i's axis, x_i the
common normal from it to the next. Standard: `T_{i-1,i} = Rz(theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i)`; z_{i-1} is joint i's
axis. The elements that carry a Denavit-Hartenberg number have a symbol (`alpha3`), those that only attach the
description's own link frame to the Denavit-Hartenberg frame have none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.robot.elementary import Elementary, Move, from_matrix, product
from armid.robot.robot import Joint, JointKind, Robot

MODIFIED = (Move.RX, Move.TX, Move.RZ, Move.TZ)
STANDARD = (Move.RZ, Move.TZ, Move.TX, Move.RX)
_SYMBOLS = {Move.RX: "alpha", Move.TX: "a", Move.RZ: "theta", Move.TZ: "d"}

_NEARLY_PARALLEL = 1e-3
"""[rad] Nominal axes this close are meant to be parallel; the difference (a rounded 1.5708) is kept as a fixed rotation."""
_ROUND_OFF = 1e-12
"""A fixed transform closer to identity than this is left out."""


def is_in_form(robot: Robot, order: tuple[Move, ...]) -> bool:
    """Whether every joint's transforms are of these kinds, each at most once and in this order."""
    for joint in robot.joints:
        places = [order.index(e.motion) if e.motion in order else -1 for e in joint.transforms]
        variable = joint.transforms[joint.variable_index]
        if -1 in places or places != sorted(set(places)) or variable.sign < 0 or variable.motion.axis != 2:
            return False
    return True


def _filled(robot: Robot, order: tuple[Move, ...]) -> Robot:
    """The same arm with the left-out zeros written down and every number named."""
    joints = []
    for i, joint in enumerate(robot.joints):
        given = {e.motion: e for e in joint.transforms}
        elements = tuple(
            replace(
                given.get(m, Elementary(motion=m)),
                symbol=given[m].symbol if m in given and given[m].variable else f"{_SYMBOLS[m]}{i + 1}",
            )
            for m in order
        )
        joints.append(replace(joint, transforms=elements))
    return replace(robot, joints=tuple(joints))


def mdh_form(robot: Robot) -> Robot:
    """The arm in modified Denavit-Hartenberg form; poses and link frames are unchanged."""
    if is_in_form(robot, MODIFIED):
        return _filled(robot, MODIFIED)
    frames = _denavit_frames(robot)
    links = link_frames(robot)
    joints = []
    for i, joint in enumerate(robot.joints):
        inside = _modified_elements(frames[i], frames[i + 1], joint, i)
        before = _small_free(np.linalg.inv(links[i]) @ frames[i])
        after = _small_free(np.linalg.inv(frames[i + 1]) @ links[i + 1])
        joints.append(replace(joint, transforms=(*before, *inside, *after)))
    return replace(robot, joints=tuple(joints))


def dh_form(robot: Robot) -> Robot:
    """The arm in standard Denavit-Hartenberg form; poses and link frames are unchanged."""
    if is_in_form(robot, STANDARD):
        return _filled(robot, STANDARD)
    frames, links = _denavit_frames(robot), link_frames(robot)
    rows = [_modified_elements(frames[i], frames[i + 1], joint, i) for i, joint in enumerate(robot.joints)]
    heads = [row[: _k_before(row)] for row in rows] + [()]
    # Standard frame i stands behind alpha and a of modified row i + 1: on the axis of the next joint.
    standard = [frame @ product(head) for frame, head in zip(frames, heads, strict=True)]
    joints = []
    for i, joint in enumerate(robot.joints):
        before = _small_free(np.linalg.inv(links[i]) @ standard[i])
        after = _small_free(np.linalg.inv(standard[i + 1]) @ links[i + 1])
        own = rows[i][_k_before(rows[i]) :]
        joints.append(replace(joint, transforms=(*before, *own, *_standard_tail(heads[i + 1], i), *after)))
    return replace(robot, joints=tuple(joints))


def _k_before(elements: tuple[Elementary, ...]) -> int:
    """How many elements stand before the rotation about z."""
    return next(k for k, e in enumerate(elements) if e.motion is Move.RZ and (e.variable or e.symbol is not None))


def _standard_tail(following: tuple[Elementary, ...], i: int) -> tuple[Elementary, ...]:
    """Tx(a) Rx(alpha) of a standard row, from the alpha and a of the next modified one (they commute)."""
    alpha = sum(e.value for e in following if e.motion is Move.RX and e.symbol is not None)
    a = sum(e.value for e in following if e.motion is Move.TX and e.symbol is not None)
    rest = tuple(e for e in following if e.symbol is None)
    return (
        Elementary(motion=Move.TX, value=a, symbol=f"a{i + 1}"),
        Elementary(motion=Move.RX, value=alpha, symbol=f"alpha{i + 1}"),
        *rest,
    )


def link_frames(robot: Robot) -> list[FloatArray]:
    """T_base_link at joint position zero, base first."""
    out = [np.eye(4)]
    for joint in robot.joints:
        out.append(out[-1] @ joint.transform(0.0))
    return out


def joint_axes(robot: Robot) -> list[tuple[FloatArray, FloatArray]]:
    """Direction and a point of every joint's axis at position zero, in base coordinates; the base's own z axis first."""
    out = [(np.array([0.0, 0.0, 1.0]), np.zeros(3))]
    for joint, T in zip(robot.joints, link_frames(robot), strict=False):
        k = joint.variable_index
        element = joint.transforms[k]
        at = T @ product(joint.transforms[:k])
        out.append((element.sign * at[:3, element.motion.axis], at[:3, 3]))
    return out


def _denavit_frames(robot: Robot) -> list[FloatArray]:
    """Modified Denavit-Hartenberg frames 0..n at position zero, in base coordinates."""
    axes, links = joint_axes(robot), link_frames(robot)
    frames: list[FloatArray] = []
    for i, (z, point) in enumerate(axes):
        x_before = frames[-1][:3, 0] if frames else np.array([1.0, 0.0, 0.0])
        near = frames[-1][:3, 3] if frames else np.zeros(3)
        if i + 1 < len(axes):
            x, origin = _common_normal(z, point, *axes[i + 1], near=near, x_before=x_before)
        else:
            x, origin = perpendicular(links[-1][:3, 0], z, x_before), foot(z, point, links[-1][:3, 3])
        frames.append(frame_of(x, z, origin))
    return frames


def _common_normal(
    z: FloatArray, p: FloatArray, z_next: FloatArray, p_next: FloatArray, *, near: FloatArray, x_before: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Direction of the common normal of two axes and its foot on the first one."""
    n = np.cross(z, z_next)
    if np.linalg.norm(n) < _NEARLY_PARALLEL:
        origin = foot(z, p, near)
        across = p_next - origin
        across = across - (across @ z) * z
        x = across if np.linalg.norm(across) > 1e-9 else x_before
        return perpendicular(x, z, x_before), origin
    # Feet of the common normal: minimise the distance of p + s z and p_next + t z_next.
    c = z @ z_next
    d = p_next - p
    s = (d @ z - c * (d @ z_next)) / (1.0 - c * c)
    t = (c * (d @ z) - d @ z_next) / (1.0 - c * c)
    origin = p + s * z
    across = p_next + t * z_next - origin
    x = across if np.linalg.norm(across) > 1e-9 else n
    return perpendicular(x, z, n), origin


def foot(z: FloatArray, p: FloatArray, near: FloatArray) -> FloatArray:
    """The point of an axis nearest to another point."""
    return p + ((near - p) @ z) * z


def perpendicular(x: FloatArray, z: FloatArray, otherwise: FloatArray) -> FloatArray:
    """Unit vector along the part of x perpendicular to z; of the other choices when x is along z."""
    for candidate in (x, otherwise, *np.eye(3)):
        part = candidate - (candidate @ z) * z
        if np.linalg.norm(part) > 1e-6 * max(1e-9, float(np.linalg.norm(candidate))):
            return part / np.linalg.norm(part)
    raise AssertionError("three unit vectors cannot all be parallel to z")


def frame_of(x: FloatArray, z: FloatArray, origin: FloatArray) -> FloatArray:
    """Homogeneous matrix of a frame with these axes."""
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = x, np.cross(z, x), z, origin
    return T


def _modified_elements(F: FloatArray, G: FloatArray, joint: Joint, i: int) -> tuple[Elementary, ...]:
    """Rx Tx [fixed] Rz Tz from frame F to frame G, with the joint's variable in it."""
    T = np.linalg.inv(F) @ G
    alpha = clean_angle(float(np.arctan2(-T[1, 2], T[2, 2])))
    theta = clean_angle(float(np.arctan2(-T[0, 1], T[0, 0])))
    a, d = clean(float(T[0, 3])), clean(float(T[:3, 3] @ T[:3, 2]))
    turns = joint.kind is JointKind.REVOLUTE
    head = (
        Elementary(motion=Move.RX, value=alpha, symbol=f"alpha{i + 1}"),
        Elementary(motion=Move.TX, value=a, symbol=f"a{i + 1}"),
    )
    tail = (
        Elementary(motion=Move.RZ, value=theta, symbol=None if turns else f"theta{i + 1}", variable=turns),
        Elementary(motion=Move.TZ, value=d, symbol=f"d{i + 1}" if turns else None, variable=not turns),
    )
    rest = np.linalg.inv(product(head)) @ T @ np.linalg.inv(product(tail))
    return (*head, *_small_free(rest), *tail)


def _small_free(T: FloatArray) -> tuple[Elementary, ...]:
    """A fixed transform as elements without symbols; nothing at all for the identity."""
    if np.abs(T - np.eye(4)).max() < _ROUND_OFF:
        return ()
    return from_matrix(T)


def clean(x: float) -> float:
    return 0.0 if abs(x) < 1e-14 else x


def clean_angle(x: float) -> float:
    """An angle that is a multiple of 90 degrees up to round-off, as exactly that."""
    turns = round(x / (np.pi / 2))
    return turns * np.pi / 2 if abs(x - turns * np.pi / 2) < 1e-14 else x
