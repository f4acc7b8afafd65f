"""Pools of candidate poses: generated within limits, filtered by clearances ([RWTH2021] algorithms 5.1 and 6.2)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from enum import StrEnum
from math import prod

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.motions.limits import InfeasibleError, MotionLimits, motion_limits
from armid.notes import Note, Severity
from armid.robot.robot import JointKind, Robot
from armid.scene.distance_kernels import CAPSULE_CAPSULE
from armid.scene.scene import Scene


class Spread(StrEnum):
    """How poses are spread over the joints that vary."""

    UNIFORM = "uniform"
    """The same number of equally spaced values per joint, all combinations."""
    WEIGHTED = "weighted"
    """A number of its own for each joint, all combinations."""
    RANDOM = "random"


def pose_limits(robot: Robot) -> tuple[MotionLimits, tuple[Note, ...]]:
    """What poses may use, and what was assumed where the description is silent.

    A revolute joint without position limits gets half a turn to either side: more reaches no other pose.
    """
    limits, notes = motion_limits(robot)
    turns = np.array([joint.kind is JointKind.REVOLUTE for joint in robot.joints])
    open_ended = turns & ~np.isfinite(robot.limit("lower")) & ~np.isfinite(robot.limit("upper"))
    if not open_ended.any():
        return limits, notes
    names = ", ".join(name for name, gone in zip(robot.joint_names, open_ended, strict=True) if gone)
    text = (
        f"{robot.name} gives no position limits for {names}: -3.14 to 3.14 rad is assumed, half a turn to either side; "
        "state yours with --limits-file"
    )
    other = tuple(
        note
        for note in notes
        if note.subject not in ("lower", "upper") or not np.isfinite(robot.limit(note.subject)[~open_ended]).all()
    )
    half = np.where(open_ended, np.pi, np.inf)
    narrowed = limits.but(lower=np.maximum(limits.lower, -half), upper=np.minimum(limits.upper, half))
    return narrowed, (Note("limit-assumed", Severity.WARNING, text, "position"), *other)


_MOST_COMBINATIONS = 2_000_000
"""More poses than this are not tabulated: five joints of ten values are already 100 000."""


def generate_poses(
    reference: npt.ArrayLike,
    limits: MotionLimits,
    spread: Spread,
    count: int | tuple[int, ...],
    *,
    fixed: int = 0,
    rng: np.random.Generator | None = None,
) -> FloatArray:
    """Poses whose first `fixed` joints stand at a reference pose; algorithm 5.1.

    Args:
        reference: shape [n_joints].
        limits: positions only.
        spread: how the other joints are spread.
        count: RANDOM: how many poses. UNIFORM: values per joint. WEIGHTED: values for each varying joint.
        fixed: joints that keep the reference.
        rng: for RANDOM.

    Returns:
        Shape [n_poses, n_joints]; the reference alone when no joint varies.
    """
    start = np.asarray(reference, dtype=np.float64)
    varying = len(start) - fixed
    if varying == 0:
        return start[np.newaxis]
    low, high = limits.lower[fixed:], limits.upper[fixed:]
    if spread is Spread.RANDOM:
        if not isinstance(count, int) or rng is None:
            raise InputError("poses", "random poses need a number of them and a generator")
        part = rng.uniform(low, high, size=(count, varying))
    else:
        part = _combinations(low, high, _steps_of(spread, count, varying))
    return np.hstack([np.tile(start[:fixed], (len(part), 1)), part])


def _steps_of(spread: Spread, count: int | tuple[int, ...], varying: int) -> tuple[int, ...]:
    """Values per varying joint."""
    steps = (count,) * varying if isinstance(count, int) else tuple(count)
    if spread is Spread.WEIGHTED and len(steps) != varying:
        raise InputError(
            "poses", f"{len(steps)} numbers of values", f"weighted poses need one for each of {varying} joints"
        )
    if min(steps) < 1 or prod(steps) > _MOST_COMBINATIONS:
        raise InputError("poses", f"{' x '.join(map(str, steps))} combinations", f"at most {_MOST_COMBINATIONS}")
    return steps


def grid_values(spread: Spread, total: int, varying: int) -> tuple[int, ...]:
    """Values for each varying joint whose combinations are at most `total` poses, two of each at least.

    As many for every joint; with weights joints nearer to the axis, which move more of the arm, get what is left of the total.
    """
    steps = [max(2, int(total ** (1.0 / varying) + 1e-9))] * varying
    for k in range(varying if spread is Spread.WEIGHTED else 0):
        while prod(steps[:k]) * (steps[k] + 1) * prod(steps[k + 1 :]) <= total and steps[k] < 2 * steps[-1]:
            steps[k] += 1
    return tuple(steps)


def _combinations(low: FloatArray, high: FloatArray, steps: tuple[int, ...]) -> FloatArray:
    """All combinations of equally spaced values."""
    axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, steps, strict=True)]
    return np.stack([values.ravel() for values in np.meshgrid(*axes, indexing="ij")], axis=1)


_BLOCK = 4096


def free_poses(scene: Scene, poses: FloatArray, *, threads: int = 2) -> FloatArray:
    """Those that keep every clearance; blocks of poses run in threads."""
    if not len(scene) or not len(poses):
        return poses
    blocks = [poses[k : k + _BLOCK] for k in range(0, len(poses), _BLOCK)]
    with ThreadPoolExecutor(threads) as pool:
        return np.vstack([block[free] for block, free in zip(blocks, pool.map(scene.is_free, blocks), strict=True)])


_ROOM = 0.05
"""Share of poses that stand-ins of unknown bodies must leave free: described arms leave themselves 0.7 and more."""

_SAMPLE = 2000
"""Poses at which that is looked at."""


def without_doubtful_pairs(scene: Scene, poses: FloatArray) -> Scene:
    """The scene without pairs of links that only a guess keeps apart, where such guesses leave no room.

    A body without a shape has a capsule between its joints in its place. Those pairs go, one by one, whose loss frees most, until
    `_ROOM` of the poses that keep everything known are free. Obstacles, regions and pairs of described shapes always stay.

    Args:
        scene: clearances.
        poses: random ones within the limits.
    """
    doubtful = [k for k in range(len(scene)) if _is_guess(scene, k)]
    if not doubtful or not len(poses):
        return scene
    broken = scene.clearances(poses[:_SAMPLE]) < 0.0
    known = np.setdiff1d(np.arange(len(scene)), doubtful)
    broken = broken[~broken[:, known].any(axis=1)]
    lost: list[int] = []
    while len(broken) and len(lost) < len(doubtful) and (~broken.any(axis=1)).mean() < _ROOM:
        gains = [(_alone(broken, k), int(broken[:, k].sum()), k) for k in doubtful if k not in lost]
        lost.append(max(gains)[2])
        broken[:, lost[-1]] = False
    if not lost:
        return scene
    pairs = "; ".join(dict.fromkeys(scene.names[k] for k in lost))
    note = Note(
        "contact-unknown",
        Severity.WARNING,
        f"{scene.robot.name} does not describe the shapes of all links, and their stand-ins leave almost no pose free; "
        f"not checked: {pairs}. Look at the poses with armid show, and visit them slowly",
    )
    rest = np.setdiff1d(np.arange(len(scene)), lost)
    names = tuple(scene.names[k] for k in rest)
    return replace(scene, table=scene.table[rest], names=names, notes=(*scene.notes, note))


def _is_guess(scene: Scene, k: int) -> bool:
    """Whether a clearance is between two links, one of which has no shape of its own."""
    if int(scene.table[k, 0]) != CAPSULE_CAPSULE:
        return False
    pair = [scene.capsules[int(i)] for i in scene.table[k, 1:3]]
    return any(c.assumed for c in pair) and all(c.shape is not None for c in pair)


def _alone(broken: npt.NDArray[np.bool_], k: int) -> int:
    """Poses at which one clearance and no other is broken."""
    return int((broken[:, k] & (broken.sum(axis=1) == 1)).sum())


_SAME_POSE = 0.01
"""Of every joint's range, or of a turn: poses that differ by less show the same errors (0.06 rad of a full turn)."""


