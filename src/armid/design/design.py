"""From a robot to a certified excitation trajectory: the one call behind `armid design`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.design.approach import safe_transition
from armid.design.candidate import Candidate, Workshop
from armid.design.certificate import Certificate, certify
from armid.design.excitation import ExcitationProblem
from armid.design.prediction import attained, predicted_deviations
from armid.design.search import Budget, Search, Watcher, search
from armid.design.statement import DEFAULT_MARGIN, DesignSettings, check_start, checked, families_of, stated
from armid.identifiability.base import BaseParameters
from armid.identifiability.criteria import condition_numbers
from armid.identifiability.expectation import excitation_information
from armid.motions.basis import Basis
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import InfeasibleError, MotionLimits, motion_limits
from armid.motions.spline import SplineTrajectory
from armid.motions.trajectory import SequenceTrajectory, Trajectory
from armid.motions.trapezoid import TrapezoidalTrajectory, random_waypoints
from armid.notes import Note
from armid.robot.geometry import Capsule
from armid.robot.robot import Robot
from armid.scene.cell import Cell
from armid.scene.hulls import HullCheck, hull_check
from armid.scene.scene import Scene


@dataclass(frozen=True, eq=False, kw_only=True)
class Design:
    """A certified excitation trajectory and what it will tell.

    Args:
        robot: the arm.
        settings: what was asked.
        trajectory: everything the robot runs: approach, repetitions, return.
        excitation: one period of it.
        base: the parameters it excites.
        condition_number: 2-norm, SI units, of the stacked base regressor at `REPORT_RATE_HZ`.
        condition_number_scaled: with columns scaled to unit norm.
        certificate: of `trajectory`, against `limits`.
        limit_usage: worst ratio to each of the robot's own limits, margins included and whether they counted or not.
        limits: that were kept, margins taken off.
        scene: clearances that were kept.
        deviations: predicted standard deviation of each base parameter for one period, shape [r].
        misses: of the goals, in the order condition number, joints; empty without goals.
        search: how it was found.
        notes: what the reader must know.
        hulls: closest approach of the real shapes; None when the arm has none.
        baseline: condition number of trapezoidal motion through random way-points of the same length, not optimised.
    """

    robot: Robot
    settings: DesignSettings
    trajectory: Trajectory
    excitation: FourierTrajectory | SplineTrajectory
    base: BaseParameters
    condition_number: float
    condition_number_scaled: float
    certificate: Certificate
    limit_usage: dict[str, float]
    limits: MotionLimits
    scene: Scene
    deviations: FloatArray
    misses: FloatArray
    search: Search
    notes: tuple[Note, ...]
    hulls: HullCheck | None
    baseline: float


def design_excitation(
    robot: Robot,
    settings: DesignSettings | None = None,
    *,
    cell: Cell | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    watch: Watcher | None = None,
    resume: Search | None = None,
) -> Design:
    """Searches for the best motion within all limits and certifies it at every instant.

    Args:
        robot: with nominal parameters when torques are limited; a payload belongs to its last link.
        settings: what is asked.
        cell: what surrounds the arm.
        budget: how long to search.
        seed: of everything random.
        watch: told about progress.
        resume: an earlier search to go on from.

    Raises:
        InfeasibleError: no motion keeps the constraints; says which one misses and by how much.
    """
    wanted = settings or DesignSettings()
    bases = families_of(robot, wanted)
    if wanted.goal_reserve and wanted.goal_condition is None:
        wanted = with_found_goal(robot, wanted, cell, bases, budget or Budget(), seed)
        budget = halved(budget or Budget())
    problem, base, notes = stated(robot, wanted, cell)
    check_start(problem, wanted)
    found = search(problem, bases, budget or Budget(), seed=seed, watch=watch, resume=resume)
    if not found.best.feasible:
        assert found.best.certificate is not None
        raise InfeasibleError(
            f"no motion within all limits after {found.explored} starts and {found.seconds:.0f} s; the closest one misses: "
            + "; ".join(found.best.certificate.violations[:4])
            + " (give more time, relax that limit, or use a longer period)"
        )
    return described(problem, wanted, base, bases, found, notes, seed)


GOAL_SLACK = 1.1
"""A goal found by a first run asks for a condition number this much larger than it reached: room for the other goals."""


def with_found_goal(
    robot: Robot, settings: DesignSettings, cell: Cell | None, bases: tuple[Basis, ...], budget: Budget, seed: int
) -> DesignSettings:
    """The settings with a goal for the condition number from a single-objective run in half of the time."""
    alone = replace(settings, goal_reserve={}, goal_weights=None)
    problem, _, _ = stated(robot, alone, cell)
    check_start(problem, alone)
    first = search(problem, bases, halved(budget), seed=seed)
    return replace(settings, goal_condition=GOAL_SLACK * first.best.condition_number)


def halved(budget: Budget) -> Budget:
    return replace(budget, seconds=None if budget.seconds is None else budget.seconds / 2)


def described(
    problem: ExcitationProblem,
    settings: DesignSettings,
    base: BaseParameters,
    bases: tuple[Basis, ...],
    found: Search,
    notes: tuple[Note, ...],
    seed: int,
) -> Design:
    """The motion around the best candidate, and what it will tell."""
    excitation = Workshop(problem, bases, seed).trajectory(found.best)
    trajectory = complete(problem, settings, excitation, np.random.default_rng([seed, 1_000_003]))
    information = excitation_information(problem.rows, excitation)
    condition, scaled = condition_numbers(information, base)
    proof = certify(trajectory, problem.robot, problem.limits, problem.scene)
    own = certify(trajectory, problem.robot, motion_limits(problem.robot)[0], without_clearances(problem.scene))
    hulls = checked_hulls(problem, settings, trajectory)
    baseline = baseline_motion(problem.robot, excitation.period, np.random.default_rng([seed, 1_000_033]))
    return Design(
        robot=problem.robot,
        settings=settings,
        trajectory=trajectory,
        excitation=excitation,
        base=base,
        condition_number=condition,
        condition_number_scaled=scaled,
        certificate=proof,
        limit_usage={name: float(values.max()) for name, values in own.usage.items()},
        limits=problem.limits,
        scene=problem.scene,
        deviations=predicted_deviations(problem, excitation),
        misses=attained(problem, excitation, condition),
        search=found,
        notes=notes,
        hulls=hulls,
        baseline=condition_numbers(excitation_information(problem.rows, baseline), base)[0],
    )


def checked_hulls(problem: ExcitationProblem, settings: DesignSettings, trajectory: Trajectory) -> HullCheck | None:
    """The real shapes along the motion, when the arm has any beyond capsules.

    Raises:
        InfeasibleError: shapes of links overlap that the capsules did not check.
    """
    bodies = (problem.robot.geometry, *(link.geometry for link in problem.robot.links))
    if not settings.self_collision or all(isinstance(g.shape, Capsule) for geometry in bodies for g in geometry):
        return None
    found = hull_check(problem.robot, trajectory)
    if found.distance < 0.0:
        raise InfeasibleError(
            f"the shapes of {found.pair} overlap by {-found.distance:.4f} m at {found.time:.2f} s, although their capsules were "
            "not checked against each other; narrow a joint's position limits, or turn self-collision off if the shapes are wrong"
        )
    return found


def baseline_motion(robot: Robot, period: float, rng: np.random.Generator) -> TrapezoidalTrajectory:
    """Trapezoidal motion through random way-points, about as long as the excitation: [Kolyubin2017]'s comparison."""
    limits = motion_limits(robot)[0].within(DEFAULT_MARGIN)
    points = 2
    while True:
        motion = random_waypoints(
            robot.joint_names, limits.lower, limits.upper, limits.velocity, limits.acceleration, count=points, rng=rng
        )
        if motion.duration >= period or points >= MOST_WAYPOINTS:
            return motion
        points += 1


