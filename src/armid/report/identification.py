"""The report of an identification: verdict first, then everything needed to believe it or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.result import Result
from armid.kernels.kinematics import forward_kinematics
from armid.parameters.inertial import to_centre_of_mass
from armid.report import plots
from armid.report.section import Block, Figure, Paragraph, Report, Section, Table
from armid.validation.residuals import ResidualDiagnostics, diagnose, run_names

BAND = 0.1
"""Half width of the band drawn around measured torque, of the joint's largest torque, as in [Halper2024] figs. 4.2-4.3."""

WORDS = {
    "data": "determined by the data",
    "prior": "left at the prior: the data do not see it",
}


def identification_report(result: Result) -> Report:
    """Sections of a result; load it with its traces."""
    held_out = 100 * result.relative_error.get("held_out", float("nan"))
    return Report(
        title=f"{result.robot.name}: identified model",
        subtitle=f"{len(result.estimate)} base parameters, condition number {result.condition_number:.4g}, "
        f"held-out torque error {held_out:.2f} %",
        verdict=result.verdict,
        reasons=result.reasons,
        sections=(
            verdict_section(result),
            measured_section(result),
            health_section(result),
            excitation_section(result),
            torque_section(result),
            friction_section(result),
            parameter_section(result),
            correlation_section(result),
            consistency_section(result),
            residual_section(result),
            sensitivity_section(result),
            reproduce_section(result),
        ),
    )


def verdict_section(result: Result) -> Section:
    joints = Table(
        ("joint", "train", "held out", "held out, raw", "relative", "nominal model", "unconstrained"),
        tuple(
            (
                joint.name,
                joint.train.rmse,
                joint.held_out.rmse,
                joint.held_out.rmse_raw,
                f"{100 * joint.held_out.relative:.2f} %",
                nominal.held_out.rmse,
                raw.held_out.rmse,
            )
            for joint, nominal, raw in zip(result.joints, result.joints_nominal, result.joints_raw, strict=True)
        ),
        caption="Root mean square torque error of the consistent estimate [N m, N for prismatic joints], low-passed at "
        f"{result.conditioning.get('torque_cutoff_hz', float('nan')):.3g} Hz; 'raw' is against the unfiltered torque; "
        "'nominal' is the "
        "description before identification.",
    )
    checks = Table(
        ("condition", "about", "outcome", "in words"),
        tuple(
            (c.code, c.subject, "holds" if c.passed else ("FAILS" if c.decisive else "noted"), c.message)
            for c in result.checks
        ),
        tuple("" if c.passed else ("bad" if c.decisive else "faint") for c in result.checks),
        caption="Every condition of the gate. A result is trusted when all decisive ones hold.",
    )
    return Section("verdict", "Verdict", (joints, checks))


def measured_section(result: Result) -> Section:
    p = result.provenance
    robot = p.get("robot", {})
    rows: list[tuple[str, str]] = [("robot", f"{robot.get('path', '')}  sha256 {str(robot.get('sha256', ''))[:16]}")]
    for part in ("train", "held_out"):
        for log in p.get(part, ()):
            for file in log.get("files", ()):
                span = f"{log.get('start_s', 0):.2f}-{log.get('end_s', 0):.2f} s, {log.get('samples', '?')} samples"
                rows.append((part.replace("_", " "), f"{file['path']}  {span}  sha256 {str(file['sha256'])[:16]}"))
    rows += [(f"version of {name}", str(value)) for name, value in p.get("versions", {}).items()]
    rows += [(f"setting {name}", str(value)) for name, value in p.get("settings", {}).items()]
    rows += [(f"conditioning: {name}", str(value)) for name, value in result.conditioning.items()]
    rows += [("time", f"{result.seconds:.2f} s, peak memory {result.peak_memory_mb:.0f} MB")]
    return Section("measured", "What was measured", (Table(("", ""), tuple(rows)),))


def health_section(result: Result) -> Section:
    notes = [note for note in result.notes if note.code != "poorly-identified"]
    if not notes:
        return Section("health", "Data health", (Paragraph("The checks of the logs found nothing to remark.", "good"),))
    table = Table(
        ("severity", "code", "about", "finding"),
        tuple((str(n.severity), n.code, n.subject, n.message) for n in notes),
        tuple({"error": "bad", "warning": "warn"}.get(str(n.severity), "") for n in notes),
    )
    return Section("health", "Data health", (table,))


