"""The constrained problem of [Halper2024] (eqs. 3.52, 3.53): physical parameters mu = (m, c, I_c) with heuristic inequalities.

Its inequalities are linear in mu, its objective is not; standard parameters are the other way round. The set makes masses and
inertia tensors positive (off-diagonals of at most a tenth make tensors diagonally dominant), but it does not imply
positive pseudo-inertias: principal moments may still break the triangle inequality. The result is checked and the LMI remains
the recommended form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.bodies import Body
from armid.consistency.bounds import Bounds, Constraint, Kind, add_constraint
from armid.consistency.consistent import ConsistentEstimate, parameter_scale, sum_of_squares
from armid.consistency.contradictions import relax
from armid.consistency.physical import (
    physical_curvature,
    physical_jacobian,
    to_physical,
    to_standard,
)
from armid.consistency.places import CentreBox, CentreEllipsoid, CentreHull, Support
from armid.consistency.program import ConicProgram
from armid.consistency.regularisers import Entropic, PullBack, Regulariser
from armid.errors import UnknownNameError
from armid.information.information import Information, triangular
from armid.information.status import EstimationError, Status
from armid.notes import Note, Severity

_SMALLEST_UNIT = (1e-3, *(1e-2,) * 3, *(1e-3,) * 6)
"""[kg, m, kg m^2]: least unit of (3.52b) around values of the prior that are zero."""

FIRST_DAMPING, LAST_DAMPING = 1e-3, 1e6
"""Of a step, relative to the mean stiffness of the rows: where it starts, and where no step that helps is left."""
_NEGLIGIBLE = 1e-3
"""Of a step's gain in weighted squared error, where one is a standard deviation: the search ends."""
_GIVE = 1e-6
"""In the bodies' own units: inequalities that can only hold with more than this do not hold."""
_WEAK_PULL = 1e-9
"""Towards small mu, so that the question has one answer; too weak to be worth breaking an inequality for."""
_CURVATURE_FLOOR = 1e-14
"""Relative; smaller ones are round-off."""


