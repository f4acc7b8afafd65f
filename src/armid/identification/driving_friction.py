"""Condition of the gate: friction takes energy at every speed that was driven.

Friction of a joint is coulomb + viscous v at the speed v > 0. It is linear in v, so that its ends decide: the beginning of motion
and the largest speed of the training motion. Below zero by more than its uncertainty it drives the joint, which no friction does:
torque has the wrong sign, or is late against the motion, or somebody pushed. A negative slope alone is no fault where
Coulomb friction makes up for it: friction that falls with speed exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.estimation.friction_sign import FrictionSign
from armid.identification.motion import JointMotion
from armid.outcome import Check
from armid.parameters.effects import Effects

_SIDES = ("", "motor_")
"""Prefix of the friction behind the gears, or of all of it, and of that before them."""

_ROUND_OFF = 1e-9
"""Of the largest parameter: exact data leave deviations as small as round-off."""


def driving_friction_checks(
    joints: Sequence[str], effects: Effects, estimate: Estimate, motions: Sequence[JointMotion]
) -> tuple[Check, ...]:
    """Whether friction opposes the motion of every joint; empty for shapes of friction that are no line over speed.

    Args:
        joints: names.
        effects: what was estimated.
        estimate: unconstrained; bodies that are possible never have such friction.
        motions: the training motion, whose largest speeds count.
    """
    if effects.smooth or effects.load or effects.coupled:
        return ()
    speeds = {motion.name: motion.speed for motion in motions if np.isfinite(motion.speed)}
    worst = FrictionSign("", 0.0, 0.0)
    for place, joint in enumerate(joints, start=1):
        for side in _SIDES:
            for sign in _ends(place, joint, side, estimate, speeds):
                worst = min(worst, sign, key=lambda one: one.score)
    return (worst.check(),)


def _ends(place: int, joint: str, side: str, estimate: Estimate, speeds: Mapping[str, float]) -> list[FrictionSign]:
    """Friction of one joint on one side when it begins to move and at its largest speed.

    Args:
        place: of the joint, from 1: parameters are named by it, whatever the joint's own name.
        joint: its name, for messages.
        side: prefix of the friction's name.
        estimate, speeds: see above.
    """
    coulomb, slope, hump = (f"joint{place}.{side}{quantity}" for quantity in ("coulomb", "viscous", "stribeck"))
    alone = {name: k for k, name in enumerate(estimate.names) if len(estimate.base.terms(name)) == 1}
    out = []
    if coulomb in alone:
        out.append(
            _friction(
                f"{joint}.{side}coulomb", {alone[name]: 1.0 for name in (coulomb, hump) if name in alone}, estimate
            )
        )
    if slope in alone and (speed := speeds.get(joint, 0.0)) > 0.0:
        fast = {alone[slope]: speed} | ({alone[coulomb]: 1.0} if coulomb in alone else {})
        out.append(_friction(f"{joint}.{side}viscous at the largest speed", fast, estimate))
    return out


def _friction(name: str, shares: Mapping[int, float], estimate: Estimate) -> FrictionSign:
    """A sum of friction parameters in standard deviations."""
    weights: FloatArray = np.zeros(len(estimate))
    weights[list(shares)] = list(shares.values())
    value = float(weights @ estimate.values)
    smallest = _ROUND_OFF * float(np.abs(estimate.values).max(initial=0.0))
    deviation = max(float(weights @ estimate.covariance @ weights), 0.0) ** 0.5
    return FrictionSign(name, value, value / max(deviation, smallest) if value < -smallest else 0.0)
