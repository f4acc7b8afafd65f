"""Trajectories to files and back: our JSON of coefficients, tables of them as papers print, samples, ROS messages.

`docs/formats.md` describes each.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.documents import read_json, read_text, write_json, write_text
from armid.errors import ArmidError, InputError
from armid.motions.coefficient_table import is_coefficient_table, parse_coefficients
from armid.motions.fourier import FourierTrajectory
from armid.motions.sample_table import parse_samples
from armid.motions.spline import SplineTrajectory
from armid.motions.trajectory import SampledTrajectory, SequenceTrajectory, Trajectory, grid
from armid.motions.transition import TransitionTrajectory
from armid.motions.trapezoid import TrapezoidalTrajectory
from armid.outcome import InputFile
from armid.words import path_of

_FORMAT = "armid-trajectory"
_VERSION = 1

_MOST_BYTES = 1_000_000_000
"""Of a table of samples: seven joints at 1 kHz for half an hour."""

_TABLES = (".csv", ".txt", ".tsv")
"""Suffixes of files that people write: samples, or coefficients as papers print them."""

_FIELDS: dict[str, tuple[type, tuple[str, ...], tuple[str, ...]]] = {
    "fourier": (FourierTrajectory, ("period", "repetitions"), ("offset", "sine", "cosine")),
    "spline": (SplineTrajectory, ("period", "repetitions"), ("values",)),
    "trapezoidal": (TrapezoidalTrajectory, (), ("waypoints", "velocity", "acceleration")),
    "transition": (TransitionTrajectory, (), ("waypoints", "durations")),
    "sampled": (SampledTrajectory, (), ("time", "q", "qd", "qdd")),
}
"""For each kind its class, its scalar fields and its array fields."""


def _as_dict(trajectory: Trajectory) -> dict[str, Any]:
    """Plain JSON values; the inverse of `_from_dict`."""
    if isinstance(trajectory, SequenceTrajectory):
        return {"kind": "sequence", "parts": [_as_dict(part) for part in trajectory.parts]}
    for kind, (cls, scalars, arrays) in _FIELDS.items():
        if isinstance(trajectory, cls):
            head = {"kind": kind, "joint_names": list(trajectory.joint_names)}
            numbers = {name: getattr(trajectory, name) for name in scalars}
            return head | numbers | {name: getattr(trajectory, name).tolist() for name in arrays}
    raise InputError("trajectory", f"no file form for a {type(trajectory).__name__}")


def _from_dict(values: dict[str, Any], where: str) -> Trajectory:
    """A trajectory from plain JSON values; `where` names the file in errors."""
    kind = values.get("kind")
    if kind == "sequence":
        parts = values.get("parts")
        if not isinstance(parts, list) or not parts:
            raise InputError(f"{where}: parts", "a sequence without parts")
        return SequenceTrajectory(tuple(_from_dict(part, f"{where}: part {k + 1}") for k, part in enumerate(parts)))
    if kind not in _FIELDS:
        raise InputError(f"{where}: kind", f"{kind!r}", f"one of {', '.join((*_FIELDS, 'sequence'))}")
    cls, scalars, arrays = _FIELDS[kind]
    try:
        names = tuple(str(name) for name in values["joint_names"])
        numbers = {name: (int if name == "repetitions" else float)(values[name]) for name in scalars if name in values}
        tables = {name: np.asarray(values[name], dtype=np.float64) for name in arrays}
    except KeyError as missing:
        raise InputError(
            where,
            f"field {missing} is missing",
            f"a {kind} trajectory needs joint_names, {', '.join((*scalars, *arrays))}",
        ) from None
    except (TypeError, ValueError) as problem:
        raise InputError(where, f"a field is not made of numbers: {problem}") from None
    try:
        built: Trajectory = cls(joint_names=names, **numbers, **tables)
    except TypeError as problem:
        raise InputError(where, f"{problem}") from None
    return built


def save_trajectory(trajectory: Trajectory, path: Path, *, robot: str = "") -> Path:
    """Writes the coefficients as JSON."""
    head = {"format": _FORMAT, "version": _VERSION, "robot": robot}
    return write_json(path, head | _as_dict(trajectory))


def trajectory_of(motion: str | Path | Trajectory) -> Trajectory:
    """A trajectory from its file; a trajectory stays as it is."""
    if not isinstance(motion, str | Path) and hasattr(motion, "duration") and hasattr(motion, "sample"):
        return motion
    return load_trajectory(path_of("trajectory", motion, "a file of `armid design`, or a Trajectory"))


def input_of(source: object, role: str) -> tuple[InputFile, ...]:
    """A file an answer rests on, with its hash; nothing for what was given as an object."""
    if not isinstance(source, str | Path) or not Path(source).is_file():
        return ()
    return (InputFile(str(source), hashlib.sha256(Path(source).read_bytes()).hexdigest(), role),)


def load_trajectory(path: Path) -> Trajectory:
    """Reads our JSON, a CSV of samples as `save_csv` writes it, or a printed table of Fourier coefficients.

    Of a folder it is the motion that `armid design` wrote there.
    """
    if path.is_dir():
        path = path / "trajectory.json"
    if not path.is_file():
        raise InputError(path, "no such file", "give a trajectory written by `armid design`, JSON or CSV")
    if path.suffix.lower() in _TABLES:
        return _load_table(path)
    values = read_json(path, "a trajectory file of `armid design`", schema=_FORMAT, key="format")
    if values.get("version") != _VERSION:
        raise InputError(path, f"version {values.get('version')!r}", f"this armid reads version {_VERSION}")
    try:
        return _from_dict(values, str(path))
    except InputError:
        raise
    except ArmidError as problem:
        raise InputError(path, str(problem)) from None


def _load_table(path: Path) -> Trajectory:
    """A text of samples or of coefficients; its first line says which."""
    text = read_text(path, "samples or Fourier coefficients of a motion", most=_MOST_BYTES)
    if not is_coefficient_table(text) and path.suffix.lower() == ".csv":
        return parse_samples(path, text)
    try:
        return parse_coefficients(text, path)
    except InputError:
        raise
    except ArmidError as problem:
        raise InputError(path, str(problem)) from None


def _joint_message(trajectory: Trajectory, *, rate_hz: float) -> dict[str, Any]:
    """A `trajectory_msgs/JointTrajectory` as plain values: positions, velocities, accelerations, time from start."""
    t = grid(trajectory.duration, rate_hz)
    return {
        "header": {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""},
        "joint_names": list(trajectory.joint_names),
        "points": [_point(*row) for row in zip(t, *trajectory.sample(t), strict=True)],
    }


def _point(t: float, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> dict[str, Any]:
    """One `trajectory_msgs/JointTrajectoryPoint`."""
    nanoseconds = round(t * 1e9)
    return {
        "positions": _round(q),
        "velocities": _round(qd),
        "accelerations": _round(qdd),
        "effort": [],
        "time_from_start": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9},
    }


def _round(values: FloatArray) -> list[float]:
    """Nine decimals: a nanoradian, below any encoder."""
    return [round(float(x), 9) for x in values]


def save_joint_trajectory(trajectory: Trajectory, path: Path, *, rate_hz: float) -> Path:
    """Writes the message as YAML or JSON, by the file's suffix."""
    message = _joint_message(trajectory, rate_hz=rate_hz)
    if path.suffix.lower() in (".yaml", ".yml"):
        import yaml

        # The C emitter is ten times faster; thousands of points take seconds otherwise.
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        return write_text(path, yaml.dump(message, Dumper=dumper, sort_keys=False, default_flow_style=None))
    return write_json(path, message, indent=None)
