"""The constrained problem of seed 000 (eqs. 3.52, 3.53): physical parameters mu = (m, c, I_c) with heuristic inequalities.

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
from armid.errors import UnknownNameError
from armid.estimation.consistency.bodies import Body
from armid.estimation.consistency.bounds import Bounds, Constraint, Kind, add_constraint
from armid.estimation.consistency.consistent import ConsistentEstimate, parameter_scale, sum_of_squares
from armid.estimation.consistency.physical import physical_jacobian, to_physical, to_standard
from armid.estimation.consistency.places import CentreBox, CentreEllipsoid, CentreHull, Support
from armid.estimation.consistency.program import ConicProgram
from armid.estimation.consistency.regularisers import PullBack, Regulariser
from armid.estimation.status import EstimationError, Status
from armid.information.information import Information, triangular
from armid.notes import Note, Severity

SMALLEST_UNIT = (1e-3, *(1e-2,) * 3, *(1e-3,) * 6)
"""[kg, m, kg m^2]: least unit of (3.52b) around values of the prior that are zero."""

FIRST_DAMPING, LAST_DAMPING = 1e-3, 1e6
"""Of a step, relative to the mean stiffness of the rows: where it starts, and where no step that helps is left."""


@dataclass(frozen=True, eq=False)
class ThesisProblem:
    """Sequential quadratic programming in mu from a consistent start.

    Args:
        regulariser: pull towards the prior; decides what the data cannot see.
        bounds: with the inequalities; places of centres and masses are linear in mu too and are kept. The spread of mass is not
            linear and is only checked.
        iterations: at most so many.
        tolerance: relative decrease that ends the search.
    """

    regulariser: Regulariser = field(default_factory=PullBack)
    bounds: Bounds = field(default_factory=Bounds)
    iterations: int = 200
    tolerance: float = 1e-7

    def fit(self, information: Information, start: ConsistentEstimate) -> ConsistentEstimate:
        """Gauss-Newton steps, each a small quadratic program with the linear inequalities; every iterate is feasible.

        Raises:
            EstimationError: the inequalities contradict each other or the bounds.
        """
        factor = information.stacked()
        R, z = factor[:-1, :-1], factor[:-1, -1]
        constraints = self.constraints(start)
        objective = Objective(R, z, self.regulariser, start)
        mu = nearest_feasible(to_physical(start.values, start.bodies), constraints, physical_units(start))
        mu, status, used = self.descend(objective, mu, constraints)
        values = to_standard(mu, start.bodies)
        result = replace(
            start, values=values, chi_square=sum_of_squares(factor, values), method="eq3.53", status=status, iterations=used,
        )  # fmt: skip
        return replace(result, notes=(*result.notes, *self.findings(result)))

    def descend(
        self, objective: Objective, mu: FloatArray, constraints: Sequence[Constraint]
    ) -> tuple[FloatArray, Status, int]:
        """Where damped steps end, how, and after how many."""
        units = physical_units(objective.start)
        cost, damping = objective.cost(mu), FIRST_DAMPING
        e, J = objective.residual(mu)
        for used in range(1, self.iterations + 1):
            stiffness = damping * float(np.mean(np.sum((J * units) ** 2, axis=0)))
            trial = mu + constrained_step(J, -e, constraints, mu, units, stiffness)
            fresh = objective.cost(trial)
            if not fresh < cost:
                if damping > LAST_DAMPING:
                    return mu, Status.SOLVED, used
                damping *= 10.0
                continue
            done = cost - fresh <= self.tolerance * cost and damping <= FIRST_DAMPING
            mu, cost, damping = trial, fresh, damping / 10.0
            e, J = objective.residual(mu)
            if done:
                return mu, Status.SOLVED, used
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
            own, h = self.bounds.inequalities.rows(body.owner)
            out.append(Constraint(f"eq. 3.53 of {body.owner}", Kind.NON_NEGATIVE, embedded(own, body, p), h))
            room = self.bounds.inequalities.around_prior
            if room is not None:
                out.append(around(body, prior, room, p))
        plain = replace(self.bounds, where={})
        out += plain.constraints(start.names, bodies)
        for owner, places in self.bounds.where.items():
            out += [centred(owners[owner], place, p) for place in places if not isinstance(place, Support)]
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
    """Weighted error and pull of a start's prior as residuals of mu."""

    R: FloatArray
    z: FloatArray
    regulariser: Regulariser
    start: ConsistentEstimate

    def residual(self, mu: FloatArray) -> tuple[FloatArray, FloatArray]:
        x, J = to_standard(mu, self.start.bodies), physical_jacobian(mu, self.start.bodies)
        pull, slope = self.regulariser.residual(x, self.start.prior)
        w = np.sqrt(self.regulariser.weight)
        return np.concatenate([self.R @ x - self.z, w * pull]), np.vstack([self.R, w * slope]) @ J

    def cost(self, mu: FloatArray) -> float:
        x = to_standard(mu, self.start.bodies)
        error = self.R @ x - self.z
        return float(error @ error) + self.regulariser.weight * self.regulariser.value(x, self.start.prior)


