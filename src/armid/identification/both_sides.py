"""What could be wrong when torque is measured on both sides of the drives: each side is looked at by itself.

The rows of both sides share the bodies, and what one side alone shows of a sensor it shows beside free bodies as well. So faults
are looked for as if only the one side had been recorded, and then on the other. What concerns the motion or the description (an
encoder, the clock, the base, a length) is answered by the side that is surer of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from armid.identification.candidates import not_looked_for
from armid.identification.data import Data
from armid.identification.faults import Answer, Fault
from armid.identification.gains import DriveGains
from armid.identification.prepare import prepared
from armid.identification.settings import Identification
from armid.logs.log import Channel
from armid.parameters.effects import Effects, TorqueSide
from armid.robot.robot import Robot
from armid.rows.imperfections import Family

_OF_MOTION = (Family.ZERO, Family.SCALE, Family.CLOCK, Family.TILT, Family.LENGTH)
"""Families that both sides feel alike."""

_MOTOR = "motor side"
"""Of what all drives have in common on that side."""

Suspicion = Callable[[Data, Identification], tuple[Fault, ...]]
"""What could be wrong with recordings of one side."""


def faults_of_both_sides(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None, suspicion: Suspicion
) -> tuple[Fault, ...]:
    """Answers of the link side, then of the motor side.

    Args:
        robot: as the runs have it.
        data: of both sides.
        settings: of the identification.
        gains: of currents; without a side of its own to be looked at, because a weighed payload has set them for both.
        suspicion: how one side is looked at.
    """
    link = suspicion(*_one_side(robot, data, settings, TorqueSide.LINK))
    if gains is not None or Channel.MOTOR_TORQUE not in data.recordings[0][0]:
        others = not_looked_for("give drive gains in the mapping, and identify from the motor side (--torques motor)")
        return (*link, *(_on_motor(fault) for fault in others if not _of_motion(fault)))
    motor = suspicion(*_one_side(robot, data, settings, TorqueSide.MOTOR))
    return merged(link, motor)


def merged(link: Sequence[Fault], motor: Sequence[Fault]) -> tuple[Fault, ...]:
    """Every torque by itself, and of what both sides feel alike the surer answer."""
    again = {fault.name: fault for fault in motor if _of_motion(fault)}
    first = (min((fault, again.get(fault.name, fault)), key=_unsure) if _of_motion(fault) else fault for fault in link)
    return (*first, *(_on_motor(fault) for fault in motor if not _of_motion(fault)))


def _one_side(robot: Robot, data: Data, settings: Identification, side: TorqueSide) -> tuple[Data, Identification]:
    """Recordings conditioned as those of both sides, with the rows of one."""
    effects = _effects_of(settings.effects, side)
    own = replace(
        settings,
        effects=effects,
        conditioning=data.conditioning,
        velocity=data.conditioning.velocity,
        correct=False,
        prior=None,
    )
    return prepared(robot, *data.recordings, own, data.workers), own


def _effects_of(effects: Effects, side: TorqueSide) -> Effects:
    """Of one side: rotors are felt before the gears."""
    return replace(effects, torques=side, rotor_inertia=effects.rotor_inertia and side is TorqueSide.MOTOR)


def _of_motion(fault: Fault) -> bool:
    return fault.kind.split(" ")[0] in [family.value for family in _OF_MOTION]


def _unsure(fault: Fault) -> tuple[bool, float]:
    return fault.answer is not Answer.FOUND, fault.standard_deviation


def _on_motor(fault: Fault) -> Fault:
    return replace(fault, joint=_MOTOR if fault.joint is None else f"{fault.joint}:motor")
