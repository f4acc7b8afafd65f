"""What a way of processing makes of a recording, for people to look at before anything is fitted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from armid.errors import InputError
from armid.logs.conditioning.settings import Conditioning
from armid.logs.recording import Recording
from armid.page import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessedLog:
    """A recording after filters, averaging and differences.

    Args:
        log: its name.
        cutoff_hz, torque_cutoff_hz: of the low-pass on motion and torque; None for none.
        filter, order: kind and order of it.
        differentiator: of positions.
        rate_hz: of the samples.
        samples: how many there are.
        period_s: of repetitions that were averaged; None when none were.
        repetitions: how many.
        joints: names.
        taken_off: root mean square of the torque that the low-pass took off, per joint [N m or N].
        scatter: standard deviation of one repetition's torque about their mean, per joint [N m or N]; None without averaging.
    """

    log: str
    cutoff_hz: float | None
    torque_cutoff_hz: float | None
    filter: str
    order: int
    differentiator: str
    rate_hz: float
    samples: int
    period_s: float | None
    repetitions: int
    joints: tuple[str, ...]
    taken_off: tuple[float, ...]
    scatter: tuple[float, ...] | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def table(self) -> Table:
        """One row per joint."""
        cutoffs = f"{_hertz(self.cutoff_hz)} for positions and {_hertz(self.torque_cutoff_hz)} for torque"
        how = f"{self.filter} of order {self.order}, {cutoffs}"
        mean = f"mean of {self.repetitions} repetitions of {self.period_s:.6g} s" if self.period_s else "not averaged"
        rows = tuple(
            (name, f"{off:.3g}", "-" if self.scatter is None else f"{self.scatter[j]:.3g}")
            for j, (name, off) in enumerate(zip(self.joints, self.taken_off, strict=True))
        )
        caption = (
            f"{self.log} processed: {mean}; {how}; {self.differentiator} differences; "
            f"{self.samples} samples at {self.rate_hz:.4g} Hz. Torque in N m or N."
        )
        return Table(("joint", "taken off by the filter", "scatter between repetitions"), rows, caption=caption)


def processed_log(recording: Recording, settings: Conditioning) -> ProcessedLog:
    """A recording processed as identify would.

    Raises:
        InputError: nothing to process, no torque, or nothing that repeats itself although its mean was asked for.
    """
    own = recording.repeated() if settings.average else recording
    samples = own.condition(settings)
    if not samples.torques:
        raise InputError(recording.name, "no torque was recorded", "check shows what there is")
    channel = next(iter(samples.torques))
    resolved = own.resolved(settings)
    found = own.repetition() if settings.average else None
    period = found.period if found is not None else settings.period
    count = 1 if period is None else max(1, int(own.duration / period + 0.02))
    variance = samples.variances.get(channel)
    return ProcessedLog(
        log=recording.name,
        cutoff_hz=_finite(resolved.cutoff),
        torque_cutoff_hz=_finite(resolved.torque_cutoff),
        filter=resolved.filter.value,
        order=resolved.order,
        differentiator=resolved.differentiator.value,
        rate_hz=samples.rate,
        samples=len(samples),
        period_s=period if count > 1 else None,
        repetitions=count,
        joints=recording.joints,
        taken_off=_rms(samples.raw_torques[channel] - samples.torques[channel]),
        scatter=None if variance is None else tuple(float(x) for x in np.sqrt(variance.mean(axis=0) * count)),
    )


def _rms(values: Any) -> tuple[float, ...]:
    return tuple(float(x) for x in np.sqrt((values**2).mean(axis=0)))


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _hertz(value: float | None) -> str:
    return "no cut-off" if value is None else f"{value:g} Hz"
