"""What a controller tells of its own model: gravity vectors and inertia matrices at postures; [Gaz2014] sec. V.

Files: an npz with `q` [n, joints], `g` [n, joints], `M` [n, joints, joints], and optionally `joint_names` and
`time`; or a CSV with a header `q1..qn`, `g1..gn`, `M_1_1, M_1_2, ..` (upper triangle), and optionally `time`.
One of gravity and inertia may be missing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.documents import read_arrays, read_text
from armid.errors import InputError
from armid.information.accumulate import accumulate
from armid.information.information import Information, total
from armid.kernels.source import RowSource
from armid.parameters.effects import Effects
from armid.robot.robot import JointKind, Robot
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows
from armid.words import path_of

_ASYMMETRY = 1e-3
"""Relative to the largest entry: an inertia matrix less symmetric than this is something else (a Jacobian, a row order)."""

_LONG_NAMES = {"g": "gravity", "M": "inertia"}
"""Symbols used in files, and our words for them; both are understood."""

_SMALL_ANGLES = 10.0
"""[rad] No revolute joint turns three half turns either way: larger positions are degrees."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ControllerSamples:
    """Values read from a controller.

    Args:
        name: of the file, for messages.
        q: positions [rad or m], shape [n_poses, n_joints].
        gravity: g(q) [N m or N], shape [n_poses, n_joints], or None.
        inertia: M(q) [kg m^2, ...], shape [n_poses, n_joints, n_joints], or None.
        time: [s] when the values were read along a motion, shape [n_poses], or None.
    """

    name: str
    q: FloatArray
    gravity: FloatArray | None = None
    inertia: FloatArray | None = None
    time: FloatArray | None = None

    def __post_init__(self) -> None:
        for field in ("q", "gravity", "inertia", "time"):
            value = getattr(self, field)
            if value is not None:
                object.__setattr__(self, field, read_only(value))

    def __len__(self) -> int:
        return len(self.q)

    def rows(self, index: slice) -> ControllerSamples:
        """Some of the poses."""
        g, M, t = self.gravity, self.inertia, self.time
        return ControllerSamples(
            name=self.name,
            q=self.q[index],
            gravity=None if g is None else g[index],
            inertia=None if M is None else M[index],
            time=None if t is None else t[index],
        )

    def only(self, *quantities: str) -> ControllerSamples:
        """`gravity` or `inertia` without the other."""
        gravity = self.gravity if "gravity" in quantities else None
        return replace(self, gravity=gravity, inertia=self.inertia if "inertia" in quantities else None)

    def held_out(self, share: float) -> tuple[ControllerSamples, ControllerSamples]:
        """The first poses for training and the last for validation."""
        cut = len(self) - round(share * len(self))
        if not 0 < cut < len(self):
            raise InputError(self.name, f"{len(self)} poses cannot be split", "give more poses, or --validate")
        return self.rows(slice(0, cut)), self.rows(slice(cut, None))

    def sources(self, robot: Robot, effects: Effects | None = None) -> dict[str, tuple[RowSource, FloatArray]]:
        """What was read as sources of rows over one parameter vector, with the values, shape [n_poses, n_channels]."""
        out: dict[str, tuple[RowSource, FloatArray]] = {}
        if self.gravity is not None:
            out["gravity"] = (GravityRows(robot, effects or Effects()), self.gravity)
        if self.inertia is not None:
            rows = InertiaMatrixRows(robot, effects or Effects())
            j, k = np.array(rows.entries).T
            out["inertia"] = (rows, 0.5 * (self.inertia[:, j, k] + self.inertia[:, k, j]))
        return out

    def information(self, robot: Robot, effects: Effects | None = None) -> Information:
        """One pass over the poses."""
        return total(accumulate(source, self.q, y) for source, y in self.sources(robot, effects).values())


def samples_of(samples: str | Path | ControllerSamples, robot: Robot) -> ControllerSamples:
    """Controller data from a file; controller data as they are."""
    return samples if isinstance(samples, ControllerSamples) else read_samples(_place(samples), robot)


def _place(samples: object) -> Path:
    return path_of("samples", samples, "controller data: the path of an npz or csv, or ControllerSamples")


def read_samples(path: Path, robot: Robot) -> ControllerSamples:
    """Controller data from a file, checked.

    Raises:
        InputError: unreadable, misshapen, in degrees, or not what it claims to be.
    """
    arrays = _from_csv(path, robot) if path.suffix.lower() == ".csv" else _from_npz(path)
    return _checked(path, robot, arrays)


def _from_npz(path: Path) -> dict[str, Any]:
    arrays = read_arrays(path, "controller data: an npz or csv as in docs/formats.md")
    return {_LONG_NAMES.get(name, name): value for name, value in arrays.items()}


