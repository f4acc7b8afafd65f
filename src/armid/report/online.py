"""The page about an arm as an on-line estimator sees it."""

from __future__ import annotations

from armid.online.state import OnlineState, parameters_table
from armid.page import Figure, Report, Section
from armid.report.judged import judged_page
from armid.report.plots import BLUE, axes, short


def online_page(state: OnlineState) -> Report:
    """Present values with their intervals."""
    rows = state.parameters
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [row.name for row in rows],
        "y": short([row.value for row in rows]),
        "error_y": {"type": "data", "array": short([row.high - row.value for row in rows])},
        "name": "value",
        "marker": {"color": BLUE, "size": 6},
    }
    caption = "Base parameters with their 95 % intervals, each in its own SI unit."
    figure = Figure("parameters", (points,), axes("base parameter", "value"), caption)
    section = Section("parameters", "Base parameters", (figure, parameters_table(state)))
    subtitle = f"{state.samples} samples, {state.gaps} gaps, {len(state.events)} changes"
    return judged_page(state, f"{state.robot.name}: as it is now", subtitle, section)
