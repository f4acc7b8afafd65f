"""The page about a fleet: every arm, alarms, drift with intervals, spread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armid.estimation.estimate import NORMAL_95
from armid.fleets.course import courses_of
from armid.fleets.drift import Drift
from armid.fleets.fleet import Fleet
from armid.page import Figure, Report, Section, Table
from armid.report.judged import judged_page
from armid.report.plots import BLUE, GREY, ORANGE, axes, short

_MOST_FIGURES = 24
"""Of alarms that are drawn; the table lists all."""


def fleet_report(fleet: Fleet) -> Report:
    """Everything the page shows."""
    sections = [
        Section("arms", "Arms", (fleet.arm_table(),)),
        Section("alarms", "Which arms need service", (fleet.alarm_table(),)),
    ]
    drawn = tuple(_course_figures(fleet))
    if drawn:
        sections.append(Section("drift", "Changes over time", drawn))
    if fleet.population is not None:
        sections.append(Section("spread", "How arms differ", (*_spread_figures(fleet), *fleet.spread_tables())))
    if any(not one.counts or one.set_aside for one in fleet.visits):
        sections.append(Section("not-used", "Not in the statistics", (_unused(fleet),)))
    return judged_page(fleet, "Fleet", fleet._heading(), *sections)


def _course_figures(fleet: Fleet) -> Iterator[Figure]:
    """Courses with an alarm; without any the likeliest change, which is none."""
    names = () if fleet.population is None else fleet.population.names
    names = names or next((one.names for one in fleet.visits if one.counts), ())
    courses = {(course.arm, course.parameter): course for course in courses_of(fleet.visits, names)}
    for number, one in enumerate(fleet.alarms[:_MOST_FIGURES] or fleet.drift[:1]):
        course = courses[one.arm, one.parameter]
        yield Figure(
            f"drift-{number}",
            (_with_intervals(course.dates, course.values, course.deviations, f"{one.arm}"), _since(one, course.values)),
            axes("date", f"{fleet.joint_of(one.parameter)} {one.parameter} [{one.unit}]"),
            _said(fleet, one),
            260,
            half=True,
        )


def _said(fleet: Fleet, one: Drift) -> str:
    what = f"{one.kind} since {one.since}: {one.change:.3g} {one.unit} ({one.low:.3g} to {one.high:.3g})"
    if one.alarm:
        return f"{one.arm}, {fleet.joint_of(one.parameter)}: {what}; by chance with probability {one.probability:.2g}."
    chance = f"it comes about by chance with probability {one.probability:.2g}"
    return f"{one.arm}: no change beyond chance. This would be the likeliest one of all ({what}); {chance}."


def _with_intervals(dates: tuple[str, ...], values: np.ndarray, deviations: np.ndarray, name: str) -> dict[str, object]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": list(dates),
        "y": short(values),
        "error_y": {"type": "data", "array": short(NORMAL_95 * deviations), "color": GREY},
        "line": {"color": BLUE},
    }


def _since(one: Drift, values: np.ndarray) -> dict[str, object]:
    ends = [float(np.min(values)), float(np.max(values))]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"since {one.since}",
        "x": [one.since, one.since],
        "y": short(ends),
        "line": {"color": ORANGE if one.alarm else GREY, "dash": "dash"},
    }


def _spread_figures(fleet: Fleet) -> Iterator[Figure]:
    """Every arm's distance from the mean in units of the spread, parameter by parameter."""
    p = fleet.population
    assert p is not None
    arms = fleet.shrunk_values()
    apart = [(values - p.mean) / p.spread for values, _ in arms.values()]
    data = (
        {
            "type": "scatter",
            "mode": "markers",
            "name": "arms",
            "x": [name for _ in arms for name in p.names],
            "y": short(np.concatenate(apart), 3),
            "text": [arm for arm in arms for _ in p.names],
            "marker": {"size": 5, "opacity": 0.5, "color": BLUE},
        },
    )
    caption = f"{p.arms} arms, each as its own recordings and the others together have it, in units of the spread."
    yield Figure("spread", data, axes("base parameter", "distance from the mean [spreads]"), caption, 380)
    relative = 100.0 * p.spread / np.maximum(np.abs(p.mean), 1e-12)
    bars = {"type": "bar", "x": list(p.names), "y": short(np.minimum(relative, 1e4)), "marker": {"color": BLUE}}
    caption = "Spread from arm to arm in per cent of the mean."
    layout = axes("base parameter", "spread [%]")
    layout["yaxis"] |= {"type": "log"}  # a mean near zero has any spread
    yield Figure("relative-spread", (bars,), layout, caption, 320)


def _unused(fleet: Fleet) -> Table:
    rows = [
        (one.visit.arm, one.visit.date, one.verdict, one.reasons[0] if one.reasons else "motion determines too little")
        for one in fleet.visits
        if not one.counts
    ]
    rows += [
        (one.visit.arm, one.visit.date, f"log {log}", why) for one in fleet.visits for log, why in one.set_aside.items()
    ]
    return Table(("arm", "date", "what", "reason"), tuple(rows), caption="Visits and logs that were not used.")