def _from_csv(path: Path, robot: Robot) -> dict[str, Any]:
    """The arrays of a CSV, found by its header."""
    text = read_text(path, "controller data: an npz or csv as in docs/formats.md")
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
        header = [name.strip() for name in rows[0]]
        values = np.array([[float(x) for x in row] for row in rows[1:]]).reshape(-1, len(header))
    except (csv.Error, ValueError, IndexError):
        raise InputError(path, "not a table of numbers below one header", "see docs/formats.md") from None
    n = robot.n_joints
    column = {name: values[:, k] for k, name in enumerate(header)}
    out: dict[str, Any] = {}
    for field, letter in (("q", "q"), ("gravity", "g")):
        names = [f"{letter}{i + 1}" for i in range(n)]
        if all(name in column for name in names):
            out[field] = np.stack([column[name] for name in names], axis=1)
    entries = [(j, k) for j in range(n) for k in range(j, n)]
    if all(f"M_{j + 1}_{k + 1}" in column for j, k in entries):
        M = np.empty((len(values), n, n))
        for j, k in entries:
            M[:, j, k] = M[:, k, j] = column[f"M_{j + 1}_{k + 1}"]
        out["inertia"] = M
    if "time" in column:
        out["time"] = column["time"]
    return out


def _checked(path: Path, robot: Robot, arrays: Mapping[str, Any]) -> ControllerSamples:
    """Shapes, joint order, units, and whether the matrices are inertia matrices."""
    n = robot.n_joints
    if "q" not in arrays or not {"gravity", "inertia"} & set(arrays):
        raise InputError(
            path,
            f"holds {', '.join(arrays) or 'nothing'} of what a controller reports",
            "expected q and g or M: joint positions, with gravity vectors or inertia matrices",
        )
    count = len(arrays["q"])
    shapes = {"q": (count, n), "gravity": (count, n), "inertia": (count, n, n), "time": (count,)}
    found: dict[str, FloatArray] = {}
    for field, shape in shapes.items():
        if field in arrays:
            value = np.asarray(arrays[field], dtype=np.float64)
            if value.shape != shape:
                raise InputError(path, f"{field} has shape {list(value.shape)}", f"expected {list(shape)}")
            if not np.isfinite(value).all():
                raise InputError(path, f"{field} holds {int((~np.isfinite(value)).sum())} values that are not finite")
            found[field] = value
    order = _joint_order(path, robot, arrays)
    found = {f: _reordered(f, v, order) for f, v in found.items()}
    _check_positions(path, robot, found["q"])
    if "inertia" in found:
        _check_inertia(path, robot, found["inertia"])
    return ControllerSamples(name=path.name, **found)


def _joint_order(path: Path, robot: Robot, arrays: Mapping[str, Any]) -> list[int]:
    """Where each of the robot's joints stands in the file; names decide when there are any."""
    if "joint_names" not in arrays:
        return list(range(robot.n_joints))
    names = [str(name) for name in arrays["joint_names"]]
    missing = [name for name in robot.joint_names if name not in names]
    if missing or len(names) != robot.n_joints:
        raise InputError(path, f"joints {', '.join(names)}", f"{robot.name} has {', '.join(robot.joint_names)}")
    return [names.index(name) for name in robot.joint_names]


def _reordered(field: str, value: FloatArray, order: list[int]) -> FloatArray:
    if field == "time":
        return value
    value = value[:, order]
    return value[:, :, order] if field == "inertia" else value


def _check_positions(path: Path, robot: Robot, q: FloatArray) -> None:
    turning = [joint.kind is JointKind.REVOLUTE for joint in robot.joints]
    if any(turning) and float(np.abs(q[:, turning]).max(initial=0.0)) > _SMALL_ANGLES:
        largest = float(np.abs(q[:, turning]).max())
        raise InputError(path, f"a joint position of {largest:.4g} rad", "positions are in rad; convert from degrees")


def _check_inertia(path: Path, robot: Robot, M: FloatArray) -> None:
    """An inertia matrix is symmetric with a positive diagonal."""
    size = float(np.abs(M).max(initial=0.0))
    skew = np.abs(M - np.swapaxes(M, 1, 2)).max(axis=0)
    if float(skew.max(initial=0.0)) > _ASYMMETRY * size:
        j, k = (int(i) for i in np.unravel_index(np.argmax(skew), skew.shape))
        raise InputError(
            path, f"M[{j + 1},{k + 1}] and M[{k + 1},{j + 1}] differ by {skew[j, k]:.3g}", "expected inertia matrices"
        )
    diagonal = np.diagonal(M, axis1=1, axis2=2)
    if float(diagonal.min(initial=1.0)) <= 0.0:
        pose, joint = (int(i) for i in np.argwhere(diagonal <= 0.0)[0])
        raise InputError(
            path,
            f"inertia of {robot.joint_names[joint]} is {diagonal[pose, joint]:.3g} at pose {pose + 1}",
            "the diagonal of an inertia matrix is positive",
        )
