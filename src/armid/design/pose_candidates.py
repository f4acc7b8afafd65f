"""Pools ready for choosing: free poses, what each would contribute, and how many are wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.design.pose_list import PoseList, usable
from armid.design.pose_pool import Spread, free_poses, generate_poses, grid_values, pose_places, reference_pose
from armid.design.pose_refine import Places
from armid.design.pose_selection import Pool
from armid.design.target_matrix import RatedSelection, rated_selection, safe_condition, target_matrix
from armid.errors import InputError
from armid.identifiability.base import base_parameters
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.kernels.source import RowSource
from armid.motions.limits import InfeasibleError, MotionLimits
from armid.notes import Note
from armid.robot.robot import JointKind
from armid.rows.pose import ChainErrors
from armid.scene.scene import Scene

IntArray = npt.NDArray[np.intp]


class Purpose(StrEnum):
    """What is measured at the poses."""

    CALIBRATION = "calibration"
    AXIS_INERTIA = "axis-inertia"
    GRAVITY = "gravity"


class PoseMethod(StrEnum):
    """How poses are chosen."""

    BEST = "best"
    """All of the following, keeping the best, then refined off the pool."""
    TARGET = "target"
    """The target matrix and rating of [RWTH2021]; axis inertias only."""
    EXCHANGE = "exchange"
    TABU = "tabu"
    MULTI_START = "multi-start"
    """Descents over all joint angles from random sets."""
    PREDICTION = "prediction"
    """Smallest expected error of predicted inertias; axis inertias only."""


_POOL_SIZES = (50_000, 40_000, 30_000, 20_000, 10_000)
"""Poses generated for axes 1 to 5 in algorithm 6.2 of [RWTH2021]; the last number for further axes."""


_POOL_SIZE = 20_000
"""Poses generated for the other purposes."""


_KEPT = 3000
"""Poses of a pool that exchanges look at: half with the largest leverage, half at random."""


_DEFAULT_COUNTS = {Purpose.CALIBRATION: 17, Purpose.GRAVITY: 30}


@dataclass(frozen=True, eq=False, kw_only=True)
class PoseSettings:
    """What is asked.

    Args:
        count: of poses; for axis inertias the target matrix decides it, except for the method `prediction`, which counts
            measurements of one axis each. None for the purpose's default.
        frame: tracked by the instrument; the tip when None. Calibration only.
        errors: which constants are in question; what the description calls for when None. Calibration only.
        method: how poses are chosen.
        spread: of the pool.
        pool: poses generated; per axis for axis inertias. For uniform or weighted spreads, values per joint.
        starts: of exchanges and descents.
        tabu_steps: exchanges of the tabu search.
        margin: fraction of every position limit left unused.
        self_collision: whether the arm keeps clear of itself.
        reference: pose of the joints that do not matter, for axis inertias; found when None.
        transitions: whether ways between the poses are sought and checked.
    """

    count: int | None = None
    frame: str | None = None
    errors: ChainErrors | None = None
    method: PoseMethod = PoseMethod.BEST
    spread: Spread = Spread.RANDOM
    pool: tuple[int, ...] | None = None
    starts: int = 4
    tabu_steps: int = 1000
    margin: float = 0.02
    self_collision: bool = True
    reference: npt.ArrayLike | None = None
    transitions: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class AxisPoses:
    """What the algorithm of [RWTH2021] did for one axis.

    Args:
        base_parameters: of this axis alone.
        target_condition: condition number of the ideal target matrix.
        rounded_condition: of the same with its entries rounded to one decimal, as [RWTH2021] does.
        initial_condition: of as many random poses.
        condition: of the poses chosen.
        penalty: of the rating.
        generated, free: size of the pool before and after the collision filter.
    """

    base_parameters: int
    target_condition: float
    rounded_condition: float
    initial_condition: float
    condition: float
    penalty: float
    generated: int
    free: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidates:
    """A pool ready for choosing: free poses, what each would contribute, and how many are wanted.

    Args:
        source: rows of the independent columns.
        poses: shape [n_candidates, n_joints].
        channels: weight of each channel at each candidate, shape [n_candidates, n_channels].
        movable: one where a joint matters, shape [n_candidates, n_joints].
        pool: blocks, groups, quotas.
        limits: positions.
        scene: clearances.
        places: by which two poses are told apart; None when the same pose may be measured twice.
        listed: whether the poses are a user's own, and stay where they are.
        random: condition numbers of random draws of as many free poses, in order; empty when none were made.
        drawn: the best of those draws.
        notes: on poses left out.
    """

    source: RowSource
    poses: FloatArray
    channels: FloatArray
    movable: FloatArray
    pool: Pool
    limits: MotionLimits
    scene: Scene
    places: Places | None = None
    listed: bool = False
    random: tuple[float, ...] = ()
    drawn: IntArray | None = None
    notes: tuple[Note, ...] = ()

    def condition(self, chosen: IntArray) -> float:
        return safe_condition(self.pool.blocks[chosen].reshape(-1, self.pool.blocks.shape[2]))


def pose_candidates(
    rows: Restricted,
    purpose: Purpose,
    settings: PoseSettings,
    limits: MotionLimits,
    scene: Scene,
    rng: np.random.Generator,
    listed: PoseList | None = None,
) -> tuple[Candidates, int, int]:
    """Whole poses, every channel measured at each; and how many were generated and how many of them are free.

    Args:
        rows: of the independent columns.
        purpose: what is measured.
        settings: what is asked.
        limits: positions.
        scene: clearances.
        rng: of everything random.
        listed: the user's own poses, to choose from; generated when None.
    """
    count = settings.count or _DEFAULT_COUNTS[purpose]
    least = int(np.ceil(len(rows.columns) / len(rows.channels)))
    if count < least:
        raise InputError("count", f"{count} poses", f"{len(rows.columns)} parameters need at least {least}")
    turns = np.array([joint.kind is JointKind.REVOLUTE for joint in scene.robot.joints])
    places = partial(pose_places, limits=limits, turns=turns)
    if listed is None:
        poses, generated = _generated(settings, limits, scene, count, rng)
        notes: tuple[Note, ...] = ()
    else:
        own = usable(listed, scene.robot, limits, scene, places(listed.poses))
        poses, generated, notes = own.poses, len(listed.poses), own.notes
        if len(poses) < count:
            why = "; ".join(note.message for note in notes)
            raise InputError(listed.path, f"{len(poses)} poses that can be used, {count} are needed", why)
    blocks = evaluate_rows(rows, poses)
    conditions, best = _random_draws(blocks, count, rng)
    kept = np.unique(np.concatenate([leverage_subset(blocks, rng), best]))
    ones = np.ones((len(kept), len(rows.channels))), np.ones((len(kept), len(limits.lower)))
    candidates = Candidates(
        source=rows,
        poses=poses[kept],
        channels=ones[0],
        movable=ones[1],
        pool=Pool(
            np.ascontiguousarray(blocks[kept]), np.zeros(len(kept), dtype=np.intp), (count,), places(poses[kept])
        ),
        limits=limits,
        scene=scene,
        places=places,
        listed=listed is not None,
        random=conditions,
        drawn=np.searchsorted(kept, best).astype(np.intp),
        notes=notes,
    )
    return candidates, generated, len(poses)


_DRAWS = 50
"""Random sets of poses with which a choice is compared."""


def _random_draws(blocks: FloatArray, count: int, rng: np.random.Generator) -> tuple[tuple[float, ...], IntArray]:
    """Condition numbers of random sets of free poses, in order, and the best set."""
    draws = [rng.choice(len(blocks), size=count, replace=False) for _ in range(_DRAWS)]
    conditions = [safe_condition(blocks[draw].reshape(-1, blocks.shape[2])) for draw in draws]
    return tuple(sorted(conditions)), np.asarray(draws[int(np.argmin(conditions))], dtype=np.intp)


_FEW = 500
"""Free poses below which a pool is drawn again and added to, where a cell or a camera leaves little room ..."""

_POOLS = 10
"""... up to this many times."""


def _generated(
    settings: PoseSettings, limits: MotionLimits, scene: Scene, count: int, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """Free poses of a pool, and how many were generated."""
    size: int | tuple[int, ...] = _POOL_SIZE if settings.pool is None else settings.pool
    if settings.pool is None and settings.spread is not Spread.RANDOM:
        size = grid_values(settings.spread, _POOL_SIZE, len(limits.lower))
    elif settings.spread is not Spread.WEIGHTED and isinstance(size, tuple):
        size = size[0]
    generated = generate_poses(limits.middle, limits, settings.spread, size, rng=rng)
    free = free_poses(scene, generated)
    total = len(generated)
    again = settings.pool is None and settings.spread is Spread.RANDOM
    for _ in range(_POOLS - 1 if again else 0):
        if len(free) >= _FEW:
            break
        generated = generate_poses(limits.middle, limits, settings.spread, size, rng=rng)
        free = np.vstack([free, free_poses(scene, generated)])
        total += len(generated)
    return _enough(scene, generated, free, count, total), total


def _enough(scene: Scene, generated: FloatArray, free: FloatArray, count: int, total: int) -> FloatArray:
    """The free poses when there are enough of them."""
    if len(free) >= count:
        return free
    short = (scene.clearances(generated) < 0.0).mean(axis=0)
    worst = int(np.argmax(short))
    raise InfeasibleError(
        f"only {len(free)} of {total} poses are free, {count} are needed; most often broken: {scene.names[worst]} "
        f"({100 * short[worst]:.0f} % of poses)"
    )


def leverage_subset(blocks: FloatArray, rng: np.random.Generator) -> IntArray:
    """Half by the largest leverage x^T (A^T A)^-1 x, half at random, at most `_KEPT`."""
    if len(blocks) <= _KEPT:
        return np.arange(len(blocks), dtype=np.intp)
    rows = blocks.reshape(-1, blocks.shape[2])
    G = rows.T @ rows
    inverse = np.linalg.pinv(G, hermitian=True)
    leverage = np.einsum("pcr,pcr->p", blocks @ inverse, blocks)
    top = np.argpartition(-leverage, _KEPT // 2)[: _KEPT // 2]
    rest = rng.choice(np.setdiff1d(np.arange(len(blocks)), top), size=_KEPT - _KEPT // 2, replace=False)
    return np.sort(np.concatenate([top, rest])).astype(np.intp)


def axis_candidates(
    rows: Restricted,
    source: RowSource,
    settings: PoseSettings,
    limits: MotionLimits,
    scene: Scene,
    rng: np.random.Generator,
) -> tuple[Candidates, tuple[AxisPoses, ...], float, IntArray | None]:
    """One pool per axis with [RWTH2021] algorithms 6.2 and 6.3 run on it.

    Returns:
        Candidates, what was found per axis, the total condition number of random poses, and the choice of [RWTH2021].
    """
    n = len(limits.lower)
    parts: list[tuple[FloatArray, FloatArray, int, IntArray]] = []
    axes, initial_rows = [], []
    for axis in range(n):
        poses, generated = axis_pool(axis, settings, limits, scene, rng)
        own, selection, initial = _rate_axis(source, axis, poses, rng)
        axes.append(replace(own, generated=generated, free=len(poses)))
        full = evaluate_rows(rows, poses)[:, axis]
        kept, chosen = _kept_with(full, selection.chosen, rng)
        parts.append((poses[kept], full[kept], len(selection.chosen), chosen))
        initial_rows.append(full[initial])
    candidates, rated = _merge_pools(rows, parts, limits, scene)
    return candidates, tuple(axes), safe_condition(np.vstack(initial_rows)), rated


def axis_pool(
    axis: int, settings: PoseSettings, limits: MotionLimits, scene: Scene, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """Free poses for one axis, and how many were generated. Joints up to the axis do not change its inertia."""
    n = len(limits.lower)
    if settings.reference is None:
        reference = reference_pose(scene, limits, axis + 1, rng)
    else:
        reference = np.asarray(settings.reference, dtype=np.float64)
        if reference.shape != (n,):
            raise InputError("reference", f"{reference.size} positions", f"expected {n}")
    sizes = settings.pool or _POOL_SIZES
    size: int | tuple[int, ...] = sizes[min(axis, len(sizes) - 1)]
    if settings.pool is None and settings.spread is not Spread.RANDOM and axis + 1 < n:
        size = grid_values(settings.spread, sizes[min(axis, len(sizes) - 1)], n - axis - 1)
    generated = generate_poses(reference, limits, settings.spread, size, fixed=axis + 1, rng=rng)
    free = free_poses(scene, generated)
    return _enough(scene, generated, free, 1, len(generated)), len(generated)


def _rate_axis(
    source: RowSource, axis: int, poses: FloatArray, rng: np.random.Generator
) -> tuple[AxisPoses, RatedSelection, IntArray]:
    """The seed's algorithm on the base functions of one axis, and as many random poses for comparison."""
    values = evaluate_rows(source, poses)[:, axis]
    spread = evaluate_rows(source, rng.uniform(-np.pi, np.pi, size=(2 * values.shape[1] + 20, poses.shape[1])))[:, axis]
    own = base_parameters(spread, parameters=source.columns)
    functions = values[:, own.independent]
    target = target_matrix(functions)
    selection = rated_selection(functions, target)
    initial = rng.choice(len(poses), size=len(target), replace=len(poses) < len(target)).astype(np.intp)
    found = AxisPoses(
        base_parameters=len(own),
        target_condition=safe_condition(target),
        rounded_condition=safe_condition(target_matrix(functions, decimals=1)),
        initial_condition=safe_condition(functions[initial]),
        condition=selection.condition_number,
        penalty=selection.penalty,
        generated=0,
        free=0,
    )
    return found, selection, initial


