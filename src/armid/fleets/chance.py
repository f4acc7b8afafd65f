"""Changes of a course, and how often chance makes one as likely.

A change is a step from a date on or a ramp from the date before. Its statistic is twice the gain of the log-likelihood beside a
constant value, under the scatter of the fleet (Student's distribution with known deviations). What the largest of all changes
tried reaches without any change is drawn: tables of equally spaced dates and equal deviations, in which changes are least alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from armid.arrays import FloatArray

_STEPS = 8
_DRAWS = 20_000
_MOST = 3_000_000
"""Numbers in a table that is drawn: many dates are drawn less often."""
_TAIL = 0.02
"""Of the draws, through which the rest of the tail is drawn: the statistic's tail is exponential."""
_FREEDOMS = (2, 3, 5, 8, 12, 20, 35, 60, 100, 200)
"""Degrees of freedom of the deviations for which there are tables; the next smaller one is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseChange:
    """The likeliest change of a course.

    Args:
        kind: `step` or `ramp`.
        first: date that shows it first.
        coefficient, deviation: of the step, or of the ramp per day.
        reach: of the coefficient until the last date.
        gain: twice the log-likelihood gained.
    """

    kind: str
    first: int
    coefficient: float
    deviation: float
    reach: float
    gain: float


def changes_tried(days: FloatArray) -> tuple[list[tuple[str, int]], FloatArray]:
    """Kind and first date of every change, and its course, shape [n_changes, n_dates]."""
    kinds: list[tuple[str, int]] = []
    shapes = []
    for first in range(1, len(days)):
        kinds.append(("step", first))
        shapes.append((np.arange(len(days)) >= first).astype(float))
        if first < len(days) - 1:  # a ramp that begins before the last date is a step at it
            kinds.append(("ramp", first))
            shapes.append(np.maximum(days - days[first - 1], 0.0))
    return kinds, np.array(shapes)


def likeliest(days: FloatArray, values: FloatArray, deviations: FloatArray, tail: float) -> list[CourseChange]:
    """The change of every course with the largest statistic.

    Args:
        days, values: shape [n_courses, n_dates].
        deviations: of the values' scatter, shape [n_courses, n_dates].
        tail: degrees of freedom of its distribution.
    """
    kinds, _ = changes_tried(days[0])
    shapes = np.array([changes_tried(own)[1] for own in days])
    gains, coefficients, spreads = gained(values, deviations, shapes, tail)
    best = gains.argmax(axis=1)
    return [
        CourseChange(
            kind=kinds[k][0],
            first=kinds[k][1],
            coefficient=float(coefficients[course, k]),
            deviation=float(spreads[course, k]),
            reach=float(shapes[course, k, -1] - shapes[course, k, 0]),
            gain=float(gains[course, k]),
        )
        for course, k in enumerate(best)
    ]


def gained(
    values: FloatArray, deviations: FloatArray, shapes: FloatArray, tail: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Statistic, coefficient and its deviation of every change.

    Args:
        values, deviations: shape [n_courses, n_dates].
        shapes: of the changes, shape [n_changes, n_dates], or of each course's own, shape [n_courses, n_changes, n_dates].
        tail: degrees of freedom.

    Returns:
        Each of shape [n_courses, n_changes].
    """
    constant, _, _ = _likelihood(values, deviations, np.zeros((1, values.shape[1])), tail)
    changed, coefficient, spread = _likelihood(values, deviations, shapes, tail)
    return np.maximum(2.0 * (changed - constant), 0.0), coefficient, spread


def _likelihood(
    values: FloatArray, deviations: FloatArray, shapes: FloatArray, nu: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log-likelihood (but for a constant) of value and coefficient at their best, by reweighting."""
    y, s = values[:, np.newaxis, :], deviations[:, np.newaxis, :]
    x = shapes if shapes.ndim == 3 else shapes[np.newaxis]
    w = np.broadcast_to(s**-2.0, np.broadcast_shapes(s.shape, x.shape))
    for _ in range(_STEPS):
        total = w.sum(axis=2)
        middle_x, middle_y = (w * x).sum(axis=2) / total, (w * y).sum(axis=2) / total
        centred = x - middle_x[..., np.newaxis]
        weight = (w * centred**2).sum(axis=2)
        c = np.where(weight > 0.0, (w * centred * y).sum(axis=2) / np.maximum(weight, 1e-300), 0.0)
        r = (y - middle_y[..., np.newaxis] - c[..., np.newaxis] * centred) / s
        w = (nu + 1.0) / (nu + r**2) / s**2
    return -(nu + 1.0) / 2.0 * np.log1p(r**2 / nu).sum(axis=2), c, np.maximum(weight, 1e-300) ** -0.5


def chance(gain: float, dates: int, tail: float, freedom: float) -> float:
    """Probability that a course without a change has one of at least this gain.

    Args:
        gain: see `CourseChange`.
        dates: of the course.
        tail: degrees of freedom of the scatter.
        freedom: by which its deviations are known.
    """
    known = max([each for each in _FREEDOMS if each <= freedom], default=1)
    start, mean = _largest_gains(dates, tail, known)
    if gain > start[-1]:
        return float(_TAIL * np.exp(-(gain - start[-1]) / mean))
    return float(np.interp(gain, start, np.linspace(1.0, _TAIL, len(start))))


@lru_cache(maxsize=64)
def _largest_gains(dates: int, tail: float, freedom: int) -> tuple[FloatArray, float]:
    """Quantiles of the largest gain without a change up to where its tail starts, and the mean excess over that."""
    rng = np.random.default_rng((dates, int(tail), freedom))
    _, shapes = changes_tried(np.arange(dates, dtype=float))
    count = int(np.clip(_MOST / shapes.size, 2000, _DRAWS))
    noise = rng.standard_t(tail, size=(count, dates))
    # The deviations themselves are estimated: all dates of a course share their error.
    noise *= np.sqrt(freedom / rng.chisquare(freedom, size=(count, 1)))
    ones = np.ones((1, dates))
    largest = np.concatenate(
        [gained(part, ones, shapes, tail)[0].max(axis=1) for part in np.array_split(noise, max(count // 2000, 1))]
    )
    quantiles = np.quantile(largest, np.linspace(0.0, 1.0 - _TAIL, 200))
    above = largest[largest > quantiles[-1]]
    return quantiles, float(np.mean(above - quantiles[-1]))
