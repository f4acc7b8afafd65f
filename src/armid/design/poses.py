"""Measurement poses for kinematic calibration, axis inertias and gravity: the one call behind `armid poses`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.design.cell import Cell
from armid.design.criterion import Criterion, Quality
from armid.design.limits import InfeasibleError, MotionLimits, motion_limits
from armid.design.pose_pool import Spread, free_poses, generate_poses, reference_pose
from armid.design.pose_refine import refined_poses
from armid.design.pose_selection import Pool, exchanged, multi_start_exchange, tabu_search
from armid.design.scene import Scene, build_scene
from armid.design.target_matrix import RatedSelection, rated_selection, safe_condition, target_matrix
from armid.design.transition import TransitionTrajectory
from armid.design.travel import route, travel_order
from armid.errors import InputError
from armid.experiments.axis_inertia import AxisInertiaRows
from armid.experiments.gravity import GravityRows
from armid.experiments.pose import PoseRows
from armid.identifiability.base import BaseParameters, base_parameters
from armid.identifiability.criteria import quality as quality_of
from armid.identifiability.rank import WEAK
from armid.identifiability.structure import structural_base
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.kernels.rows import RowSource
from armid.notes import Note, Severity
from armid.robot.robot import Robot

IntArray = npt.NDArray[np.intp]


class Purpose(StrEnum):
    """What is measured at the poses."""

    CALIBRATION = "calibration"
    AXIS_INERTIA = "axis-inertia"
    GRAVITY = "gravity"


class Method(StrEnum):
    """How poses are chosen."""

    BEST = "best"
    """All of the following, keeping the best, then refined off the pool."""
    TARGET = "target"
    """The target matrix and rating of seed 002; axis inertias only."""
    EXCHANGE = "exchange"
    TABU = "tabu"
    MULTI_START = "multi-start"
    """Descents over all joint angles from random sets."""


POOL_SIZES = (50_000, 40_000, 30_000, 20_000, 10_000)
"""Poses generated for axes 1 to 5 in algorithm 6.2 of seed 002; the last number for further axes."""

POOL_SIZE = 20_000
"""Poses generated for the other purposes."""

KEPT = 3000
"""Poses of a pool that exchanges look at: half with the largest leverage, half at random."""

SHARP = 40.0
"""Power at which the smooth condition number is within a few per cent of the true one."""

DEFAULT_COUNTS = {Purpose.CALIBRATION: 17, Purpose.GRAVITY: 30}


@dataclass(frozen=True, eq=False)
class PoseSettings:
    """What is asked.

    Args:
        count: of poses; for axis inertias the target matrix decides it. None for the purpose's default.
        frame: tracked by the instrument; the tip when None. Calibration only.
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
    method: Method = Method.BEST
    spread: Spread = Spread.RANDOM
    pool: tuple[int, ...] | None = None
    starts: int = 4
    tabu_steps: int = 1000
    margin: float = 0.02
    self_collision: bool = True
    reference: npt.ArrayLike | None = None
    transitions: bool = True


@dataclass(frozen=True, eq=False)
class AxisPoses:
    """What the seed's algorithm did for one axis.

    Args:
        base_parameters: of this axis alone.
        target_condition: condition number of the ideal target matrix.
        initial_condition: of as many random poses.
        condition: of the poses chosen.
        penalty: of the rating.
        generated, free: size of the pool before and after the collision filter.
    """

    base_parameters: int
    target_condition: float
    initial_condition: float
    condition: float
    penalty: float
    generated: int
    free: int


