"""A poses file as text columns, and how they are to be read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.pose_titles import (
    ANGLE_FACTORS,
    LENGTH_FACTORS,
    NUMBERED_JOINT,
    QUATERNION,
    as_quaternion,
    matrix_entries,
    plain,
)
from armid.calibration.poses_text import (
    cells_of,
    delimiter_of,
    header_place,
    is_number,
    table_text,
    units_line,
    with_points,
    with_units,
)
from armid.calibration.words import ORIENTATIONS, AngleUnit, LengthUnit, SensorPlace
from armid.documents import read_text
from armid.errors import InputError
from armid.robot.document import Field, document

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class PosesMapping:
    """How the columns of a poses file are to be read; anything left at its default is detected.

    Args:
        joints: columns of the joint positions in kinematic order.
        lengths: unit of positions and prismatic joints, `m` or `mm`.
        angles: unit of joint angles and Euler angles, `rad` or `deg`.
        orientation: one of `ORIENTATIONS`.
        orientation_angles: unit of Euler angles and of their deviations where it is not that of the joints, `rad` or `deg`.
        sensor: `fixed` (it sees a target on the arm) or `hand` (it rides on the arm and sees a fixed target).
        setup, target: names for the frames; columns of the file override them.
        sigma_position, sigma_orientation: the instrument's standard deviation [m, rad] where the file has none, one for
            all three channels or one each.
        sigma_distance: the same for bars, wires, sockets and planes [m].
        columns: name of section Poses of docs/formats.md -> the file's own title of that column.
        bodies: name of a rigid body -> names of targets on it -> their known places on it [m].
    """

    joints: tuple[str, ...] | None = None
    lengths: str | None = None
    angles: str | None = None
    orientation: str | None = None
    orientation_angles: str | None = None
    sensor: str | None = None
    setup: str = "sensor"
    target: str = "tool"
    sigma_position: float | tuple[float, ...] = 0.0
    sigma_orientation: float | tuple[float, ...] = 0.0
    sigma_distance: float = 0.0
    columns: Mapping[str, str] = field(default_factory=dict)
    bodies: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)


_FORMAT = "armid-poses/1"
_KEYS = (
    "format",
    "joints",
    "lengths",
    "angles",
    "orientation",
    "orientation_angles",
    "sensor",
    "setup",
    "target",
    "sigma",
    "columns",
    "bodies",
)


def read_mapping(path: str | Path) -> PosesMapping:
    """A mapping file (`NAME.map.yaml` beside the data)."""
    path = Path(path)
    found = document(read_text(path, "a poses mapping"), path.name)
    if isinstance(found, dict) and "format" not in found:
        raise InputError(path.name, "key 'format' is missing", f"write `format: {_FORMAT}` as the first line")
    top = Field(found, f"{path.name}:").keys(_KEYS, ("format",))
    top["format"].choice((_FORMAT,))
    sigma = top["sigma"].keys(("position", "orientation", "distance")) if "sigma" in top else {}
    lengths = top["lengths"].choice(tuple(LengthUnit)) if "lengths" in top else None
    return PosesMapping(
        joints=tuple(item.name() for item in top["joints"].items()) if "joints" in top else None,
        lengths=lengths,
        angles=top["angles"].choice(tuple(AngleUnit)) if "angles" in top else None,
        orientation=top["orientation"].choice(ORIENTATIONS) if "orientation" in top else None,
        orientation_angles=top["orientation_angles"].choice(tuple(AngleUnit)) if "orientation_angles" in top else None,
        sensor=top["sensor"].choice(tuple(SensorPlace)) if "sensor" in top else None,
        setup=top["setup"].name() if "setup" in top else "sensor",
        target=top["target"].name() if "target" in top else "tool",
        sigma_position=deviations(sigma.get("position")),
        sigma_orientation=deviations(sigma.get("orientation")),
        sigma_distance=sigma["distance"].number() if "distance" in sigma else 0.0,
        columns=_titles_of(top["columns"]) if "columns" in top else {},
        bodies=bodies(top["bodies"], 1e-3 if lengths == "mm" else 1.0) if "bodies" in top else {},
    )


def _titles_of(given: Field) -> dict[str, str]:
    """The file's own titles by our names."""
    if not isinstance(given.value, dict):
        raise given.error("not a mapping", "expected `NAME: title in the file`, such as `x: TCP_X`")
    return {name: title.name() for name, title in given.keys(tuple(given.value)).items()}


