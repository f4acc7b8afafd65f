"""Friction that drives: an estimate below zero by more than its uncertainty allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.estimation.estimate import Estimate
from armid.outcome import Check
from armid.parameters.space import ParameterSpace

_OPPOSING = ("viscous", "coulomb", "motor_viscous", "motor_coulomb")
"""Quantities of a joint that oppose its motion whatever the drive: never negative."""

_SURE = 4.0
"""Standard deviations below zero: of some dozens of parameters none is there by chance."""


_ROUND_OFF = 1e-9
"""Of the largest parameter: exact data leave deviations as small as round-off, which is no friction of either sign."""


@dataclass(frozen=True, slots=True)
class FrictionSign:
    """The friction parameter furthest below zero.

    Args:
        name: of the parameter.
        value: of it, in its unit.
        score: value over standard deviation; zero when no friction was estimated.
    """

    name: str
    value: float
    score: float

    def check(self) -> Check:
        """Whether friction opposes motion, as friction does."""
        text = (
            f"{self.name} is {self.value:.3g}, {-self.score:.1f} standard deviations below zero: friction cannot drive; torque "
            "has the wrong sign or is late, or something pushed"
        )
        return Check(
            code="friction-opposes",
            passed=self.score >= -_SURE,
            value=self.score,
            limit=-_SURE,
            message=text if self.name else "no friction is below zero",
            subject=self.name,
        )


def friction_sign(estimate: Estimate, space: ParameterSpace) -> FrictionSign:
    """The friction parameter that is furthest below zero, in standard deviations; among those identified by themselves."""
    opposing = {parameter.name for parameter in space.parameters if parameter.quantity in _OPPOSING}
    worst = FrictionSign("", 0.0, 0.0)
    smallest = _ROUND_OFF * float(np.abs(estimate.values).max(initial=0.0))
    rows = zip(estimate.names, estimate.values, estimate.standard_deviations, strict=True)
    for name, value, deviation in rows:
        if name not in opposing or len(estimate.base.terms(name)) > 1 or not value < 0.0:
            continue
        score = float(value / max(deviation, smallest)) if value < -smallest else 0.0
        if score < worst.score:
            worst = FrictionSign(name, float(value), score)
    return worst
