"""One motion on its way through the search, and the kinds of work done on it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from armid.arrays import FloatArray
from armid.design.augmented import EXPLORE, POLISH, REPAIR, SKETCH, Schedule, minimised
from armid.design.certificate import Certificate, certify, kinematic_usage
from armid.design.excitation import ExcitationGrid, ExcitationProblem, analytic_bounds
from armid.design.room import easiest_centres, easiest_pose, free_poses
from armid.identifiability.smooth import SmoothCriterion
from armid.motions.basis import Basis, FourierBasis
from armid.motions.fourier import FourierTrajectory
from armid.motions.spline import SplineTrajectory

COARSE, FINE = 128, 256
"""Instants on the grid while exploring and while polishing: 6 and 13 per second of a 20 s period, whose highest
harmonic takes 2 s."""

_GUARD = 0.002
"""Polishing keeps this fraction away from every limit, and this many metres from every clearance, so that what a
finite number of rounds leaves over, and what happens between instants, still fits."""

_WIDEST_GUARD = 0.05
"""A motion that misses by more than this is not repaired by keeping away further: its constraints contradict each other."""

_INSIDE = 1.0 - 1e-6
"""Motions are shrunk to this fraction of their tightest limit, so that rounding cannot put them outside."""

_REPAIRS = 3
"""Times a polished motion that misses its certificate is polished again with a wider guard."""


class Work(StrEnum):
    """What to do with a start."""

    SKETCH = "sketch"
    EXPLORE = "explore"
    HOP = "hop"
    POLISH = "polish"


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidate:
    """A motion and what is known about it.

    Args:
        start: number of the random start it stems from.
        family: index of its basis.
        coefficients: shape [size, n_joints].
        objective: what the search minimises, with broken constraints added on.
        condition_number: on the search's grid.
        certificate: only after polishing.
        evaluations: spent on it.
    """

    start: int
    family: int
    coefficients: FloatArray
    objective: float = float("inf")
    condition_number: float = float("inf")
    certificate: Certificate | None = None
    evaluations: int = 0

    @property
    def feasible(self) -> bool:
        return self.certificate is not None and self.certificate.feasible


@dataclass(frozen=True, kw_only=True)
class Task:
    """One piece of work.

    Args:
        work: which kind.
        start: number of the random start; seeds everything random in the task.
        family: index of the basis.
        origin: coefficients to go on from; none for a random start.
        deadline: of the wall clock [s since the epoch], so that it means the same in every process.
    """

    work: Work
    start: int
    family: int
    origin: FloatArray | None = None
    deadline: float = float("inf")


_PENALTY_OF_RANKING = 5.0
"""In the ranking of explored motions a limit missed by 1 % weighs like 5 % of the condition number."""

_CROWDED = 0.3
"""A random start that is blocked for more than this share of its time is drawn in ..."""

_MOSTLY_FREE = 0.05
"""... until it is blocked for less than this; descents mend the rest."""

_CENTRES = 20
"""Random poses of which the easiest is the centre of such a start: few, so that starts differ."""

_REPAIRABLE = 0.005
"""[m] A clearance missed by more than this is not a matter of keeping away further: the motion crosses something."""

_SKETCHES = 3
"""Random starts of which the first that fits, or can be made to, is the sketch."""

_SKETCHING = 1.5
"""[s] for the descent of each: on an arm with many fine shapes fewer rounds must do."""

_HOP_SIZE = 0.15
"""Random change of a good motion, relative to its own size, before it descends again: enough to leave its basin."""


class Workshop:
    """Grids and certificates of one problem; every process has its own.

    Args:
        problem: what is asked.
        bases: families of motions, usually one per period.
        seed: of everything random.
    """

    def __init__(self, problem: ExcitationProblem, bases: tuple[Basis, ...], seed: int) -> None:
        self.problem, self.bases, self.seed = problem, bases, seed
        self._grids: dict[tuple[int, int, float], ExcitationGrid] = {}

    def grid(self, family: int, count: int, guard: float = 0.0) -> ExcitationGrid:
        """The problem on a grid, with limits narrowed by a guard."""
        key = (family, count, guard)
        if key not in self._grids:
            self._grids[key] = ExcitationGrid(_with_guard(self.problem, guard), self.bases[family], count)
        return self._grids[key]

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return self.problem.robot.joint_names

    def do(self, task: Task) -> Candidate:
        """The candidate after the work."""
        deadline = time.monotonic() + (task.deadline - time.time())
        if task.work is Work.POLISH:
            assert task.origin is not None
            return self.polished(Candidate(start=task.start, family=task.family, coefficients=task.origin), deadline)
        if task.work is Work.SKETCH:
            return self.sketched(task, deadline)
        rng = np.random.default_rng([self.seed, task.start])
        grid = self.grid(task.family, COARSE)
        if task.origin is None:
            origin = self._random_start(grid, rng)
        else:
            size = np.abs(task.origin).mean(axis=0)
            origin = task.origin + _HOP_SIZE * size * rng.normal(size=task.origin.shape)
        return self.descended(
            Candidate(start=task.start, family=task.family, coefficients=origin), grid, EXPLORE, deadline
        )

    def _random_start(self, grid: ExcitationGrid, rng: np.random.Generator) -> FloatArray:
        """A random motion; where room is scarce, drawn in around a free pose until it is free most of the time.

        A motion that crosses a forbidden region seldom leaves it again: the region is in its way on either side.
        """
        problem = self.problem
        start = grid.basis.random(problem.limits, rng)
        if not len(problem.scene) or self._blocked(grid, start) <= _CROWDED or grid.basis.start is not None:
            return start
        centre = easiest_pose(problem, free_poses(problem, rng, _CENTRES))
        for factor in _SMALLER:
            start = shrunk(grid.basis, start, problem, factor, centre=centre)
            if self._blocked(grid, start) <= _MOSTLY_FREE:
                break
        return start

    def _blocked(self, grid: ExcitationGrid, coefficients: FloatArray) -> float:
        """Share of the time a motion spends in poses that are not free."""
        poses = grid.motion(grid.variables(coefficients))[0].T
        return 1.0 - float(self.problem.scene.is_free(poses).mean())

    def descended(self, candidate: Candidate, grid: ExcitationGrid, schedule: Schedule, deadline: float) -> Candidate:
        """A descent from a candidate, without certificate."""
        before = grid.evaluations
        grid.problem.scene.forget()
        end = minimised(grid, grid.variables(candidate.coefficients), schedule, deadline=deadline)
        return replace(
            candidate,
            coefficients=grid.coefficients(end.variables),
            objective=end.probe.objective + _PENALTY_OF_RANKING * max(end.probe.violation, 0.0),
            condition_number=end.probe.condition_number,
            evaluations=candidate.evaluations + grid.evaluations - before,
        )

    def sketched(self, task: Task, deadline: float) -> Candidate:
        """A modest certified motion in about a second: a short descent, made smaller until it fits.

        Somebody who waits has something to run from then on, and whatever the search finds later replaces it.
        """
        grid, found = self.grid(task.family, COARSE), None
        for k in range(_SKETCHES):
            origin = self._random_start(grid, np.random.default_rng([self.seed, task.start + k]))
            candidate = Candidate(start=task.start + k, family=task.family, coefficients=origin)
            soon = min(deadline, time.monotonic() + _SKETCHING)
            tried = self.drawn_in(self.certified(self.descended(candidate, grid, SKETCH, soon)), deadline)
            found = tried if found is None else better(found, tried)
            if found.feasible or time.monotonic() > deadline:
                break
        assert found is not None
        return found

    def polished(self, candidate: Candidate, deadline: float) -> Candidate:
        """Descends with a sharp criterion and tight constraints, then certifies; repairs what misses."""
        guard, schedule = _GUARD, POLISH
        best = self.certified(candidate)
        for _ in range(_REPAIRS):
            refined = self.certified(
                self.descended(candidate, self.grid(candidate.family, FINE, guard), schedule, deadline)
            )
            best = better(best, refined)
            if not best.feasible:
                best = better(best, self.drawn_in(refined, deadline))
            if refined.feasible or time.monotonic() > deadline:
                break
            assert refined.certificate is not None
            if refined.certificate.clearance < -_REPAIRABLE:
                break
            # What is missing now is kept as additional distance in the next attempt, unless no distance would help.
            guard += max(refined.certificate.worst - 1.0, -refined.certificate.clearance, _GUARD)
            if guard > _WIDEST_GUARD:
                break
            candidate, schedule = refined, REPAIR
        return best

    def drawn_in(self, candidate: Candidate, deadline: float) -> Candidate:
        """The largest of several smaller copies of a motion that fits, around an easy pose; itself when none does.

        Sizes that do not fit at the instants of the grid are passed over: a certificate takes a thousand times as long.
        """
        if candidate.feasible:
            return candidate
        basis, found = self.bases[candidate.family], candidate
        grid = self.grid(candidate.family, FINE)
        poses = self.trajectory(candidate).sample(np.linspace(0.0, basis.period, FINE))[0]
        centres = easiest_centres(self.problem, poses) if basis.start is None else (None,)
        for factor in _SMALLER:
            copies = [shrunk(basis, candidate.coefficients, self.problem, factor, centre=pose) for pose in centres]
            missing = [grid.probe(grid.variables(copy)).violation for copy in copies]
            if factor > _SMALLER[-1] and min(missing) > 0.0:
                continue
            smaller = copies[int(np.argmin(missing))]
            found = self.certified(replace(candidate, coefficients=smaller))
            if found.feasible or time.monotonic() > deadline:
                break
        return better(candidate, found)

    def certified(self, candidate: Candidate) -> Candidate:
        """With a certificate, after shrinking the motion just enough to fit its position and rate limits."""
        problem, basis = self.problem, self.bases[candidate.family]
        worst = max(float(values.max()) for values in self._kinematic_usage(candidate).values())
        if worst > _INSIDE:
            candidate = replace(candidate, coefficients=shrunk(basis, candidate.coefficients, problem, _INSIDE / worst))
        proof = self.proof(candidate)
        grid = self.grid(candidate.family, FINE)
        grid.sharpen(POLISH.powers[1])
        probe = grid.probe(grid.variables(candidate.coefficients))
        # Smoothing is for gradients: of finished motions the condition number itself is compared.
        objective = float(np.log(probe.condition_number)) if _asks_for_condition(problem) else probe.objective
        return replace(candidate, certificate=proof, objective=objective, condition_number=probe.condition_number)

    def proof(self, candidate: Candidate) -> Certificate:
        """The certificate of a motion; where analytic bounds are asked for, they count as usage of the limits."""
        problem = self.problem
        proof = certify(self.trajectory(candidate), problem.robot, problem.limits, problem.scene)
        return replace(proof, usage=self._with_analytic_bounds(candidate, proof.usage))

    def _kinematic_usage(self, candidate: Candidate) -> dict[str, FloatArray]:
        """What the certificate says of position and its derivatives, without the rest, which costs a hundred times more."""
        return self._with_analytic_bounds(candidate, kinematic_usage(self.trajectory(candidate), self.problem.limits))

    def _with_analytic_bounds(self, candidate: Candidate, usage: dict[str, FloatArray]) -> dict[str, FloatArray]:
        bounds = analytic_bounds(self.problem, self.bases[candidate.family])
        if bounds is None:
            return usage
        position, velocity = np.split(bounds.usage(candidate.coefficients), 2)
        stricter = {
            "position": np.maximum(usage["position"], position),
            "velocity": np.maximum(usage["velocity"], velocity),
        }
        return usage | stricter

    def trajectory(self, candidate: Candidate) -> FourierTrajectory | SplineTrajectory:
        return self.bases[candidate.family].trajectory(candidate.coefficients, self._names)


def _asks_for_condition(problem: ExcitationProblem) -> bool:
    """Whether the condition number of the plain rows is all that counts."""
    quality = problem.quality
    alone = problem.goals is None and problem.weights is None and quality.known is None
    return alone and quality.criterion is SmoothCriterion.CONDITION


def better(a: Candidate, b: Candidate) -> Candidate:
    """The feasible one with the smaller objective; of two infeasible ones the one that misses less."""
    if a.feasible != b.feasible:
        return a if a.feasible else b
    if a.feasible:
        return a if (a.objective, a.start) <= (b.objective, b.start) else b
    return a if (_missing(a), a.start) <= (_missing(b), b.start) else b


def _missing(candidate: Candidate) -> float:
    """By how much a candidate breaks its worst constraint; infinite without a certificate."""
    if candidate.certificate is None:
        return float("inf")
    return max(candidate.certificate.worst - 1.0, -10.0 * candidate.certificate.clearance)


def _with_guard(problem: ExcitationProblem, guard: float) -> ExcitationProblem:
    """The same problem with narrower limits and wider clearances."""
    if guard == 0.0:
        return problem
    scene = problem.scene
    table = scene.table.copy()
    if len(table):
        sides = np.where(np.isin(table[:, 0], (5.0, 6.0)), table[:, 4], 1.0)
        table[:, 3] += guard * sides
    return replace(problem, limits=problem.limits.within(guard), scene=replace(scene, table=table))


_SMALLER = (0.9, 0.75, 0.6, 0.45, 0.3, 0.2)
"""Sizes tried for a motion that does not fit; below a fifth it would show too little."""


def shrunk(
    basis: Basis,
    coefficients: FloatArray,
    problem: ExcitationProblem,
    factor: float,
    *,
    centre: FloatArray | None = None,
) -> FloatArray:
    """The motion scaled towards the start pose, or towards a pose (the middle of the ranges) where the start is free.

    Velocities, accelerations and jerks shrink by the factor, and positions stay within their (convex) ranges.
    """
    if basis.start is not None:
        return coefficients * factor
    t = np.linspace(0.0, basis.period, 4 * basis.size + 1)
    constant = np.linalg.lstsq(basis.matrices(t)[0], np.ones(len(t)), rcond=None)[0]
    return factor * coefficients + np.outer(
        constant, (1.0 - factor) * (problem.limits.middle if centre is None else centre)
    )


def _families(
    periods: tuple[float, ...], harmonics: int, start: FloatArray | None, *, at_rest: bool = True
) -> tuple[Basis, ...]:
    """A Fourier basis per period."""
    return tuple(FourierBasis(period, harmonics, start, at_rest) for period in periods)
