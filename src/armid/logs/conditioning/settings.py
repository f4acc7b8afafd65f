"""How a log is conditioned; every automatic choice can be overridden."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from armid.errors import InputError
from armid.signals.differentiate import Differentiator
from armid.signals.filters import FilterKind, LowPass
from armid.words import number


class VelocitySource(StrEnum):
    """Where velocity comes from."""

    POSITION = "position"
    """Derived from position, like the acceleration: consistent with it by construction."""
    MEASURED = "measured"
    """The recorded velocity, low-passed; the acceleration is its derivative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditioning:
    """From a log to samples.

    Args:
        cutoff: of the zero-phase low-pass on the motion [Hz]; None: chosen from the spectrum; inf: no filter.
        torque_cutoff: of the low-pass on torque [Hz]; None: the same, so that both sides of the model see one filter.
        order: of the filter, which runs forward and backward (so it acts twice); second-order sections.
        filter: kind of low-pass.
        differentiator: how derivatives are taken.
        velocity: derived or measured.
        rate: of the samples [Hz]; None: `OVERSAMPLING` times the cut-off; inf: the rate of the log.
        period: of a motion that was repeated [s]; the repetitions are averaged. None: no averaging.
        average: the repetitions of every recording are averaged over a period of its own, which is found in its motion.
        torque_delay: how late torque is against the motion [s]; it is moved earlier by this much.
        trim: cut from both ends of every segment, an averaged period too [s]; None: the filter's transient, or a twentieth of the
            segment up to half a second, and nothing of an averaged period.
        gap: a step in time longer than this many ordinary steps splits the log.
        accept: codes of errors the user has looked at and accepts.
    """

    cutoff: float | None = None
    torque_cutoff: float | None = None
    order: int = 4
    filter: FilterKind = FilterKind.BUTTERWORTH
    differentiator: Differentiator = Differentiator.CENTRAL_8
    velocity: VelocitySource = VelocitySource.POSITION
    rate: float | None = None
    period: float | None = None
    average: bool = False
    torque_delay: float = 0.0
    trim: float | None = None
    gap: float = 10.0
    accept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("cutoff", "torque_cutoff", "rate", "period", "gap"):
            value = getattr(self, name)
            if value is not None and not number(name, value) > 0.0:
                raise InputError(name, f"{value}", "expected a positive number")
        if self.trim is not None and not self.trim >= 0.0:
            raise InputError("trim", f"{self.trim} s", "expected zero or more")
        if not abs(self.torque_delay) < _MAX_DELAY:
            raise InputError("torque_delay", f"{self.torque_delay} s", f"expected less than {_MAX_DELAY} s either way")
        if not 1 <= self.order <= 40:
            raise InputError("order", f"{self.order}", "expected 1 to 40")
        if self.differentiator is Differentiator.SPECTRAL and self.period is None and not self.average:
            raise InputError(
                "differentiator", "spectral differentiation of a motion without a period", "give the period"
            )

    def low_pass(self, rate: float, cutoff: float | None = None) -> LowPass:
        """The filter on a signal of some rate [Hz], of another cut-off than that of the motion where one is given [Hz]."""
        wanted = self.cutoff if cutoff is None else cutoff
        return _filter(rate, float("inf") if wanted is None else wanted, self.order, self.filter)


@lru_cache(maxsize=256)
def _filter(rate: float, cutoff: float, order: int, kind: FilterKind) -> LowPass:
    """One filter for all windows of a log: it keeps its sections and how long it rings."""
    return LowPass(rate, cutoff, order, kind)


OVERSAMPLING = 8.0
"""Output samples per period of the cut-off. Two would hold the motion; products of it and friction reversals reach further."""

_MAX_DELAY = 1.0
"""[s] Two clocks further apart than this do not belong to one recording."""
