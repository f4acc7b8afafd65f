"""Pieces of the study that a worker does: a search for a motion, and the recordings of one motion identified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armid.arrays import FloatArray
from armid.identifiability.base import BaseParameters
from armid.parameters.effects import Effects
from armid.robot.robot import Robot
from armid.studies.kinematics.comparison import StudySettings
from armid.studies.kinematics.estimates import Belief, RunEstimate, identify_run
from armid.studies.kinematics.motions import Room, StudyMotion, optimised_motion
from armid.studies.kinematics.recordings import carry_out, record_runs
from armid.unfinished import UnfinishedWork


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchTask:
    """A search for an optimised motion: see `optimised_motion`."""

    room: Room
    seconds: float
    starts: int
    harmonics: int
    seed: int
    name: str


def search_motion(task: SearchTask, kept: UnfinishedWork | None = None) -> StudyMotion:
    """The motion that a search ends in."""
    return optimised_motion(
        task.room,
        task.seconds,
        starts=task.starts,
        harmonics=task.harmonics,
        seed=task.seed,
        kept=kept,
        name=task.name,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class MotionTask:
    """Recordings of one motion to be made and identified.

    Args:
        robot, specimen: as described, and as it really is.
        payloads: what the runs carry.
        settings: of the study.
        beliefs, base, effects: what is identified, see `identify_run`.
        motion: that is carried out.
        place: kind of motion and number in it.
        repetitions: that are wanted.
    """

    robot: Robot
    specimen: Robot
    payloads: Sequence[FloatArray | None]
    settings: StudySettings
    beliefs: Sequence[Belief]
    base: BaseParameters
    effects: Effects
    motion: StudyMotion
    place: tuple[int, int]
    repetitions: tuple[int, ...]


def motion_estimates(task: MotionTask) -> list[list[RunEstimate]]:
    """Estimates by recording and belief; the arm moves once."""
    settings, out = task.settings, []
    runs = carry_out(task.robot, task.specimen, task.motion.trajectory, task.payloads)
    for repetition in task.repetitions:
        samples = record_runs(task.robot, runs, settings.cutoff, [settings.seed, *task.place, repetition])
        first = task.place[1] == repetition == 0
        out.append(
            [identify_run(belief, task.base, task.effects, samples, deviations=first) for belief in task.beliefs]
        )
    return out
