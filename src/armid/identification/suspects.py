"""What could be wrong with a recording, asked before anything is identified from it: the table of `armid check --faults`."""

from __future__ import annotations

from armid.errors import ArmidError
from armid.identification.faults import Fault
from armid.identification.pipeline import run_identification
from armid.identification.settings import Identification
from armid.logs.conditioning import Conditioning
from armid.logs.log import Log
from armid.notes import Severity
from armid.parameters.effects import DEFAULT_FRICTION, TorqueSide, effects_of
from armid.robot.robot import Robot


def suspects_of(robot: Robot, log: Log, *, torques: TorqueSide = TorqueSide.LINK) -> tuple[Fault, ...]:
    """Every fault that is looked for, with its answer; errors of the log do not keep it from being looked at.

    Args:
        robot: as described.
        log: checked.
        torques: where torque was measured.

    Raises:
        ArmidError: nothing can be estimated from this log.
    """
    accepted = tuple(note.code for note in log.notes if note.severity is Severity.ERROR)
    settings = Identification(
        effects=effects_of(DEFAULT_FRICTION, torques=torques),
        conditioning=Conditioning(accept=accepted),
        sensitivity=False,
    )
    return run_identification(robot, [log], [], settings).suspects


def suspects_or_reason(
    robot: Robot, log: Log, *, torques: TorqueSide = TorqueSide.LINK
) -> tuple[tuple[Fault, ...], str]:
    """The same, or why nothing can be said."""
    try:
        return suspects_of(robot, log, torques=torques), ""
    except ArmidError as error:
        return (), f"{log.name}: {error}"
