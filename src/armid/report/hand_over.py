"""The page about calibrated kinematics in the dynamics: held-out torque and parameters under every belief."""

from __future__ import annotations

import numpy as np

from armid.logs.encoders import ENCODERS_CORRECTED
from armid.page import Block, Cell, Figure, Paragraph, Report, Section, Table
from armid.report import plots
from armid.report.comparison import held_out
from armid.studies.hand_over import HandOver

_COLOURS = (plots.ORANGE, plots.BLUE, plots.GREEN)


def hand_over_report(handed: HandOver) -> Report:
    """What calibrated kinematics and the direction of gravity changed ([Kolyubin2017] fig. 7).

    Args:
        handed: identifications of the same recordings under every belief.
    """
    result = handed.result
    return Report(
        title=f"{result.described.name}: calibrated kinematics in the dynamics",
        subtitle=" · ".join(handed.names),
        verdict=result.verdict,
        reasons=result.reasons,
        sections=(_overview(handed), held_out(handed.names, handed.results), differences(handed), parameters(handed)),
    )


def _overview(handed: HandOver) -> Section:
    """Errors and gravity under every belief."""
    described = handed.results[0].described.gravity
    rows: list[tuple[Cell, ...]] = []
    for name, r in zip(handed.names, handed.results, strict=True):
        g = r.described.gravity
        tilt = np.degrees(np.arctan2(np.linalg.norm(np.cross(g, described)), g @ described))
        rows.append(
            (
                name,
                r.verdict,
                plots.percent(r.relative_error.get("held_out"), 3),
                len(r.estimate),
                r.condition_number,
                ", ".join(f"{round(float(x), 3) + 0.0:.3f}" for x in g),
                float(tilt),
            )
        )
    header = (
        "kinematics",
        "verdict",
        "held-out error",
        "parameters estimated",
        "condition number",
        "gravity in the base frame [m/s²]",
        "tilt [deg]",
    )
    before, after = (handed.results[k].relative_error.get("held_out", float("nan")) for k in (0, -1))
    gain = 1.0 - after / before
    text = (
        f"The error of torque on held-out motion falls by {100 * gain:.1f} %."
        if gain > 0.0
        else "The error of torque on held-out motion does not fall."
    )
    blocks: list[Block] = [Paragraph(text, "good" if gain > 0 else "bad"), Table(header, tuple(rows))]
    blocks += [Paragraph(said, "faint") for said in _encoder_sentences(handed)]
    return Section("overview", "What is known about the arm", tuple(blocks))


def _encoder_sentences(handed: HandOver) -> tuple[str, ...]:
    """What the calibration took off the recorded motion, once for all logs."""
    said = dict.fromkeys(note.message for note in handed.result.notes if note.code == ENCODERS_CORRECTED)
    return tuple(f"With calibrated kinematics the {text}." for text in said)


def differences(handed: HandOver) -> Section:
    """Relative difference of every parameter from nominal kinematics."""
    names = [c.name for c in handed.changes]
    bars = tuple(
        {
            "type": "bar",
            "name": handed.names[k],
            "x": names,
            "marker": {"color": _COLOURS[k]},
            "y": plots.short([100.0 * c.relative[k] for c in handed.changes]),
        }
        for k in range(1, len(handed.names))
    )
    layout = plots.axes("", "difference from nominal kinematics [%]", barmode="group")
    layout["xaxis"] = {"tickangle": 90, "tickfont": {"size": 10}}
    caption = (
        "Relative to the nominal estimate, or to its standard deviation where that is larger. Combinations are those of the "
        "nominal arm throughout."
    )
    return Section("differences", "What changed in the parameters", (Figure("changes", bars, layout, caption, 420),))


def parameters(handed: HandOver) -> Section:
    """Values with intervals, side by side."""
    header = ("parameter", "unit", *(title for name in handed.names for title in (name, "± 95 %")))
    rows: list[tuple[Cell, ...]] = [
        (
            c.name,
            plots.unit(c.unit),
            *(x for v, s in zip(c.values, c.standard_deviations, strict=True) for x in (v, 1.96 * s)),
        )
        for c in handed.changes
    ]
    return Section(
        "parameters", "Parameters", (Table(header, tuple(rows), caption="Base parameters of the nominal arm."),)
    )
