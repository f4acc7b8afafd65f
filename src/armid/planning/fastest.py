"""The fastest motion along a path within the limits of an arm: torque model in, motion out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.motions.limits import MotionLimits
from armid.notes import Note, Severity
from armid.planning.confidence import checked_confidence, probability_held, simultaneous_factor
from armid.planning.constraints import (
    Constraints,
    check_collisions,
    check_holding,
    check_positions,
    constraints_of,
    planning_limits,
)
from armid.planning.jerk import JerkProblem, jerk_limited, jerk_problem, law_of, sites_of
from armid.planning.model import TorqueModel
from armid.planning.motion import HELD, Plan, PlanSettings
from armid.planning.path import EasedPath, Path, in_joint_order, regular_grid
from armid.planning.reduced import ReducedDynamics, reduced_dynamics
from armid.planning.time_law import PathTrajectory, TimeLaw, constant_acceleration
from armid.planning.timing import fastest
from armid.planning.usage import Usage, usage_of
from armid.scene.scene import Scene

_INSTANTS_PER_INTERVAL = 4
"""Instants at which limits are checked between two points of the grid, both ends included."""

_TIGHTENINGS = 2
"""Rounds of tightening where a motion passes a limit between points, before slowing down as a whole."""

_CLOSE = 1.0001
"""A motion this close to its limits is slowed down rather than tightened further."""

_SLOWEST = 60
"""Most rounds of slowing down; each takes off what the last one left."""


def fastest_motion(
    path: Path, model: TorqueModel, settings: PlanSettings | None = None, *, scene: Scene | None = None
) -> Plan:
    """The fastest motion from rest to rest along a path within all limits.

    Args:
        path: in drive coordinates; joints are matched by name.
        model: torque of the drives.
        settings: grid, limits, confidence.
        scene: what the arm must not touch; nothing is checked when None.

    Raises:
        PathError: with the place on the path; see `planning.errors`.
    """
    chosen = settings or PlanSettings()
    limits, notes = (chosen.limits, ()) if chosen.limits is not None else planning_limits(model.robot)
    work = _less_margin(limits, chosen.margin)
    ordered = in_joint_order(path, model.robot.joint_names)
    theta = regular_grid(ordered, np.linspace(0.0, ordered.length, chosen.points))
    reduced = reduced_dynamics(ordered, model, theta)
    check_positions(ordered, theta, reduced.derivatives[0], limits, model.robot.joint_names)
    if scene is not None:
        check_collisions(ordered, theta, reduced.derivatives[0], scene)
    plan = _plan_within(reduced, work, 0.0, chosen)
    if chosen.confidence is not None:
        plan = _with_confidence(plan, checked_confidence(chosen.confidence), chosen)
    return replace(plan, notes=(*notes, *_motion_notes(plan)))


def _less_margin(limits: MotionLimits, margin: float) -> MotionLimits:
    """Magnitudes less the margin; position ranges stay whole, since the path is given."""
    if not 0.0 <= margin < 1.0:
        raise InputError("margin", f"{margin}", "a fraction from 0 to below 1")
    kept = {name: (1.0 - margin) * getattr(limits, name) for name in ("velocity", "acceleration", "jerk", "torque")}
    return limits.but(**kept)


def _plan_within(reduced: ReducedDynamics, limits: MotionLimits, kappa: float, settings: PlanSettings) -> Plan:
    """The motion with a given margin for doubt."""
    constraints = constraints_of(reduced, limits, kappa)
    check_holding(constraints)
    profile = fastest(constraints)
    if np.isfinite(limits.jerk).any():
        trajectory = _smooth(reduced, limits, kappa, settings.jerk_points)
    else:
        trajectory = PathTrajectory(reduced.path, constant_acceleration(profile.theta, profile.x))
    trajectory, usage, slowed = _within_limits(trajectory, reduced.model, limits, kappa)
    return Plan(
        path=reduced.path,
        model=reduced.model,
        limits=limits,
        trajectory=trajectory,
        profile=profile,
        usage=usage,
        reduced=reduced,
        kappa=kappa,
        probability=None,
        duration_certain=trajectory.duration,
        slowed=slowed,
    )


def _with_confidence(certain: Plan, confidence: float, settings: PlanSettings) -> Plan:
    """The same with room for the doubt in the parameters; the factor is drawn along the motion itself."""
    if not np.isfinite(certain.model.covariance).all():
        raise InputError(
            "result", "a covariance that is not finite", "identify with data that determine all base parameters"
        )
    kappa, plan = 0.0, certain
    for _ in range(2):
        wanted = simultaneous_factor(plan.trajectory, certain.model, confidence, np.random.default_rng(settings.seed))
        if wanted <= kappa * 1.02:
            break
        kappa = wanted
        plan = _plan_within(certain.reduced, certain.limits, kappa, settings)
    # Other draws than those the factor was chosen with.
    rng = np.random.default_rng([settings.seed, 1])
    held = probability_held(plan.trajectory, plan.model, plan.limits, rng)
    return replace(plan, confidence=confidence, probability=held, duration_certain=certain.duration)


def _smooth(reduced: ReducedDynamics, limits: MotionLimits, kappa: float, points: int) -> PathTrajectory:
    """The jerk-limited motion, tightened where it passes a limit between points of its grid."""
    path = EasedPath(reduced.path)
    problem, start = _eased_problem(path, reduced.model, limits, kappa, points)
    control = jerk_limited(problem, start)
    for _ in range(_TIGHTENINGS):
        trajectory = PathTrajectory(path, law_of(control))
        usage = usage_of(trajectory, reduced.model, limits, kappa, _instants(trajectory.law))
        if usage.needed <= _CLOSE:
            break
        problem = problem.tightened(*_by_interval(usage, problem.at, points))
        control = jerk_limited(problem, control, iterations=2)
    return PathTrajectory(path, law_of(control))


def _eased_problem(
    path: EasedPath, model: TorqueModel, limits: MotionLimits, kappa: float, points: int
) -> tuple[JerkProblem, FloatArray]:
    """The constraints on an eased path, and a slow motion within them to start from."""
    at = constraints_of(reduced_dynamics(path, model, sites_of(points)), limits, kappa)
    start = np.ones(points + 3)
    _, _, slowed = _within_limits(PathTrajectory(path, law_of(start)), model, limits, kappa)
    return jerk_problem(points, at, np.asarray(limits.jerk)), start / (1.02 * slowed) ** 2


def _by_interval(usage: Usage, at: Constraints, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Largest usage of speed, jerk and the limited channels on each of n intervals: one piece of the law each."""
    per = (_INSTANTS_PER_INTERVAL, -1)

    def largest(values: FloatArray) -> FloatArray:
        return np.asarray(values.reshape(n, *per).max(axis=1))

    channels = np.hstack(
        [largest(usage.torque)[:, list(at.torques)], largest(usage.acceleration)[:, list(at.accelerations)]]
    )
    return largest(usage.velocity).max(axis=1), largest(usage.jerk), channels


