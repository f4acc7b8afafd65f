"""Poses files: rows of joint positions with what was measured there (docs/formats.md, section Poses)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.pose_titles import ANGLE_FACTORS, LAST_ROW, LENGTH_FACTORS
from armid.calibration.poses_table import (
    PosesMapping,
    PosesTable,
    check_twins,
    find,
    joint_columns,
    labelled,
    read_mapping,
    read_table,
    renamed_columns,
    scale,
    stacked,
)
from armid.calibration.read_conditions import (
    TEMPERATURE,
    TIME,
    conditions,
    measured_torque,
    torque_columns,
    unread_conditions,
)
from armid.calibration.read_constraints import SIGMA_DISTANCE, TARGET, constraint_observations
from armid.calibration.read_orientations import angles_as, check_last_row, matrices, quaternions
from armid.calibration.words import QUATERNION_ORDERS
from armid.errors import InputError
from armid.kinematics.measurement import KnownPlace, Measurements, Observations, Observed, with_covariance

Mask = npt.NDArray[np.bool_]

_POSITION = re.compile(r"(?:pose[_. ])?(?:p|pos|position|t|translation)?[_. ]?([xyz])[_ ]?(\d*)$")
_QUATERNION = re.compile(r"(?:pose[_. ])?(?:q|quat|quaternion|orientation)[_. ]?([wxyz])[_ ]?(\d*)$")
_ROTATION = re.compile(r"(?:r|rot|rv)[_ ]?([xyz])[_ ]?(\d*)$")
_EULER = re.compile(r"(?:phi|euler|rpy)[_ ]?([xyz])[_ ]?(\d*)$")
_SIGMA = re.compile(r"(?:std|sigma|sd)[_ ]?([xyz])[_ ]?(\d*)$")
_SIGMA_R = re.compile(r"(?:std|sigma|sd)[_ ]?r([xyz])[_ ]?(\d*)$")
_PLACE = re.compile(r"(?:body|cluster|fixture)[_ ]([xyz])[_ ]?(\d*)$")
_NAMED_EULER = {
    ("roll", "pitch", "yaw"): "euler-xyz",
    ("w", "p", "r"): "euler-xyz",  # Fanuc: about fixed x, y, z
    ("a", "b", "c"): "euler-ZYX",  # KUKA: about moving z, y, x
}
_GROUP = ("config", "configuration", "group", "pose_id")
_SETUP = ("setup", "station", "sensor", "camera")
_BODY = ("body", "cluster", "fixture")
_MATRIX = tuple(f"r{i}{j}" for i in "123" for j in "123")
_COVARIANCE = ("xx", "xy", "xz", "yy", "yz", "zz")


@dataclass(frozen=True, kw_only=True)
class TargetColumns:
    """The columns of one target: position, orientation (with its reading), and their standard deviations."""

    position: tuple[str, ...] = ()
    orientation: tuple[str, ...] = ()
    reading: str = ""
    sigma_position: tuple[str, ...] = ()
    sigma_orientation: tuple[str, ...] = ()
    covariance: tuple[str, ...] = ()
    place: tuple[str, ...] = ()


def _triples(table: PosesTable, pattern: re.Pattern[str], letters: str, taken: set[str]) -> dict[str, tuple[str, ...]]:
    """Complete sets of columns x, y, z (with the same suffix), by suffix."""
    found: dict[str, dict[str, str]] = {}
    for name in table.columns:
        match = pattern.fullmatch(name)
        if match and name not in taken:
            found.setdefault(match.group(2), {}).setdefault(match.group(1), name)
    return {s: tuple(by[c] for c in letters) for s, by in found.items() if all(c in by for c in letters)}


def _target_columns(table: PosesTable, joints: Sequence[str]) -> dict[str, TargetColumns]:
    """Columns of every target, by the number behind their names (empty for a single target)."""
    taken = set(joints)
    quaternion = _triples(table, _QUATERNION, "wxyz", taken)
    taken |= {name for names in quaternion.values() for name in names}
    position = _triples(table, _POSITION, "xyz", taken)
    rotation, euler = _triples(table, _ROTATION, "xyz", taken), _triples(table, _EULER, "xyz", taken)
    sigma, sigma_r = _triples(table, _SIGMA, "xyz", taken), _triples(table, _SIGMA_R, "xyz", taken)
    place = _triples(table, _PLACE, "xyz", taken)
    named = next((k for k in _NAMED_EULER if all(name in table.columns and name not in taken for name in k)), None)
    out = {}
    alone = [""] if named is not None or all(name in table.columns for name in _MATRIX) else []
    for s in dict.fromkeys([*position, *quaternion, *rotation, *euler, *alone]):
        orientation: tuple[str, ...] = ()
        reading = ""
        for names, how in ((quaternion, QUATERNION_ORDERS[0]), (euler, "euler-xyz"), (rotation, "rotation-vector")):
            if not orientation and s in names:
                orientation, reading = names[s], how
        if not orientation and s == "" and all(name in table.columns for name in _MATRIX):
            orientation, reading = _MATRIX, "matrix"
        if not orientation and named is not None and s == "":
            orientation, reading = named, _NAMED_EULER[named]
        covariance = tuple(f"cov_{pair}{s}" for pair in _COVARIANCE)
        out[s] = TargetColumns(
            position=position.get(s, ()),
            orientation=orientation,
            reading=reading,
            sigma_position=sigma.get(s, ()),
            sigma_orientation=sigma_r.get(s, ()),
            covariance=covariance if all(name in table.columns for name in covariance) else (),
            place=place.get(s, ()),
        )
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
    table = renamed_columns(read_table(path), mapping.columns)
    joints = joint_columns(table, joint_names, mapping)
    slides = list(prismatic) or [False] * len(joints)
    q = np.column_stack(
        [
            table.numbers(name) * scale(table, name, mapping, length=slide)
            for name, slide in zip(joints, slides, strict=True)
        ]
    )
    bad = np.flatnonzero(~np.isfinite(q).all(axis=1))
    if len(bad):
        lost = table.titles[joints[int(np.argmin(np.isfinite(q[bad[0]])))]]
        raise InputError(
            f"{table.where}, line {table.lines[bad[0]]}",
            f"joint position {lost} is missing or not finite ({len(bad)} such rows)",
            "fill it in, or put # in front of the line",
        )
    given = table
    table = table.without(joints)  # A joint may be called anything: T is then no time, X no position.
    check_twins(table)
    check_last_row(table)
    observations = [*_frame_observations(table, joints, mapping), *constraint_observations(table, mapping)]
    if not observations:
        raise InputError(
            table.where,
            "no measurement columns",
            "expected x, y, z; qw, qx, qy, qz; distance; plane; socket; ...; a mapping file names others (`columns: {x: TCP_X}`)",
        )
    places = _known_places(table, joints, mapping, {o.target for o in observations})
    group = find(table, _GROUP)
    groups = None if group is None else np.unique(table.columns[group], return_inverse=True)[1].astype(np.intp)
    return Measurements(
        q=q,
        observations=tuple(observations),
        groups=groups,
        labels=tuple(f"{table.where}:{line}" for line in table.lines),
        conditions=conditions(table),
        places=places,
        torque=measured_torque(table, joint_names),
        remarks=_remarks(given, joint_names, joints, mapping, observations),
    )


_READ_ELSEWHERE = re.compile(
    r"(?:cov_[xyz]{2}|r[123][123]|plane|socket|touch|other|anchor|centre|center|distance|dist|length|bar|name|no|nr|index|id|comment)\d*$"
)
"""Further columns that are read, or that number and name rows."""


def _remarks(
    table: PosesTable,
    joint_names: Sequence[str],
    joints: Sequence[str],
    mapping: PosesMapping,
    observations: Sequence[Observations],
) -> tuple[str, ...]:
    """What of the file was not used: columns nobody understood, rows without a measurement."""
    used = {*joints, *TARGET, *_GROUP, *_SETUP, *_BODY, *TEMPERATURE, *TIME, *SIGMA_DISTANCE}
    used |= {*torque_columns(table, joint_names), *LAST_ROW}
    used -= set(unread_conditions(table))
    for columns in _target_columns(table.without(joints), joints).values():
        used |= {*columns.position, *columns.orientation, *columns.sigma_position, *columns.sigma_orientation}
        used |= {*columns.covariance, *columns.place}
    unread = [title for name, title in table.titles.items() if name not in used and not _READ_ELSEWHERE.fullmatch(name)]
    out = (
        [f"{table.where}: columns not read: {', '.join(unread)} (a mapping file names them: `columns: {{x: TITLE}}`)"]
        if unread
        else []
    )
    if table.above:
        out.append(f"{table.where}: {table.above} lines above the header not read")
    out += _half_filled(table, joints)
    seen = np.zeros(len(table), dtype=bool)
    for o in observations:
        seen[o.rows] = True
        if o.other_rows is not None:
            seen[o.other_rows] = True
    empty = np.flatnonzero(~seen)
    if len(empty):
        out.append(f"{table.where}: {len(empty)} rows without a measurement, the first line {table.lines[empty[0]]}")
    return tuple(out)


def _half_filled(table: PosesTable, joints: Sequence[str]) -> list[str]:
    """Positions and orientations that have some of their numbers and lack others: they count as not measured."""
    out = []
    for columns in _target_columns(table.without(joints), joints).values():
        for names in (columns.position, columns.orientation):
            missing = np.array([np.isnan(table.numbers(name)) for name in names]).reshape(len(names), len(table))
            half = np.flatnonzero(missing.any(axis=0) & ~missing.all(axis=0))
            if len(half):
                told = ", ".join(table.titles[name] for name in names)
                where = f"the first line {table.lines[half[0]]}"
                out.append(f"{table.where}: {len(half)} rows have only part of {told} and count without them, {where}")
    return out


def _frame_observations(table: PosesTable, joints: Sequence[str], mapping: PosesMapping) -> list[Observations]:
    """Poses, positions and orientations of every target; a row may have any of the three."""
    out = []
    targets = labelled(table, TARGET, "")
    setups = labelled(table, _SETUP, mapping.setup)
    for suffix, columns in _target_columns(table, joints).items():
        p = stacked(table, columns.position, mapping, length=True) if columns.position else None
        R, turned = _orientation_matrices(table, columns, mapping)
        angles = (
            stacked(table, columns.orientation, _of_orientation(mapping), length=False)
            if len(columns.orientation) == 3
            else None
        )
        placed = np.zeros(len(table), dtype=bool) if p is None else np.isfinite(p).all(axis=1)
        kinds = {
            Observed.POSE: placed & turned,
            Observed.POSITION: placed & ~turned,
            Observed.ORIENTATION: turned & ~placed,
        }
        keys = list(zip(setups, [t or f"{mapping.target}{suffix}" for t in targets], strict=True))
        for key in dict.fromkeys(keys):
            own = np.array([k == key for k in keys])
            for quantity, seen in kinds.items():
                rows = np.flatnonzero(own & seen)
                if len(rows):
                    o = Observations(
                        quantity=quantity,
                        rows=rows,
                        position=p[rows] if p is not None and quantity.has_position else None,
                        rotation=R[rows] if R is not None and quantity.has_orientation else None,
                        sigma=instrument(table, columns, quantity, mapping)[rows],
                        numbers=angles[rows] if angles is not None and quantity.has_orientation else None,
                        riding=mapping.sensor == "hand",
                        setup=key[0],
                        target=key[1],
                    )
                    out.append(_with_covariances(table, columns, mapping, o))
    return out


def _with_covariances(
    table: PosesTable, columns: TargetColumns, mapping: PosesMapping, o: Observations
) -> Observations:
    """The observations with the covariance of their positions, where the file has one."""
    if not columns.covariance or not o.quantity.has_position:
        return o
    factor = scale(table, columns.position[0], mapping, length=True) ** 2
    xx, xy, xz, yy, yz, zz = (factor * table.numbers(name)[o.rows] for name in columns.covariance)
    C = np.zeros((len(o), len(o.quantity.channels), len(o.quantity.channels)))
    C[:, :3, :3] = np.nan_to_num(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1))
    for k in range(3, C.shape[1]):
        C[:, k, k] = o.noise[:, k] ** 2
    return with_covariance(o, C)


def _known_places(
    table: PosesTable, joints: Sequence[str], mapping: PosesMapping, seen: set[str]
) -> dict[str, KnownPlace]:
    """Places of targets on rigid bodies: from the mapping, or from columns that say the same on every row."""
    out: dict[str, KnownPlace] = {}
    named = {name for targets in mapping.bodies.values() for name in targets}
    if named and not named & seen:
        # One mapping may serve several files, each with some of its targets; a file with none of them is another file's.
        missing = "; ".join(
            f"no target {', '.join(sorted(targets))} for body {body}" for body, targets in mapping.bodies.items()
        )
        exist = ", ".join(sorted(seen))
        raise InputError(table.where, f"{missing} of the mapping", f"targets of the file: {exist}")
    for body, targets in mapping.bodies.items():
        out |= {name: KnownPlace(body, (at[0], at[1], at[2])) for name, at in targets.items() if name in seen}
    bodies, targets_of = labelled(table, _BODY, "body"), labelled(table, TARGET, "")
    for suffix, columns in _target_columns(table, joints).items():
        if not columns.place:
            continue
        at = stacked(table, columns.place, mapping, length=True)
        for row in np.flatnonzero(np.isfinite(at).all(axis=1)):
            name = targets_of[row] or f"{mapping.target}{suffix}"
            place = KnownPlace(bodies[row], (float(at[row, 0]), float(at[row, 1]), float(at[row, 2])))
            if out.setdefault(name, place) != place:
                raise InputError(
                    f"{table.where}, line {table.lines[row]}",
                    f"target {name} sits at another place than before",
                    "a rigid body does not change; name targets apart in the column `target`",
                )
    return out


def _orientation_matrices(
    table: PosesTable, columns: TargetColumns, mapping: PosesMapping
) -> tuple[FloatArray | None, Mask]:
    """Rotation matrices of one target, and where they were measured."""
    if not columns.orientation:
        return None, np.zeros(len(table), dtype=bool)
    is_quaternion = len(columns.orientation) == 4
    raw = np.column_stack([table.numbers(name) for name in columns.orientation])
    seen: Mask = np.all(np.isfinite(raw), axis=1, keepdims=True)[:, 0]
    reading = mapping.orientation or columns.reading
    if columns.reading == "matrix" and mapping.orientation is None:
        return matrices(table, raw, seen), seen
    if is_quaternion != reading.startswith("quaternion") or columns.reading == "matrix":
        raise InputError(
            table.where,
            f"{len(columns.orientation)} orientation columns cannot be read as {reading}",
            f"columns: {', '.join(table.titles[c] for c in columns.orientation)}",
        )
    if is_quaternion:
        return quaternions(table, raw, seen, reading), seen
    factor = scale(table, columns.orientation[0], _of_orientation(mapping), length=False)
    return angles_as(np.nan_to_num(raw) * factor, reading), seen


def instrument(table: PosesTable, columns: TargetColumns, quantity: Observed, mapping: PosesMapping) -> FloatArray:
    """Standard deviations per row and channel [m, rad]."""
    parts = []
    for wanted, names, default, length in (
        (quantity.has_position, columns.sigma_position, mapping.sigma_position, True),
        (quantity.has_orientation, columns.sigma_orientation, mapping.sigma_orientation, False),
    ):
        if wanted:
            measured = columns.position if length else columns.orientation
            known = (
                np.nan_to_num(stacked(table, names, _like(table, measured, mapping), length=length))
                if names
                else np.broadcast_to(np.asarray(default, dtype=np.float64), (len(table), 3))
            )
            parts.append(known)
    return np.hstack(parts)


def _of_orientation(mapping: PosesMapping) -> PosesMapping:
    """The mapping as it holds for Euler angles."""
    return replace(mapping, angles=mapping.orientation_angles or mapping.angles)


def _like(table: PosesTable, measured: Sequence[str], mapping: PosesMapping) -> PosesMapping:
    """The mapping for deviations that do not name their unit: it is that of what was measured."""
    unit = table.units[measured[0]] if measured else ""
    mapping = _of_orientation(mapping)
    if unit in LENGTH_FACTORS:
        return replace(mapping, lengths=unit)
    return replace(mapping, angles=unit) if unit in ANGLE_FACTORS else mapping
