"""The page of the 2 x 2 study: spread, error and held-out torque of the four ways to identify."""

from __future__ import annotations

from math import degrees
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.page import Block, Cell, Figure, Paragraph, Report, Section, Table
from armid.report import plots
from armid.studies.kinematics.comparison import ESSENTIAL, Study
from armid.studies.kinematics.estimates import Case
from armid.studies.kinematics.misbuilt import PUBLISHED_ARM

_COLOURS = (plots.ORANGE, plots.YELLOW, plots.SKY, plots.BLUE)
_SYMBOLS = ("circle-open", "circle", "square-open", "square")
_PATTERNS = ("/", "", "x", "")
_LEGEND_AT = {"orientation": "h", "x": 0.0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}

_LEGEND = "CAD: kinematics as described; ID: calibrated. RP: trapezoidal motion through random way-points; OT: optimised motion."


def study_report(study: Study) -> Report:
    """What calibrated kinematics and an optimised motion do to the dynamic parameters, [Kolyubin2017] figs. 6 and 7.

    Args:
        study: its outcome.
    """
    return Report(
        title=f"{study.robot.name}: calibrated kinematics x optimised motion",
        subtitle=f"{len(study.cases[0].all)} identifications in each of four cases · {study.real.origin}",
        verdict=str(study.verdict),
        reasons=study.reasons,
        sections=(
            _overview(study),
            _spread(study),
            _error_section(study),
            _changes(study),
            _held_out(study),
            _kinematics(study),
            _motions(study),
            _parameters(study),
            _provenance(study),
        ),
    )


def _median(study: Study, values: FloatArray) -> float:
    """Of the essential parameters, in parts of the true value."""
    return float(np.median(study.relative(values)))


def _overview(study: Study) -> Section:
    """The four cases in four lines."""
    rows: list[tuple[Cell, ...]] = [
        (
            case.label,
            case.kinematics,
            case.motion,
            plots.percent(_median(study, case.spread), 3),
            plots.percent(_median(study, case.repeatability), 3),
            plots.percent(_median(study, case.error(study.truth)), 3),
            plots.percent(_median(study, case.predicted), 3),
            plots.percent(float(case.relative_error.mean()), 3),
        )
        for case in study.cases
    ]
    header = (
        "case",
        "kinematics",
        "motion",
        "spread",
        "of which noise",
        "error",
        "deviation stated",
        "held-out torque error",
    )
    caption = (
        "Medians over the essential parameters, relative to the true value. Spread: standard deviation over all "
        "identifications, each from another recording, several recordings from each of several motions. Of which noise: the "
        "same among recordings of one motion. Error: root mean square difference from the truth. Deviation stated: what a "
        "single identification says of itself, correlated residuals accounted for. " + _LEGEND
    )
    table = Table(header, tuple(rows), (), caption)
    return Section("overview", "Four ways to identify one arm", (*_sentences(study), table, _medians(study)))


def _medians(study: Study) -> Figure:
    """The same four lines as a picture."""
    bars = tuple(
        {
            "type": "bar",
            "name": f"{case.label}: {case.kinematics}, {case.motion}",
            "x": ["spread", "error", "deviation stated", "held-out torque error"],
            "y": plots.short(
                [
                    *(100.0 * _median(study, v) for v in (case.spread, case.error(study.truth), case.predicted)),
                    100.0 * float(case.relative_error.mean()),
                ]
            ),
            "marker": {"color": _COLOURS[k], "pattern": {"shape": _PATTERNS[k]}},
        }
        for k, case in enumerate(study.cases)
    )
    layout = plots.axes("", "median [%]", barmode="group", bargap=0.3)
    return Figure("medians", bars, layout | {"legend": _LEGEND_AT}, "", 320)


