"""The page about a model recovered from a controller: tables II-III and figures 3-6 of [Gaz2014] for any arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.page import Block, Figure, Paragraph, Report, Section, Table
from armid.recovery.plan import PosesToRead
from armid.recovery.recovery import Recovery, elements_table, joint_error_tables
from armid.recovery.silent_channels import equation
from armid.recovery.validation import Along, TorqueTest
from armid.report.judged import judged_page
from armid.report.plots import BLUE, GREEN, ORANGE, axes, line, short

_COLUMNS = 5
"""Panels side by side: 35 elements of a seven-joint arm make seven rows."""

_PANEL = 150
"""[pixels] Height of one panel."""

_JOINT_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#888888", "#000000")


def recovery_page(found: Recovery) -> Report:
    """Everything the page shows."""
    sections = [_joints_section(found), _coefficients_section(found)]
    if found.along is not None:
        sections.append(_motion_section(found.along))
    if found.torque_test is not None:
        sections.append(_torque_section(found.torque_test))
    sections += [_elements_section(found), _findings_section(found)]
    title = f"{found.robot.name}: the model inside its controller"
    poses = f"{found.training_poses} training and {found.validation_poses} validation poses"
    return judged_page(found, title, f"{poses}, {found.free} base parameters", *sections)


def poses_page(plan: PosesToRead) -> Report:
    """Where the poses lie."""
    points = [
        {
            "type": "box",
            "y": short(values),
            "name": name,
            "boxpoints": False,
            "marker": {"color": BLUE},
        }
        for name, values in zip(plan.robot.joint_names, plan.poses.T, strict=True)
    ]
    figure = Figure(
        "poses", tuple(points), axes("", "position [rad or m]", showlegend=False), "Positions of every joint."
    )
    title = f"{plan.robot.name}: poses to read its controller at"
    return judged_page(plan, title, f"{len(plan.poses)} poses", Section("poses", "Poses", (figure,)))


def _joints_section(found: Recovery) -> Section:
    """Tables II and III."""
    return Section("joints", "Errors per joint", tuple(joint_error_tables(found)))


def _coefficients_section(found: Recovery) -> Section:
    """Gravity coefficients in closed form, all base parameters by value."""
    blocks: list[Block] = []
    if found.gravity_terms:
        rows = tuple((g.expression, g.value, g.standard_deviation) for g in found.gravity_terms)
        caption = "Coefficients of the gravity vector, divided by the acceleration of gravity [kg m]."
        blocks.append(Table(("coefficient", "value", "standard deviation"), rows, caption=caption, digits=5))
    joint = found.joint
    parameters = tuple(
        (name, float(value), float(deviation), unit)
        for name, value, deviation, unit in zip(
            joint.names, joint.values, joint.standard_deviations, joint.units, strict=True
        )
    )
    caption = "Base parameters from gravity and inertia together."
    blocks.append(
        Table(("parameter", "value", "standard deviation", "unit"), parameters, (), caption, folded=True, digits=6)
    )
    return Section("coefficients", "Coefficients", tuple(blocks))


def _motion_section(motion: Along) -> Section:
    """The motion, and every element along it: reported and recovered."""
    label = "time [s]" if motion.timed else "pose"
    curves = tuple(
        line(motion.time, q, f"q{j + 1}", _JOINT_COLOURS[j % len(_JOINT_COLOURS)]) for j, q in enumerate(motion.q.T)
    )
    trajectories = Figure("motion", curves, axes(label, "position [rad or m]"), "The motion.", 300)
    names = [e.title for e in motion.errors]
    worst = max((e.mean_square**0.5 / e.size for e in motion.errors if e.size > 1e-9), default=0.0)
    caption = (
        f"All {len(names)} elements over {len(motion.time)} samples of {motion.name}: reported (solid) and recovered (dashed). "
        f"Largest relative error of an element that is not zero: {worst:.2g}."
    )
    grid = _panels(
        motion.time,
        names,
        (("reported", motion.reported, BLUE, "solid", 2.6), ("recovered", motion.recovered, ORANGE, "dash", 1.3)),
        label,
    )
    height = _PANEL * -(-len(names) // _COLUMNS) + 60
    return Section(
        "elements", "All elements along a motion", (trajectories, Figure("elements", *grid, caption, height))
    )


def _torque_section(torque: TorqueTest) -> Section:
    """Measured and predicted joint torque."""
    curves = (
        ("measured", torque.measured, BLUE, "solid", 2.4),
        ("model", torque.predicted, ORANGE, "dash", 1.4),
        ("model and friction", torque.predicted + torque.friction, GREEN, "dot", 1.4),
    )
    grid = _panels(torque.time, list(torque.joints), curves, "time [s]", columns=2)
    caption = (
        f"Joint torque low-passed at {torque.cutoff:g} Hz against M qdd + c + g of the recovered model [N m, N]. The model has "
        "no friction; the dotted line adds what viscous and Coulomb friction and an offset explain of the difference."
    )
    height = 190 * -(-len(torque.joints) // 2) + 60
    return Section("torque", "Torque of a motion", (Figure("torque", *grid, caption, height),))


def _elements_section(found: Recovery) -> Section:
    """Every element at the poses."""
    bars = tuple(
        {
            "type": "bar",
            "x": [e.title for e in errors],
            "y": short([e.largest for e in errors]),
            "name": name,
            "marker": {"color": colour},
        }
        for name, errors, colour in (("training", found.training, BLUE), ("validation", found.validation, ORANGE))
    )
    layout = axes("element", "largest error [SI]")
    layout["yaxis"]["type"] = "log"
    figure = Figure("errors", bars, layout, "Largest error of every element at the poses.")
    return Section("poses", "Every element at the poses", (figure, replace(elements_table(found), folded=True)))


def _findings_section(found: Recovery) -> Section:
    blocks: list[Block] = []
    titles = {e.channel: e.title for e in found.training}
    for silent in found.silent:
        if silent.constraints:
            equations = "; ".join(equation(c) for c in silent.constraints)
            blocks.append(Paragraph(f"{titles[silent.channel]} is zero at every pose: {equations}"))
    if found.tool is not None:
        centre = ", ".join(f"{x:.4f}" for x in found.tool.centre_of_mass)
        blocks.append(Paragraph(f"Tool: {found.tool.mass:.4f} kg at ({centre}) m in {found.tool.frame}."))
    physical = found.bodies is not None
    blocks.append(
        Paragraph(
            "Bodies that can exist have these coefficients." if physical else "No bodies that can exist were found.",
            "plain" if physical else "bad",
        )
    )
    return Section("findings", "Findings", tuple(blocks))


Curve = tuple[str, FloatArray, str, str, float]
"""Name, values [n, n_panels], colour, dash, width."""


def _panels(
    time: FloatArray, names: Sequence[str], curves: Sequence[Curve], label: str, columns: int = _COLUMNS
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """A grid of small plots over one time: Plotly's data and layout."""
    rows = -(-len(names) // columns)
    layout: dict[str, Any] = {"annotations": [], "showlegend": True}
    data: list[dict[str, Any]] = []
    across, down = 1.0 / columns, 1.0 / rows
    for k, name in enumerate(names):
        column, row = k % columns, k // columns
        left, top = column * across, 1.0 - row * down
        x, y = (f"{axis}{k + 1 if k else ''}" for axis in ("x", "y"))
        last = k + columns >= len(names)
        width = [left + 0.22 * across, left + 0.97 * across]
        height = [top - 0.80 * down, top - 0.18 * down]
        layout[f"xaxis{k + 1 if k else ''}"] = {
            "domain": width,
            "anchor": y,
            "automargin": False,
            "nticks": 4,
            "title": {"text": label if last else "", "font": {"size": 10}, "standoff": 4},
            "tickfont": {"size": 9},
        }
        layout[f"yaxis{k + 1 if k else ''}"] = {
            "domain": height,
            "anchor": x,
            "automargin": False,
            "nticks": 4,
            "tickfont": {"size": 9},
            "range": _vertical([c[1][:, k] for c in curves]),
        }
        layout["annotations"].append(
            {
                "text": name,
                "x": width[0],
                "y": height[1],
                "xref": "paper",
                "yref": "paper",
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 11},
            }
        )
        for title, values, colour, dash, thickness in curves:
            one = line(time, values[:, k], title, colour, dash=dash, axis=y, width=thickness)
            data.append(one | {"xaxis": x, "legendgroup": title, "showlegend": k == 0})
    return tuple(data), layout


def _vertical(values: Sequence[FloatArray]) -> list[float]:
    """Range of a panel; an element that is zero up to round-off is drawn as the zero it is."""
    low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
    half = max(0.5 * (high - low), 1e-6 * max(abs(low), abs(high)), 1e-9)
    middle = 0.5 * (low + high)
    return [float(np.float64(middle - 1.15 * half)), float(np.float64(middle + 1.15 * half))]
