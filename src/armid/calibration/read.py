"""Poses files: rows of joint positions with what was measured there (docs/formats.md, section Poses)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.measurement import Measurements, Observations, Quantity
from armid.calibration.poses_table import (
    QUATERNION_ORDERS,
    PosesMapping,
    PosesTable,
    find,
    joint_columns,
    read_mapping,
    read_table,
    scale,
    stacked,
)  # fmt: skip
from armid.calibration.rotations import inverse, matrix_from_euler, matrix_from_quaternion, rigid, rotation_exp
from armid.errors import InputError

Mask = npt.NDArray[np.bool_]

_POSITION = re.compile(r"(?:p|pos|position|t)?[_ ]?([xyz])[_ ]?(\d*)$")
_QUATERNION = re.compile(r"(?:q|quat|quaternion)[_ ]?([wxyz])[_ ]?(\d*)$")
_ROTATION = re.compile(r"(?:r|rot|rv)[_ ]?([xyz])[_ ]?(\d*)$")
_EULER = re.compile(r"(?:phi|euler|rpy)[_ ]?([xyz])[_ ]?(\d*)$")
_SIGMA = re.compile(r"(?:std|sigma|sd)[_ ]?(r?[xyz])[_ ]?(\d*)$")
_NAMED_EULER = {
    ("roll", "pitch", "yaw"): "euler-xyz",
    ("w", "p", "r"): "euler-xyz",  # Fanuc: about fixed x, y, z
    ("a", "b", "c"): "euler-ZYX",  # KUKA: about moving z, y, x
}
_TARGET = ("target", "point", "marker", "smr", "reflector")
_GROUP = ("config", "configuration", "group", "pose_id")
_SETUP = ("setup", "station", "sensor", "camera")
_PLANE, _SOCKET, _OTHER, _ANCHOR = ("plane",), ("socket", "touch"), ("other",), ("anchor", "centre", "center")
_DISTANCE = ("distance", "dist", "length", "bar")


@dataclass(frozen=True)
class TargetColumns:
    """The columns of one target: position, orientation (with its reading), and their standard deviations."""

    position: tuple[str, ...] = ()
    orientation: tuple[str, ...] = ()
    reading: str = ""
    sigma_position: tuple[str, ...] = ()
    sigma_orientation: tuple[str, ...] = ()


def triples(table: PosesTable, pattern: re.Pattern[str], letters: str, taken: set[str]) -> dict[str, tuple[str, ...]]:
    """Complete sets of columns x, y, z (with the same suffix), by suffix."""
    found: dict[str, dict[str, str]] = {}
    for name in table.columns:
        match = pattern.fullmatch(name)
        if match and name not in taken:
            found.setdefault(match.group(2), {}).setdefault(match.group(1), name)
    return {s: tuple(by[c] for c in letters) for s, by in found.items() if all(c in by for c in letters)}


def target_columns(table: PosesTable, joints: Sequence[str]) -> dict[str, TargetColumns]:
    """Columns of every target, by the number behind their names (empty for a single target)."""
    taken = set(joints)
    quaternion = triples(table, _QUATERNION, "wxyz", taken)
    taken |= {name for names in quaternion.values() for name in names}
    position = triples(table, _POSITION, "xyz", taken)
    rotation, euler = triples(table, _ROTATION, "xyz", taken), triples(table, _EULER, "xyz", taken)
    sigma = triples(table, re.compile(_SIGMA.pattern.replace("r?", "")), "xyz", taken)
    sigma_r = {
        s: tuple(f"{base}" for base in names)
        for s, names in triples(table, re.compile(r"(?:std|sigma|sd)[_ ]?r([xyz])[_ ]?(\d*)$"), "xyz", taken).items()
    }
    named = next((k for k in _NAMED_EULER if all(name in table.columns and name not in taken for name in k)), None)
    out = {}
    for s in dict.fromkeys([*position, *quaternion, *rotation, *euler]):
        orientation: tuple[str, ...] = ()
        reading = ""
        for names, how in ((quaternion, QUATERNION_ORDERS[0]), (euler, "euler-xyz"), (rotation, "rotation-vector")):
            if not orientation and s in names:
                orientation, reading = names[s], how
        if not orientation and named is not None and s == "":
            orientation, reading = named, _NAMED_EULER[named]
        out[s] = TargetColumns(position.get(s, ()), orientation, reading, sigma.get(s, ()), sigma_r.get(s, ()))
    return out


def read_poses(
    path: str | Path, joint_names: Sequence[str], *, prismatic: Sequence[bool] = (), mapping: PosesMapping | None = None
) -> Measurements:
    """Measurements from one file.

    Args:
        path: delimited text with a header line; `NAME.map.yaml` beside it is used when no mapping is given.
        joint_names: of the robot, in kinematic order.
        prismatic: which joints slide (their positions are lengths).
        mapping: how to read the columns.

    Raises:
        InputError: naming the file, line and column.
    """
    path = Path(path)
    beside = path.with_suffix(".map.yaml")
    if mapping is None:
        mapping = read_mapping(beside) if beside.is_file() else PosesMapping()
    table = read_table(path)
    joints = joint_columns(table, joint_names, mapping)
    slides = list(prismatic) or [False] * len(joints)
    q = np.column_stack([
        table.numbers(name) * scale(table, name, mapping, length=slide)
        for name, slide in zip(joints, slides, strict=True)
    ])  # fmt: skip
    bad = np.flatnonzero(~np.isfinite(q).all(axis=1))
    if len(bad):
        raise InputError(f"{table.where}, line {table.lines[bad[0]]}", "a joint position is missing or not finite")
    observations = [*frame_observations(table, joints, mapping), *constraint_observations(table, mapping)]
    if not observations:
        raise InputError(
            table.where, "no measurement columns", "expected x, y, z; qw, qx, qy, qz; distance; plane; socket; ..."
        )
    group = find(table, _GROUP)
    groups = None if group is None else np.unique(table.columns[group], return_inverse=True)[1].astype(np.intp)
    return Measurements(
        q, tuple(observations), groups, tuple(f"{table.where}:{line}" for line in table.lines), conditions(table)
    )


def labelled(table: PosesTable, names: Sequence[str], default: str) -> list[str]:
    """A name per row: from the first of these columns that exists, or the default."""
    column = find(table, names)
    return (
        [default] * len(table)
        if column is None
        else [f"{names[0]}{v}" if v.isdigit() else v for v in table.columns[column]]
    )


def frame_observations(table: PosesTable, joints: Sequence[str], mapping: PosesMapping) -> list[Observations]:
    """Poses, positions and orientations of every target."""
    out = []
    targets = labelled(table, _TARGET, "")
    setups = labelled(table, _SETUP, mapping.setup)
    for suffix, columns in target_columns(table, joints).items():
        p = stacked(table, columns.position, mapping, length=True) if columns.position else None
        R, seen = orientation_matrices(table, columns, mapping)
        visible = np.isfinite(p).all(axis=1) if p is not None else np.ones(len(table), dtype=bool)
        visible &= seen
        quantity = Quantity.POSITION if R is None else Quantity.ORIENTATION if p is None else Quantity.POSE
        if mapping.sensor == "hand" and quantity is Quantity.POSE:
            assert p is not None
            assert R is not None
            T = inverse(rigid(R, np.nan_to_num(p)))
            p, R = T[:, :3, 3], T[:, :3, :3]
        sigma = instrument(table, columns, quantity, mapping)
        names = [t or (f"{mapping.target}{suffix}") for t in targets]
        for key in dict.fromkeys(zip(setups, names, strict=True)):
            rows = np.flatnonzero(visible & np.array([k == key for k in zip(setups, names, strict=True)]))
            if len(rows):
                out.append(Observations(
                    quantity, rows, None if p is None else p[rows], None if R is None else R[rows],
                    sigma=sigma[rows], setup=key[0], target=key[1],
                ))  # fmt: skip
    return out


def orientation_matrices(
    table: PosesTable, columns: TargetColumns, mapping: PosesMapping
) -> tuple[FloatArray | None, Mask]:
    """Rotation matrices of one target, and where they were measured."""
    if not columns.orientation:
        return None, np.ones(len(table), dtype=bool)
    is_quaternion = len(columns.orientation) == 4
    raw = np.column_stack([table.numbers(name) for name in columns.orientation])
    seen: Mask = np.all(np.isfinite(raw), axis=1, keepdims=True)[:, 0]
    reading = mapping.orientation or columns.reading
    if is_quaternion != reading.startswith("quaternion"):
        raise InputError(
            table.where, f"{len(columns.orientation)} orientation columns cannot be read as {reading}",
            f"columns: {', '.join(table.titles[c] for c in columns.orientation)}",
        )  # fmt: skip
    if is_quaternion:
        return quaternions(table, raw, seen, reading), seen
    factor = scale(table, columns.orientation[0], mapping, length=False)
    return angles_as(np.nan_to_num(raw) * factor, reading), seen


def angles_as(values: FloatArray, reading: str) -> FloatArray:
    """Rotation matrices of three numbers read as Euler angles or as a rotation vector [rad]."""
    if reading == "rotation-vector":
        return rotation_exp(values)
    return matrix_from_euler(values, reading.removeprefix("euler-"))


NOT_UNIT = 0.02
"""How far a quaternion's norm may be from one: two decimals of each component."""


