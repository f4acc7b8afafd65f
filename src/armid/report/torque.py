"""Held-out torque: measured and predicted, in numbers and over time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armid.arrays import FloatArray
from armid.identification.residuals import BAND, inside_band, normalised_error, run_names
from armid.identification.result import Result
from armid.page import Figure, Paragraph, Section, Table
from armid.report import plots
from armid.robot.robot import JointKind

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
    sliding = result.described.joints[k % result.described.n_joints].kind is JointKind.PRISMATIC
    return ("N", "m/s") if sliding else ("N m", "rad/s")


def torque_section(result: Result) -> Section:
    lead = Paragraph(
        "Motion no part of which was used for any choice. Predicted by the physically consistent estimate; the band is "
        f"±{100 * BAND:.0f} % of the joint's largest torque."
    )
    return Section("torque", "Torque on held-out motion", (lead, *_error_table(result), *_torque_figures(result)))


def _error_table(result: Result) -> tuple[Table, ...]:
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
        rows.append(
            (
                joint.name,
                span,
                units(result, k)[0],
                plots.percent(normalised_error(residual, measured)),
                *(plots.percent(other.held_out.rmse / span if span else None) for other in (raw, nominal)),
                plots.percent(inside_band(residual, measured), 1),
            )
        )
    caption = "Root mean square error over the range (largest minus smallest) of the joint's torque on held-out motion."
    header = ("joint", "torque range", "unit", "consistent", "unconstrained", "nominal", "inside the band")
    return (Table(header, tuple(rows), caption=caption),)


def _torque_figures(result: Result) -> Iterator[Figure]:
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
            plots.axes("time [s]", f"torque [{units(result, k)[0]}]", title={"text": titled(result, name, run)}),
        )