def deviations(given: Field | None) -> float | tuple[float, ...]:
    """One standard deviation for all channels, or one each."""
    if given is None:
        return 0.0
    return tuple(float(x) for x in given.vector(3)) if isinstance(given.value, list) else given.number()


def bodies(given: Field, factor: float) -> dict[str, dict[str, tuple[float, ...]]]:
    """Known places of targets on rigid bodies, in the mapping's unit of length."""
    if not isinstance(given.value, dict):
        raise given.error("not a mapping", "expected `BODY: {TARGET: [x, y, z], ...}`")
    out = {}
    for body, targets in given.keys(tuple(given.value)).items():
        if not isinstance(targets.value, dict):
            raise targets.error("not a mapping", "expected `TARGET: [x, y, z]`")
        places = targets.keys(tuple(targets.value))
        out[body] = {name: tuple(factor * float(x) for x in at.vector(3)) for name, at in places.items()}
        for name, at in out[body].items():
            if max(abs(x) for x in at) > _FAR_ON_BODY:
                raise places[name].error(
                    f"{max(abs(x) for x in at):g} m from its body", "write `lengths: mm` in the mapping"
                )
    return out


_FAR_ON_BODY = 3.0
"""[m] No target sits this far from the origin of what carries it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PosesTable:
    """A poses file as text columns.

    Args:
        where: file name, for messages.
        columns: by plain lower-case name without unit.
        units: what the header says about the unit of each column (`mm`, `deg`, ...), empty where nothing.
        titles: header cells as written, by plain name.
        lines: line number of each row.
        above: lines above the header that were not read.
    """

    where: str
    columns: dict[str, list[str]]
    units: dict[str, str]
    titles: dict[str, str]
    lines: tuple[int, ...] = field(default=())
    above: int = 0

    def __len__(self) -> int:
        return len(self.lines)

    def without(self, names: Sequence[str]) -> PosesTable:
        """The same without some columns."""
        columns = {name: cells for name, cells in self.columns.items() if name not in names}
        return replace(self, columns=columns)

    def numbers(self, name: str) -> FloatArray:
        """A column as floats; an empty cell is NaN."""
        try:
            return np.array([float(cell) if cell else np.nan for cell in self.columns[name]])
        except ValueError:
            return self._numbers_one_by_one(name)

    def _numbers_one_by_one(self, name: str) -> FloatArray:
        """The same, slowly, to name the cell that is no number."""
        out = np.empty(len(self))
        for i, cell in enumerate(self.columns[name]):
            try:
                out[i] = float(cell) if cell else np.nan
            except ValueError:
                hint = _number_hint(cell)
                raise InputError(
                    f"{self.where}, line {self.lines[i]}", f"{cell!r} in column {self.titles[name]!r}", hint
                ) from None
        return out


def _number_hint(cell: str) -> str:
    """What to do about a cell that is no number."""
    if re.fullmatch(r"[+-]?\d{1,3}(?:[., ']\d{3})+(?:[.,]\d+)?", cell):
        return "write numbers without signs between thousands"
    return "write decimal points" if "," in cell else "expected a number or an empty cell"


def column_names(path: str | Path) -> tuple[str, ...]:
    """Plain lower-case names of the columns, from the header line alone.

    Raises:
        InputError: no such file, or not one of poses.
    """
    numbered = _numbered(table_text(Path(path)))
    header = numbered[_header(numbered)[0]][1] if numbered else ""
    return tuple(plain(cell)[0] for cell in cells_of([header], delimiter_of(header))[0])


def _numbered(text: str) -> list[tuple[int, str]]:
    """Lines with their numbers, without empty ones and remarks."""
    return [(i + 1, line) for i, line in enumerate(text.splitlines()) if line.strip() and not line.startswith("#")]


def _keys(path: Path, titles: Sequence[str]) -> list[tuple[str, str]]:
    """Plain names and units of the titles; of two that differ by their letters' case alone, the upper one keeps its case.

    Raises:
        InputError: a title that appears twice.
    """
    names = [plain(title) for title in titles]
    count = Counter(name for name, _ in names)
    out = []
    for title, (name, unit) in zip(titles, names, strict=True):
        written = title.strip()[: len(name)]
        out.append((written if count[name] > 1 else name, unit))
    twice = sorted(name for name, times in Counter(name for name, _ in out).items() if times > 1)
    if twice:
        raise InputError(path, f"column {twice[0]!r} appears twice")
    return out


def read_table(path: str | Path) -> PosesTable:
    """The cells of a delimited text file with a header line; what an instrument writes above it is not read."""
    path = Path(path)
    numbered = _numbered(table_text(path))
    above, units = _header(numbered)
    numbered = [numbered[above], *numbered[above + 1 + bool(units) :]] if numbered else []
    if len(numbered) < 2:
        raise InputError(path, "no rows", "expected a header line and one row per measurement")
    lines = tuple(number for number, _ in numbered)
    delimiter = delimiter_of(numbered[0][1])
    rows = cells_of([line for _, line in numbered], delimiter)
    rows = _without_empty_end(rows)
    titles = [cell.strip() for cell in rows[0]]
    titles = as_quaternion(with_units(titles, cells_of([units], delimiter)[0][: len(titles)]) if units else titles)
    rows = with_points(path, rows, lines)
    if all(is_number(title) for title in titles):
        raise InputError(
            path, "the first line is numbers", "a header line must name the columns (q1, ..., x, y, z, ...)"
        )
    for number, cells in zip(lines, rows, strict=True):
        if len(cells) != len(titles):
            raise InputError(f"{path}, line {number}", f"{len(cells)} cells", _unequal(cells, titles, delimiter))
    names = _keys(path, titles)
    entries = matrix_entries([name for name, _ in names])
    names = [(entries.get(name, name), unit) for name, unit in names]
    columns = {name: [cells[k].strip() for cells in rows[1:]] for k, (name, _) in enumerate(names)}
    return PosesTable(
        where=path.name,
        columns=columns,
        units=dict(names),
        titles={name: t for (name, _), t in zip(names, titles, strict=True)},
        lines=lines[1:],
        above=above,
    )


def _header(numbered: Sequence[tuple[int, str]]) -> tuple[int, str]:
    """Which line has the titles, and the line of units below it; empty where there is none."""
    lines = [line for _, line in numbered]
    place = header_place(lines)
    if place > 0:
        titles, units = cells_of(lines[place - 1 : place + 1], delimiter_of(lines[place - 1]))
        if units_line(titles, units):
            return place - 1, lines[place]
    return place, ""


def _without_empty_end(rows: Sequence[list[str]]) -> list[list[str]]:
    """Rows without a last column that has neither a title nor a value: lines that end in their delimiter."""
    if not rows[0][-1].strip() and all(len(row) == len(rows[0]) and not row[-1].strip() for row in rows):
        return [row[:-1] for row in rows]
    return list(rows)


def _unequal(cells: Sequence[str], titles: Sequence[str], delimiter: str | None) -> str:
    """What to do about a line with more or fewer cells than the header."""
    if delimiter == "," and len(cells) > len(titles):
        return f"the header has {len(titles)}; decimal commas cannot stand between commas: export with semicolons or points"
    return f"the header has {len(titles)}; put # in front of lines that are no measurements, or delete them"


def _key_of(table: PosesTable, title: str) -> str:
    """The plain name of a column that a mapping calls by its title."""
    return next((name for name, own in table.titles.items() if own == title), plain(title)[0])


def renamed_columns(table: PosesTable, columns: Mapping[str, str]) -> PosesTable:
    """The table with columns called by our names where a mapping says which they are.

    Raises:
        InputError: a column that the file does not have.
    """
    ours = {_key_of(table, title): plain(name)[0] for name, title in columns.items()}
    lost = [title for title in columns.values() if _key_of(table, title) not in table.columns]
    if lost:
        raise InputError(
            table.where,
            f"the mapping's column {lost[0]!r} is not in the file",
            f"columns: {', '.join(table.titles.values())}",
        )
    taken = set(ours.values())
    kept = [name for name in table.columns if name in ours or name.lower() not in taken]
    return replace(
        table,
        columns={ours.get(name, name): table.columns[name] for name in kept},
        units={ours.get(name, name): table.units[name] for name in kept},
        titles={ours.get(name, name): table.titles[name] for name in kept},
    )


def joint_columns(table: PosesTable, joint_names: Sequence[str], mapping: PosesMapping) -> list[str]:
    """Columns of the joints in kinematic order: by mapping, by the robot's joint names, or by number."""
    if mapping.joints is not None:
        wanted = [_key_of(table, name) for name in mapping.joints]
        missing = [name for name in wanted if name not in table.columns]
        if missing or len(wanted) != len(joint_names):
            raise InputError(
                table.where,
                f"the mapping's joint columns {', '.join(missing or wanted)} do not fit",
                f"the robot has {len(joint_names)} joints; columns: {', '.join(table.titles.values())}",
            )
        return wanted
    named = [name if name in table.columns else plain(name)[0] for name in joint_names]
    if all(name in table.columns for name in named):
        _check_quaternion(table, named)
        return named
    numbered = _numbered_joints(table)
    full = [
        [by_number[first + i] for i in range(len(joint_names))]
        for by_number in numbered.values()
        for first in (1, 0)
        if set(by_number) == set(range(first, first + len(joint_names)))
    ]
    if len(full) > 1:
        sets = " or ".join(f"[{', '.join(table.titles[name] for name in names)}]" for names in full)
        raise InputError(
            table.where, "several sets of columns could be the joints", f"write `joints: ...` in a mapping, with {sets}"
        )
    if full:
        _check_quaternion(table, full[0])
        return full[0]
    some = [name for name in named if name in table.columns]
    lost = [title for title, name in zip(joint_names, named, strict=True) if name not in table.columns]
    detail = (
        f"no column for joint {', '.join(lost)}"
        if some
        else f"found {max(map(len, numbered.values()), default=0)} numbered joint columns"
    )
    raise InputError(
        table.where,
        f"{detail} among {', '.join(map(repr, table.titles.values()))}; the robot has {len(joint_names)} joints: "
        f"{', '.join(joint_names)}",
        "name columns after the joints or q1, q2, ..., name them in a mapping, or choose another --tip",
    )


