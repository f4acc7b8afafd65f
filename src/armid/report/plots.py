"""Plots as plain data, in the words of Plotly that `templates/plots.js` knows.

Colours are told apart by people who do not see red and green, and lines also differ in dash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armid.arrays import FloatArray

# Okabe and Ito's palette.
BLUE, ORANGE, GREEN, PINK, SKY, YELLOW, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#888888",
)

COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, YELLOW, GREY)
DASHES = ("solid", "dash", "dot")
"""Of joints beyond as many as there are colours."""

MOST_POINTS = 1000
"""Per line. Longer lines are drawn by the smallest and largest value of each piece, so that no peak disappears."""


def envelope(x: FloatArray, y: FloatArray, most: int = MOST_POINTS) -> tuple[FloatArray, FloatArray]:
    """A shorter line with the same extremes: for each piece its smallest and its largest point, in order of time."""
    if len(x) <= most:
        return x, y
    chosen: list[int] = []
    for piece in np.array_split(np.arange(len(x)), most // 2):
        low, high = piece[np.argmin(y[piece])], piece[np.argmax(y[piece])]
        chosen += sorted({int(low), int(high)})
    return x[chosen], y[chosen]


def short(values: FloatArray | Sequence[float], digits: int = 5) -> list[float | None]:
    """Numbers with a few significant digits, which is all a picture can show; what is not finite becomes a gap."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=float)]


def percent(fraction: float | None, digits: int = 2) -> str | None:
    """`1.23 %`; nothing for what is not known."""
    if fraction is None or np.isnan(fraction):
        return None
    return f"{100 * fraction:.{digits}f} %" if np.isfinite(fraction) else "∞ %"


def unit(text: str) -> str:
    """With raised digits, as people write units."""
    return text.replace("^2", "²").replace("^3", "³")


def line(
    x: FloatArray, y: FloatArray, name: str, colour: str, *, dash: str = "solid", axis: str = "", width: float = 1.4
) -> dict[str, Any]:
    """A line, thinned honestly."""
    xs, ys = envelope(np.asarray(x), np.asarray(y))
    return {
        "type": "scatter",
        "mode": "lines",
        "x": short(xs, 6),
        "y": short(ys),
        "name": name,
        "line": {"color": colour, "dash": dash, "width": width},
    } | ({"yaxis": axis} if axis else {})


def points(
    x: FloatArray, y: FloatArray, name: str, colour: str, *, size: int = 4, symbol: str = "circle"
) -> dict[str, Any]:
    """Points; at most as many as a line may have, taken evenly."""
    every = max(1, len(x) // MOST_POINTS)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": short(np.asarray(x)[::every]),
        "y": short(np.asarray(y)[::every]),
        "name": name,
        "marker": {"color": colour, "size": size, "opacity": 0.5, "symbol": symbol},
    }


def band(x: FloatArray, low: FloatArray, high: FloatArray, name: str, colour: str) -> dict[str, Any]:
    """A filled band between two lines."""
    every = max(1, len(x) // (MOST_POINTS // 2))
    x, low, high = x[::every], low[::every], high[::every]
    return {
        "type": "scatter",
        "mode": "lines",
        "fill": "toself",
        "name": name,
        "hoverinfo": "skip",
        "x": short(np.concatenate([x, x[::-1]]), 6),
        "y": short(np.concatenate([high, low[::-1]])),
        "line": {"width": 0},
        "fillcolor": colour,
    }


def axes(x: str, y: str, **more: Any) -> dict[str, Any]:
    """Layout with titled axes."""
    return {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}, **more}


def ellipsoid(centre: FloatArray, axes_lengths: FloatArray, R: FloatArray, name: str, colour: str) -> dict[str, Any]:
    """A closed surface for a 3D plot."""
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 19), np.linspace(0, np.pi, 10))
    sphere = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)])
    shape = np.einsum("ij,jab->iab", R * axes_lengths, sphere) + centre[:, None, None]
    return {
        "type": "surface",
        "x": [short(row, 4) for row in shape[0]],
        "y": [short(row, 4) for row in shape[1]],
        "z": [short(row, 4) for row in shape[2]],
        "name": name,
        "showscale": False,
        "opacity": 0.6,
        "colorscale": [[0, colour], [1, colour]],
        "hoverinfo": "name",
        "showlegend": True,
    }
