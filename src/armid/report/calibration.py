"""The page about a kinematic calibration: verdict, errors before and after, where they are, what was found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.calibrate import Calibration
from armid.calibration.compensate import Compensation
from armid.calibration.contract import SHOWN, error_table_of, tip_table
from armid.calibration.enough import PoseCount
from armid.calibration.found import strong_correlations
from armid.calibration.identifiable import ParameterStatus
from armid.calibration.stored import StoredCalibration
from armid.calibration.tool_error import ErrorTable, statistics
from armid.kinematics.calibrated import frame_matrix
from armid.kinematics.rotations import inverse
from armid.notes import Note, Severity
from armid.page import Block, Cell, Figure, Paragraph, Report, Section, Table
from armid.report.plots import BLUE, GREEN, GREY, ORANGE, axes, line, points, short

_MM = 1e3
"""Metres to millimetres and radians to milliradians."""
_BINS = 40
_PARAMETER_COLUMNS = ("parameter", "correction", "standard deviation", "tolerance", "unit")
_CORRECTIONS = "Corrections to nominal values."
_COLOURS = (BLUE, ORANGE, GREEN, GREY)
_MOST_ON_MAP = 2000
"""Points of the map; more only hide each other."""


def calibration_report(calibration: Calibration) -> Report:
    """Everything the page of a calibration shows."""
    sections = [_error_section(calibration), _map_section(calibration), _parameter_section(calibration)]
    if calibration.enough:
        sections.append(_enough_section(calibration.enough))
    sections.append(_notes_section(calibration))
    return Report(
        title=f"{calibration.nominal.name}: kinematic calibration",
        subtitle=f"{len(np.unique(calibration.measurements.group))} configurations, {len(calibration.identified)} parameters",
        verdict=str(calibration.verdict),
        reasons=tuple(dict.fromkeys(calibration.reasons or (check.message for check in calibration.checks))),
        sections=tuple(sections),
    )


def stored_report(calibration: StoredCalibration) -> Report:
    """The page of a calibration read from its folder: what does not need the measurements."""
    rows = tuple(
        (p.name, *_scaled(p.value, p.standard_deviation, p.tolerance, p.unit))
        for p in calibration.parameters
        if p.status is ParameterStatus.IDENTIFIED
    )
    return Report(
        title=f"{calibration.robot.name}: kinematic calibration",
        subtitle=f"{len(calibration.identified)} parameters, stored in {calibration.folder}",
        verdict=str(calibration.verdict),
        reasons=calibration.reasons,
        sections=(
            Section(
                "errors", "Errors before and after", (error_table_of(calibration.errors), *_stored_bars(calibration))
            ),
            Section("parameters", "What was found", (Table(_PARAMETER_COLUMNS, rows, caption=_CORRECTIONS),)),
            Section("notes", "Notes", tuple(_note_paragraphs(calibration.further_notes))),
        ),
    )


def _stored_bars(calibration: StoredCalibration) -> list[Block]:
    """Mean errors before and after, side by side."""
    out: list[Block] = []
    for kind, unit in (("position", "mm"), ("orientation", "mrad")):
        named = {name: calibration.errors.get(f"{kind}_error_{name}") for name in SHOWN}
        found = {name: value for name, value in named.items() if value is not None}
        if found["held_out"].count:
            bar = {
                "type": "bar",
                "x": [name.replace("_", " ") for name in found],
                "y": [_MM * value.mean for value in found.values()],
                "marker": {"color": BLUE},
            }
            layout = axes("", f"mean {kind} error [{unit}]")
            out.append(Figure(f"mean-{kind}", (bar,), layout, f"Mean {kind} errors.", half=True))
    return out


def compensation_report(compensation: Compensation) -> Report:
    """The page of compensated targets: how far joints had to move, and what is left."""
    change = np.abs(compensation.q - compensation.wanted.q)
    figures = tuple(
        Figure(
            f"{name}-error",
            (points(np.arange(1.0, len(errors) + 1.0), _MM * errors, name, BLUE),),
            axes("target", f"{name} error left [{unit}]"),
            f"What is left of the {name} of each target.",
            half=True,
        )
        for name, unit, errors in (
            ("position", "mm", compensation.found.position_error),
            ("orientation", "mrad", compensation.found.orientation_error),
        )
    )
    moved = tuple(
        points(np.arange(1.0, len(change) + 1.0), _MM * change[:, k], joint, colour)
        for k, (joint, colour) in enumerate(zip(compensation.robot.joint_names, cycle(_COLOURS), strict=False))
    )
    changes = Figure("change", moved, axes("target", "change [mrad, mm]"), "How far every joint is moved.")
    return Report(
        title=f"{compensation.robot.name}: compensated targets",
        subtitle=f"{int(compensation.usable.sum())} of {len(compensation.q)} can be used",
        verdict=str(compensation.verdict),
        reasons=compensation.reasons,
        sections=(Section("targets", "Targets", (*compensation._tables(), changes, *figures)),),
    )


def _error_section(calibration: Calibration) -> Section:
    """Numbers and histograms, held out first."""
    held, blocked = calibration.held_out, calibration.held_out_blocked
    named = (
        ("held out, nominal links", held.before),
        ("held out, calibrated", held.after),
        *(() if blocked is None else (("held out in blocks, calibrated", blocked.after),)),
        ("held out, what a URDF can hold", calibration.held_out_geometric.after),
        ("fitted, nominal links", calibration.errors_before),
        ("fitted, calibrated", calibration.errors_after),
    )
    rows: list[tuple[Cell, ...]] = []
    for label, table in named:
        for kind, unit, errors in (("position", "mm", table.position), ("orientation", "mrad", table.orientation)):
            if len(errors):
                s = statistics(errors)
                rows.append((label, kind, *(_MM * x for x in (s.mean, s.rms, s.p95, s.max)), unit))
    blocks: list[Block] = [
        Paragraph(f"Held out: {held.told}."),
        Table(("", "", "mean", "rms", "p95", "max", "unit"), tuple(rows)),
        tip_table(calibration.tip),
    ]
    blocks += _histograms(held.before, held.after)
    return Section("errors", "Errors before and after", tuple(blocks))


def _histograms(before: ErrorTable, after: ErrorTable) -> list[Block]:
    """Distributions of held-out errors, before and after, on common bins."""
    out: list[Block] = []
    for kind, unit, a, b in (
        ("position", "mm", before.position, after.position),
        ("orientation", "mrad", before.orientation, after.orientation),
    ):
        if len(a):
            edges = np.linspace(0.0, _MM * max(float(a.max()), float(b.max())), _BINS + 1)
            bars = [
                {
                    "type": "bar",
                    "x": short(edges[:-1] + np.diff(edges) / 2),
                    "y": np.histogram(_MM * x, edges)[0].tolist(),
                    "name": name,
                    "marker": {"color": colour},
                    "opacity": 0.6,
                    "width": float(edges[1]),
                }
                for x, name, colour in ((a, "nominal links", GREY), (b, "calibrated", BLUE))
            ]
            layout = axes(f"{kind} error [{unit}]", "measurements", barmode="overlay")
            out.append(Figure(f"histogram-{kind}", tuple(bars), layout, f"Held-out {kind} errors.", half=True))
    return out


def _map_section(calibration: Calibration) -> Section:
    """Where in the workspace the error is left, and whether it follows temperature or time."""
    blocks: list[Block] = []
    places, errors = _mapped_errors(calibration)
    if len(places):
        every = max(1, len(places) // _MOST_ON_MAP)
        cloud = {
            "type": "scatter3d",
            "mode": "markers",
            "x": short(places[::every, 0], 4),
            "y": short(places[::every, 1], 4),
            "z": short(places[::every, 2], 4),
            "marker": {
                "size": 3,
                "color": short(_MM * errors[::every], 3),
                "colorscale": "Viridis",
                "cmin": 0.0,
                "cmax": float(_MM * np.quantile(errors, 0.98)),
                "showscale": True,
                "colorbar": {"title": {"text": "mm"}},
            },
        }
        blocks.append(
            Figure(
                "error-map",
                (cloud,),
                {"scene": {"aspectmode": "data"}},
                "Position error left after the fit; measured places in the base frame [m].",
                480,
            )
        )
    after = calibration.errors_after
    for name, values in calibration.measurements.conditions.items():
        if len(after.position):
            cloud = points(values[after.position_rows], _MM * after.position, "after", BLUE)
            blocks.append(
                Figure(f"trend-{name}", (cloud,), axes(name, "position error [mm]"), f"Against {name}.", half=True)
            )
    blocks += _against_joints(calibration)
    return Section("map", "Where errors are left", tuple(blocks))


def _against_joints(calibration: Calibration) -> list[Block]:
    """Errors left against the row and every joint, and the joint ranges that were covered."""
    after, q = calibration.errors_after, calibration.measurements.q
    errors, rows = after.main
    unit = "mm" if len(after.position) else "mrad"
    every = slice(None, None, max(1, len(errors) // _MOST_ON_MAP))
    ways = {"row": np.arange(len(q), dtype=np.float64)}
    ways |= {f"{name} [rad or m]": q[:, k] for k, name in enumerate(calibration.nominal.joint_names)}
    top, beyond = _most_of(_MM * errors)
    told = f" {beyond} beyond the upper edge." if beyond else ""
    out: list[Block] = [
        Figure(
            f"error-against-{number}",
            (points(values[rows][every], _MM * errors[every], "after", BLUE),),
            axes(name, f"error [{unit}]", yaxis={"title": {"text": f"error [{unit}]"}, "range": [0.0, top]}),
            f"Errors left against {name}.{told}",
            half=True,
        )
        for number, (name, values) in enumerate(ways.items())
    ]
    covered = tuple(
        (name, float(x.min()), float(x.max()), 100.0 * calibration.patterns.get(name, 0.0))
        for name, x in zip(calibration.nominal.joint_names, q.T, strict=True)
    )
    head = ("joint", "from", "to", "residuals that follow it [%]")
    out.append(Table(head, covered, caption="Joint ranges covered [rad or m]; beyond them nothing was measured."))
    return out


_FAR_ABOVE = 2.0
"""Times the 98th percentile from which on single errors leave a plot: one bad row would flatten all others."""


def _most_of(errors: FloatArray) -> tuple[float, int]:
    """Upper edge of a plot of errors, and how many lie beyond it."""
    if not len(errors):
        return 1.0, 0
    edge = _FAR_ABOVE * float(np.quantile(errors, 0.98))
    beyond = int(np.count_nonzero(errors > edge))
    return (edge, beyond) if beyond and edge > 0.0 else (1.05 * max(float(errors.max()), 1e-9), 0)


def _mapped_errors(calibration: Calibration) -> tuple[FloatArray, FloatArray]:
    """Measured places in the base frame [n, 3] and position errors left there [n]."""
    fit = calibration.fit
    places, errors = [np.zeros((0, 3))], [np.zeros(0)]
    for residual in fit.after.residuals:
        o = residual.observations
        seen = o.in_fixed_frame()[0]
        if seen is not None:
            back = inverse(frame_matrix(fit.model.setups[o.setup], fit.after.values))
            places.append(seen @ back[:3, :3].T + back[:3, 3])
            errors.append(np.linalg.norm(residual.r[:3], axis=0))
    return np.concatenate(places), np.concatenate(errors)


def _parameter_section(calibration: Calibration) -> Section:
    """What was found, with its uncertainty; what was not, and why."""
    fit = calibration.fit
    rows = tuple(
        (p.name, *_scaled(p.value, p.standard_deviation, p.tolerance, p.unit), str(p.status))
        for p in calibration.parameters
    )
    held = [
        Paragraph(f"{words}: {', '.join(names)}.", "faint")
        for words, status in (
            ("Below the noise, held at nominal", ParameterStatus.WEAK),
            ("Redundant, held at nominal", ParameterStatus.REDUNDANT),
        )
        if (names := calibration.with_status(status))
    ]
    table = Table((*_PARAMETER_COLUMNS, "status"), rows, caption=_CORRECTIONS)
    pairs = tuple((pair.a, pair.b, pair.correlation) for pair in strong_correlations(fit))
    related = [Table(("parameter", "and", "correlation"), pairs, caption="Hard to tell apart.")] if pairs else []
    return Section("parameters", "What was found", (table, *related, *held))


def _scaled(value: float, sigma: float, tolerance: float, unit: str) -> tuple[Cell, ...]:
    """Metres as millimetres, radians as milliradians; no deviation where nothing was fitted."""
    name, factor = {"m": ("mm", _MM), "rad": ("mrad", _MM)}.get(unit, (unit, 1.0))
    return factor * value, factor * sigma if np.isfinite(sigma) else None, factor * tolerance, name


def _enough_section(enough: Sequence[PoseCount]) -> Section:
    """Error against the number of configurations."""
    n = np.array([row.configurations for row in enough])
    curves = [
        line(n, _MM * np.array(errors), name, colour, dash=dash)
        for errors, name, colour, dash in (
            ([row.observed for row in enough], "observed on the rest", ORANGE, "solid"),
            ([row.predicted_total for row in enough], "predicted, with the noise of the check", BLUE, "dash"),
            ([row.predicted for row in enough], "predicted error of the arm alone", GREEN, "dot"),
        )
    ]
    figure = Figure(
        "enough",
        tuple(curves),
        axes("configurations", "mean error [mm; mrad where only orientation was measured]"),
        "More configurations stop helping where the curves flatten.",
    )
    return Section("enough", "How many configurations are enough", (figure,))


def _note_paragraphs(notes: Sequence[Note]) -> list[Block]:
    """Notes, those that matter most marked."""
    return [
        Paragraph(f"{note.code}: {note.message}", "plain" if note.severity is Severity.INFO else "bad")
        for note in notes
    ]


def _notes_section(calibration: Calibration) -> Section:
    """Everything else a reader must know."""
    blocks = _note_paragraphs(calibration.further_notes)
    noise = ", ".join(
        f"{setup} {part} {_MM * value:.4g} {'mm' if part != 'orientation' else 'mrad'}"
        for (setup, part), value in calibration.fit.after.noise.model.items()
    )
    blocks.append(Paragraph(f"Noise beyond the instrument's own, as estimated: {noise}."))
    return Section("notes", "Notes", tuple(blocks))
