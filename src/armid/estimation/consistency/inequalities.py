"""The constrained problem of seed 000 (eqs. 3.52, 3.53): physical parameters mu = (m, c, I_c) with heuristic inequalities.

Its inequalities are linear in mu, its objective is not; standard parameters are the other way round. Inertias are about
the centre of mass. The set does not imply positive pseudo-inertias (principal moments may still break the triangle
inequality), so the result is checked and the LMI remains the recommended form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.consistency.bodies import Body, non_negative_columns, other_columns
from armid.estimation.consistency.consistent import ConsistentEstimate
from armid.estimation.consistency.program import ConicProgram
from armid.estimation.consistency.regularisers import PullBack
from armid.estimation.status import EstimationError, Status
from armid.information.information import Information
from armid.notes import Note, Severity
from armid.parameters.inertial import from_centre_of_mass, tensor, to_centre_of_mass

DIAGONAL = (4, 7, 9)
"""Ixx, Iyy, Izz within mu = (m, cx, cy, cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz)."""
OFF_DIAGONAL = (5, 6, 8)


@dataclass(frozen=True, slots=True)
class ThesisInequalities:
    """Eq. 3.53 as a selectable set.

    Args:
        ratio: of the largest to the smallest diagonal inertia, at most (3.53b).
        off_diagonal: of any off-diagonal to the smallest diagonal inertia, at most (3.53c).
        smallest_inertia: of any diagonal entry [kg m^2] (3.53d).
        smallest_mass: [kg] (3.52c).
        slender: per body owner, the axis (0, 1, 2) its length runs along; the other two diagonal inertias are at least
            `slender_ratio` times the one about it (3.53e, f: links 1, 3, 5 along z, 2 and 4 along y).
        slender_ratio: see there.
    """

    ratio: float = 100.0
    off_diagonal: float = 0.1
    smallest_inertia: float = 1e-4
    smallest_mass: float = 1e-3
    slender: Mapping[str, int] = field(default_factory=dict)
    slender_ratio: float = 3.0

    def rows(self, owner: str) -> tuple[FloatArray, FloatArray]:
        """G, h with G mu + h >= 0 for the ten mu of one body."""
        G: list[FloatArray] = []
        unit = np.eye(10)
        for a, b, c in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
            G.append(unit[DIAGONAL[a]] + unit[DIAGONAL[b]] - unit[DIAGONAL[c]])
        G += [self.ratio * unit[a] - unit[b] for a, b in permutations(DIAGONAL, 2)]
        G += [
            self.off_diagonal * unit[a] - sign * unit[o] for a in DIAGONAL for o in OFF_DIAGONAL for sign in (1.0, -1.0)
        ]
        if owner in self.slender:
            axis = self.slender[owner]
            G += [unit[d] - self.slender_ratio * unit[DIAGONAL[axis]] for k, d in enumerate(DIAGONAL) if k != axis]
        h = [0.0] * len(G)
        for d in DIAGONAL:
            G.append(unit[d])
            h.append(-self.smallest_inertia)
        G.append(unit[0])
        h.append(-self.smallest_mass)
        return np.array(G), np.array(h)


@dataclass(frozen=True, eq=False)
class ThesisProblem:
    """Sequential quadratic programming in mu from a consistent start.

    Args:
        inequalities: the set.
        weight: of the pull-back divergence from the prior; decides what the data cannot see.
        iterations: at most so many.
        tolerance: relative decrease that ends the search.
    """

    inequalities: ThesisInequalities = field(default_factory=ThesisInequalities)
    weight: float = 1e-3
    iterations: int = 60
    tolerance: float = 1e-7

    def fit(self, information: Information, start: ConsistentEstimate) -> ConsistentEstimate:
        """Gauss-Newton steps, each a small quadratic program with the linear inequalities; every iterate is feasible.

        Raises:
            EstimationError: the inequalities contradict each other.
        """
        factor = information.stacked()
        F = np.sqrt(self.weight) * PullBack().root(start.prior)
        A = np.vstack([factor[:-1, :-1], F])
        b = np.concatenate([factor[:-1, -1], F @ start.prior.values])
        bodies = start.bodies
        G, h = self.constraints(start, bodies)
        mu = nearest_feasible(to_physical(start.values, bodies), G, h)
        cost = float(np.sum((A @ to_standard(mu, bodies) - b) ** 2))
        status, used = Status.NOT_CONVERGED, 0
        for _ in range(self.iterations):
            used += 1
            x, J = to_standard(mu, bodies), physical_jacobian(mu, bodies)
            step = constrained_step(A @ J, b - A @ x, G, G @ mu + h)
            mu, fresh = line_search(A, b, mu, step, cost, bodies)
            done = cost - fresh <= self.tolerance * max(cost, 1e-300)
            cost = fresh
            if done:
                status = Status.SOLVED
                break
        values = to_standard(mu, bodies)
        error = factor[:-1, :-1] @ values - factor[:-1, -1]
        result = replace(
            start, values=values, chi_square=float(error @ error) + float(factor[-1, -1] ** 2),
            regulariser=f"eq. 3.53 inequalities, pull-back {self.weight:g}", status=status, iterations=used,
        )  # fmt: skip
        broken = [owner for owner, value in result.smallest_eigenvalues.items() if value <= 0.0]
        if not broken:
            return result
        text = "satisfies eq. 3.53 but is no possible body: its principal moments break the triangle inequality"
        return replace(
            result, notes=(*result.notes, *(Note("not-physical", Severity.ERROR, text, owner) for owner in broken))
        )

    def constraints(self, start: ConsistentEstimate, bodies: tuple[Body, ...]) -> tuple[FloatArray, FloatArray]:
        """All inequalities on the whole vector, drives' signs included."""
        p = len(start.names)
        blocks, constants = [], []
        for body in bodies:
            own, h = self.inequalities.rows(body.owner)
            G = np.zeros((len(own), p))
            G[:, list(body.columns)] = own
            blocks.append(G)
            constants.append(h)
        signs = np.intersect1d(other_columns(start.names, bodies), non_negative_columns(start.names))
        blocks.append(np.eye(p)[signs])
        constants.append(np.zeros(len(signs)))
        return np.vstack(blocks), np.concatenate(constants)


