"""A wrong gear ratio, from what it does to both sensors of a joint: torque is multiplied by it, position divided."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

from armid.estimation.estimate import NORMAL_95
from armid.identification.faults import Answer, Fault
from armid.rows.imperfections import KINDS, Family


def gear_ratio_faults(found: Sequence[Fault]) -> tuple[Fault, ...]:
    """One for every joint whose torque reads too much by as much as its angle reads too little.

    With a ratio of (1 + g) times the true one torque is recorded (1 + g) times too large and the angle as many times too small:
    (1 + gain) (1 + scale) = 1. The two faults themselves decide; this one says what is behind them.

    Args:
        found: faults that were found.
    """
    own = {(fault.kind, fault.joint): fault for fault in found if fault.answer is Answer.FOUND}
    pairs = [
        (fault, own[Family.SCALE.value, joint])
        for (kind, joint), fault in own.items()
        if kind == Family.GAIN.value and (Family.SCALE.value, joint) in own
    ]
    return tuple(_combined(gain, scale) for gain, scale in pairs if _one_cause(gain, scale))


def _one_cause(gain: Fault, scale: Fault) -> bool:
    """Whether the product of both is one, as far as they are known and sensors are ever exact."""
    product = (1.0 + gain.estimate) * (1.0 + scale.estimate)
    doubt = NORMAL_95 * hypot(gain.standard_deviation, scale.standard_deviation)
    return abs(product - 1.0) < doubt + KINDS[Family.GAIN].tolerance / 2.0 and gain.estimate * scale.estimate < 0.0


def _combined(gain: Fault, scale: Fault) -> Fault:
    """The ratio from both, each by how well it is known."""
    from_scale = 1.0 / (1.0 + scale.estimate) - 1.0
    s = scale.standard_deviation / (1.0 + scale.estimate) ** 2
    w = s**2 / (s**2 + gain.standard_deviation**2)
    size = w * gain.estimate + (1.0 - w) * from_scale
    deviation = max(w**0.5 * gain.standard_deviation, abs(gain.estimate - from_scale) / 2.0)
    return Fault(
        kind="gear-ratio",
        joint=gain.joint,
        estimate=size,
        standard_deviation=deviation,
        low=size - NORMAL_95 * deviation,
        high=size + NORMAL_95 * deviation,
        unit="1",
        tolerance=KINDS[Family.SCALE].tolerance,
        answer=Answer.FOUND,
        words=f"gear_ratio of {gain.joint} divided by {1.0 + size:.4g}",
    )
