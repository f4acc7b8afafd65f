"""Forward kinematics, distances and their gradients for many poses, compiled with numba.

Geometry comes in as flat arrays (`Scene` makes them). A *clearance* is one number per pose that must stay above zero:
between two capsules, a capsule and a box, a capsule and the floor, or of a frame within a region.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# Kinds of clearance; the meaning of the two indices and of the numbers that come with each.
CAPSULE_CAPSULE = 0  # capsule a, capsule b
CAPSULE_BOX = 1  # capsule a, box b
CAPSULE_FLOOR = 2  # capsule a, -, height
FRAME_AXIS = 3  # frame a, -, least distance from the base z axis
FRAME_PLANE = 4  # frame a, -, offset, normal x y z: normal . p >= offset
FRAME_ROLL = 5  # frame a, camera b, bound, +1 lower or -1 upper
FRAME_PITCH = 6

GOLDEN = 0.6180339887498949
BOX_STEPS = 28
"""Golden sections: 0.618^28 = 1e-6 of a link's length, micrometres."""

TINY = 1e-12


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def placed(R: Any, p: Any, local: Any, out: Any) -> None:
    """`out = R local + p`."""
    for i in range(3):
        out[i] = p[i] + R[i, 0] * local[0] + R[i, 1] * local[1] + R[i, 2] * local[2]


@njit(cache=True, nogil=True)
def dot3(a: Any, b: Any) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True, nogil=True)
def closest_on_segments(a0: Any, a1: Any, b0: Any, b1: Any, pa: Any, pb: Any) -> None:
    """Closest points pa on a0-a1 and pb on b0-b1."""
    ux, uy, uz = a1[0] - a0[0], a1[1] - a0[1], a1[2] - a0[2]
    vx, vy, vz = b1[0] - b0[0], b1[1] - b0[1], b1[2] - b0[2]
    wx, wy, wz = a0[0] - b0[0], a0[1] - b0[1], a0[2] - b0[2]
    uu, vv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz
    uv = ux * vx + uy * vy + uz * vz
    uw, vw = ux * wx + uy * wy + uz * wz, vx * wx + vy * wy + vz * wz
    s, t = 0.0, 0.0
    if uu <= TINY and vv <= TINY:
        s, t = 0.0, 0.0
    elif uu <= TINY:
        t = min(max(vw / vv, 0.0), 1.0)
    elif vv <= TINY:
        s = min(max(-uw / uu, 0.0), 1.0)
    else:
        denominator = uu * vv - uv * uv
        # Parallel segments have many closest pairs; the middle of the first is as good as any.
        s = min(max((uv * vw - uw * vv) / denominator, 0.0), 1.0) if denominator > TINY * uu * vv else 0.5
        t = (uv * s + vw) / vv
        if t < 0.0:
            t = 0.0
            s = min(max(-uw / uu, 0.0), 1.0)
        elif t > 1.0:
            t = 1.0
            s = min(max((uv - uw) / uu, 0.0), 1.0)
    pa[0], pa[1], pa[2] = a0[0] + s * ux, a0[1] + s * uy, a0[2] + s * uz
    pb[0], pb[1], pb[2] = b0[0] + t * vx, b0[1] + t * vy, b0[2] + t * vz


@njit(cache=True, nogil=True)
def box_distance(x: float, y: float, z: float, half: Any) -> float:
    """Signed distance of a point in box axes from a box with these half edges; negative inside."""
    dx, dy, dz = abs(x) - half[0], abs(y) - half[1], abs(z) - half[2]
    ox, oy, oz = max(dx, 0.0), max(dy, 0.0), max(dz, 0.0)
    return np.sqrt(ox * ox + oy * oy + oz * oz) + min(max(dx, max(dy, dz)), 0.0)


