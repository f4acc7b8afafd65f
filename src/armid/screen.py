"""Tables of words on a screen: broken into lines between words, and the screen shared by what each column needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap

WIDTH = 120
"""Columns of a page where no terminal says how wide it is: a pipe, a file."""
NARROWEST, WIDEST = 80, 200
"""Columns between which tables follow the terminal: narrower they are hard to read, wider a row is hard to follow."""

GAP = 2
"""Columns between two columns of a table."""
_LAST_SHARE = 0.3
"""Of the screen that the last column, which holds the longest texts, keeps before other columns are broken."""
_KEPT = "\u00a0"
"""A space that no line is broken at; printed as any other."""


def screen_width() -> int:
    """Columns of the terminal that standard output is, or of a page."""
    return min(max(get_terminal_size((WIDTH, 24)).columns, NARROWEST), WIDEST)


def broken_row(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """A row of texts as rows of lines, none wider than its column unless a word is; no word is broken.

    Args:
        row: of texts.
        widths: of the columns.
    """
    cells = [_lines(text, room) for text, room in zip(row, widths, strict=True)]
    return [[line.replace(_KEPT, " ") for line in parts] for parts in zip_longest(*cells, fillvalue="")]


def shared_widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Widths of the columns of a table: their own where all fit.

    Where they do not, the last column gives way first, down to a third of the screen, then the widest of the others, each down
    to its longest word.

    Args:
        rows: of texts, the titles among them.
        width: of the screen [columns].
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    least = [max(len(word) for text in column for word in text.split(" ")) for column in columns]
    excess = sum(widths) + GAP * (len(widths) - 1) - width
    last = len(widths) - 1
    others = sorted(range(last), key=lambda k: least[k] - widths[k])
    floors = [(last, max(least[last], int(_LAST_SHARE * width))), *((k, least[k]) for k in others), (last, least[last])]
    for k, floor in floors:
        given = max(0, min(excess, widths[k] - floor))
        widths[k] -= given
        excess -= given
    return widths


def unbroken(text: str) -> str:
    """The same words, between which no line is broken."""
    return text.replace(" ", _KEPT)


def _lines(text: str, room: int) -> list[str]:
    return wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
