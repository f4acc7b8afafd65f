"""Several identifications of one arm side by side: do they agree within their own uncertainty?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, isfinite, nan

from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.identification.result import Result

SAME_COEFFICIENT = 1e-6
"""Relative difference up to which two coefficients of a combination are the same (a calibrated arm moves them a little)."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One base parameter in several results.

    Args:
        name, unit: of the parameter.
        values, standard_deviations: one per result; NaN where it is not estimated, or stands for another combination.
        differences: from the first result in standard deviations of the difference; NaN where one of them is missing.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    standard_deviations: tuple[float, ...]
    differences: tuple[float, ...]


def agreement(results: Sequence[Result]) -> tuple[Agreement, ...]:
    """Base parameters of several results, those of the first in its order and then what only others have.

    A difference d of independent estimates with standard deviations s, t is d / sqrt(s^2 + t^2) standard deviations.

    Args:
        results: at least two, of the same arm; the first is what the others are compared with.

    Raises:
        InputError: fewer than two, or nothing in common.
    """
    if len(results) < 2:
        raise InputError("results", f"{len(results)} given", "at least two are needed for a comparison")
    names = tuple(dict.fromkeys(name for result in results for name in result.estimate.names))
    rows = tuple(row(name, [result.estimate for result in results]) for name in names)
    if not any(isfinite(d) for r in rows for d in r.differences[1:]):
        raise InputError("results", "they have no base parameter in common", "compare identifications of the same arm")
    return rows


def row(name: str, estimates: Sequence[Estimate]) -> Agreement:
    """One parameter; a result whose base parameter of that name means another combination counts as missing."""
    owner = next(e for e in estimates if name in e.names)
    terms = owner.base.terms(name)
    values, deviations = [], []
    for e in estimates:
        found = name in e.names and same_terms(terms, e.base.terms(name))
        k = e.names.index(name) if found else -1
        values.append(float(e.values[k]) if found else nan)
        deviations.append(float(e.standard_deviations[k]) if found else nan)
    differences = [
        (v - values[0]) / s if (s := hypot(d, deviations[0])) > 0.0 else nan
        for v, d in zip(values, deviations, strict=True)
    ]
    return Agreement(
        name=name,
        unit=owner.units[owner.names.index(name)],
        values=tuple(values),
        standard_deviations=tuple(deviations),
        differences=tuple(differences),
    )


def same_terms(a: dict[str, float], b: dict[str, float]) -> bool:
    """Whether two combinations of standard parameters are the same."""
    return a.keys() == b.keys() and all(abs(a[k] - b[k]) <= SAME_COEFFICIENT * max(1.0, abs(a[k])) for k in a)
