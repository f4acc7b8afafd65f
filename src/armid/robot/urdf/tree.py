"""A URDF file as checked links and joints, before any choice of base and tip."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from armid.arrays import FloatArray
from armid.notes import Note
from armid.robot.geometry import Geometry
from armid.robot.robot import Limits
from armid.robot.urdf.xml_tree import XmlElement

MOVING = ("revolute", "continuous", "prismatic")
UNSUPPORTED = ("floating", "planar")
TYPES = (*MOVING, "fixed", *UNSUPPORTED)


@dataclass(frozen=True, eq=False)
class UrdfLink:
    """One link element.

    Args:
        name: as written.
        inertial: ten standard parameters in the link frame; None without an inertial element.
        geometry: visuals and collisions, in the link frame.
        element: where it stands in the text.
    """

    name: str
    inertial: FloatArray | None
    geometry: tuple[Geometry, ...]
    element: XmlElement


@dataclass(frozen=True, eq=False, kw_only=True)
class UrdfJoint:
    """One joint element.

    Args:
        name, kind, parent, child: as written.
        xyz, rpy: origin [m], [rad]; right angles are exact.
        axis: unit vector in the joint frame; (1, 0, 0) for joints without one.
        limits: infinite where none are given.
        damping, friction: [N m s/rad], [N m] or for a slide [N s/m], [N].
        mimic: name of the joint this one follows, if any.
        element: where it stands in the text.
    """

    name: str
    kind: str
    parent: str
    child: str
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]
    axis: tuple[float, float, float]
    limits: Limits
    damping: float
    friction: float
    mimic: str | None
    element: XmlElement

    @property
    def moves(self) -> bool:
        return self.kind != "fixed"


@dataclass(frozen=True, eq=False, kw_only=True)
class Urdf:
    """All links and joints of a file; a tree.

    Args:
        name: of the robot.
        links, joints: by name, in the order of the file.
        root: the one link that is no joint's child.
        element: the outermost element.
        notes: what was odd but readable.
        rotors: reflected rotor inertia of joints that have one in Drake's tags [kg m^2 or kg].
        implied: links that joints hang on and that the file does not have: the world.
    """

    name: str
    links: dict[str, UrdfLink]
    joints: dict[str, UrdfJoint]
    root: str
    element: XmlElement
    notes: tuple[Note, ...]
    rotors: dict[str, float] = field(default_factory=dict)
    implied: tuple[str, ...] = ()

    @cached_property
    def _by_parent(self) -> dict[str, list[UrdfJoint]]:
        out: dict[str, list[UrdfJoint]] = {name: [] for name in self.links}
        for joint in self.joints.values():
            out[joint.parent].append(joint)
        return out

    @cached_property
    def _by_child(self) -> dict[str, UrdfJoint]:
        return {joint.child: joint for joint in self.joints.values()}

    def joints_from(self, link: str) -> list[UrdfJoint]:
        """The joints whose parent is this link, in the order of the file."""
        return self._by_parent[link]

    def joint_to(self, link: str) -> UrdfJoint | None:
        """The joint whose child is this link; None for the root."""
        return self._by_child.get(link)
