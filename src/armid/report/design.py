"""The page about a designed motion: joints against limits, tool path, what will be known and what stays weak."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.design.certificate import QUANTITIES
from armid.design.motion import Design
from armid.design.sequential import SequentialDesign
from armid.identifiability.expectation import nominal_base
from armid.kernels.evaluate import evaluate_rows
from armid.kernels.kinematics import forward_kinematics
from armid.motions.trajectory import grid
from armid.page import Block, Cell, Figure, Paragraph, Report, Section, Table
from armid.report.plots import BLUE, COLOURS, DASHES, GREY, ORANGE, axes, line, short
from armid.rows.nominal_torque import NominalTorque
from armid.rows.torque import TorqueRows

_PLOT_RATE_HZ = 50.0
_WEAKEST = 8


def design_report(design: Design) -> Report:
    """Everything the page shows."""
    sections = [_summary(design), _motion_section(design), _path_section(design), _deviation_section(design)]
    if design.notes:
        notes = tuple(Paragraph(note.message, "faint") for note in design.notes)
        sections.append(Section("notes", "Notes", notes))
    subtitle = (
        f"condition number {design.condition_number:.2f} over {len(design.base)} base parameters, "
        f"{design.trajectory.duration:.1f} s"
    )
    return Report(
        title=f"{design.robot.name}: excitation trajectory",
        subtitle=subtitle,
        verdict=str(design.verdict),
        reasons=design.reasons,
        sections=tuple(sections),
    )


def sequential_report(plan: SequentialDesign) -> Report:
    """The experiments of a plan, each with the motion of the joints that move in it."""
    sections = [Section("plan", "The experiments", plan._tables())]
    for k, stage in enumerate(plan.stages, start=1):
        blocks = tuple(
            replace(figure, name=f"experiment{k}-{figure.name}")
            for figure in _motion_section(stage.design).blocks
            if isinstance(figure, Figure)
        )
        sections.append(Section(f"experiment{k}", f"Experiment {k}: {stage.design.robot.name}", blocks))
    return Report(
        title=f"{plan.robot.name}: experiments with locked joints",
        subtitle=f"{len(plan.stages)} experiments, from the tip to the base",
        verdict=str(plan.verdict),
        reasons=plan.reasons,
        sections=tuple(sections),
    )


def _summary(design: Design) -> Section:
    """The figures that matter, first."""
    proof, found = design.certificate, design.search
    verdict = "certified at every instant" if proof.feasible else "NOT feasible: " + "; ".join(proof.violations)
    clearance = "not asked for"
    if np.isfinite(proof.clearance):
        clearance = f"{1000 * proof.clearance:.1f} mm beyond the margin ({proof.closest})"
    rows: tuple[tuple[Cell, ...], ...] = (
        ("condition number", f"{design.condition_number:.2f}"),
        ("the same, columns of unit length", f"{design.condition_number_scaled:.2f}"),
        ("base parameters", f"{len(design.base)}"),
        ("duration", f"{design.trajectory.duration:.1f} s"),
        ("largest use of a limit", f"{100 * proof.worst:.1f} % of it less {100 * design.settings.margin:g} % margin"),
        ("closest approach", clearance),
        ("searched", f"{found.explored} starts, {found.seconds:.0f} s"),
    )
    usage = tuple(
        (joint, *(f"{100 * proof.usage[name][j]:.1f} %" for name in QUANTITIES))
        for j, joint in enumerate(design.robot.joint_names)
    )
    blocks: tuple[Block, ...] = (
        Paragraph(verdict, "good" if proof.feasible else "bad"),
        Table(("", ""), rows),
        Table(
            ("joint", *QUANTITIES), usage, caption="Worst use of each limit (margin taken off), between samples too."
        ),
    )
    return Section("summary", "The motion", blocks)


def _motion_section(design: Design) -> Section:
    """Position, velocity, acceleration and torque of every joint as a fraction of its limit."""
    t, values = _limit_fractions(design)
    figures = []
    for name, fractions in values.items():
        data = [
            line(t, fractions[:, j], joint, COLOURS[j % len(COLOURS)], dash=DASHES[j // len(COLOURS) % len(DASHES)])
            for j, joint in enumerate(design.robot.joint_names)
        ]
        for bound in (-1.0, 1.0):
            data.append(line(t[[0, -1]], np.full(2, bound), "", GREY, dash="dash") | {"showlegend": False})
        figures.append(Figure(name, tuple(data), axes("time [s]", f"{name} over limit"), height=260))
    return Section("motion", "Joint motion against limits", tuple(figures))


def _limit_fractions(design: Design) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Times, and each limited quantity over its limit (margins taken off), shape [n_samples, n_joints]."""
    t = grid(design.trajectory.duration, _PLOT_RATE_HZ)
    q, qd, qdd = design.trajectory.sample(t)
    limits = design.limits
    torque = evaluate_rows(NominalTorque(design.robot), np.hstack([q, qd, qdd]))[:, :, 0]
    return t, {
        "position": (q - limits.middle) / limits.half_range,
        "velocity": qd / limits.velocity,
        "acceleration": qdd / limits.acceleration,
        "torque": torque / limits.torque,
    }


