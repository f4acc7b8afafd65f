"""How a text file of numbers is laid out, found from its first lines."""

from __future__ import annotations

import codecs
import csv
import re
from dataclasses import dataclass
from pathlib import Path

from armid.errors import InputError
from armid.logs.readers.table import Layout
from armid.notes import Note, Severity

_HEAD_BYTES = 1 << 16
_HEAD_LINES = 50
COMMENTS = ("#", "%", "//")
WHITE = " "
"""Stands for any run of white space."""
MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "-nan", "+nan", "nan(ind)", "-nan(ind)"})
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?$")
_DECIMAL_COMMA = re.compile(r"^\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*$")
GROUPED = re.compile(r"(?<![\d.,])([+-]?[1-9]\d{0,2})((?:\.\d{3})+)((?:,\d+)?)(?![\d.,])")
"""A number with a decimal comma whose thousands are set apart by points: `1.234,5`."""
STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?$")
"""A date with a time of day, as ISO 8601 writes it."""
_UNIT = re.compile(r"[\[(]?[A-Za-z%\u2030\u00b0\u00b5][A-Za-z0-9%\u00b0./*^\u00b7 -]{0,11}[\])]?$|[\[(]?[-1][\])]?$")
MAX_LINE = 1 << 20
"""Characters; a longer line is not a row of measurements."""
_MAX_COLUMNS = 4096
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")
"""What no text of numbers holds: control characters other than tab, line feed, form feed and carriage return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How this text is laid out.

    Args:
        delimiter: between cells.
        decimal: `.` or `,`.
        names: of the columns.
        named: whether the names come from the file.
        skip: lines before the first row of numbers.
        encoding: of the text.
        plain: rows of single delimiters and no comments in between, so that any parser can take them.
        stamps: columns of dates with times of day.
    """

    delimiter: str
    decimal: str
    names: tuple[str, ...]
    named: bool
    skip: int
    encoding: str
    plain: bool
    stamps: tuple[str, ...] = ()


def sniffed(path: Path, layout: Layout) -> tuple[Dialect, tuple[Note, ...]]:
    """The dialect of a file, with what was guessed about it.

    Raises:
        InputError: empty, binary, or without a single row of numbers.
    """
    encoding, lines = _head_of(path)
    first = _first_row(path, lines, layout)
    rows = [line for line in lines[first:] if line.strip() and not line.lstrip().startswith(COMMENTS)]
    numbers = [line for line in rows if not _looks_like_header(line)] or rows
    header = next((line for line in reversed(lines[:first]) if line.strip()), None)
    delimiter = layout.delimiter or _guessed_delimiter(numbers, header)
    decimal = layout.decimal or _guessed_decimal(numbers, delimiter)
    count = _most_common([len(cells_of(line, delimiter)) for line in numbers])
    if count > _MAX_COLUMNS:
        raise InputError(path, f"{count} columns in a row", f"at most {_MAX_COLUMNS} are read")
    names = None if layout.header is False else _column_names(path, lines[:first], delimiter, count)
    named = names is not None
    names = names or tuple(str(i + 1) for i in range(count))
    # Comments between rows are beyond pyarrow; line by line they are skipped.
    plain = delimiter != WHITE and not any(line.lstrip().startswith(COMMENTS) for line in lines[first:])
    stamps = tuple(name for i, name in enumerate(names) if _is_stamp_column(numbers, delimiter, i))
    what = {WHITE: "white space", "\t": "tab"}.get(delimiter, repr(delimiter))
    text = f"read as text: {count} columns between {what}, decimal {decimal!r}, " + (
        "names from the header" if named else "no header"
    )
    dialect = Dialect(
        delimiter=delimiter,
        decimal=decimal,
        names=names,
        named=named,
        skip=first,
        encoding=encoding,
        plain=plain,
        stamps=stamps,
    )
    return dialect, (Note("reader-guess", Severity.INFO, text, path.name),)


def _first_row(path: Path, lines: list[str], layout: Layout) -> int:
    """Index of the first row of numbers: titles, comments and names stand before it."""
    content = [i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(COMMENTS)]
    if not content:
        raise InputError(path, "no row of numbers", "expected columns of numbers, with or without a header")
    if layout.header is False:
        return content[0]
    numeric = [i for i in content if not _looks_like_header(lines[i])]
    # A title may hold numbers (`Robot: 1`): the rows are as wide as most lines.
    widths = [len(lines[i].split()) + sum(lines[i].count(d) for d in ",;|\t") for i in numeric]
    usual = _most_common(widths) if widths else 0
    first = next((i for i, width in zip(numeric, widths, strict=True) if 2 * width > usual), None)
    if layout.header and first == content[0]:
        # The names are numbers themselves.
        first = content[1] if len(content) > 1 else None
    if first is None:
        raise InputError(path, "no row of numbers", "expected columns of numbers, with or without a header")
    return first


