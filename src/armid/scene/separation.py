"""Distances of convex shapes that are apart, compiled: the search asks for thousands of them per step.

The algorithm is that of [Gilbert1988]: v, a point of the difference A - B, moves to the point nearest the origin of a simplex
of corners of A - B, to which the corner farthest against v is added each time. At every step `v.w / |v|` bounds the distance from
below, for w that corner: a search may stop as soon as the bound is enough, and a direction that parted two shapes an
instant ago usually still does. Shapes that overlap are left to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.kernels.numba_cache import compiled
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Sphere
from armid.scene.hull_points import corners

_STEPS = 40
"""Corners added before a distance counts as found; hulls of thousands of corners take about ten."""

_ACCURACY = 1e-7
"""[m] between the bounds of a distance at which it is found."""

_ROUND = 32
"""Corners of the prism around a cylinder's circle: 0.5 % of its radius wider than the circle."""

_MANY = 100
"""Corners of a hull beyond which fewer stand in for it."""

_LEFT_OUT = 2e-4, 1e-3
"""[m], or as a share of the extent if that is more: how far corners left out may stand out from the hull of those kept. A radius
makes up for it."""

_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Outlines:
    """Shapes as corners with a radius, each of which contains its shape.

    Args:
        points: corners of all shapes in their link's frames [m], shape [n_points, 3].
        first: where each shape's corners begin, and the end, shape [n_shapes + 1].
        radius: around the corners [m], shape [n_shapes].
        links: of the shapes, shape [n_shapes].
    """

    points: FloatArray
    first: Any
    radius: FloatArray
    links: Any


def outlines(shapes: Sequence[tuple[int, Geometry]]) -> Outlines:
    """Corners and radius of every shape.

    Args:
        shapes: link (0 the base) and shape of each, meshes readable.
    """
    each = [_outline(geometry) for _, geometry in shapes]
    return Outlines(
        points=np.ascontiguousarray(np.vstack([points for points, _ in each])),
        first=np.concatenate([[0], np.cumsum([len(points) for points, _ in each])]).astype(np.int64),
        radius=read_only(np.array([radius for _, radius in each])),
        links=np.array([link for link, _ in shapes], dtype=np.int64),
    )


def _outline(geometry: Geometry) -> tuple[FloatArray, float]:
    """Corners in the link's frame, and the radius around them."""
    points, radius = _own_corners(geometry)
    T = geometry.T_link_shape
    return points @ T[:3, :3].T + T[:3, 3], radius


def _own_corners(geometry: Geometry) -> tuple[FloatArray, float]:
    ends = np.array([[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]])
    match geometry.shape:
        case Box(size):
            signs = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
            return signs * np.array(size), 0.0
        case Sphere(radius):
            return np.zeros((1, 3)), radius
        case Capsule(radius, length):
            return ends * length, radius
        case Cylinder(radius, length):
            angles = 2.0 * np.pi * np.arange(_ROUND) / _ROUND
            circle = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(_ROUND)])
            circle *= radius / np.cos(np.pi / _ROUND)
            return np.vstack([circle + length * end for end in ends]), 0.0
        case mesh:
            points = corners(mesh)
            return _fewer_once(points.tobytes()) if len(points) > _MANY else (points, 0.0)


@lru_cache(maxsize=64)
def _fewer_once(points: bytes) -> tuple[FloatArray, float]:
    """Kept, since arms have the same motor several times and a scene is made more than once."""
    return fewer_corners(np.frombuffer(points).reshape(-1, 3))


def fewer_corners(points: FloatArray) -> tuple[FloatArray, float]:
    """Some of the corners of a hull, and a radius: none of the others is farther than that from the hull of those kept.

    Args:
        points: corners of a convex hull [m], shape [n, 3].

    Returns:
        Corners kept, shape [m, 3], and the radius [m].
    """
    left_out = max(_LEFT_OUT[0], _LEFT_OUT[1] * float(np.ptp(points, axis=0).max()))
    kept = np.unique(np.argmax(points @ _all_round(_MANY).T, axis=0))
    away, open_ = np.zeros(len(points)), np.arange(len(points))
    while True:
        found = np.empty(len(open_))
        points_from_hull(points[open_], points[kept], found)
        away[open_] = found
        # A hull only grows: what is near enough now stays so.
        open_ = open_[found > left_out]
        if not len(open_):
            break
        kept = np.union1d(kept, _peaks(points[open_], away[open_], open_))
    return points[kept], float(away.max())


