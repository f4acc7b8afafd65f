"""Held-out torque: measured and predicted, in numbers and over time, and what friction looks like."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.result import Result
from armid.report import plots
from armid.report.section import Block, Figure, Paragraph, Section, Table
from armid.robot.robot import JointKind
from armid.validation.residuals import BAND, inside_band, normalised_error, run_names

Channel = tuple[str, int, str, dict[str, FloatArray]]
"""Name of a channel, its index, name of a run, the run's arrays."""


def channels_of(result: Result) -> Iterator[Channel]:
    """Everything in the traces, run by run and joint by joint."""
    for run in run_names(result.traces):
        arrays = {key.split(".", 1)[1]: value for key, value in result.traces.items() if key.startswith(f"{run}.")}
        for k, joint in enumerate(result.joints):
            yield joint.name, k, run, arrays


def titled(result: Result, name: str, run: str) -> str:
    """The run is named only where there are several."""
    return name if len(run_names(result.traces)) < 2 else f"{name} ({run})"


def units(result: Result, k: int) -> tuple[str, str]:
    """Of torque and of velocity of a channel."""
    sliding = result.robot.joints[k % result.robot.n_joints].kind is JointKind.PRISMATIC
    return ("N", "m/s") if sliding else ("N m", "rad/s")


def torque_section(result: Result) -> Section:
    lead = Paragraph(
        "Motion no part of which was used for any choice. Predicted by the physically consistent estimate; the band is "
        f"±{100 * BAND:.0f} % of the joint's largest torque."
    )
    return Section("torque", "Torque on held-out motion", (lead, *error_table(result), *torque_figures(result)))


def error_table(result: Result) -> tuple[Table, ...]:
    """Errors normalised by the range of the torque, of three models, and how often the residual stays in the band."""
    rows = []
    for k, (joint, raw, nominal) in enumerate(
        zip(result.joints, result.joints_raw, result.joints_nominal, strict=True)
    ):
        arrays = [a for _, index, _, a in channels_of(result) if index == k]
        if not arrays:
            return ()
        measured = np.concatenate([a["measured"][:, k] for a in arrays])
        residual = measured - np.concatenate([a["consistent"][:, k] for a in arrays])
        span = float(np.ptp(measured))
        rows.append((
            joint.name, span, units(result, k)[0], plots.percent(normalised_error(residual, measured)),
            *(plots.percent(other.held_out.rmse / span if span else None) for other in (raw, nominal)),
            plots.percent(inside_band(residual, measured), 1),
        ))  # fmt: skip
    caption = "Root mean square error over the range (largest minus smallest) of the joint's torque on held-out motion."
    header = ("joint", "torque range", "unit", "consistent", "unconstrained", "nominal", "inside the band")
    return (Table(header, tuple(rows), caption=caption),)


def torque_figures(result: Result) -> Iterator[Figure]:
    for name, k, run, a in channels_of(result):
        t, measured, predicted = a["time"], a["measured"][:, k], a["consistent"][:, k]
        half = BAND * float(np.abs(measured).max())
        yield Figure(
            f"torque-{run}-{k}",
            (
                plots.band(t, measured - half, measured + half, f"±{100 * BAND:.0f} %", "rgba(128,128,128,0.28)"),
                plots.line(t, measured, "measured", plots.BLUE),
                plots.line(t, predicted, "predicted", plots.ORANGE, dash="dash"),
                plots.line(t, measured - predicted, "residual", plots.GREEN, dash="dot", width=1.2),
            ),
            plots.axes(
                "time [s]", f"torque [{units(result, k)[0]}]", title={"text": titled(result, name, run)}
            ),
        )  # fmt: skip


def friction_section(result: Result) -> Section:
    """Measured torque minus the predicted rigid-body and rotor part, over velocity, with the identified curve."""
    blocks: list[Block] = [
        friction_figure(result, channel)
        for channel in channels_of(result)
        if "inputs" in channel[3] and channel[1] < result.robot.n_joints and has_friction(result, channel[1])
    ]
    if not blocks:
        return Section(
            "friction", "Friction", (Paragraph("Nothing to show: the model contains no friction.", "faint"),)
        )
    lead = Paragraph(
        "Measured torque minus everything predicted but friction. Points away from the line by more than their own scatter "
        "show a shape the model lacks."
    )
    return Section("friction", "Friction", (lead, *blocks))


def has_friction(result: Result, k: int) -> bool:
    return any(f"joint{k + 1}.{quantity}" in result.consistent.names for quantity in ("viscous", "coulomb"))


def friction_figure(result: Result, channel: Channel) -> Figure:
    name, k, run, a = channel
    n = result.robot.n_joints
    values = dict(zip(result.consistent.names, result.consistent.values, strict=True))
    viscous, coulomb, offset = (values.get(f"joint{k + 1}.{q}", 0.0) for q in ("viscous", "coulomb", "offset"))
    qd = a["inputs"][:, n + k]
    # The rows carry the direction of friction as the fit saw it, low-passed like the torque.
    direction = a["inputs"][:, 3 * n + k] if a["inputs"].shape[1] >= 4 * n else np.sign(qd)
    rest = a["measured"][:, k] - a["consistent"][:, k] + viscous * qd + coulomb * direction + offset
    x = np.unique(np.concatenate([np.linspace(qd.min(), qd.max(), 60), [-1e-9, 1e-9]]))
    curve = viscous * x + coulomb * np.sign(x) + offset
    torque_unit, speed_unit = units(result, k)
    return Figure(
        f"friction-{run}-{k}",
        (
            plots.points(qd, rest, "measured", plots.SKY),
            plots.line(x, curve, "identified", plots.ORANGE, width=2.2),
        ),
        plots.axes(
            f"velocity [{speed_unit}]", f"friction [{torque_unit}]", title={"text": titled(result, name, run)}
        ),
        height=270,
        half=True,
    )  # fmt: skip
