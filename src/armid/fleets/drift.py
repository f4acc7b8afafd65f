"""Changes of arms over dates: steps and ramps, with a stated rate of false alarms.

A parameter of an arm, estimated on several dates, is held against every change that begins between two of them. How much
estimates scatter from date to date without any change is measured on the fleet itself (`armid.fleets.scatter`), and how often
chance makes a change as likely is drawn from that (`armid.fleets.chance`). Probabilities are taken through Holm's procedure over
all arms and parameters, so that a fleet without any change raises even one alarm with no more than the stated probability. Arms
that change are then left out of the measured scatter, and all is done again. Of several changes in one joint the one of most
deviations raises the alarm: the others may be its shadow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.estimate import NORMAL_95
from armid.fleets.chance import CourseChange, chance, likeliest
from armid.fleets.course import Course
from armid.fleets.scatter import Scatter, scatters

FALSE_ALARMS = 0.05
"""Probability of even one alarm in a fleet without any change."""
_ROUNDS = 4
"""Of leaving worn arms out of the scatter."""

_Found = tuple[Course, CourseChange, float, bool]
"""A course, its likeliest change, the probability of one in a fleet without any, and whether it is an alarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The likeliest change of a parameter of an arm.

    Args:
        arm, parameter, unit: which.
        kind: `step` or `ramp`.
        since: first date that shows it.
        change, low, high: until the last date, with its 95 % interval.
        per_day, per_day_low, per_day_high: slope of the line through all dates.
        probability: of such a change in a fleet without any, all arms and parameters counted.
        alarm: whether that is below the stated rate.
    """

    arm: str
    parameter: str
    unit: str
    kind: str
    since: str
    change: float
    low: float
    high: float
    per_day: float
    per_day_low: float
    per_day_high: float
    probability: float
    alarm: bool

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "interval": [self.per_day_low, self.per_day_high]}


def drifts(courses: Sequence[Course], rate: float = FALSE_ALARMS) -> tuple[Drift, ...]:
    """The likeliest change of every course with at least two dates, the most certain first.

    Args:
        courses: of the whole fleet; arms without changes tell how much estimates scatter.
        rate: probability of even one alarm in a fleet without any change.

    Raises:
        InputError: a rate that is no probability.
    """
    if not 0.0 < rate < 1.0:
        raise InputError("--false-alarms", f"{rate}", "expected a probability between 0 and 1")
    usable = [course for course in courses if len(course.days) >= 2]
    worn: set[tuple[str, str]] | None = None
    found: list[_Found] = []
    scatter = scatters(usable)
    for _ in range(_ROUNDS):
        found = _ranked(usable, scatter, rate)
        now = {_place(course) for course, _, p, _ in found if p < rate}
        calm = [course for course in usable if _place(course) not in now]
        if now == worn:
            break
        if {course.parameter for course in calm} != {course.parameter for course in usable}:
            calm = usable
        worn, scatter = now, scatters(calm, usable)
    return tuple(_drift(course, change, scatter, p, alarm=alarm) for course, change, p, alarm in found)


def _place(course: Course) -> tuple[str, str]:
    """Arm, and part of it."""
    return course.arm, course.part or course.parameter


def _ranked(courses: Sequence[Course], scatter: Mapping[str, Scatter], rate: float) -> list[_Found]:
    """The likeliest change of every course, the surest first."""
    found = []
    by_dates: dict[tuple[int, float], list[Course]] = {}
    for course in courses:
        by_dates.setdefault((len(course.days), scatter[course.parameter].tail), []).append(course)
    for (dates, tail), own in by_dates.items():
        days, values = np.array([course.days for course in own]), np.array([course.values for course in own])
        deviations = np.array([scatter[course.parameter].deviations(course.deviations) for course in own])
        for course, change in zip(own, likeliest(days, values, deviations, tail), strict=True):
            p = chance(change.gain, dates, tail, scatter[course.parameter].freedom)
            found.append((p, -change.gain, course, change))
    found.sort(key=lambda one: (one[0], one[1], one[2].arm, one[2].parameter))
    out: list[tuple[Course, CourseChange, float]] = []
    worst = 0.0
    for rank, (p, _, course, change) in enumerate(found):
        worst = max(worst, min(1.0, (len(found) - rank) * p))
        out.append((course, change, worst))
    causes = _causes([(course, change) for course, change, p in out if p < rate])
    return [(course, change, p, course in causes) for course, change, p in out]


def _causes(changes: Sequence[tuple[Course, CourseChange]]) -> list[Course]:
    """Of every part of an arm that changes, the parameter that does.

    Parameters of a joint are followed given one another, so a change of one casts a shadow on the others. With d its size along
    unit vector e_k and C the covariance of all, that of parameter j shows as (C^-1 d)_j / sqrt((C^-1)_jj) deviations, which is
    largest for j = k (Cauchy and Schwarz). Probabilities do not tell them apart: they rest on tails of other weights.
    """
    surest: dict[tuple[str, str], tuple[float, Course]] = {}
    for course, change in changes:
        deviations = abs(change.coefficient) / change.deviation
        if deviations > surest.get(_place(course), (0.0, course))[0]:
            surest[_place(course)] = deviations, course
    return [course for _, course in surest.values()]


def _drift(
    course: Course, change: CourseChange, scatter: Mapping[str, Scatter], probability: float, *, alarm: bool
) -> Drift:
    size, half = change.coefficient * change.reach, NORMAL_95 * change.deviation * change.reach
    slope, doubt = _slope(course, scatter[course.parameter].deviations(course.deviations))
    return Drift(
        arm=course.arm,
        parameter=course.parameter,
        unit=course.unit,
        kind=change.kind,
        since=course.dates[change.first],
        change=size,
        low=size - half,
        high=size + half,
        per_day=slope,
        per_day_low=slope - NORMAL_95 * doubt,
        per_day_high=slope + NORMAL_95 * doubt,
        probability=probability,
        alarm=alarm,
    )


def _slope(course: Course, deviations: FloatArray) -> tuple[float, float]:
    """Of the line through all dates, with its deviation."""
    w = deviations**-2.0
    centred = course.days - w @ course.days / w.sum()
    weight = float(w @ centred**2)
    return float((w * centred) @ course.values) / weight, weight**-0.5