def _path_section(design: Design) -> Section:
    """Where the tip goes."""
    t = grid(design.trajectory.duration, _PLOT_RATE_HZ)
    p = forward_kinematics(design.robot, design.trajectory.sample(t)[0])[:, :3, 3]
    path = {
        "type": "scatter3d",
        "mode": "lines",
        "name": design.robot.tip.name,
        "showlegend": False,
        "x": short(p[:, 0]),
        "y": short(p[:, 1]),
        "z": short(p[:, 2]),
        "line": {
            "color": short(t),
            "colorscale": "Viridis",
            "width": 4,
            "showscale": True,
            "colorbar": {"title": {"text": "time [s]"}, "thickness": 12, "len": 0.6},
        },
    }
    base = {
        "type": "scatter3d",
        "mode": "markers+text",
        "x": [0.0],
        "y": [0.0],
        "z": [0.0],
        "text": ["base"],
        "showlegend": False,
        "marker": {"size": 5, "color": ORANGE},
    }
    titles = {f"{axis}axis": {"title": {"text": f"{axis} [m]"}} for axis in "xyz"}
    layout = {"scene": {"aspectmode": "data", "camera": {"eye": {"x": 1.7, "y": 1.7, "z": 0.9}}, **titles}}
    caption = f"Path of {design.robot.tip.name} in the base frame."
    return Section("path", "Tool path", (Figure("path", (path, base), layout, caption, height=520),))


def _relative_deviations(design: Design) -> FloatArray:
    """Predicted standard deviation over nominal value, infinite where the nominal value is zero, shape [r]."""
    nominal = np.abs(nominal_base(design.robot, TorqueRows(design.robot, design.settings.effects), design.base))
    with np.errstate(divide="ignore"):
        return np.where(nominal > 0.0, design.deviations / nominal, np.inf)


def _deviation_section(design: Design) -> Section:
    """What will be known, and what least."""
    relative = _relative_deviations(design)
    known = np.isfinite(relative)
    names = [name for name, yes in zip(design.base.names, known, strict=True) if yes]
    bars = {"type": "bar", "x": names, "y": short(100.0 * relative[known]), "marker": {"color": BLUE}, "name": ""}
    layout = axes("", "standard deviation [% of nominal]", showlegend=False)
    layout["yaxis"]["type"] = "log"
    order = [int(k) for k in np.argsort(-np.where(known, relative, 0.0))[:_WEAKEST] if known[k]]
    rows = tuple((design.base.names[k], _percent(relative[k]), float(design.deviations[k])) for k in order)
    blocks: list[Block] = [
        Figure("deviations", (bars,), layout, "Expected for the assumed torque noise, over the nominal value.", 360),
        Table(("base parameter", "of nominal", "SI units"), rows, caption="The least known.", digits=3),
    ]
    unknown = [name for name, yes in zip(design.base.names, known, strict=True) if not yes]
    if unknown:
        text = f"Nominally zero, so without a relative figure: {', '.join(unknown)}."
        blocks.append(Paragraph(text, "faint"))
    return Section("deviations", "What will be known, and what remains weak", tuple(blocks))


def _percent(fraction: float) -> str:
    """Two digits below ten per cent, whole per cents above."""
    return f"{100 * fraction:.2g} %" if fraction < 0.1 else f"{100 * fraction:.0f} %"
