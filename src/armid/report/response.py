"""Pages about frequency responses: measured axes, and campaigns still to be run."""

from __future__ import annotations

from typing import Any

import numpy as np

from armid.page import Block, Figure, Report, Section, Table
from armid.report.judged import judged_page
from armid.report.plots import BLUE, COLOURS, ORANGE, axes, short
from armid.response.campaign import SweepCampaign, accuracy_tables, motions_table
from armid.response.sweep import Sweep, axes_table, parameters_table


def sweep_page(found: Sweep) -> Report:
    """Every measurement, its response line by line, and the parameters of all together."""
    blocks: list[Block] = [axes_table(found), _inertia_figure(found)]
    if any(m.lines for m in found.axes):
        blocks.append(_response_figure(found))
    sections = [Section("axes", "Measured axes", tuple(blocks))]
    if found.model is not None:
        sections.append(Section("parameters", "Base parameters", (parameters_table(found),)))
    if found.predictions:
        sections.append(Section("predictions", "Predicted inertias", (_predictions_table(found),)))
    title = f"{found.robot.name}: axis inertias from frequency response"
    return judged_page(found, title, f"{len(found.axes)} measurements", *sections)


def _inertia_figure(found: Sweep) -> Figure:
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [m.axis for m in found.axes],
        "y": short([m.inertia for m in found.axes]),
        "error_y": {"type": "data", "array": short([2.0 * m.inertia_deviation for m in found.axes])},
        "name": "inertia",
        "marker": {"color": BLUE, "size": 8},
    }
    caption = "Inertia of every measurement with two standard deviations on either side."
    return Figure("inertia", (points,), axes("axis", "inertia [kg m^2 or kg]"), caption)


def _response_figure(found: Sweep) -> Figure:
    """Magnitudes line by line."""
    traces: list[dict[str, Any]] = []
    for k, (m, log) in enumerate(zip(found.axes, found.logs, strict=True)):
        if m.lines:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "x": short([line.frequency for line in m.lines]),
                    "y": short([line.magnitude for line in m.lines]),
                    "name": f"{m.axis}, {log}",
                    "line": {"color": COLOURS[k % len(COLOURS)]},
                }
            )
    layout = axes("frequency [Hz]", "velocity over torque [rad/(N m s) or m/(N s)]")
    layout["yaxis"]["type"] = "log"
    return Figure("response", tuple(traces), layout, "Magnitude of the response at every excited frequency.")


def _predictions_table(found: Sweep) -> Table:
    inertia = np.array([prediction.inertia for prediction in found.predictions])
    spread = np.array([prediction.standard_deviation for prediction in found.predictions])
    rows = tuple(
        (
            name,
            float(inertia[:, k].min()),
            float(inertia[:, k].max()),
            f"{100 * float((spread[:, k] / inertia[:, k]).max()):.2f} %",
        )
        for k, name in enumerate(found.robot.joint_names)
    )
    header = ("axis", "smallest", "largest", "worst relative deviation")
    return Table(header, rows, caption=f"Inertia over {len(found.predictions)} poses [kg m^2 or kg].")


def campaign_page(campaign: SweepCampaign) -> Report:
    """What will be measured, and how well it will predict."""
    blocks: tuple[Block, ...] = (motions_table(campaign), *accuracy_tables(campaign), _deviations_figure(campaign))
    title = f"{campaign.robot.name}: motions for frequency responses"
    subtitle = f"{len(campaign.sweeps)} motions, {campaign.minutes:.1f} minutes"
    return judged_page(campaign, title, subtitle, Section("motions", "Motions", blocks))


def _deviations_figure(campaign: SweepCampaign) -> Figure:
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [campaign.robot.joint_names[sweep.motion.axis] for sweep in campaign.sweeps],
        "y": short([sweep.deviation for sweep in campaign.sweeps]),
        "name": "deviation",
        "marker": {"color": ORANGE, "size": 8},
    }
    caption = "Standard deviation of the inertia to expect from every motion."
    return Figure("deviations", (points,), axes("axis", "standard deviation [kg m^2 or kg]"), caption)