@njit(cache=True, nogil=True)
def segment_to_box(a0: Any, a1: Any, box: Any, pa: Any, normal: Any) -> float:
    """Least signed distance of a segment from a box, where it is (pa), and the direction away from the box.

    The signed distance from a convex body is convex along a line, so golden sections find its minimum.

    Args:
        a0: start of the segment.
        a1: its end.
        box: rotation world-from-box (9), centre (3), half edges (3).
        pa: output.
        normal: output.
    """
    l0, l1 = np.empty(3), np.empty(3)
    half = box[12:15]
    for j in range(3):
        l0[j] = box[j] * (a0[0] - box[9]) + box[3 + j] * (a0[1] - box[10]) + box[6 + j] * (a0[2] - box[11])
        l1[j] = box[j] * (a1[0] - box[9]) + box[3 + j] * (a1[1] - box[10]) + box[6 + j] * (a1[2] - box[11]) - l0[j]
    low, high = 0.0, 1.0
    s1, s2 = 1.0 - GOLDEN, GOLDEN
    f1 = box_distance(l0[0] + s1 * l1[0], l0[1] + s1 * l1[1], l0[2] + s1 * l1[2], half)
    f2 = box_distance(l0[0] + s2 * l1[0], l0[1] + s2 * l1[1], l0[2] + s2 * l1[2], half)
    for _ in range(BOX_STEPS):
        if f1 < f2:
            high, s2, f2 = s2, s1, f1
            s1 = high - GOLDEN * (high - low)
            f1 = box_distance(l0[0] + s1 * l1[0], l0[1] + s1 * l1[1], l0[2] + s1 * l1[2], half)
        else:
            low, s1, f1 = s1, s2, f2
            s2 = low + GOLDEN * (high - low)
            f2 = box_distance(l0[0] + s2 * l1[0], l0[1] + s2 * l1[1], l0[2] + s2 * l1[2], half)
    s = (low + high) / 2
    x = l0 + s * l1
    distance = box_distance(x[0], x[1], x[2], half)
    away = np.zeros(3)
    if distance > 0.0:
        for j in range(3):
            away[j] = (max(abs(x[j]) - half[j], 0.0) / distance) * (1.0 if x[j] > 0.0 else -1.0)
    else:
        deepest = 0
        for j in range(1, 3):
            if abs(x[j]) - half[j] > abs(x[deepest]) - half[deepest]:
                deepest = j
        away[deepest] = 1.0 if x[deepest] > 0.0 else -1.0
    for i in range(3):
        normal[i] = box[3 * i] * away[0] + box[3 * i + 1] * away[1] + box[3 * i + 2] * away[2]
        pa[i] = a0[i] + s * (a1[i] - a0[i])
    return distance


@njit(cache=True, nogil=True)
def pull(link: int, point: Any, force: Any, weight: float, axes: Any, origins: Any, turns: Any, out: Any) -> None:
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
            out[k] += weight * dot3(force, axes[k])


@njit(cache=True, nogil=True)
def turn(link: int, moment: Any, weight: float, axes: Any, turns: Any, out: Any) -> None:
    """Adds `weight * moment . angular velocity of the link per joint velocity` to out."""
    for k in range(link):
        if turns[k]:
            out[k] += weight * dot3(moment, axes[k])


@njit(cache=True, nogil=True)
def capsule_pair(a: Any, b: Any, margin: float, w: float, work: Any, out: Any) -> float:
    """Clearance of two capsules; adds w times its gradient to out.

    Args:
        a: (link, radius, world end points) of one.
        b: the same of the other.
        margin: [m].
        w: weight; zero for the value alone.
        work: axes, origins, turns, and three vectors of scratch.
        out: gradient, shape [n].
    """
    pa, pb, normal = work[3], work[4], work[5]
    closest_on_segments(a[2][0], a[2][1], b[2][0], b[2][1], pa, pb)
    d = 0.0
    for j in range(3):
        normal[j] = pa[j] - pb[j]
        d += normal[j] * normal[j]
    d = np.sqrt(d)
    if w != 0.0 and d > TINY:
        for j in range(3):
            normal[j] /= d
        pull(a[0], pa, normal, w, work[0], work[1], work[2], out)
        pull(b[0], pb, normal, -w, work[0], work[1], work[2], out)
    return d - a[1] - b[1] - margin


@njit(cache=True, nogil=True)
def capsule_box(a: Any, box: Any, limit: float, w: float, work: Any, out: Any) -> float:
    """Clearance of a capsule from a box; arguments as in `capsule_pair`."""
    point, normal = work[3], work[5]
    d = segment_to_box(a[2][0], a[2][1], box, point, normal)
    if w != 0.0:
        pull(a[0], point, normal, w, work[0], work[1], work[2], out)
    return d - a[1] - limit


@njit(cache=True, nogil=True)
def capsule_floor(a: Any, limit: float, w: float, work: Any, out: Any) -> float:
    """Height of a capsule above the floor; arguments as in `capsule_pair`."""
    lower = 0 if a[2][0, 2] < a[2][1, 2] else 1
    if w != 0.0:
        normal = work[5]
        normal[0], normal[1], normal[2] = 0.0, 0.0, 1.0
        pull(a[0], a[2][lower], normal, w, work[0], work[1], work[2], out)
    return a[2][lower, 2] - a[1] - limit


@njit(cache=True, nogil=True)
def frame_place(kind: int, link: int, point: Any, entry: Any, w: float, work: Any, out: Any) -> float:
    """Clearance of a frame's origin from the base axis or a plane; adds w times its gradient to out."""
    normal = work[5]
    normal[0], normal[1], normal[2] = 0.0, 0.0, 0.0
    if kind == FRAME_AXIS:
        d = np.sqrt(point[0] * point[0] + point[1] * point[1])
        if d > TINY:
            normal[0], normal[1] = point[0] / d, point[1] / d
    else:
        normal[0], normal[1], normal[2] = entry[4], entry[5], entry[6]
        d = dot3(normal, point)
    if w != 0.0:
        pull(link, point, normal, w, work[0], work[1], work[2], out)
    return d - entry[3]


