"""Pools of candidate poses: generated within limits, filtered by clearances ([RWTH2021] algorithms 5.1 and 6.2)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from itertools import product

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.motions.limits import InfeasibleError, MotionLimits
from armid.scene.scene import Scene


class Spread(StrEnum):
    """How poses are spread over the joints that vary."""

    UNIFORM = "uniform"
    """The same number of equally spaced values per joint, all combinations."""
    WEIGHTED = "weighted"
    """A number of its own for each joint, all combinations."""
    RANDOM = "random"


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
    if min(steps) < 1 or int(np.prod(steps)) > _MOST_COMBINATIONS:
        raise InputError("poses", f"{' x '.join(map(str, steps))} combinations", f"at most {_MOST_COMBINATIONS}")
    return steps


def _combinations(low: FloatArray, high: FloatArray, steps: tuple[int, ...]) -> FloatArray:
    """All combinations of equally spaced values."""
    axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, steps, strict=True)]
    return np.array(list(product(*axes)))


_BLOCK = 4096


def free_poses(scene: Scene, poses: FloatArray, *, threads: int = 2) -> FloatArray:
    """Those that keep every clearance; blocks of poses run in threads."""
    if not len(scene) or not len(poses):
        return poses
    blocks = [poses[k : k + _BLOCK] for k in range(0, len(poses), _BLOCK)]
    with ThreadPoolExecutor(threads) as pool:
        return np.vstack([block[free] for block, free in zip(blocks, pool.map(scene.is_free, blocks), strict=True)])


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
