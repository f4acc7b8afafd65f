"""Sections and templates become one HTML file that needs no network."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.documents import write_text
from armid.page import Report

if TYPE_CHECKING:
    from markupsafe import Markup


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
    environment.filters["spoken"] = _spoken
    environment.tests["aligned_right"] = _aligned_right
    figures = {figure.name: {"data": figure.data, "layout": figure.layout} for figure in report.figures()}
    return environment.get_template("report.html").render(
        report=report, figures=script_json(figures), library=_plotting_library() if figures else ""
    )


def write_report(report: Report, path: Path) -> Path:
    """Renders to a file, moved into place when complete.

    Raises:
        InputError: it cannot be written; nothing is left behind.
    """
    return write_text(path, render(report))


@cache
def _plotting_library() -> str:
    """Our own JavaScript that draws the figures: small, so that a page stays small, and the same in every page."""
    return files("armid.report").joinpath("templates/plots.js").read_text(encoding="utf-8")


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element whatever strings it holds."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("</", "<\\/").replace("<!--", "<\\!--")


def _aligned_right(value: object) -> bool:
    """Numbers and percentages."""
    if isinstance(value, str):
        return value.endswith(" %") and value[:-2].lstrip("+-−").replace(".", "", 1).replace("∞", "0").isdigit()
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


def _spoken(text: str) -> Markup:
    """A sentence with its commands, which stand in backquotes, marked as such."""
    from markupsafe import Markup, escape

    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)
    )