@njit(cache=True, nogil=True)
def frame_angle(
    kind: int, link: int, R: Any, frame: Any, camera: Any, entry: Any, w: float, work: Any, out: Any
) -> float:
    """Clearance of a frame's roll or pitch in a camera from its bound; adds w times its gradient to out."""
    M, moment, base = np.zeros((3, 3)), work[3], work[4]
    for r in range(3):
        for s in range(3):
            for u in range(3):
                for v in range(3):
                    M[r, s] += camera[3 * r + u] * R[u, v] * frame[3 * v + s]
    roll, pitch = np.arctan2(M[2, 1], M[2, 2]), np.arctan2(-M[2, 0], np.hypot(M[2, 1], M[2, 2]))
    angle = pitch if kind == FRAME_PITCH else roll
    side = entry[4]
    if w != 0.0:
        roll_pitch_moment(M, kind == FRAME_PITCH, moment)
        for j in range(3):
            base[j] = camera[j] * moment[0] + camera[3 + j] * moment[1] + camera[6 + j] * moment[2]
        turn(link, base, w * side, work[0], work[2], out)
    return side * (angle - entry[3])


@njit(cache=True, nogil=True)
def clearances(q: Any, joints: Any, turns: Any, capsules: Any, capsule_link: Any, boxes: Any, frames: Any,
               frame_link: Any, cameras: Any, table: Any, weights: Any, values: Any, gradient: Any) -> None:  # fmt: skip
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
    n, m = q.shape[1], len(table)
    R, p = np.empty((n + 1, 3, 3)), np.empty((n + 1, 3))
    axes, origins = np.empty((n, 3)), np.empty((n, 3))
    ends, spot = np.empty((len(capsules), 2, 3)), np.empty(3)
    work = (axes, origins, turns, np.empty(3), np.empty(3), np.empty(3))
    differentiate = weights.size > 0
    slope = np.zeros(n)
    for i in range(len(q)):
        slope[:] = 0.0
        if not differentiate or np.any(weights[i] != 0.0):
            link_frames(q[i], joints, R, p, axes, origins)
            for c in range(len(capsules)):
                placed(R[capsule_link[c]], p[capsule_link[c]], capsules[c, 0:3], ends[c, 0])
                placed(R[capsule_link[c]], p[capsule_link[c]], capsules[c, 3:6], ends[c, 1])
            for c in range(m):
                w = weights[i, c] if differentiate else 0.0
                if differentiate and w == 0.0:
                    continue
                kind, a, b = int(table[c, 0]), int(table[c, 1]), int(table[c, 2])
                if kind == CAPSULE_CAPSULE:
                    first = (capsule_link[a], capsules[a, 6], ends[a])
                    second = (capsule_link[b], capsules[b, 6], ends[b])
                    values[i, c] = capsule_pair(first, second, table[c, 3], w, work, slope)
                elif kind == CAPSULE_BOX:
                    first = (capsule_link[a], capsules[a, 6], ends[a])
                    values[i, c] = capsule_box(first, boxes[b], table[c, 3], w, work, slope)
                elif kind == CAPSULE_FLOOR:
                    first = (capsule_link[a], capsules[a, 6], ends[a])
                    values[i, c] = capsule_floor(first, table[c, 3], w, work, slope)
                elif kind <= FRAME_PLANE:
                    link = frame_link[a]
                    placed(R[link], p[link], frames[a, 9:12], spot)
                    values[i, c] = frame_place(kind, link, spot, table[c], w, work, slope)
                else:
                    link = frame_link[a]
                    values[i, c] = frame_angle(kind, link, R[link], frames[a], cameras[b], table[c], w, work, slope)
        if differentiate:
            gradient[i] = slope


@njit(cache=True, nogil=True)
def roll_pitch_moment(M: Any, pitch: bool, out: Any) -> None:
    """d(roll or pitch) per unit angular velocity in camera axes, of M = Rz(yaw) Ry(pitch) Rx(roll).

    Angular velocity = yaw' z + pitch' Rz y + roll' Rz Ry x, inverted.
    """
    cp = np.hypot(M[2, 1], M[2, 2])
    cy, sy = 1.0, 0.0
    if cp > TINY:
        cy, sy = M[0, 0] / cp, M[1, 0] / cp
    if pitch:
        out[0], out[1], out[2] = -sy, cy, 0.0
    else:
        safe = max(cp, 1e-6)
        out[0], out[1], out[2] = cy / safe, sy / safe, 0.0
