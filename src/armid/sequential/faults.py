"""What could be wrong with recordings in which all joints move: the same search as in `identify`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.errors import ArmidError
from armid.estimation.recording import runs_of
from armid.estimation.run import Run
from armid.identification.candidates import not_looked_for
from armid.identification.faults import Fault
from armid.identification.faults_of_runs import MOVE_ALL, faults_of_runs
from armid.logs.conditioning import Conditioning, VelocitySource, condition
from armid.logs.log import Channel, Log, matched
from armid.robot.robot import Robot
from armid.sequential.stages import MOVING_TRAVEL, ErrorStructure, Stage, Staging


def stage_faults(robot: Robot, logs: Sequence[Log], stages: Sequence[Stage], settings: Staging) -> tuple[Fault, ...]:
    """Every fault that `identify` looks for, with its answer; a motion with locked joints decides none.

    Args:
        robot: the arm.
        logs: of the stages.
        stages: with the shift of torque that was taken out of each recording.
        settings: of the stages.
    """
    moved = {stage.pairing.log: stage.pairing.taken_out for stage in stages if stage.pairing is not None}
    whole = [matched(log, robot) for log in logs if not _locked(log, stages)]
    if not whole or settings.as_recorded or settings.structure is ErrorStructure.OUTPUT:
        return not_looked_for(MOVE_ALL)
    try:
        runs = [run for log in whole for run in _runs(robot, log, settings, moved.get(log.name, 0.0))]
    except ArmidError as error:
        return not_looked_for(str(error))
    measured = settings.velocity is VelocitySource.MEASURED
    return faults_of_runs(robot, runs, recorded_velocity=measured, cutoff_hz=settings.cutoff)


def _locked(log: Log, stages: Sequence[Stage]) -> bool:
    """Whether a joint stood still in a recording."""
    travel = np.ptp(np.nan_to_num(np.asarray(log[Channel.POSITION])), axis=0)
    return bool(travel.min() < MOVING_TRAVEL) or all(stage.locked for stage in stages)


def _runs(robot: Robot, log: Log, settings: Staging, delay: float) -> tuple[Run, ...]:
    accepted = tuple({*settings.accept, *(note.code for note in log.notes)})
    conditioning = Conditioning(
        cutoff=settings.cutoff,
        velocity=settings.velocity,
        torque_delay=delay if settings.torque_delay is None else settings.torque_delay,
        accept=accepted,
    )
    return runs_of(condition(log, robot, conditioning), robot, settings.effects)
