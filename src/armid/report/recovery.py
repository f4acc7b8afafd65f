"""The page about a model recovered from a controller: tables II-III and figures 3-6 of [Gaz2014] for any arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.page import Block, Figure, Paragraph, Report, Section, Table
from armid.recovery.recover import Recovery
from armid.recovery.silent_channels import equation
from armid.recovery.validation import Along, TorqueTest, joint_tables
from armid.report.plots import BLUE, GREEN, ORANGE, axes, line

COLUMNS = 5
"""Panels side by side: 35 elements of a seven-joint arm make seven rows."""

PANEL = 150
"""[pixels] Height of one panel."""

JOINT_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#888888", "#000000")


def recovery_report(
    found: Recovery,
    poses: tuple[int, int],
    gravity: Sequence[Mapping[str, Any]],
    motion: Along | None = None,
    torque: TorqueTest | None = None,
    tool: Mapping[str, Any] | None = None,
) -> Report:
    """Everything the page shows.

    Args:
        found: the recovered model.
        poses: how many for training and for validation.
        gravity: `expression`, `value`, `standard_deviation` of every gravity coefficient.
        motion: elements along a motion, when they were read.
        torque: measured torque along a motion, when it was recorded.
        tool: `mass`, `centre_of_mass`, `frame` of what was added between two identifications.
    """
    sections = [joints_section(found, motion, torque), coefficients_section(found, gravity)]
    if motion is not None:
        sections.append(motion_section(motion))
    if torque is not None:
        sections.append(torque_section(torque))
    sections += [elements_section(found), notes_section(found, tool)]
    return Report(
        title=f"{found.robot.name}: the model inside its controller",
        subtitle=f"{poses[0]} training and {poses[1]} validation poses, {found.free} base parameters",
        verdict=found.verdict,
        reasons=found.reasons,
        sections=tuple(sections),
    )


def joints_section(found: Recovery, motion: Along | None, torque: TorqueTest | None) -> Section:
    """Tables II and III."""
    rows = joint_tables(found, motion, torque)
    blocks: list[Block] = []
    for key, words in (("mean_square", "Mean square"), ("largest", "Largest")):
        cells = tuple(
            (
                r["joint"],
                *(r[f"gravity_{key}_{name}"] for name in ("training", "validation", "motion")),
                r[f"torque_{key}"],
            )
            for r in rows
        )
        power = " squared" if key == "mean_square" else ""
        caption = f"{words} error in N m (N for prismatic joints){power}."
        header = ("joint", "gravity, training", "gravity, validation", "gravity, along the motion", "torque test")
        blocks.append(Table(header, cells, caption=caption, digits=3))
    return Section("joints", "Errors per joint", tuple(blocks))


def coefficients_section(found: Recovery, gravity: Sequence[Mapping[str, Any]]) -> Section:
    """Gravity coefficients in closed form, all base parameters by value."""
    blocks: list[Block] = []
    if gravity:
        rows = tuple((g["expression"], g["value"], g["standard_deviation"]) for g in gravity)
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


def motion_section(motion: Along) -> Section:
    """The motion, and every element along it: reported and recovered."""
    label = "time [s]" if motion.timed else "pose"
    curves = tuple(
        line(motion.time, q, f"q{j + 1}", JOINT_COLOURS[j % len(JOINT_COLOURS)]) for j, q in enumerate(motion.q.T)
    )
    trajectories = Figure("motion", curves, axes(label, "position [rad or m]"), "The motion.", 300)
    names = [element_title(name) for name in motion.channels]
    worst = max((e.mean_square**0.5 / e.size for e in motion.errors if e.size > 1e-9), default=0.0)
    caption = (
        f"All {len(names)} elements over {len(motion.time)} samples of {motion.name}: reported (solid) and recovered (dashed). "
        f"Largest relative error of an element that is not zero: {worst:.2g}."
    )
    grid = panels(
        motion.time,
        names,
        (("reported", motion.reported, BLUE, "solid", 2.6), ("recovered", motion.recovered, ORANGE, "dash", 1.3)),
        label,
    )
    height = PANEL * -(-len(names) // COLUMNS) + 60
    return Section(
        "elements", "All elements along a motion", (trajectories, Figure("elements", *grid, caption, height))
    )


def torque_section(torque: TorqueTest) -> Section:
    """Measured and predicted joint torque."""
    curves = (
        ("measured", torque.measured, BLUE, "solid", 2.4),
        ("model", torque.predicted, ORANGE, "dash", 1.4),
        ("model and friction", torque.predicted + torque.friction, GREEN, "dot", 1.4),
    )
    grid = panels(torque.time, list(torque.joints), curves, "time [s]", columns=2)
    caption = (
        f"Joint torque low-passed at {torque.cutoff:g} Hz against M qdd + c + g of the recovered model [N m, N]. The model has "
        "no friction; the dotted line adds what viscous and Coulomb friction and an offset explain of the difference."
    )
    height = 190 * -(-len(torque.joints) // 2) + 60
    return Section("torque", "Torque of a motion", (Figure("torque", *grid, caption, height),))


def elements_section(found: Recovery) -> Section:
    """Every element at the poses."""
    rows = tuple(
        (element_title(t.channel), t.size, t.mean_square, v.mean_square, t.largest, v.largest)
        for t, v in zip(found.training, found.validation, strict=True)
    )
    header = (
        "element",
        "root mean square",
        "MSE training",
        "MSE validation",
        "largest, training",
        "largest, validation",
    )
    table = Table(header, rows, (), "Every reported element at the poses.", folded=True, digits=3)
    return Section("poses", "Every element at the poses", (table,))


def notes_section(found: Recovery, tool: Mapping[str, Any] | None) -> Section:
    blocks: list[Block] = [
        Paragraph(f"{note.subject}: {note.message}", "bad" if note.severity.value != "info" else "plain")
        for note in found.notes
    ]
    for silent in found.silent:
        if silent.constraints:
            equations = "; ".join(equation(c) for c in silent.constraints)
            blocks.append(Paragraph(f"{element_title(silent.channel)} is zero at every pose: {equations}"))
    if tool is not None:
        centre = ", ".join(f"{x:.4f}" for x in tool["centre_of_mass"])
        blocks.append(Paragraph(f"Tool: {tool['mass']:.4f} kg at ({centre}) m in {tool['frame']}."))
    physical = found.consistent is not None and found.consistent.is_physical
    blocks.append(
        Paragraph(
            "Bodies that can exist have these coefficients." if physical else "No bodies that can exist were found.",
            "plain" if physical else "bad",
        )
    )
    return Section("notes", "Notes", tuple(blocks))


def element_title(channel: str) -> str:
    """`g joint2`, `M 1,7`."""
    if channel.endswith(":gravity"):
        return f"g {channel.removesuffix(':gravity')}"
    return "M " + ",".join(channel.split("_")[1:])


Curve = tuple[str, FloatArray, str, str, float]
"""Name, values [n, n_panels], colour, dash, width."""


def panels(
    time: FloatArray, names: Sequence[str], curves: Sequence[Curve], label: str, columns: int = COLUMNS
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
            "range": vertical([c[1][:, k] for c in curves]),
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


def vertical(values: Sequence[FloatArray]) -> list[float]:
    """Range of a panel; an element that is zero up to round-off is drawn as the zero it is."""
    low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
    half = max(0.5 * (high - low), 1e-6 * max(abs(low), abs(high)), 1e-9)
    middle = 0.5 * (low + high)
    return [float(np.float64(middle - 1.15 * half)), float(np.float64(middle + 1.15 * half))]
