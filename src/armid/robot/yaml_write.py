"""A robot as the text of our YAML file; what `parse_yaml` reads back is the same arm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from math import isfinite, pi

from armid.arrays import FloatArray
from armid.robot.dh import row_of
from armid.robot.elementary import Elementary, rpy
from armid.robot.geometry import Box, Geometry, Mesh, Sphere
from armid.robot.robot import Drive, Frame, Joint, JointKind, Limits, Link, Robot

FORMAT = "armid-robot/1"

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def to_yaml(robot: Robot) -> str:
    """The text of a robot file (docs/formats.md): exact numbers, named lengths, rows where the chain is one."""
    lengths = _lengths(robot)
    lines = [f"format: {FORMAT}", f"name: {_text(robot.name)}"]
    if robot.source.remark:
        lines.append(f"description: {_text(robot.source.remark)}")
    if lengths:
        lines.append(f"lengths: {_mapping({name: _number(value) for name, value in lengths.items()})}")
    lines.append(f"gravity: {_vector(robot.gravity)}")
    if robot.coupling is not None:
        lines += ["coupling:", *(f"  - {_vector(row)}" for row in robot.coupling)]
    lines += ["base:", f"  name: {_text(robot.base)}", *_geometry(robot.geometry, "  "), "joints:"]
    for joint, link in zip(robot.joints, robot.links, strict=True):
        lines += _joint(joint, link, lengths)
    if robot.frames:
        lines += ["frames:", *(_frame(frame, robot, lengths) for frame in robot.frames)]
    return "\n".join(lines) + "\n"


def _elements(robot: Robot) -> Iterator[Elementary]:
    for joint in robot.joints:
        yield from joint.transforms
    for frame in robot.frames:
        yield from frame.transforms


def _lengths(robot: Robot) -> dict[str, float]:
    """Names and values of the constants; a name that means two values in different places is used for the first."""
    out: dict[str, float] = {}
    for element in _elements(robot):
        if element.symbol is not None and not element.variable:
            out.setdefault(element.symbol, element.value)
    return out


def _joint(joint: Joint, link: Link, lengths: Mapping[str, float]) -> list[str]:
    lines = [f"  - name: {_text(joint.name)}", f"    link: {_text(link.name)}"]
    if joint.kind is JointKind.PRISMATIC:
        lines.append("    type: prismatic")
    lines.append(f"    {_transforms(joint.transforms, lengths)}")
    for key, value, default in (("limits", joint.limits, Limits()), ("drive", joint.drive, Drive())):
        changed = _changed(value, default)
        if changed:
            lines.append(f"    {key}: {_mapping(changed)}")
    if link.inertial is not None:
        mark = ", suspect: true" if link.suspect else ""
        lines.append(f"    inertial: {{standard: {_vector(link.inertial)}{mark}}}")
    return lines + _geometry(link.geometry, "    ")


def _changed(value: Limits | Drive, default: Limits | Drive) -> dict[str, str]:
    """Fields that say something; infinity is what a missing limit means."""
    names = [field.name for field in fields(value)]
    given = {name: getattr(value, name) for name in names if getattr(value, name) != getattr(default, name)}
    return {name: _number(number) for name, number in given.items() if isfinite(number)}


def _transforms(elements: tuple[Elementary, ...], lengths: Mapping[str, float]) -> str:
    found = row_of(elements)
    if found is None:
        return f"chain: [{', '.join(_element(element, lengths) for element in elements)}]"
    convention, row = found
    entries = {
        "alpha": _number(row.alpha),
        "a": _amount(row.a, row.a_symbol, lengths),
        "d": _amount(row.d, row.d_symbol, lengths),
        "theta": _number(row.theta),
    }
    if row.sign < 0:
        entries["sign"] = "-1"
    return f"{convention}: {_mapping(entries)}"


def _element(element: Elementary, lengths: Mapping[str, float]) -> str:
    if not element.variable:
        return f"{element.motion}({_amount(element.value, element.symbol, lengths)})"
    if element.value == 0.0:
        return f"{element.motion}({'q' if element.sign > 0 else '-q'})"
    return f"{element.motion}({_number(element.value)} {'+' if element.sign > 0 else '-'} q)"


def _amount(value: float, symbol: str | None, lengths: Mapping[str, float]) -> str:
    return symbol if symbol is not None and lengths.get(symbol) == value else _number(value)


def _frame(frame: Frame, robot: Robot, lengths: Mapping[str, float]) -> str:
    link = (robot.base, *robot.link_names)[frame.link]
    return f"  - {{name: {_text(frame.name)}, link: {_text(link)}, {_transforms(frame.transforms, lengths)}}}"


def _geometry(shapes: Iterable[Geometry], indent: str) -> list[str]:
    lines = [f"{indent}  - {_shape(geometry)}" for geometry in shapes]
    return [f"{indent}geometry:", *lines] if lines else []


def _shape(geometry: Geometry) -> str:
    shape, T = geometry.shape, geometry.T_link_shape
    if isinstance(shape, Box):
        inner = f"box: {{size: {_vector(shape.size)}}}"
    elif isinstance(shape, Sphere):
        inner = f"sphere: {{radius: {_number(shape.radius)}}}"
    elif isinstance(shape, Mesh):
        inner = f"mesh: {{path: {json.dumps(shape.path, ensure_ascii=False)}, scale: {_vector(shape.scale)}}}"
    else:
        name = type(shape).__name__.lower()
        inner = f"{name}: {{radius: {_number(shape.radius)}, length: {_number(shape.length)}}}"
    pose = f", xyz: {_vector(T[:3, 3])}, rpy: {_vector(rpy(T[:3, :3]))}"
    return f"{{{inner}{pose}{'' if geometry.collision else ', collision: false'}}}"


def _number(value: float) -> str:
    """Shortest text that reads back as the same float; multiples of pi/2 by name."""
    value = float(value)
    quarter = round(value / (pi / 2)) if abs(value) < 20.0 else 0
    if quarter and quarter * (pi / 2) == value:
        whole = quarter % 2 == 0
        count = quarter // 2 if whole else quarter
        factor = {1: "pi", -1: "-pi"}.get(count, f"{count}*pi")
        return factor if whole else f"{factor}/2"
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _vector(values: Iterable[float] | FloatArray) -> str:
    return f"[{', '.join(_number(float(value)) for value in values)}]"


def _mapping(entries: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in entries.items()) + "}"


def _text(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
