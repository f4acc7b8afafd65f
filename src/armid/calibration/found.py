"""What a fit found, parameter by parameter, and which of them the data can hardly tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from armid.calibration.fit import KinematicFit
from armid.calibration.identifiable import ParameterStatus

_STRONGLY = 0.9
"""Correlation from which on two parameters are listed as hard to tell apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedParameter:
    """One unknown of a calibration.

    Args:
        name: `link3.ty`, `joint3.offset`, `sensor.rx`, ... (docs/conventions.md).
        value: correction to nominal.
        unit: of it.
        status: whether it was fitted, and why not.
        standard_deviation: of the value; infinite where it was held at nominal.
        tolerance: standard deviation that was expected beforehand.
    """

    name: str
    value: float
    unit: str
    status: ParameterStatus
    standard_deviation: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class Correlated:
    """Two fitted parameters that the data can hardly tell apart."""

    a: str
    b: str
    correlation: float


def found_parameters(fit: KinematicFit) -> Iterator[CalibratedParameter]:
    """Every parameter with value, unit, uncertainty, tolerance and what became of it."""
    sigma = np.sqrt(np.diag(fit.after.covariance))
    for i, (p, status) in enumerate(zip(fit.model.parameters, fit.after.selection.status, strict=True)):
        yield CalibratedParameter(
            name=p.name,
            value=float(fit.after.values[i]),
            unit=p.unit,
            status=status,
            standard_deviation=float(sigma[i]) if fit.after.selection.kept[i] else float("inf"),
            tolerance=p.tolerance,
        )


def strong_correlations(fit: KinematicFit) -> list[Correlated]:
    """Pairs of fitted parameters that the data can hardly tell apart, strongest first."""
    kept = np.flatnonzero(fit.after.selection.kept)
    C = fit.after.covariance[np.ix_(kept, kept)]
    d = np.sqrt(np.diag(C))
    R = C / np.outer(d, d)
    pairs = [(i, j) for i, j in np.argwhere(np.triu(np.abs(R), 1) > _STRONGLY)]
    pairs.sort(key=lambda ij: -abs(R[ij[0], ij[1]]))
    return [Correlated(fit.model.names[kept[i]], fit.model.names[kept[j]], float(R[i, j])) for i, j in pairs]
