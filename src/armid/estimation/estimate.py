"""What a fit gives: values with names, units, covariance, status, notes and provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.estimation.fit_record import FitRecord
from armid.identifiability.base import BaseParameters
from armid.information.status import Status
from armid.notes import Note, Severity
from armid.outcome import Listing

_RELATIVE_TO_BEST = 10.0
"""[Halper2024] section 3.2.3: poorly identified when the relative standard deviation exceeds ten times the smallest."""
RELATIVE_LIMIT = 0.15
"""[RWTH2021] and [Kolyubin2017] distrust relative standard deviations above 5 to 15 %."""
NORMAL_95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedParameter:
    """One number that was estimated, as a row of a listing.

    Args:
        name: of the parameter.
        value: in its unit.
        standard_deviation: infinite where nothing determines it.
        low, high: ends of the 95 % interval.
        unit: SI.
    """

    name: str
    value: float
    standard_deviation: float
    low: float
    high: float
    unit: str


def estimated_parameters(
    names: Sequence[str], values: Iterable[float], deviations: Iterable[float], units: Sequence[str]
) -> Listing[EstimatedParameter]:
    """Rows with 95 % intervals."""
    return Listing(
        EstimatedParameter(
            name=name,
            value=float(v),
            standard_deviation=float(d),
            low=float(v - NORMAL_95 * d),
            high=float(v + NORMAL_95 * d),
            unit=unit,
        )
        for name, v, d, unit in zip(names, values, deviations, units, strict=True)
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate:
    """Unregularised (or openly regularised, see `method`) values of base parameters.

    Args:
        base: which combinations were estimated, with the recorded rank decision.
        units: of the base parameters.
        values: shape [r].
        covariance: shape [r, r].
        covariance_kind: how it was obtained (`iid`, `per-channel`, `autocorrelation`, ...).
        sigma: residual standard deviation per channel, in the channel's unit.
        method: the estimator with its settings, in words.
        status: how the fit ended.
        iterations: of the outer iteration; 1 for a direct solve.
        notes: statistical findings.
        provenance: what the method says beside them.
    """

    base: BaseParameters
    units: tuple[str, ...]
    values: FloatArray
    covariance: FloatArray
    covariance_kind: str
    sigma: Mapping[str, float]
    method: str
    status: Status = Status.SOLVED
    iterations: int = 1
    notes: tuple[Note, ...] = ()
    provenance: FitRecord = field(default_factory=FitRecord)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "covariance", read_only(self.covariance))
        object.__setattr__(self, "sigma", MappingProxyType(dict(self.sigma)))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    @cached_property
    def standard_deviations(self) -> FloatArray:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @cached_property
    def relative_standard_deviations(self) -> FloatArray:
        """Sigma / |value| as a fraction; infinite for a value of zero."""
        size = np.abs(self.values)
        return np.divide(self.standard_deviations, size, out=np.full(len(self), np.inf), where=size > 0.0)

    def interval(self, quantile: float = NORMAL_95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of the confidence intervals, shape [r] each; 95 % by default."""
        half = quantile * self.standard_deviations
        return self.values - half, self.values + half

    @cached_property
    def poorly_identified(self) -> Mapping[str, tuple[str, ...]]:
        """For each rule, the parameters it distrusts."""
        rsd = self.relative_standard_deviations
        low, high = self.interval()
        rules = {
            "relative-to-best": rsd > _RELATIVE_TO_BEST * rsd.min(initial=np.inf),
            "relative-limit": rsd > RELATIVE_LIMIT,
            "interval-holds-zero": (low <= 0.0) & (high >= 0.0),
        }
        return {
            rule: tuple(name for name, hit in zip(self.names, hits, strict=True) if hit) for rule, hits in rules.items()
        }

    @property
    def standard(self) -> FloatArray:
        """One of the standard parameter vectors with these base values (dependent ones zero), shape [p]. For prediction only."""
        return self.base.embedding @ self.values

    def with_covariance(self, covariance: FloatArray, kind: str) -> Estimate:
        """The same values with another covariance."""
        return replace(self, covariance=covariance, covariance_kind=kind)

    def with_notes(self, *notes: Note) -> Estimate:
        return replace(self, notes=(*self.notes, *notes))


def identification_notes(estimate: Estimate) -> tuple[Note, ...]:
    """One note per parameter whose interval contains zero or whose relative deviation breaks both published rules."""
    flagged = estimate.poorly_identified
    doubtful = [
        name
        for name in estimate.names
        if name in flagged["interval-holds-zero"]
        or (name in flagged["relative-limit"] and name in flagged["relative-to-best"])
    ]
    rsd = dict(zip(estimate.names, estimate.relative_standard_deviations, strict=True))
    return tuple(
        Note(
            "poorly-identified",
            Severity.INFO,
            f"relative standard deviation {100 * rsd[name]:.0f} %"
            + (", interval contains zero" if name in flagged["interval-holds-zero"] else ""),
            name,
        )
        for name in doubtful
    )


def units_of(base: BaseParameters, standard_units: Mapping[str, str] | npt.ArrayLike) -> tuple[str, ...]:
    """Units of base parameters: those of their leading standard parameters."""
    if isinstance(standard_units, Mapping):
        return tuple(standard_units.get(name, "") for name in base.names)
    units = np.asarray(standard_units, dtype=object)
    return tuple(str(units[i]) for i in base.independent)