def _instants(law: TimeLaw) -> FloatArray:
    """Instants inside every piece of a law, from just after its start to just before its end, shape [n * per interval]."""
    inside = np.linspace(1e-6, 1.0 - 1e-6, _INSTANTS_PER_INTERVAL)
    return np.asarray((law.time[:-1, np.newaxis] + np.diff(law.time)[:, np.newaxis] * inside).ravel())


def _within_limits(
    trajectory: PathTrajectory, model: TorqueModel, limits: MotionLimits, kappa: float
) -> tuple[PathTrajectory, Usage, float]:
    """The motion slowed down as a whole until every limit holds at all instants checked, its usage, and the factor.

    Slowing down divides velocities, accelerations and jerks by powers of the factor and leaves gravity and dry friction
    alone ([Hollerbach1984]); since the arm can be held and moved slowly everywhere, some factor always suffices.
    """
    factor, current = 1.0, trajectory
    for _ in range(_SLOWEST):
        usage = usage_of(current, model, limits, kappa, _instants(current.law))
        if usage.needed <= 1.0 + HELD:
            break
        factor *= usage.needed * (1.0 + 1e-8)
        current = PathTrajectory(trajectory.path, trajectory.law.slowed(factor))
    return current, usage, factor


def _motion_notes(plan: Plan) -> tuple[Note, ...]:
    """What a reader of the plan should know."""
    notes = list(plan.model.notes)
    free = [name for name, x in zip(plan.model.robot.joint_names, plan.limits.jerk, strict=True) if not np.isfinite(x)]
    if free:
        notes.append(
            Note("jerk-unlimited", Severity.WARNING, f"no jerk limit for {', '.join(free)}: acceleration may jump")
        )
    if not plan.model.covariance.any():
        notes.append(
            Note("no-covariance", Severity.INFO, "the model comes without a covariance; it was taken at its word")
        )
    return tuple(notes)