def _all_round(count: int) -> FloatArray:
    """Unit vectors spread evenly over all directions, on a spiral, shape [count, 3]."""
    k = np.arange(count) + 0.5
    polar, turn = np.arccos(1.0 - 2.0 * k / count), np.pi * (1.0 + np.sqrt(5.0)) * k
    return np.column_stack([np.cos(turn) * np.sin(polar), np.sin(turn) * np.sin(polar), np.cos(polar)])


_AT_ONCE = 16
"""Corners added at once."""


def _peaks(points: FloatArray, away: FloatArray, numbers: npt.NDArray[np.intp]) -> list[int]:
    """Numbers of the corners that stand out most, none near a more prominent one: neighbours will hardly stand out any more."""
    chosen: list[int] = []
    left = np.array(away)
    while len(chosen) < _AT_ONCE and left.any():
        k = int(np.argmax(left))
        chosen.append(int(numbers[k]))
        left[np.linalg.norm(points - points[k], axis=1) < 0.1 * np.ptp(points, axis=0).max()] = 0.0
        left[k] = 0.0
    return chosen


@compiled(nogil=True)
def points_from_hull(points: Any, hull: Any, away: Any) -> None:
    """Distance of each point from the convex hull of others [m]; zero inside.

    Args:
        points: shape [n, 3].
        hull: corners, shape [m, 3].
        away: output, shape [n].
    """
    W, A, B, weights, v = np.empty((4, 3)), np.empty((4, 3)), np.empty((4, 3)), np.empty(8), np.empty(3)
    I, zero, still, at = np.eye(3), np.zeros(3), np.zeros((1, 3)), np.empty(3)
    # Not 0 and 1: for numbers written out numba compiles each function once more.
    first, one = len(still) - 1, len(still)
    for k in range(len(points)):
        for j in range(3):
            v[j] = points[k, j] - hull[0, j]
            at[j] = points[k, j]
        size = _gjk(I, at, still, first, one, I, zero, hull, first, len(hull), np.inf, v, W, A, B, weights)
        away[k] = max(size, 0.0)


@compiled(nogil=True)
def _farthest(points: Any, first: int, last: int, x: float, y: float, z: float) -> int:
    """Index of the corner farthest along a direction."""
    best, value = first, -np.inf
    for k in range(first, last):
        along = points[k, 0] * x + points[k, 1] * y + points[k, 2] * z
        if along > value:
            best, value = k, along
    return best


@compiled(nogil=True)
def _corner(R: Any, p: Any, points: Any, first: int, last: int, n: Any, sign: float, out: Any) -> None:
    """The corner of a placed shape farthest along sign * n, in the base frame."""
    x = sign * (R[0, 0] * n[0] + R[1, 0] * n[1] + R[2, 0] * n[2])
    y = sign * (R[0, 1] * n[0] + R[1, 1] * n[1] + R[2, 1] * n[2])
    z = sign * (R[0, 2] * n[0] + R[1, 2] * n[1] + R[2, 2] * n[2])
    k = _farthest(points, first, last, x, y, z)
    for i in range(3):
        out[i] = p[i] + R[i, 0] * points[k, 0] + R[i, 1] * points[k, 1] + R[i, 2] * points[k, 2]


@compiled(nogil=True)
def _dot(a: Any, b: Any) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled(nogil=True)
def _clear(weights: Any, first: int) -> None:
    """Zero weights from one on. A loop: for assignments to slices numba compiles the words of an error that cannot occur."""
    for k in range(first, 4):
        weights[k] = 0.0


@compiled(nogil=True)
def _of_segment(W: Any, i: int, j: int, weights: Any) -> None:
    """Weights of the point nearest the origin between corners i and j."""
    length, along = 0.0, 0.0
    for k in range(3):
        d = W[j, k] - W[i, k]
        length += d * d
        along -= W[i, k] * d
    t = min(max(along / length, 0.0), 1.0) if length > 0.0 else 0.0
    weights[i], weights[j] = 1.0 - t, t


@compiled(nogil=True)
def _gap(W: Any, i: int, j: int, l: int) -> float:
    """-(W_j - W_i) . W_l: plain indices, since a slice costs more than what it is used for."""
    return (W[i, 0] - W[j, 0]) * W[l, 0] + (W[i, 1] - W[j, 1]) * W[l, 1] + (W[i, 2] - W[j, 2]) * W[l, 2]