def excitation_section(result: Result) -> Section:
    e = result.estimate
    rsd = 100 * e.relative_standard_deviations
    order = np.argsort(rsd)
    names = [e.names[k] for k in order]
    colours = [plots.BLUE if rsd[k] <= 15 else plots.ORANGE for k in order]
    figure = Figure(
        "excitation",
        ({"type": "bar", "x": names, "y": plots.short(np.minimum(rsd[order], 1e3)), "marker": {"color": colours}},),
        plots.axes("", "relative standard deviation [%]", yaxis_type="log", showlegend=False)
        | {"yaxis": {"type": "log", "title": {"text": "relative standard deviation [%]"}}},
        "Sorted; orange is above 15 %. A parameter can be uncertain simply because it is nearly zero: see its interval below.",
    )
    text = (
        f"Condition number {result.condition_number:.4g} in SI units, {result.condition_number_scaled:.4g} with columns scaled "
        f"to unit norm. {e.base.decision.reason}."
    )
    weak = e.poorly_identified["interval-holds-zero"]
    lines: list[Block] = [Paragraph(text), figure]
    if weak:
        lines.append(Paragraph("Not distinguishable from zero with 95 % confidence: " + ", ".join(weak) + ".", "faint"))
    return Section("excitation", "Excitation, and what stays weak", tuple(lines))


def channels_of(result: Result) -> Iterator[tuple[str, int, str, dict[str, FloatArray]]]:
    """(channel, its index, run, the run's arrays) for everything in the traces."""
    for run in run_names(result.traces):
        arrays = {key.split(".", 1)[1]: value for key, value in result.traces.items() if key.startswith(f"{run}.")}
        for k, joint in enumerate(result.joints):
            yield joint.name, k, run, arrays


def torque_section(result: Result) -> Section:
    blocks: list[Block] = []
    for name, k, run, a in channels_of(result):
        t, measured, predicted = a["time"], a["measured"][:, k], a["consistent"][:, k]
        half = BAND * float(np.abs(measured).max())
        blocks.append(
            Figure(
                f"torque-{run}-{k}",
                (
                    plots.band(
                        t,
                        measured - half,
                        measured + half,
                        f"±{100 * BAND:.0f} % of the largest torque",
                        "rgba(128,128,128,0.18)",
                    ),
                    plots.line(t, measured, "measured", plots.BLUE),
                    plots.line(t, predicted, "predicted", plots.ORANGE, dash="dash"),
                    plots.line(t, measured - predicted, "residual", plots.GREEN, width=1.0),
                ),
                plots.axes("time [s]", "torque [N m]", title={"text": f"{name} ({run})"}),
            )
        )
    lead = Paragraph(
        "Motion no part of which was used for any choice. Predicted by the physically consistent estimate."
    )
    return Section("torque", "Torque on held-out motion", (lead, *blocks))


def friction_section(result: Result) -> Section:
    """Measured torque minus the predicted rigid-body and rotor part, over velocity, with the identified curve."""
    values = dict(zip(result.consistent.names, result.consistent.values, strict=True))
    blocks: list[Block] = []
    n = result.robot.n_joints
    for name, k, run, a in channels_of(result):
        if "inputs" not in a or k >= n or f"joint{k + 1}.viscous" not in values:
            continue
        qd = a["inputs"][:, n + k]
        viscous, coulomb, offset = (values.get(f"joint{k + 1}.{q}", 0.0) for q in ("viscous", "coulomb", "offset"))
        friction = viscous * qd + coulomb * np.sign(qd) + offset
        rest = a["measured"][:, k] - (a["consistent"][:, k] - friction)
        x = np.linspace(qd.min(), qd.max(), 201)
        curve = viscous * x + coulomb * np.sign(x) + offset
        blocks.append(
            Figure(
                f"friction-{run}-{k}",
                (
                    plots.points(qd, rest, "measured minus rigid body", plots.SKY),
                    plots.line(x, curve, "identified friction", plots.ORANGE, width=2.2),
                ),
                plots.axes("velocity [rad/s]", "torque [N m]", title={"text": f"{name} ({run})"}),
                height=280,
            )
        )
    if not blocks:
        return Section("friction", "Friction", (Paragraph("The model contains no friction.", "faint"),))
    return Section("friction", "Friction", tuple(blocks))


