"""What is known about the bodies, from a small YAML file.

mass: {link3: [1.0, 2.5], payload: [0, 5]}            # kg, lowest and highest; the same number twice: known
total_mass: [28, 30]                                   # kg, links only
centre: {link2: [[-0.1, -0.1, 0], [0.1, 0.1, 0.4]]}    # m, centre of mass in a box in the link frame
ellipsoid: {link4: {centre: [0, 0, 0.1], semi_axes: [0.05, 0.05, 0.1]}}    # m, centre of mass, link frame
geometry: true                                         # mass within the link's shapes; or with
geometry: {links: [link2, link3], margin: 0.01, moments: true}
non_negative_drives: true
about_centre:                                          # value and standard deviation, from a drawing or a balance
  link3: {mass: [2.1, 0.05], centre: [[0, 0.03, 0.13], 0.01], inertia: [[0.025, 0, 0, 0.024, 0, 0.008], 0.002]}
inequalities: {slender: {link1: z}, around_prior: 0.5} # of eq. 3.53, with --consistency eq3.53

Links are named as in parameters (link3) or by the robot's own names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.bounds import Bounds
from armid.consistency.geometry_bounds import GeometryBounds, owner_index
from armid.consistency.inequalities import ThesisInequalities
from armid.consistency.knowledge import Knowledge
from armid.consistency.places import CentreBox, CentreEllipsoid, Where
from armid.documents import read_text, yaml_values
from armid.errors import InputError, UnknownNameError
from armid.robot.robot import Robot

_KEYS = (
    "mass",
    "total_mass",
    "centre",
    "ellipsoid",
    "geometry",
    "inside_collision_shapes",
    "non_negative_drives",
    "about_centre",
    "inequalities",
)
_GEOMETRY_KEYS = ("links", "margin", "moments")
_INEQUALITY_KEYS = (
    "ratio",
    "off_diagonal",
    "smallest_inertia",
    "smallest_mass",
    "slender",
    "slender_ratio",
    "around_prior",
)
_KNOWLEDGE = {"mass": (0, 1), "centre": (1, 3), "inertia": (4, 6)}
"""First place and number of each quantity within mu."""
_AXES = "xyz"
_MAX_BYTES = 1 << 20


def read_bounds(path: str | Path, robot: Robot) -> Bounds:
    """Bounds of a file.

    Raises:
        InputError: not YAML, unknown keys or values; names the key.
    """
    content = checked(parsed(Path(path)), _KEYS, f"key in {path}")

    def owned(key: str, read: Callable[[Any, str], Any]) -> dict[str, Any]:
        items = table(content.get(key, {}), f"{path}: {key}")
        return {_owner(robot, name): read(value, f"{path}: {key} of {name}") for name, value in items.items()}

    places: dict[str, tuple[Where, ...]] = {}
    for key, read in (("centre", box), ("ellipsoid", ellipsoid)):
        for name, place in owned(key, read).items():
            places[name] = (*places.get(name, ()), place)
    bounds = Bounds(
        mass=owned("mass", _interval),
        where=places,
        total_mass=_interval(content["total_mass"], f"{path}: total_mass") if "total_mass" in content else None,
        non_negative_drives=flag(content.get("non_negative_drives", True), f"{path}: non_negative_drives"),
        knowledge=tuple(replace(k, owner=name) for name, k in owned("about_centre", _knowledge).items()),
        inequalities=inequalities(content.get("inequalities", {}), robot, f"{path}: inequalities"),
    )
    shapes = geometry(content, path)
    return bounds if shapes is None else shapes.apply(robot, bounds)


def _owner(robot: Robot, name: str) -> str:
    """`link3` of either name of a link; the payload is itself."""
    return name if name == "payload" else f"link{owner_index(robot, name) + 1}"


def geometry(content: dict[str, Any], path: str | Path) -> GeometryBounds | None:
    """Settings of bounds by shapes, when asked for."""
    value = content.get("geometry", content.get("inside_collision_shapes", False))
    if isinstance(value, bool):
        return GeometryBounds() if value else None
    where = f"{path}: geometry"
    given = checked(table(value, where), _GEOMETRY_KEYS, f"key in {where}")
    if "links" in given and not isinstance(given["links"], list):
        raise InputError(f"{where}: links", repr(given["links"]), "expected a list of links")
    out = GeometryBounds(links=tuple(str(x) for x in given["links"]) if "links" in given else None)
    if "margin" in given:
        out = replace(out, margin=numbers([given["margin"]], 1, f"{where}: margin")[0])
    return replace(out, moments=flag(given.get("moments", True), f"{where}: moments"))


def inequalities(value: Any, robot: Robot, where: str) -> ThesisInequalities:
    """Numbers of eq. 3.53 that differ from those of [Halper2024]."""
    given = checked(table(value, where), _INEQUALITY_KEYS, f"key in {where}")
    slender = {}
    for name, axis in table(given.pop("slender", {}), f"{where}: slender").items():
        if axis not in tuple(_AXES):
            raise InputError(f"{where}: slender of {name}", repr(axis), "expected x, y or z")
        slender[_owner(robot, name)] = _AXES.index(axis)
    plain: dict[str, Any] = {key: numbers([item], 1, f"{where}: {key}")[0] for key, item in given.items()}
    return ThesisInequalities(slender=slender, **plain)


def _knowledge(value: Any, where: str) -> Knowledge:
    """Values and deviations about a centre of mass; the owner is filled in later."""
    given = checked(table(value, where), tuple(_KNOWLEDGE), f"key in {where}")
    values, deviations = np.zeros(10), np.full(10, inf)
    for key, pair in given.items():
        first, count = _KNOWLEDGE[key]
        if not isinstance(pair, list) or len(pair) != 2:
            raise InputError(f"{where}: {key}", repr(pair), "expected a value and its standard deviation")
        stated = numbers(pair[0] if count > 1 else [pair[0]], count, f"{where}: {key}")
        doubt = numbers(pair[1] if isinstance(pair[1], list) else [pair[1]] * count, count, f"{where}: {key}")
        if min(doubt) <= 0.0:
            raise InputError(f"{where}: {key}", repr(pair[1]), "a standard deviation is positive")
        values[first : first + count], deviations[first : first + count] = stated, doubt
    return Knowledge("", values, deviations)


def box(value: Any, where: str) -> CentreBox:
    """Lower and upper corner."""
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(where, repr(value), "expected a lower and an upper corner")
    lower, upper = (np.array(numbers(corner, 3, where)) for corner in value)
    if np.any(lower > upper):
        raise InputError(where, repr(value), "the lower corner comes first")
    return CentreBox(lower, upper)


def ellipsoid(value: Any, where: str) -> CentreEllipsoid:
    """Centre and semi-axes along the link frame."""
    given = checked(table(value, where), ("centre", "semi_axes"), f"key in {where}")
    if len(given) != 2:
        raise InputError(where, repr(value), "expected centre and semi_axes")
    half: FloatArray = np.array(numbers(given["semi_axes"], 3, f"{where}: semi_axes"))
    if half.min() <= 0.0:
        raise InputError(f"{where}: semi_axes", repr(given["semi_axes"]), "each is positive")
    return CentreEllipsoid(np.array(numbers(given["centre"], 3, f"{where}: centre")), np.diag(1.0 / half))


def parsed(path: Path) -> dict[str, Any]:
    """The file as a mapping."""
    content = yaml_values(read_text(path, "a bounds file", most=_MAX_BYTES), str(path))
    if not isinstance(content, dict):
        raise InputError(path, "not a mapping", f"expected some of {', '.join(_KEYS)}")
    return {str(key): value for key, value in content.items()}


def checked(content: dict[str, Any], known: tuple[str, ...], kind: str) -> dict[str, Any]:
    """The same, when it holds nothing unknown."""
    for key in content:
        if key not in known:
            raise UnknownNameError(kind, key, known)
    return dict(content)


def table(value: Any, where: str) -> dict[str, Any]:
    """A mapping."""
    if not isinstance(value, dict):
        raise InputError(where, repr(value), "expected a mapping, for example {link3: ...}")
    return {str(key): item for key, item in value.items()}


def flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(where, repr(value), "expected true or false")
    return value


def _interval(value: Any, where: str) -> tuple[float, float]:
    """Lowest and highest; a single number is known exactly."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = [value, value]
    low, high = numbers(value, 2, where)
    return low, high


def numbers(value: Any, count: int, where: str) -> list[float]:
    """So many numbers."""
    try:
        found = [float(item) for item in value]
    except (TypeError, ValueError):
        found = []
    if len(found) != count or not np.all(np.isfinite(found)):
        raise InputError(where, repr(value), f"expected {count} number" + ("s" if count > 1 else ""))
    return found
