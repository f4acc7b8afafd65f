"""From a robot to a certified excitation: the function behind `armid design`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy.typing as npt

from armid.apart import refuse_inputs_within
from armid.design.asked import joint_values, number_list, periods_of, reserves_of, words_of
from armid.design.known import result_of, wishes_of
from armid.design.motion import Design, Judge, Trial
from armid.design.optimise import alternatives, design_around, design_excitation
from armid.design.question import design_question
from armid.design.search import Budget, Progress, Search, Watcher
from armid.design.search_files import load_search
from armid.design.sequential import SequentialDesign, design_sequential
from armid.design.statement import LIMITS, DesignSettings, families_of, harmonics_for, with_payload
from armid.errors import InputError
from armid.identifiability.smooth import SmoothCriterion
from armid.identification.result import Result
from armid.motions.limits import DEFAULT_MARGIN, InfeasibleError
from armid.motions.limits_file import with_limits
from armid.parameters.effects import DEFAULT_FRICTION, Effects, TorqueSide, effects_of
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.scene.cell import Cell, cell_of, with_margin
from armid.threads import one_blas_thread
from armid.unfinished import UnfinishedWork
from armid.words import choice, number, numbers, whole_number

_START_UP = 10.0
"""[s] A search shorter than this is over before further processes have started: it runs in this one."""


@overload
def design_motion(robot: str | Path | Robot, *, sequential: Literal[True], **asked: Any) -> SequentialDesign: ...
@overload
def design_motion(robot: str | Path | Robot, *, sequential: Literal[False] = False, **asked: Any) -> Design: ...
@overload
def design_motion(robot: str | Path | Robot, *, sequential: bool, **asked: Any) -> Design | SequentialDesign: ...
@one_blas_thread  # type: ignore[misc]  # the two kinds of answer differ by `sequential` alone
def design_motion(
    robot: str | Path | Robot,
    *,
    friction: str | Effects = DEFAULT_FRICTION,
    rotor_inertia: bool = False,
    torques: str | TorqueSide = TorqueSide.LINK,
    period: str | float | Sequence[float] = 20.0,
    harmonics: int | None = None,
    spline_knots: int | None = None,
    start: str | npt.ArrayLike | None = None,
    home: str | npt.ArrayLike | None = None,
    repeat: int = 1,
    margin: float = DEFAULT_MARGIN,
    limits: str | Sequence[str] = LIMITS,
    limits_file: str | Path | None = None,
    max_acceleration: str | npt.ArrayLike | None = None,
    max_jerk: str | npt.ArrayLike | None = None,
    max_torque: str | npt.ArrayLike | None = None,
    cell: str | Path | Cell | None = None,
    self_collision: bool = True,
    clearance_m: float | None = None,
    analytic_bounds: bool = False,
    resonance_hz: float | None = None,
    criterion: str | SmoothCriterion | None = None,
    noise: str | npt.ArrayLike | None = None,
    goal_condition: float | None = None,
    goal_reserve: str | Mapping[str, float] | None = None,
    goal_weights: str | npt.ArrayLike | None = None,
    payload_mass: float = 0.0,
    payload_centre: str | npt.ArrayLike = (0.0, 0.0, 0.0),
    after: str | Path | Result | None = None,
    until: str | None = None,
    rank: int = 0,
    judge: Judge | None = None,
    sequential: bool = False,
    seconds: float | None = 60.0,
    starts: int | None = None,
    workers: int | None = None,
    cluster: Any = None,
    resume: str | Path | Search | None = None,
    seed: int = 0,
    base: str | None = None,
    tip: str | None = None,
    out: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Design | SequentialDesign:
    """An excitation trajectory that excites every parameter and that the arm can run as it is.

    A search over Fourier series (or splines) within the limits of position, velocity, acceleration, jerk and torque, clear of
    the arm itself and its cell; the motion found is certified at every instant, between samples too. Ctrl-C ends the search
    with the best motion so far.

    Args:
        robot: URDF or YAML path, catalogue name, or a robot; with nominal parameters when torques are limited.
        friction: words with commas of viscous, coulomb, offset, or `none`; or all effects at once.
        rotor_inertia: whether rotor inertias are estimated (always so on the motor side).
        torques: where torque is measured: link, motor, both or difference.
        period: [s]; several to try, or a range `10:30`.
        harmonics: of the Fourier series; when None as many as the quickest joint can use, 10 to 25.
        spline_knots: splines with this many knots instead.
        start: pose at which it starts and ends at rest [rad or m], shape [n_joints]; free when None.
        home: pose the robot comes from and goes back to [rad or m], shape [n_joints]; none for the bare excitation.
        repeat: periods to run.
        margin: fraction of every limit left unused.
        limits: kinds that count, of position, velocity, acceleration, jerk, torque.
        limits_file: limits the description cannot hold, or narrower ones; YAML (docs/formats.md).
        max_acceleration, max_jerk, max_torque: the same for all joints or one each, shape [n_joints]; the file's, or the
            description's, when None.
        cell: file, name, or a cell; empty space when None.
        self_collision: whether the arm keeps clear of itself.
        clearance_m: distance kept between bodies [m]; that of the cell, or 0.02, when None.
        analytic_bounds: whether sums of amplitudes must keep position and velocity limits too ([Halper2024], eq. 3.55).
        resonance_hz: the highest harmonic stays below it.
        criterion: what is improved: deviations (the geometric mean of the expected relative deviations), condition, log-det,
            smallest or worst-deviation; None for deviations, or condition when goals are given.
        noise: standard deviation of each torque channel [N m or N], shape [n_channels]; equal when None.
        goal_condition: condition number to attain, with `goal_reserve`; found by a first run when None.
        goal_reserve: mean torque reserve to attain, `joint6=0.9` or a mapping; fractions of the limit.
        goal_weights: how a miss of each goal counts, condition number first.
        payload_mass: carried at the tip [kg], for torques.
        payload_centre: its centre of mass in the tip frame [m], shape [3].
        after: result of an earlier identification, or its folder: the motion adds to what it knows.
        until: how well parameters shall be known, `mass 2 %, friction 5 %`: as many periods as it takes.
        rank: run this many of the best motions and keep what identifies best ([Halper2024], algorithm 2).
        judge: what runs and ranks them: `armid.studies.ranking.rank_motions`, or one of your own.
        sequential: a plan of locked-joint experiments instead, tip to base ([Khosla1985]).
        seconds: to search; None or 0 for no limit (then give `starts`).
        starts: random starts instead of time: repeats exactly for a seed.
        workers: processes; one per core when the search is long enough for them.
        cluster: where motions are searched instead: `local[:N]`, a scheduler's address, or a Dask client (docs/cluster.md).
        resume: `search.json` of an earlier design, or its search, to go on from.
        seed: of everything random.
        base, tip: links of a URDF where the arm begins and ends.
        out: folder the design will be saved to. Every finished start is kept there at once: killed and called again with the
            same arguments, the search goes on, with `starts` to the same motion. Saving the design ends the keeping.
        progress: told in words how far the search is.

    Returns:
        The design; with `sequential` the plan of experiments.

    Raises:
        InfeasibleError: no motion keeps the constraints; says which one misses and by how much.
        InputError: something asked for that cannot be.
    """
    refuse_inputs_within(out, (robot, limits_file, cell, after, resume))
    seconds = None if seconds is None else number("seconds", seconds)
    starts = None if starts is None else whole_number("starts", starts)
    arm = robot if isinstance(robot, Robot) else load_robot(robot, base=base, tip=tip)
    arm = with_limits(arm, limits_file, max_acceleration=max_acceleration, max_jerk=max_jerk, max_torque=max_torque)
    if payload_mass:
        arm = with_payload(arm, payload_mass, _centre(payload_centre))
    earlier_result = result_of(after)
    if earlier_result is not None:
        rotor_inertia = rotor_inertia or earlier_result.effects.rotor_inertia
        torques = earlier_result.effects.torques
    periods = periods_of(period)
    settings = DesignSettings(
        effects=_effects(friction, rotor_inertia=rotor_inertia, torques=torques),
        periods=periods,
        harmonics=harmonics_for(arm, periods, resonance_hz) if harmonics is None else harmonics,
        knots=spline_knots,
        start=joint_values("start", start, arm.n_joints),
        home=joint_values("home", home, arm.n_joints),
        margin=margin,
        limits=words_of(limits),
        analytic=analytic_bounds,
        resonance_hz=resonance_hz,
        self_collision=self_collision,
        criterion=_criterion(criterion, goals=goal_condition is not None or goal_reserve is not None),
        wishes=wishes_of(until),
        noise=None if noise is None else number_list("noise", noise),
        goal_condition=goal_condition,
        goal_reserve=reserves_of(goal_reserve),
        goal_weights=None if goal_weights is None else number_list("goal weights", goal_weights),
        repetitions=repeat,
    )
    space = cell_of(cell) if clearance_m is None else with_margin(cell_of(cell), clearance_m)
    budget = Budget(
        seconds=seconds or None,
        starts=starts,
        workers=workers or default_workers(seconds or 0.0),
        cluster=cluster,
    )
    if rank and judge is None:
        raise InputError("rank", f"{rank} motions and no judge", "give judge=armid.studies.ranking.rank_motions")
    earlier = resume if isinstance(resume, Search) else None
    if isinstance(resume, str | Path) and not sequential:
        earlier = load_search(Path(resume), families_of(arm, settings), arm.n_joints)
    question = design_question(arm, settings, space, budget, seed, resume=earlier, after=earlier_result)
    kept = UnfinishedWork(out, (SequentialDesign if sequential else Design).__name__, question)
    try:
        if sequential:
            return design_sequential(arm, settings, cell=space, budget=budget, seed=seed, kept=kept)
        found = design_excitation(
            arm,
            settings,
            cell=space,
            budget=budget,
            seed=seed,
            watch=None if progress is None else _in_words(progress),
            resume=earlier,
            after=earlier_result,
            kept=kept,
        )
    except InfeasibleError:
        kept.drop()
        raise
    if judge is not None and rank:
        found = _judged(found, rank, judge, space, seed, earlier_result)
    return replace(found, notes=(*found.notes, *kept.notes))


def _criterion(criterion: str | SmoothCriterion | None, *, goals: bool) -> SmoothCriterion:
    """What is improved; goals are about the condition number."""
    if criterion is None:
        return SmoothCriterion.CONDITION if goals else SmoothCriterion.DEVIATIONS
    return choice("criterion", criterion, SmoothCriterion)


def _effects(friction: str | Effects, *, rotor_inertia: bool, torques: str | TorqueSide) -> Effects:
    if isinstance(friction, Effects):
        return friction
    return effects_of(friction, rotor_inertia=rotor_inertia, torques=torques, shapes=False)


def _centre(centre: str | npt.ArrayLike) -> tuple[float, ...]:
    return (
        numbers("payload centre", centre, 3, "0,0,0.05")
        if isinstance(centre, str)
        else number_list("payload centre", centre)
    )


def _in_words(progress: Callable[[str], None]) -> Watcher:
    def tell(state: Progress) -> None:
        best = f"best condition number {state.best:.2f}" if state.best < float("inf") else "nothing certified yet"
        progress(f"searching, {state.seconds:.0f} s: {state.explored} starts, {best}")

    return tell


def default_workers(seconds: float) -> int:
    """One process per core this one may use, when the search is long enough for them.

    Args:
        seconds: to search; 0 for no limit.
    """
    if 0.0 < seconds < _START_UP:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _judged(found: Design, count: int, judge: Judge, cell: Cell | None, seed: int, after: Result | None) -> Design:
    """The design around the motion that did best when it was run, and how the others did."""
    candidates = alternatives(found)[:count]
    bases = families_of(found.robot, found.settings)
    motions = [bases[c.family].trajectory(c.coefficients, found.robot.joint_names) for c in candidates]
    ranked = judge(found.robot, motions, seed=seed)
    trials = tuple(
        Trial(
            start=candidates[r.index].start,
            condition_number=candidates[r.index].condition_number,
            predicted_error=r.predicted,
            achieved_error=r.achieved,
        )
        for r in ranked
    )
    best = candidates[ranked[0].index]
    return replace(design_around(found, best, cell=cell, seed=seed, after=after), ranking=trials)