MOST_WAYPOINTS = 500


def alternatives(design: Design) -> tuple[Candidate, ...]:
    """All certified motions the search kept, the design's own among them, best first."""
    return tuple(candidate for candidate in design.search.pool if candidate.feasible)


def redesigned(design: Design, candidate: Candidate, *, cell: Cell | None = None, seed: int = 0) -> Design:
    """The same design around another of its certified motions."""
    problem, base, notes = stated(design.robot, design.settings, cell)
    bases = families_of(design.robot, design.settings)
    return described(problem, design.settings, base, bases, replace(design.search, best=candidate), notes, seed)


def without_clearances(scene: Scene) -> Scene:
    """The same arm in empty space, allowed to touch itself."""
    return replace(scene, table=np.zeros((0, 7)), names=())


def complete(
    problem: ExcitationProblem,
    settings: DesignSettings,
    excitation: FourierTrajectory | SplineTrajectory,
    rng: np.random.Generator,
) -> Trajectory:
    """Approach from home, the repeated excitation, and the way back."""
    repeated = excitation.repeated(settings.repetitions)
    if settings.home is None:
        return repeated
    home = checked("home", settings.home, problem.robot.n_joints)
    start = excitation.sample(0.0)[0][0]
    approach = safe_transition(problem.robot, home, start, problem.limits, problem.scene, rng=rng)
    return SequenceTrajectory((approach, repeated, approach.reversed()))


__all__ = ["Design", "DesignSettings", "alternatives", "design_excitation", "redesigned"]
