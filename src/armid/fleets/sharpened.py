"""Courses of parameters that a motion tells apart badly, each given the others.

Viscous and Coulomb friction of a joint may be told by a motion in their sum much better than each: their errors go against each
other. Changes of one of them are seen far better when the others are held at what they are over all dates of the arm. With the
precision P of a joint's parameters on a date, and their deviations d from the medians over dates, parameter k given the others
is `d_k + P_k,others d_others / P_kk`, with the variance `1 / P_kk`. P rests on the scatter that the fleet shows and on the
correlations that the visit's estimate claims, as far as the fleet bears them out: they are pulled towards none by the share that
makes what the fleet shows likeliest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.fleets.course import Course, courses_of, visits_by_arm
from armid.fleets.scatter import Scatter, scatters
from armid.fleets.visit import VisitResult

_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
"""By which claimed correlations are pulled towards none."""
_TAIL = 10.0
"""Degrees of freedom of the distribution by which the share is chosen: worn arms and bad visits count little."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Part:
    """A joint of an arm over its dates.

    Args:
        courses: of its parameters.
        middle: medians of their values, shape [k].
        apart: values less these, shape [n_dates, k].
        sizes: their scatter by the fleet, shape [n_dates, k].
        correlations: as claimed, shape [n_dates, k, k].
    """

    courses: Sequence[Course]
    middle: FloatArray
    apart: FloatArray
    sizes: FloatArray
    correlations: FloatArray

    def pulled(self, share: float) -> FloatArray:
        """Correlations with a share of their claim taken off."""
        return (1.0 - share) * self.correlations + share * np.eye(len(self.middle))

    def likelihood(self, share: float) -> float:
        """Logarithm, but for what does not depend on the share."""
        R = self.pulled(share)
        z = self.apart / self.sizes
        square = np.einsum("ti,ti->t", z, np.linalg.solve(R, z[..., np.newaxis])[..., 0])
        size = len(self.middle)
        return float(np.sum(-0.5 * np.linalg.slogdet(R)[1] - 0.5 * (_TAIL + size) * np.log1p(square / _TAIL)))

    def given_the_others(self, share: float) -> list[Course]:
        """Its courses, each given the others."""
        P = np.linalg.inv(self.pulled(share)) / (self.sizes[:, :, np.newaxis] * self.sizes[:, np.newaxis, :])
        variance = 1.0 / np.diagonal(P, axis1=1, axis2=2)
        values = self.middle + variance * np.einsum("tij,tj->ti", P, self.apart)
        return [
            replace(course, values=values[:, k].copy(), deviations=np.sqrt(variance[:, k]))
            for k, course in enumerate(self.courses)
        ]


def sharpened_courses(done: Sequence[VisitResult], names: tuple[str, ...]) -> list[Course]:
    """Every drive's and payload's parameter of every arm over its dates, given the others of its joint."""
    plain = [course for course in courses_of(done, names) if len(course.days) >= 2]
    if not plain:
        return []
    scatter = scatters(plain, plain)
    visits = visits_by_arm(done, names)
    grouped: dict[tuple[str, str], list[Course]] = {}
    for course in plain:
        grouped.setdefault((course.arm, course.part), []).append(course)
    parts = [
        _part(members, visits[arm], [names.index(course.parameter) for course in members], scatter)
        for (arm, _), members in grouped.items()
    ]
    share = max(_SHARES, key=lambda each: sum(part.likelihood(each) for part in parts))
    return [course for part in parts for course in part.given_the_others(share)]


def _part(
    courses: Sequence[Course], visits: Sequence[VisitResult], place: Sequence[int], scatter: Mapping[str, Scatter]
) -> _Part:
    values = np.column_stack([course.values for course in courses])
    claimed = np.array([one.covariance[np.ix_(place, place)] for one in visits])
    s = np.sqrt(np.maximum(np.diagonal(claimed, axis1=1, axis2=2), 1e-300))
    return _Part(
        courses=courses,
        middle=np.median(values, axis=0),
        apart=values - np.median(values, axis=0),
        sizes=np.column_stack([scatter[course.parameter].deviations(course.deviations) for course in courses]),
        correlations=claimed / (s[:, :, np.newaxis] * s[:, np.newaxis, :]),
    )
