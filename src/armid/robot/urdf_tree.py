"""A URDF file as checked links and joints, before any choice of base and tip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from math import isfinite, pi

import numpy as np

from armid.arrays import FloatArray
from armid.errors import RobotError
from armid.notes import Note, Severity
from armid.parameters.inertial import from_centre_of_mass, tensor
from armid.robot.amount import LARGEST, SMALLEST
from armid.robot.elementary import rotation_from_rpy
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Shape, Sphere
from armid.robot.robot import Limits
from armid.robot.xml_tree import Element, parse_xml

MOVING = ("revolute", "continuous", "prismatic")
UNSUPPORTED = ("floating", "planar")
TYPES = (*MOVING, "fixed", *UNSUPPORTED)

RIGHT_ANGLE_TOLERANCE = 1e-9
"""[rad] Decimal text with nine or more digits of pi/2 means pi/2; a nanometre at a metre is no one's calibration."""
NEAR_RIGHT_ANGLE = 1e-3
"""[rad] `1.57` or `3.1416` was probably meant as a right angle too, but changes the arm: kept, with a note."""
AXIS_TOLERANCE = 1e-3
"""How far from 1 the norm of a joint axis may be: three decimals of a unit vector."""

MAX_BODIES = 2000
"""Links, and joints; a humanoid has about a hundred. Bounds the time a hostile file can take."""

XACRO_HINT = "expand it first with `xacro robot.xacro > robot.urdf`"

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


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
    element: Element


@dataclass(frozen=True, eq=False)
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
    element: Element

    @property
    def moves(self) -> bool:
        return self.kind != "fixed"


@dataclass(frozen=True, eq=False)
class Urdf:
    """All links and joints of a file; a tree.

    Args:
        name: of the robot.
        links, joints: by name, in the order of the file.
        root: the one link that is no joint's child.
        element: the outermost element.
        notes: what was odd but readable.
    """

    name: str
    links: dict[str, UrdfLink]
    joints: dict[str, UrdfJoint]
    root: str
    element: Element
    notes: tuple[Note, ...]

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


def read_urdf(text: str, where: str) -> Urdf:
    """Read and check every link and joint.

    Raises:
        RobotError: naming file, line, element and fix.
    """
    return _Reader(where).read(parse_xml(text, where))


