"""How estimates of one parameter scatter from date to date in arms that do not change, measured on the fleet itself.

An estimate that claims the deviation s scatters by `a s^g` around its arm's own value: g is 1 where claims are right up to a
factor, and 0 where they say nothing. Besides noise, what is left of model errors in another motion, temperature and warm-up is
in it. Factor and power have the largest restricted likelihood over all arms, under Student's distribution, so that neither a few
worn arms nor a bad visit move them much. Its degrees of freedom are common to parameters of one kind: so many that it is nearly
normal, unless heavier tails are clearly likelier, or needed for a visit that is far off by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lgamma

import numpy as np

from armid.arrays import FloatArray
from armid.fleets.course import Course

_TAILS = (30.0, 15.0, 10.0, 7.0, 5.0, 4.0, 3.0)
"""Degrees of freedom tried, as long as heavier tails are likelier; the first is the nearly normal one."""
_PAYS = 2.0
"""Gain of the log-likelihood from which a heavier tail than the nearly normal one is believed."""
_PLAUSIBLE = 1.0
"""Expected number of visits as far off as the farthest, below which tails are taken to be heavier: gross errors are too few to
show in a likelihood, and yet the next one may be on a last date, where it looks like wear. Only visits between others that agree
count: what stays is a change and no error."""
_STEPS = 40
_ENOUGH = 20
"""Differences from which the scatter of one parameter is told by itself; with fewer those of its like count together."""
_CLAIMS = 4.0
"""Weight of the guess that claims are right up to a factor (g = 1): so many estimates, claims a factor e apart, say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Of one parameter from date to date.

    Args:
        unit: claimed deviation that the others are measured in.
        factor, power: a and g.
        freedom: degrees of freedom they are known by.
        tail: degrees of freedom of its distribution.
    """

    unit: float
    factor: float
    power: float
    freedom: float
    tail: float

    def deviations(self, claimed: FloatArray) -> FloatArray:
        """How much estimates scatter that claim so much."""
        return np.asarray(self.unit * self.factor * (claimed / self.unit) ** self.power)


def scatters(courses: Sequence[Course], everyone: Sequence[Course] | None = None) -> dict[str, Scatter]:
    """The scatter of every parameter; the tails of those alike are common.

    Args:
        courses: that do not change, as far as is known.
        everyone: all courses, for how far a visit can be off by itself; None before it is known which change: then tails are
            taken to be nearly normal, and factors are found under the heaviest, so that what changes moves them little.
    """
    units = {name: max(float(np.median(np.concatenate(s))), 1e-300) for name, s in _claims(courses).items()}
    groups = _groups(courses, units)
    alike: dict[str, dict[int, _Group]] = {}
    like = {course.parameter: course.like for course in courses}
    for name, group in groups.items():
        alike.setdefault(like[name], {})[id(group)] = group
    if everyone is None:
        found = {
            kind: (_TAILS[0], {key: _fitted(group, _TAILS[-1]) for key, group in members.items()})
            for kind, members in alike.items()
        }
    else:
        found = {kind: _common_tail(members) for kind, members in alike.items()}
    out = {}
    for name, group in groups.items():
        tail, fits = found[like[name]]
        fit = fits[id(group)]
        out[name] = Scatter(unit=units[name], factor=fit.factor, power=fit.power, freedom=group.freedom, tail=tail)
    return out if everyone is None else _with_excursions(out, everyone)


def _common_tail(groups: Mapping[int, _Group]) -> tuple[float, dict[int, _Fit]]:
    """Degrees of freedom of the tails of several groups, and their fits."""
    tail, fits = _TAILS[0], {key: _fitted(group, _TAILS[0]) for key, group in groups.items()}
    most = normal = sum(fit.likelihood for fit in fits.values())
    for heavier in _TAILS[1:]:
        tried = {key: _fitted(group, heavier) for key, group in groups.items()}
        likelihood = sum(fit.likelihood for fit in tried.values())
        if likelihood < most:
            break
        most = likelihood
        if most > normal + _PAYS:
            tail, fits = heavier, tried
    return tail, fits


def _with_excursions(of: Mapping[str, Scatter], courses: Sequence[Course]) -> dict[str, Scatter]:
    """With tails so heavy that the farthest visit of every kind is plausible."""
    from scipy.stats import t as student

    far: dict[str, list[float]] = {}
    for course in courses:
        far.setdefault(course.like, []).extend(_excursions(course, of[course.parameter]))
    kind = {course.parameter: course.like for course in courses}
    out = {}
    for name, scatter in of.items():
        off = far[kind[name]]
        heavier = [each for each in _TAILS if each <= scatter.tail]
        enough = (each for each in heavier if not off or 2.0 * len(off) * student.sf(max(off), each) >= _PLAUSIBLE)
        out[name] = replace(scatter, tail=next(enough, _TAILS[-1]))
    return out


def _excursions(course: Course, scatter: Scatter) -> list[float]:
    """By how many deviations a visit is off against the visits before and after it, to one side of both."""
    step = np.diff(course.values)
    before, after = step[:-1], -step[1:]
    off = np.where(before * after > 0.0, np.minimum(np.abs(before), np.abs(after)), 0.0)
    found: list[float] = (off / scatter.deviations(course.deviations[1:-1])).tolist()
    return found


def _claims(courses: Sequence[Course]) -> dict[str, list[FloatArray]]:
    out: dict[str, list[FloatArray]] = {}
    for course in courses:
        out.setdefault(course.parameter, []).append(course.deviations)
    return out


@dataclass(frozen=True, eq=False)
class _Group:
    """Courses that scatter alike, one after the other: values and claims in units, and the course of each."""

    values: FloatArray
    claims: FloatArray
    course: np.ndarray[tuple[int, ...], np.dtype[np.intp]]

    @property
    def freedom(self) -> float:
        return float(len(self.values) - (int(self.course.max()) + 1))

    def by_course(self, x: FloatArray) -> FloatArray:
        """Sums over courses."""
        return np.bincount(self.course, weights=x).astype(np.float64)


def _groups(courses: Sequence[Course], units: Mapping[str, float]) -> dict[str, _Group]:
    """For every parameter the courses that tell its scatter: its own, or those of its like."""
    own: dict[str, list[Course]] = {}
    alike: dict[str, list[Course]] = {}
    for course in courses:
        own.setdefault(course.parameter, []).append(course)
        alike.setdefault(course.like, []).append(course)
    together = {like: _group(members, units) for like, members in alike.items()}
    out = {}
    for name, members in own.items():
        enough = sum(len(course.days) - 1 for course in members) >= _ENOUGH
        out[name] = _group(members, units) if enough else together[members[0].like]
    return out


def _group(courses: Sequence[Course], units: Mapping[str, float]) -> _Group:
    return _Group(
        np.concatenate([course.values / units[course.parameter] for course in courses]),
        np.concatenate([np.maximum(course.deviations / units[course.parameter], 1e-9) for course in courses]),
        np.concatenate([np.full(len(course.days), k, dtype=np.intp) for k, course in enumerate(courses)]),
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    factor: float
    power: float
    likelihood: float


def _fitted(group: _Group, tail: float) -> _Fit:
    """Factor and power by scoring, arms' own values by the weights of Student's distribution."""
    nu = tail
    logs = np.log(group.claims)
    design = np.column_stack([np.ones_like(logs), logs])
    fisher = 2.0 * nu / (nu + 3.0) * design.T @ design + np.diag([1e-9, _CLAIMS])
    start = np.abs(np.diff(group.values))[np.diff(group.course) == 0]
    theta = np.array([np.log(max(float(np.median(start)), 1e-12)), 1.0])
    middle = _medians(group)
    for _ in range(_STEPS):
        sd = np.exp(design @ theta)
        r = (group.values - middle[group.course]) / sd
        u = (nu + 1.0) / (nu + r**2)
        weight = u / sd**2
        total = group.by_course(weight)
        middle = group.by_course(weight * group.values) / total
        r = (group.values - middle[group.course]) / sd
        lever = np.minimum(weight / total[group.course], 0.999)
        score = design.T @ (u * r**2 / (1.0 - lever) - 1.0) - np.array([0.0, _CLAIMS * (theta[1] - 1.0)])
        step = np.clip(np.linalg.solve(fisher, score), -1.0, 1.0)
        theta = theta + step
        theta[1] = np.clip(theta[1], 0.0, 1.5)
        if np.abs(step).max() < 1e-4:
            break
    constant = lgamma((nu + 1.0) / 2.0) - lgamma(nu / 2.0) - 0.5 * np.log(nu * np.pi)
    density = constant - (nu + 1.0) / 2.0 * np.log1p(r**2 / nu) - design @ theta
    likelihood = float(density.sum() - 0.5 * np.log(total).sum() - 0.5 * _CLAIMS * (theta[1] - 1.0) ** 2)
    return _Fit(float(np.exp(theta[0])), float(theta[1]), likelihood)


def _medians(group: _Group) -> FloatArray:
    """Of every course's values."""
    return np.array([np.median(group.values[group.course == k]) for k in range(int(group.course.max()) + 1)])
