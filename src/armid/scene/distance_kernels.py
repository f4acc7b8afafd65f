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
        pull(links[k, 0], first[k], normals[k], weights[k], axes[i], origins[i], turns, gradient[i])
        pull(links[k, 1], second[k], normals[k], -weights[k], axes[i], origins[i], turns, gradient[i])


@compiled(nogil=True)
def place_capsules(R: Any, p: Any, capsules: Any, links: Any, ends: Any) -> None:
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
            out[k] += weight * (force[0] * axes[k, 0] + force[1] * axes[k, 1] + force[2] * axes[k, 2])


@compiled(nogil=True)
def _apart(pa: Any, pb: Any, normal: Any) -> float:
    """Distance of two points, and the unit vector from the second to the first (zero when they coincide)."""
    x, y, z = pa[0] - pb[0], pa[1] - pb[1], pa[2] - pb[2]
    d = np.sqrt(x * x + y * y + z * z)
    scale = 1.0 / d if d > _TINY else 0.0
    normal[0], normal[1], normal[2] = x * scale, y * scale, z * scale
    return d


@compiled(nogil=True)
def fill(values: Any) -> None:
    """Zeros. Loops, here and below: for assignments to slices numba compiles the words of an error that cannot occur, 2 s."""
    for k in range(len(values)):
        values[k] = 0.0


@compiled(nogil=True)
def any_weight(weights: Any, i: int) -> bool:
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
    table: Any,
    weights: Any,
    values: Any,
    gradient: Any,
) -> None:
    """Clearances between capsules and above the floor at all poses, and the weighted sum of their gradients; others stay.

    Args:
        q: geometric positions, shape [n_samples, n].
        joints: see `link_frames`.
        turns: whether each joint is revolute, shape [n].
        capsules: start (3), end (3), radius in the link frame, shape [n_capsules, 7].
        capsule_link: link of each capsule.
        table: kind, index a, index b, up to four numbers, shape [n_clearances, 7].
        weights: shape [n_samples, n_clearances]; an empty array for values alone.
        values: output, shape [n_samples, n_clearances]; with weights only where they are not zero.
        gradient: output, shape [n_samples, n]; only written with weights.
    """
    n = q.shape[1]
    R, p = np.empty((n + 1, 3, 3)), np.empty((n + 1, 3))
    axes, origins, ends = np.empty((n, 3)), np.empty((n, 3)), np.empty((len(capsules), 6))
    pa, pb, normal, slope = np.empty(3), np.empty(3), np.empty(3), np.empty(n)
    differentiate = weights.size > 0
    for i in range(len(q)):
        fill(slope)
        if not differentiate or any_weight(weights, i):
            link_frames(q[i], joints, R, p, axes, origins)
            place_capsules(R, p, capsules, capsule_link, ends)
            for c in range(len(table)):
                w = weights[i, c] if differentiate else 0.0
                kind, a, b = int(table[c, 0]), int(table[c, 1]), int(table[c, 2])
                if (differentiate and w == 0.0) or (kind != CAPSULE_CAPSULE and kind != CAPSULE_FLOOR):
                    continue
                if kind == CAPSULE_CAPSULE:
                    _closest_on_segments(ends, a, b, pa, pb)
                    d = _apart(pa, pb, normal) - capsules[b, 6]
                else:
                    lower = 0 if ends[a, 2] < ends[a, 5] else 3
                    pa[0], pa[1], pa[2] = ends[a, lower], ends[a, lower + 1], ends[a, lower + 2]
                    normal[0], normal[1], normal[2] = 0.0, 0.0, 1.0
                    d = pa[2]
                values[i, c] = d - capsules[a, 6] - table[c, 3]
                if w != 0.0:
                    pull(capsule_link[a], pa, normal, w, axes, origins, turns, slope)
                    if kind == CAPSULE_CAPSULE:
                        pull(capsule_link[b], pb, normal, -w, axes, origins, turns, slope)
        if differentiate:
            _put(slope, gradient, i)
