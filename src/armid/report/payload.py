"""The page about what an arm carries."""

from __future__ import annotations

from collections.abc import Sequence

from armid.estimation.estimate import EstimatedParameter
from armid.identification.faults import faults_table
from armid.page import Figure, Paragraph, Report, Section
from armid.payload.payload import Payload, makers_table, parameters_table
from armid.report.judged import judged_page
from armid.report.plots import BLUE, axes, short


def payload_page(load: Payload) -> Report:
    """Numbers with intervals, and the texts for three makers' controllers."""
    rows = list(load.parameters)
    figures = (
        _interval_figure("centre", rows[1:4], "centre of mass [m]", "Centre of mass with its 95 % interval."),
        _interval_figure("inertia", rows[4:], "inertia [kg m^2]", _inertia_caption(load)),
    )
    wrong = (Section("faults", "What could be wrong", (faults_table(load.faults),)),) if load.faults else ()
    sections = (
        Section("load", "The load", (parameters_table(load), *figures)),
        *wrong,
        Section("makers", "For the controller", (makers_table(load), Paragraph(f"Found by {load.method}.", "faint"))),
    )
    title = f"{load.mass:.4g} kg carried"
    return judged_page(load, title, f"in {load.frame}; inertia about the centre of mass", *sections)


def _inertia_caption(load: Payload) -> str:
    if load.separated:
        return "Inertia about the centre of mass with its 95 % interval."
    return "Inertia of a compact body of this mass: the motion did not show the load's own."


def _interval_figure(name: str, rows: Sequence[EstimatedParameter], title: str, caption: str) -> Figure:
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [row.name for row in rows],
        "y": short([row.value for row in rows]),
        "error_y": {"type": "data", "array": short([row.high - row.value for row in rows])},
        "name": name,
        "marker": {"color": BLUE, "size": 9},
    }
    return Figure(name, (points,), axes("", title), caption, half=True)
