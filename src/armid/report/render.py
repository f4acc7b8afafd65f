"""Sections and templates become one HTML file that needs no network."""

from __future__ import annotations

import json
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from armid.documents import write_text
from armid.page import Figure, Report


def render(report: Report) -> str:
    """The page as text: styles, data and the plotting library are inside it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("armid.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _cell
    environment.tests["aligned_right"] = _aligned_right
    figures = {
        block.name: {"data": _as_text(block.data), "layout": _as_text(block.layout)}
        for section in report.sections
        for block in section.blocks
        if isinstance(block, Figure)
    }
    return environment.get_template("report.html").render(
        report=report, figures=script_json(figures), plotly=_plotting_library() if figures else ""
    )


def write_report(report: Report, path: Path) -> Path:
    """Renders to a file, moved into place when complete.

    Raises:
        InputError: it cannot be written; nothing is left behind.
    """
    return write_text(path, render(report))


@cache
def _plotting_library() -> str:
    """Plotly's own JavaScript, as its package ships it."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element whatever strings it holds."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("</", "<\\/").replace("<!--", "<\\!--")


def _as_text(value: Any) -> Any:
    """The same with strings that the plotting library will show as they are: it reads a little HTML in them."""
    if isinstance(value, str):
        return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value]
    return value


def _aligned_right(value: object) -> bool:
    """Numbers and percentages."""
    if isinstance(value, str):
        return value.endswith(" %")
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object, digits: int = 4) -> str:
    """A table cell: numbers shortened, nothing for what is missing or not finite."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}" if isfinite(value) else ("–" if value != value else "∞")
    return str(value)
