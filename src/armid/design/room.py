"""Is there room to move at all? Asked before a search, so that time is never spent on what time cannot help."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.plausible import absurd_bodies
from armid.design.certificate import CLEARANCE_TOLERANCE
from armid.design.excitation import ExcitationProblem
from armid.kernels.evaluate import evaluate_rows
from armid.motions.limits import InfeasibleError
from armid.rows.nominal_torque import NominalTorque
from armid.scene.scene import Scene

_FEW, _MANY = 1000, 20_000
"""Random poses tried at first, and before it is said that none is free."""

_NAMED = 3
"""Pairs named in the message."""


def check_room(problem: ExcitationProblem) -> None:
    """Looks for a pose that is free and that the torque limits can hold.

    Raises:
        InfeasibleError: there is none among many random ones; says what stands in the way, by how much, and what helps.
    """
    poses = _free_poses(problem, _FEW)
    if not len(poses):
        poses = _free_poses(problem, _MANY)
    if not len(poses):
        raise InfeasibleError(_no_free_pose(problem))
    usage = _holding_usage(problem, poses)
    if usage.max(axis=1).min() <= 1.0:
        _check_strength(problem, poses, usage)
        return
    least = usage[np.argmin(usage.max(axis=1))]
    k = int(np.argmax(least))
    raise InfeasibleError(
        f"none of {len(poses)} free poses can be held: {problem.robot.joint_names[k]} needs {100 * least[k]:.0f} % of its "
        f"torque limit of {problem.limits.torque[k]:g} (margin taken off) in the easiest one; correct the torque limits or the "
        f"masses of the description, or leave torque out of --limits{_absurd(problem)}"
    )


def _absurd(problem: ExcitationProblem) -> str:
    """Bodies of the description that cannot be meant, as the end of a sentence about torque."""
    return "".join(f"; {note.message}" for note in absurd_bodies(problem.robot)[:_NAMED])


_SELDOM, _AROUND, _FIFTH = 0.02, 0.25, 0.2
"""An arm that can hold less than this share of its free poses, and less than that share of those within a fifth of the joint
ranges around the easiest one, has no motion worth running. Of 38 described arms the weakest (PR2) holds 0.19 and 0.66."""


def _check_strength(problem: ExcitationProblem, poses: FloatArray, usage: FloatArray) -> None:
    """Whether more than a pose in balance can be held.

    Raises:
        InfeasibleError: says which joint's torque limit is too small for the described masses.
    """
    share = float((usage.max(axis=1) <= 1.0).mean())
    if share >= _SELDOM:
        return
    limits, best = problem.limits, poses[np.argmin(usage.max(axis=1))]
    spread = np.random.default_rng(0).uniform(-_FIFTH, _FIFTH, size=(_FEW, len(best))) * limits.half_range
    around = _holding_usage(problem, np.clip(best + spread, limits.lower, limits.upper))
    near = float((around.max(axis=1) <= 1.0).mean())
    if near >= _AROUND:
        return
    needed = np.median(around, axis=0)
    k = int(np.argmax(needed))
    raise InfeasibleError(
        f"{100 * share:.1f} % of the free poses can be held, and {100 * near:.0f} % of those within a fifth of the ranges around "
        f"the easiest one, so more time would not help: {problem.robot.joint_names[k]} needs {100 * needed[k]:.0f} % of its "
        f"torque limit of {limits.torque[k]:g} (margin taken off) in half of them; correct the torque limits (--max-torque, "
        f"--limits-file) or the masses of the description, or leave torque out of --limits{_absurd(problem)}"
    )


def easiest_pose(problem: ExcitationProblem, poses: FloatArray) -> FloatArray:
    """The pose with most room and torque to spare, shape [n_joints]: of those given, or a random one where none will do.

    Args:
        problem: what must be kept.
        poses: to choose from, shape [n_poses, n_joints].
    """
    spare = _spare(problem, poses)
    if spare.max() <= 0.0:
        poses = np.vstack([poses, _random_poses(problem, _FEW)])
        spare = _spare(problem, poses)
    return np.asarray(poses[np.argmax(spare)])


_OTHERS = 200
"""Random poses a motion may be drawn in around: as many as it has instants, so that asking takes a few hundredths of a second."""


def easiest_centres(problem: ExcitationProblem, poses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Poses to draw a motion in around, each of shape [n_joints]: the easiest of its own, and of many random ones.

    Clearances count by what each pair can have at all: where neighbours never part by more than a centimetre, a tenth of a
    millimetre would otherwise outweigh most of the torque, and a pose that can hardly be held be taken.

    Args:
        problem: what must be kept.
        poses: of the motion, shape [n_poses, n_joints].
    """
    every = np.vstack([poses, _random_poses(problem, _OTHERS)])
    spare = 1.0 - _holding_usage(problem, every).max(axis=1)
    if len(problem.scene):
        clearances = problem.scene.clearances(every)
        most = np.clip(clearances.max(axis=0), CLEARANCE_TOLERANCE, _ROOMY)
        spare = np.minimum(spare, (clearances / most).min(axis=1))
    own, other = np.argmax(spare[: len(poses)]), len(poses) + np.argmax(spare[len(poses) :])
    return every[own], every[other]