@dataclass(frozen=True, eq=False)
class PoseDesign:
    """Poses to measure at, in the order to visit them.

    Args:
        robot: the arm.
        purpose: what is measured.
        poses: [rad or m], shape [n_poses, n_joints].
        channels: which channels are measured at each, shape [n_poses, n_channels] of booleans.
        base: the parameters they determine.
        condition_number: 2-norm, SI units.
        initial_condition_number: of as many random free poses.
        observability: O1..O5.
        methods: condition number reached by each method tried.
        axes: per axis, for axis inertias.
        generated, free: size of the pool before and after the filter.
        transitions: a free motion through all poses; None when not asked for.
        stops: way-point of each pose in it.
        notes: what the reader must know.
    """

    robot: Robot
    purpose: Purpose
    poses: FloatArray
    channels: npt.NDArray[np.bool_]
    base: BaseParameters
    condition_number: float
    initial_condition_number: float
    observability: dict[str, float]
    methods: dict[str, float]
    axes: tuple[AxisPoses, ...]
    generated: int
    free: int
    transitions: TransitionTrajectory | None
    stops: tuple[int, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, eq=False)
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
    """

    source: RowSource
    poses: FloatArray
    channels: FloatArray
    movable: FloatArray
    pool: Pool
    limits: MotionLimits
    scene: Scene

    def condition(self, chosen: IntArray) -> float:
        return safe_condition(self.pool.blocks[chosen].reshape(-1, self.pool.blocks.shape[2]))


@dataclass(eq=False)
class Tried:
    """Sets of poses found so far."""

    conditions: dict[str, float] = field(default_factory=dict)
    best: FloatArray | None = None
    channels: FloatArray | None = None
    movable: FloatArray | None = None
    condition: float = float("inf")

    def offer(self, name: str, poses: FloatArray, channels: FloatArray, movable: FloatArray, condition: float) -> None:
        """Records a set, and keeps it when it is the best."""
        self.conditions[name] = min(condition, self.conditions.get(name, float("inf")))
        if condition < self.condition or self.best is None:
            self.best, self.channels, self.movable, self.condition = poses, channels, movable, condition


def design_poses(
    robot: Robot,
    purpose: Purpose,
    settings: PoseSettings | None = None,
    *,
    cell: Cell | None = None,
    seed: int = 0,
) -> PoseDesign:
    """Chooses poses for a purpose.

    Args:
        robot: the arm.
        purpose: what is measured.
        settings: what is asked.
        cell: obstacles, and regions the tracked frame must stay in.
        seed: of everything random.

    Raises:
        InfeasibleError: too few poses keep the clearances; says which one fails most often.
    """
    wanted = settings or PoseSettings()
    rng = np.random.default_rng(seed)
    limits = motion_limits(robot)[0].within(wanted.margin)
    scene = build_scene(robot, cell, self_collision=wanted.self_collision)
    source = source_of(robot, purpose, wanted)
    base, notes = chosen_base(source)
    rows = Restricted(source, tuple(int(i) for i in base.independent))
    tried = Tried()
    if purpose is Purpose.AXIS_INERTIA:
        candidates, axes, initial, rated = axis_candidates(rows, source, wanted, limits, scene, rng)
        if rated is not None:
            offer_choice(tried, "target matrix", candidates, rated)
        generated, free = sum(a.generated for a in axes), sum(a.free for a in axes)
    else:
        candidates, generated, free = pose_candidates(rows, purpose, wanted, limits, scene, rng)
        axes, rated = (), None
        initial = candidates.condition(candidates.pool.random(rng))
    search_methods(candidates, wanted, tried, rated, rng)
    return finished(
        robot, purpose, wanted, candidates, base, tried, (axes, initial, generated, free), rng, notes + scene.notes
    )


def source_of(robot: Robot, purpose: Purpose, settings: PoseSettings) -> RowSource:
    """The rows a purpose measures."""
    match purpose:
        case Purpose.CALIBRATION:
            return PoseRows(robot, settings.frame)
        case Purpose.GRAVITY:
            return GravityRows(robot)
        case Purpose.AXIS_INERTIA:
            return AxisInertiaRows(robot)


def chosen_base(source: RowSource) -> tuple[BaseParameters, tuple[Note, ...]]:
    """Base parameters without those that are identifiable only by a hair, which no choice of poses can help."""
    full = structural_base(source)
    if not full.weak:
        return full, ()
    base = structural_base(source, tolerance=WEAK)
    lost = sorted(set(full.names) - set(base.names))
    note = Note(
        "weak-direction", Severity.WARNING,
        f"left out of the choice of poses, since determined a thousand times worse than the rest: {', '.join(lost)}",
    )  # fmt: skip
    return base, (note,)


def pose_candidates(
    rows: Restricted,
    purpose: Purpose,
    settings: PoseSettings,
    limits: MotionLimits,
    scene: Scene,
    rng: np.random.Generator,
) -> tuple[Candidates, int, int]:
    """Whole poses, every channel measured at each; and how many were generated and how many of them are free."""
    n, channels = len(limits.lower), len(rows.channels)
    count = settings.count or DEFAULT_COUNTS[purpose]
    least = int(np.ceil(len(rows.columns) / channels))
    if count < least:
        raise InputError("count", f"{count} poses", f"{len(rows.columns)} parameters need at least {least}")
    size: int | tuple[int, ...] = POOL_SIZE if settings.pool is None else settings.pool
    if settings.spread is not Spread.WEIGHTED and isinstance(size, tuple):
        size = size[0]
    generated = generate_poses(limits.middle, limits, settings.spread, size, rng=rng)
    poses = enough(scene, generated, free_poses(scene, generated), count)
    blocks = evaluate_rows(rows, poses)
    kept = leverage_subset(blocks, rng)
    pool = Pool(np.ascontiguousarray(blocks[kept]), np.zeros(len(kept), dtype=np.intp), (count,))
    ones = np.ones((len(kept), channels)), np.ones((len(kept), n))
    return Candidates(rows, poses[kept], *ones, pool, limits, scene), len(generated), len(poses)


def enough(scene: Scene, generated: FloatArray, free: FloatArray, count: int) -> FloatArray:
    """The free poses when there are enough of them."""
    if len(free) >= count:
        return free
    short = (scene.clearances(generated) < 0.0).mean(axis=0)
    worst = int(np.argmax(short))
    raise InfeasibleError(
        f"only {len(free)} of {len(generated)} poses are free, {count} are needed; most often broken: {scene.names[worst]} "
        f"({100 * short[worst]:.0f} % of poses)"
    )


def leverage_subset(blocks: FloatArray, rng: np.random.Generator) -> IntArray:
    """Half by the largest leverage x^T (A^T A)^-1 x, half at random, at most `KEPT`."""
    if len(blocks) <= KEPT:
        return np.arange(len(blocks), dtype=np.intp)
    rows = blocks.reshape(-1, blocks.shape[2])
    G = rows.T @ rows
    inverse = np.linalg.pinv(G, hermitian=True)
    leverage = np.einsum("pcr,pcr->p", blocks @ inverse, blocks)
    top = np.argpartition(-leverage, KEPT // 2)[: KEPT // 2]
    rest = rng.choice(np.setdiff1d(np.arange(len(blocks)), top), size=KEPT - KEPT // 2, replace=False)
    return np.sort(np.concatenate([top, rest])).astype(np.intp)


def axis_candidates(
    rows: Restricted,
    source: RowSource,
    settings: PoseSettings,
    limits: MotionLimits,
    scene: Scene,
    rng: np.random.Generator,
) -> tuple[Candidates, tuple[AxisPoses, ...], float, IntArray | None]:
    """One pool per axis with the seed's algorithm run on it (algorithms 6.2 and 6.3).

    Returns:
        Candidates, what was found per axis, the total condition number of random poses, and the seed's choice.
    """
    n = len(limits.lower)
    parts: list[tuple[FloatArray, FloatArray, int, IntArray]] = []
    axes, initial_rows = [], []
    for axis in range(n):
        poses, generated = axis_pool(axis, settings, limits, scene, rng)
        own, selection, initial = rated_axis(source, axis, poses, rng)
        axes.append(replace(own, generated=generated, free=len(poses)))
        full = evaluate_rows(rows, poses)[:, axis]
        kept, chosen = kept_with(full, selection.chosen, rng)
        parts.append((poses[kept], full[kept], len(selection.chosen), chosen))
        initial_rows.append(full[initial])
    candidates, rated = merged_pools(rows, parts, limits, scene)
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
    sizes = settings.pool or POOL_SIZES
    size = sizes[min(axis, len(sizes) - 1)]
    generated = generate_poses(reference, limits, settings.spread, size, fixed=axis + 1, rng=rng)
    free = free_poses(scene, generated)
    return enough(scene, generated, free, 1), len(generated)


def rated_axis(
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
        len(own), safe_condition(target), safe_condition(functions[initial]), selection.condition_number,
        selection.penalty, 0, 0,
    )  # fmt: skip
    return found, selection, initial


def kept_with(rows: FloatArray, chosen: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """A smaller pool that contains the chosen poses, and where they are in it."""
    kept = np.unique(np.concatenate([leverage_subset(rows[:, np.newaxis], rng), chosen]))
    return kept, np.searchsorted(kept, chosen).astype(np.intp)


def merged_pools(
    rows: Restricted, parts: list[tuple[FloatArray, FloatArray, int, IntArray]], limits: MotionLimits, scene: Scene
) -> tuple[Candidates, IntArray]:
    """All axes' pools as one, each axis a group of its own, and the seed's choice in it."""
    n = len(limits.lower)
    sizes = [len(poses) for poses, _, _, _ in parts]
    groups = np.repeat(np.arange(n), sizes).astype(np.intp)
    blocks = np.vstack([values for _, values, _, _ in parts])[:, np.newaxis]
    pool = Pool(np.ascontiguousarray(blocks), groups, tuple(quota for _, _, quota, _ in parts))
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rated = np.concatenate([chosen + offset for (_, _, _, chosen), offset in zip(parts, offsets, strict=True)])
    poses = np.vstack([poses for poses, _, _, _ in parts])
    movable = (np.arange(n) > groups[:, np.newaxis]).astype(np.float64)
    return Candidates(rows, poses, np.eye(n)[groups], movable, pool, limits, scene), rated.astype(np.intp)


def offer_choice(tried: Tried, name: str, candidates: Candidates, chosen: IntArray) -> None:
    """Records a choice from the pool."""
    tried.offer(
        name,
        candidates.poses[chosen],
        candidates.channels[chosen],
        candidates.movable[chosen],
        candidates.condition(chosen),
    )


def search_methods(
    candidates: Candidates, settings: PoseSettings, tried: Tried, rated: IntArray | None, rng: np.random.Generator
) -> None:
    """Runs the methods asked for and records what each reached."""
    quality = Quality(Criterion.CONDITION, SHARP)
    pool, method = candidates.pool, settings.method
    if method is Method.TARGET:
        if rated is None:
            raise InputError("method", "target", "the target matrix is for axis inertias")
        return
    if method in (Method.BEST, Method.EXCHANGE):
        chosen, _ = multi_start_exchange(pool, quality, starts=settings.starts, rng=rng, first=rated)
        offer_choice(tried, "exchange", candidates, chosen)
    if method in (Method.BEST, Method.TABU):
        start = pool.random(rng) if rated is None else rated
        chosen, _ = tabu_search(pool, start, quality, iterations=settings.tabu_steps, tenure=len(start), rng=rng)
        offer_choice(tried, "tabu", candidates, exchanged(pool, chosen, quality)[0])
    if method is Method.MULTI_START or (method is Method.BEST and rated is None):
        for _ in range(settings.starts):
            offer_refined(tried, "multi-start", candidates, pool.random(rng))
    if method in (Method.BEST, Method.EXCHANGE, Method.TABU):
        refine_best(tried, candidates)


def offer_refined(tried: Tried, name: str, candidates: Candidates, chosen: IntArray) -> None:
    """Descends from a choice and records the outcome."""
    parts = candidates.poses[chosen], candidates.channels[chosen], candidates.movable[chosen]
    poses = refined(candidates, *parts)
    tried.offer(name, poses, parts[1], parts[2], set_condition(candidates, poses, parts[1]))


def refine_best(tried: Tried, candidates: Candidates) -> None:
    """Moves the best set off the pool."""
    assert tried.best is not None
    assert tried.channels is not None
    assert tried.movable is not None
    poses = refined(candidates, tried.best, tried.channels, tried.movable)
    condition = set_condition(candidates, poses, tried.channels)
    tried.offer("refined", poses, tried.channels, tried.movable, condition)


def refined(candidates: Candidates, poses: FloatArray, channels: FloatArray, movable: FloatArray) -> FloatArray:
    quality = Quality(Criterion.CONDITION, SHARP / 5)
    return refined_poses(
        candidates.source, poses, channels, quality, candidates.limits, candidates.scene, movable=movable
    )


def measured_rows(candidates: Candidates, poses: FloatArray, channels: FloatArray) -> FloatArray:
    """The rows measured at a set of poses, shape [n_rows, r]."""
    A = evaluate_rows(candidates.source, poses)
    return A[channels > 0.0]


def set_condition(candidates: Candidates, poses: FloatArray, channels: FloatArray) -> float:
    """Condition number of a set of poses."""
    return safe_condition(measured_rows(candidates, poses, channels))


def finished(
    robot: Robot,
    purpose: Purpose,
    settings: PoseSettings,
    candidates: Candidates,
    base: BaseParameters,
    tried: Tried,
    pool: tuple[tuple[AxisPoses, ...], float, int, int],
    rng: np.random.Generator,
    notes: tuple[Note, ...],
) -> PoseDesign:
    """Orders the best set, checks the ways between its poses, and describes it."""
    assert tried.best is not None
    assert tried.channels is not None
    axes, initial, generated, free = pool
    # Regions, such as what a camera sees, need only hold where something is measured.
    scene = candidates.scene.contacts()
    order = travel_order(tried.best, candidates.limits, scene)
    poses, channels = tried.best[order], tried.channels[order]
    rows = measured_rows(candidates, poses, channels)
    merit = quality_of(rows, rows=float(len(poses)))
    transitions: TransitionTrajectory | None = None
    stops, problems = tuple(range(len(poses))), tuple[str, ...]()
    if settings.transitions:
        transitions, stops, problems = route(robot, poses, candidates.limits, scene, rng)
    warnings = tuple(Note("no-transition", Severity.WARNING, problem) for problem in problems)
    return PoseDesign(
        robot, purpose, poses, channels > 0.0, base, merit.condition_number, initial, merit.observability,
        tried.conditions, axes, generated, free, transitions, stops, notes + warnings,
    )  # fmt: skip
