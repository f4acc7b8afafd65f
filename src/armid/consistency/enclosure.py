"""Where the mass of a link can be: a few half-spaces and an ellipsoid that contain the convex hull of its shapes.

Every shape is the convex hull of some points, widened by a disc (cylinders) and by a ball (spheres, capsules, the margin).
Its support function is then exact, max p^T n + disc |n across the axis| + ball |n|, and any set of directions gives
half-spaces that contain the shape and touch it. Only which directions to take is a choice: those whose half-space cuts
most off what the others leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Sphere
from armid.robot.meshes import vertices
from armid.robot.robot import Link

MOST_HALF_SPACES = 32
"""Per link: a ball is then met within a tenth of its radius, a link's mesh within a few millimetres, and seven links
still solve in well under 50 ms."""
_MOST_CANDIDATES = 2000
"""Facets that are looked at; fine meshes have more of them in almost the same directions."""
_CLOSE_ENOUGH = 1e-3
"""[m]; a half-space that would cut off less is not worth its row."""
_THINNEST = 1e-3
"""[m]; flat shapes are widened by this much, so that a body with volume fits in."""
_BALL_DIRECTIONS = 120
_MARGIN_DIRECTIONS = 30
_ELLIPSOID_DIRECTIONS = 300
_SPIRAL_DEPTHS = {30: 0.8780837838841632, 120: 0.9691143110235529, 300: 0.9876153999130637}
"""What `spiral_depth` gives for these: loading Qhull takes longer than a fit. A test holds them against it."""
_DISC_DIRECTIONS = 24
_ELLIPSOID_TOLERANCE = 1e-3
"""Relative, of the smallest ellipsoid; it is scaled to contain everything afterwards, so this costs a little size only."""


@dataclass(frozen=True, eq=False)
class Solid:
    """The convex hull of points, widened by a disc across an axis and by a ball, in the link frame.

    Args:
        points: [m], shape [n, 3].
        axis: of the disc, shape [3].
        disc, ball: radii [m].
    """

    points: FloatArray
    axis: FloatArray
    disc: float
    ball: float

    def support(self, directions: FloatArray) -> FloatArray:
        """Largest p^T n over the solid, for every direction n; shape [k] for directions [k, 3]."""
        across = directions - np.outer(directions @ self.axis, self.axis)
        reach = np.max(directions @ self.points.T, axis=1)
        return reach + self.disc * np.linalg.norm(across, axis=1) + self.ball * np.linalg.norm(directions, axis=1)

    def corners(self) -> FloatArray:
        """Points of a polytope that contains the solid and is close to it, shape [m, 3]; exact without disc and ball."""
        points = self.points
        if self.disc > 0.0:
            points = (points[:, np.newaxis] + self.disc * _circle(self.axis)).reshape(-1, 3)
        if self.ball > 0.0:
            # A margin around a mesh needs little roundness of its own.
            directions = sphere(_BALL_DIRECTIONS if len(points) <= 2 else _MARGIN_DIRECTIONS)
            points = (points[:, np.newaxis] + self.ball * directions).reshape(-1, 3)
        return points


@dataclass(frozen=True, eq=False, kw_only=True)
class Enclosure:
    """What contains all shapes of a link.

    Args:
        normals, offsets: half-spaces n^T x <= d in the link frame [m]; unit normals, shapes [k, 3] and [k].
        centre, A: of an ellipsoid |A (x - centre)| <= 1 [m, 1/m], shapes [3] and [3, 3].
        slabs: lowest and highest n^T x along the ellipsoid's axes [m], as rows (n, lowest, highest), shape [3, 5].
        excess: how far the half-spaces' corners stand off the shapes' hull [m].
    """

    normals: FloatArray
    offsets: FloatArray
    centre: FloatArray
    A: FloatArray
    slabs: FloatArray
    excess: float

    def __post_init__(self) -> None:
        for name in ("normals", "offsets", "centre", "A", "slabs"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


def bounding_shapes(link: Link) -> tuple[Geometry, ...]:
    """What a link consists of: the collision shapes of every part, the visible ones of parts that have no others."""
    parts: dict[str, list[Geometry]] = {}
    for geometry in link.geometry:
        parts.setdefault(geometry.part, []).append(geometry)
    chosen: list[Geometry] = []
    for shapes in parts.values():
        chosen += [g for g in shapes if g.collision] or shapes
    return tuple(chosen)


def solid_of(geometry: Geometry, margin: float = 0.0) -> Solid:
    """A placed shape as a solid, widened by a margin [m].

    Raises:
        MeshError: a mesh file that is missing or cannot be read.
    """
    T, axis = geometry.T_link_shape, geometry.T_link_shape[:3, 2]
    disc = ball = 0.0
    match geometry.shape:
        case Box(size):
            points = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.asarray(size) / 2.0
        case Sphere(radius):
            points, ball = np.zeros((1, 3)), radius
        case Cylinder(radius, length):
            points, disc = np.array([[0.0, 0.0, -length / 2.0], [0.0, 0.0, length / 2.0]]), radius
        case Capsule(radius, length):
            points, ball = np.array([[0.0, 0.0, -length / 2.0], [0.0, 0.0, length / 2.0]]), radius
        case mesh:
            points = hull_points(vertices(mesh))
    return Solid(points @ T[:3, :3].T + T[:3, 3], axis, disc, ball + margin)


def enclosure(solids: Sequence[Solid], *, most: int = MOST_HALF_SPACES) -> Enclosure:
    """Half-spaces, an ellipsoid and slabs that contain the convex hull of all solids.

    Args:
        solids: of one link.
        most: half-spaces, at least six.
    """
    solids = _thick_enough(solids)
    points = hull_points(np.concatenate([solid.corners() for solid in solids]))
    centre, A = _ellipsoid_around(points)
    axes = np.linalg.svd(A)[2]
    normals, offsets, excess = _chosen_half_spaces(solids, points, np.vstack([axes, -axes]), most)
    slabs = np.column_stack([axes, -support(solids, -axes), support(solids, axes)])
    return Enclosure(normals=normals, offsets=offsets, centre=centre, A=A, slabs=slabs, excess=excess)


def support(solids: Sequence[Solid], directions: FloatArray) -> FloatArray:
    """Support function of the hull of all solids, shape [k]."""
    return np.asarray(np.max([solid.support(directions) for solid in solids], axis=0))


def _thick_enough(solids: Sequence[Solid]) -> tuple[Solid, ...]:
    """The same solids, widened when together they are flat."""
    points = np.concatenate([solid.corners() for solid in solids])
    flattest = np.linalg.eigh(np.cov(points.T))[1][:, 0]
    if np.ptp(points @ flattest) > 2.0 * _THINNEST:
        return tuple(solids)
    return tuple(Solid(s.points, s.axis, s.disc, s.ball + _THINNEST) for s in solids)


def _chosen_half_spaces(
    solids: Sequence[Solid], points: FloatArray, first: FloatArray, most: int
) -> tuple[FloatArray, FloatArray, float]:
    """Normals [k, 3], offsets [k] and how far corners stand off: facet by facet, the one that cuts off most next.

    Args:
        solids: to contain.
        points: whose hull's facets are the candidates.
        first: directions to begin with, enough to be bounded.
        most: half-spaces in all.
    """
    from scipy.spatial import ConvexHull, HalfspaceIntersection

    candidates = np.unique(np.round(ConvexHull(points).equations[:, :3], 9), axis=0)
    candidates = candidates[:: len(candidates) // _MOST_CANDIDATES + 1]
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    reach = support(solids, candidates)
    normals, offsets = first, support(solids, first)
    # Qhull asks for some slack around the inner point; shapes have been made thicker than it needs.
    outer = HalfspaceIntersection(np.column_stack([normals, -offsets]), points.mean(axis=0), incremental=True)
    while True:
        corners = outer.intersections[np.isfinite(outer.intersections).all(axis=1)]
        off = np.max(candidates @ corners.T, axis=1) - reach
        worst = int(np.argmax(off))
        if off[worst] <= _CLOSE_ENOUGH or len(normals) >= most:
            outer.close()
            return normals, offsets, max(float(off[worst]), 0.0)
        normals, offsets = np.vstack([normals, candidates[worst]]), np.append(offsets, reach[worst])
        outer.add_halfspaces(np.append(candidates[worst], -reach[worst])[np.newaxis])


def _ellipsoid_around(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A small ellipsoid |A (x - centre)| <= 1 that contains all points: Khachiyan's ascent [Todd2007]."""
    # The outermost in many directions are enough to shape it; the others only have to be inside.
    outer = points[np.unique(np.argmax(sphere(_ELLIPSOID_DIRECTIONS) @ points.T, axis=1))]
    n, d = outer.shape
    lifted = np.column_stack([outer, np.ones(n)])
    u = np.full(n, 1.0 / n)
    for _ in range(1000):
        distance = np.einsum("ij,ij->i", lifted @ np.linalg.inv(lifted.T @ (u[:, np.newaxis] * lifted)), lifted)
        worst = int(np.argmax(distance))
        if distance[worst] <= (1.0 + _ELLIPSOID_TOLERANCE) * (d + 1):
            break
        step = (distance[worst] - d - 1.0) / ((d + 1) * (distance[worst] - 1.0))
        u *= 1.0 - step
        u[worst] += step
    centre = outer.T @ u
    spread = (outer.T * u) @ outer - np.outer(centre, centre)
    root = np.linalg.cholesky(np.linalg.inv(d * spread)).T
    return centre, root / np.max(np.linalg.norm((points - centre) @ root.T, axis=1))


