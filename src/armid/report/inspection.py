"""What can be identified, on one page."""

from __future__ import annotations

import numpy as np

from armid.inspection.inspection import Inspection
from armid.inspection.motion_excitation import MotionExcitation
from armid.outcome import note_text
from armid.page import Block, Cell, Figure, Paragraph, Report, Section, Table
from armid.report import plots


def inspection_report(found: Inspection) -> Report:
    """Sections: regroupings, categories, the rank decision, and what a motion excites."""
    sections = [
        Section("base", "Base parameters", (found.regrouping_table(), *_notes(found))),
        Section("categories", "What can be found of each body and drive", (found.category_table(),)),
        Section("rank", "How the rank was decided", (_singular_values(found), _channels(found))),
    ]
    if found.motion is not None:
        sections.append(Section("excitation", "What this motion excites", _excitation(found.motion)))
    return Report(
        title=f"{found.robot.name}: what can be identified",
        subtitle=f"{' and '.join(found.quantities)}: {len(found.base)} base of {len(found.base.parameters)} parameters",
        verdict=str(found.verdict),
        reasons=found.reasons,
        sections=tuple(sections),
    )


def _notes(found: Inspection) -> list[Block]:
    return [Paragraph(note_text(note), "faint") for note in found.notes]


def _singular_values(found: Inspection) -> Figure:
    decision = found.base.decision
    values = decision.singular_values / decision.singular_values[0]
    count = np.arange(1.0, len(values) + 1.0)
    limit = np.full(2, decision.tolerance)
    return Figure(
        name="singular-values",
        data=(
            plots.points(count, np.maximum(values, np.finfo(float).tiny), "singular values", plots.BLUE),
            plots.line(count[[0, -1]], limit, "tolerance", plots.ORANGE, dash="dash"),
        ),
        layout={
            "xaxis": {"title": {"text": "number"}},
            "yaxis": {"title": {"text": "relative to the largest"}, "type": "log", "exponentformat": "e"},
        },
        caption=decision.reason,
        half=True,
    )


def _channels(found: Inspection) -> Figure:
    return Figure(
        name="channels",
        data=(
            {
                "type": "bar",
                "x": list(found.per_channel),
                "y": list(found.per_channel.values()),
                "marker": {"color": plots.BLUE},
            },
        ),
        layout=plots.axes("", "rank"),
        caption="Rank of each channel's own rows: what it could tell alone.",
        half=True,
    )


def _excitation(recorded: MotionExcitation) -> tuple[Block, ...]:
    motion = recorded.excitation
    order = sorted(zip(motion.strength, motion.names, motion.standard_deviations, motion.excited, strict=True))
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, float(s), float(d)) for s, name, d, _ in order)
    tones = tuple("" if excited else "bad" for *_, excited in order)
    figure = Figure(
        name="excitation",
        data=(
            {
                "type": "bar",
                "x": [name for _, name, _, _ in order],
                "y": plots.short([float(s) for s, _, _, _ in order]),
                "marker": {"color": plots.BLUE},
            },
        ),
        layout={"yaxis": {"title": {"text": "strength"}, "type": "log"}},
        caption="Sine of the angle between a parameter's column and all others; 1 is perfect.",
    )
    table = Table(
        ("base parameter", "strength", "standard deviation"),
        rows,
        tones,
        caption=f"Weakest first; deviations in the unit of the parameter. Condition number {recorded.condition_number:.4g} "
        f"in SI units, {recorded.condition_number_scaled:.4g} with columns of unit norm.",
        folded=True,
    )
    return figure, table
