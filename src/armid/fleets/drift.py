"""Changes of arms over dates: steps and ramps, with a stated rate of false alarms.

A parameter of an arm, estimated on several dates, is held against every change that begins between two of them: a step
(`x_t = 1` from a date on) and a ramp (`x_t` grows from the date before). The statistic of each is the coefficient of x beside
a constant over its standard deviation. How much estimates scatter from date to date without any change is measured on the
fleet itself: successive differences over their own deviations, by their median, which neither a few worn arms nor a single
step in a course can move. Probabilities are multiplied by the number of changes tried and taken through Holm's procedure over
all arms and parameters, so that a fleet without any change raises even one alarm with no more than the stated probability.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.estimate import NORMAL_95

FALSE_ALARMS = 0.05
"""Probability of even one alarm in a fleet without any change."""
_ENOUGH = 20
"""Differences from which the scatter of one parameter is told by itself; with fewer those of its like count together."""
_NORMAL_MEDIAN = 0.6744897501960817
"""Median of the size of a standard normal number."""
_EFFICIENCY = 0.37
"""Of a median of sizes beside a standard deviation, for normal numbers: what a difference counts as a degree of freedom."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Course:
    """One parameter of one arm over its dates.

    Args:
        arm, parameter: which.
        like: name of parameters that scatter alike, such as the quantity.
        dates: ISO 8601, ascending.
        days: the same as numbers.
        values, deviations: estimates with their standard deviations.
        unit: SI.
    """

    arm: str
    parameter: str
    like: str
    dates: tuple[str, ...]
    days: FloatArray
    values: FloatArray
    deviations: FloatArray
    unit: str = ""


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


@dataclass(frozen=True, slots=True)
class Scatter:
    """How estimates scatter from date to date, in units of their own deviations, and the degrees of freedom it is known by."""

    scale: float
    freedom: float


def drifts(courses: Sequence[Course], rate: float = FALSE_ALARMS) -> tuple[Drift, ...]:
    """The likeliest change of every course with at least two dates, the most certain first.

    Args:
        courses: of the whole fleet; arms with few changes tell how much those without scatter.
        rate: probability of even one alarm in a fleet without any change.

    Raises:
        InputError: a rate that is no probability.
    """
    if not 0.0 < rate < 1.0:
        raise InputError("--false-alarms", f"{rate}", "expected a probability between 0 and 1")
    usable = [course for course in courses if len(course.days) >= 2]
    scatter = scatters(usable)
    found = [_likeliest(course, scatter[course.parameter]) for course in usable]
    order = np.argsort([p for p, _ in found], kind="stable")
    out, worst = [], 0.0
    for rank, k in enumerate(order):
        worst = max(worst, min(1.0, (len(found) - rank) * found[k][0]))
        course, change = usable[k], found[k][1]
        out.append(_drift(course, change, scatter[course.parameter].scale, worst, rate))
    return tuple(out)


def scatters(courses: Sequence[Course]) -> Mapping[str, Scatter]:
    """The scatter of every parameter, from successive differences of all arms."""
    own: dict[str, list[float]] = {}
    alike: dict[str, list[float]] = {}
    for course in courses:
        s = course.deviations
        d = np.abs(np.diff(course.values) / np.maximum(np.hypot(s[1:], s[:-1]), 1e-300)).tolist()
        own.setdefault(course.parameter, []).extend(d)
        alike.setdefault(course.like, []).extend(d)
    like = {course.parameter: course.like for course in courses}
    return {name: _scatter(d if len(d) >= _ENOUGH else alike[like[name]]) for name, d in own.items()}


def _scatter(differences: Sequence[float]) -> Scatter:
    scale = max(float(np.median(differences)) / _NORMAL_MEDIAN, 1e-12)
    return Scatter(scale, max(_EFFICIENCY * len(differences), 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    kind: str
    first: int
    coefficient: float
    deviation: float
    reach: float


def _likeliest(course: Course, scatter: Scatter) -> tuple[float, _Change]:
    """The change with the largest statistic, and its probability beside all that were tried."""
    from scipy.stats import t as student

    sigma = scatter.scale * course.deviations
    tried = []
    for first in range(1, len(course.days)):
        tried.append(_change("step", first, (np.arange(len(course.days)) >= first).astype(float), course.values, sigma))
        if first < len(course.days) - 1:  # a ramp that begins before the last date is a step at it
            grown = np.maximum(course.days - course.days[first - 1], 0.0)
            tried.append(_change("ramp", first, grown, course.values, sigma))
    best = max(tried, key=lambda change: abs(change.coefficient) / change.deviation)
    probability = 2.0 * float(student.sf(abs(best.coefficient) / best.deviation, scatter.freedom))
    return min(1.0, len(tried) * probability), best


def _change(kind: str, first: int, x: FloatArray, values: FloatArray, sigma: FloatArray) -> _Change:
    """Coefficient of x beside a constant, with its deviation."""
    w = sigma**-2.0
    centred = x - w @ x / w.sum()
    weight = float(w @ centred**2)
    return _Change(
        kind=kind,
        first=first,
        coefficient=float((w * centred) @ values) / weight,
        deviation=weight**-0.5,
        reach=float(x[-1] - x[0]),
    )


def _drift(course: Course, change: _Change, scale: float, probability: float, rate: float) -> Drift:
    size, half = change.coefficient * change.reach, NORMAL_95 * change.deviation * change.reach
    line = _change("ramp", 1, course.days - course.days[0], course.values, scale * course.deviations)
    return Drift(
        arm=course.arm,
        parameter=course.parameter,
        unit=course.unit,
        kind=change.kind,
        since=course.dates[change.first],
        change=size,
        low=size - half,
        high=size + half,
        per_day=line.coefficient,
        per_day_low=line.coefficient - NORMAL_95 * line.deviation,
        per_day_high=line.coefficient + NORMAL_95 * line.deviation,
        probability=probability,
        alarm=probability < rate,
    )
