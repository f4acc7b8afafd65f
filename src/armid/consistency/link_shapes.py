"""How large every link is, by its shapes or by the distances between joints: what its mass and extent can plausibly be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.consistency.enclosure import bounding_shapes, solid_of
from armid.parameters.inertial import from_centre_of_mass, pseudo_inertia
from armid.robot.elementary import product
from armid.robot.geometry import Geometry, Mesh
from armid.robot.meshes import MeshError, vertices
from armid.robot.robot import Robot

_SMALLEST = 0.01
"""[m]; half width given to links that would otherwise be a line or a point."""
_SMALLEST_HOUSING = 0.05
"""[m]; radius of a small joint module, where an arm without shapes has no length either."""
_SLENDERNESS = 0.35
"""Half width over half length of a link known only by its two joints: between a rod and a ball."""
_BULGE = 0.15
"""Of the arm's length: how far links without shapes reach beyond the line between their joints. Housings of motors and gears
grow with the arm: on the catalogue's arms with shapes and five of example-robot-data the middle
link reaches 0.08 of the length, nineteen in twenty less than 0.23."""
_UNDRAWN = 0.05
"""Of the arm's length: what is added around drawn shapes, for covers, cables and connectors that are not drawn, and for shapes
that only outline a link. A wrist of an arm 1 m long gets 5 cm."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkShape:
    """The place a link takes up.

    Args:
        centre: of its shapes, in the link frame [m], shape [3].
        radius: of a ball around the centre that holds all of it [m].
        axes, half: principal directions as columns, shape [3, 3], and half the widths along them [m], shape [3].
        drawn: from shapes; otherwise from the distances between joints alone.
    """

    centre: FloatArray
    radius: float
    axes: FloatArray
    half: FloatArray
    drawn: bool

    def __post_init__(self) -> None:
        for name in ("centre", "axes", "half"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def volume(self) -> float:
        """Of the ellipsoid with these half widths [m^3]."""
        return float(4.0 / 3.0 * np.pi * np.prod(self.half))

    def body(self, mass: float = 1.0) -> FloatArray:
        """A solid ellipsoid of this size: ten standard parameters.

        Args:
            mass: [kg].
        """
        # Second moments of a solid ellipsoid are semi-axis^2 / 5 per unit mass; I = tr(Sigma) 1 - Sigma.
        Sigma = (self.axes * self.half**2) @ self.axes.T / 5.0
        return from_centre_of_mass(mass, self.centre, mass * (np.trace(Sigma) * np.eye(3) - Sigma))

    def spread(self, inertial: FloatArray) -> float:
        """Root mean square distance of a body's mass from the centre [m]; more than `radius` is impossible within it."""
        P, mass = pseudo_inertia(inertial), float(inertial[0])
        if not mass > 0.0:
            return float("inf")
        first = P[:3, 3] / mass
        square = np.trace(P[:3, :3]) / mass - 2.0 * first @ self.centre + self.centre @ self.centre
        return float(np.sqrt(max(square, 0.0)))


@lru_cache(maxsize=16)
def link_shapes(robot: Robot) -> tuple[LinkShape, ...]:
    """Of every link: its shapes where they can be read, the joints at its ends anyway."""
    ends = [_ends(robot, i) for i in range(robot.n_joints)]
    length = sum(float(np.linalg.norm(end - start)) for start, end in ends)
    return tuple(_shape(_drawn_points(robot, i), *ends[i], length) for i in range(robot.n_joints))


def _ends(robot: Robot, link: int) -> tuple[FloatArray, FloatArray]:
    """Where the link's own joint and the next one (or the tip) stand, in the link frame [m]."""
    joint = robot.joints[link]
    after = product(joint.transforms[joint.variable_index + 1 :])
    start = -after[:3, :3].T @ after[:3, 3]
    if link + 1 < robot.n_joints:
        following = robot.joints[link + 1]
        return start, product(following.transforms[: following.variable_index])[:3, 3]
    return start, robot.tip.T_link_frame[:3, 3] if robot.tip.link == robot.n_joints else start


def _drawn_points(robot: Robot, link: int) -> FloatArray:
    """Corners of the link's shapes, shape [n, 3]; none of meshes that cannot be read."""
    points = [np.empty((0, 3))]
    for geometry in bounding_shapes(robot.links[link]):
        try:
            points.append(_corners(geometry))
        except MeshError:
            continue
    return np.concatenate(points)


def _corners(geometry: Geometry) -> FloatArray:
    """Points whose hull is the shape's, or close to it; of a mesh all vertices, which need no hull here."""
    if not isinstance(geometry.shape, Mesh):
        return solid_of(geometry).corners()
    T = geometry.T_link_shape
    return vertices(geometry.shape) @ T[:3, :3].T + T[:3, 3]


def _shape(drawn: FloatArray, start: FloatArray, end: FloatArray, length: float) -> LinkShape:
    if not len(drawn):
        return _between_joints(start, end, length)
    axes = np.linalg.eigh(np.cov(drawn.T) + 1e-12 * np.eye(3))[1]
    along = drawn @ axes
    half = np.maximum(np.ptp(along, axis=0) / 2.0, _SMALLEST)
    centre = axes @ ((along.max(axis=0) + along.min(axis=0)) / 2.0)
    reach = np.linalg.norm(np.vstack([drawn, start, end]) - centre, axis=1)
    radius = float(max(reach.max(), half.max())) + _UNDRAWN * length
    return LinkShape(centre=centre, radius=radius, axes=axes, half=half, drawn=True)


def _between_joints(start: FloatArray, end: FloatArray, length: float) -> LinkShape:
    """A link without shapes: an ellipsoid between its joints, and a ball that also holds the housings at its ends."""
    reach = float(np.linalg.norm(end - start))
    bulge = max(_BULGE * length, _SMALLEST_HOUSING)
    half = max(reach / 2.0, bulge)
    width = max(_SLENDERNESS * half, bulge)
    first = (end - start) / reach if reach > 1e-9 else np.array([0.0, 0.0, 1.0])
    axes = np.linalg.svd(first[np.newaxis])[2].T
    return LinkShape(
        centre=(start + end) / 2.0,
        radius=reach / 2.0 + bulge,
        axes=axes,
        half=np.array([half, width, width]),
        drawn=False,
    )


def relative_spreads(robot: Robot, bodies: Sequence[FloatArray | None]) -> FloatArray:
    """Spread of every body over the radius of its link's shapes, shape [n]; nan where there is no body."""
    return np.array(
        [
            np.nan if body is None else shape.spread(body) / shape.radius
            for shape, body in zip(link_shapes(robot), bodies, strict=True)
        ]
    )
