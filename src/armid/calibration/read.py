"""Poses files: rows of joint positions with what was measured there (docs/formats.md, section POSES)."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.measurement import Measurements, Observations, Quantity
from armid.calibration.rotations import inverse, matrix_from_euler, matrix_from_quaternion, rigid, rotation_exp
from armid.errors import InputError
from armid.robot.document import Field, document

MAX_BYTES = 500_000_000
"""A pose row is about 200 bytes: two million rows are no calibration."""

QUATERNION_ORDERS = ("quaternion-wxyz", "quaternion-xyzw")
EULER = tuple(f"euler-{order}" for order in ("xyz", "zyx", "zyz", "zxz", "xzy", "yxz", "yzx", "zxy"))
MOVING_EULER = tuple(f"euler-{order}" for order in ("XYZ", "ZYZ", "ZXZ"))
ORIENTATIONS = (*QUATERNION_ORDERS, *EULER, *MOVING_EULER, "rotation-vector")
"""How three or four orientation columns are read; lower-case Euler orders are about fixed axes, upper-case about moving ones."""


@dataclass(frozen=True)
class PosesMapping:
    """How the columns of a poses file are to be read; anything left at its default is detected.

    Args:
        joints: columns of the joint positions in kinematic order.
        lengths: unit of positions and prismatic joints, `m` or `mm`.
        angles: unit of joint angles and Euler angles, `rad` or `deg`.
        orientation: one of `ORIENTATIONS`.
        sensor: `fixed` (it sees a target on the arm) or `hand` (it rides on the arm and sees a fixed target).
        setup, target: names for the frames; columns of the file override them.
        sigma_position, sigma_orientation: the instrument's standard deviation [m, rad] where the file has none.
    """

    joints: tuple[str, ...] | None = None
    lengths: str | None = None
    angles: str | None = None
    orientation: str | None = None
    sensor: str | None = None
    setup: str = "sensor"
    target: str = "tool"
    sigma_position: float = 0.0
    sigma_orientation: float = 0.0


FORMAT = "armid-poses/1"
_KEYS = ("format", "joints", "lengths", "angles", "orientation", "sensor", "setup", "target", "sigma")


def read_mapping(path: str | Path) -> PosesMapping:
    """A mapping file (`NAME.map.yaml` beside the data)."""
    path = Path(path)
    top = Field(document(path.read_text(encoding="utf-8"), path.name), f"{path.name}:").keys(_KEYS, ("format",))
    top["format"].choice((FORMAT,))
    sigma = top["sigma"].keys(("position", "orientation")) if "sigma" in top else {}
    return PosesMapping(
        joints=tuple(item.name() for item in top["joints"].items()) if "joints" in top else None,
        lengths=top["lengths"].choice(("m", "mm")) if "lengths" in top else None,
        angles=top["angles"].choice(("rad", "deg")) if "angles" in top else None,
        orientation=top["orientation"].choice(ORIENTATIONS) if "orientation" in top else None,
        sensor=top["sensor"].choice(("fixed", "hand")) if "sensor" in top else None,
        setup=top["setup"].name() if "setup" in top else "sensor",
        target=top["target"].name() if "target" in top else "tool",
        sigma_position=sigma["position"].number() if "position" in sigma else 0.0,
        sigma_orientation=sigma["orientation"].number() if "orientation" in sigma else 0.0,
    )


@dataclass(frozen=True, eq=False)
class PosesTable:
    """A poses file as text columns.

    Args:
        where: file name, for messages.
        columns: by plain lower-case name without unit.
        units: what the header says about the unit of each column (`mm`, `deg`, ...), empty where nothing.
        titles: header cells as written, by plain name.
        lines: line number of each row.
    """

    where: str
    columns: dict[str, list[str]]
    units: dict[str, str]
    titles: dict[str, str]
    lines: tuple[int, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.lines)

    def numbers(self, name: str) -> FloatArray:
        """A column as floats; an empty cell is NaN."""
        out = np.empty(len(self))
        for i, cell in enumerate(self.columns[name]):
            try:
                out[i] = float(cell) if cell else np.nan
            except ValueError:
                hint = "write decimal points" if "," in cell else "expected a number or an empty cell"
                raise InputError(
                    f"{self.where}, line {self.lines[i]}", f"{cell!r} in column {self.titles[name]!r}", hint
                ) from None
        return out


_UNIT = re.compile(r"[\s_]*[\[(]\s*(mm|m|rad|deg|degc|c|°)\s*[\])]$|_(mm|rad|deg)$")


def plain(title: str) -> tuple[str, str]:
    """Lower-case name and unit of a header cell."""
    text = title.strip().lower()
    match = _UNIT.search(text)
    if match is None:
        return text, ""
    unit = match.group(1) or match.group(2) or ""
    return text[: match.start()].strip(), {"°": "deg"}.get(unit, unit)


def read_table(path: str | Path) -> PosesTable:
    """The cells of a delimited text file with a header line."""
    path = Path(path)
    if not path.is_file():
        raise InputError(path, "no such file")
    if path.stat().st_size > MAX_BYTES:
        raise InputError(path, f"larger than {MAX_BYTES} bytes", "is this a poses file?")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(path, "not UTF-8 text", "expected a CSV file with a header line") from None
    numbered = [(i + 1, line) for i, line in enumerate(text.splitlines()) if line.strip() and not line.startswith("#")]
    if len(numbered) < 2:
        raise InputError(path, "no rows", "expected a header line and one row per measurement")
    header = numbered[0][1]
    delimiter = next((d for d in (",", ";", "\t") if d in header), None)
    rows = [
        (number, line.split() if delimiter is None else next(csv.reader([line], delimiter=delimiter)))
        for number, line in numbered
    ]
    titles = [cell.strip() for cell in rows[0][1]]
    if all(_is_number(title) for title in titles):
        raise InputError(path, "the first line is numbers", "a header line must name the columns (q1, ..., x, y, z, ...)")
    for number, cells in rows[1:]:
        if len(cells) != len(titles):
            raise InputError(f"{path}, line {number}", f"{len(cells)} cells", f"the header has {len(titles)}")
    names = [plain(title) for title in titles]
    twice = sorted({name for name, _ in names if [n for n, _ in names].count(name) > 1})
    if twice:
        raise InputError(path, f"column {twice[0]!r} appears twice")
    columns = {name: [cells[k].strip() for _, cells in rows[1:]] for k, (name, _) in enumerate(names)}
    return PosesTable(
        path.name, columns, dict(names), {name: t for (name, _), t in zip(names, titles, strict=True)},
        tuple(number for number, _ in rows[1:]),
    )  # fmt: skip


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_NUMBERED_JOINT = re.compile(r"(?:q|j|joint|axis|a|theta)[_ ]?(\d+)$")


def joint_columns(table: PosesTable, joint_names: Sequence[str], mapping: PosesMapping) -> list[str]:
    """Columns of the joints in kinematic order: by mapping, by the robot's joint names, or by number."""
    if mapping.joints is not None:
        wanted = [plain(name)[0] for name in mapping.joints]
        missing = [name for name in wanted if name not in table.columns]
        if missing or len(wanted) != len(joint_names):
            raise InputError(
                table.where, f"the mapping's joint columns {', '.join(missing or wanted)} do not fit",
                f"the robot has {len(joint_names)} joints; columns: {', '.join(table.titles.values())}",
            )  # fmt: skip
        return wanted
    named = [plain(name)[0] for name in joint_names]
    if all(name in table.columns for name in named):
        return named
    numbered = {int(m.group(1)): name for name in table.columns if (m := _NUMBERED_JOINT.fullmatch(name))}
    for first in (1, 0):
        if set(numbered) == set(range(first, first + len(joint_names))):
            return [numbered[first + i] for i in range(len(joint_names))]
    some = [name for name in named if name in table.columns]
    lost = [title for title, name in zip(joint_names, named, strict=True) if name not in table.columns]
    detail = f"no column for joint {', '.join(lost)}" if some else f"found {len(numbered)} numbered joint columns"
    raise InputError(
        table.where, f"{detail}; the robot has {len(joint_names)} joints: {', '.join(joint_names)}",
        "name columns after the joints or q1, q2, ..., name them in a mapping, or choose another --tip",
    )  # fmt: skip


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