class _Reader:
    """Keeps the file name and the notes while elements are read."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.notes: list[Note] = []
        self.rounded: list[str] = []

    def read(self, root: Element) -> Urdf:
        if root.tag != "robot":
            raise self.error(root, f"the outermost element is <{root.tag}>", "a URDF file starts with <robot name=...>")
        name = root.attributes.get("name", "robot").strip() or "robot"
        macro = next((child for child in root.children if child.tag.startswith("xacro:")), None)
        if macro is not None:
            raise self.error(macro, "this is xacro, not URDF", XACRO_HINT)
        links = {element.attributes["name"]: self.link(element) for element in self.unique(root, "link")}
        joints = {element.attributes["name"]: self.joint(element) for element in self.unique(root, "joint")}
        if not links:
            raise self.error(root, "no <link>", "is this a URDF file?")
        self.check_references(links, joints)
        self.note_rounded()
        return Urdf(name, links, joints, self.find_root(root, links, joints), root, tuple(self.notes))

    def error(self, element: Element, problem: str, hint: str = "") -> RobotError:
        name = element.attributes.get("name")
        label = f"<{element.tag}>" if name is None else f"<{element.tag} name={name[:80]!r}>"
        return RobotError(f"{self.where}, line {element.line}, {label}", problem, hint)

    def unique(self, root: Element, tag: str) -> Iterator[Element]:
        """The elements of that tag, each with a name of its own."""
        seen: set[str] = set()
        for count, element in enumerate(root.all(tag)):
            if count >= MAX_BODIES:
                raise self.error(element, f"more than {MAX_BODIES} <{tag}> elements", "is this one robot?")
            name = element.attributes.get("name", "")
            if not name.strip() or not name.isprintable():
                raise self.error(element, "no usable name", f'write <{tag} name="...">')
            if name in seen:
                raise self.error(element, f"{tag} {name!r} appears twice", "rename or remove one of them")
            seen.add(name)
            yield element

    # --- links

    def link(self, element: Element) -> UrdfLink:
        inertial = self.only(element, "inertial")
        shapes = [self.geometry(child, collision=child.tag == "collision")
                  for child in element.children if child.tag in ("visual", "collision")]  # fmt: skip
        return UrdfLink(
            element.attributes["name"],
            None if inertial is None else self.inertial(inertial),
            tuple(shape for shape in shapes if shape is not None),
            element,
        )

    def inertial(self, element: Element) -> FloatArray:
        mass = self.only(element, "mass")
        if mass is None:
            raise self.error(element, "no <mass>", "add <mass value=.../> or remove the <inertial> element")
        moments = self.only(element, "inertia")
        six = [0.0] * 6
        if moments is not None:
            six = [self.attribute(moments, key, 0.0) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        xyz, rpy = self.origin(element)
        R = rotation_from_rpy(*rpy)
        return from_centre_of_mass(self.attribute(mass, "value"), np.array(xyz), R @ tensor(six) @ R.T)

    def geometry(self, element: Element, *, collision: bool) -> Geometry | None:
        holder = self.only(element, "geometry")
        if holder is None or not holder.children:
            return None
        shape = self.shape(holder.children[0])
        if shape is None:
            return None
        xyz, rpy = self.origin(element)
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = rotation_from_rpy(*rpy), xyz
        return Geometry(shape, T, collision)

    def shape(self, element: Element) -> Shape | None:
        if element.tag == "box":
            x, y, z = self.triple(element, "size")
            return Box((x, y, z))
        if element.tag == "sphere":
            return Sphere(self.attribute(element, "radius"))
        if element.tag in ("cylinder", "capsule"):
            kind = Cylinder if element.tag == "cylinder" else Capsule
            return kind(self.attribute(element, "radius"), self.attribute(element, "length"))
        if element.tag == "mesh":
            scale = self.triple(element, "scale") if "scale" in element.attributes else (1.0, 1.0, 1.0)
            return Mesh(element.attributes.get("filename", ""), scale)
        message = f"shape <{element.tag}> at line {element.line} is not known and left out"
        self.notes.append(Note("shape-unknown", Severity.WARNING, message))
        return None

    # --- joints

    def joint(self, element: Element) -> UrdfJoint:
        kind = element.attributes.get("type", "")
        if kind not in TYPES:
            near = get_close_matches(kind, TYPES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(TYPES)}"
            raise self.error(element, f"unknown joint type {kind[:40]!r}", hint)
        name = element.attributes["name"]
        xyz, rpy = self.origin(element, joint=name)
        dynamics, mimic = self.only(element, "dynamics"), self.only(element, "mimic")
        damping, friction = (
            0.0 if dynamics is None else self.attribute(dynamics, key, 0.0) for key in ("damping", "friction")
        )
        if min(damping, friction) < 0.0:
            raise self.error(element, f"damping {damping:g} or friction {friction:g} is negative")
        return UrdfJoint(
            name, kind, self.end(element, "parent"), self.end(element, "child"), xyz, rpy,
            self.axis(element) if kind in MOVING else (1.0, 0.0, 0.0),
            self.limits(element, kind) if kind in MOVING else Limits(),
            damping, friction, None if mimic is None else mimic.attributes.get("joint", "?"), element,
        )  # fmt: skip

    def end(self, element: Element, tag: str) -> str:
        child = self.only(element, tag)
        if child is None or not child.attributes.get("link"):
            raise self.error(element, f"no <{tag} link=...>", f"every joint names its {tag} link")
        return child.attributes["link"]

    def axis(self, element: Element) -> tuple[float, float, float]:
        child = self.only(element, "axis")
        if child is None or "xyz" not in child.attributes:
            return 1.0, 0.0, 0.0
        axis = np.array(self.triple(child, "xyz"))
        norm = float(np.linalg.norm(axis))
        if norm == 0.0:
            raise self.error(element, "axis is 0 0 0", "give the direction the joint turns about or slides along")
        if abs(norm - 1.0) > AXIS_TOLERANCE:
            unit = " ".join(f"{x:.9g}" for x in axis / norm)
            raise self.error(element, f"axis has length {norm:g}", f"make it a unit vector: {unit}")
        x, y, z = (float(value) for value in axis / norm)
        return x, y, z

    def limits(self, element: Element, kind: str) -> Limits:
        name = element.attributes["name"]
        child = self.only(element, "limit")
        if child is None:
            if kind != "continuous":
                self.note("limits-missing", f"{kind} joint {name!r} has no limits; none are assumed", name)
            return Limits()
        keys: tuple[str, ...] = ("lower", "upper")
        given = {key: self.attribute(child, key) for key in keys if key in child.attributes}
        values: dict[str, float] = given if kind != "continuous" else {}
        # The format's own default is 0; a joint locked at 0 would not be called moving.
        if values and values.get("lower", 0.0) == values.get("upper", 0.0):
            self.note("limits-empty", f"joint {name!r} has equal position limits; none are assumed", name)
            values = {}
        elif values:
            values = {"lower": 0.0, "upper": 0.0, **values}
            if values["lower"] > values["upper"]:
                problem = f"lower limit {values['lower']:g} is above upper limit {values['upper']:g}"
                raise self.error(element, problem, "swap them")
        for key, ours in (("velocity", "velocity"), ("effort", "torque")):
            value = self.attribute(child, key, 0.0)
            if value < 0.0:
                raise self.error(element, f"{key} limit {value:g} is negative", "give its magnitude")
            if value > 0.0:
                values[ours] = value
            elif key in child.attributes:
                self.note("limits-empty", f"joint {name!r} has {key} limit 0; none is assumed", name)
        # Exporters write 1e16 for "none".
        return Limits(**{key: value for key, value in values.items() if abs(value) < LARGEST})

    # --- attributes

    def only(self, element: Element, tag: str) -> Element | None:
        """The first such child; a second one is ignored by every URDF reader, which deserves a note."""
        found = element.all(tag)
        if len(found) > 1:
            name = element.attributes.get("name", "")
            self.note("element-twice", f"<{element.tag}> {name!r} has {len(found)} <{tag}>; the first one counts", name)
        return found[0] if found else None

    def origin(
        self, element: Element, joint: str | None = None
    ) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        child = self.only(element, "origin")
        if child is None:
            return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        zero = (0.0, 0.0, 0.0)
        xyz = self.triple(child, "xyz") if "xyz" in child.attributes else zero
        rpy = self.triple(child, "rpy") if "rpy" in child.attributes else zero
        if joint is not None and any(_nearly_right(angle) for angle in rpy):
            self.rounded.append(joint)
        return xyz, (exact_angle(rpy[0]), exact_angle(rpy[1]), exact_angle(rpy[2]))

    def triple(self, element: Element, key: str) -> tuple[float, float, float]:
        words = element.attributes.get(key, "").split()
        if len(words) != 3:
            comma = ": decimal points, not commas" if any("," in word for word in words) else ""
            raise self.error(
                element, f"{key}={element.attributes.get(key, '')[:60]!r}", f"expected three numbers{comma}"
            )
        x, y, z = (self.number(element, key, word) for word in words)
        return x, y, z

    def attribute(self, element: Element, key: str, default: float | None = None) -> float:
        if key not in element.attributes:
            if default is None:
                raise self.error(element, f"no attribute {key!r}", f'write {key}="..."')
            return default
        return self.number(element, key, element.attributes[key].strip())

    def number(self, element: Element, key: str, word: str) -> float:
        value = float(word) if _NUMBER.fullmatch(word) else None
        if value is None or not isfinite(value):
            raise self.error(element, f"{key} holds {word[:40]!r}, which is not a finite number", _number_hint(word))
        if abs(value) > LARGEST and element.tag != "limit":
            raise self.error(element, f"{key} holds {word[:40]!r}, more than {LARGEST:g}", "is this in SI units?")
        return value if abs(value) >= SMALLEST else 0.0

    def note(self, code: str, message: str, subject: str = "", severity: Severity = Severity.WARNING) -> None:
        self.notes.append(Note(code, severity, message, subject))

    def note_rounded(self) -> None:
        if self.rounded:
            which = ", ".join(self.rounded[:8]) + (", ..." if len(self.rounded) > 8 else "")
            message = f"origins of {which} are right angles rounded to a few digits; kept as written, not made exact"
            self.note("angle-rounded", message, severity=Severity.INFO)

    # --- the tree

    def check_references(self, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]) -> None:
        parents: dict[str, str] = {}
        for joint in joints.values():
            for role, link in (("parent", joint.parent), ("child", joint.child)):
                if link not in links:
                    near = get_close_matches(link, links, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else "add that <link>"
                    raise self.error(joint.element, f"{role} link {link[:80]!r} does not exist", hint)
            if joint.child in parents:
                problem = f"link {joint.child!r} is the child of {parents[joint.child]!r} too: a closed loop"
                raise self.error(joint.element, problem, "a URDF is a tree; remove one of the two joints")
            parents[joint.child] = joint.name
            if joint.mimic is not None and joint.mimic not in joints:
                raise self.error(joint.element, f"mimics {joint.mimic[:80]!r}, which does not exist")

    def find_root(self, element: Element, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]) -> str:
        children = {joint.child for joint in joints.values()}
        roots = [name for name in links if name not in children]
        if not roots:
            raise self.error(
                element, "every link is the child of some joint: a closed loop", "one link must be the root"
            )
        if len(roots) > 1:
            listed = ", ".join(repr(name) for name in roots[:6])
            raise self.error(element, f"{len(roots)} links without parent: {listed}", "connect them by fixed joints")
        reached, todo = {roots[0]}, [roots[0]]
        by_parent: dict[str, list[str]] = {}
        for joint in joints.values():
            by_parent.setdefault(joint.parent, []).append(joint.child)
        while todo:
            new = by_parent.get(todo.pop(), [])
            reached.update(new)
            todo += new
        lost = [name for name in links if name not in reached]
        if lost:
            raise self.error(element, f"link {lost[0]!r} is part of a closed loop", "one link must be the root")
        return roots[0]


def exact_angle(angle: float) -> float:
    """The multiple of pi/2 an angle is meant to be, when its text says so to nine digits; else the angle itself."""
    nearest = round(angle / (pi / 2)) * (pi / 2) if abs(angle) < 1e6 else angle
    return nearest if abs(angle - nearest) < RIGHT_ANGLE_TOLERANCE else angle


def _nearly_right(angle: float) -> bool:
    turns = angle / (pi / 2)
    off = abs(turns - round(turns)) * (pi / 2)
    return RIGHT_ANGLE_TOLERANCE <= off < NEAR_RIGHT_ANGLE and round(turns) != 0


def _number_hint(word: str) -> str:
    if re.fullmatch(r"[-+]?\d+,\d+", word):
        return f"write a decimal point: {word.replace(',', '.')}"
    if "${" in word or "$(" in word:
        return f"this is xacro: {XACRO_HINT}"
    if re.fullmatch(r"[^,]+,", word):
        return "separate numbers by spaces, without commas"
    return "write a plain decimal number"