def _column_names(path: Path, before: list[str], delimiter: str, count: int) -> tuple[str, ...] | None:
    """Names from the lines before the first row: the nearest with as many cells, a comment or not; None without.

    Raises:
        InputError: a line looks like a header, but has another number of names.
    """
    units: tuple[str, ...] | None = None
    for line in reversed([line for line in before if line.strip()]):
        comment = line.lstrip().startswith(COMMENTS)
        names = _header_names(line.lstrip("#%/ ") if comment else line, delimiter, count)
        if names is None:
            cells = len(_header_cells(line, delimiter))
            if not comment and 2 * cells > count and units is None and _looks_like_header(line):
                text = f"the header names {cells} columns, the rows have {count}"
                raise InputError(path, text, "give `delimiter` in a mapping file, or mend the header")
            continue
        cells_text = [c.strip().strip('"') for c in _header_cells(line, delimiter)]
        said = [c for c in cells_text if c]
        if units is None and all(_UNIT.match(c) for c in said) and len(set(said)) < len(said):
            # A second line of names with the units of the first; alone it would repeat itself.
            units = tuple(c.strip("[]() ") for c in cells_text)
            continue
        if comment and not any(re.search(r"[A-Za-z]", name) for name in names):
            continue
        if units is None:
            return names
        return tuple(f"{name} [{unit}]" if unit else name for name, unit in zip(names, units, strict=True))
    return None


def _is_stamp_column(rows: list[str], delimiter: str, index: int) -> bool:
    """Whether the cells of a column are dates with times of day."""
    cells = [cells_of(line, delimiter) for line in rows]
    return all(STAMP.match(row[index].strip().strip('"')) for row in cells if index < len(row))


def _head_of(path: Path) -> tuple[str, list[str]]:
    """Encoding and the first lines of a text file."""
    with path.open("rb") as file:
        raw = file.read(_HEAD_BYTES)
    if not raw.strip():
        raise InputError(path, "the file is empty")
    encoding = "utf-8"
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif raw.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    text = raw.decode(encoding, errors="replace")
    if _CONTROL.search(text) or text.count("�") > 0.01 * len(text):
        raise InputError(
            path, "binary bytes in what should be a text file", "name its kind with `format` in a mapping file"
        )
    if "�" in text:
        encoding = "latin-1"
        text = raw.decode(encoding)
    lines = text.splitlines()
    if len(raw) == _HEAD_BYTES and len(lines) > 1:
        lines = lines[:-1]
    if len(raw) == _HEAD_BYTES and len(lines) == 1:
        raise InputError(path, f"a line of more than {_HEAD_BYTES} characters", "expected one row of numbers per line")
    return encoding, lines[:_HEAD_LINES]


def _looks_like_header(line: str) -> bool:
    """Whether most words of a line are not numbers, missing values included."""
    words = [w.strip('" ') for w in re.split(r"[,;|\s]+", line) if w.strip('" ')]
    names = [w for w in words if not _NUMBER.match(w) and w.lower() not in MISSING and not w.lower().startswith("inf")]
    return len(names) * 2 > len(words)


def _guessed_delimiter(numbers: list[str], header: str | None) -> str:
    """The delimiter that cuts every row into the same number (more than one) of cells that are numbers."""
    best, score = WHITE, 0.0
    for delimiter in (";", "\t", "|", ",", WHITE):
        counts = [len(cells_of(line, delimiter)) for line in numbers]
        width = _most_common(counts)
        if width < 2:
            continue
        same = sum(c == width for c in counts) / len(counts)
        cells = [c for line in numbers for c in cells_of(line, delimiter)]
        good = sum(_is_number(c, delimiter) for c in cells) / len(cells)
        # A header that has as many names as the rows have cells settles what the rows leave open ("1,5 2,5").
        agrees = 0.5 if header is not None and len(_header_cells(header, delimiter)) == width else 0.0
        if same * good + agrees > score + 1e-9:
            best, score = delimiter, same * good + agrees
    return best


def _guessed_decimal(numbers: list[str], delimiter: str) -> str:
    """A comma when cells look like `1,5` and the delimiter leaves commas alone; points may then group digits (`1.234,5`)."""
    if delimiter == ",":
        return "."
    cells = [c for line in numbers for c in cells_of(line, delimiter)]
    dotted = [c.strip() for c in cells if "." in c]
    commas = any(_DECIMAL_COMMA.match(c) for c in cells)
    return "," if commas and all(GROUPED.fullmatch(c) for c in dotted) else "."


def _is_number(cell: str, delimiter: str) -> bool:
    text = cell.strip().strip('"')
    if STAMP.match(text) or text.lower() in MISSING or text.lower().lstrip("+-") in ("inf", "infinity"):
        return True
    commas = delimiter != "," and (_DECIMAL_COMMA.match(text) or GROUPED.fullmatch(text))
    return bool(_NUMBER.match(text) or commas)


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of one line; a delimiter at its very end closes the last cell."""
    if delimiter == WHITE:
        return line.split()
    return line.rstrip("\r\n").split(delimiter)


def _header_cells(line: str, delimiter: str) -> list[str]:
    """The names of a header; one in quotes may hold the delimiter (`"joint 1, position"`)."""
    if delimiter == WHITE or '"' not in line:
        return cells_of(line, delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return cells_of(line, delimiter)


def _header_names(line: str, delimiter: str, count: int) -> tuple[str, ...] | None:
    """Unique column names, or None when there are not as many names as cells."""
    cells = [c.strip().strip('"').strip() for c in _header_cells(line, delimiter)]
    if len(cells) != count:
        return None
    names: list[str] = []
    for i, cell in enumerate(cells):
        name = cell or str(i + 1)
        names.append(name if name not in names else f"{name}#{i + 1}")
    return tuple(names)


def _most_common(counts: list[int]) -> int:
    return max(set(counts), key=lambda k: (counts.count(k), k))
