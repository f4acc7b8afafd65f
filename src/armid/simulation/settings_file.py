"""A scenario as a YAML file: the fields of the settings, by name; anything unknown is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from armid.arrays import FloatArray
from armid.documents import read_text, yaml_values
from armid.errors import ArmidError, InputError, UnknownNameError
from armid.motions.needed_torque import torque_limits
from armid.parameters.inertial import from_centre_of_mass, tensor
from armid.robot.robot import Robot
from armid.simulation.controllers import ComputedTorque, Controller, HandGuiding, PdGravity
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario
from armid.simulation.sensors import Sensors, typical_sensors

CONTROLLERS: Mapping[str, type] = {"pd": PdGravity, "computed-torque": ComputedTorque, "hand": HandGuiding}

_MAX_SETTINGS_BYTES = 1_000_000

_EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")


def load_scenario(path: Path, robot: Robot) -> Scenario:
    """Reads a scenario (docs/simulation.md); `robot` is needed for sensors given as `typical`."""
    content = read_text(path, "a scenario", most=_MAX_SETTINGS_BYTES)
    empty = all(not line.strip() or line.lstrip().startswith("#") for line in content.splitlines())
    document = None if empty else yaml_values(content, str(path))
    try:
        return _scenario_from(document if document is not None else {}, robot, str(path))
    except InputError:
        raise
    except ArmidError as problem:
        raise InputError(path, str(problem)) from None


def _scenario_from(document: Any, robot: Robot, where: str) -> Scenario:
    """A scenario from plain values."""
    values = dict(_mapping(document, where))
    special: dict[str, Any] = {}
    if "controller" in values:
        special["controller"] = controller_from(values.pop("controller"), f"{where}: controller")
    if "sensors" in values:
        special["sensors"] = sensors_from(values.pop("sensors"), robot, f"{where}: sensors")
    if "physics" in values:
        special["physics"] = _physics_from(values.pop("physics"), f"{where}: physics")
    return replace(_build(Scenario, values, where), **special)


def controller_from(document: Any, where: str) -> Controller:
    values = {"kind": document} if isinstance(document, str) else dict(_mapping(document, where))
    kind = str(values.pop("kind", "pd"))
    if kind not in CONTROLLERS:
        raise UnknownNameError("controller", kind, CONTROLLERS)
    model = values.pop("model", None)
    controller: Controller = _build(CONTROLLERS[kind], values, where)
    if model is None:
        return controller
    from armid.robot.load import load_robot

    return replace(controller, model=load_robot(str(model)))  # type: ignore[type-var]


def sensors_from(document: Any, robot: Robot, where: str) -> Sensors:
    """Given by fields, or `perfect` or `typical`; `like: typical` starts from those and changes some fields."""
    values = {"like": document} if isinstance(document, str) else dict(_mapping(document, where))
    kinds = {"perfect": Sensors(), "typical": typical_sensors(torque_limits(robot))}
    like = str(values.pop("like", "perfect"))
    if like not in kinds:
        raise UnknownNameError("set of sensors", like, kinds)
    given: Sensors = _build(Sensors, values, where)
    return replace(kinds[like], **{name: getattr(given, name) for name in values})


def _physics_from(document: Any, where: str) -> Physics:
    values = dict(_mapping(document, where))
    payload = values.pop("payload", None)
    physics: Physics = _build(Physics, values, where)
    return physics if payload is None else replace(physics, payload=_payload_from(payload, f"{where}: payload"))


def _payload_from(document: Any, where: str) -> FloatArray:
    """`mass` [kg], `centre` [m] and `inertia` about the centre (Ixx Ixy Ixz Iyy Iyz Izz) [kg m^2], in the last link."""
    values = _mapping(document, where)
    unknown = set(values) - {"mass", "centre", "inertia"}
    if unknown:
        raise UnknownNameError(f"field in {where}", sorted(unknown)[0], ("mass", "centre", "inertia"))
    mass = _number(values.get("mass"), f"{where}: mass")
    centre = _numbers(values.get("centre", [0.0] * 3), 3, f"{where}: centre")
    inertia = _numbers(values.get("inertia", [0.0] * 6), 6, f"{where}: inertia")
    return from_centre_of_mass(mass, centre, tensor(inertia))


def _mapping(document: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise InputError(where, "is not a set of named fields")
    return {str(key): value for key, value in document.items()}


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        hint = "YAML reads 1e9 as text: write 1.0e+9" if _EXPONENT.fullmatch(str(value)) else ""
        raise InputError(where, f"{value!r} is not a number", hint)
    return float(value)


def _numbers(value: Any, count: int, where: str) -> FloatArray:
    if not isinstance(value, list) or len(value) != count:
        raise InputError(where, f"{value!r}", f"a list of {count} numbers")
    return np.array([_number(item, where) for item in value])


def _build(kind: type, document: Any, where: str) -> Any:
    """An object of a settings class from its fields."""
    values = _mapping(document, where)
    hints = get_type_hints(kind)
    known = {f.name for f in fields(kind)}
    for name in values:
        if name not in known:
            raise UnknownNameError(f"field in {where}", name, sorted(known))
    arguments = {name: _convert(hints[name], value, f"{where}: {name}") for name, value in values.items()}
    try:
        return kind(**arguments)
    except TypeError as problem:
        raise InputError(where, str(problem).removeprefix(f"{kind.__name__}.__init__() ")) from None


def _convert(hint: Any, value: Any, where: str) -> Any:
    """A plain value as the annotated type: numbers, words, tuples, matrices, nested settings, or one of several."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _one_of(get_args(hint), value, where)
    if origin is tuple:
        return _tuple_of(get_args(hint), value, where)
    if origin is np.ndarray:
        return (
            np.array([_numbers(row, 4, where) for row in value]) if isinstance(value, list) else _one_row(value, where)
        )
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if hint is float:
        return _number(value, where)
    if hint is str and isinstance(value, str):
        return value
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _word(hint, value, where)
    if isinstance(hint, type) and is_dataclass(hint):
        return _build(hint, value, where)
    raise InputError(where, f"{value!r}", f"expected {getattr(hint, '__name__', hint)}")


def _one_row(value: Any, where: str) -> FloatArray:
    raise InputError(where, f"{value!r}", "a matrix as a list of four rows")


def _is_single(kind: Any) -> bool:
    origin = get_origin(kind)
    return origin is not tuple


def _one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """The first alternative that fits."""
    if value is None and NoneType in kinds:
        return None
    rest = [kind for kind in kinds if kind is not NoneType]
    if not isinstance(value, list):
        # What is not a list was not meant as one: complain about the single value.
        rest.sort(key=_is_single)
    for kind in rest[:-1]:
        try:
            return _convert(kind, value, where)
        except InputError:
            continue
    return _convert(rest[-1], value, where)


def _tuple_of(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise InputError(where, f"{value!r}", "a list")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_convert(kinds[0], item, where) for item in value)
    if len(value) != len(kinds):
        raise InputError(where, f"{value!r}", f"a list of {len(kinds)}")
    return tuple(_convert(kind, item, where) for kind, item in zip(kinds, value, strict=True))


def _word(kind: type[Enum], value: Any, where: str) -> Enum:
    for member in kind:
        if member.value == value:
            return member
    raise UnknownNameError(f"choice for {where}", str(value), [str(member.value) for member in kind])
