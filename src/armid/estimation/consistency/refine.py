"""Smooth refinement in log-Cholesky coordinates: every point is a possible body, so non-convex extras need no cone.

    minimise  ||R pi(theta) - z||^2 + weight * divergence(pi(theta), prior) + ||extras(pi(theta))||^2        [Rucker2022]

Each body is margin * P(prior) + U U^T, so the margin of the convex program holds by construction. Further bounds are kept by
shifted penalties (the method of multipliers for inequalities, [Rockafellar1973]).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.consistency.bodies import Body, non_negative_columns, other_columns
from armid.estimation.consistency.bounds import Bounds, Constraint, Kind
from armid.estimation.consistency.consistent import ConsistentEstimate, active_notes, parameter_scale, sum_of_squares
from armid.estimation.consistency.knowledge import Extras
from armid.estimation.consistency.regularisers import PullBack, Regulariser
from armid.estimation.status import Status
from armid.information.information import Information
from armid.notes import Note, Severity
from armid.parameters.inertial import from_log_cholesky, from_pseudo_inertia, to_log_cholesky

OFF_THE_EDGE = 1e-6
"""Of the prior body, added to a start that lies on the edge of the cone, where the logarithms are infinite."""
NEGLIGIBLE = 1e-5
"""Of a step's gain in weighted squared error, where one is a standard deviation: the search ends."""
REACH = 12.0
"""How far logarithms may go in one search: a factor of more than a hundred thousand either way, and no overflow."""
KEPT = 1e-6
"""A bound broken by less, in units of the bodies' own size, is kept."""


def log_cholesky_jacobian(theta: FloatArray) -> FloatArray:
    """d(ten parameters) / d(theta), shape [10, 10]: dP = dU U^T + U dU^T with P = U U^T."""
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta
    e = np.exp(alpha)
    V = np.array([[np.exp(d1), s12, s13, t1], [0, np.exp(d2), s23, t2], [0, 0, np.exp(d3), t3], [0, 0, 0, 1.0]])
    U = e * V
    J = np.empty((10, 10))
    places = (
        (0, 0, V[0, 0]),
        (1, 1, V[1, 1]),
        (2, 2, V[2, 2]),
        (0, 1, 1.0),
        (1, 2, 1.0),
        (0, 2, 1.0),
        (0, 3, 1.0),
        (1, 3, 1.0),
        (2, 3, 1.0),
    )
    J[:, 0] = from_pseudo_inertia(2.0 * U @ U.T)
    for k, (i, j, slope) in enumerate(places):
        dU = np.zeros((4, 4))
        dU[i, j] = e * slope
        J[:, k + 1] = from_pseudo_inertia(dU @ U.T + U @ dU.T)
    return J