_ROOMY = 0.1
"""[m] of clearance that counts as much as a torque limit not used at all."""


def _spare(problem: ExcitationProblem, poses: FloatArray) -> FloatArray:
    """What is left of clearance and holding torque, whichever is less, as a fraction, shape [n_poses]."""
    torque = 1.0 - _holding_usage(problem, poses).max(axis=1)
    if not len(problem.scene):
        return np.asarray(torque)
    return np.minimum(torque, np.clip(problem.scene.clearances(poses).min(axis=1) / _ROOMY, None, 1.0))


def free_poses(problem: ExcitationProblem, rng: np.random.Generator, count: int) -> FloatArray:
    """Random free poses, shape [<= count, n_joints]; the middle of the ranges when none is found."""
    limits = problem.limits
    poses = rng.uniform(limits.lower, limits.upper, size=(_FEW, problem.robot.n_joints))
    free = poses[problem.scene.is_free(poses)][:count] if len(problem.scene) else poses[:count]
    return free if len(free) else np.atleast_2d(limits.middle)


def _random_poses(problem: ExcitationProblem, count: int) -> FloatArray:
    limits = problem.limits
    poses = np.random.default_rng(0).uniform(limits.lower, limits.upper, size=(count, problem.robot.n_joints))
    poses[0] = limits.middle
    return poses


def _free_poses(problem: ExcitationProblem, count: int) -> FloatArray:
    poses = _random_poses(problem, count)
    return poses[problem.scene.is_free(poses)] if len(problem.scene) else poses


def _holding_usage(problem: ExcitationProblem, poses: FloatArray) -> FloatArray:
    """Share of the torque limits that standing still takes, shape [n_poses, n_joints]."""
    x = np.hstack([poses, np.zeros((len(poses), 2 * poses.shape[1]))])
    return np.asarray(np.abs(evaluate_rows(NominalTorque(problem.robot), x)[:, :, 0]) / problem.limits.torque)


def _no_free_pose(problem: ExcitationProblem) -> str:
    """What stands in the way in most poses, how near it comes at best, and what helps."""
    scene = problem.scene
    values = scene.clearances(_random_poses(problem, _FEW))
    blocked = (values < 0.0).mean(axis=0)
    worst = np.argsort(-blocked)[:_NAMED]
    told = "; ".join(_blocker(scene, int(k), float(blocked[k]), values[:, k]) for k in worst if blocked[k] > 0.0)
    return (
        f"none of {_MANY} random poses is free, so more time would not help: {told}. Give a smaller distance with "
        "--clearance-m (or `margin` in the cell file), another place of what surrounds the arm, or --no-collisions "
        "when the shapes of the description are too coarse"
    )


def _blocker(scene: Scene, k: int, share: float, values: FloatArray) -> str:
    best, short = float(values.max()), float(np.median(values))
    return (
        f"{scene.names[k]} too close in {100 * share:.0f} % of the poses ({-short:.4f} m too little in half of them, "
        f"{max(-best, 0.0):.4f} m at best)"
    )
