"""The sensor file: what was found about the sensors of an arm, beside its bodies, to be undone in other recordings.

    schema: armid.sensors/1
    joints:
      joint1: {gain: 0.02, gain_interval: [0.01, 0.03], delay: 0.001, ..., zero: ..., scale: ..., eccentricity_sine: ...}
    clock: {value: 0.0, interval: [-0.001, 0.001]}      # or clock_with_velocities, where velocities were made from its stamps

Intervals are those of 95 %, left out where they are not known. Sizes are errors of the recording, as in
`armid.rows.imperfections`: a gain of 0.02 recorded 1.02 times the torque.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from math import isclose, isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from armid.documents import read_yaml
from armid.errors import InputError, UnknownNameError
from armid.estimation.estimate import NORMAL_95
from armid.identification.sensors import Imperfections, Sized
from armid.logs.recording import Recording
from armid.robot.robot import Robot
from armid.rows.imperfections import (
    COSINE,
    KINDS,
    SINE,
    WITH_VELOCITIES,
    ColumnReference,
    Family,
    Imperfection,
)

SCHEMA = "armid.sensors/1"
_WHAT = "a sensor file, sensors.yaml in the --out of armid identify"
_OF_JOINTS = {
    (Family.GAIN, ""): "gain",
    (Family.DELAY, ""): "delay",
    (Family.ENCODER_DELAY, ""): "encoder_delay",
    (Family.ZERO, ""): "zero",
    (Family.SCALE, ""): "scale",
    (Family.ECCENTRICITY, SINE): "eccentricity_sine",
    (Family.ECCENTRICITY, COSINE): "eccentricity_cosine",
}
"""What a joint has, family and part, with the words for it; the clock is the recording's."""
_CLOCKS = {"": "clock", WITH_VELOCITIES: "clock_with_velocities"}
"""What a recording has, by part of the clock, with the words for it."""
_TOP_KEYS = ("schema", "joints", *_CLOCKS.values())
_JOINT_KEYS = (*_OF_JOINTS.values(), *(f"{word}_interval" for word in _OF_JOINTS.values()))
_CLOCK_KEYS = ("value", "interval")
_NOTHING = 0.0, 0.0
"""Size and deviation of what is not there."""
_WRITTEN = 1e-5
"""Relative: to which sizes in a file are those of the result that wrote it."""


SensorSizes = dict[tuple[Family, str, int | None], tuple[float, float]]
"""Size and standard deviation by family, part and joint."""


def sensor_sizes(found: Imperfections) -> SensorSizes:
    """Size and standard deviation of everything about the sensors, corrections in a row taken together; NaN where not known."""
    out: SensorSizes = {}
    step: Imperfections | None = found
    while step is not None:
        for sized in _of_sensors(step.sizes):
            key = sized.item.family, sized.item.part, sized.item.joint
            value, deviation = out.get(key, (0.0, 0.0))
            share = sized.item.unit == "1"
            total = (1.0 + value) * (1.0 + sized.value) - 1.0 if share else value + sized.value
            out[key] = total, float(np.hypot(deviation, sized.standard_deviation))
        step = step.before
    return out


def _of_sensors(sizes: Sequence[Sized]) -> Iterator[Sized]:
    """Those that a file has words for; a wrong gear ratio is a gain and a scale."""
    for sized in sizes:
        if sized.item.family is Family.GEAR_RATIO:
            yield replace(sized, item=replace(sized.item, family=Family.GAIN))
            inverse = 1.0 / (1.0 + sized.value)
            deviation = sized.standard_deviation * inverse**2
            yield Sized(replace(sized.item, family=Family.SCALE), inverse - 1.0, deviation)
        elif sized.item.family is Family.CLOCK or (sized.item.family, sized.item.part) in _OF_JOINTS:
            yield sized