def _kept_with(rows: FloatArray, chosen: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """A smaller pool that contains the chosen poses, and where they are in it."""
    kept = np.unique(np.concatenate([leverage_subset(rows[:, np.newaxis], rng), chosen]))
    return kept, np.searchsorted(kept, chosen).astype(np.intp)


def _merge_pools(
    rows: Restricted, parts: list[tuple[FloatArray, FloatArray, int, IntArray]], limits: MotionLimits, scene: Scene
) -> tuple[Candidates, IntArray]:
    """All axes' pools as one, each axis a group of its own, and the choice of [RWTH2021] in it."""
    n = len(limits.lower)
    sizes = [len(poses) for poses, _, _, _ in parts]
    groups = np.repeat(np.arange(n), sizes).astype(np.intp)
    blocks = np.vstack([values for _, values, _, _ in parts])[:, np.newaxis]
    pool = Pool(np.ascontiguousarray(blocks), groups, tuple(quota for _, _, quota, _ in parts))
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rated = np.concatenate([chosen + offset for (_, _, _, chosen), offset in zip(parts, offsets, strict=True)])
    poses = np.vstack([poses for poses, _, _, _ in parts])
    movable = (np.arange(n) > groups[:, np.newaxis]).astype(np.float64)
    candidates = Candidates(
        source=rows,
        poses=poses,
        channels=np.eye(n)[groups],
        movable=movable,
        pool=pool,
        limits=limits,
        scene=scene,
    )
    return candidates, rated.astype(np.intp)