def hull_points(points: FloatArray) -> FloatArray:
    """The corners of the convex hull; all points when they have no volume."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:
        return points


@cache
def sphere(count: int) -> FloatArray:
    """Corners of a polytope around the unit ball: a spiral by the golden angle, shape [count, 3]."""
    points = _spiral(count)
    return read_only(points / (_SPIRAL_DEPTHS[count] if count in _SPIRAL_DEPTHS else spiral_depth(count)))


def _spiral(count: int) -> FloatArray:
    z = 1.0 - (2.0 * np.arange(count) + 1.0) / count
    turn = np.arange(count) * np.pi * (3.0 - np.sqrt(5.0))
    across = np.sqrt(1.0 - z**2)
    return np.column_stack([across * np.cos(turn), across * np.sin(turn), z])


def spiral_depth(count: int) -> float:
    """Distance of the nearest facet of the spiral's hull from the centre."""
    from scipy.spatial import ConvexHull

    return float(np.min(-ConvexHull(_spiral(count)).equations[:, 3]))


def _circle(axis: FloatArray) -> FloatArray:
    """Corners of a polygon around the unit disc across an axis, shape [DISC_DIRECTIONS, 3]."""
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(axis)))], axis)
    x /= np.linalg.norm(x) * np.cos(np.pi / _DISC_DIRECTIONS)
    turn = 2.0 * np.pi * np.arange(_DISC_DIRECTIONS) / _DISC_DIRECTIONS
    return np.outer(np.cos(turn), x) + np.outer(np.sin(turn), np.cross(axis, x))
