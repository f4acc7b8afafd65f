"""Poses from pools: every method asked for is tried, the best set is moved off the pool, ordered and described."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from armid.arrays import FloatArray
from armid.design.inertia_poses import (
    TORQUE_NOISE,
    PredictionError,
    evenly_random,
    floored_inverse,
    greedy_choice,
    prediction_candidates,
)
from armid.design.pose_candidates import (
    AxisPoses,
    Candidates,
    IntArray,
    PoseMethod,
    PoseSettings,
    Purpose,
    axis_candidates,
    pose_candidates,
)
from armid.design.pose_design import PoseDesign
from armid.design.pose_list import PoseList
from armid.design.pose_pool import pose_limits, without_doubtful_pairs
from armid.design.pose_refine import refined_poses
from armid.design.pose_selection import exchange, multi_start_exchange, tabu_search
from armid.design.target_matrix import safe_condition
from armid.design.travel import route, travel_order
from armid.errors import InputError
from armid.identifiability.base import BaseParameters
from armid.identifiability.criteria import quality as quality_of
from armid.identifiability.rank import WEAK
from armid.identifiability.smooth import Merit, SmoothCriterion
from armid.identifiability.structure import structural_base
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.kernels.source import RowSource
from armid.motions.sweep import USUAL_SECONDS
from armid.motions.transition import TransitionTrajectory
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.rows.axis_inertia import AxisInertiaRows
from armid.rows.gravity import GravityRows
from armid.rows.pose import PoseRows
from armid.scene.cell import Cell
from armid.scene.scene import build_scene

_SHARP = 40.0
"""Power at which the smooth condition number is within a few per cent of the true one."""


@dataclass(eq=False, kw_only=True)
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
    listed: PoseList | None = None,
    seed: int = 0,
) -> PoseDesign:
    """Chooses poses for a purpose.

    Args:
        robot: the arm.
        purpose: what is measured.
        settings: what is asked.
        cell: obstacles, and regions the tracked frame must stay in.
        listed: the user's own poses, to choose from; for calibration and gravity. Poses are generated when None.
        seed: of everything random.

    Raises:
        InfeasibleError: too few poses keep the clearances; says which one fails most often.
        InputError: something asked for that cannot be.
    """
    wanted = settings or PoseSettings()
    if listed is not None:
        _check_listed(purpose, wanted)
    rng = np.random.default_rng(seed)
    full, assumed = pose_limits(robot)
    limits = full.within(wanted.margin)
    scene = build_scene(robot, cell, self_collision=wanted.self_collision)
    scene = without_doubtful_pairs(scene, rng.uniform(limits.lower, limits.upper, size=(2000, robot.n_joints)))
    source = source_of(robot, purpose, wanted)
    base, notes = _choose_base(source)
    notes = (*_limit_notes(assumed, wanted, listed), *notes)
    rows = Restricted(source, tuple(int(i) for i in base.independent))
    tried = Tried()
    if wanted.method is PoseMethod.PREDICTION:
        if purpose is not Purpose.AXIS_INERTIA:
            raise InputError("method", "prediction", "predictions are of axis inertias; use best")
        candidates, quality, generated, free = prediction_candidates(robot, rows, wanted, limits, scene, rng)
        chosen = evenly_random(candidates, rng)
        initial = _set_condition(candidates, candidates.poses[chosen], candidates.channels[chosen])
        expected = _search_prediction(candidates, quality, tried)
        pool = (), initial, generated, free
        return _finish(robot, purpose, wanted, candidates, base, tried, pool, rng, (*notes, expected, *scene.notes))
    if purpose is Purpose.AXIS_INERTIA:
        candidates, axes, initial, rated = axis_candidates(rows, source, wanted, limits, scene, rng)
        if rated is not None:
            _offer_choice(tried, "target matrix", candidates, rated)
        generated, free = sum(a.generated for a in axes), sum(a.free for a in axes)
    else:
        candidates, generated, free = pose_candidates(rows, purpose, wanted, limits, scene, rng, listed)
        axes, rated, notes = (), None, notes + candidates.notes
        initial = float(np.median(candidates.random))
    _search_methods(candidates, wanted, tried, rated, rng)
    return _finish(
        robot, purpose, wanted, candidates, base, tried, (axes, initial, generated, free), rng, notes + scene.notes
    )


def _check_listed(purpose: Purpose, settings: PoseSettings) -> None:
    """Whether a list can be chosen from as asked."""
    if purpose is Purpose.AXIS_INERTIA:
        raise InputError("from", "a list of poses for axis-inertia", "lists are for calibration and gravity")
    if settings.method is PoseMethod.MULTI_START:
        raise InputError("method", "multi-start moves poses, and those of a list stay", "best, exchange or tabu")


def _limit_notes(assumed: tuple[Note, ...], settings: PoseSettings, listed: PoseList | None) -> tuple[Note, ...]:
    """What was assumed and matters: positions for poses that are generated, the rest for the way between poses."""
    positions = ("position", "lower", "upper")
    return tuple(note for note in assumed if (listed is None if note.subject in positions else settings.transitions))


def source_of(robot: Robot, purpose: Purpose, settings: PoseSettings) -> RowSource:
    """The rows a purpose measures."""
    match purpose:
        case Purpose.CALIBRATION:
            return PoseRows(robot=robot, frame=settings.frame, model=settings.errors)
        case Purpose.GRAVITY:
            return GravityRows(robot)
        case Purpose.AXIS_INERTIA:
            return AxisInertiaRows(robot)


def _choose_base(source: RowSource) -> tuple[BaseParameters, tuple[Note, ...]]:
    """Base parameters without those that are identifiable only by a hair, which no choice of poses can help."""
    full = structural_base(source)
    if not full.weak:
        return full, ()
    base = structural_base(source, tolerance=WEAK)
    lost = sorted(set(full.names) - set(base.names))
    note = Note(
        "weak-direction",
        Severity.WARNING,
        f"left out of the choice of poses, since determined a thousand times worse than the rest: {', '.join(lost)}",
    )
    return base, (note,)


def _offer_choice(tried: Tried, name: str, candidates: Candidates, chosen: IntArray) -> None:
    """Records a choice from the pool."""
    tried.offer(
        name,
        candidates.poses[chosen],
        candidates.channels[chosen],
        candidates.movable[chosen],
        candidates.condition(chosen),
    )


def _search_methods(
    candidates: Candidates, settings: PoseSettings, tried: Tried, rated: IntArray | None, rng: np.random.Generator
) -> None:
    """Runs the methods asked for and records what each reached."""
    quality = Merit(SmoothCriterion.CONDITION, _SHARP)
    pool, method = candidates.pool, settings.method
    if method is PoseMethod.TARGET:
        if rated is None:
            raise InputError("method", "target", "the target matrix is for axis inertias")
        return
    if method in (PoseMethod.BEST, PoseMethod.EXCHANGE):
        first = candidates.drawn if rated is None else rated
        chosen, _ = multi_start_exchange(pool, quality, starts=settings.starts, rng=rng, first=first)
        _offer_choice(tried, "exchange", candidates, chosen)
    if method in (PoseMethod.BEST, PoseMethod.TABU):
        start = pool.random(rng) if rated is None else rated
        chosen, _ = tabu_search(pool, start, quality, iterations=settings.tabu_steps, tenure=len(start), rng=rng)
        _offer_choice(tried, "tabu", candidates, exchange(pool, chosen, quality)[0])
    if candidates.listed:
        return
    if method is PoseMethod.MULTI_START or (method is PoseMethod.BEST and rated is None):
        for _ in range(settings.starts):
            _offer_refined(tried, "multi-start", candidates, pool.random(rng))
    if method in (PoseMethod.BEST, PoseMethod.EXCHANGE, PoseMethod.TABU):
        _refine_best(tried, candidates)


def _search_prediction(candidates: Candidates, quality: PredictionError, tried: Tried) -> Note:
    """Exchange and descent on the expected error of prediction; what was expected of the outcome."""
    chosen, _ = exchange(candidates.pool, greedy_choice(candidates.pool, quality), quality)
    poses, channels, movable = (part[chosen] for part in (candidates.poses, candidates.channels, candidates.movable))
    tried.conditions["exchange"] = _set_condition(candidates, poses, channels)
    moved = refined_poses(
        candidates.source, poses, channels, quality, candidates.limits, candidates.scene, movable=movable
    )
    tried.conditions["refined"] = _set_condition(candidates, moved, channels)
    tried.best, tried.channels, tried.movable = moved, channels, movable
    G = _measured_gram(candidates, moved, channels)
    errors = np.sqrt(np.einsum("kij,ji->k", quality.weights, floored_inverse(G)))
    text = ", ".join(f"{100 * e:.2f}" for e in errors)
    return Note(
        "expected-accuracy",
        Severity.INFO,
        f"inertias predicted anywhere to {text} % (root mean square, per axis) with one measurement of {USUAL_SECONDS:g} s each "
        f"at 1 kHz and torque noise of {100 * TORQUE_NOISE:g} % of the limit; four times the time halves it",
    )


def _measured_gram(candidates: Candidates, poses: FloatArray, channels: FloatArray) -> FloatArray:
    """Gram matrix of the rows measured at a set of poses, weighted, shape [r, r]."""
    rows = (evaluate_rows(candidates.source, poses) * channels[:, :, np.newaxis])[channels > 0.0]
    return rows.T @ rows


def _offer_refined(tried: Tried, name: str, candidates: Candidates, chosen: IntArray) -> None:
    """Descends from a choice and records the outcome."""
    parts = candidates.poses[chosen], candidates.channels[chosen], candidates.movable[chosen]
    poses = _refine_set(candidates, *parts)
    tried.offer(name, poses, parts[1], parts[2], _set_condition(candidates, poses, parts[1]))


def _refine_best(tried: Tried, candidates: Candidates) -> None:
    """Moves the best set off the pool."""
    assert tried.best is not None
    assert tried.channels is not None
    assert tried.movable is not None
    poses = _refine_set(candidates, tried.best, tried.channels, tried.movable)
    condition = _set_condition(candidates, poses, tried.channels)
    tried.offer("refined", poses, tried.channels, tried.movable, condition)


def _refine_set(candidates: Candidates, poses: FloatArray, channels: FloatArray, movable: FloatArray) -> FloatArray:
    quality = Merit(SmoothCriterion.CONDITION, _SHARP / 5)
    return refined_poses(
        candidates.source,
        poses,
        channels,
        quality,
        candidates.limits,
        candidates.scene,
        movable=movable,
        places=candidates.places,
    )


def _measured_rows(candidates: Candidates, poses: FloatArray, channels: FloatArray) -> FloatArray:
    """The rows measured at a set of poses, shape [n_rows, r]."""
    A = evaluate_rows(candidates.source, poses)
    return A[channels > 0.0]


def _set_condition(candidates: Candidates, poses: FloatArray, channels: FloatArray) -> float:
    """Condition number of a set of poses."""
    return safe_condition(_measured_rows(candidates, poses, channels))


def _finish(
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
    rows = _measured_rows(candidates, poses, channels)
    merit = quality_of(rows, rows=float(len(poses)))
    transitions: TransitionTrajectory | None = None
    stops, problems = tuple(range(len(poses))), tuple[str, ...]()
    if settings.transitions:
        transitions, stops, problems = route(robot, poses, candidates.limits, scene, rng)
    warnings = tuple(Note("no-transition", Severity.WARNING, problem) for problem in problems)
    return PoseDesign(
        robot=robot,
        purpose=purpose,
        method=settings.method,
        poses=poses,
        channels=channels > 0.0,
        channel_names=tuple(candidates.source.channels),
        base=base,
        condition_number=merit.condition_number,
        condition_number_scaled=merit.condition_number_scaled,
        initial_condition_number=initial,
        random_condition_numbers=candidates.random,
        observability=merit.observability,
        methods=tried.conditions,
        axes=axes,
        generated=generated,
        free=free,
        transitions=transitions,
        stops=stops,
        notes=notes + warnings,
    )
