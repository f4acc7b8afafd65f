"""From a recording to samples in the words of a work: filters, averaging and differences under one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from armid.errors import UnknownNameError
from armid.logs.conditioning.settings import Conditioning
from armid.signals.differentiate import Differentiator
from armid.signals.filters import FilterKind
from armid.words import choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Processing:
    """How recordings are processed; None where the default decides.

    Args:
        cutoff_hz: of the low-pass on the motion; infinite for none.
        torque_cutoff_hz: of that on torque; that of the motion when it is None.
        filter: kind of low-pass; it runs forward and backward.
        order: of the low-pass, one way.
        differentiator: how velocity and acceleration are derived.
        average: whether the repetitions of every recording are averaged, over the period found in it.
        period_s: of the repetitions, for all recordings, where it is known.
    """

    cutoff_hz: float | None = None
    torque_cutoff_hz: float | None = None
    filter: FilterKind | None = None
    order: int | None = None
    differentiator: Differentiator | None = None
    average: bool = False
    period_s: float | None = None

    def conditioning(self, **others: object) -> Conditioning:
        """The settings of conditioning; further ones by keyword."""
        given = {
            "cutoff": self.cutoff_hz,
            "torque_cutoff": self.torque_cutoff_hz,
            "filter": self.filter,
            "order": self.order,
            "differentiator": self.differentiator,
            "period": self.period_s,
        }
        stated = {name: value for name, value in given.items() if value is not None}
        return Conditioning(average=self.average and self.period_s is None, **stated, **others)  # type: ignore[arg-type]


PROCESSINGS: Mapping[str, Processing] = {
    "default": Processing(),
    "halper2024": Processing(
        cutoff_hz=3.0,
        torque_cutoff_hz=3.5,
        filter=FilterKind.BUTTERWORTH,
        order=20,
        differentiator=Differentiator.CENTRAL,
        average=True,
    ),
    "khosla1985": Processing(cutoff_hz=float("inf"), differentiator=Differentiator.LEAST_SQUARES),
}
"""By name. [Halper2024] section 3.2: mean of the repetitions, zero-phase Butterworth of order 20 at 3 Hz for positions and 3.5 Hz
for torque, central differences. [Khosla1985] section 5: no filter, slopes of least-squares parabolas through five points."""


def processing_of(
    name: str | Processing | None = None,
    *,
    cutoff_hz: float | None = None,
    torque_cutoff_hz: float | None = None,
    filter: str | FilterKind | None = None,
    order: int | None = None,
    differentiator: str | Differentiator | None = None,
    average: bool = False,
    period_s: float | None = None,
) -> Processing:
    """A named processing with whatever else is said changed in it.

    Raises:
        UnknownNameError: a word that does not exist.
    """
    if isinstance(name, str) and name not in PROCESSINGS:
        raise UnknownNameError("processing", name, PROCESSINGS)
    start = name if isinstance(name, Processing) else PROCESSINGS[name or "default"]
    said = {
        "cutoff_hz": cutoff_hz,
        "torque_cutoff_hz": torque_cutoff_hz,
        "filter": None if filter is None else choice("filter", filter, FilterKind),
        "order": order,
        "differentiator": None if differentiator is None else choice("differentiator", differentiator, Differentiator),
        "average": average or None,
        "period_s": period_s,
    }
    return replace(start, **{key: value for key, value in said.items() if value is not None})  # type: ignore[arg-type]