@compiled(nogil=True)
def _of_triangle(W: Any, i: int, j: int, l: int, weights: Any) -> None:
    """Weights of the point nearest the origin of a triangle of corners [Ericson2005, 5.1.5]."""
    d1, d2 = _gap(W, i, j, i), _gap(W, i, l, i)
    d3, d4 = _gap(W, i, j, j), _gap(W, i, l, j)
    d5, d6 = _gap(W, i, j, l), _gap(W, i, l, l)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    weights[i], weights[j], weights[l] = 0.0, 0.0, 0.0
    if d1 <= 0.0 and d2 <= 0.0:
        weights[i] = 1.0
    elif d3 >= 0.0 and d4 <= d3:
        weights[j] = 1.0
    elif d6 >= 0.0 and d5 <= d6:
        weights[l] = 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        _of_segment(W, i, j, weights)
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        _of_segment(W, i, l, weights)
    elif va <= 0.0 and d4 >= d3 and d5 >= d6:
        _of_segment(W, j, l, weights)
    else:
        total = va + vb + vc
        weights[i], weights[j], weights[l] = va / total, vb / total, vc / total


@compiled(nogil=True)
def _combined(W: Any, weights: Any, count: int, out: Any) -> float:
    """The weighted point, and its distance from the origin."""
    for k in range(3):
        out[k] = 0.0
        for i in range(count):
            out[k] += weights[i] * W[i, k]
    return np.sqrt(_dot(out, out))


@compiled(nogil=True)
def _beyond(W: Any, i: int, j: int, l: int, apex: int) -> bool:
    """Whether the origin lies on the other side of a face than the fourth corner, or the four are flat."""
    ax, ay, az = W[j, 0] - W[i, 0], W[j, 1] - W[i, 1], W[j, 2] - W[i, 2]
    bx, by, bz = W[l, 0] - W[i, 0], W[l, 1] - W[i, 1], W[l, 2] - W[i, 2]
    x, y, z = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    origin = -(x * W[i, 0] + y * W[i, 1] + z * W[i, 2])
    fourth = x * (W[apex, 0] - W[i, 0]) + y * (W[apex, 1] - W[i, 1]) + z * (W[apex, 2] - W[i, 2])
    return origin * fourth <= 0.0


@compiled(nogil=True)
def _of_tetrahedron(W: Any, weights: Any, trial: Any, v: Any) -> bool:
    """Weights of the point nearest the origin of a tetrahedron; False when the origin is inside."""
    best = np.inf
    for apex in range(4):
        i, j, l = (apex + 1) % 4, (apex + 2) % 4, (apex + 3) % 4
        if _beyond(W, i, j, l, apex):
            trial[apex] = 0.0
            _of_triangle(W, i, j, l, trial)
            size = _combined(W, trial, len(W), v)
            if size < best:
                best = size
                weights[0], weights[1], weights[2], weights[3] = trial[0], trial[1], trial[2], trial[3]
    return best < np.inf


@compiled(nogil=True)
def _nearest(W: Any, count: int, weights: Any, trial: Any, v: Any) -> bool:
    """Weights of the point nearest the origin of two to four corners; False when the origin is inside of four."""
    _clear(weights, 0)
    # Not 0, 1, 2: for numbers written out numba compiles each function once more.
    if count == 2:
        _of_segment(W, count - 2, count - 1, weights)
    elif count == 3:
        _of_triangle(W, count - 3, count - 2, count - 1, weights)
    else:
        return _of_tetrahedron(W, weights, trial, v)
    return True


@compiled(nogil=True)
def _only_needed(W: Any, A: Any, B: Any, weights: Any, count: int) -> int:
    """Moves corners that carry weight to the front; how many there are."""
    kept = 0
    for i in range(count):
        if weights[i] > 0.0:
            weights[kept] = weights[i]
            for k in range(3):
                W[kept, k], A[kept, k], B[kept, k] = W[i, k], A[i, k], B[i, k]
            kept += 1
    _clear(weights, kept)
    return kept


