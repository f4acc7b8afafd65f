"""From the text of a URDF file to checked links and joints that form a tree."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from math import pi

import numpy as np

from armid.arrays import FloatArray
from armid.notes import Note, Severity
from armid.parameters.inertial import from_centre_of_mass, tensor
from armid.robot.amount import LARGEST
from armid.robot.elementary import rotation_from_rpy
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Shape, Sphere
from armid.robot.robot import Limits
from armid.robot.urdf.attributes import XACRO_HINT, Attributes
from armid.robot.urdf.rotors import GEAR_RATIO, ROTOR_INERTIA, actuators
from armid.robot.urdf.tree import MOVING, TYPES, Urdf, UrdfJoint, UrdfLink
from armid.robot.urdf.xml_tree import XmlElement, parse_xml

_AXIS_TOLERANCE = 1e-3
"""How far from 1 the norm of a joint axis may be: three decimals of a unit vector."""


_MAX_BODIES = 2000
"""Links, and joints; a humanoid has about a hundred. Bounds the time a hostile file can take."""


def read_urdf(text: str, where: str) -> Urdf:
    """Read and check every link and joint.

    Raises:
        RobotError: naming file, line, element and fix.
    """
    return _Reader(where).read(parse_xml(text, where))


class _Reader(Attributes):
    """Reads the elements of one file."""

    def read(self, root: XmlElement) -> Urdf:
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
        implied = _implied_world(links, joints)
        links |= implied
        _check_references(self, links, joints)
        self.note_rounded()
        return Urdf(
            name=name,
            links=links,
            joints=joints,
            root=_find_root(self, root, links, joints),
            element=root,
            notes=tuple(self.notes),
            rotors=self.rotors(root),
            implied=tuple(implied),
        )

    def rotors(self, root: XmlElement) -> dict[str, float]:
        """Reflected rotor inertia by joint, from Drake's tags: rotor inertia times the gear ratio squared."""
        found: dict[str, float] = {}
        for joint, actuator in actuators(root):
            inertia, gear = actuator.first(ROTOR_INERTIA), actuator.first(GEAR_RATIO)
            if inertia is None:
                continue
            ratio = 1.0 if gear is None else self.attribute(gear, "value")
            found[joint] = self.attribute(inertia, "value") * ratio**2
            if found[joint] < 0.0:
                raise self.error(inertia, f"rotor inertia {found[joint]:g} is negative")
        return found

    def unique(self, root: XmlElement, tag: str) -> Iterator[XmlElement]:
        """The elements of that tag, each with a name of its own."""
        seen: set[str] = set()
        for count, element in enumerate(root.all(tag)):
            if count >= _MAX_BODIES:
                raise self.error(element, f"more than {_MAX_BODIES} <{tag}> elements", "is this one robot?")
            name = element.attributes.get("name", "")
            if not name.strip() or not name.isprintable():
                raise self.error(element, "no usable name", f'write <{tag} name="...">')
            if name in seen:
                raise self.error(element, f"{tag} {name!r} appears twice", "rename or remove one of them")
            seen.add(name)
            yield element

    # --- links

    def link(self, element: XmlElement) -> UrdfLink:
        inertial = self.only(element, "inertial")
        shapes = [
            self.geometry(child, collision=child.tag == "collision")
            for child in element.children
            if child.tag in ("visual", "collision")
        ]
        return UrdfLink(
            element.attributes["name"],
            None if inertial is None else self.inertial(inertial),
            tuple(shape for shape in shapes if shape is not None),
            element,
        )

    def inertial(self, element: XmlElement) -> FloatArray:
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

    def geometry(self, element: XmlElement, *, collision: bool) -> Geometry | None:
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

    def shape(self, element: XmlElement) -> Shape | None:
        if element.tag == "box":
            x, y, z = self.triple(element, "size")
            if min(x, y, z) < 0.0:
                raise self.error(element, f"size is {x:g} {y:g} {z:g}", "no body has a negative size")
            return Box((x, y, z))
        if element.tag == "sphere":
            return Sphere(self.size(element, "radius"))
        if element.tag in ("cylinder", "capsule"):
            kind = Cylinder if element.tag == "cylinder" else Capsule
            return kind(self.size(element, "radius"), self.size(element, "length"))
        if element.tag == "mesh":
            scale = self.triple(element, "scale") if "scale" in element.attributes else (1.0, 1.0, 1.0)
            if 0.0 in scale:
                raise self.error(
                    element, f"scale is {' '.join(f'{s:g}' for s in scale)}", "a scale of zero has no shape"
                )
            return Mesh(element.attributes.get("filename", ""), scale)
        message = f"shape <{element.tag}> at line {element.line} is not known and left out"
        self.notes.append(Note("shape-unknown", Severity.WARNING, message))
        return None

    # --- joints

    def joint(self, element: XmlElement) -> UrdfJoint:
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
            name=name,
            kind=kind,
            parent=self.end(element, "parent"),
            child=self.end(element, "child"),
            xyz=xyz,
            rpy=rpy,
            axis=self.axis(element) if kind in MOVING else (1.0, 0.0, 0.0),
            limits=self.limits(element, kind) if kind in MOVING else Limits(),
            damping=damping,
            friction=friction,
            mimic=None if mimic is None else mimic.attributes.get("joint", "?"),
            element=element,
        )

    def end(self, element: XmlElement, tag: str) -> str:
        child = self.only(element, tag)
        if child is None or not child.attributes.get("link"):
            raise self.error(element, f"no <{tag} link=...>", f"every joint names its {tag} link")
        return child.attributes["link"]

    def axis(self, element: XmlElement) -> tuple[float, float, float]:
        child = self.only(element, "axis")
        if child is None or "xyz" not in child.attributes:
            return 1.0, 0.0, 0.0
        axis = np.array(self.triple(child, "xyz"))
        norm = float(np.linalg.norm(axis))
        if norm == 0.0:
            raise self.error(element, "axis is 0 0 0", "give the direction the joint turns about or slides along")
        if abs(norm - 1.0) > _AXIS_TOLERANCE:
            unit = " ".join(f"{x:.9g}" for x in axis / norm)
            raise self.error(element, f"axis has length {norm:g}", f"make it a unit vector: {unit}")
        x, y, z = (float(value) for value in axis / norm)
        return x, y, z

    def limits(self, element: XmlElement, kind: str) -> Limits:
        name = element.attributes["name"]
        child = self.only(element, "limit")
        if child is None:
            if kind != "continuous":
                self.note("limits-missing", f"{kind} joint {name!r} has no limits; none are assumed", name)
            return Limits()
        keys: tuple[str, ...] = ("lower", "upper")
        given = {key: self.attribute(child, key) for key in keys if key in child.attributes}
        values: dict[str, float] = given if kind != "continuous" else {}
        # The format's own default is 0: both zero says nothing, any other angle is a joint held there.
        if values and values.get("lower", 0.0) == values.get("upper", 0.0) == 0.0:
            self.note("limits-empty", f"joint {name!r} has equal position limits; none are assumed", name)
            values = {}
        elif values:
            values = {"lower": 0.0, "upper": 0.0, **values}
            if values["lower"] > values["upper"]:
                problem = f"lower limit {values['lower']:g} is above upper limit {values['upper']:g}"
                raise self.error(element, problem, "swap them")
        values = self._meant_angles(name, kind, values)
        for key, ours in (("velocity", "velocity"), ("effort", "torque")):
            value = self.attribute(child, key, 0.0)
            if value < 0.0:
                raise self.error(element, f"{key} limit {value:g} is negative", "give its magnitude")
            most = _FASTEST if key == "velocity" else _STRONGEST if kind != "prismatic" else LARGEST
            if most < value < LARGEST:
                self._note_placeholder(name, f"{key} limit {value:g}")
            elif value > 0.0:
                values[ours] = value
            elif key in child.attributes:
                self.note("limits-empty", f"joint {name!r} has {key} limit 0; none is assumed", name)
        # Exporters write 1e16 for "none".
        return Limits(**{key: value for key, value in values.items() if abs(value) < LARGEST})

    def _note_placeholder(self, name: str, what: str) -> None:
        text = f"joint {name!r} has {what}, which no arm has: taken as none (state yours with --limits-file)"
        self.note("limits-placeholder", text, name)

    def _meant_angles(self, name: str, kind: str, limits: dict[str, float]) -> dict[str, float]:
        """Position limits as they can be meant: asked about where they can be degrees, none where no unit makes sense."""
        largest = max(map(abs, limits.values()), default=0.0)
        unit, beyond = ("rad", 360.0 * _MOST_TURNS) if kind == "revolute" else ("m", _LONGEST_SLIDE)
        if beyond < largest < LARGEST:
            self._note_placeholder(name, f"position limits of {largest:g} {unit}")
            return {}
        turns = largest / (2.0 * pi)
        if kind == "revolute" and turns > _MOST_TURNS and largest < LARGEST:
            text = f"joint {name!r} has position limits of {largest:g} rad, {turns:.0f} turns: are they degrees?"
            self.note("limits-degrees", f"{text} (URDF has radians; --limits-file states narrower ones)", name)
        return limits


