"""Rows of damaged bytes inside an otherwise good log: cut, counted, and named by their lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.logs.readers.table import Table
from armid.notes import Note, Severity

Mask = npt.NDArray[np.bool_]

GARBAGE = 1e30
"""No sensor, unit or clock gives such a number: nanoseconds since 1970 are 2e18, and encoders count to 1e19."""

_MOST_LISTED = 20


def garbage_rows(columns: Iterable[FloatArray], count: int) -> Mask:
    """Rows with a number beyond all measure, shape [count]; none when they are most of them: then the file is no good log."""
    found: Mask = np.zeros(count, dtype=np.bool_)
    for values in columns:
        if values.size and not (values.max() < GARBAGE and values.min() > -GARBAGE):
            beyond = (np.abs(values) > GARBAGE) & np.isfinite(values)
            found |= beyond.any(axis=1) if beyond.ndim == 2 else beyond
    return found if 2 * int(found.sum()) < count else np.zeros(count, dtype=np.bool_)


def without_garbage(table: Table, names: Collection[str] | None = None) -> Table:
    """The rows of a table that are none."""
    count = min((len(values) for values in table.values()), default=0)
    found = garbage_rows((values[:count] for name, values in table.items() if names is None or name in names), count)
    return {name: values[:count][~found] for name, values in table.items()} if found.any() else table


@dataclass(eq=False)
class CutRows:
    """Counts the rows that were cut: how many, and the lines of the first ones."""

    count: int = 0
    lines: list[int] = field(default_factory=list)

    def add(self, lines: Iterable[int]) -> None:
        new = list(lines)
        self.count += len(new)
        self.lines = [*self.lines, *new][:_MOST_LISTED]

    def notes(self, name: str, word: str) -> tuple[Note, ...]:
        """What to say; `word` is what a row is called in such a file, line or row."""
        if not self.count:
            return ()
        listed = ", ".join(map(str, self.lines)) + (", ..." if self.count > len(self.lines) else "")
        text = f"{self.count} row(s) of numbers no sensor or clock gives (beyond {GARBAGE:.0e}) cut, in {word} {listed}"
        return (Note("garbage-rows", Severity.WARNING, f"{text}: damaged bytes; look there if they are many", name),)