@compiled(nogil=True)
def _gjk(
    Ra: Any,
    pa: Any,
    points_a: Any,
    first_a: int,
    last_a: int,
    Rb: Any,
    pb: Any,
    points_b: Any,
    first_b: int,
    last_b: int,
    enough: float,
    v: Any,
    W: Any,
    A: Any,
    B: Any,
    weights: Any,
) -> float:
    """Distance of two placed hulls, or a lower bound of it that is enough; minus one when they overlap.

    Args:
        Ra, pa, points_a, first_a, last_a: rotation, origin and corners of the first; likewise the second.
        enough: distance worth knowing [m]: a bound beyond it ends the work; infinite for the distance itself.
        v: a direction to begin with, from the second to the first; afterwards the one that the answer rests on.
        W, A, B, weights: corners of the difference and of either hull, and what their sum is weighted with: the nearest
            points are `weights[:4] @ A` and `weights[:4] @ B`; four more weights are room to work in.
    """
    count, best, trial = 0, -1.0, weights[4:]
    size = np.sqrt(_dot(v, v))
    for step in range(_STEPS):
        if size < _TINY:
            return -1.0
        _corner(Ra, pa, points_a, first_a, last_a, v, -1.0, A[count])
        _corner(Rb, pb, points_b, first_b, last_b, v, 1.0, B[count])
        same = False
        for k in range(3):
            W[count, k] = A[count, k] - B[count, k]
        for i in range(count):
            same |= W[i, 0] == W[count, 0] and W[i, 1] == W[count, 1] and W[i, 2] == W[count, 2]
        bound = _dot(v, W[count]) / size
        best = max(best, bound)
        if bound >= enough:
            # The direction parts the hulls by enough: it is the answer, with the corners it rests on.
            _clear(weights, 0)
            weights[count] = 1.0
            return bound
        if step > 0 and (same or size - bound <= _ACCURACY):
            _clear(weights, count)
            return max(best, 0.0)
        count += 1
        if count == 1:
            weights[0] = 1.0
            for k in range(3):
                v[k] = W[0, k]
            size = np.sqrt(_dot(v, v))
            continue
        if not _nearest(W, count, weights, trial, v):
            return -1.0
        size = _combined(W, weights, count, v)
        count = _only_needed(W, A, B, weights, count)
        if count == 4:
            return -1.0
    return max(best, 0.0)


@compiled(nogil=True)
def distances(
    R: Any,
    p: Any,
    samples: Any,
    rows: Any,
    pairs: Any,
    enough: Any,
    points: Any,
    first: Any,
    radius: Any,
    links: Any,
    last: Any,
    distance: Any,
    ends: Any,
    normals: Any,
) -> None:
    """Distances of pairs of shapes; a lower bound where it is enough, and minus one where outlines overlap.

    Args:
        R, p: rotation and origin of each link, shapes [n_samples, n_links, 3, 3] and [n_samples, n_links, 3].
        samples, rows: of each question, shape [k].
        pairs: the two shapes of each question, shape [k, 2].
        enough: distance worth knowing [m], shape [k]; infinite for the distance itself.
        points, first, radius, links: of `Outlines`.
        last: direction that parted the shapes of each row when they were last asked about at each sample, zero for none;
            changed; shape [n_samples, n_rows, 3], or [1, n_rows, 3] when each sample begins where the last one ended.
        distance: output [m], shape [k].
        ends: output, nearest points or the corners that the bound rests on [m], shape [k, 6].
        normals: output, from the second shape to the first, shape [k, 3].
    """
    W, A, B, weights, v = np.empty((4, 3)), np.empty((4, 3)), np.empty((4, 3)), np.empty(8), np.empty(3)
    for k in range(len(samples)):
        i, a, b, row = samples[k], pairs[k, 0], pairs[k, 1], rows[k]
        Ra, Rb, pa, pb = R[i, links[a]], R[i, links[b]], p[i, links[a]], p[i, links[b]]
        place = i % len(last)
        for j in range(3):
            v[j] = last[place, row, j]
        if _dot(v, v) == 0.0:
            for j in range(3):
                v[j] = pa[j] - pb[j]
                for c in range(3):
                    v[j] += Ra[j, c] * points[first[a], c] - Rb[j, c] * points[first[b], c]
        wide = radius[a] + radius[b]
        found = _gjk(
            Ra,
            pa,
            points,
            first[a],
            first[a + 1],
            Rb,
            pb,
            points,
            first[b],
            first[b + 1],
            enough[k] + wide,
            v,
            W,
            A,
            B,
            weights,
        )
        if found <= wide:
            distance[k] = -1.0
            continue
        distance[k] = found - wide
        size = np.sqrt(_dot(v, v))
        for j in range(3):
            normals[k, j] = last[place, row, j] = v[j] / size
            ends[k, j] = ends[k, 3 + j] = 0.0
            for c in range(4):
                if weights[c] > 0.0:
                    ends[k, j] += weights[c] * A[c, j]
                    ends[k, 3 + j] += weights[c] * B[c, j]
