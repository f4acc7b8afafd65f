"""Rotor inertia in a URDF: Drake's tags inside the actuator of a transmission, the only place widely read for it."""

from __future__ import annotations

from collections.abc import Iterator

from armid.robot.robot import Robot
from armid.robot.urdf.quoting import quoteattr
from armid.robot.urdf.xml_edit import Edits
from armid.robot.urdf.xml_tree import XmlElement, parse_xml

ROTOR_INERTIA = "drake:rotor_inertia"
GEAR_RATIO = "drake:gear_ratio"

_NAMESPACE = ("xmlns:drake", "http://drake.mit.edu")


def actuators(root: XmlElement) -> Iterator[tuple[str, XmlElement]]:
    """Joint and actuator of every transmission that has one of each; others say nothing about a single rotor."""
    for transmission in root.all("transmission"):
        joints, own = list(transmission.all("joint")), list(transmission.all("actuator"))
        if len(joints) == 1 and len(own) == 1 and joints[0].attributes.get("name"):
            yield joints[0].attributes["name"], own[0]


def with_rotors(text: str, robot: Robot, where: str = "robot.urdf") -> str:
    """The text of a URDF with the robot's reflected rotor inertias in Drake's tags.

    A joint's own transmission gets the tags (gear ratio 1: the inertia is that at the joint); a joint without one gets a simple
    transmission. Joints whose tags already say the same keep them.

    Args:
        text: of the file.
        robot: its arm, with rotor inertias.
        where: the file's name, for messages.
    """
    root = parse_xml(text, where)
    known, edits, written = dict(actuators(root)), Edits(text), False
    for joint in reversed(robot.joints):  # what is appended last stands first
        inertia, actuator = joint.drive.rotor_inertia, known.get(joint.name)
        if actuator is not None:
            written |= _set(edits, actuator, inertia)
        elif inertia > 0.0:
            edits.append(root, _transmission(joint.name, inertia))
            written = True
    if written and _NAMESPACE[0] not in root.attributes:
        edits.set(root, *_NAMESPACE)
    return edits.apply() if written else text


def _set(edits: Edits, actuator: XmlElement, inertia: float) -> bool:
    """Tags of an actuator that is there; whether anything had to be written."""
    value, gear = actuator.first(ROTOR_INERTIA), actuator.first(GEAR_RATIO)
    if value is None:
        if inertia > 0.0:
            lines = [f'<{ROTOR_INERTIA} value="{inertia!r}"/>']
            lines += [] if gear is not None else [f'<{GEAR_RATIO} value="1"/>']
            edits.add(actuator, lines)
            if gear is not None:
                edits.set(gear, "value", "1")
        return inertia > 0.0
    edits.set(value, "value", repr(inertia))
    if gear is not None:
        edits.set(gear, "value", "1")
    return True


def _transmission(joint: str, inertia: float) -> list[str]:
    return [
        f"<transmission name={quoteattr(joint + '_rotor')}>",
        "  <type>transmission_interface/SimpleTransmission</type>",
        f"  <joint name={quoteattr(joint)}>",
        "    <hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>",
        "  </joint>",
        f"  <actuator name={quoteattr(joint + '_motor')}>",
        f'    <{ROTOR_INERTIA} value="{inertia!r}"/>',
        f'    <{GEAR_RATIO} value="1"/>',
        "  </actuator>",
        "</transmission>",
    ]
