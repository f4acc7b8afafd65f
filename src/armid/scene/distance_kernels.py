"""Forward kinematics, distances and their gradients for many poses, compiled with numba.

Geometry comes in as flat arrays (`Scene` makes them). A *clearance* is one number per pose that must stay above zero:
between two capsules, a capsule and a box, a capsule and the floor, or of a frame within a region.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from armid.kernels.numba_cache import compiled

# Kinds of clearance; the meaning of the two indices and of the numbers that come with each.
CAPSULE_CAPSULE = 0  # capsule a, capsule b, margin, 1 where their shapes decide (`hull_distances`)
CAPSULE_BOX = 1  # capsule a, box b
CAPSULE_FLOOR = 2  # capsule a, -, height
FRAME_AXIS = 3  # frame a, -, least distance from the base z axis
FRAME_PLANE = 4  # frame a, -, offset, normal x y z: normal . p >= offset
FRAME_ROLL = 5  # frame a, camera b, bound, +1 lower or -1 upper
FRAME_PITCH = 6

_GOLDEN = 0.6180339887498949
_BOX_STEPS = 28
"""Golden sections: 0.618^28 = 1e-6 of a link's length, micrometres."""

_TINY = 1e-12


@compiled(nogil=True)
def link_frames(q: Any, joints: Any, R: Any, p: Any, axes: Any, origins: Any) -> None:
    """World rotation and origin of each link (base first), and axis direction and point of each joint.

    Args:
        q: geometric joint positions, shape [n].
        joints: per joint rotation (9) and translation (3) before the variable, axis 0..2, sign, 1 if it turns,
            rotation and translation after it; shape [n, 27].
        R: output, world rotations, shape [n + 1, 3, 3].
        p: output, world origins, shape [n + 1, 3].
        axes: output, joint axes, shape [n, 3].
        origins: output, a point of each axis, shape [n, 3].
    """
    n = len(q)
    for i in range(3):
        for j in range(3):
            R[0, i, j] = 1.0 if i == j else 0.0
        p[0, i] = 0.0
    A = np.empty((3, 3))
    B = np.empty((3, 3))
    for k in range(n):
        row = joints[k]
        for i in range(3):
            origins[k, i] = p[k, i]
            for j in range(3):
                origins[k, i] += R[k, i, j] * row[9 + j]
                A[i, j] = R[k, i, 0] * row[j] + R[k, i, 1] * row[3 + j] + R[k, i, 2] * row[6 + j]
        axis = int(row[12])
        sign = row[13]
        for i in range(3):
            axes[k, i] = sign * A[i, axis]
            p[k + 1, i] = origins[k, i]
        if row[14] > 0.5:
            c, s = np.cos(q[k]), sign * np.sin(q[k])
            j1, j2 = (axis + 1) % 3, (axis + 2) % 3
            for i in range(3):
                B[i, axis] = A[i, axis]
                B[i, j1] = c * A[i, j1] + s * A[i, j2]
                B[i, j2] = -s * A[i, j1] + c * A[i, j2]
        else:
            for i in range(3):
                p[k + 1, i] += axes[k, i] * q[k]
                for j in range(3):
                    B[i, j] = A[i, j]
        for i in range(3):
            for j in range(3):
                p[k + 1, i] += B[i, j] * row[24 + j]
                R[k + 1, i, j] = B[i, 0] * row[15 + j] + B[i, 1] * row[18 + j] + B[i, 2] * row[21 + j]


@compiled(nogil=True)
def all_link_frames(q: Any, joints: Any, R: Any, p: Any, axes: Any, origins: Any) -> None:
    """`link_frames` of many poses; every array has one more axis in front, of shape [n_samples]."""
    for i in range(len(q)):
        link_frames(q[i], joints, R[i], p[i], axes[i], origins[i])


