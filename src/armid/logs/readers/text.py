"""Text files of numbers: any delimiter, decimal comma, with or without a header."""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.readers.table import Layout, Skipped, Table
from armid.notes import Note, Severity

HEAD_BYTES = 1 << 16
HEAD_LINES = 50
COMMENTS = ("#", "%", "//")
DELIMITERS = (",", ";", "\t", "|")
WHITE = " "
"""Stands for any run of white space."""
MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "-nan", "+nan", "nan(ind)", "-nan(ind)"})
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?$")
DECIMAL_COMMA = re.compile(r"^\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*$")
MAX_LINE = 1 << 20
"""Characters; a longer line is not a row of measurements."""
MAX_COLUMNS = 4096


@dataclass(frozen=True, slots=True)
class Dialect:
    """How this text is laid out.

    Args:
        delimiter: between cells.
        decimal: `.` or `,`.
        names: of the columns.
        named: whether the names come from the file.
        skip: lines before the first row of numbers.
        encoding: of the text.
        single_spaces: white space is exactly one delimiter character, so that any parser can take it.
    """

    delimiter: str
    decimal: str
    names: tuple[str, ...]
    named: bool
    skip: int
    encoding: str
    single_spaces: bool


@dataclass(eq=False)
class TextTable:
    """A text file whose layout has been found out."""

    path: Path
    dialect: Dialect
    guesses: tuple[Note, ...] = ()
    joints: tuple[str, ...] = ()
    skipped: Skipped = field(default_factory=Skipped)

    @property
    def names(self) -> tuple[str, ...]:
        return self.dialect.names

    @property
    def named(self) -> bool:
        return self.dialect.named

    @property
    def notes(self) -> tuple[Note, ...]:
        return (*self.guesses, *skipped_notes(self.path, self.skipped))

    def chunks(self, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        names = [name for name in self.names if wanted is None or name in wanted]
        self.skipped = Skipped()
        arrow = arrow_module() if self.dialect.single_spaces and self.dialect.encoding == "utf-8" else None
        if arrow is None:
            yield from self.line_chunks(rows, names)
            return
        done = 0
        try:
            for table in gathered(self.arrow_chunks(arrow, names), rows):
                yield table
                done += len(next(iter(table.values()))) if table else 0
        except arrow.ArrowInvalid:
            # A cell that is not a number: go on with the tolerant parser from the row the fast one had reached.
            self.skipped = Skipped()
            yield from self.line_chunks(rows, names, done)

    def arrow_chunks(self, arrow: Any, names: list[str]) -> Iterator[Table]:
        """By pyarrow's parser, which is limited by memory bandwidth, not by us."""
        from pyarrow import csv

        d = self.dialect

        def invalid(row: Any) -> str:
            self.skipped.row(int(row.number or 0))
            return "skip"

        reader = csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(column_names=list(d.names), skip_rows=d.skip, block_size=4 << 20),
            parse_options=csv.ParseOptions(delimiter=d.delimiter, invalid_row_handler=invalid, quote_char='"'),
            convert_options=csv.ConvertOptions(
                column_types={name: arrow.float64() for name in d.names},
                include_columns=names,
                decimal_point=d.decimal,
                null_values=["", "nan", "NaN", "NA", "null", "None", "-nan", "-nan(ind)"],
            ),
        )
        # Closed even when the caller stops after the first piece: its threads must not outlive us.
        with reader:
            for batch in reader:
                yield {
                    name: batch.column(i).to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
                    for i, name in enumerate(names)
                }

    def line_chunks(self, rows: int, names: list[str], after: int = 0) -> Iterator[Table]:
        """By lines: for white space, other encodings, and cells that are not numbers."""
        keep = [self.names.index(name) for name in names]
        with self.path.open(encoding=self.dialect.encoding, errors="replace") as file:
            for _ in range(self.dialect.skip):
                file.readline(MAX_LINE)
            number = self.dialect.skip
            good = 0
            while lines := list(itertools.islice(bounded_lines(file, self.path), rows)):
                values = self.parsed(lines, number)
                number += len(lines)
                # Rows the fast parser has already delivered; it skips the same malformed ones.
                fresh = values[max(0, after - good) :]
                good += len(values)
                if len(fresh):
                    yield {name: fresh[:, k] for name, k in zip(names, keep, strict=True)}

    def parsed(self, lines: list[str], number: int) -> FloatArray:
        """Numbers of some lines, shape [rows, columns]; malformed rows are left out and counted."""
        d = self.dialect
        text = [line.replace(",", ".") for line in lines] if d.decimal == "," else lines
        try:
            # The C parser of NumPy takes clean lines at once.
            values = np.loadtxt(
                text, delimiter=None if d.delimiter == WHITE else d.delimiter, ndmin=2, comments=None, dtype=np.float64
            )
            if values.shape[1] == len(d.names):
                return values
        except (ValueError, IndexError):
            pass
        out = []
        for i, line in enumerate(text):
            row = self.row(line, number + i + 1)
            if row is not None:
                out.append(row)
        return np.array(out, dtype=np.float64).reshape(-1, len(d.names))

    def row(self, line: str, number: int) -> list[float] | None:
        """One line, tolerantly; None when it is not a row."""
        if not line.strip() or line.lstrip().startswith(COMMENTS):
            return None
        cells = cells_of(line, self.dialect.delimiter)
        if len(cells) != len(self.names):
            self.skipped.row(number)
            return None
        return [self.number(cell, number) for cell in cells]

    def number(self, cell: str, row: int) -> float:
        text = cell.strip().strip('"').strip()
        if text.lower() in MISSING:
            return float("nan")
        try:
            return float(text)
        except ValueError:
            self.skipped.cell(row)
            return float("nan")