def find(table: PosesTable, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in table.columns), None)


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
        orientation, reading = ((), "")
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


def scale(table: PosesTable, name: str, mapping: PosesMapping, *, length: bool) -> float:
    """Factor to SI of a column: its own header first, then the mapping."""
    unit = table.units[name] or (mapping.lengths if length else mapping.angles) or ""
    return {"mm": 1e-3, "deg": np.pi / 180.0}.get(unit, 1.0)


def stacked(table: PosesTable, names: Sequence[str], mapping: PosesMapping, *, length: bool) -> FloatArray:
    return np.column_stack([table.numbers(name) * scale(table, name, mapping, length=length) for name in names])


def labelled(table: PosesTable, names: Sequence[str], default: str) -> list[str]:
    """A name per row: from the first of these columns that exists, or the default."""
    column = find(table, names)
    return [default] * len(table) if column is None else [f"{names[0]}{v}" if v.isdigit() else v for v in table.columns[column]]


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
            assert p is not None and R is not None
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
) -> tuple[FloatArray | None, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Rotation matrices of one target, and where they were measured."""
    if not columns.orientation:
        return None, np.ones(len(table), dtype=bool)
    is_quaternion = len(columns.orientation) == 4
    raw = np.column_stack([table.numbers(name) for name in columns.orientation])
    seen = np.isfinite(raw).all(axis=1)
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


def quaternions(table: PosesTable, raw: FloatArray, seen: FloatArray, reading: str) -> FloatArray:
    """Rotation matrices of quaternions in either order; refuses those that are not of unit length."""
    norm = np.linalg.norm(raw, axis=1)
    bad = np.flatnonzero(seen.astype(bool) & (np.abs(norm - 1.0) > NOT_UNIT))
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
            known = np.nan_to_num(stacked(table, names, mapping, length=length)) if names else np.full((len(table), 3), default)
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
            raise InputError(table.where, f"column {other!r} names row {int(second[rows[ends < 0][0]])}", f"rows are 1 to {len(table)}")
        out.append(Observations(Quantity.LENGTH, rows, distance=d[rows], other_rows=ends, target=targets[0]))
        return out
    anchors = labelled(table, _ANCHOR, "anchor")
    for o in by_label(Quantity.DISTANCE, [a if np.isfinite(x) else "" for a, x in zip(anchors, d, strict=True)], targets, d):
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
