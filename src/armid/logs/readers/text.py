"""Text files of numbers: any delimiter, decimal comma, with or without a header."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.readers.columnar import column_values
from armid.logs.readers.dialect import COMMENTS, GROUPED, MAX_LINE, MISSING, STAMP, WHITE, Dialect, cells_of, sniffed
from armid.logs.readers.table import Layout, Skipped, Table
from armid.notes import Note, Severity

_READ = 1 << 18
"""Characters read at a time: asking for every line costs more than parsing it."""


_BLOCK = 1 << 22
"""Bytes whose lines are counted at a time."""


@dataclass(eq=False, kw_only=True)
class TextTable:
    """A text file whose layout has been found out."""

    path: Path
    dialect: Dialect
    guesses: tuple[Note, ...] = ()
    joints: tuple[str, ...] = ()
    skipped: Skipped = field(default_factory=Skipped)
    lines_are_rows: bool = True
    """Whether the fast parser took every line for a row; known once the last piece has been read."""

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
        arrow = arrow_module() if self.dialect.plain and self.dialect.encoding == "utf-8" else None
        self.lines_are_rows = arrow is not None
        if arrow is None:
            yield from self.line_chunks(rows, names)
            return
        done = 0
        try:
            for table in _gathered(self.arrow_chunks(arrow, names), rows):
                yield table
                done += len(next(iter(table.values()))) if table else 0
        except arrow.ArrowInvalid:
            # A cell that is not a number: go on with the tolerant parser from the row the fast one had reached.
            self.skipped, self.lines_are_rows = Skipped(), False
            yield from self.line_chunks(rows, names, done)

    def chunks_from(self, first: int, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        """As `chunks`, from a row on, when every line is a row; whoever asks holds the first row against what it should be."""
        arrow = arrow_module()
        names = [name for name in self.names if wanted is None or name in wanted]
        try:
            yield from _gathered(self.arrow_chunks(arrow, names, first), rows)
        except arrow.ArrowInvalid:
            raise InputError(self.path, "not every line is a row of numbers") from None

    def arrow_chunks(self, arrow: Any, names: list[str], first: int = 0) -> Iterator[Table]:
        """By pyarrow's parser, which is limited by memory bandwidth, not by us."""
        from pyarrow import csv

        d = self.dialect
        place = _after_lines(self.path, d.skip + first) if first else 0

        def invalid(row: Any) -> str:
            self.lines_are_rows = False
            self.skipped.row(int(row.number or 0))
            return "skip"

        source: Any = self.path
        if first:
            source = arrow.OSFile(str(self.path))
            source.seek(place)
        reader = csv.open_csv(
            source,
            read_options=csv.ReadOptions(
                column_names=list(d.names), skip_rows=0 if first else d.skip, block_size=4 << 20
            ),
            parse_options=csv.ParseOptions(delimiter=d.delimiter, invalid_row_handler=invalid, quote_char='"'),
            convert_options=csv.ConvertOptions(
                column_types={n: arrow.timestamp("ns") if n in d.stamps else arrow.float64() for n in d.names},
                include_columns=names,
                decimal_point=d.decimal,
                null_values=["", "nan", "NaN", "NA", "null", "None", "-nan", "-nan(ind)"],
            ),
        )
        # Closed even when the caller stops after the first piece: its threads must not outlive us.
        with reader:
            for batch in reader:
                yield {name: column_values(self.path, name, batch.column(i)) for i, name in enumerate(names)}

    def line_chunks(self, rows: int, names: list[str], after: int = 0) -> Iterator[Table]:
        """By lines: for white space, other encodings, and cells that are not numbers."""
        keep = [self.names.index(name) for name in names]
        with self.path.open(encoding=self.dialect.encoding, errors="replace") as file:
            for _ in range(self.dialect.skip):
                file.readline(MAX_LINE)
            number = self.dialect.skip
            good = 0
            for lines in line_groups(file, self.path, rows):
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
        text = [_with_points(line) for line in lines] if d.decimal == "," else lines
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
        if STAMP.match(text):
            return _seconds_of(text)
        try:
            return float(text)
        except ValueError:
            self.skipped.cell(row)
            return float("nan")


def _after_lines(path: Path, lines: int) -> int:
    """Place in a file after so many lines, in bytes."""
    place, left = 0, lines
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            count = block.count(b"\n")
            if count >= left:
                ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
                return place + (int(ends[left - 1]) + 1 if left else 0)
            place, left = place + len(block), left - count
    return place


def _with_points(line: str) -> str:
    """A line with decimal commas as one with decimal points; points that group thousands go."""
    if "." in line:
        line = GROUPED.sub(lambda m: m[1] + m[2].replace(".", "") + m[3], line)
    return line.replace(",", ".")


def _seconds_of(stamp: str) -> float:
    """Seconds since 1970 of a date with a time of day; without a zone it is taken as UTC. Missing when there is no such day."""
    try:
        moment = datetime.fromisoformat(stamp.replace(",", "."))
    except ValueError:
        return float("nan")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _gathered(pieces: Iterator[Table], rows: int) -> Iterator[Table]:
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
    return TextTable(path=path, dialect=dialect, guesses=guesses)


def line_groups(file: TextIO, path: Path, rows: int) -> Iterator[list[str]]:
    """Lines of a file without their ends, so many at a time, none of them longer than a row of measurements can be."""
    held: list[str] = []
    rest = ""
    while text := file.read(_READ):
        *lines, rest = (rest + text).split("\n")
        if max(len(rest), max(map(len, lines), default=0)) >= MAX_LINE:
            raise InputError(path, f"a line of more than {MAX_LINE} characters", "expected one row of numbers per line")
        held += lines
        while len(held) >= rows:
            yield held[:rows]
            held = held[rows:]
    held += [rest] if rest else []
    if held:
        yield held


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