def _numbered_joints(table: PosesTable) -> dict[str, dict[int, str]]:
    """Columns that end in a number, by what stands before it."""
    out: dict[str, dict[int, str]] = {}
    for name in table.columns:
        if match := NUMBERED_JOINT.fullmatch(name):
            out.setdefault(match.group(1), {})[int(match.group(2))] = name
    return out


def check_twins(table: PosesTable) -> None:
    """Refuses two columns whose titles differ by their letters' case alone, once the joints are taken out."""
    for name in table.columns:
        if name != name.lower() and name.lower() in table.columns:
            other = table.titles[name.lower()]
            raise InputError(
                table.where,
                f"columns {other!r} and {table.titles[name]!r} differ by their case alone",
                f"write `columns: {{{name.lower()}: {other}}}` in a mapping to take the first, or rename one",
            )


def _check_quaternion(table: PosesTable, joints: Sequence[str]) -> None:
    """Refuses Q1..Q4 beside the joints: a quaternion, of which nothing says where its scalar stands."""
    for letter in "Qq":
        four = [f"{letter}{k}" for k in range(1, 5)]
        if set(four) <= set(table.columns) - set(joints) and f"{letter}5" not in table.columns:
            first, last = (
                ", ".join(f"{a}: {table.titles[b]}" for a, b in zip(QUATERNION, x, strict=True))
                for x in (four, four[3:] + four[:3])
            )
            raise InputError(
                table.where,
                f"{', '.join(table.titles[name] for name in four)} beside the joints: a quaternion?",
                f"write `columns: {{{first}}}` in a mapping if the scalar is first, `columns: {{{last}}}` if it is last",
            )