def pose_places(poses: FloatArray, limits: MotionLimits, turns: npt.NDArray[np.bool_]) -> FloatArray:
    """Where poses stand, scaled so that two are the same pose when no entry differs by one; whole turns do not count.

    Args:
        poses: [rad or m], shape [n, n_joints].
        limits: positions.
        turns: which joints are revolute, shape [n_joints].
    """
    span = limits.upper - limits.lower
    step = _SAME_POSE * np.where(turns, np.minimum(span, 2.0 * np.pi), span)
    slides = poses[:, ~turns] / step[~turns]
    return np.hstack([np.cos(poses[:, turns]) / step[turns], np.sin(poses[:, turns]) / step[turns], slides])


_TRIALS = 200
"""Poses tried per reference when looking for a good one."""


def reference_pose(scene: Scene, limits: MotionLimits, fixed: int, rng: np.random.Generator) -> FloatArray:
    """A free pose of the first joints that leaves the others the most room; algorithm 6.2 leaves it to the user.

    Raises:
        InfeasibleError: no pose is free at all.
    """
    candidates = rng.uniform(limits.lower, limits.upper, size=(_TRIALS, len(limits.lower)))
    candidates = np.vstack([limits.middle, candidates])
    free = free_poses(scene, candidates)
    if not len(free):
        depth, pair = scene.worst(limits.middle)
        raise InfeasibleError(
            f"none of {len(candidates)} poses is free; in the middle of all ranges {pair} misses {-depth:.3f} m"
        )
    shares = []
    for candidate in free[:24]:
        trial = generate_poses(candidate, limits, Spread.RANDOM, _TRIALS, fixed=fixed, rng=rng)
        shares.append(float(scene.is_free(trial).mean()))
    best: FloatArray = free[int(np.argmax(shares))]
    return best