def to_physical(values: FloatArray, bodies: tuple[Body, ...]) -> FloatArray:
    """Mu of standard parameters; everything outside the bodies unchanged."""
    mu = np.array(values)
    for body in bodies:
        mass, c, I = to_centre_of_mass(body.of(values))
        mu[list(body.columns)] = [mass, *c, I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]]
    return mu


def to_standard(mu: FloatArray, bodies: tuple[Body, ...]) -> FloatArray:
    """Standard parameters of mu."""
    values = np.array(mu)
    for body in bodies:
        own = mu[list(body.columns)]
        values[list(body.columns)] = from_centre_of_mass(float(own[0]), own[1:4], tensor(own[4:]))
    return values


def physical_jacobian(mu: FloatArray, bodies: tuple[Body, ...]) -> FloatArray:
    """d(standard) / d(mu), shape [p, p]: h = m c, I = I_c + m (c^T c 1 - c c^T)."""
    J = np.eye(len(mu))
    for body in bodies:
        columns = list(body.columns)
        m, c = mu[columns[0]], mu[columns[1:4]]
        block = np.eye(10)
        block[1:4, 0], block[1:4, 1:4] = c, m * np.eye(3)
        block[4:, 0] = from_centre_of_mass(1.0, c, np.zeros((3, 3)))[4:]
        for k in range(3):
            e = np.eye(3)[k]
            D = m * (2.0 * c[k] * np.eye(3) - np.outer(e, c) - np.outer(c, e))
            block[4:, 1 + k] = D[np.triu_indices(3)]
        J[np.ix_(columns, columns)] = block
    return J


def constrained_step(J: FloatArray, e: FloatArray, G: FloatArray, slack: FloatArray) -> FloatArray:
    """D minimising ||J d - e||^2 with G d + slack >= 0, in columns scaled to unit length."""
    norms = np.maximum(np.linalg.norm(J, axis=0), 1e-12)
    program = ConicProgram(J.shape[1])
    program.add_squares(J / norms, e)
    program.non_negative(G / norms, slack)
    solution = program.solve()
    if solution.status is not Status.SOLVED:
        raise EstimationError(solution.status, f"inequalities of eq. 3.53 ({solution.detail})")
    return solution.v / norms


def nearest_feasible(mu: FloatArray, G: FloatArray, h: FloatArray) -> FloatArray:
    """The point that satisfies the inequalities, nearest in relative terms."""
    size = np.maximum(np.abs(mu), 1e-3)
    return mu + constrained_step(np.diag(1.0 / size), np.zeros(len(mu)), G, G @ mu + h)


def line_search(
    A: FloatArray, b: FloatArray, mu: FloatArray, step: FloatArray, cost: float, bodies: tuple[Body, ...]
) -> tuple[FloatArray, float]:
    """Halves the step until the cost falls; a convex set keeps every point on the way feasible."""
    for k in range(20):
        trial = mu + step / 2**k
        fresh = float(np.sum((A @ to_standard(trial, bodies) - b) ** 2))
        if fresh < cost:
            return trial, fresh
    return mu, cost