def sensor_text(found: Imperfections) -> str:
    """The file; empty when nothing about the sensors is known."""
    sizes = sensor_sizes(found)
    if not sizes:
        return ""
    lines = [
        f"schema: {SCHEMA}",
        "# errors of the recording: gain, scale and clock as shares, zero in rad or m, eccentricity in rad, delays in s",
    ]
    if any(joint is not None for _, _, joint in sizes):
        lines.append("joints:")
    for j, name in enumerate(found.joints):
        parts = [
            f"{word}: {sizes[family, part, j][0]:.6g}{_interval_text(f'{word}_interval', *sizes[family, part, j])}"
            for (family, part), word in _OF_JOINTS.items()
            if (family, part, j) in sizes
        ]
        if parts:
            lines.append(f"  {name}: {{{', '.join(parts)}}}")
    for part, word in _CLOCKS.items():
        if (Family.CLOCK, part, None) in sizes:
            value, deviation = sizes[Family.CLOCK, part, None]
            lines.append(f"{word}: {{value: {value:.6g}{_interval_text('interval', value, deviation)}}}")
    return "\n".join(lines) + "\n"


def _interval_text(key: str, value: float, deviation: float) -> str:
    """The entry of a 95 % interval; nothing where it is not known."""
    if not (isfinite(deviation) and deviation > 0.0):
        return ""
    return f", {key}: [{value - NORMAL_95 * deviation:.6g}, {value + NORMAL_95 * deviation:.6g}]"


def read_sensors(path: str | Path, robot: Robot) -> Imperfections:
    """What a sensor file says, to free recordings of this arm from it; as of velocities that are derived from positions.

    Args:
        path: of the file.
        robot: whose joints it names.

    Raises:
        InputError: not a sensor file, a key that does not exist, or something that is no number.
        UnknownNameError: a joint the arm does not have.
    """
    document = read_yaml(path, _WHAT)
    if document.get("schema") != SCHEMA:
        raise InputError(path, f"schema {document.get('schema')!r}", f"expected {SCHEMA}: {_WHAT}")
    _table(path, "the file", document, _TOP_KEYS, "joints: {NAME: {gain: 0.02}}")
    sizes: list[Sized] = []
    for name, values in _table(path, "joints", document.get("joints") or {}, None, "{NAME: {gain: 0.02}}").items():
        if name not in robot.joint_names:
            raise UnknownNameError(f"joint in {path}", str(name), robot.joint_names)
        given = _table(path, name, values, _JOINT_KEYS, "{gain: 0.02}")
        for (family, part), word in _OF_JOINTS.items():
            size = _size(path, name, given, word, f"{word}_interval")
            if size is not None:
                sizes.append(_sized(family, robot.joint_names.index(name), size, part))
    for part, word in _CLOCKS.items():
        if word in document:
            clock = _table(path, word, document[word], _CLOCK_KEYS, "{value: 0.01}")
            size = _size(path, word, clock, *_CLOCK_KEYS)
            if size is None:
                raise InputError(path, f"{word} has no value", f"write it as {word}: {{value: 0.01}}")
            sizes.append(_sized(Family.CLOCK, None, size, part))
    return Imperfections(
        joints=robot.joint_names,
        sizes=tuple(sizes),
        reference=ColumnReference.without_model(robot.n_joints, recorded_velocity=False),
        moves=True,
    )


