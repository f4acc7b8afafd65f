"""Data health as pictures: where every joint went, how fast, and how long it stood still."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.identification.motion import JointMotion
from armid.identification.origins import STEP_SHARES, LogRecord
from armid.identification.result import Result
from armid.page import Figure, Table
from armid.report import plots


def health_figures(result: Result) -> tuple[Figure | Table, ...]:
    """Coverage of position and speed beside the limits, share of rest, steps of the clock; from the stored evidence."""
    clocks: tuple[Figure | Table, ...] = (*_clock_figure(result), *_clock_table(result))
    if result.evidence is None or not result.evidence.train:
        return clocks
    train, held = (_of_joints(result, motions) for motions in (result.evidence.train, result.evidence.held_out))
    return (
        _position_figure(result, train, held),
        _share_figure(
            "coverage-speed",
            "Largest speed",
            "of the limit [%]",
            [(name, _speed_shares(result, motions)) for name, motions in (("training", train), ("held out", held))],
            "Of the limit of the description; of the fastest training speed where it gives none.",
        ),
        _share_figure(
            "rest",
            "Time at rest",
            "of the samples [%]",
            [
                (name, {m.name: 100 * m.rest_share for m in motions})
                for name, motions in (("training", train), ("held out", held))
            ],
            "A joint that stands still shows its friction only up to what holds it.",
        ),
        *clocks,
    )


def _of_joints(result: Result, motions: Sequence[JointMotion]) -> tuple[JointMotion, ...]:
    """One per joint: a second channel of a joint moves as the first."""
    return tuple(motions[: result.described.n_joints])


def _position_figure(result: Result, train: Sequence[JointMotion], held: Sequence[JointMotion]) -> Figure:
    """Ranges as bars around their middle, beside the limits."""
    names = list(result.described.joint_names)
    lower, upper = result.described.limit("lower"), result.described.limit("upper")
    data = []
    for name, low, high, colour, width in (
        ("limits", lower, upper, plots.GREY, 3.0),
        ("training", *_ends(train), plots.BLUE, 9.0),
        ("held out", *_ends(held), plots.ORANGE, 3.0),
    ):
        known = np.isfinite(low) & np.isfinite(high)
        if len(known) != len(names):
            continue
        low, high = np.where(known, low, np.nan), np.where(known, high, np.nan)
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": names,
                "y": plots.short(0.5 * (low + high), 4),
                "error_y": {
                    "type": "data",
                    "array": plots.short(0.5 * (high - low), 4),
                    "thickness": width,
                    "width": 0,
                },
                "name": name,
                "marker": {"color": colour, "size": 2},
            }
        )
    layout = plots.axes("", "position [rad or m]", title={"text": "Positions reached"}, showlegend=True)
    caption = "A model is known where the arm has been: wide bars training, thin ones held out, grey the limits."
    return Figure("coverage-position", tuple(data), layout, caption, height=280, half=True)


def _ends(motions: Sequence[JointMotion]) -> tuple[FloatArray, FloatArray]:
    return np.array([m.low for m in motions]), np.array([m.high for m in motions])


def _speed_shares(result: Result, motions: Sequence[JointMotion]) -> dict[str, float]:
    limits = result.described.limit("velocity")
    fastest = max((m.speed for m in motions if np.isfinite(m.speed)), default=1.0)
    scale = [limit if np.isfinite(limit) and limit > 0.0 else fastest for limit in limits]
    return {m.name: 100 * m.speed / float(s) for m, s in zip(motions, scale, strict=False) if s}


def _share_figure(
    name: str, title: str, unit: str, parts: Sequence[tuple[str, dict[str, float]]], caption: str
) -> Figure:
    bars = tuple(
        {
            "type": "bar",
            "x": list(values),
            "y": plots.short(list(values.values()), 3),
            "name": part,
            "marker": {"color": colour},
        }
        for (part, values), colour in zip(parts, (plots.BLUE, plots.ORANGE), strict=True)
        if values
    )
    layout = plots.axes("", unit, barmode="group", title={"text": title})
    return Figure(name, bars, layout, caption, height=280, half=True)


_MOST_CLOCKS = 8
"""Recordings whose steps are drawn; more lines nobody can tell apart."""


def _clock_figure(result: Result) -> tuple[Figure, ...]:
    """Steps of the clock of every recording, from the shortest to the longest."""
    logs = [(role, log) for role, log in result.provenance.logs() if log.steps_s][:_MOST_CLOCKS]
    if not logs:
        return ()
    data = tuple(
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": [100 * share for share in STEP_SHARES],
            "y": plots.short([1e3 * step for step in log.steps_s], 4),
            "name": f"{role}: {log.name}",
            "line": {"color": plots.COLOURS[k % len(plots.COLOURS)]},
        }
        for k, (role, log) in enumerate(logs)
    )
    layout = plots.axes("share of the steps [%]", "step [ms]", title={"text": "Steps of the clock"}, showlegend=True)
    caption = (
        "A level line is an even clock; its two ends are the shortest and the longest step (repeated stamps and gaps)."
    )
    return (Figure("clock-steps", data, layout, caption, height=280, half=True),)


def _clock_table(result: Result) -> tuple[Table, ...]:
    """Length, samples and mean step of every recording."""
    rows = tuple(
        (role, log.name, log.end_s - log.start_s, log.samples, _mean_step(log))
        for role, log in result.provenance.logs()
    )
    if not rows:
        return ()
    return (Table(("", "recording", "length [s]", "samples", "mean step [ms]"), rows),)


def _mean_step(log: LogRecord) -> float | None:
    return 1e3 * (log.end_s - log.start_s) / (log.samples - 1) if log.samples > 1 else None
