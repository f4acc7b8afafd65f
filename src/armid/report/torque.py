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
        f"{_held_out_motion(result)} 'Identified' is the physically consistent estimate, 'description' the "
        "model before identification. The residual has its own axis, with ±3 standard deviations of the training residual: where "
        "it leaves them for long, the model lacks something that this motion shows."
    )
    return Section("torque", "Torque on held-out motion", (lead, *_error_table(result), *_torque_figures(result)))


def _held_out_motion(result: Result) -> str:
    """What this motion was kept from, what it was used for, and how much of it is other motion at all."""
    text = (
        "No parameter was fitted to this motion, and no cut-off or family of imperfections chosen on it. Whether a fault counts "
        "as found it has helped to decide."
    )
    repeated = float("nan") if result.evidence is None else result.evidence.repeated
    if not repeated >= _NOTABLE_REPEAT:
        return text
    return f"{text} {100 * repeated:.0f} % of it repeats the training motion: that much is no test of other motion."


_NOTABLE_REPEAT = 0.005
"""Share of the held-out motion that repeats the training motion from which on it is said: a per cent when rounded."""


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
    caption = (
        "Root mean square error over the range (largest minus smallest) of the joint's torque on held-out motion; the band is "
        f"±{100 * BAND:.0f} % of the joint's largest torque."
    )
    header = ("joint", "torque range", "unit", "identified", "unconstrained", "description", "inside the band")
    return (Table(header, tuple(rows), caption=caption),)


def _torque_figures(result: Result) -> Iterator[Figure]:
    """Measured torque with both predictions; below, on its own axis, what is left of it."""
    for name, k, run, a in channels_of(result):
        t, measured, predicted = a["time"], a["measured"][:, k], a["consistent"][:, k]
        usual = _DEVIATIONS * result.joints[k].train.rmse
        data = [plots.line(t, measured, "measured", plots.BLUE)]
        if "nominal" in a:
            data.append(plots.line(t, a["nominal"][:, k], "description", plots.GREY, dash="dot", width=1.1))
        data.append(plots.line(t, predicted, "identified", plots.ORANGE, dash="dash"))
        data.append(plots.line(t, measured - predicted, "residual", plots.GREEN, axis="y2", width=1.1))
        if usual > 0.0:
            data += [
                plots.line(t[[0, -1]], np.full(2, sign * usual), "±3 deviations", plots.PINK, dash="dash", axis="y2")
                for sign in (1.0, -1.0)
            ]
        unit = units(result, k)[0]
        layout = {
            "title": {"text": titled(result, name, run)},
            "xaxis": {"title": {"text": "time [s]"}, "anchor": "y2"},
            "yaxis": {"title": {"text": f"torque [{unit}]"}, "domain": [0.4, 1.0]},
            "yaxis2": {"title": {"text": f"residual [{unit}]"}, "domain": [0.0, 0.32]},
        }
        yield Figure(f"torque-{run}-{k}", tuple(data), layout, height=360)


_DEVIATIONS = 3.0
"""Of the training residual, drawn around the held-out one: a healthy residual leaves that band three times in a thousand."""