@dataclass(frozen=True, eq=False)
class ThesisProblem:
    """Sequential quadratic programming in mu from a consistent start: a local optimum.

    Args:
        regulariser: pull towards the prior; decides what the data cannot see.
        bounds: with the inequalities; places of centres and masses are linear in mu too and are kept. The spread of mass is not
            linear and is only checked.
        iterations: at most so many.
    """

    regulariser: Regulariser = field(default_factory=PullBack)
    bounds: Bounds = field(default_factory=Bounds)
    iterations: int = 200

    def fit(self, information: Information, start: ConsistentEstimate) -> ConsistentEstimate:
        """Newton steps, each a small quadratic program with the linear inequalities; every iterate is feasible.

        Raises:
            EstimationError: the inequalities contradict each other or the bounds.
        """
        factor = information.stacked()
        R, z = factor[:-1, :-1], factor[:-1, -1]
        constraints = self.constraints(start)
        _refuse_contradictions(constraints, _physical_units(start))
        objective = Objective(R, z, _quadratic(self.regulariser), start)
        mu = _nearest_feasible(to_physical(start.values, start.bodies), constraints, _physical_units(start))
        mu, status, used = self.descend(objective, mu, constraints)
        values = to_standard(mu, start.bodies)
        result = replace(
            start,
            values=values,
            chi_square=sum_of_squares(factor, values),
            method="eq3.53",
            status=status,
            iterations=used,
        )
        return replace(result, notes=(*result.notes, *self.findings(result)))

    def descend(
        self, objective: Objective, mu: FloatArray, constraints: Sequence[Constraint]
    ) -> tuple[FloatArray, Status, int]:
        """Where damped steps end, how, and after how many."""
        units = _physical_units(objective.start)
        cost, damping = objective.cost(mu), FIRST_DAMPING
        gradient, root = objective.model(mu, units)
        for used in range(1, self.iterations + 1):
            trial = mu + _constrained_step(gradient, root, constraints, mu, units, damping)
            fresh = objective.cost(trial)
            if not fresh < cost:
                if damping > LAST_DAMPING:
                    return mu, Status.SOLVED, used
                damping *= 10.0
                continue
            done = cost - fresh <= _NEGLIGIBLE and damping <= FIRST_DAMPING
            mu, cost, damping = trial, fresh, damping / 10.0
            if done:
                return mu, Status.SOLVED, used
            gradient, root = objective.model(mu, units)
        return mu, Status.NOT_CONVERGED, self.iterations

    def constraints(self, start: ConsistentEstimate) -> tuple[Constraint, ...]:
        """All inequalities on the whole vector of mu: eq. 3.53, (3.52b), bounds, drives' signs."""
        bodies, p = start.bodies, len(start.names)
        owners = {body.owner: body for body in bodies}
        for owner in self.bounds.inequalities.slender:
            if owner not in owners:
                raise UnknownNameError("body", owner, owners)
        out = []
        prior = to_physical(start.prior.values, bodies)
        for body in bodies:
            for said, (own, h) in self.bounds.inequalities.groups(body.owner).items():
                out.append(Constraint(f"{body.owner}: {said}", Kind.NON_NEGATIVE, embedded(own, body, p), h))
            room = self.bounds.inequalities.around_prior
            if room is not None:
                out.append(around(body, prior, room, p))
        plain = replace(self.bounds, where={})
        out += plain.constraints(start.names, bodies)
        for owner, places in self.bounds.where.items():
            out += [_centred(owners[owner], place, p) for place in places if not isinstance(place, Support)]
        return tuple(out)

    def findings(self, result: ConsistentEstimate) -> tuple[Note, ...]:
        """What the inequalities did not guarantee."""
        text = "satisfies eq. 3.53 but is no possible body: its principal moments break the triangle inequality"
        broken = [owner for owner, value in result.smallest_eigenvalues.items() if value <= 0.0]
        notes = [Note("not-physical", Severity.ERROR, text, owner) for owner in broken]
        if result.status is not Status.SOLVED:
            notes.append(Note("not-converged", Severity.WARNING, result.status.message))
        scale = parameter_scale(result.prior)
        for label in self.bounds.broken(result.names, result.bodies, result.values, scale):
            notes.append(Note("bound-broken", Severity.WARNING, f"{label}: does not hold, eq. 3.53 cannot ask for it"))
        return tuple(notes)


