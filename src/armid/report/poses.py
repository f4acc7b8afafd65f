"""The page about measurement poses: where the tool is, where the joints are, and what each method reached."""

from __future__ import annotations

from typing import Any

import numpy as np

from armid.design.pose_design import PoseDesign
from armid.kernels.kinematics import forward_kinematics
from armid.page import Cell, Figure, Paragraph, Report, Section, Table
from armid.report.plots import BLUE, COLOURS, axes, points, short


def poses_report(design: PoseDesign) -> Report:
    """Everything the page shows."""
    sections = [
        Section("summary", "The choice", (*design._tables(), _methods(design))),
        Section("places", "Where the tool is", (_places(design),)),
        Section("joints", "The poses", (_joints(design), _pose_table(design))),
    ]
    if design.notes:
        notes = tuple(Paragraph(note.message, "faint") for note in design.notes)
        sections.append(Section("notes", "Notes", notes))
    return Report(
        title=f"{design.robot.name}: poses for {design.purpose}",
        subtitle=f"{len(design.poses)} poses, condition number {design.condition_number:.4g}",
        verdict=str(design.verdict),
        reasons=design.reasons,
        sections=tuple(sections),
    )


def _methods(design: PoseDesign) -> Figure:
    reached = {"random": design.initial_condition_number, **design.methods}
    bars = {
        "type": "bar",
        "x": list(reached),
        "y": short(list(reached.values())),
        "marker": {"color": BLUE},
        "name": "",
    }
    layout = axes("", "condition number", showlegend=False)
    layout["yaxis"]["type"] = "log"
    return Figure("methods", (bars,), layout, "Condition number reached by each method, beside random poses.")


def _places(design: PoseDesign) -> Figure:
    p = forward_kinematics(design.robot, design.poses)[:, :3, 3]
    visit = {
        "type": "scatter3d",
        "mode": "lines+markers+text",
        "name": design.robot.tip.name,
        "showlegend": False,
        "x": short(p[:, 0]),
        "y": short(p[:, 1]),
        "z": short(p[:, 2]),
        "text": [str(k + 1) for k in range(len(p))],
        "line": {"color": BLUE, "width": 1},
        "marker": {"size": 4, "color": BLUE},
    }
    titles: dict[str, Any] = {f"{axis}axis": {"title": {"text": f"{axis} [m]"}} for axis in "xyz"}
    caption = f"{design.robot.tip.name} in the base frame, numbered in the order of the visit."
    return Figure("places", (visit,), {"scene": {"aspectmode": "data", **titles}}, caption, height=520)


def _joints(design: PoseDesign) -> Figure:
    order = np.arange(1.0, len(design.poses) + 1.0)
    data = tuple(
        points(order, design.poses[:, j], joint, COLOURS[j % len(COLOURS)], size=7)
        for j, joint in enumerate(design.robot.joint_names)
    )
    return Figure("joints", data, axes("pose", "position [rad or m]"), "Every joint at every pose.")


def _pose_table(design: PoseDesign) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (k, *(float(q) for q in pose), ", ".join(names))
        for k, (pose, names) in enumerate(zip(design.poses, design.measured, strict=True), start=1)
    )
    return Table(("pose", *design.robot.joint_names, "measured"), rows, caption="[rad or m]", folded=True)
