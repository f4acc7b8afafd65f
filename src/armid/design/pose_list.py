"""A user's own list of joint positions, from which poses are chosen."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.documents import read_text
from armid.errors import InputError
from armid.motions.limits import MotionLimits
from armid.notes import Note, Severity
from armid.robot.robot import JointKind, Robot
from armid.scene.scene import Scene

_WHAT = "a list of joint positions"

_UNITS = {"rad": 1.0, "deg": np.pi / 180.0, "m": 1.0, "mm": 1e-3}
"""Of a column, from the end of its title: `q1_deg`, `q1 [deg]`."""

_TITLE = re.compile(
    r"^\s*(?P<name>.*?)\s*(?:[_ ]?[\[(]\s*(?P<in>rad|deg|mm|m)\s*[\])]|_(?P<unit>rad|deg|mm|m))?\s*$", re.I
)


@dataclass(frozen=True, eq=False)
class PoseList:
    """Joint positions of a file.

    Args:
        path: of the file.
        poses: [rad or m], shape [n, n_joints].
        lines: of the file, shape [n].
        notes: what was ignored.
    """

    path: str
    poses: FloatArray
    lines: tuple[int, ...]
    notes: tuple[Note, ...] = ()


def read_pose_list(path: str | Path, robot: Robot) -> PoseList:
    """Joint positions, one pose per line under a line of titles.

    Columns are the joints' names or `q1..qn`, in rad or m unless the title ends in a unit (`q1_deg`, `q1 [deg]`). Commas,
    semicolons or tabs part the columns; with semicolons or tabs a comma may be the decimal sign. Others are named and ignored.

    Raises:
        InputError: naming the file, line and column.
    """
    text = read_text(path, _WHAT)
    lines = [(k, line) for k, line in enumerate(text.splitlines(), start=1) if line.strip() and line[0] != "#"]
    if len(lines) < 2:
        raise InputError(path, "no poses", "a line of titles, then one pose per line")
    mark = next((m for m in ("\t", ";") if m in lines[0][1]), ",")
    titles, *rows = list(csv.reader([line for _, line in lines], delimiter=mark))
    columns, ignored = _columns(Path(path), titles, robot)
    poses = np.empty((len(rows), robot.n_joints))
    for i, ((number, _), row) in enumerate(zip(lines[1:], rows, strict=True)):
        for j, (place, factor) in enumerate(columns):
            poses[i, j] = factor * _number(row, place, f"{path}, line {number}", titles[place], decimal=mark != ",")
    _check_angles(Path(path), poses, robot)
    notes: tuple[Note, ...] = ()
    if ignored:
        notes = (Note("columns-ignored", Severity.INFO, f"{path}: no joint positions: {', '.join(ignored)}"),)
    return PoseList(str(path), poses, tuple(number for number, _ in lines[1:]), notes)


_FARTHEST = 4.0 * np.pi
"""[rad] No joint of an arm turns further than two turns to either side."""


def _check_angles(path: Path, poses: FloatArray, robot: Robot) -> None:
    """Degrees without a unit are refused: read as rad they would be other poses."""
    for joint, values in zip(robot.joints, poses.T, strict=True):
        far = float(np.abs(values).max())
        if joint.kind is JointKind.REVOLUTE and far > _FARTHEST:
            raise InputError(
                path, f"{joint.name} reaches {far:.4g} rad", f"degrees are titled {joint.name}_deg or q1_deg"
            )


def _columns(path: Path, titles: list[str], robot: Robot) -> tuple[list[tuple[int, float]], list[str]]:
    """Place and factor to SI of every joint's column, and the titles of the others."""
    read = [_TITLE.match(title) for title in titles]
    plain = [title.strip().lower() for title in titles]
    bare = [match["name"].lower() if match else text for match, text in zip(read, plain, strict=True)]
    out = []
    for names in (robot.joint_names, tuple(f"q{k}" for k in range(1, robot.n_joints + 1))):
        places = [_place(plain, bare, name.lower()) for name in names]
        if all(place is not None for place in places):
            out = [place for place in places if place is not None]
            break
    if not out:
        expected = f"one for each joint: {', '.join(robot.joint_names)}, or q1 to q{robot.n_joints}"
        raise InputError(path, f"columns {', '.join(titles)}", expected)
    units = []
    for place, joint in zip(out, robot.joints, strict=True):
        match = read[place]
        unit = (match["in"] or match["unit"] or "").lower() if match and bare[place] != plain[place] else ""
        lengths = joint.kind is JointKind.PRISMATIC
        if unit and (unit in ("m", "mm")) != lengths:
            expected = "slides: m or mm" if lengths else "turns: rad or deg"
            raise InputError(path, f"column {titles[place]}", f"{joint.name} {expected}")
        units.append(_UNITS[unit] if unit else 1.0)
    ignored = [title for k, title in enumerate(titles) if k not in out]
    return list(zip(out, units, strict=True)), ignored


def _place(plain: list[str], bare: list[str], name: str) -> int | None:
    """Where a joint's column is: by the whole title first, so that a joint may be called `a_deg`."""
    for titles in (plain, bare):
        if name in titles:
            return titles.index(name)
    return None


def _number(row: list[str], place: int, where: str, title: str, *, decimal: bool) -> float:
    text = row[place].strip() if place < len(row) else ""
    try:
        value = float(text.replace(",", ".") if decimal else text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise InputError(where, f"{title} is {text!r}" if text else f"{title} is missing", "a finite number")
    return value


def usable(listed: PoseList, robot: Robot, limits: MotionLimits, scene: Scene, places: FloatArray) -> PoseList:
    """The listed poses within the described limits, free and different from one another; with a note on those left out.

    Args:
        listed: as read.
        robot: whose described limits count; assumed ones do not.
        limits: of the search, which it must be able to use afterwards.
        scene: clearances.
        places: of the poses, as in `Pool`.
    """
    lower, upper = robot.limit("lower"), robot.limit("upper")
    reach = 1e-6 * (limits.upper - limits.lower)
    inside = ((listed.poses >= lower - reach) & (listed.poses <= upper + reach)).all(axis=1)
    free = scene.is_free(listed.poses) if len(scene) else np.ones(len(listed.poses), dtype=np.bool_)
    first = np.ones(len(listed.poses), dtype=np.bool_)
    for k in range(len(places)):
        first[k] = not (first[:k] & (np.abs(places[:k] - places[k]) < 1.0).all(axis=1)).any()
    reasons = (("outside the limits", ~inside), ("not free", inside & ~free), ("the same as an earlier one", ~first))
    notes = tuple(
        Note("poses-left-out", Severity.WARNING, f"{listed.path}: {text}: {_lines(listed, np.asarray(which))}")
        for text, which in reasons
        if np.any(which)
    )
    kept = np.flatnonzero(inside & free & first)
    return PoseList(listed.path, listed.poses[kept], tuple(listed.lines[k] for k in kept), listed.notes + notes)


_NAMED = 10
"""Lines named in a note."""


def _lines(listed: PoseList, which: npt.NDArray[np.bool_]) -> str:
    lines = [listed.lines[k] for k in np.flatnonzero(which)]
    more = f" and {len(lines) - _NAMED} more" if len(lines) > _NAMED else ""
    return f"line {', '.join(map(str, lines[:_NAMED]))}{more}"
