"""One page about a designed motion: joints against limits, tool path, what will be known and what stays weak."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.design.certificate import QUANTITIES
from armid.design.design import Design
from armid.design.expectation import nominal_base
from armid.design.nominal_torque import NominalTorque
from armid.design.trajectory import Trajectory, grid
from armid.experiments.torque import TorqueRows
from armid.kernels.evaluate import evaluate_rows
from armid.kernels.kinematics import forward_kinematics

PLOT_RATE_HZ = 50.0

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1100px; padding: 0 1rem; color: #1d2733; }
h1 { font-size: 1.5rem; margin-bottom: .2rem }
h2 { font-size: 1.1rem; margin-top: 2rem; border-top: 1px solid #d7dde4; padding-top: 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #e6eaee }
td:first-child, th:first-child { text-align: left }
.figures { display: flex; gap: 2rem; flex-wrap: wrap; margin: 1rem 0 }
.figures div { min-width: 8rem }
.figures b { display: block; font-size: 1.6rem }
.note { color: #7a5b00 }
.bad { color: #a11 }
"""


def write_page(design: Design, path: Path) -> Path:
    """Writes the page; plots are interactive and nothing is loaded from elsewhere."""
    figures = [
        ("Joint motion against limits", motion_figure(design)),
        ("Tool path", path_figure(design)),
        ("Expected standard deviation of each base parameter, relative to its nominal value", deviation_figure(design)),
    ]
    plots = []
    for k, (title, figure) in enumerate(figures):
        html = figure.to_html(full_html=False, include_plotlyjs=k == 0, config={"displaylogo": False})
        plots.append(f"<h2>{escape(title)}</h2>\n{html}")
    body = [headline(design), *plots, usage_table(design), weak_table(design), notes_list(design)]
    path.write_text(
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>{escape(design.robot.name)}: excitation</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body) + "\n</body></html>\n",
        encoding="utf-8",
    )  # fmt: skip
    return path


def headline(design: Design) -> str:
    """The figures that matter, first."""
    proof, found = design.certificate, design.search
    clearance = "none asked" if not np.isfinite(proof.clearance) else f"{1000 * proof.clearance:.1f} mm beyond margin"
    cells = [
        ("condition number", f"{design.condition_number:.2f}"),
        ("base parameters", str(len(design.base))),
        ("duration", f"{design.trajectory.duration:.1f} s"),
        (f"of every limit less {100 * design.settings.margin:g} % margin", f"{100 * proof.worst:.1f} %"),
        ("closest approach", clearance),
        ("searched", f"{found.explored} starts, {found.seconds:.0f} s"),
    ]
    figures = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in cells)
    verdict = "certified at every instant" if proof.feasible else "NOT feasible: " + "; ".join(proof.violations)
    return (
        f"<h1>{escape(design.robot.name)}: excitation trajectory</h1>"
        f"<p class='{'' if proof.feasible else 'bad'}'>{escape(verdict)}</p><div class='figures'>{figures}</div>"
    )


def motion_figure(design: Design) -> Any:
    """Position, velocity, acceleration and torque of every joint as a fraction of its limit."""
    from plotly.subplots import make_subplots

    names = ("position", "velocity", "acceleration", "torque")
    figure = make_subplots(rows=4, cols=1, shared_xaxes=True, vertical_spacing=0.03)
    t, values = limit_fractions(design, design.trajectory)
    for k, name in enumerate(names):
        for j, joint in enumerate(design.robot.joint_names):
            figure.add_scatter(
                x=t, y=values[name][:, j], name=joint, legendgroup=joint, showlegend=k == 0, row=k + 1, col=1,
                line={"width": 1.4, "color": COLOURS[j % len(COLOURS)]},
            )  # fmt: skip
        for bound in (-1.0, 1.0):
            figure.add_hline(y=bound, line={"dash": "dot", "color": "#a11", "width": 1}, row=k + 1, col=1)
        figure.update_yaxes(title_text=name, row=k + 1, col=1)
    figure.update_xaxes(title_text="time [s]", row=4, col=1)
    figure.update_layout(height=900, margin={"t": 20}, template="plotly_white")
    return figure


COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")