@compiled(nogil=True)
def pull_points(
    samples: Any,
    links: Any,
    first: Any,
    second: Any,
    normals: Any,
    weights: Any,
    axes: Any,
    origins: Any,
    turns: Any,
    gradient: Any,
) -> None:
    """Adds the gradient of weighted distances, given their nearest points, to that of their samples.

    Args:
        samples: which sample each distance belongs to, shape [k].
        links: of the two points, shape [k, 2].
        first, second: the points in the base frame, shape [k, 3].
        normals: direction in which the first moves away, shape [k, 3].
        weights: shape [k].
        axes, origins: of `all_link_frames`, shape [n_samples, n, 3].
        turns: whether each joint is revolute, shape [n].
        gradient: shape [n_samples, n].
    """
    for k in range(len(samples)):
        i = samples[k]
        _pull(links[k, 0], first[k], normals[k], weights[k], axes[i], origins[i], turns, gradient[i])
        _pull(links[k, 1], second[k], normals[k], -weights[k], axes[i], origins[i], turns, gradient[i])


@compiled(nogil=True)
def _place_capsules(R: Any, p: Any, capsules: Any, links: Any, ends: Any) -> None:
    """World end points of all capsules, shape [n_capsules, 6]. Plain indices: a slice costs more than what it is used for."""
    for c in range(len(capsules)):
        k = links[c]
        for i in range(3):
            ends[c, i] = (
                p[k, i] + R[k, i, 0] * capsules[c, 0] + R[k, i, 1] * capsules[c, 1] + R[k, i, 2] * capsules[c, 2]
            )
            ends[c, 3 + i] = (
                p[k, i] + R[k, i, 0] * capsules[c, 3] + R[k, i, 1] * capsules[c, 4] + R[k, i, 2] * capsules[c, 5]
            )


@compiled(nogil=True)
def _closest_on_segments(ends: Any, a: int, b: int, pa: Any, pb: Any) -> None:
    """Closest points pa and pb on the segments of capsules a and b."""
    ux, uy, uz = ends[a, 3] - ends[a, 0], ends[a, 4] - ends[a, 1], ends[a, 5] - ends[a, 2]
    vx, vy, vz = ends[b, 3] - ends[b, 0], ends[b, 4] - ends[b, 1], ends[b, 5] - ends[b, 2]
    wx, wy, wz = ends[a, 0] - ends[b, 0], ends[a, 1] - ends[b, 1], ends[a, 2] - ends[b, 2]
    uu, vv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz
    uv = ux * vx + uy * vy + uz * vz
    uw, vw = ux * wx + uy * wy + uz * wz, vx * wx + vy * wy + vz * wz
    s, t = 0.0, 0.0
    if uu <= _TINY and vv > _TINY:
        t = min(max(vw / vv, 0.0), 1.0)
    elif vv <= _TINY and uu > _TINY:
        s = min(max(-uw / uu, 0.0), 1.0)
    elif uu > _TINY:
        denominator = uu * vv - uv * uv
        # Parallel segments have many closest pairs; the middle of the first is as good as any.
        s = min(max((uv * vw - uw * vv) / denominator, 0.0), 1.0) if denominator > _TINY * uu * vv else 0.5
        t = (uv * s + vw) / vv
        if t < 0.0:
            t = 0.0
            s = min(max(-uw / uu, 0.0), 1.0)
        elif t > 1.0:
            t = 1.0
            s = min(max((uv - uw) / uu, 0.0), 1.0)
    pa[0], pa[1], pa[2] = ends[a, 0] + s * ux, ends[a, 1] + s * uy, ends[a, 2] + s * uz
    pb[0], pb[1], pb[2] = ends[b, 0] + t * vx, ends[b, 1] + t * vy, ends[b, 2] + t * vz


@compiled(nogil=True)
def _box_distance(x: float, y: float, z: float, hx: float, hy: float, hz: float) -> float:
    """Signed distance of a point in box axes from a box with these half edges; negative inside."""
    dx, dy, dz = abs(x) - hx, abs(y) - hy, abs(z) - hz
    ox, oy, oz = max(dx, 0.0), max(dy, 0.0), max(dz, 0.0)
    return np.sqrt(ox * ox + oy * oy + oz * oz) + min(max(dx, max(dy, dz)), 0.0)


