"""The page about an identification from the tip to the base."""

from __future__ import annotations

from armid.identification.faults import faults_table
from armid.page import Figure, Report, Section
from armid.report.judged import judged_page
from armid.report.plots import BLUE, ORANGE, axes, short
from armid.sequential.sequential import Sequential, changes_table, parameters_table, stages_table


def sequential_page(found: Sequential) -> Report:
    """Stages, base parameters, what no torque notices, and what could be wrong with the recordings."""
    sections = [
        Section("stages", "Stages", (stages_table(found.stages), _stages_figure(found))),
        Section("parameters", "Base parameters", (parameters_table(found), _parameters_figure(found))),
    ]
    if found.invisible_changes:
        sections.append(Section("invisible", "What no torque notices", (changes_table(found),)))
    if found.faults:
        sections.append(Section("faults", "What could be wrong", (faults_table(found.faults),)))
    subtitle = f"{len(found.estimate)} base parameters from {len(found.stages)} stages, {found.structure} structure"
    return judged_page(found, f"{found.robot.name}: one link after the other", subtitle, *sections)


def _stages_figure(found: Sequential) -> Figure:
    places = [f"{k}: {stage.joint}" for k, stage in enumerate(found.stages, start=1)]
    bars = {
        "type": "bar",
        "x": places,
        "y": [stage.found for stage in found.stages],
        "name": "found",
        "marker": {"color": BLUE},
    }
    known = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": places,
        "y": [stage.known for stage in found.stages],
        "name": "known so far",
        "line": {"color": ORANGE},
    }
    caption = "Directions of the parameter space that every stage adds to what is known."
    return Figure("stages", (bars, known), axes("stage", "directions"), caption)


def _parameters_figure(found: Sequential) -> Figure:
    rows = found.parameters
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [row.name for row in rows],
        "y": short([row.value for row in rows]),
        "error_y": {"type": "data", "array": short([2.0 * row.standard_deviation for row in rows])},
        "name": "value",
        "marker": {"color": BLUE, "size": 7},
    }
    caption = "Base parameters with two standard deviations on either side, each in its own SI unit."
    return Figure("parameters", (points,), axes("base parameter", "value"), caption)