def embedded(rows: FloatArray, body: Body, p: int) -> FloatArray:
    """Rows on a body's own ten as rows on the whole vector."""
    G = np.zeros((len(rows), p))
    G[:, list(body.columns)] = rows
    return G


def around(body: Body, prior: FloatArray, room: float, p: int) -> Constraint:
    """(3.52b): mu within a fraction of its prior value either way."""
    centre = prior[list(body.columns)]
    half = room * np.maximum(np.abs(centre), SMALLEST_UNIT)
    G = embedded(np.vstack([np.eye(10), -np.eye(10)]), body, p)
    h = np.concatenate([half - centre, half + centre])
    return Constraint(f"{body.owner} within {room:g} of its prior", Kind.NON_NEGATIVE, G, h)


def centred(body: Body, place: CentreBox | CentreHull | CentreEllipsoid, p: int) -> Constraint:
    """A place of the centre as rows on mu: what multiplied the mass becomes the constant."""
    own = place.rows()
    rows = np.zeros_like(own)
    rows[:, 1:4] = own[:, 1:4]
    kind = Kind.SECOND_ORDER if isinstance(place, CentreEllipsoid) else Kind.NON_NEGATIVE
    return Constraint(f"centre of mass of {body.owner}", kind, embedded(rows, body, p), own[:, 0].copy())


def physical_units(start: ConsistentEstimate) -> FloatArray:
    """Natural units of mu, shape [p]: mass, size and inertia of the prior bodies."""
    units = parameter_scale(start.prior)
    for body in start.bodies:
        first, *rest = body.columns
        units[rest[:3]] /= units[first]
    return units


def constrained_step(
    J: FloatArray, e: FloatArray, constraints: Sequence[Constraint], mu: FloatArray, units: FloatArray, stiffness: float
) -> FloatArray:
    """D minimising ||J d - e||^2 + stiffness ||d / units||^2 such that mu + d satisfies the constraints."""
    A = np.vstack([J * units, np.sqrt(stiffness) * np.eye(len(units))])
    program = ConicProgram(J.shape[1])
    program.add_squares(A, np.concatenate([e, np.zeros(len(units))]))
    for c in constraints:
        add_constraint(program, replace(c, h=c.G @ mu + c.h), units)
    # Round curvature: data and a weak pull are many decades apart.
    T = np.asarray(np.linalg.inv(triangular(A)), dtype=np.float64)
    solution = program.solve(transform=T)
    if solution.status is not Status.SOLVED:
        raise EstimationError(solution.status, f"inequalities of eq. 3.53 with the bounds ({solution.detail})")
    return solution.v * units


def nearest_feasible(mu: FloatArray, constraints: Sequence[Constraint], units: FloatArray) -> FloatArray:
    """The point that satisfies the inequalities, nearest in the bodies' own units."""
    return mu + constrained_step(np.diag(1.0 / units), np.zeros(len(mu)), constraints, mu, units, 0.0)
