"""Bounds from the shapes of a robot's links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armid.consistency.bounds import Bounds
from armid.consistency.enclosure import bounding_shapes, enclosure, solid_of
from armid.consistency.places import CentreHull, Where, support_of_ellipsoid, support_of_slab
from armid.errors import InputError, UnknownNameError
from armid.notes import Note, Severity
from armid.robot.meshes import MeshError
from armid.robot.robot import Link, Robot

_MARGIN = 0.01
"""[m] added around shapes: collision shapes are drawn with a hand's accuracy, and cables and screws are not drawn at all."""


@dataclass(frozen=True, slots=True)
class GeometryBounds:
    """Settings: what the shapes of a link say about its mass.

    Args:
        margin: added around all shapes [m].
        links: `link3`, ... or the robot's own link names; None for every link that has shapes.
        moments: the mass itself stays within the shapes' ellipsoid and between its planes; otherwise only its centre
            stays within the shapes' hull.
    """

    margin: float = _MARGIN
    links: tuple[str, ...] | None = None
    moments: bool = True

    def __post_init__(self) -> None:
        if not self.margin >= 0.0:
            raise InputError("margin of the shapes", f"{self.margin:g} m", "expected zero or more")

    def apply(self, robot: Robot, bounds: Bounds | None = None) -> Bounds:
        """The bounds with those of the shapes added.

        Raises:
            InputError: no link has shapes, or a mesh file cannot be read; names the link and the file.
            UnknownNameError: a link that does not exist.
        """
        where: dict[str, tuple[Where, ...]] = {}
        bare = []
        for i in self.chosen(robot):
            link = robot.links[i]
            places = self.places(link)
            if places:
                where[f"link{i + 1}"] = places
            else:
                bare.append(link.name)
        if not where:
            hint = "describe shapes (geometry, <collision>), or bound centres by hand (centre, ellipsoid)"
            raise InputError(f"bounds of {robot.name}", f"no shapes on {', '.join(bare)}", hint)
        return (bounds or Bounds()).merged(where, _bare_notes(bare))

    def chosen(self, robot: Robot) -> Sequence[int]:
        """Indices of the links that are asked for."""
        if self.links is None:
            return range(robot.n_joints)
        return [owner_index(robot, name) for name in self.links]

    def places(self, link: Link) -> tuple[Where, ...]:
        """What one link's shapes say; nothing when it has none."""
        try:
            solids = [solid_of(geometry, self.margin) for geometry in bounding_shapes(link)]
        except MeshError as problem:
            hint = f"{problem.hint}; or leave {link.name} out: a bounds file with `geometry: {{links: [...]}}`"
            raise InputError(f"bounds of {link.name}: {problem.where}", problem.problem, hint) from None
        if not solids:
            return ()
        around = enclosure(solids)
        hull = CentreHull(around.normals, around.offsets)
        if not self.moments:
            return (hull,)
        slabs = [support_of_slab(row[:3], float(row[3]), float(row[4])) for row in around.slabs]
        return (hull, support_of_ellipsoid(around.centre, around.A), *slabs)


def owner_index(robot: Robot, name: str) -> int:
    """0-based link of `link3`, as in the names of parameters, or of the robot's own name for it."""
    owners = [f"link{i + 1}" for i in range(robot.n_joints)]
    if name in owners:
        return owners.index(name)
    if name not in robot.link_names:
        raise UnknownNameError("link", name, (*owners, *robot.link_names))
    return robot.link_names.index(name)


def _bare_notes(names: Sequence[str]) -> tuple[Note, ...]:
    if not names:
        return ()
    text = f"no shapes on {', '.join(names)}: nothing bounds where their mass is"
    return (Note("geometry-missing", Severity.WARNING, text),)