@compiled(nogil=True)
def _segment_to_box(ends: Any, a: int, boxes: Any, b: int, pa: Any, normal: Any) -> float:
    """Least signed distance of a capsule's segment from a box, where it is (pa), and the direction away from the box.

    The signed distance from a convex body is convex along a line, so golden sections find its minimum.
    """
    x0, y0, z0 = ends[a, 0] - boxes[b, 9], ends[a, 1] - boxes[b, 10], ends[a, 2] - boxes[b, 11]
    ux, uy, uz = ends[a, 3] - ends[a, 0], ends[a, 4] - ends[a, 1], ends[a, 5] - ends[a, 2]
    # Into box axes: the rows of the transposed rotation.
    lx = boxes[b, 0] * x0 + boxes[b, 3] * y0 + boxes[b, 6] * z0
    ly = boxes[b, 1] * x0 + boxes[b, 4] * y0 + boxes[b, 7] * z0
    lz = boxes[b, 2] * x0 + boxes[b, 5] * y0 + boxes[b, 8] * z0
    mx = boxes[b, 0] * ux + boxes[b, 3] * uy + boxes[b, 6] * uz
    my = boxes[b, 1] * ux + boxes[b, 4] * uy + boxes[b, 7] * uz
    mz = boxes[b, 2] * ux + boxes[b, 5] * uy + boxes[b, 8] * uz
    hx, hy, hz = boxes[b, 12], boxes[b, 13], boxes[b, 14]
    low, high, s1, s2 = 0.0, 1.0, 1.0 - _GOLDEN, _GOLDEN
    f1 = _box_distance(lx + s1 * mx, ly + s1 * my, lz + s1 * mz, hx, hy, hz)
    f2 = _box_distance(lx + s2 * mx, ly + s2 * my, lz + s2 * mz, hx, hy, hz)
    for _ in range(_BOX_STEPS):
        if f1 < f2:
            high, s2, f2 = s2, s1, f1
            s1 = high - _GOLDEN * (high - low)
            f1 = _box_distance(lx + s1 * mx, ly + s1 * my, lz + s1 * mz, hx, hy, hz)
        else:
            low, s1, f1 = s1, s2, f2
            s2 = low + _GOLDEN * (high - low)
            f2 = _box_distance(lx + s2 * mx, ly + s2 * my, lz + s2 * mz, hx, hy, hz)
    s = (low + high) / 2
    x, y, z = lx + s * mx, ly + s * my, lz + s * mz
    distance = _box_distance(x, y, z, hx, hy, hz)
    ax, ay, az = _box_direction(x, y, z, hx, hy, hz, distance)
    for i in range(3):
        normal[i] = boxes[b, 3 * i] * ax + boxes[b, 3 * i + 1] * ay + boxes[b, 3 * i + 2] * az
        pa[i] = ends[a, i] + s * (ends[a, 3 + i] - ends[a, i])
    return distance


@compiled(nogil=True)
def _box_direction(
    x: float, y: float, z: float, hx: float, hy: float, hz: float, distance: float
) -> tuple[float, float, float]:
    """Gradient of `_box_distance`, in box axes; through the nearest face inside."""
    sx, sy, sz = (1.0 if x > 0.0 else -1.0), (1.0 if y > 0.0 else -1.0), (1.0 if z > 0.0 else -1.0)
    dx, dy, dz = abs(x) - hx, abs(y) - hy, abs(z) - hz
    if distance > 0.0:
        return sx * max(dx, 0.0) / distance, sy * max(dy, 0.0) / distance, sz * max(dz, 0.0) / distance
    if dx >= dy and dx >= dz:
        return sx, 0.0, 0.0
    if dy >= dz:
        return 0.0, sy, 0.0
    return 0.0, 0.0, sz


@compiled(nogil=True)
def _pull(link: int, point: Any, force: Any, weight: float, axes: Any, origins: Any, turns: Any, out: Any) -> None:
    """Adds `weight * force . d(point)/dq` for a point of a link to out."""
    for k in range(link):
        if turns[k]:
            x, y, z = point[0] - origins[k, 0], point[1] - origins[k, 1], point[2] - origins[k, 2]
            out[k] += weight * (
                force[0] * (axes[k, 1] * z - axes[k, 2] * y)
                + force[1] * (axes[k, 2] * x - axes[k, 0] * z)
                + force[2] * (axes[k, 0] * y - axes[k, 1] * x)
            )
        else:
            out[k] += weight * (force[0] * axes[k, 0] + force[1] * axes[k, 1] + force[2] * axes[k, 2])


