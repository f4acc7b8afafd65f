"""The arm as capsules: segments with a radius, one or more per link, for distances inside a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.notes import Note, Severity
from armid.robot.elementary import product
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Sphere
from armid.robot.meshes import MeshError
from armid.robot.robot import Robot
from armid.scene.hull_points import corners

_THICKNESS = 0.055
"""Radius of an arm without shapes, as a fraction of its stretched length: iiwa, Panda and the common six-axis arms
have 0.05 to 0.06 at their thickest link."""


@dataclass(frozen=True, eq=False)
class LinkCapsule:
    """A segment with a radius, fixed to a link.

    Args:
        name: of the link or the obstacle, for messages.
        link: 0 for the base and everything that stands still, i for the link moved by the i-th joint.
        start, end: of the segment in the link frame [m], shape [3].
        radius: [m].
        shape: it stands for, itself for one that was assumed; None for obstacles.
        assumed: whether nothing is known of the body but its joints.
    """

    name: str
    link: int
    start: FloatArray
    end: FloatArray
    radius: float
    shape: Geometry | None = None
    assumed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", read_only(self.start))
        object.__setattr__(self, "end", read_only(self.end))

    @property
    def exact(self) -> bool:
        """Whether it is its shape, and not only around it."""
        return self.shape is not None and isinstance(self.shape.shape, Capsule | Sphere)


def link_capsules(robot: Robot) -> tuple[tuple[LinkCapsule, ...], tuple[Note, ...]]:
    """Capsules that contain the robot's collision shapes; between the joints where a link has none.

    Returns:
        The capsules, base first, and notes on what had to be assumed.
    """
    notes: list[Note] = []
    skeleton = {capsule.link: capsule for capsule in _skeleton_capsules(robot)}
    bodies = [(robot.base, robot.geometry), *((link.name, link.geometry) for link in robot.links)]
    described = any(shape.collision for _, geometry in bodies for shape in geometry)
    out: list[LinkCapsule] = []
    for link, (name, geometry) in enumerate(bodies):
        own, missing = _capsules_of_shapes(name, link, [g for g in geometry if g.collision])
        notes += missing
        if not own and link in skeleton and (missing or not described):
            own = [skeleton[link]]
        out += own
    if not described:
        notes.append(
            Note(
                "geometry-assumed",
                Severity.WARNING,
                f"{robot.name} has no collision shapes; capsules of radius {_skeleton_radius(robot):.3f} m between "
                "the joints stand in for them",
                robot.name,
            )
        )
    return tuple(out), tuple(notes)


def _capsules_of_shapes(name: str, link: int, shapes: list[Geometry]) -> tuple[list[LinkCapsule], list[Note]]:
    """One capsule per shape, and a note for every mesh that could not be read."""
    out: list[LinkCapsule] = []
    notes: list[Note] = []
    for geometry in shapes:
        try:
            start, end, radius = enclosing_capsule(geometry)
        except MeshError as problem:
            notes.append(
                Note("mesh-missing", Severity.WARNING, f"link {name}: {problem}; without it capsules stand in", name)
            )
            continue
        out.append(LinkCapsule(name, link, start, end, radius=radius, shape=geometry))
    return out, notes


def enclosing_capsule(geometry: Geometry) -> tuple[FloatArray, FloatArray, float]:
    """Segment and radius in the link frame that contain the shape."""
    shape, T = geometry.shape, geometry.T_link_shape
    match shape:
        case Sphere(radius):
            return T[:3, 3], T[:3, 3], radius
        case Capsule(radius, length) | Cylinder(radius, length):
            half = T[:3, 2] * length / 2
            return T[:3, 3] - half, T[:3, 3] + half, radius
        case Box(size):
            points = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(size) / 2
        case _:
            points = corners(shape)
    return capsule_around(points @ T[:3, :3].T + T[:3, 3])


def capsule_around(points: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """A small capsule that contains all points: the best of those along the principal axes.

    Args:
        points: shape [n, 3].
    """
    centred = points - points.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    candidates = [_capsule_along(points, axis) for axis in (*axes, *np.eye(3))]
    return min(candidates, key=lambda c: _volume(float(np.linalg.norm(c[1] - c[0])), c[2]))


def _volume(length: float, radius: float) -> float:
    return float(np.pi * radius**2 * (length + 4.0 / 3.0 * radius))


def _capsule_along(points: FloatArray, axis: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """The thinnest capsule with this axis direction that contains all points, shortened until its caps touch."""
    along = points @ axis
    across = points - np.outer(along, axis)
    outer = _outermost(across)
    centre = outer.mean(axis=0)
    # Badoiu and Clarkson: steps of 1/(i+1) towards the farthest point converge to the smallest enclosing circle.
    for i in range(1, 200):
        centre = centre + (outer[np.argmax(((outer - centre) ** 2).sum(axis=1))] - centre) / (i + 1)
    away = np.linalg.norm(across - centre, axis=1)
    radius = float(away.max())
    cap = np.sqrt(np.maximum(radius**2 - away**2, 0.0))
    low, high = float((along + cap).min()), float((along - cap).max())
    if low > high:
        low = high = (low + high) / 2
    return centre + low * axis, centre + high * axis, radius


_FEW = 50
"""Points of which no outermost ones need to be looked for."""


def _outermost(across: FloatArray) -> FloatArray:
    """Of points in a plane those on the outline, shape [k, 3]; all of them when they are few, or on a line."""
    from scipy.spatial import ConvexHull, QhullError

    if len(across) <= _FEW:
        return across
    plane = np.linalg.svd(across - across.mean(axis=0), full_matrices=False)[2][:2]
    try:
        return across[ConvexHull(across @ plane.T).vertices]
    except QhullError:
        return across


def _skeleton_capsules(robot: Robot) -> list[LinkCapsule]:
    """For every link a capsule from its own joint to the next one (the tip frame for the last)."""
    radius = _skeleton_radius(robot)
    names = (robot.base, *robot.link_names)
    out = []
    for link, (start, end) in enumerate(_skeleton_points(robot)):
        # Joints of a spherical wrist share a point: such a link is inside its neighbours.
        if np.linalg.norm(end - start) > radius / 2:
            shape = _as_shape(start, end, radius)
            out.append(LinkCapsule(names[link], link, start, end, radius=radius, shape=shape, assumed=True))
    return out


def _as_shape(start: FloatArray, end: FloatArray, radius: float) -> Geometry:
    """The capsule itself as a shape, so that the shapes of other bodies can be asked for their distance from it."""
    along = end - start
    length = float(np.linalg.norm(along))
    basis = np.linalg.svd((along / length)[:, np.newaxis])[0]
    z = along / length
    x = basis[:, 1]
    T = np.eye(4)
    T[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    T[:3, 3] = (start + end) / 2.0
    return Geometry(Capsule(radius, length), T)


def _skeleton_points(robot: Robot) -> list[tuple[FloatArray, FloatArray]]:
    """In each link's frame, base first: where its own joint is and where the next one is."""
    out = []
    for link in range(robot.n_joints + 1):
        start = np.zeros(3)
        if link > 0:
            joint = robot.joints[link - 1]
            start = np.asarray(
                np.linalg.inv(product(joint.transforms[joint.variable_index + 1 :]))[:3, 3], dtype=np.float64
            )
        if link < robot.n_joints:
            following = robot.joints[link]
            end = product(following.transforms[: following.variable_index])[:3, 3]
        else:
            end = robot.tip.T_link_frame[:3, 3] if robot.tip.link == link else start
        out.append((start, end))
    return out


def _skeleton_radius(robot: Robot) -> float:
    """[m], from the stretched length of the arm."""
    return _THICKNESS * sum(float(np.linalg.norm(end - start)) for start, end in _skeleton_points(robot))