_MOST_TURNS = 4
"""To either side that joints of arms have, with cables led through them; beyond as many in degrees they say none."""
_FASTEST = 80.0
"""[rad/s or m/s] Beyond it a velocity limit says none: of 3,349 in 232 public descriptions the fastest in earnest is 60; then
come 100, 1000 and 10000, 304 of them."""
_STRONGEST = 40_000.0
"""[N m] Beyond it an effort limit says none: arms that lift a tonne need 30,000, placeholders begin at 50,000."""
_LONGEST_SLIDE = 1000.0
"""Travel of a slide [m] beyond which its limits are a way of saying none."""


_WORLD = "world"
"""Parent that Drake's descriptions name without a <link> of that name."""


def _implied_world(links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]) -> dict[str, UrdfLink]:
    """The world as a link without a body, where joints hang on it and the file has none of that name."""
    hanging = [joint for joint in joints.values() if joint.parent == _WORLD]
    if _WORLD in links or not hanging:
        return {}
    return {_WORLD: UrdfLink(_WORLD, None, (), hanging[0].element)}


def _check_references(read: Attributes, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]) -> None:
    parents: dict[str, str] = {}
    for joint in joints.values():
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                near = get_close_matches(link, links, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "add that <link>"
                raise read.error(joint.element, f"{role} link {link[:80]!r} does not exist", hint)
        if joint.child in parents:
            problem = f"link {joint.child!r} is the child of {parents[joint.child]!r} too: a closed loop"
            raise read.error(joint.element, problem, "a URDF is a tree; remove one of the two joints")
        parents[joint.child] = joint.name
        if joint.mimic is not None and joint.mimic not in joints:
            text = f"joint {joint.name!r} mimics {joint.mimic[:80]!r}, which does not exist; it is held at zero"
            read.note("mimic-unknown", text, joint.name)


def _find_root(read: Attributes, element: XmlElement, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]) -> str:
    children = {joint.child for joint in joints.values()}
    roots = [name for name in links if name not in children]
    if not roots:
        raise read.error(element, "every link is the child of some joint: a closed loop", "one link must be the root")
    if len(roots) > 1:
        listed = ", ".join(repr(name) for name in roots[:6])
        raise read.error(element, f"{len(roots)} links without parent: {listed}", "connect them by fixed joints")
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
        raise read.error(element, f"link {lost[0]!r} is part of a closed loop", "one link must be the root")
    return roots[0]