def parameter_section(result: Result) -> Section:
    e, c = result.estimate, result.consistent
    low, high = e.interval()
    flagged = set(e.poorly_identified["interval-holds-zero"])
    base = Table(
        ("parameter", "value", "95 % from", "to", "std. dev. %", "unit", "in full"),
        tuple(
            (name, float(v), float(a), float(b), float(100 * r), unit, combination(e.base.terms(k)))
            for k, (name, v, a, b, r, unit) in enumerate(
                zip(e.names, e.values, low, high, e.relative_standard_deviations, e.units, strict=True)
            )
        ),
        tuple("faint" if name in flagged else "" for name in e.names),
        caption=f"Base parameters, {e.method}; intervals from {e.covariance_kind} covariance. Faint: zero lies in the interval.",
    )
    standard = Table(
        ("parameter", "value", "nominal", "std. dev.", "unit", "determined by", "share of data"),
        tuple(
            (n, float(v), float(p), float(s), u, by, f"{100 * share:.0f} %")
            for n, v, p, s, u, by, share in zip(
                c.names,
                c.values,
                c.prior.values,
                c.standard_deviations,
                c.units,
                c.determined_by,
                c.data_share,
                strict=True,
            )
        ),
        tuple("" if by == "data" else "faint" for by in c.determined_by),
        caption="Standard parameters of possible bodies. Faint rows are what the prior says, not what was measured.",
        folded=True,
    )
    return Section("parameters", "Parameters", (base, standard))


def combination(terms: dict[str, float]) -> str:
    """A base parameter as a sum of standard ones."""
    parts = []
    for name, weight in terms.items():
        sign = "−" if weight < 0 else "+"
        size = "" if abs(abs(weight) - 1.0) < 1e-12 else f"{abs(weight):.4g} "
        parts.append(f"{sign} {size}{name}")
    text = " ".join(parts)
    return text[2:] if text.startswith("+ ") else text


def correlation_section(result: Result) -> Section:
    e = result.estimate
    s = e.standard_deviations
    with np.errstate(divide="ignore", invalid="ignore"):
        matrix = np.nan_to_num(e.covariance / np.outer(s, s))
    figure = Figure(
        "correlation",
        (
            {
                "type": "heatmap",
                "z": [plots.short(row, 2) for row in matrix],
                "x": list(e.names),
                "y": list(e.names),
                "zmin": -1,
                "zmax": 1,
                "colorscale": [[0, plots.ORANGE], [0.5, "#f7f7f7"], [1, plots.BLUE]],
            },
        ),
        {"xaxis": {"showticklabels": False}, "yaxis": {"showticklabels": False, "autorange": "reversed"}},
        "Correlation of the base estimates: off-diagonal entries near ±1 are pairs the motion can hardly tell apart.",
        height=520,
    )
    strong = np.argwhere(np.triu(np.abs(matrix) > 0.95, 1))
    pairs = "; ".join(f"{e.names[i]} and {e.names[j]} ({matrix[i, j]:+.2f})" for i, j in strong[:12])
    text = f"Correlated above 0.95: {pairs}." if pairs else "No pair is correlated above 0.95."
    return Section("correlation", "Correlation", (figure, Paragraph(text, "faint")))


def consistency_section(result: Result) -> Section:
    k, robot = result.certificates, result.identified_robot()
    margins = Table(
        ("body", "smallest pseudo-inertia eigenvalue"),
        tuple((name, float(value)) for name, value in k.pseudo_inertia.items()),
        caption="Positive means that a body with these parameters exists.",
    )
    text = (
        f"Smallest eigenvalue of the mass matrix over {k.configurations} configurations within the limits: {k.mass_matrix:.3g}"
        + (" (and it is positive definite everywhere: every body is)." if k.proven else ".")
        + f" The unconstrained estimate lies {k.distance:.3g} squared standard deviations from the nearest possible bodies; "
        f"noise alone allows {k.distance_limit:.3g}."
    )
    surfaces = []
    q = np.zeros((1, robot.n_joints))
    palette = (plots.BLUE, plots.ORANGE, plots.GREEN, plots.PINK, plots.SKY, plots.YELLOW, plots.GREY)
    for i, link in enumerate(robot.links):
        if link.inertial is None or link.inertial[0] <= 0.0:
            continue
        mass, centre, I = to_centre_of_mass(link.inertial)
        moments, axes = np.linalg.eigh(I)
        # Semi-axes of the solid ellipsoid of uniform density with these moments: I_x = m (b^2 + c^2) / 5.
        squares = 2.5 / mass * (moments.sum() - 2.0 * moments)
        T = forward_kinematics(robot, q, link.name)[0]
        surfaces.append(
            plots.ellipsoid(
                T[:3, :3] @ centre + T[:3, 3],
                np.sqrt(np.maximum(squares, 1e-8)),
                T[:3, :3] @ axes,
                link.name,
                palette[i % 7],
            )
        )
    figure = Figure(
        "ellipsoids",
        tuple(surfaces),
        {
            "scene": {
                "aspectmode": "data",
                "xaxis": {"title": {"text": "x [m]"}},
                "yaxis": {"title": {"text": "y [m]"}},
                "zaxis": {"title": {"text": "z [m]"}},
            }
        },
        "Each link as the solid ellipsoid of uniform density with its mass, centre and inertia; joints at zero, base frame.",
        height=520,
    )
    return Section("consistency", "Physical consistency", (Paragraph(text), margins, figure))


