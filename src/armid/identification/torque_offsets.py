"""Constant torque of a joint that no body makes: friction that differs by direction, a preload, or a sensor off its zero.

A fit separates it from the bodies, holds it as a parameter, and leaves no error behind; but which of these it is a recording
cannot tell, and a sensor that is set to zero once more, or a file without offsets, has another one. So it is bounded or listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from armid.estimation.estimate import NORMAL_95, Estimate
from armid.identification.faults import Answer, Fault
from armid.identification.motion import JointMotion
from armid.identification.thresholds import FAULT_EXCLUDED
from armid.robot.robot import JointKind, Robot
from armid.rows.imperfections import KINDS, Family

KIND = "torque offset"

_EXPERIMENT = (
    "compare its torque with no load and brakes on, or held still from above and from below: a sensor off its zero reads this "
    "much at rest too, friction does not"
)


def offset_faults(robot: Robot, estimate: Estimate, motions: Sequence[JointMotion]) -> tuple[Fault, ...]:
    """One answer for every joint whose torque has an offset of its own; one for the arm where none was estimated.

    Args:
        robot: whose joints they are.
        estimate: unconstrained.
        motions: the training motion: a twentieth of a joint's torque is ordinary, as of a drift.
    """
    if not any(name.endswith(".offset") for name in estimate.names):
        return (Fault(kind=KIND, experiment="estimate it with the friction (--friction viscous,coulomb,offset)"),)
    torques = {motion.name: motion.torque_moving for motion in motions if isfinite(motion.torque_moving)}
    alone = {name: k for k, name in enumerate(estimate.names) if len(estimate.base.terms(name)) == 1}
    named = ((joint, f"joint{place}.offset") for place, joint in enumerate(robot.joints, start=1))
    return tuple(
        _fault(joint.name, joint.kind, estimate, alone[key], torques)
        for joint, key in named
        if key in alone and joint.name in torques
    )


def _fault(name: str, kind: JointKind, estimate: Estimate, k: int, torques: Mapping[str, float]) -> Fault:
    size, deviation = float(estimate.values[k]), float(estimate.standard_deviations[k])
    tolerance, half = KINDS[Family.DRIFT].tolerance * torques[name], NORMAL_95 * deviation
    open_ = abs(size) - half > tolerance or abs(size) + half > FAULT_EXCLUDED.value * tolerance
    return Fault(
        kind=KIND,
        joint=name,
        estimate=size,
        standard_deviation=deviation,
        low=size - half,
        high=size + half,
        unit="N" if kind is JointKind.PRISMATIC else "N m",
        tolerance=tolerance,
        answer=Answer.UNDECIDABLE if open_ else Answer.EXCLUDED,
        experiment=_EXPERIMENT if open_ else "",
    )