@compiled(nogil=True)
def _turn(link: int, moment: Any, weight: float, axes: Any, turns: Any, out: Any) -> None:
    """Adds `weight * moment . angular velocity of the link per joint velocity` to out."""
    for k in range(link):
        if turns[k]:
            out[k] += weight * (moment[0] * axes[k, 0] + moment[1] * axes[k, 1] + moment[2] * axes[k, 2])


@compiled(nogil=True)
def _apart(pa: Any, pb: Any, normal: Any) -> float:
    """Distance of two points, and the unit vector from the second to the first (zero when they coincide)."""
    x, y, z = pa[0] - pb[0], pa[1] - pb[1], pa[2] - pb[2]
    d = np.sqrt(x * x + y * y + z * z)
    scale = 1.0 / d if d > _TINY else 0.0
    normal[0], normal[1], normal[2] = x * scale, y * scale, z * scale
    return d


@compiled(nogil=True)
def _frame_place(R: Any, p: Any, link: int, frames: Any, a: int, table: Any, c: int, point: Any, normal: Any) -> float:
    """Clearance of a frame's origin from the base axis or a plane; where it is, and the clearance's gradient by it."""
    for i in range(3):
        point[i] = (
            p[link, i] + R[link, i, 0] * frames[a, 9] + R[link, i, 1] * frames[a, 10] + R[link, i, 2] * frames[a, 11]
        )
    if int(table[c, 0]) == FRAME_AXIS:
        d = np.sqrt(point[0] * point[0] + point[1] * point[1])
        scale = 1.0 / d if d > _TINY else 0.0
        normal[0], normal[1], normal[2] = point[0] * scale, point[1] * scale, 0.0
        return d - table[c, 3]
    normal[0], normal[1], normal[2] = table[c, 4], table[c, 5], table[c, 6]
    return normal[0] * point[0] + normal[1] * point[1] + normal[2] * point[2] - table[c, 3]


@compiled(nogil=True)
def _frame_angle(
    R: Any, link: int, frames: Any, a: int, cameras: Any, b: int, table: Any, c: int, M: Any, moment: Any
) -> float:
    """Clearance of a frame's roll or pitch in a camera from its bound, and its gradient by angular velocity in base axes."""
    for r in range(3):
        for s in range(3):
            M[r, s] = 0.0
            for u in range(3):
                for v in range(3):
                    M[r, s] += cameras[b, 3 * r + u] * R[link, u, v] * frames[a, 3 * v + s]
    pitching = int(table[c, 0]) == FRAME_PITCH
    angle = np.arctan2(-M[2, 0], np.hypot(M[2, 1], M[2, 2])) if pitching else np.arctan2(M[2, 1], M[2, 2])
    x, y = _roll_pitch_rate(M, pitching)
    side = table[c, 4]
    for j in range(3):
        moment[j] = side * (cameras[b, j] * x + cameras[b, 3 + j] * y)
    return side * (angle - table[c, 3])


@compiled(nogil=True)
def _roll_pitch_rate(M: Any, pitch: bool) -> tuple[float, float]:
    """d(roll or pitch) per unit angular velocity about the camera's x and y (z does not matter), M = Rz(yaw) Ry(pitch) Rx(roll).

    Angular velocity = yaw' z + pitch' Rz y + roll' Rz Ry x, inverted.
    """
    cp = np.hypot(M[2, 1], M[2, 2])
    cy, sy = 1.0, 0.0
    if cp > _TINY:
        cy, sy = M[0, 0] / cp, M[1, 0] / cp
    if pitch:
        return -sy, cy
    safe = max(cp, 1e-6)
    return cy / safe, sy / safe


@compiled(nogil=True)
def _fill(values: Any) -> None:
    """Zeros. Loops, here and below: for assignments to slices numba compiles the words of an error that cannot occur, 2 s."""
    for k in range(len(values)):
        values[k] = 0.0