def diagnostics_of(result: Result) -> Iterator[tuple[str, ResidualDiagnostics]]:
    n = result.robot.n_joints
    for name, k, run, a in channels_of(result):
        if "inputs" in a:
            residual = a["measured"][:, k] - a["consistent"][:, k]
            velocity = a["inputs"][:, n + (k % n)]
            yield run, diagnose(name, a["time"], residual, a["measured"][:, k], velocity, a["consistent"][:, k])


def residual_section(result: Result) -> Section:
    blocks: list[Block] = []
    for run, d in diagnostics_of(result):
        blocks.append(
            Figure(
                f"spectrum-{run}-{d.name}",
                (
                    plots.line(d.frequency, d.torque_spectrum, "measured torque", plots.BLUE),
                    plots.line(d.frequency, d.spectrum, "residual", plots.ORANGE, dash="dash"),
                ),
                {
                    "title": {"text": f"{d.name} ({run}); residual correlated over {d.correlation_time:.2f} s"},
                    "xaxis": {"type": "log", "title": {"text": "frequency [Hz]"}},
                    "yaxis": {"type": "log", "title": {"text": "[N m/√Hz]"}},
                },
                height=260,
            )
        )
        blocks.append(
            Figure(
                f"shape-{run}-{d.name}",
                (
                    with_spread(
                        d.against_velocity.centre,
                        d.against_velocity.mean,
                        d.against_velocity.spread,
                        "over velocity [rad/s]",
                        plots.BLUE,
                        "",
                    ),
                    with_spread(
                        d.against_load.centre,
                        d.against_load.mean,
                        d.against_load.spread,
                        "over torque [N m]",
                        plots.ORANGE,
                        "x2",
                    ),
                ),
                {
                    "xaxis": {"domain": [0, 0.47], "title": {"text": "velocity [rad/s]"}},
                    "xaxis2": {"domain": [0.53, 1], "title": {"text": "predicted torque [N m]"}, "anchor": "y"},
                    "yaxis": {"title": {"text": "residual [N m]"}},
                    "showlegend": False,
                },
                "A slope or step on the left is friction the model lacks; on the right, a gain or a load-dependent loss.",
                height=260,
            )
        )
    if not blocks:
        blocks.append(Paragraph("No held-out torque is stored with this result.", "faint"))
    return Section("residuals", "What the residuals still contain", tuple(blocks))


def with_spread(
    x: FloatArray, mean: FloatArray, spread: FloatArray, name: str, colour: str, axis: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": plots.short(x),
        "y": plots.short(mean),
        "name": name,
        "error_y": {"type": "data", "array": plots.short(spread), "thickness": 1, "width": 0},
        "line": {"color": colour},
        "marker": {"size": 4},
    } | ({"xaxis": axis} if axis else {})


def sensitivity_section(result: Result) -> Section:
    s = result.sensitivity
    rows = [
        (f"cut-off {item.get('cutoff_hz', float('nan')):.3g} Hz", item.get("largest_shift"), item.get("parameter", ""))
        for item in s.get("cutoff", ())
    ]
    rows += [
        (f"without {item.get('left_out', item.get('file', '?'))}", item.get("largest_shift"), item.get("parameter", ""))
        for item in s.get("leave_one_out", ())
    ]
    if not rows:
        return Section("sensitivity", "How the answer moves", (Paragraph("Not examined in this run.", "faint"),))
    table = Table(
        ("change", "largest shift [standard deviations]", "of"),
        tuple(rows),
        caption="How far the base estimates move when a choice is made differently. A few standard deviations are normal.",
    )
    return Section("sensitivity", "How the answer moves", (table,))


def reproduce_section(result: Result) -> Section:
    command = result.provenance.get("command", "")
    text = f"{command}" if command else "armid identify with the files, hashes and settings listed above."
    return Section("reproduce", "How to reproduce", (Paragraph(text),))
