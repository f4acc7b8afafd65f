"""Clearances of an arm from what surrounds it: boxes, and regions that frames must stay in, compiled with numba.

Apart from `distance_kernels`, so that an arm alone waits for half as much to be compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from armid.kernels.numba_cache import compiled
from armid.scene.distance_kernels import (
    CAPSULE_BOX,
    FRAME_AXIS,
    FRAME_PITCH,
    FRAME_PLANE,
    any_weight,
    fill,
    link_frames,
    place_capsules,
    pull,
)

_GOLDEN = 0.6180339887498949
_BOX_STEPS = 28
"""Golden sections: 0.618^28 = 1e-6 of a link's length, micrometres."""

_TINY = 1e-12


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
def _turn(link: int, moment: Any, weight: float, axes: Any, turns: Any, out: Any) -> None:
    """Adds `weight * moment . angular velocity of the link per joint velocity` to out."""
    for k in range(link):
        if turns[k]:
            out[k] += weight * (moment[0] * axes[k, 0] + moment[1] * axes[k, 1] + moment[2] * axes[k, 2])


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
def cell_clearances(
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
    """The other clearances: from boxes, and of frames in their regions; their gradients are added.

    Args:
        boxes: rotation (9), centre (3), half edges (3), shape [n_boxes, 15].
        frames: rotation (9) and translation (3) in the link frame, shape [n_frames, 12].
        frame_link: link of each frame.
        cameras: rotation camera-from-base (9), shape [n_cameras, 9].
        q, joints, turns, capsules, capsule_link, table, weights, values, gradient: as for `clearances`.
    """
    n = q.shape[1]
    R, p, M = np.empty((n + 1, 3, 3)), np.empty((n + 1, 3)), np.empty((3, 3))
    axes, origins, ends = np.empty((n, 3)), np.empty((n, 3)), np.empty((len(capsules), 6))
    pa, normal, slope = np.empty(3), np.empty(3), np.empty(n)
    differentiate = weights.size > 0
    for i in range(len(q)):
        fill(slope)
        if not differentiate or any_weight(weights, i):
            link_frames(q[i], joints, R, p, axes, origins)
            place_capsules(R, p, capsules, capsule_link, ends)
            for c in range(len(table)):
                w = weights[i, c] if differentiate else 0.0
                kind, a, b = int(table[c, 0]), int(table[c, 1]), int(table[c, 2])
                if (differentiate and w == 0.0) or (kind != CAPSULE_BOX and kind < FRAME_AXIS):
                    continue
                if kind == CAPSULE_BOX:
                    d = _segment_to_box(ends, a, boxes, b, pa, normal)
                    values[i, c] = d - capsules[a, 6] - table[c, 3]
                    pull(capsule_link[a], pa, normal, w, axes, origins, turns, slope)
                elif kind <= FRAME_PLANE:
                    values[i, c] = _frame_place(R, p, frame_link[a], frames, a, table, c, pa, normal)
                    pull(frame_link[a], pa, normal, w, axes, origins, turns, slope)
                else:
                    values[i, c] = _frame_angle(R, frame_link[a], frames, a, cameras, b, table, c, M, normal)
                    _turn(frame_link[a], normal, w, axes, turns, slope)
        if differentiate:
            for k in range(n):
                gradient[i, k] += slope[k]
