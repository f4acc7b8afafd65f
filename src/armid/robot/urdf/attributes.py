"""Numbers in the attributes of URDF elements: read strictly, with errors that name file, line and element."""

from __future__ import annotations

import re
from math import isfinite, pi

from armid.errors import RobotError
from armid.notes import Note, Severity
from armid.robot.amount import LARGEST, SMALLEST
from armid.robot.exact_angles import is_rounded
from armid.robot.urdf.xml_tree import XmlElement

_RIGHT_ANGLE_TOLERANCE = 1e-9
"""[rad] Decimal text with nine or more digits of pi/2 means pi/2; a nanometre at a metre is no one's calibration."""

XACRO_HINT = "expand it first with `xacro robot.xacro > robot.urdf`"

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)


class Attributes:
    """Reads attributes of one file's elements and keeps what was odd about them.

    Args:
        where: the file's name, for messages.

    Attributes:
        notes: what was odd but readable.
        rounded: joints whose origins are right or half-right angles with a few digits.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.notes: list[Note] = []
        self.rounded: list[str] = []

    def error(self, element: XmlElement, problem: str, hint: str = "") -> RobotError:
        name = element.attributes.get("name")
        label = f"<{element.tag}>" if name is None else f"<{element.tag} name={name[:80]!r}>"
        return RobotError(f"{self.where}, line {element.line}, {label}", problem, hint)

    def only(self, element: XmlElement, tag: str) -> XmlElement | None:
        """The first such child; a second one is ignored by every URDF reader, which deserves a note."""
        found = element.all(tag)
        if len(found) > 1:
            name = element.attributes.get("name", "")
            self.note("element-twice", f"<{element.tag}> {name!r} has {len(found)} <{tag}>; the first one counts", name)
        return found[0] if found else None

    def origin(
        self, element: XmlElement, joint: str | None = None
    ) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        child = self.only(element, "origin")
        if child is None:
            return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        zero = (0.0, 0.0, 0.0)
        xyz = self.triple(child, "xyz") if "xyz" in child.attributes else zero
        rpy = self.triple(child, "rpy") if "rpy" in child.attributes else zero
        if joint is not None and any(is_rounded(exact_angle(angle)) for angle in rpy):
            self.rounded.append(joint)
        return xyz, (exact_angle(rpy[0]), exact_angle(rpy[1]), exact_angle(rpy[2]))

    def triple(self, element: XmlElement, key: str) -> tuple[float, float, float]:
        words = element.attributes.get(key, "").split()
        if len(words) != 3:
            comma = ": decimal points, not commas" if any("," in word for word in words) else ""
            raise self.error(
                element, f"{key}={element.attributes.get(key, '')[:60]!r}", f"expected three numbers{comma}"
            )
        x, y, z = (self.number(element, key, word) for word in words)
        return x, y, z

    def attribute(self, element: XmlElement, key: str, default: float | None = None) -> float:
        if key not in element.attributes:
            if default is None:
                raise self.error(element, f"no attribute {key!r}", f'write {key}="..."')
            return default
        return self.number(element, key, element.attributes[key].strip())

    def size(self, element: XmlElement, key: str) -> float:
        """A length that is not negative."""
        value = self.attribute(element, key)
        if value < 0.0:
            raise self.error(element, f"{key} is {value:g}", "no body has a negative size")
        return value

    def number(self, element: XmlElement, key: str, word: str) -> float:
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
            message = (
                f"origins of {which} are right or half-right angles rounded to a few digits; kept as written for positions and "
                "torques, taken as exact for what is identifiable"
            )
            self.note("angle-rounded", message, severity=Severity.INFO)


def exact_angle(angle: float) -> float:
    """The multiple of pi/2 an angle is meant to be, when its text says so to nine digits; else the angle itself."""
    nearest = round(angle / (pi / 2)) * (pi / 2) if abs(angle) < 1e6 else angle
    return nearest if abs(angle - nearest) < _RIGHT_ANGLE_TOLERANCE else angle


def _number_hint(word: str) -> str:
    if re.fullmatch(r"[-+]?\d+,\d+", word):
        return f"write a decimal point: {word.replace(',', '.')}"
    if "${" in word or "$(" in word:
        return f"this is xacro: {XACRO_HINT}"
    if re.fullmatch(r"[^,]+,", word):
        return "separate numbers by spaces, without commas"
    return "write a plain decimal number"
