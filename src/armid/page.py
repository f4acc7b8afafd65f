"""A report is a list of sections, a section a list of plain blocks: nothing is computed while rendering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Cell = str | float | int | None


@dataclass(frozen=True)
class Paragraph:
    """Text; `tone` is `plain`, `good`, `bad`, `faint` or `code`."""

    text: str
    tone: str = "plain"
    kind: str = "paragraph"


@dataclass(frozen=True)
class Table:
    """A table.

    Args:
        header: column titles.
        rows: cells; numbers are right-aligned and shortened by `digits`.
        tones: one per row, '' for none.
        caption: what it shows, with units.
        folded: shown only when asked for.
        digits: significant digits of numbers.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    tones: tuple[str, ...] = ()
    caption: str = ""
    folded: bool = False
    digits: int = 4
    kind: str = "table"


@dataclass(frozen=True)
class Figure:
    """A plot: Plotly's data and layout as plain values, with a sentence that says what to see in it.

    Args:
        name: unique in the report.
        data, layout: as Plotly takes them.
        caption: what to see.
        height: on the screen [pixels].
        half: two of these stand side by side.
    """

    name: str
    data: tuple[dict[str, Any], ...]
    layout: dict[str, Any]
    caption: str = ""
    height: int = 320
    half: bool = False
    kind: str = "figure"


Block = Paragraph | Table | Figure


@dataclass(frozen=True)
class Section:
    """A titled part of a report; `anchor` is its id in the page."""

    anchor: str
    title: str
    blocks: tuple[Block, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything a page shows."""

    title: str
    subtitle: str
    verdict: str
    reasons: tuple[str, ...]
    sections: tuple[Section, ...]

    def anchors(self) -> Sequence[str]:
        return [section.anchor for section in self.sections]