def _sentences(study: Study) -> tuple[Block, ...]:
    """What came out, in words."""
    spreads = [_median(study, case.spread) for case in study.cases]
    errors = [_median(study, case.error(study.truth)) for case in study.cases]
    best = [study.cases[int(np.argmin(values))].label for values in (spreads, errors)]
    good = best == [study.cases[3].label] * 2
    said = (
        "Calibrated kinematics with an optimised motion has the smallest spread and the smallest error"
        if good
        else f"Smallest spread: {best[0]}; smallest error: {best[1]}"
    )
    return (
        Paragraph(
            f"{said}: against nominal kinematics and random way-points the spread is {spreads[0] / spreads[3]:.1f} times "
            f"smaller and the error {errors[0] / errors[3]:.1f} times.",
            "good" if good else "bad",
        ),
        Paragraph(
            f"At calibrated kinematics the optimised motion divides the spread by {spreads[2] / spreads[3]:.1f}; with the "
            f"optimised motion calibration divides the error by {errors[1] / errors[3]:.1f}."
        ),
    )


def _essential_names(study: Study) -> list[str]:
    return [name for name, on in zip(study.base.names, study.essential, strict=True) if on]


def _named_axis(names: list[str]) -> dict[str, Any]:
    """One place per parameter, with room for four marks."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "tickangle": 90,
        "tickfont": {"size": 10},
        "range": [-0.6, len(names) - 0.4],
        "zeroline": False,
    }


def _spread(study: Study) -> Section:
    """Relative standard deviations, bars."""
    names = _essential_names(study)
    marks = tuple(
        {
            "type": "scatter",
            "mode": "markers",
            "name": case.label,
            "x": _beside(len(names), k),
            "y": plots.short(100.0 * study.relative(case.spread)),
            "marker": {"color": _COLOURS[k], "symbol": _SYMBOLS[k], "size": 8},
        }
        for k, case in enumerate(study.cases)
    )
    layout = {
        "xaxis": _named_axis(names),
        "legend": _LEGEND_AT,
        "yaxis": {"title": {"text": "standard deviation [% of the true value]"}, "type": "log", "dtick": 1},
    }
    caption = (
        f"Standard deviation over {len(study.cases[0].all)} identifications, logarithmic. Shown are the {len(names)} of "
        f"{len(study.base)} base parameters that make up at least {100 * ESSENTIAL:g} % of some channel's torque in the "
        "held-out motion. " + _LEGEND
    )
    return Section("spread", "Spread of the parameters", (Figure("spread", marks, layout, caption, 460),))


def _beside(count: int, k: int) -> list[float | None]:
    """Places of the k-th case's marks, next to the other cases'."""
    return plots.short([i + 0.18 * (k - 1.5) for i in range(count)])


def _error_section(study: Study) -> Section:
    """Mean estimates with their spread around the truth, marks."""
    names = _essential_names(study)
    marks = tuple(_deviations(study, case, k) for k, case in enumerate(study.cases))
    reach = [np.abs(np.array(m["y"])) + np.array(m["error_y"]["array"]) for m in marks]
    largest = float(np.percentile(np.concatenate(reach), _SHOWN))
    beyond = sorted({names[i] for values in reach for i in np.flatnonzero(values > largest)}, key=names.index)
    layout = {
        "xaxis": _named_axis(names),
        "legend": _LEGEND_AT,
        "yaxis": {"title": {"text": "difference from the truth [%]"}, "range": [-1.05 * largest, 1.05 * largest]},
    }
    caption = "Mean estimates minus the true value, in parts of it, with their standard deviation. " + (
        f"Cut off at {largest:.2g} %: {', '.join(beyond)} go beyond; the table has every number." if beyond else ""
    )
    return Section("error", "Estimates against the truth", (Figure("error", marks, layout, caption, 460),))


_SHOWN = 97.0
"""Per cent of all marks that the axis must hold: one parameter near zero would otherwise flatten all others."""


def _deviations(study: Study, case: Case, k: int) -> dict[str, Any]:
    """One case's marks, side by side with the others'."""
    n = int(study.essential.sum())
    bias = 100.0 * study.relative(case.mean - study.truth)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": case.label,
        "x": _beside(n, k),
        "y": plots.short(bias),
        "marker": {"color": _COLOURS[k], "symbol": _SYMBOLS[k], "size": 6},
        "error_y": {
            "type": "data",
            "array": plots.short(100.0 * study.relative(case.spread)),
            "color": _COLOURS[k],
            "thickness": 1.2,
            "width": 2,
        },
    }


def _changes(study: Study) -> Section:
    """Relative difference of the estimates that calibration makes, [Kolyubin2017] fig. 7."""
    names = _essential_names(study)
    bars = tuple(
        {
            "type": "bar",
            "name": f"{study.cases[i].motion} ({label})",
            "x": list(range(len(names))),
            "y": plots.short(100.0 * study.changes(i)),
            "marker": {"color": colour, "pattern": {"shape": shape}},
        }
        for i, label, colour, shape in ((0, "RP", plots.ORANGE, "/"), (1, "OT", plots.BLUE, ""))
    )
    values = np.abs(np.concatenate([study.changes(i) for i in (0, 1)])) * 100.0
    largest = float(np.percentile(values, _SHOWN))
    layout = {
        "barmode": "group",
        "bargap": 0.25,
        "xaxis": _named_axis(names),
        "legend": _LEGEND_AT,
        "yaxis": {"title": {"text": "calibrated minus nominal [%]"}, "range": [-1.1 * largest, 1.1 * largest]},
    }
    medians = " and ".join(
        f"{plots.percent(float(np.median(np.abs(study.changes(i)))), 3)} with the {study.cases[i].motion}"
        for i in (0, 1)
    )
    caption = (
        f"Mean estimate with calibrated kinematics minus that with nominal kinematics, relative to the latter: median {medians}, "
        f"largest {values.max():.3g} %; the axis holds {_SHOWN:g} % of the bars."
    )
    return Section("changes", "What calibration changed", (Figure("changes", bars, layout, caption, 420),))


def _held_out(study: Study) -> Section:
    """Torque of a motion nothing was identified from."""
    channels = list(study.cases[0].rmse)
    rms = dict(zip(channels, np.sqrt((study.torque**2).mean(axis=0)), strict=True))
    rows: list[tuple[Cell, ...]] = [
        (name, float(rms[name]), *(case.rmse[name] for case in study.cases)) for name in channels
    ]
    rows.append(("all, relative", None, *(plots.percent(float(c.relative_error.mean()), 3) for c in study.cases)))
    table = Table(
        ("channel", "torque, rms", *(f"{case.label} [N m]" for case in study.cases)),
        tuple(rows),
        (),
        "Root mean square error of the predicted torque, mean over the identifications; `:motor` is the motor's side.",
    )
    bars = tuple(
        {
            "type": "bar",
            "name": case.label,
            "x": channels,
            "y": plots.short([100.0 * case.rmse[c] / rms[c] for c in channels]),
            "marker": {"color": _COLOURS[k], "pattern": {"shape": _PATTERNS[k]}},
        }
        for k, case in enumerate(study.cases)
    )
    layout = plots.axes("", "error [% of the torque]", barmode="group", bargap=0.25)
    layout["legend"] = _LEGEND_AT
    return Section(
        "held-out", "Torque on held-out motion", (table, Figure("held-out", bars, layout, "", 320), _trace(study))
    )


def _trace(study: Study) -> Figure:
    """Measured and computed torque of the last joint but one, and what is left of it, [Kolyubin2017] fig. 8."""
    j = max(study.robot.n_joints - 2, 0)
    first = next(iter(study.held_out.segments))
    stop = first.stop - first.start
    t = np.arange(stop) / first.rate
    measured, best = study.torque[:stop, j], study.cases[3].residuals[:stop, j]
    lines = (
        plots.line(t, measured, "measured", plots.GREY, width=2.2),
        plots.line(t, measured - best, f"computed, {study.cases[3].label}", plots.BLUE, dash="dash"),
        plots.line(t, study.cases[0].residuals[:stop, j], f"error, {study.cases[0].label}", plots.ORANGE, axis="y2"),
        plots.line(t, best, f"error, {study.cases[3].label}", plots.GREEN, axis="y2"),
    )
    name = study.robot.joint_names[j]
    layout = {
        "xaxis": {"title": {"text": "time [s]"}, "anchor": "y2"},
        "legend": _LEGEND_AT,
        "yaxis": {"title": {"text": f"{name} [N m]"}, "domain": [0.42, 1.0]},
        "yaxis2": {"title": {"text": "error [N m]"}, "domain": [0.0, 0.34]},
    }
    caption = f"{name}, without payload, low-passed at {study.settings.cutoff:g} Hz: a joint that carries little."
    return Figure("trace", lines, layout, caption, 400)


_PUBLISHED_ERRORS = (5.9019, 9.6806, 0.7965, 1.7592)
"""[mm] mean and largest position error before and after, [Kolyubin2017] table 3."""


def _kinematics(study: Study) -> Section:
    """How good the calibration is at poses it has not seen."""
    k = study.kinematics
    rows: list[tuple[Cell, ...]] = [
        (name, 1e3 * p.mean, 1e3 * p.max, degrees(o.mean), degrees(o.max))
        for name, p, o in (
            ("nominal", k.position_before, k.orientation_before),
            ("calibrated", k.position_after, k.orientation_after),
        )
    ]
    caption = (
        f"At {k.position_after.count} poses that were not measured, against the real arm; frames of tracker and target fitted in "
        f"both lines. {len(k.poses)} poses were "
        f"measured, condition number {k.condition_number:.3g} (random ones {k.initial_condition_number:.3g}), "
        f"noise {1e6 * study.settings.position_noise:g} um and {1e6 * study.settings.orientation_noise:g} urad; "
        f"{len(k.identified)} parameters fitted, verdict {k.verdict}."
    )
    if study.robot.source.path == f"catalogue:{PUBLISHED_ARM}" and study.settings.correction is None:
        a, b, d, e = _PUBLISHED_ERRORS
        caption += (
            f" Published for the real arm: {a:.2f} mm mean and {b:.2f} mm largest before, {d:.2f} and {e:.2f} mm after; that arm "
            "also had compliant joints and encoders, which this simulated one has not."
        )
    header = ("kinematics", "position, mean [mm]", "largest [mm]", "orientation, mean [deg]", "largest [deg]")
    return Section("kinematics", "Kinematics", (Table(header, tuple(rows), (), caption),))


def _motions(study: Study) -> Section:
    """What was commanded."""
    rows: list[tuple[Cell, ...]] = [
        (m.name, m.condition_number, m.trajectory.duration, m.remark) for kind in study.motions for m in kind
    ]
    caption = (
        "Condition number of links and joint friction, 2-norm, SI units. Both kinds keep the same limits; only the "
        "acceleration of way-points jumps, whatever the limit of the jerk."
    )
    return Section(
        "motions", "Motions", (Table(("motion", "condition number", "length [s]", "how"), tuple(rows), (), caption),)
    )


def _parameters(study: Study) -> Section:
    """Every number."""
    header = ("parameter", "unit", "truth", *(title for case in study.cases for title in (case.label, "± s")))
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            plots.unit(study.units[i]),
            float(study.truth[i]),
            *(x for case in study.cases for x in (float(case.mean[i]), float(case.spread[i]))),
        )
        for i, name in enumerate(study.base.names)
    ]
    tones = tuple("" if on else "faint" for on in study.essential)
    caption = (
        "Base parameters of the arm as described: mean and standard deviation over the identifications. Faint: not essential. "
        "Combinations of the parameters beside those named are left out of the names."
    )
    return Section("parameters", "Parameters", (Table(header, tuple(rows), tones, caption, folded=True),))


def _provenance(study: Study) -> Section:
    """How to get the same numbers."""
    s = study.settings
    text = (
        f"Simulated with MuJoCo: inertias and friction {100 * s.variation:g} % from their description, torque measured on "
        f"side {s.torques.value!r}, low-pass at {s.cutoff:g} Hz, seed {s.seed}. The controller and every identification know "
        "the description only."
    )
    return Section("provenance", "How it was made", (Paragraph(text), Paragraph(command(study), "code")))


def command(study: Study) -> str:
    """The command line that gives the same page."""
    s = study.settings
    words = ["armid", "study", study.robot.source.path.removeprefix("catalogue:") or study.robot.name]
    words += ["--motions", str(s.motions), "--repetitions", str(s.repetitions), "--motion-seconds", f"{s.seconds:g}"]
    words += ["--starts", str(s.starts), "--poses", str(s.poses), "--torques", s.torques.value, "--seed", str(s.seed)]
    if s.correction is not None:
        words += ["--correction", str(s.correction)]
    for path in s.trajectories:
        words += ["--trajectory", str(path)]
    return " ".join(words)
