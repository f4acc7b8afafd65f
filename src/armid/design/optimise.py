"""From what is asked to a certified excitation: state the problem, search, certify, describe."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.design.approach import safe_transition
from armid.design.candidate import Candidate, Workshop
from armid.design.certificate import certify
from armid.design.excitation import ExcitationProblem
from armid.design.known import Fulfilment, check_wishes, known_from, periods_needed
from armid.design.motion import Design
from armid.design.prediction import channel_noise, goal_misses, period_information, predicted_deviations
from armid.design.room import check_room
from armid.design.search import Budget, Search, Watcher, search
from armid.design.statement import (
    DesignSettings,
    check_start,
    excitation_problem,
    families_of,
    finite_vector,
)
from armid.documents import plain
from armid.identifiability.base import BaseParameters
from armid.identifiability.criteria import condition_numbers
from armid.identifiability.expectation import deviation_scale, excitation_information, relative_deviations
from armid.identification.result import Result
from armid.motions.basis import Basis
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import DEFAULT_MARGIN, InfeasibleError, motion_limits
from armid.motions.spline import SplineTrajectory
from armid.motions.trajectory import SequenceTrajectory, Trajectory
from armid.motions.trapezoid import TrapezoidalTrajectory, random_waypoints
from armid.notes import Note
from armid.outcome import InputFile, Provenance
from armid.robot.geometry import Capsule
from armid.robot.robot import Robot
from armid.scene.cell import Cell
from armid.scene.hulls import HullCheck, hull_check
from armid.scene.scene import Scene
from armid.unfinished import UnfinishedWork


def design_excitation(
    robot: Robot,
    settings: DesignSettings | None = None,
    *,
    cell: Cell | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    watch: Watcher | None = None,
    resume: Search | None = None,
    after: Result | None = None,
    kept: UnfinishedWork | None = None,
    name: str = "search",
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
        after: a result whose knowledge the motion adds to.
        kept: where finished starts are kept, and found again after a kill.
        name: of this search among what is kept.

    Raises:
        InfeasibleError: no motion keeps the constraints; says which one misses and by how much.
    """
    wanted = settings or DesignSettings()
    bases = families_of(robot, wanted)
    if wanted.goal_reserve and wanted.goal_condition is None:
        wanted = _with_found_goal(robot, wanted, cell, bases, budget or Budget(), seed, kept)
        budget = _half(budget or Budget())
    problem, base, notes = excitation_problem(robot, wanted, cell, after=after)
    check_start(problem, wanted)
    check_wishes(wanted.wishes, _known_arm(problem.robot, after), problem.rows, base)
    check_room(problem)
    found = search(problem, bases, budget or Budget(), seed=seed, watch=watch, resume=resume, kept=kept, name=name)
    if not found.best.feasible:
        assert found.best.certificate is not None
        raise InfeasibleError(_why_none(found))
    return _describe(problem, wanted, base, bases, found, notes, seed, after)


_ENOUGH_TRIED = 4
"""Motions polished without one that fits, after which more of the same time is not what is missing."""


def _why_none(found: Search) -> str:
    """Which constraint the best motion misses, by how much, and what helps with that kind of constraint."""
    proof = found.best.certificate
    assert proof is not None
    helps = []
    if found.polished < _ENOUGH_TRIED:
        helps.append(f"more time with --search-seconds (only {found.polished} motions were worked out)")
    if proof.clearance < 0.0:
        helps.append("a smaller distance with --clearance-m, or --no-collisions when the shapes are too coarse")
    if proof.usage["torque"].max() > 1.0:
        helps.append("a longer --period, or other torque limits")
    if proof.kinematic_worst > 1.0:
        helps.append("a longer --period, or fewer --harmonics")
    return (
        f"no motion within all limits after {found.explored} starts and {found.seconds:.0f} s; the closest one misses: "
        f"{'; '.join(proof.violations[:4])} ({'; '.join(dict.fromkeys(helps))})"
    )


_GOAL_SLACK = 1.1
"""A goal found by a first run asks for a condition number this much larger than it reached: room for the other goals."""


def _with_found_goal(
    robot: Robot,
    settings: DesignSettings,
    cell: Cell | None,
    bases: tuple[Basis, ...],
    budget: Budget,
    seed: int,
    kept: UnfinishedWork | None,
) -> DesignSettings:
    """The settings with a goal for the condition number from a single-objective run in half of the time."""
    alone = replace(settings, goal_reserve={}, goal_weights=None)
    problem, _, _ = excitation_problem(robot, alone, cell)
    check_start(problem, alone)
    first = search(problem, bases, _half(budget), seed=seed, kept=kept, name="search for a goal")
    return replace(settings, goal_condition=_GOAL_SLACK * first.best.condition_number)


def _half(budget: Budget) -> Budget:
    return replace(budget, seconds=None if budget.seconds is None else budget.seconds / 2)


