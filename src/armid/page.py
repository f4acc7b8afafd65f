"""A report is a list of sections, a section a list of plain blocks: nothing is computed while rendering."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
        words: whether cells are sentences, which text breaks into lines where the screen is too narrow.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    tones: tuple[str, ...] = ()
    caption: str = ""
    folded: bool = False
    digits: int = 4
    words: bool = False
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


@dataclass(frozen=True)
class Items:
    """A short list of sentences under a heading.

    Args:
        title: of the list; empty for none.
        items: sentences; those in backquotes are commands to copy.
        numbered: whether their order matters.
    """

    title: str
    items: tuple[str, ...]
    numbered: bool = False
    kind: str = "items"


@dataclass(frozen=True)
class SideBySide:
    """Blocks side by side where the screen is wide enough, else one below the other."""

    columns: tuple[tuple[Paragraph | Table | Figure | Items, ...], ...]
    kind: str = "columns"


Block = Paragraph | Table | Figure | Items | SideBySide


@dataclass(frozen=True)
class Section:
    """A titled part of a report; `anchor` is its id in the page."""

    anchor: str
    title: str
    blocks: tuple[Block, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything a page shows.

    Args:
        title, subtitle: what it is about.
        verdict, reasons: the banner; no banner without a verdict.
        sections: in order.
        first: blocks of the first screen, between the banner and the sections.
    """

    title: str
    subtitle: str
    verdict: str
    reasons: tuple[str, ...]
    sections: tuple[Section, ...]
    first: tuple[Block, ...] = ()

    def blocks(self) -> Iterator[Paragraph | Table | Figure | Items]:
        """Every block of the page, those inside columns too, in order."""
        for block in (*self.first, *(block for section in self.sections for block in section.blocks)):
            if isinstance(block, SideBySide):
                for column in block.columns:
                    yield from column
            else:
                yield block

    def figures(self) -> tuple[Figure, ...]:
        """Every figure of the page, in order."""
        return tuple(block for block in self.blocks() if isinstance(block, Figure))

    def anchors(self) -> Sequence[str]:
        return [section.anchor for section in self.sections]
