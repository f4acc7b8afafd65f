"""Records of what has changed on an arm while it runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.online.watched import WatchLayout
from armid.rows.imperfections import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class ImperfectionDrift:
    """One imperfection against the arm it started from.

    Args:
        family: of it; an offset of torque is a `drift`.
        subject: channel or joint; empty for the whole arm.
        part: tells several of one subject apart.
        value, deviation: present size beyond what the result knew, with its standard deviation [unit].
        unit: SI.
        tolerance: ordinary size [unit].
    """

    family: Family
    subject: str
    part: str
    value: float
    deviation: float
    unit: str
    tolerance: float

    def as_dict(self) -> dict[str, float | str]:
        return {
            "family": self.family.value,
            "joint": self.subject,
            "part": self.part,
            "value": self.value,
            "deviation": self.deviation,
            "unit": self.unit,
            "tolerance": self.tolerance,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Something that has just been found.

    Args:
        family: of it; None for a load.
        subject: channel or joint; empty for the whole arm.
        text: in words.
        decisive: whether the stream must not be used as it is.
    """

    family: Family | None
    subject: str
    text: str
    decisive: bool = False

    @property
    def code(self) -> str:
        """Of its note."""
        match self.family:
            case None:
                return "load-changed"
            case Family.FRICTION_DRIFT:
                return "friction-drift"
            case _:
                return "sensor-drift"


@dataclass(frozen=True, eq=False, slots=True)
class Sizes:
    """All states at one time.

    Args:
        values: in tolerances, shape [N].
        covariance: theirs, shape [N, N].
    """

    values: FloatArray
    covariance: FloatArray

    @property
    def deviations(self) -> FloatArray:
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    def records(self, layout: WatchLayout) -> tuple[ImperfectionDrift, ...]:
        """In their own units, what the arm carries left out."""
        return tuple(
            ImperfectionDrift(
                family=state.family,
                subject=state.subject,
                part=state.part,
                value=float(value * state.tolerance),
                deviation=float(deviation * state.tolerance),
                unit=state.unit,
                tolerance=state.tolerance,
            )
            for state, value, deviation in zip(layout.states, self.values, self.deviations, strict=True)
            if state.family is not None
        )