@dataclass(frozen=True, eq=False)
class Chart:
    """Unconstrained coordinates of a parameter vector: log-Cholesky for bodies, squares for what cannot be negative.

    Args:
        bodies: of the vector.
        squares: columns outside the bodies that are written as squares.
        floor: body parameters that are always there, shape [p]; zero outside the bodies.
    """

    bodies: tuple[Body, ...]
    squares: npt.NDArray[np.intp]
    floor: FloatArray

    def to(self, values: FloatArray) -> FloatArray:
        """Coordinates of given parameters; bodies must be positive definite above the floor."""
        theta = np.array(values)
        for body in self.bodies:
            theta[list(body.columns)] = to_log_cholesky(body.of(values) - body.of(self.floor))
        theta[self.squares] = np.sqrt(np.maximum(values[self.squares], 1e-16))
        return theta

    def reach(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest coordinates of a search that starts here."""
        room = np.full(len(theta), np.inf)
        for body in self.bodies:
            room[list(body.columns[:4])] = REACH
        return theta - room, theta + room

    def back(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Parameters [p] and their Jacobian [p, p]."""
        values, J = np.array(theta), np.eye(len(theta))
        for body in self.bodies:
            columns = list(body.columns)
            values[columns] = from_log_cholesky(theta[columns]) + body.of(self.floor)
            J[np.ix_(columns, columns)] = log_cholesky_jacobian(theta[columns])
        values[self.squares] = theta[self.squares] ** 2
        J[self.squares, self.squares] = 2.0 * theta[self.squares]
        return values, J


@dataclass(frozen=True, eq=False)
class Penalties:
    """Bounds as residuals sqrt(strength) max(0, shift - g) for g >= 0, and sqrt(strength) (g - shift) for g = 0.

    Args:
        constraints: to keep.
        scale: of the parameters, shape [p].
        shifts: multipliers over twice the strength, shape [k].
        strength: of the penalty.
    """

    constraints: tuple[Constraint, ...]
    scale: FloatArray
    shifts: FloatArray
    strength: float

    def values(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Every g in units of the parameters' scale, shape [k], and its slope, shape [k, p]."""
        g, slopes = [np.empty(0)], [np.empty((0, len(x)))]
        for c in self.constraints:
            sizes = np.linalg.norm(c.G * self.scale, axis=1)
            v = c.G @ x + c.h
            if c.kind is Kind.SECOND_ORDER:
                # v0 >= |v| as v0^2 >= |v|^2: v0 is a mass, positive in this chart, and squares are smooth.
                g.append(np.array([v[0] ** 2 - v[1:] @ v[1:]]) / sizes[0] ** 2)
                slopes.append((2.0 * (v[0] * c.G[0] - v[1:] @ c.G[1:]) / sizes[0] ** 2)[np.newaxis])
            else:
                g.append(v / sizes)
                slopes.append(c.G / sizes[:, np.newaxis])
        return np.concatenate(g), np.vstack(slopes)

    @property
    def equal(self) -> npt.NDArray[np.bool_]:
        """Which rows are equations, shape [k]."""
        rows = [np.empty(0, dtype=bool)]
        for c in self.constraints:
            rows.append(np.full(1 if c.kind is Kind.SECOND_ORDER else len(c.h), c.kind is Kind.EQUAL))
        return np.concatenate(rows)

    def residual(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        g, slope = self.values(x)
        away = self.shifts - g
        on = self.equal | (away > 0.0)
        root = np.sqrt(self.strength)
        return root * np.where(on, away, 0.0), -root * on[:, np.newaxis] * slope

    def updated(self, x: FloatArray) -> Penalties:
        """With the shifts of the next round."""
        away = self.shifts - self.values(x)[0]
        return replace(self, shifts=np.where(self.equal, away, np.maximum(away, 0.0)))

    def broken(self, x: FloatArray) -> float:
        """By how much the worst bound is broken; zero when all hold."""
        g = self.values(x)[0]
        return float(np.max(np.where(self.equal, np.abs(g), -g), initial=0.0))


@dataclass(frozen=True, eq=False)
class LogCholeskyRefinement:
    """Levenberg-Marquardt from a consistent estimate.

    Args:
        regulariser: pull towards the prior.
        bounds: to keep; their margin too.
        evaluations: at most so many per round.
        rounds: of shifted penalties, at most; one when there are no bounds.
    """

    regulariser: Regulariser = field(default_factory=PullBack)
    bounds: Bounds = field(default_factory=Bounds)
    evaluations: int = 200
    rounds: int = 12

    def fit(
        self, information: Information, start: ConsistentEstimate, extras: Extras | None = None
    ) -> ConsistentEstimate:
        """A local optimum near the start; with convex extras the global one.

        Args:
            information: the same weighted rows the start was fitted to.
            start: a consistent estimate.
            extras: further residuals, convex or not.
        """
        factor = information.stacked()
        problem = Problem(factor[:-1, :-1], factor[:-1, -1], self.regulariser, start, extras)
        chart = chart_of(start, self.bounds.margin)
        penalties = penalties_of(self.bounds, start, problem.R)
        theta = chart.to(inside(start, self.bounds.margin))
        used, status = 0, Status.NOT_CONVERGED
        for _ in range(self.rounds):
            theta, count, converged = problem.descend(chart, penalties, theta, self.evaluations)
            used += count
            values = chart.back(theta)[0]
            if penalties.broken(values) <= KEPT:
                status = Status.SOLVED if converged else Status.NOT_CONVERGED
                break
            penalties = penalties.updated(values)
        values = chart.back(theta)[0]
        notes = tuple(note for note in start.notes if note.code != "bounds-active")
        notes += active_notes(self.bounds, start.prior, values)
        if status is not Status.SOLVED:
            notes += (Note("not-converged", Severity.WARNING, status.message),)
        return replace(
            start, values=values, chi_square=sum_of_squares(factor, values), method="log-cholesky",
            regulariser=f"{self.regulariser.name} {self.regulariser.weight:g}", status=status, iterations=used, notes=notes,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Problem:
    """Residuals of parameters: rows, pull, extras."""

    R: FloatArray
    z: FloatArray
    regulariser: Regulariser
    start: ConsistentEstimate
    extras: Extras | None

    def residual(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        pull, slope = self.regulariser.residual(x, self.start.prior)
        w = np.sqrt(self.regulariser.weight)
        parts, slopes = [self.R @ x - self.z, w * pull], [self.R, w * slope]
        if self.extras is not None:
            more, gradient = self.extras(x)
            parts, slopes = [*parts, more], [*slopes, gradient]
        return np.concatenate(parts), np.vstack(slopes)

    def descend(
        self, chart: Chart, penalties: Penalties, theta: FloatArray, evaluations: int
    ) -> tuple[FloatArray, int, bool]:
        """Coordinates at the end, evaluations, whether it converged."""
        from scipy.optimize import least_squares

        def value(t: FloatArray) -> FloatArray:
            x = chart.back(t)[0]
            return np.concatenate([self.residual(x)[0], penalties.residual(x)[0]])

        def slope(t: FloatArray) -> FloatArray:
            x, J = chart.back(t)
            return np.vstack([self.residual(x)[1], penalties.residual(x)[1]]) @ J

        cost = 0.5 * float(np.sum(value(theta) ** 2))
        found = least_squares(
            value, theta, slope, method="trf", x_scale="jac", max_nfev=evaluations, bounds=chart.reach(theta),
            ftol=max(NEGLIGIBLE / max(cost, 1e-300), 1e-10), xtol=1e-10,
        )  # fmt: skip
        return found.x, int(found.nfev), bool(found.status > 0)


def inside(start: ConsistentEstimate, margin: float) -> FloatArray:
    """The start, moved off the edge of its cone where it lies on it."""
    values = np.array(start.values)
    for body in start.bodies:
        columns = list(body.columns)
        values[columns] += OFF_THE_EDGE * (1.0 + margin) * body.of(start.prior.values)
    return values


def chart_of(estimate: ConsistentEstimate, margin: float = 0.0) -> Chart:
    """The chart of an estimate's parameters above a margin of its prior bodies."""
    bodies = estimate.bodies
    squares = np.intersect1d(other_columns(estimate.names, bodies), non_negative_columns(estimate.names))
    floor = np.zeros(len(estimate.names))
    for body in bodies:
        floor[list(body.columns)] = margin * body.of(estimate.prior.values)
    return Chart(bodies, squares, floor)


def penalties_of(bounds: Bounds, start: ConsistentEstimate, R: FloatArray) -> Penalties:
    """All bounds but the signs of drives, which the chart keeps; as stiff as the stiffest direction of the data."""
    constraints = replace(bounds, non_negative_drives=False).constraints(start.names, start.bodies)
    scale = parameter_scale(start.prior)
    rows = sum(1 if c.kind is Kind.SECOND_ORDER else len(c.h) for c in constraints)
    strength = max(1.0, float(np.max(np.sum((R * scale) ** 2, axis=0))))
    return Penalties(constraints, scale, np.zeros(rows), strength)