def scale(table: PosesTable, name: str, mapping: PosesMapping, *, length: bool) -> float:
    """Factor to SI of a column: its own header first, then the mapping.

    Raises:
        InputError: an angle in a unit of length, or the other way round.
    """
    factors, others = (LENGTH_FACTORS, ANGLE_FACTORS) if length else (ANGLE_FACTORS, LENGTH_FACTORS)
    unit = table.units[name]
    if unit in others:
        kinds = ("a length", "an angle") if length else ("an angle", "a length")
        raise InputError(
            table.where,
            f"column {table.titles[name]!r} is {kinds[0]}, its unit {unit} that of {kinds[1]}",
            f"correct the title: {', '.join(factors)}",
        )
    return factors.get(unit or (mapping.lengths if length else mapping.angles) or "", 1.0)


def stacked(table: PosesTable, names: Sequence[str], mapping: PosesMapping, *, length: bool) -> FloatArray:
    return np.column_stack([table.numbers(name) * scale(table, name, mapping, length=length) for name in names])


def find(table: PosesTable, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in table.columns), None)


def names_of(table: PosesTable, column: str, prefix: str) -> list[str]:
    """The cells of a column as names; bare numbers get a prefix."""
    return [f"{prefix}{value}" if value.isdigit() else value for value in table.columns[column]]


def labelled(table: PosesTable, names: Sequence[str], default: str) -> list[str]:
    """A name per row: from the first of these columns that exists, or the default."""
    column = find(table, names)
    if column is None:
        return [default] * len(table)
    return [name or default for name in names_of(table, column, names[0])]
