"""A robot as plain JSON values and back, so that a result can be used without the files it came from."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from math import isinf, isnan
from typing import Any

import numpy as np

from armid.errors import InputError
from armid.notes import Note, Severity
from armid.robot.elementary import Elementary, Move
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from armid.robot.robot import Drive, Frame, Joint, JointKind, Limits, Link, Robot, Source

_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Robot,
        Joint,
        Link,
        Frame,
        Limits,
        Drive,
        Source,
        Elementary,
        Geometry,
        Box,
        Capsule,
        Cylinder,
        Mesh,
        Sphere,
        Note,
    )
}
_ENUMS: dict[str, type[Enum]] = {kind.__name__: kind for kind in (Move, JointKind, Severity)}
_WORDS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def record(value: Any) -> Any:
    """JSON values of a robot or any part of it; types are tagged, infinities are words."""
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "value": value.value}
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__} | {
            f.name: record(getattr(value, f.name)) for f in fields(value) if f.init
        }
    if isinstance(value, np.ndarray):
        return {"array": record(value.tolist())}
    if isinstance(value, tuple | list):
        return [record(item) for item in value]
    if isinstance(value, float) and (isinf(value) or isnan(value)):
        return {"number": str(value)}
    return value


def restored(value: Any, where: str) -> Any:
    """The object a record stands for.

    Raises:
        InputError: a tag nobody knows.
    """
    if isinstance(value, list):
        return tuple(restored(item, where) for item in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(restored(value["array"], where), dtype=np.float64)
    if "number" in value:
        return _WORDS.get(value["number"], float("nan"))
    if "enum" in value and value["enum"] in _ENUMS:
        return _ENUMS[value["enum"]](value["value"])
    if value.get("type") in _TYPES:
        return _TYPES[value["type"]](**{key: restored(item, where) for key, item in value.items() if key != "type"})
    raise InputError(where, f"cannot restore {str(value)[:60]!r}", "written by another version?")
