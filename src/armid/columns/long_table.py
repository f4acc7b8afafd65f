"""Tables with a row for every joint and instant, made into tables with a column for every joint."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from armid.columns.names import named_column
from armid.logs.readers.dialect import Dialect

JOINT_WORDS = ("joint", "joint_name", "joint_id", "name", "axis", "achse", "gelenk", "axe", "eje", "giunto")
"""Names of a column that says which joint a row is of."""


def widened(path: Path, dialect: Dialect, joints: Sequence[str]) -> str | None:
    """The same table with a row per instant, as CSV; None when it is no table with a row for every joint.

    Rows of one instant follow one another and have the same time, letter by letter. Instants at which a joint is missing are
    left out.

    Args:
        path: of the text file.
        dialect: how it is laid out.
        joints: the robot's names for them.
    """
    names = list(dialect.names)
    whose = next((i for i, name in enumerate(names) if name.strip().lower() in JOINT_WORDS), None)
    clock = next((i for i, name in enumerate(names) if named_column(name, joints).clock), None)
    if not dialect.named or whose is None or clock is None or dialect.delimiter == " ":
        return None
    try:
        groups = groupby(_rows(path, dialect), key=lambda row: row[clock])
        instants = [{row[whose].strip(): row for row in rows} for _, rows in groups]
    except csv.Error:  # a cell without an end, or zero bytes
        return None
    listed = list(dict.fromkeys(joint for rows in instants for joint in rows))
    if len(listed) != len(joints) or len(listed) < 2:
        return None
    kept = [i for i in range(len(names)) if i not in (whose, clock)]
    header = [names[clock], *(_column(joint, names[i]) for i in kept for joint in listed)]
    lines = [_line(header)]
    for rows in instants:
        if len(rows) == len(listed):
            cells = [rows[listed[0]][clock], *(rows[joint][i] for i in kept for joint in listed)]
            lines.append(_line([cell.strip().replace(",", ".") for cell in cells]))
    return "\n".join(lines) + "\n"


def _rows(path: Path, dialect: Dialect) -> Iterator[list[str]]:
    """Cells of every whole row behind the header."""
    with path.open(encoding=dialect.encoding, errors="replace", newline="") as file:
        for _ in range(dialect.skip):
            file.readline()
        for row in csv.reader(file, delimiter=dialect.delimiter):
            if len(row) == len(dialect.names):
                yield row


def _column(joint: str, name: str) -> str:
    """`elbow position`, or `axis 3 position` where joints are counted."""
    return f"axis {joint} {name}" if joint.isdecimal() else f"{joint} {name}"


def _line(cells: Sequence[str]) -> str:
    return ",".join(f'"{cell}"' if "," in cell else cell for cell in (c.replace('"', "") for c in cells))