def sensors_of(given: str | Path | None, recordings: Sequence[Recording], robot: Robot) -> Imperfections | None:
    """The sensors that recordings of this arm were taken by: of the file given, or of the one that their mappings name.

    Args:
        given: sensor file for all of them; None to go by their mappings.
        recordings: to learn from, and held out.
        robot: the arm.

    Raises:
        InputError: both a file given and one in a mapping, or mappings that do not agree; see `read_sensors` for the rest.
    """
    named = {recording.source.sensors: recording.name for recording in recordings}
    files = [file for file in named if file]
    if given is not None:
        if files:
            both = f"{given} given, and {files[0]} named by the mapping of {named[files[0]]}"
            raise InputError("--sensors", both, "keep one of the two: errors undone twice are errors again")
        return read_sensors(given, robot)
    if not files:
        return None
    every = "name the same sensor file in every mapping, or in none and give --sensors FILE"
    if "" in named:
        raise InputError(f"mapping of {named['']}", f"names no sensor file, that of {named[files[0]]} does", every)
    read = {file: read_sensors(file, robot) for file in files}
    if len({tuple((s.item, s.value) for s in found.sizes) for found in read.values()}) > 1:
        raise InputError("sensors", f"mappings name files that differ: {', '.join(files)}", every)
    return read[files[0]]


def not_undone_twice(sensors: Imperfections | None, earlier: Imperfections | None) -> Imperfections | None:
    """The sensors of a file, to be undone beside what an earlier result undoes; None when that holds them already.

    Args:
        sensors: of the file.
        earlier: of the earlier result.

    Raises:
        InputError: the earlier result undoes other errors of the sensors.
    """
    if sensors is None or earlier is None or not sensor_sizes(earlier):
        return sensors
    own = sensor_sizes(sensors)
    step: Imperfections | None = earlier
    while step is not None:
        known = sensor_sizes(step)
        pairs = [(own.get(key, _NOTHING)[0], known.get(key, _NOTHING)[0]) for key in {*own, *known}]
        if all(isclose(a, b, rel_tol=_WRITTEN, abs_tol=1e-12) for a, b in pairs):
            return None
        step = step.before
    raise InputError(
        "a sensor file (--sensors, or sensors of a mapping)",
        "says other than the result given with --prior, which undoes errors of the sensors itself",
        "leave the sensor file out: the sensors of the earlier result are taken",
    )


def _table(path: str | Path, where: str, value: Any, known: Sequence[str] | None, example: str) -> dict[str, Any]:
    """A mapping of the file without keys that mean nothing.

    Args:
        path: of the file.
        where: in it.
        value: found there.
        known: keys that there are; None for any.
        example: of what is expected.

    Raises:
        InputError: no mapping, or a key that does not exist.
    """
    if not isinstance(value, dict):
        raise InputError(path, f"{where} is {value!r}, not a mapping", f"write it as {where}: {example}")
    for key in value:
        if known is not None and key not in known:
            near = get_close_matches(str(key), known, n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise InputError(path, f"{where} has an unknown key {key!r}", f"{meant}there are: {', '.join(known)}")
    return value


def _size(path: str | Path, where: str, values: Mapping[str, Any], key: str, interval: str) -> float | None:
    """A size; None where it is not there.

    Raises:
        InputError: no number, or an interval that is none, or that stands alone.
    """
    if interval in values:
        ends = values[interval]
        if not isinstance(ends, list) or len(ends) != 2:
            raise InputError(path, f"{interval} of {where} is {ends!r}", "expected its ends, such as [0.01, 0.03]")
        low, high = (_number(path, f"{interval} of {where}", end) for end in ends)
        if low > high:
            raise InputError(path, f"{interval} of {where} is {ends!r}", "expected the lower end first")
        if key not in values:
            raise InputError(path, f"{where} has {interval} and no {key}", f"give {key}, which is what is undone")
    return _number(path, f"{key} of {where}", values[key]) if key in values else None


def _number(path: str | Path, what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InputError(path, f"{what} is {value!r}", "expected a finite number")
    return float(value)


def _sized(family: Family, joint: int | None, value: float, part: str = "") -> Sized:
    kind = KINDS[family]
    if kind.unit == "1" and value <= -1.0:
        raise InputError(
            f"{family.value} in a sensor file", f"{value}", "expected a share of the true value: more than -1"
        )
    item = Imperfection(family=family, joint=joint, part=part, unit=kind.unit, tolerance=kind.tolerance)
    return Sized(item, value, nan)
