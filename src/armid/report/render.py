"""Sections and templates become one HTML file that needs no network."""

from __future__ import annotations

import json
import os
import tempfile
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from armid.errors import InputError
from armid.report.section import Figure, Report


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
    environment.filters["cell"] = cell
    figures = {
        block.name: {"data": block.data, "layout": block.layout}
        for section in report.sections
        for block in section.blocks
        if isinstance(block, Figure)
    }
    return environment.get_template("report.html").render(
        report=report, figures=script_json(figures), plotly=plotting_library() if figures else ""
    )


def write_report(report: Report, path: Path) -> Path:
    """Renders to a file, moved into place when complete."""
    text = render(report)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror}") from None
    return path


@cache
def plotting_library() -> str:
    """Plotly's own JavaScript, as its package ships it."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element whatever strings it holds."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("</", "<\\/").replace("<!--", "<\\!--")


def cell(value: object, digits: int = 4) -> str:
    """A table cell: numbers shortened, nothing for what is missing or not finite."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}" if isfinite(value) else ("–" if value != value else "∞")
    return str(value)
