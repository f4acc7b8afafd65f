"""What could be wrong with recordings in which all joints move: the same search as in `identify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armid.errors import ArmidError
from armid.estimation.determined import usable_base
from armid.estimation.recording import runs_of
from armid.estimation.run import Run, information_of
from armid.identification.candidates import not_looked_for
from armid.identification.detection import detect
from armid.identification.faults import Fault, bounded_widths
from armid.logs.conditioning import Conditioning, VelocitySource, condition
from armid.logs.log import Channel, Log, matched
from armid.robot.robot import Robot
from armid.sequential.stages import MOVING_TRAVEL, ErrorStructure, Stage, Staging

_TRAINED = 0.7
"""Of every recording; undoing a fault must help on the rest."""

_MOVE_ALL = "record a motion of all joints at once (armid design)"


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
        return not_looked_for(_MOVE_ALL)
    try:
        runs = [run for log in whole for run in _runs(robot, log, settings, moved.get(log.name, 0.0))]
        base, structural = usable_base(runs, information_of(runs))
    except ArmidError as error:
        return not_looked_for(str(error))
    if len(base) < len(structural):
        return not_looked_for(_MOVE_ALL)
    parts = [_parted(run) for run in runs]
    found = detect(
        robot,
        [train for train, _ in parts],
        [rest for _, rest in parts],
        base,
        recorded_velocity=settings.velocity is VelocitySource.MEASURED,
        cutoff_hz=settings.cutoff,
    )
    return bounded_widths(found.faults)


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


def _parted(run: Run) -> tuple[Run, Run]:
    """The first part of a recording and the rest, each with its own stretches of uniform sampling."""
    at = int(_TRAINED * len(run))
    first = tuple((a, min(b, at)) for a, b in run.segments if a < at)
    rest = tuple((max(a, at) - at, b - at) for a, b in run.segments if b > at)
    return replace(run.window(0, at), segments=first), replace(run.window(at, len(run)), segments=rest)