def _describe(
    problem: ExcitationProblem,
    settings: DesignSettings,
    base: BaseParameters,
    bases: tuple[Basis, ...],
    found: Search,
    notes: tuple[Note, ...],
    seed: int,
    after: Result | None,
) -> Design:
    """The motion around the best candidate, and what it will tell."""
    excitation = Workshop(problem, bases, seed).trajectory(found.best)
    known = None if after is None else known_from(after, problem.robot, problem.rows, base).information
    arm = _known_arm(problem.robot, after)
    wishes = _fulfilments(problem, settings, base, excitation, known, arm)
    if wishes:
        settings = replace(settings, repetitions=max(settings.repetitions, *(w.periods or 1 for w in wishes)))
    all_periods = predicted_deviations(problem, excitation, periods=settings.repetitions, known=known)
    trajectory = _with_approach(problem, settings, excitation, np.random.default_rng([seed, 1_000_003]))
    information = excitation_information(problem.rows, excitation)
    condition, scaled = condition_numbers(information, base)
    proof = certify(trajectory, problem.robot, problem.limits, problem.scene)
    own = certify(trajectory, problem.robot, motion_limits(problem.robot)[0], _without_clearances(problem.scene))
    hulls = _check_hulls(problem, settings, trajectory)
    baseline = _baseline_motion(problem.robot, excitation.period, np.random.default_rng([seed, 1_000_033]))
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
        deviations=predicted_deviations(problem, excitation, known=known),
        relative=relative_deviations(arm, problem.rows, base, all_periods),
        noise=channel_noise(problem),
        wishes=wishes,
        misses=goal_misses(problem, excitation, condition),
        search=found,
        notes=notes,
        hulls=hulls,
        baseline=condition_numbers(excitation_information(problem.rows, baseline), base)[0],
        provenance=Provenance(inputs=(robot_file(problem.robot),), settings=described_settings(settings), seed=seed),
    )


def _known_arm(robot: Robot, after: Result | None) -> Robot:
    """Whose values shares refer to: as identified before, or as described."""
    return robot if after is None else after.robot


def _fulfilments(
    problem: ExcitationProblem,
    settings: DesignSettings,
    base: BaseParameters,
    excitation: Trajectory,
    known: FloatArray | None,
    arm: Robot,
) -> tuple[Fulfilment, ...]:
    """How many periods each wish takes."""
    if not settings.wishes:
        return ()
    one, scale = period_information(problem, excitation), deviation_scale(arm, problem.rows, base)
    return tuple(
        periods_needed(wish, rows=problem.rows, base=base, scale=scale, one=one, known=known)
        for wish in settings.wishes
    )


def robot_file(robot: Robot) -> InputFile:
    """The description as an input of an answer."""
    return InputFile(robot.source.path, robot.source.sha256, "robot")


def described_settings(settings: DesignSettings) -> dict[str, Any]:
    """Every choice as plain values."""
    values: dict[str, Any] = plain(asdict(settings))
    return values


def _check_hulls(problem: ExcitationProblem, settings: DesignSettings, trajectory: Trajectory) -> HullCheck | None:
    """The real shapes along the motion, when the arm has any beyond capsules.

    Raises:
        InfeasibleError: shapes of links overlap that the capsules did not check.
    """
    bodies = (problem.robot.geometry, *(link.geometry for link in problem.robot.links))
    if not settings.self_collision or all(isinstance(g.shape, Capsule) for geometry in bodies for g in geometry):
        return None
    found = hull_check(problem.robot, trajectory, left_out=problem.scene.left_out)
    if found.distance < 0.0:
        raise InfeasibleError(
            f"the shapes of {found.pair} overlap by {-found.distance:.4f} m at {found.time:.2f} s, although their capsules were "
            "not checked against each other; narrow a joint's position limits, or turn self-collision off if the shapes are wrong"
        )
    return found


def _baseline_motion(robot: Robot, period: float, rng: np.random.Generator) -> TrapezoidalTrajectory:
    """Trapezoidal motion through random way-points, about as long as the excitation: [Kolyubin2017]'s comparison."""
    limits = motion_limits(robot)[0].within(DEFAULT_MARGIN)
    points = 2
    while True:
        motion = random_waypoints(
            robot.joint_names, limits.lower, limits.upper, limits.velocity, limits.acceleration, count=points, rng=rng
        )
        if motion.duration >= period or points >= _MOST_WAYPOINTS:
            return motion
        points += 1


_MOST_WAYPOINTS = 500


def alternatives(design: Design) -> tuple[Candidate, ...]:
    """All certified motions the search kept, the design's own among them, best first."""
    return tuple(candidate for candidate in design.search.pool if candidate.feasible)


def design_around(
    design: Design, candidate: Candidate, *, cell: Cell | None = None, seed: int = 0, after: Result | None = None
) -> Design:
    """The same design around another of its certified motions."""
    problem, base, notes = excitation_problem(design.robot, design.settings, cell, after=after)
    bases = families_of(design.robot, design.settings)
    chosen = replace(design.search, best=candidate)
    return _describe(problem, design.settings, base, bases, chosen, notes, seed, after)


def _without_clearances(scene: Scene) -> Scene:
    """The same arm in empty space, allowed to touch itself."""
    return replace(scene, table=np.zeros((0, 7)), names=())


def _with_approach(
    problem: ExcitationProblem,
    settings: DesignSettings,
    excitation: FourierTrajectory | SplineTrajectory,
    rng: np.random.Generator,
) -> Trajectory:
    """Approach from home, the repeated excitation, and the way back."""
    repeated = excitation.repeated(settings.repetitions)
    if settings.home is None:
        return repeated
    home = finite_vector("home", settings.home, problem.robot.n_joints)
    start = excitation.sample(0.0)[0][0]
    approach = safe_transition(problem.robot, home, start, problem.limits, problem.scene, rng=rng)
    return SequenceTrajectory((approach, repeated, approach.reversed()))