def gathered(pieces: Iterator[Table], rows: int) -> Iterator[Table]:
    """Pieces put together until they hold about `rows` rows: filters work on large ones with less overlap.

    What is complete when the pieces break off is delivered before the error goes on.
    """
    held: list[Table] = []
    count = 0
    try:
        for piece in pieces:
            length = len(next(iter(piece.values()))) if piece else 0
            if held and count + length > rows:
                yield together(held)
                held, count = [], 0
            held.append(piece)
            count += length
    except Exception:
        if held:
            yield together(held)
        raise
    if held:
        yield together(held)


def together(tables: list[Table]) -> Table:
    return tables[0] if len(tables) == 1 else {k: np.concatenate([t[k] for t in tables]) for k in tables[0]}


def open_text(path: Path, layout: Layout) -> TextTable:
    """A text file of numbers, its dialect found from the first lines unless the layout says it.

    Raises:
        InputError: empty, binary, or without a single row of numbers.
    """
    dialect, guesses = sniffed(path, layout)
    return TextTable(path, dialect, guesses)


def sniffed(path: Path, layout: Layout) -> tuple[Dialect, tuple[Note, ...]]:
    """The dialect of a file, with what was guessed about it."""
    encoding, lines = head_of(path)
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(COMMENTS)), None)
    if start is None:
        raise InputError(path, "no row of numbers", "expected columns of numbers, with or without a header")
    body = [line for line in lines[start:] if line.strip()]
    header_line = body[0] if looks_like_header(body[0]) else None
    numbers = [line for line in body if line is not header_line and not looks_like_header(line)] or body[1:]
    if not numbers:
        raise InputError(path, f"the first line is {body[0][:60]!r} and no row of numbers follows")
    delimiter = layout.delimiter or guessed_delimiter(numbers, header_line)
    decimal = layout.decimal or guessed_decimal(numbers, delimiter)
    count = most_common([len(cells_of(line, delimiter)) for line in numbers])
    if count > MAX_COLUMNS:
        raise InputError(path, f"{count} columns in a row", f"at most {MAX_COLUMNS} are read")
    header = layout.header if layout.header is not None else header_line is not None
    names = None
    skip = start
    if header:
        names = header_names(body[0], delimiter, count)
        skip = start + 1 + next((i for i, line in enumerate(lines[start + 1 :]) if line.strip()), 0)
        if names is None and header_line is not None:
            raise InputError(
                path,
                f"the header names {len(cells_of(body[0], delimiter))} columns, the rows have {count}",
                "give `delimiter` in a mapping file, or mend the header",
            )
    elif start > 0:
        names = header_names(lines[start - 1].lstrip("#%/ "), delimiter, count)
        if names is not None and not any(re.search(r"[A-Za-z]", name) for name in names):
            names = None
    named = names is not None
    # Blank lines and comments between rows are beyond pyarrow; line by line they are skipped.
    plain = delimiter != WHITE and not any(line.lstrip().startswith(COMMENTS) for line in body)
    dialect = Dialect(
        delimiter, decimal, names or tuple(str(i + 1) for i in range(count)), named, skip, encoding, plain
    )
    what = {WHITE: "white space", "\t": "tab"}.get(delimiter, repr(delimiter))
    text = f"read as text: {count} columns between {what}, decimal {decimal!r}, " + (
        "names from the header" if named else "no header"
    )
    return dialect, (Note("reader-guess", Severity.INFO, text, path.name),)


def head_of(path: Path) -> tuple[str, list[str]]:
    """Encoding and the first lines of a text file."""
    with path.open("rb") as file:
        raw = file.read(HEAD_BYTES)
    if not raw.strip():
        raise InputError(path, "the file is empty")
    encoding = "utf-8"
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif raw.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    text = raw.decode(encoding, errors="replace")
    control = sum(1 for c in text if c < " " and c not in "\t\r\n\f")
    if control or text.count("�") > 0.01 * len(text):
        raise InputError(
            path, "binary bytes in what should be a text file", "name its kind with `format` in a mapping file"
        )
    if "�" in text:
        encoding = "latin-1"
        text = raw.decode(encoding)
    lines = text.splitlines()
    if len(raw) == HEAD_BYTES and len(lines) > 1:
        lines = lines[:-1]
    if any(len(line) > MAX_LINE for line in lines) or (len(raw) == HEAD_BYTES and len(lines) == 1):
        raise InputError(path, f"a line of more than {HEAD_BYTES} characters", "expected one row of numbers per line")
    return encoding, lines[:HEAD_LINES]


