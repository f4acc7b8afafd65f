"""Several identifications on one page."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from armid.identification.compare import Agreement, ResultComparison
from armid.identification.result import Result
from armid.identification.thresholds import FAR_APART
from armid.page import Block, Cell, Figure, Paragraph, Report, Section, Table
from armid.report import plots

_FAR = FAR_APART.value
_SYMBOLS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star")
_COLOURS = (plots.BLUE, plots.ORANGE, plots.GREEN, plots.PINK, plots.YELLOW, plots.SKY, plots.GREY)


def comparison_report(answer: ResultComparison) -> Report:
    """Sections that put results side by side; the first is what the others are compared with."""
    names, results = answer.names, answer.results
    return Report(
        title=f"{results[0].described.name}: {len(results)} identifications compared",
        subtitle=" · ".join(names),
        verdict="",
        reasons=(),
        sections=(
            _overview(names, results),
            held_out(names, results),
            differences(names, answer.rows),
            parameters(names, answer.rows),
            bodies(names, results),
        ),
    )


def _overview(names: Sequence[str], results: Sequence[Result]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for name, r in zip(names, results, strict=True):
        rows.append(
            (
                name,
                r.verdict,
                plots.percent(r.relative_error.get("held_out")),
                len(r.estimate),
                r.condition_number,
                r.conditioning.torque_cutoff_hz,
                r.described.source.path,
                r.described.source.sha256[:16],
            )
        )
    header = (
        "result",
        "verdict",
        "held-out error",
        "base parameters",
        "condition number",
        "cut-off [Hz]",
        "robot",
        "sha256",
    )
    tones = tuple("" if r.verdict == "trusted" else "bad" for r in results)
    blocks: list[Block] = [Table(header, tuple(rows), tones)]
    if len({r.described.source.sha256 for r in results}) > 1:
        blocks.append(Paragraph("The descriptions differ: combinations with other lengths are not compared.", "faint"))
    return Section("overview", "Results", tuple(blocks))


def held_out(names: Sequence[str], results: Sequence[Result]) -> Section:
    """Errors per joint, each on its own held-out motion."""
    joints = tuple(dict.fromkeys(j.name for r in results for j in r.joints))
    errors = [{j.name: j.held_out for j in r.joints} for r in results]
    table = Table(
        ("joint", *(title for name in names for title in (f"{name} [N m]", "relative"))),
        tuple(
            (
                joint,
                *(
                    cell
                    for e in errors
                    for cell in ((e[joint].rmse, plots.percent(e[joint].relative)) if joint in e else (None, None))
                ),
            )
            for joint in joints
        ),
        caption="Root mean square torque error of the consistent estimates, each on its own held-out motion "
        "and at its own cut-off.",
    )
    bars = tuple(
        {
            "type": "bar",
            "name": name,
            "x": list(joints),
            "y": plots.short([e[j].rmse if j in e else np.nan for j in joints]),
            "marker": {"color": _COLOURS[k % 7], "pattern": {"shape": ("", "/", ".", "x", "-", "|", "+")[k % 7]}},
        }
        for k, (name, e) in enumerate(zip(names, errors, strict=True))
    )
    figure = Figure("held-out", bars, plots.axes("", "held-out error [N m]", barmode="group"), height=300)
    return Section("held-out", "Torque on held-out motion", (table, figure))


def differences(names: Sequence[str], rows: Sequence[Agreement]) -> Section:
    """Every parameter's difference from the first result."""
    traces = tuple(
        {
            "type": "scatter",
            "mode": "markers",
            "name": names[k],
            "x": [r.name for r in rows],
            "y": plots.short([r.differences[k] for r in rows]),
            "marker": {"size": 7, "color": _COLOURS[k % 7], "symbol": _SYMBOLS[k % 7]},
        }
        for k in range(1, len(names))
    )
    limits = [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": y,
            "y1": y,
            "line": {"color": plots.GREY, "dash": "dot", "width": 1},
        }
        for y in (-_FAR, _FAR)
    ]
    layout = {
        "xaxis": {"tickangle": 90, "tickfont": {"size": 10}},
        "yaxis": {"title": {"text": f"difference from {names[0]} [standard deviations]"}},
        "shapes": limits,
        "showlegend": True,
    }
    far = [
        f"{r.name} in {names[k]} ({r.differences[k]:+.1f})"
        for r in rows
        for k in range(1, len(names))
        if abs(r.differences[k]) > _FAR
    ]
    text = (
        f"Further apart than {_FAR:g} standard deviations: " + ", ".join(far) + "."
        if far
        else f"No parameter differs by more than {_FAR:g} standard deviations."
    )
    figure = Figure("differences", traces, layout, "Dotted: three standard deviations of the difference.", height=420)
    return Section("differences", "Differences", (Paragraph(text, "bad" if far else "good"), figure))


def parameters(names: Sequence[str], rows: Sequence[Agreement]) -> Section:
    """Values with intervals, side by side."""
    header = ["parameter", "unit"]
    for k, name in enumerate(names):
        header += [name, "± 95 %"] + (["difference"] if k else [])
    cells: list[tuple[Cell, ...]] = []
    for r in rows:
        line: list[Cell] = [r.name, plots.unit(r.unit)]
        for k in range(len(names)):
            line += [r.values[k], 1.96 * r.standard_deviations[k]] + ([r.differences[k]] if k else [])
        cells.append(tuple(None if isinstance(c, float) and isnan(c) else c for c in line))
    tones = tuple("bad" if any(abs(d) > _FAR for d in r.differences) else "" for r in rows)
    table = Table(
        tuple(header),
        tuple(cells),
        tones,
        caption=f"Base parameters; differences from {names[0]} in standard deviations of the difference. A dash: not estimated, "
        "or another combination of standard parameters.",
    )
    return Section("parameters", "Parameters", (table,))


def bodies(names: Sequence[str], results: Sequence[Result]) -> Section:
    """The consistent estimates, standard parameter by standard parameter."""
    known = [dict(zip(r.consistent.names, r.consistent.values, strict=True)) for r in results]
    units = {n: u for r in results for n, u in zip(r.consistent.names, r.consistent.units, strict=True)}
    table = Table(
        ("parameter", "unit", *names),
        tuple(
            (name, plots.unit(unit), *(float(k[name]) if name in k else None for k in known))
            for name, unit in units.items()
        ),
        caption="Physically consistent standard parameters. What the data leave open comes from each result's regularisation.",
        folded=True,
    )
    return Section("bodies", "Bodies", (table,))