def quaternions(table: PosesTable, raw: FloatArray, seen: Mask, reading: str) -> FloatArray:
    """Rotation matrices of quaternions in either order; refuses those that are not of unit length."""
    norm = np.linalg.norm(raw, axis=1)
    bad = np.flatnonzero(seen & (np.abs(norm - 1.0) > NOT_UNIT))
    if len(bad):
        raise InputError(
            f"{table.where}, line {table.lines[bad[0]]}",
            f"quaternion of length {norm[bad[0]]:.4g} ({len(bad)} of {len(raw)} rows are not normalised)",
            "columns mixed up, angles instead of a quaternion, or a lost digit: a rotation has length 1",
        )
    unit = np.where(seen[:, np.newaxis], raw, [1.0, 0.0, 0.0, 0.0]) / np.where(seen, norm, 1.0)[:, np.newaxis]
    # Columns named qw qx qy qz that really hold x y z w: the first column is x.
    return matrix_from_quaternion(unit if reading == QUATERNION_ORDERS[0] else np.roll(unit, 1, axis=1))


def instrument(table: PosesTable, columns: TargetColumns, quantity: Quantity, mapping: PosesMapping) -> FloatArray:
    """Standard deviations per row and channel [m, rad]."""
    parts = []
    for wanted, names, default, length in (
        (quantity.has_position, columns.sigma_position, mapping.sigma_position, True),
        (quantity.has_orientation, columns.sigma_orientation, mapping.sigma_orientation, False),
    ):
        if wanted:
            known = (
                np.nan_to_num(stacked(table, names, mapping, length=length))
                if names
                else np.full((len(table), 3), default)
            )
            parts.append(known)
    return np.hstack(parts)