def bounded_lines(file: TextIO, path: Path) -> Iterator[str]:
    """Lines of a file, none of them longer than a row of measurements can be."""
    while line := file.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise InputError(path, f"a line of more than {MAX_LINE} characters", "expected one row of numbers per line")
        yield line


def looks_like_header(line: str) -> bool:
    """Whether most words of a line are not numbers, missing values included."""
    words = [w.strip('" ') for w in re.split(r"[,;|\s]+", line) if w.strip('" ')]
    names = [w for w in words if not NUMBER.match(w) and w.lower() not in MISSING and not w.lower().startswith("inf")]
    return len(names) * 2 > len(words)


def guessed_delimiter(numbers: list[str], header: str | None) -> str:
    """The delimiter that cuts every row into the same number (more than one) of cells that are numbers."""
    best, score = WHITE, 0.0
    for delimiter in (";", "\t", "|", ",", WHITE):
        counts = [len(cells_of(line, delimiter)) for line in numbers]
        width = most_common(counts)
        if width < 2:
            continue
        same = sum(c == width for c in counts) / len(counts)
        cells = [c for line in numbers for c in cells_of(line, delimiter)]
        good = sum(is_number(c, delimiter) for c in cells) / len(cells)
        # A header that has as many names as the rows have cells settles what the rows leave open ("1,5 2,5").
        agrees = 0.5 if header is not None and len(cells_of(header, delimiter)) == width else 0.0
        if same * good + agrees > score + 1e-9:
            best, score = delimiter, same * good + agrees
    return best


def guessed_decimal(numbers: list[str], delimiter: str) -> str:
    """A comma when cells look like `1,5` and the delimiter leaves commas alone."""
    if delimiter == ",":
        return "."
    cells = [c for line in numbers for c in cells_of(line, delimiter)]
    return "," if any(DECIMAL_COMMA.match(c) for c in cells) and not any("." in c for c in cells) else "."


def is_number(cell: str, delimiter: str) -> bool:
    text = cell.strip().strip('"')
    if text.lower() in MISSING or text.lower().lstrip("+-") in ("inf", "infinity"):
        return True
    return bool(NUMBER.match(text) or (delimiter != "," and DECIMAL_COMMA.match(text)))


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of one line; a delimiter at its very end closes the last cell."""
    if delimiter == WHITE:
        return line.split()
    return line.rstrip("\r\n").split(delimiter)


def header_names(line: str, delimiter: str, count: int) -> tuple[str, ...] | None:
    """Unique column names, or None when there are not as many names as cells."""
    cells = [c.strip().strip('"').strip() for c in cells_of(line, delimiter)]
    if len(cells) != count:
        return None
    names: list[str] = []
    for i, cell in enumerate(cells):
        name = cell or str(i + 1)
        names.append(name if name not in names else f"{name}#{i + 1}")
    return tuple(names)


def most_common(counts: list[int]) -> int:
    return max(set(counts), key=lambda k: (counts.count(k), k))


def skipped_notes(path: Path, skipped: Skipped) -> tuple[Note, ...]:
    notes = []
    if skipped.rows:
        message = (
            f"{skipped.rows} row(s) with another number of columns left out, the first at line {skipped.first_row}: "
            "a truncated or corrupt line; look at it if there are many"
        )
        notes.append(Note("malformed-rows", Severity.WARNING, message, path.name))
    if skipped.cells:
        message = (
            f"{skipped.cells} cell(s) are not numbers, the first in line {skipped.first_cell}: "
            "read as missing; look at the file if that is not what they are"
        )
        notes.append(Note("malformed-cells", Severity.WARNING, message, path.name))
    return tuple(notes)


def arrow_module() -> Any:
    """pyarrow, or None when it is not installed."""
    try:
        import pyarrow
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow


def flat_table(path: Path, layout: Layout, width: int) -> Iterator[FloatArray]:
    """Numbers listed one after another, delivered as [rows, width]; an incomplete last sample is an error."""
    table = open_text(path, layout)
    rest = np.empty(0)
    for chunk in table.chunks(1 << 16):
        values = np.concatenate([rest, np.column_stack(list(chunk.values())).ravel()])
        whole = len(values) // width * width
        rest = values[whole:]
        yield values[:whole].reshape(-1, width)
    if len(rest):
        raise InputError(path, f"{len(rest)} numbers are left over after samples of {width}", "check `flat`")
