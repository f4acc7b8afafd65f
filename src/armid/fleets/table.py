"""The table of a fleet: which arm was recorded when, by which logs.

    arm,date,robot,logs,payload,remarks
    r01,2026-03-02,ur10e.urdf,r01/0302-*.csv,,after service

as CSV with a header, as YAML with a list `visits` of the same fields, or as a pattern of paths such as
`data/{arm}/{date}/*.csv` with one description for all. Paths are relative to the table.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from armid.documents import read_text, read_yaml
from armid.errors import InputError
from armid.parameters.effects import PayloadRuns
from armid.words import choice

_FIELDS = ("arm", "date", "robot", "logs", "payload", "remarks")
_NEEDED = ("arm", "date", "logs")
_WHAT = f"a table of a fleet: CSV with the columns {', '.join(_FIELDS)}, or YAML with a list `visits` of these"
_PLACES = re.compile(r"\{(arm|date)\}")
_SEPARATORS = ",;\t"
"""Of columns: what spreadsheets write depends on the country."""
_YEAR_FIRST = re.compile(r"(\d{4})[-/._](\d{1,2})[-/._](\d{1,2})")
"""Dates as spreadsheets and folders have them. With the year last nobody knows which of the others is the month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One arm on one date.

    Args:
        arm: its name.
        date: of the recordings, ISO 8601.
        robot: description: a path or a name of the catalogue.
        logs: paths.
        payload: which of the runs carried one.
        remarks: of whoever wrote the table.
    """

    arm: str
    date: str
    robot: str
    logs: tuple[str, ...]
    payload: str = PayloadRuns.NONE.value
    remarks: str = ""

    @property
    def day(self) -> float:
        """Days since the first of January 1970."""
        return _moment(self.date).timestamp() / 86400.0


def read_visits(table: str | Path, robot: str | Path | None = None) -> tuple[Visit, ...]:
    """The visits of a table, by arm and date.

    Args:
        table: path of a CSV or YAML file, or a pattern with `{arm}` and `{date}` in it.
        robot: description for every visit whose row does not name one.

    Raises:
        InputError: not a table, a field that is missing or not understood, a pattern that matches nothing; with the row.
    """
    path = Path(table)
    if _PLACES.search(str(table)):
        found = _by_pattern(str(table), None if robot is None else str(robot))
    elif path.suffix.lower() in (".yaml", ".yml"):
        rows = read_yaml(path, _WHAT, as_text=True).get("visits")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InputError(path, "no list `visits` of fields", f"expected {_WHAT}")
        found = [_visit(row, path, f"visit {k}", robot) for k, row in enumerate(rows, start=1)]
    else:
        found = _from_csv(path, robot)
    if not found:
        raise InputError(table, "no visits", f"expected {_WHAT}")
    seen: set[tuple[str, float]] = set()
    for visit in found:
        if (visit.arm, visit.day) in seen:
            raise InputError(
                table, f"arm {visit.arm} on {visit.date} twice", "one row per arm and date; several logs in it"
            )
        seen.add((visit.arm, visit.day))
    return tuple(sorted(found, key=lambda visit: (visit.arm, visit.day)))


def _from_csv(path: Path, robot: str | Path | None) -> list[Visit]:
    """Rows of a CSV file as spreadsheets write it: any of three separators, a mark of byte order, lines that are empty."""
    text = read_text(path, _WHAT).removeprefix("\ufeff")
    header = text.partition("\n")[0]
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(_SEPARATORS, key=header.count))
        reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
        rows = [(reader.line_num, row) for row in reader if any(_said(value) for value in row.values())]
    except csv.Error:
        raise InputError(path, "not CSV", f"expected {_WHAT}") from None
    missing = [name for name in _NEEDED if name not in reader.fieldnames]
    if missing:
        there = ", ".join(name for name in reader.fieldnames if name) or "none"
        raise InputError(path, f"no column {', '.join(missing)} (there are: {there[:80]})", f"expected {_WHAT}")
    return [_visit(row, path, f"line {line}", robot) for line, row in rows]


def _said(value: object) -> bool:
    """Whether a cell, or what stands beyond the last column, holds anything."""
    return bool("".join(value).strip() if isinstance(value, list) else str(value or "").strip())


def _visit(row: Mapping[str, Any], path: Path, where: str, robot: str | Path | None) -> Visit:
    """A row; its logs found relative to the table."""
    place = f"{path}, {where}"
    unknown = [str(name or "one beyond the last column") for name in row if name not in _FIELDS and _said(row[name])]
    if unknown:
        raise InputError(place, f"unknown field(s) {', '.join(unknown)[:80]}", f"expected {', '.join(_FIELDS)}")
    said = row.get("logs") or ""
    patterns = [str(one) for one in said] if isinstance(said, list) else [one.strip() for one in str(said).split(";")]
    texts = {name: str(row.get(name) or "").strip() for name in _FIELDS if name != "logs"}
    empty = [name for name in ("arm", "date") if not texts[name]] + ([] if any(patterns) else ["logs"])
    if empty:
        raise InputError(place, f"{', '.join(empty)} empty", "every visit has an arm, a date and logs")
    return Visit(
        arm=texts["arm"],
        date=_checked_date(texts["date"], place),
        robot=_robot_of(texts["robot"], path.parent, robot, place),
        logs=_logs_of(patterns, path.parent, place),
        payload=choice("payload", texts["payload"] or PayloadRuns.NONE.value, PayloadRuns).value,
        remarks=texts["remarks"],
    )


def _robot_of(word: str, folder: Path, robot: str | Path | None, place: str) -> str:
    if not word and robot is None:
        raise InputError(place, "robot empty", "name the description in the table, or all of them with --robot")
    if not word:
        return str(robot)
    return str(folder / word) if (folder / word).is_file() else word


def _logs_of(patterns: Sequence[str], folder: Path, place: str) -> tuple[str, ...]:
    found = [path for pattern in patterns if pattern for path in _matching(folder, pattern)]
    if not found:
        raise InputError(place, f"no file matches {'; '.join(patterns)}", f"paths are relative to {folder}")
    return tuple(dict.fromkeys(found))


def _matching(folder: Path, pattern: str) -> list[str]:
    """Files that match a pattern, relative to a folder or absolute."""
    path = Path(pattern)
    place = Path(path.anchor) if path.is_absolute() else folder
    return sorted(str(found) for found in place.glob(str(path.relative_to(path.anchor))))


def _by_pattern(pattern: str, robot: str | None) -> list[Visit]:
    """Visits from paths: what stands in the places of {arm} and {date} names them."""
    if robot is None:
        raise InputError(pattern, "no description", "name it with --robot")
    if set(_PLACES.findall(pattern)) != {"arm", "date"}:
        raise InputError(pattern, "needs {arm} and {date}", "such as data/{arm}/{date}/*.csv")
    seen: set[str] = set()
    expression = ""
    for piece in re.split(r"(\{arm\}|\{date\}|\*)", pattern):
        name = piece.strip("{}")
        if piece in ("{arm}", "{date}"):
            expression += f"(?P={name})" if name in seen else f"(?P<{name}>[^/]+?)"
            seen.add(name)
        else:
            expression += "[^/]*" if piece == "*" else re.escape(piece)
    groups: dict[tuple[str, str], list[str]] = {}
    everything = _PLACES.sub("*", pattern)
    for path in _matching(Path(), everything):
        match = re.fullmatch(expression, path)
        if match is not None:
            groups.setdefault((match["arm"], match["date"]), []).append(path)
    if not groups:
        raise InputError(
            pattern, f"no file matches {everything}", "such as data/{arm}/{date}/*.csv; quote it in a shell"
        )
    return [
        Visit(arm=arm, date=_checked_date(when, pattern), robot=robot, logs=tuple(paths))
        for (arm, when), paths in groups.items()
    ]


def _checked_date(text: str, place: str) -> str:
    """The date in ISO 8601."""
    year_first = _YEAR_FIRST.fullmatch(text)
    iso = text if year_first is None else "{}-{:0>2}-{:0>2}".format(*year_first.groups())
    try:
        _moment(iso)
    except ValueError:
        hint = "expected ISO 8601, such as 2026-03-02: year, month, day"
        raise InputError(place, f"date {text[:30]!r}", hint) from None
    return iso


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