def constraint_observations(table: PosesTable, mapping: PosesMapping) -> list[Observations]:
    """Touched points, planes, distances from a fixed point and lengths between configurations."""
    out: list[Observations] = []
    targets = labelled(table, _TARGET, mapping.target)
    for quantity, names in ((Quantity.PLANE, _PLANE), (Quantity.POINT, _SOCKET)):
        column = find(table, names)
        if column is not None:
            out += by_label(quantity, [f"{names[0]}{v}" if v.isdigit() else v for v in table.columns[column]], targets)
    column = find(table, _DISTANCE)
    if column is None:
        return out
    d = table.numbers(column) * scale(table, column, mapping, length=True)
    other = find(table, _OTHER)
    if other is not None:
        second = table.numbers(other)
        rows = np.flatnonzero(np.isfinite(d) & np.isfinite(second))
        line_of = {line: i for i, line in enumerate(range(1, len(table) + 1))}
        ends = np.array([line_of.get(int(second[r]), -1) for r in rows], dtype=np.intp)
        if (ends < 0).any():
            raise InputError(
                table.where,
                f"column {other!r} names row {int(second[rows[ends < 0][0]])}",
                f"rows are 1 to {len(table)}",
            )
        out.append(Observations(Quantity.LENGTH, rows, distance=d[rows], other_rows=ends, target=targets[0]))
        return out
    anchors = labelled(table, _ANCHOR, "anchor")
    for o in by_label(
        Quantity.DISTANCE, [a if np.isfinite(x) else "" for a, x in zip(anchors, d, strict=True)], targets, d
    ):
        out.append(o)
    return out


def by_label(
    quantity: Quantity, setups: Sequence[str], targets: Sequence[str], distance: FloatArray | None = None
) -> list[Observations]:
    """One set of observations per place and target; rows with an empty place are left out."""
    out = []
    for key in dict.fromkeys(zip(setups, targets, strict=True)):
        rows = np.flatnonzero([k == key for k in zip(setups, targets, strict=True)])
        if key[0]:
            out.append(Observations(
                quantity, rows, distance=None if distance is None else distance[rows], setup=key[0], target=key[1]
            ))  # fmt: skip
    return out


def conditions(table: PosesTable) -> dict[str, FloatArray]:
    """Temperature and time, where there are such columns."""
    out = {}
    for label, names in (
        ("temperature", ("temp", "temp_c", "temperature", "temperature_c")),
        ("time", ("t", "time", "timestamp", "stamp")),
    ):
        column = find(table, names)
        if column is not None:
            values = table.numbers(column)
            if np.isfinite(values).all():
                out[label] = values
    return out