@compiled(nogil=True)
def _any_weight(weights: Any, i: int) -> bool:
    """Whether any weight of pose i is not zero."""
    wanted = False
    for c in range(weights.shape[1]):
        wanted |= weights[i, c] != 0.0
    return wanted


@compiled(nogil=True)
def _put(row: Any, table: Any, i: int) -> None:
    """A row of a table."""
    for k in range(len(row)):
        table[i, k] = row[k]


@compiled(nogil=True)
def clearances(
    q: Any,
    joints: Any,
    turns: Any,
    capsules: Any,
    capsule_link: Any,
    boxes: Any,
    frames: Any,
    frame_link: Any,
    cameras: Any,
    table: Any,
    weights: Any,
    values: Any,
    gradient: Any,
) -> None:
    """All clearances at all poses, and the weighted sum of their gradients.

    Args:
        q: geometric positions, shape [n_samples, n].
        joints: see `link_frames`.
        turns: whether each joint is revolute, shape [n].
        capsules: start (3), end (3), radius in the link frame, shape [n_capsules, 7].
        capsule_link: link of each capsule.
        boxes: rotation (9), centre (3), half edges (3), shape [n_boxes, 15].
        frames: rotation (9) and translation (3) in the link frame, shape [n_frames, 12].
        frame_link: link of each frame.
        cameras: rotation camera-from-base (9), shape [n_cameras, 9].
        table: kind, index a, index b, up to four numbers, shape [n_clearances, 7].
        weights: shape [n_samples, n_clearances]; an empty array for values alone.
        values: output, shape [n_samples, n_clearances]; with weights only where they are not zero.
        gradient: output, shape [n_samples, n]; only written with weights.
    """
    n = q.shape[1]
    R, p, M = np.empty((n + 1, 3, 3)), np.empty((n + 1, 3)), np.empty((3, 3))
    axes, origins, ends = np.empty((n, 3)), np.empty((n, 3)), np.empty((len(capsules), 6))
    pa, pb, normal, slope = np.empty(3), np.empty(3), np.empty(3), np.empty(n)
    differentiate = weights.size > 0
    for i in range(len(q)):
        _fill(slope)
        if not differentiate or _any_weight(weights, i):
            link_frames(q[i], joints, R, p, axes, origins)
            _place_capsules(R, p, capsules, capsule_link, ends)
            for c in range(len(table)):
                w = weights[i, c] if differentiate else 0.0
                if differentiate and w == 0.0:
                    continue
                kind, a, b = int(table[c, 0]), int(table[c, 1]), int(table[c, 2])
                if kind > CAPSULE_FLOOR:
                    link = frame_link[a]
                    if kind <= FRAME_PLANE:
                        values[i, c] = _frame_place(R, p, link, frames, a, table, c, pa, normal)
                        _pull(link, pa, normal, w, axes, origins, turns, slope)
                    else:
                        values[i, c] = _frame_angle(R, link, frames, a, cameras, b, table, c, M, normal)
                        _turn(link, normal, w, axes, turns, slope)
                    continue
                if kind == CAPSULE_CAPSULE:
                    _closest_on_segments(ends, a, b, pa, pb)
                    d = _apart(pa, pb, normal) - capsules[b, 6]
                elif kind == CAPSULE_BOX:
                    d = _segment_to_box(ends, a, boxes, b, pa, normal)
                else:
                    lower = 0 if ends[a, 2] < ends[a, 5] else 3
                    pa[0], pa[1], pa[2] = ends[a, lower], ends[a, lower + 1], ends[a, lower + 2]
                    normal[0], normal[1], normal[2] = 0.0, 0.0, 1.0
                    d = pa[2]
                values[i, c] = d - capsules[a, 6] - table[c, 3]
                if w != 0.0:
                    _pull(capsule_link[a], pa, normal, w, axes, origins, turns, slope)
                    if kind == CAPSULE_CAPSULE:
                        _pull(capsule_link[b], pb, normal, -w, axes, origins, turns, slope)
        if differentiate:
            _put(slope, gradient, i)