@dataclass(frozen=True, eq=False)
class Objective:
    """Weighted error and pull of a start's prior as a function of mu."""

    R: FloatArray
    z: FloatArray
    regulariser: Regulariser
    start: ConsistentEstimate

    def model(self, mu: FloatArray, units: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient by mu / units, and A with A^T A the second derivative, its negative curvatures turned positive."""
        bodies = self.start.bodies
        x, J = to_standard(mu, bodies), physical_jacobian(mu, bodies)
        pull, slope = self.regulariser.residual(x, self.start.prior)
        w = self.regulariser.weight
        by_standard = 2.0 * (self.R.T @ (self.R @ x - self.z) + w * slope.T @ pull)
        rows = np.vstack([self.R, np.sqrt(w) * slope]) @ J
        H = 2.0 * rows.T @ rows + physical_curvature(mu, bodies, by_standard)
        values, V = np.linalg.eigh(H * np.outer(units, units))
        # A step against |H| leaves saddles behind; constraints are linear in mu, so H is all the curvature there is.
        A = np.sqrt(np.maximum(np.abs(values), _CURVATURE_FLOOR * np.abs(values).max()))[:, np.newaxis] * V.T
        return units * (J.T @ by_standard), A

    def cost(self, mu: FloatArray) -> float:
        x = to_standard(mu, self.start.bodies)
        error = self.R @ x - self.z
        return float(error @ error) + self.regulariser.weight * self.regulariser.value(x, self.start.prior)


def _quadratic(regulariser: Regulariser) -> Regulariser:
    """The pull itself, or the pull-back instead of the entropic one, whose logarithms end where bodies become impossible."""
    return PullBack(regulariser.weight) if isinstance(regulariser, Entropic) else regulariser


def embedded(rows: FloatArray, body: Body, p: int) -> FloatArray:
    """Rows on a body's own ten as rows on the whole vector."""
    G = np.zeros((len(rows), p))
    G[:, list(body.columns)] = rows
    return G


def around(body: Body, prior: FloatArray, room: float, p: int) -> Constraint:
    """(3.52b): mu within a fraction of its prior value either way."""
    centre = prior[list(body.columns)]
    half = room * np.maximum(np.abs(centre), _SMALLEST_UNIT)
    G = embedded(np.vstack([np.eye(10), -np.eye(10)]), body, p)
    h = np.concatenate([half - centre, half + centre])
    return Constraint(f"{body.owner} within {room:g} of its prior", Kind.NON_NEGATIVE, G, h)


def _centred(body: Body, place: CentreBox | CentreHull | CentreEllipsoid, p: int) -> Constraint:
    """A place of the centre as rows on mu: what multiplied the mass becomes the constant."""
    own = place.rows()
    rows = np.zeros_like(own)
    rows[:, 1:4] = own[:, 1:4]
    kind = Kind.SECOND_ORDER if isinstance(place, CentreEllipsoid) else Kind.NON_NEGATIVE
    return Constraint(f"centre of mass of {body.owner}", kind, embedded(rows, body, p), own[:, 0].copy())


def _physical_units(start: ConsistentEstimate) -> FloatArray:
    """Natural units of mu, shape [p]: mass, size and inertia of the prior bodies."""
    units = parameter_scale(start.prior)
    for body in start.bodies:
        first, *rest = body.columns
        units[rest[:3]] /= units[first]
    return units


def _constrained_step(
    gradient: FloatArray,
    A: FloatArray,
    constraints: Sequence[Constraint],
    mu: FloatArray,
    units: FloatArray,
    damping: float,
) -> FloatArray:
    """The d minimising 1/2 |A d|^2 + gradient d + damping |d|^2, in units, with mu + d within the constraints."""
    damped = np.vstack([A, np.sqrt(damping * float(np.mean(np.sum(A**2, axis=0)))) * np.eye(len(units))])
    program = ConicProgram(len(units))
    program.add_squares(damped, np.zeros(len(damped)), 0.5)
    program.f += gradient
    for c in constraints:
        add_constraint(program, replace(c, h=c.G @ mu + c.h), units)
    # Round curvature: data and a weak pull are many decades apart.
    T = np.asarray(np.linalg.inv(triangular(damped)), dtype=np.float64)
    solution = program.solve(transform=T)
    if solution.status is not Status.SOLVED:
        raise EstimationError(solution.status, f"inequalities of eq. 3.53 with the bounds ({solution.detail})")
    return solution.v[: len(units)] * units


def _refuse_contradictions(constraints: Sequence[Constraint], units: FloatArray) -> None:
    """Names a smallest set of inequalities that no mu satisfies, when there is one.

    Deletion filter [Chinneck2008], as for bounds on standard parameters: what can be left out without making the rest
    possible is not needed for the contradiction.

    Raises:
        EstimationError: with that set, in words.
    """
    left = list(constraints)
    if _can_hold(left, units):
        return
    for constraint in list(left):
        others = [c for c in left if c is not constraint]
        left = left if _can_hold(others, units) else others
    said = "; ".join(dict.fromkeys(c.label for c in left))
    raise EstimationError(Status.INFEASIBLE, f"these inequalities of eq. 3.53 and bounds exclude each other: {said}")


def _can_hold(constraints: Sequence[Constraint], units: FloatArray) -> bool:
    """Whether all can hold at once: how far every one would have to give way, in the bodies' own units, is next to nothing."""
    p = len(units)
    program = ConicProgram(p + 1)
    for constraint in constraints:
        relax(program, constraint, units, p)
    give = np.zeros((1, p + 1))
    give[0, p] = 1.0
    program.non_negative(give, np.zeros(1))
    program.f[p] = 1.0
    program.add_squares(np.eye(p), np.zeros(p), _WEAK_PULL)
    return bool(program.solve(tolerance=1e-10).v[p] < _GIVE)


def _nearest_feasible(mu: FloatArray, constraints: Sequence[Constraint], units: FloatArray) -> FloatArray:
    """The point that satisfies the inequalities, nearest in the bodies' own units."""
    return mu + _constrained_step(np.zeros(len(mu)), np.eye(len(mu)), constraints, mu, units, 0.0)
