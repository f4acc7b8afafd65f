"""The fastest motion along a path that an identified arm can be asked for: the function behind `armid plan`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path as FilePath

import numpy.typing as npt

from armid.identification.result import Result, load_result
from armid.motions.limits import DEFAULT_MARGIN, MotionLimits, motion_limits
from armid.motions.limits_file import with_limits
from armid.motions.trajectory_files import input_of
from armid.notes import Note
from armid.outcome import InputFile, Provenance
from armid.planning.constraints import planning_limits
from armid.planning.errors import PlanRefusedError
from armid.planning.fastest import fastest_motion
from armid.planning.model import model_of_result, model_of_robot
from armid.planning.motion import Plan, PlanSettings
from armid.planning.path import Path
from armid.planning.path_files import path_of
from armid.robot.robot import Robot
from armid.scene.cell import Cell, cell_of
from armid.scene.scene import Scene, build_scene
from armid.threads import one_blas_thread


@one_blas_thread
def plan_motion(
    result: str | FilePath | Result,
    path: str | FilePath | Path | npt.ArrayLike,
    *,
    confidence: float | None = None,
    margin: float = DEFAULT_MARGIN,
    jerk: bool = True,
    limits_file: str | FilePath | None = None,
    max_acceleration: str | npt.ArrayLike | None = None,
    max_jerk: str | npt.ArrayLike | None = None,
    max_torque: str | npt.ArrayLike | None = None,
    cell: str | FilePath | Cell | None = None,
    collisions: bool = True,
    loaded: bool = True,
    passive: str | None = None,
    points: int = 1000,
    force: bool = False,
    seed: int = 0,
) -> Plan:
    """The fastest motion from rest to rest along a path within torque, velocity, acceleration and jerk limits.

    Args:
        result: of an identification, or its folder.
        path: way-points (CSV), a line or arc of the tool (YAML) or a trajectory (JSON) as a file; a path; or way-points
            [rad or m], shape [n_points, n_joints].
        confidence: probability with which all torque limits hold, given the parameters' covariance; None takes the
            expected values at their word.
        margin: share of every limit but positions that is left unused.
        jerk: whether jerk limits are respected.
        limits_file: limits the description cannot hold, or narrower ones; YAML (docs/formats.md).
        max_acceleration, max_jerk, max_torque: the same for all joints or one each, shape [n_joints]. Without any, acceleration
            is limited as for designed motions.
        cell: file, name, or a cell; empty space when None.
        collisions: whether the arm is checked against itself.
        loaded: whether the arm carries the payload of the loaded runs.
        passive: joint whose motion generator the page shows.
        points: grid of the path.
        force: plan with an untrusted result too; the plan and its files are marked UNVALIDATED.
        seed: of the drawn parameters.

    Raises:
        PlanRefusedError: the result is untrusted.
        PathError: with the place on the path; see `planning.errors`.
        InputError: something asked for that cannot be.
    """
    known = result if isinstance(result, Result) else load_result(result)
    doubts = tuple(known.reasons)
    if doubts and not force:
        raise PlanRefusedError(doubts)
    robot = known.robot
    if passive is not None:
        robot.joint_index(passive)
    model = model_of_result(known, loaded=loaded)
    own = with_limits(robot, limits_file, max_acceleration=max_acceleration, max_jerk=max_jerk, max_torque=max_torque)
    limits, notes = _limits_to_keep(own, jerk=jerk)
    settings = PlanSettings(points=points, limits=limits, confidence=confidence, margin=margin, seed=seed)
    plan = fastest_motion(
        path_of(path, robot), model, settings, scene=_scene(robot, cell_of(cell), collisions=collisions)
    )
    sound = all(link.is_sound for link in robot.links)
    chosen = {"confidence": confidence, "margin": margin, "points": points}
    chosen |= {"jerk": jerk, "collisions": collisions, "loaded": loaded}
    inputs = (InputFile(robot.source.path, robot.source.sha256, "robot"), *input_of(path, "path"))
    return replace(
        plan,
        notes=(*notes, *plan.notes),
        doubts=doubts,
        described=model_of_robot(robot, effects=known.effects) if sound else None,
        passive=passive,
        provenance=Provenance(inputs=inputs, settings=chosen, seed=seed),
    )


def _limits_to_keep(robot: Robot, *, jerk: bool) -> tuple[MotionLimits, tuple[Note, ...]]:
    """Limits of a plan: acceleration assumed as for designed motions where nobody gives one, with the same note."""
    limits, _ = planning_limits(robot)
    full, notes = motion_limits(robot)
    limits = limits.but(acceleration=full.acceleration)
    said = tuple(note for note in notes if note.subject in ("velocity", "acceleration"))
    return (limits if jerk else limits.but(jerk=float("inf"))), said


def _scene(robot: Robot, cell: Cell | None, *, collisions: bool) -> Scene | None:
    """What the arm must keep clear of; nothing when neither the cell nor the arm itself is to be checked."""
    return build_scene(robot, cell, self_collision=collisions) if collisions or cell is not None else None


__all__ = ["Plan", "PlanSettings", "plan_motion"]
