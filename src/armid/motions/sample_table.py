"""A motion as a table of samples: joints by name and units in the header, one row per instant."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.documents import new_file
from armid.errors import ArmidError, InputError
from armid.motions.trajectory import SampledTrajectory, Trajectory, grid
from armid.robot.robot import JointKind, Robot

_QUANTITIES = (("q", ""), ("qd", "/s"), ("qdd", "/s^2"))
"""Words before a joint's name, and what their unit is divided by."""

_UNITS = {"rad": 1.0, "m": 1.0, "deg": math.pi / 180.0, "mm": 1e-3}
"""Units of position that are read, in SI."""

_NAMED = re.compile(r"(?P<word>qdd|qd|q)_(?P<joint>.+?)\s*(?:\[(?P<unit>[^\]]*)\])?")


def sample_header(names: Sequence[str], robot: Robot | None) -> list[str]:
    """Names of the columns: `time [s]`, `q_NAME [rad]` .., `qd_NAME [rad/s]` .., `qdd_NAME [rad/s^2]` ...

    Args:
        names: of the joints that move.
        robot: says which of them are prismatic; without it, or for joints it does not have, no unit is written.
    """
    kinds = {} if robot is None else {joint.name: joint.kind for joint in robot.joints}
    return ["time [s]", *(_column(word, name, kinds.get(name), per) for word, per in _QUANTITIES for name in names)]


def _column(word: str, name: str, kind: JointKind | None, per: str) -> str:
    if kind is None:
        return f"{word}_{name}"
    return f"{word}_{name} [{'rad' if kind is JointKind.REVOLUTE else 'm'}{per}]"


def header_line(names: Sequence[str], robot: Robot | None) -> str:
    """The first line of the file; names with commas are quoted."""
    text = StringIO()
    csv.writer(text, lineterminator="").writerow(sample_header(names, robot))
    return text.getvalue()


def save_csv(trajectory: Trajectory, path: Path, *, rate_hz: float, robot: Robot | None = None) -> Path:
    """Samples at a rate, one row per instant, SI units.

    Args:
        trajectory: what is sampled.
        path: of the file.
        rate_hz: rows a second.
        robot: the arm it is for, whose joints have units.
    """
    t = grid(trajectory.duration, rate_hz)
    table = np.column_stack([t, *trajectory.sample(t)])
    header = header_line(trajectory.joint_names, robot)
    with new_file(path) as file:
        np.savetxt(file, table, fmt="%.12g", delimiter=",", header=header, comments="")
    return path


def parse_samples(path: Path, text: str) -> SampledTrajectory:
    """Reads what `save_csv` writes, and tables with the header `time,q1..,qd1..,qdd1..`, whose joints are `joint1`...

    Raises:
        InputError: not such a table, a unit that is not known, or a value that is not finite, with its joint and time.
    """
    header, *lines = text.splitlines() or [""]
    columns = [name.strip() for name in next(csv.reader([header]), [])]
    joints, factors = _meaning(path, columns)
    try:
        rows = [line for line in lines if line.strip()]
        table = np.loadtxt(rows, delimiter=",", ndmin=2) if rows else np.zeros((0, len(columns)))
    except ValueError:
        raise InputError(path, "not a table of numbers", "expected as many numbers in every row as names") from None
    if len(table) < 2 or table.shape[1] != len(columns):
        raise InputError(path, f"{len(table)} rows of {table.shape[1]} columns", f"two or more rows of {len(columns)}")
    _refuse_infinite(path, columns, joints, table)
    n = len(joints)
    q, qd, qdd = (factors * table[:, 1 + k * n : 1 + (k + 1) * n] for k in range(3))
    try:
        return SampledTrajectory(joints, table[:, 0], q, qd, qdd)
    except ArmidError as problem:
        raise InputError(path, str(problem)) from None


def _meaning(path: Path, columns: list[str]) -> tuple[tuple[str, ...], FloatArray]:
    """Names of the joints, and the factor of each to SI units."""
    n = (len(columns) - 1) // 3
    if n >= 1 and columns == ["time", *(f"{word}{i + 1}" for word, _ in _QUANTITIES for i in range(n))]:
        return tuple(f"joint{i + 1}" for i in range(n)), np.ones(n)
    found = [_NAMED.fullmatch(column) for column in columns[1:]]
    if n < 1 or len(columns) != 3 * n + 1 or columns[0] not in ("time", "time [s]") or not all(found):
        raise _other_header(path, columns)
    parts = [match.group("word", "joint", "unit") for match in found if match]
    joints = tuple(joint for _, joint, _ in parts[:n])
    if [part[:2] for part in parts] != [(word, name) for word, _ in _QUANTITIES for name in joints]:
        raise _other_header(path, columns)
    factors = [_factor(path, joint, [part[2] for part in parts[k::n]]) for k, joint in enumerate(joints)]
    return joints, np.array(factors)


def _other_header(path: Path, columns: list[str]) -> InputError:
    return InputError(
        path,
        f"not the header of a motion: {len(columns)} other names",
        "expected time,q1..,qd1..,qdd1.., or time [s],q_NAME [rad]..,qd_NAME [rad/s]..,qdd_NAME [rad/s^2]..",
    )


def _factor(path: Path, joint: str, units: Sequence[str | None]) -> float:
    """To SI units, from the units of a joint's position, velocity and acceleration; a table without units is in SI."""
    if all(unit is None for unit in units):
        return 1.0
    position = units[0] or ""
    expected = [f"{position}{per}" for _, per in _QUANTITIES]
    if position not in _UNITS or list(units) != expected:
        listed = ", ".join("none" if unit is None else f"[{unit}]" for unit in units)
        raise InputError(
            f"{path}, joint {joint}",
            f"units {listed} of position, velocity, acceleration",
            f"expected one of {', '.join(_UNITS)}, the same per s and per s^2",
        )
    return _UNITS[position]


def _refuse_infinite(path: Path, columns: list[str], joints: tuple[str, ...], table: FloatArray) -> None:
    """An error that names joint, column and time of the first value that is not a number."""
    bad = np.argwhere(~np.isfinite(table))
    if not len(bad):
        return
    row, column = (int(k) for k in bad[0])
    where = "time" if column == 0 else f"{joints[(column - 1) % len(joints)]}, column {columns[column]}"
    moment = f" at {table[row, 0]:g} s" if column else ""
    raise InputError(
        f"{path}, {where}",
        f"{table[row, column]:g} in row {row + 2}{moment}",
        f"every value must be finite; {len(bad)} are not",
    )
