"""A poses file as lines of text: how it is encoded, parted and headed, and how it writes numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from armid.errors import InputError

_MAX_BYTES = 500_000_000
"""A pose row is about 200 bytes: two million rows are no calibration."""
_HIGHEST_HEADER = 50
"""Lines that an instrument's program may write above the header: its name, a date, settings."""


def table_text(path: Path) -> str:
    """The text of a file in UTF-8, UTF-16 or Latin-1.

    Raises:
        InputError: no such file, too large for poses, or not text.
    """
    if not path.is_file():
        raise InputError(path, "no such file")
    if path.stat().st_size > _MAX_BYTES:
        raise InputError(path, f"larger than {_MAX_BYTES} bytes", "is this a poses file?")
    data = path.read_bytes()
    wide = _wide(data)
    if b"\0" in data and not wide:
        raise InputError(path, "not text", "expected a CSV file with a header line, in UTF-8, UTF-16 or Latin-1")
    try:
        text = data.decode(wide or "utf-8-sig")
        return text.replace("\u2212", "-").replace("\u00a0", " ")  # Spreadsheets' minus sign and hard blank.
    except UnicodeDecodeError:
        if wide:
            raise InputError(path, "broken UTF-16", "export it again, in UTF-8 if you can") from None
        # Programs of measuring instruments write Windows' own letters (a degree sign, an umlaut); every byte is one.
        return data.decode("latin-1")


def _wide(data: bytes) -> str:
    """The encoding of text in two bytes a letter, with or without a mark in front; empty for one byte."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    head = data[:1000]
    for encoding, zeros, letters in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if zeros and not any(zeros) and all(letters):
            return encoding
    return ""


def delimiter_of(header: str) -> str | None:
    """Semicolon, tab or comma, the one that parts the header most; None for blanks."""
    best = max((";", "\t", ","), key=header.count)
    return best if best in header else None


def cells_of(lines: Sequence[str], delimiter: str | None) -> list[list[str]]:
    """The cells of every line."""
    if delimiter is None:
        return [line.split() for line in lines]
    # A quote could hold the delimiter; without any, splitting is all that a reader of CSV does.
    return [next(csv.reader([line], delimiter=delimiter)) if '"' in line else line.split(delimiter) for line in lines]


def header_place(lines: Sequence[str]) -> int:
    """Which line is the header: the first of words above one with as many cells, mostly numbers; else the first."""
    for k, (line, below) in enumerate(pairwise(lines[: _HIGHEST_HEADER + 1])):
        delimiter = delimiter_of(line)
        titles, values = cells_of([line, below], delimiter)
        if len(titles) == len(values) > 1 and _numbers(titles) < 0.5 < _numbers(values):
            return k
    return 0


_UNIT_WORDS = {
    "",
    "-",
    "mm",
    "m",
    "cm",
    "um",
    "\u00b5m",
    "\u03bcm",
    "in",
    "inch",
    "rad",
    "mrad",
    "deg",
    "degree",
    "degrees",
    "\u00b0",
    "\u00ba",
    "s",
    "ms",
    "c",
    "degc",
    "\u00b0c",
    "nm",
}


def units_line(titles: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether a line holds the units of the titles above it: as many cells, all of them unit words, and not all empty."""
    words = [cell.strip().strip("[]()").lower() for cell in cells]
    return len(words) == len(titles) and any(words) and set(words) <= _UNIT_WORDS and len(set(titles)) == len(titles)


def with_units(titles: Sequence[str], cells: Sequence[str]) -> list[str]:
    """Titles with the units that stand below them."""
    units = [cell.strip().strip("[]()") for cell in cells]
    return [
        f"{title.strip()} [{unit}]" if unit.strip("-") else title for title, unit in zip(titles, units, strict=True)
    ]


def _numbers(cells: Sequence[str]) -> float:
    """Share of the filled cells that are numbers, with a decimal point or comma."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    return sum(is_number(cell.replace(",", ".")) for cell in filled) / max(len(filled), 1)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?$")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?$")


def with_points(path: Path, rows: Sequence[Sequence[str]], lines: Sequence[int]) -> list[list[str]]:
    """Cells with decimal commas written as points; refuses a file that has both."""
    commas = [
        (n, cell) for n, row in zip(lines, rows, strict=True) for cell in row if _DECIMAL_COMMA.match(cell.strip())
    ]
    if not commas:
        return [list(row) for row in rows]
    points = [
        (n, cell) for n, row in zip(lines, rows, strict=True) for cell in row if _DECIMAL_POINT.match(cell.strip())
    ]
    if points:
        raise InputError(
            f"{path}, line {max(points[0][0], commas[0][0])}",
            f"decimal commas ({commas[0][1].strip()!r}) and decimal points ({points[0][1].strip()!r})",
            "write all numbers with one of them",
        )
    return [[c.replace(",", ".") if _DECIMAL_COMMA.match(c.strip()) else c for c in row] for row in rows]