def limit_fractions(design: Design, trajectory: Trajectory) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Times, and each limited quantity over its limit (margins taken off), shape [n_samples, n_joints]."""
    t = grid(trajectory.duration, PLOT_RATE_HZ)
    q, qd, qdd = trajectory.sample(t)
    limits = design.limits
    torque = evaluate_rows(NominalTorque(design.robot), np.hstack([q, qd, qdd]))[:, :, 0]
    return t, {
        "position": (q - limits.middle) / limits.half_range,
        "velocity": qd / limits.velocity,
        "acceleration": qdd / limits.acceleration,
        "torque": torque / limits.torque,
    }


def path_figure(design: Design) -> Any:
    """Where the tip goes."""
    import plotly.graph_objects as go

    t = grid(design.trajectory.duration, PLOT_RATE_HZ)
    p = forward_kinematics(design.robot, design.trajectory.sample(t)[0])[:, :3, 3]
    line = go.Scatter3d(x=p[:, 0], y=p[:, 1], z=p[:, 2], mode="lines", name=design.robot.tip.name,
                        line={"color": t, "colorscale": "Viridis", "width": 4})  # fmt: skip
    base = go.Scatter3d(x=[0], y=[0], z=[0], mode="markers", name="base", marker={"size": 5, "color": "#333"})
    figure = go.Figure([line, base])
    figure.update_layout(height=550, margin={"t": 10}, scene={"aspectmode": "data"}, template="plotly_white")
    return figure


def relative_deviations(design: Design) -> FloatArray:
    """Predicted standard deviation over nominal value, infinite where the nominal value is zero, shape [r]."""
    nominal = np.abs(nominal_base(design.robot, TorqueRows(design.robot, design.settings.effects), design.base))
    with np.errstate(divide="ignore"):
        return np.where(nominal > 0.0, design.deviations / nominal, np.inf)


def deviation_figure(design: Design) -> Any:
    """Relative standard deviations in per cent, on a logarithmic scale."""
    import plotly.graph_objects as go

    relative = relative_deviations(design)
    shown = np.where(np.isfinite(relative), 100.0 * relative, np.nan)
    figure = go.Figure(go.Bar(x=list(design.base.names), y=shown, marker={"color": "#1f77b4"}))
    figure.update_yaxes(type="log", title_text="standard deviation [% of nominal]")
    figure.update_layout(height=380, margin={"t": 10}, template="plotly_white")
    return figure


def usage_table(design: Design) -> str:
    """Certified worst usage of every limit, joint by joint."""
    head = "".join(f"<th>{name}</th>" for name in QUANTITIES)
    rows = "".join(
        f"<tr><td>{escape(joint)}</td>"
        + "".join(f"<td>{100 * design.certificate.usage[name][j]:.1f} %</td>" for name in QUANTITIES) + "</tr>"
        for j, joint in enumerate(design.robot.joint_names)
    )  # fmt: skip
    title = "<h2>Worst usage of each limit (margin taken off), between samples too</h2>"
    return f"{title}<table><tr><th>joint</th>{head}</tr>{rows}</table>"


WEAKEST = 8


def percent(fraction: float) -> str:
    """Two digits below ten per cent, whole per cents above."""
    return f"{100 * fraction:.2g} %" if fraction < 0.1 else f"{100 * fraction:.0f} %"


def weak_table(design: Design) -> str:
    """The base parameters that will be known least."""
    relative = relative_deviations(design)
    order = np.argsort(-np.where(np.isfinite(relative), relative, 0.0))[:WEAKEST]
    rows = "".join(
        f"<tr><td>{escape(design.base.names[k])}</td><td>{percent(relative[k])}</td><td>{design.deviations[k]:.3g}</td></tr>"
        for k in order
        if np.isfinite(relative[k])
    )
    unknown = [name for name, r in zip(design.base.names, relative, strict=True) if not np.isfinite(r)]
    rest = f"<p>Nominally zero, so without a relative figure: {escape(', '.join(unknown))}.</p>" if unknown else ""
    return (
        "<h2>What remains weak</h2><table><tr><th>base parameter</th><th>of nominal</th><th>SI units</th></tr>"
        f"{rows}</table>{rest}"
    )


def notes_list(design: Design) -> str:
    """What was assumed."""
    if not design.notes:
        return ""
    items = "".join(f"<li class='note'>{escape(note.message)}</li>" for note in design.notes)
    return f"<h2>Notes</h2><ul>{items}</ul>"
