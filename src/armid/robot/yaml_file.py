"""The robot file of our own: YAML with Denavit-Hartenberg rows or chains of elementary transforms (docs/formats.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import radians

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.inertial import from_centre_of_mass, tensor
from armid.robot.amount import amount
from armid.robot.dh import Convention, Row, transforms
from armid.robot.document import Field, document
from armid.robot.elementary import Elementary, Move, from_matrix, rotation_from_rpy
from armid.robot.inertial_notes import inertial_notes
from armid.robot.robot import (
    STANDARD_GRAVITY,
    Drive,
    Frame,
    Joint,
    JointKind,
    Limits,
    Link,
    Robot,
    Source,
)
from armid.robot.shapes import read_geometry, read_pose
from armid.robot.symbols import Symbols
from armid.robot.yaml_write import FORMAT, to_yaml

__all__ = ["FORMAT", "parse_yaml", "to_yaml"]

_TOP = ("format", "name", "description", "lengths", "gravity", "mounting", "base", "joints", "frames", "coupling")
_JOINT = ("name", "type", "dh", "mdh", "chain", "link", "limits", "drive", "inertial", "geometry")
_LIMITS = ("lower", "upper", "position", "velocity", "acceleration", "jerk", "torque")
_ANGULAR = ("lower", "upper", "position", "velocity", "acceleration", "jerk")
_DRIVE = ("rotor_inertia", "viscous", "coulomb", "offset", "gear_ratio", "stiffness", "damping", "sensed_friction")
_NOT_NEGATIVE = ("rotor_inertia", "viscous", "coulomb", "stiffness", "damping")
_ELEMENT = re.compile(r"\s*(T[xyz]|R[xyz])\s*\((.*)\)\s*")
_SYMBOL = re.compile(r"[A-Za-z_]\w*")
_RESERVED = ("q", "pi")


def parse_yaml(text: str, where: str = "robot", *, source: Source | None = None) -> Robot:
    """Read a robot from the text of a YAML file.

    Args:
        text: the file's content.
        where: its name, for messages.
        source: provenance to keep in the robot.

    Raises:
        RobotError: naming the field, what is wrong with it and what was expected.
    """
    top = Field(document(text, where), f"{where}:").keys(_TOP, required=("format", "name", "joints"))
    top["format"].choice((FORMAT,))
    names = _lengths(top["lengths"]) if "lengths" in top else {}
    fields = {key: value.with_names(names) for key, value in top.items()}
    symbols = Symbols(names)
    entries = fields["joints"].items()
    parts = [_joint_and_link(entry, i, symbols) for i, entry in enumerate(entries)]
    joints, links = tuple(joint for joint, _ in parts), tuple(link for _, link in parts)
    base = _base(fields.get("base"))
    remark = fields["description"].text() if "description" in fields else ""
    given = source or Source(path=where)
    return Robot(
        name=fields["name"].name(),
        joints=joints,
        links=links,
        frames=_frames(fields.get("frames"), (base.name, *(link.name for link in links))),
        gravity=_gravity(fields.get("gravity"), fields.get("mounting")),
        coupling=_coupling(fields.get("coupling"), len(joints)),
        base=base.name,
        geometry=base.geometry,
        source=Source(given.path, given.sha256, given.remark or remark),
        notes=tuple(note for link in links for note in inertial_notes(link.name, link.inertial)),
    )


def _lengths(table: Field) -> dict[str, float]:
    """Names and values; later entries may use earlier ones."""
    names: dict[str, float] = {}
    if not isinstance(table.value, dict):
        raise table.error("lengths is not a mapping", "expected e.g. {d1: 0.333, d3: 0.316}")
    for name, value in table.value.items():
        entry = Field(value, f"{table.where}.{name}", names)
        if _SYMBOL.fullmatch(name) is None or name in _RESERVED:
            raise entry.error(f"{name!r} cannot name a length", "letters, digits and _ only; q and pi are taken")
        names[name] = entry.number()
    return names


def _joint_and_link(entry: Field, index: int, symbols: Symbols) -> tuple[Joint, Link]:
    fields = entry.keys(_JOINT, required=("name",))
    kind_text = fields["type"].choice(("revolute", "continuous", "prismatic")) if "type" in fields else "revolute"
    kind = JointKind.PRISMATIC if kind_text == "prismatic" else JointKind.REVOLUTE
    name = fields["name"].name()
    joint = Joint(
        name=name,
        kind=kind,
        transforms=_transforms(entry, fields, kind, index + 1, symbols),
        limits=_limits(fields["limits"], kind_text) if "limits" in fields else Limits(),
        drive=_drive(fields["drive"]) if "drive" in fields else Drive(),
    )
    link = Link(
        name=fields["link"].name() if "link" in fields else f"link{index + 1}",
        inertial=_inertial(fields["inertial"]) if "inertial" in fields else None,
        geometry=read_geometry(fields["geometry"]) if "geometry" in fields else (),
        suspect="inertial" in fields and _suspect(fields["inertial"]),
    )
    return joint, link


def _transforms(
    entry: Field, fields: Mapping[str, Field], kind: JointKind, number: int, symbols: Symbols
) -> tuple[Elementary, ...]:
    given = [key for key in ("dh", "mdh", "chain") if key in fields]
    if len(given) != 1:
        raise entry.error(f"{len(given)} of the keys dh, mdh, chain", "give exactly one")
    if given[0] == "chain":
        return _chain(fields["chain"], number, symbols, kind)
    return _dh(fields[given[0]], Convention(given[0]), kind, number, symbols)


def _dh(
    field: Field, convention: Convention, kind: JointKind | None, number: int | None, symbols: Symbols
) -> tuple[Elementary, ...]:
    fields = field.keys(("alpha", "alpha_deg", "a", "d", "theta", "theta_deg", "sign"))
    sign = int(fields["sign"].choice(("1", "+1", "-1"))) if "sign" in fields else 1
    lengths = {
        key: amount(fields[key].text(), fields[key].where, names=field.names) for key in ("a", "d") if key in fields
    }
    row = Row(
        alpha=_angle(fields, "alpha"),
        a=lengths["a"].constant if "a" in lengths else 0.0,
        d=lengths["d"].constant if "d" in lengths else 0.0,
        theta=_angle(fields, "theta"),
        a_symbol=symbols.name(lengths["a"], None if number is None else f"a{number}") if "a" in lengths else None,
        d_symbol=symbols.name(lengths["d"], None if number is None else f"d{number}") if "d" in lengths else None,
        sign=sign,
    )
    return transforms(row, convention, kind)


def _angle(fields: Mapping[str, Field], key: str) -> float:
    """An angle [rad] given as `key` or `key_deg`."""
    if key in fields and f"{key}_deg" in fields:
        raise fields[key].error(f"both {key} and {key}_deg", "give one")
    if f"{key}_deg" in fields:
        return _degrees(fields[f"{key}_deg"])
    return fields[key].number() if key in fields else 0.0


def _degrees(field: Field) -> float:
    return radians(field.number())


def _chain(field: Field, number: int | None, symbols: Symbols, kind: JointKind | None) -> tuple[Elementary, ...]:
    """`[Tz(d1), Rz(q + pi/2), Rx(pi/2)]`; with a kind exactly one element holds q, without none."""
    elements = tuple(_element(item, number, symbols, variable=kind is not None) for item in field.items())
    count = sum(element.variable for element in elements)
    if kind is not None and count != 1:
        raise field.error(f"{count} elements hold the joint variable q", "exactly one is needed, e.g. Rz(q)")
    for item, element in zip(field.items(), elements, strict=True):
        if element.variable and element.motion.is_rotation != (kind is JointKind.REVOLUTE):
            other = "prismatic" if kind is JointKind.REVOLUTE else "revolute"
            raise item.error(f"a {kind} joint whose variable is {element.motion}", f"or is the joint {other}?")
    return elements


def _element(item: Field, number: int | None, symbols: Symbols, *, variable: bool) -> Elementary:
    match = _ELEMENT.fullmatch(item.text())
    if match is None:
        raise item.error(
            f"{item.text()[:60]!r} is not an elementary transform", "expected e.g. Tz(0.3), Rx(pi/2), Rz(q)"
        )
    motion = Move(match.group(1))
    value = amount(match.group(2), item.where, names=item.names, variable=variable)
    if value.slope == 0.0:
        automatic = None if motion.is_rotation or number is None else f"d{number}{motion.value[1]}"
        return Elementary(motion=motion, value=value.constant, symbol=symbols.name(value, automatic))
    if abs(value.slope) != 1.0:
        raise item.error(
            f"the joint variable is multiplied by {value.slope:g}", "only q and -q; use coupling for gears"
        )
    return Elementary(motion=motion, value=value.constant, variable=True, sign=int(value.slope))


def _limits(field: Field, kind: str) -> Limits:
    allowed = _LIMITS if kind == "prismatic" else (*_LIMITS, *(f"{key}_deg" for key in _ANGULAR))
    fields = field.keys(allowed)
    for name in ("position", "position_deg"):
        if name in fields and isinstance(fields[name].value, list):
            fields = _with_range(fields, name)
    values: dict[str, float] = {}
    for key in _LIMITS:
        if key in fields and f"{key}_deg" in fields:
            raise field.error(f"both {key} and {key}_deg", "give one")
        if key in fields:
            values[key] = fields[key].number()
        elif f"{key}_deg" in fields:
            values[key] = _degrees(fields[f"{key}_deg"])
    if "position" in values:
        if "lower" in values or "upper" in values:
            raise field.error("position together with lower or upper", "position: p means lower: -p and upper: p")
        values["upper"] = values.pop("position")
        values["lower"] = -values["upper"]
    return _checked_limits(values, kind, field)


def _with_range(fields: dict[str, Field], name: str) -> dict[str, Field]:
    """Limits with `position: [lower, upper]`, angles also in degrees, written out as `lower` and `upper`."""
    ends = fields[name].items()
    if len(ends) != 2:
        raise fields[name].error(f"{len(ends)} numbers", "expected one p for -p to p, or [lower, upper]")
    unit = name.removeprefix("position")
    others = {key: value for key, value in fields.items() if key != name}
    taken = sorted({f"{end}{suffix}" for end in ("lower", "upper") for suffix in ("", "_deg")} & set(others))
    if taken:
        raise fields[name].error(f"{name} together with {taken[0]}", "give one")
    return {**others, f"lower{unit}": ends[0], f"upper{unit}": ends[1]}


def _checked_limits(values: Mapping[str, float], kind: str, field: Field) -> Limits:
    """Limits that make sense: in order, positive, and none on the position of a continuous joint."""
    limits = Limits(**values)
    if limits.lower >= limits.upper:
        raise field.error(f"lower limit {limits.lower:g} is not below upper limit {limits.upper:g}", "swap them?")
    for key in ("velocity", "acceleration", "jerk", "torque"):
        if getattr(limits, key) <= 0.0:
            raise field.error(f"{key} limit {getattr(limits, key):g} is not positive", "give its magnitude")
    if kind == "continuous" and ("lower" in values or "upper" in values):
        raise field.error("a continuous joint with position limits", "make it revolute, or leave the limits out")
    return limits


def _drive(field: Field) -> Drive:
    values = {key: value.number() for key, value in field.keys(_DRIVE).items()}
    for key in _NOT_NEGATIVE:
        if values.get(key, 0.0) < 0.0:
            raise field.error(f"{key} {values[key]:g} is negative")
    if values.get("gear_ratio", 1.0) == 0.0:
        raise field.error("gear_ratio is zero", "motor turns per joint turn")
    if not 0.0 <= values.get("sensed_friction", 1.0) <= 1.0:
        raise field.error(f"sensed_friction {values['sensed_friction']:g}", "a share of friction between 0 and 1")
    return Drive(**values)


def _inertial(field: Field) -> FloatArray:
    """Ten standard parameters, either given so or from mass, centre of mass and the inertia about it."""
    fields = field.keys(("standard", "mass", "com", "inertia_at_com", "rpy", "rpy_deg", "suspect"))
    if "standard" in fields:
        if set(fields) - {"standard", "suspect"}:
            raise field.error("standard together with other keys", "standard: [...] says everything")
        return fields["standard"].vector(10)
    for key in ("mass", "com", "inertia_at_com"):
        if key not in fields:
            raise field.error(f"key {key!r} is missing", "give mass, com and inertia_at_com, or standard")
    I = tensor(fields["inertia_at_com"].vector(6))
    R = _rotation(fields)
    return from_centre_of_mass(fields["mass"].number(), fields["com"].vector(3), R @ I @ R.T)


def _suspect(field: Field) -> bool:
    """Whether the file marks these values as not to be trusted."""
    return "suspect" in field.value and Field(field.value["suspect"], f"{field.where}.suspect").flag()


def _rotation(fields: Mapping[str, Field]) -> FloatArray:
    return read_pose({key: value for key, value in fields.items() if key in ("rpy", "rpy_deg")})[:3, :3]


def _gravity(gravity: Field | None, mounting: Field | None) -> FloatArray:
    """Gravity in the base frame: a vector, or a magnitude and how the base stands in a world with z up."""
    if gravity is not None and isinstance(gravity.value, list):
        if mounting is not None:
            raise gravity.error(
                "a gravity vector together with mounting", "a vector is already in the base frame: give one"
            )
        return gravity.vector(3)
    magnitude = STANDARD_GRAVITY if gravity is None else gravity.number()
    if magnitude < 0.0:
        raise (gravity or mounting).error(f"gravity {magnitude:g} is negative", "give its magnitude")  # type: ignore[union-attr]
    return _mounting(mounting).T @ np.array([0.0, 0.0, -magnitude])


def _mounting(field: Field | None) -> FloatArray:
    if field is None:
        return np.eye(3)
    if isinstance(field.value, str):
        choice = field.choice(("upright", "upside-down"))
        return np.eye(3) if choice == "upright" else rotation_from_rpy(np.pi, 0.0, 0.0)
    return _rotation(field.keys(("rpy", "rpy_deg")))


def _base(field: Field | None) -> Link:
    if field is None:
        return Link("base")
    fields = field.keys(("name", "geometry"))
    return Link(
        fields["name"].name() if "name" in fields else "base",
        geometry=read_geometry(fields["geometry"]) if "geometry" in fields else (),
    )


def _frames(field: Field | None, links: tuple[str, ...]) -> tuple[Frame, ...]:
    if field is None:
        return ()
    out = []
    for entry in field.items():
        fields = entry.keys(("name", "link", "chain", "mdh", "dh", "xyz", "rpy", "rpy_deg"), required=("name",))
        link = links.index(fields["link"].choice(links)) if "link" in fields else len(links) - 1
        out.append(Frame(fields["name"].name(), link, _frame_transforms(entry, fields)))
    return tuple(out)


def _frame_transforms(entry: Field, fields: Mapping[str, Field]) -> tuple[Elementary, ...]:
    given = [key for key in ("chain", "mdh", "dh") if key in fields]
    posed = [key for key in ("xyz", "rpy", "rpy_deg") if key in fields]
    if len(given) + bool(posed) > 1:
        raise entry.error(f"{' and '.join(given + posed)} together", "give a chain, a row or a pose")
    symbols = Symbols(entry.names)
    if given == ["chain"]:
        return _chain(fields["chain"], None, symbols, None)
    if given:
        return _dh(fields[given[0]], Convention(given[0]), None, None, symbols)
    return from_matrix(read_pose({key: fields[key] for key in posed}))


def _coupling(field: Field | None, n: int) -> FloatArray | None:
    if field is None:
        return None
    rows = field.items()
    if len(rows) != n:
        raise field.error(f"{len(rows)} rows", f"expected {n}, one per joint")
    return np.array([row.vector(n) for row in rows])
