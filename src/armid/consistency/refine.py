"""Smooth refinement in log-Cholesky coordinates: every point is a possible body, so non-convex extras need no cone.

    minimise  ||R pi(theta) - z||^2 + weight * divergence(pi(theta), prior) + ||extras(pi(theta))||^2        [Rucker2022]

Each body is margin * P(prior) + U U^T, so the margin of the convex program holds by construction; what cannot be negative is
a square. Other bounds have no such coordinates: with them, `successive.py` takes extras into the convex program.

The rows are linear in pi and precise; theta bends them, and plain Gauss-Newton steps creep through a valley as narrow as the
noise. Each step therefore follows the bend by its second derivative (geodesic acceleration, [Transtrum2012]).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.consistency.bodies import Body, non_negative_columns, other_columns
from armid.consistency.consistent import ConsistentEstimate, sum_of_squares
from armid.consistency.knowledge import Extras
from armid.consistency.regularisers import PullBack, Regulariser
from armid.information.information import Information
from armid.information.status import Status
from armid.notes import Note, Severity
from armid.parameters.inertial import from_log_cholesky, from_pseudo_inertia, pseudo_inertia, to_log_cholesky

_OFF_THE_EDGE = 1e-6
"""Of the prior body, added to a start that lies on the edge of the cone, where the logarithms are infinite."""
_NEGLIGIBLE = 1e-5
"""Of a step's gain in weighted squared error, where one is a standard deviation: the search ends."""
SOFTEST, STIFFEST = 1e-9, 1e12
"""Damping of a step, in weighted squared error per unit of the coordinates."""
_LONGEST = 2.0
"""Of a step, in units of the coordinates: logarithms change by a factor of seven at most."""
_MOST_BENT = 0.75
"""Second-order part of a step over its first-order part."""
_PROBE = 0.1
"""How far along a step its bend is measured [Transtrum2012]."""
_SETTLED = 3
"""Negligible gains in a row that end the search."""

Residual = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


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

    def sizes(self, values: FloatArray, scale: FloatArray) -> FloatArray:
        """What counts as one step in every coordinate, shape [p]: a factor e, or the size of the body."""
        out = np.array(scale)
        for body in self.bodies:
            P = pseudo_inertia(body.of(values))
            length = float(np.sqrt(np.trace(P[:3, :3]) / P[3, 3]))
            out[list(body.columns)] = [1.0] * 4 + [length] * 6
        out[self.squares] = np.sqrt(np.maximum(scale[self.squares], values[self.squares]))
        return out

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
class LogCholeskyRefinement:
    """Levenberg-Marquardt from a consistent estimate.

    Args:
        regulariser: pull towards the prior.
        margin: smallest pseudo-inertia of a body relative to its prior's.
        evaluations: at most so many.
    """

    regulariser: Regulariser = field(default_factory=PullBack)
    margin: float = 1e-4
    evaluations: int = 300

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
        problem = Problem(
            R=factor[:-1, :-1], z=factor[:-1, -1], regulariser=self.regulariser, start=start, extras=extras
        )
        chart = _chart_of(start, self.margin)
        theta, used, converged = problem.descend(chart, chart.to(inside(start, self.margin)), self.evaluations)
        values = chart.back(theta)[0]
        status = Status.SOLVED if converged else Status.NOT_CONVERGED
        notes = start.notes if converged else (*start.notes, Note("not-converged", Severity.WARNING, status.message))
        return replace(
            start,
            values=values,
            chi_square=sum_of_squares(factor, values),
            method="log-cholesky",
            regulariser=f"{self.regulariser.name} {self.regulariser.weight:g}",
            status=status,
            iterations=used,
            notes=notes,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
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

    def cost(self, x: FloatArray) -> float:
        """Sum of squares of all residuals."""
        return float(np.sum(self.residual(x)[0] ** 2))

    def descend(self, chart: Chart, theta: FloatArray, evaluations: int) -> tuple[FloatArray, int, bool]:
        """Coordinates at the end, steps tried, whether it converged."""

        def residual(t: FloatArray) -> tuple[FloatArray, FloatArray]:
            x, J = chart.back(t)
            e, A = self.residual(x)
            return e, A @ J

        step = Step(residual, theta, chart.sizes(chart.back(theta)[0], self.start.prior.scale))
        damping, small = 1.0, 0
        for used in range(1, evaluations + 1):
            trial = theta + step.damped(damping)
            fresh = float(np.sum(residual(trial)[0] ** 2))
            if not fresh < step.cost:
                damping *= 5.0
                if damping > STIFFEST:
                    return theta, used, True
                continue
            small = small + 1 if step.cost - fresh < _NEGLIGIBLE else 0
            theta, damping = trial, max(damping / 5.0, SOFTEST)
            if small == _SETTLED:
                return theta, used, True
            step = Step(residual, theta, chart.sizes(chart.back(theta)[0], self.start.prior.scale))
        return theta, evaluations, False


class Step:
    """Damped steps with geodesic acceleration from one point, for any damping.

    Args:
        residual: and its Jacobian.
        theta: where.
        sizes: what counts as one step in every coordinate.
    """

    def __init__(self, residual: Residual, theta: FloatArray, sizes: FloatArray) -> None:
        self.residual, self.theta, self.sizes = residual, theta, sizes
        self.e, J = residual(theta)
        self.J = J * sizes
        self.U, self.s, self.Vt = np.linalg.svd(self.J, full_matrices=False)
        self.cost = float(self.e @ self.e)

    def damped(self, damping: float) -> FloatArray:
        """The change of the coordinates: no coordinate moves by more than `_LONGEST`, and none bends more than it moves."""
        v = self.solved(self.e, damping)
        v *= min(1.0, _LONGEST / max(float(np.abs(v).max()), 1e-300))
        ahead = self.residual(self.theta + _PROBE * v * self.sizes)[0]
        bend = 2.0 / _PROBE * ((ahead - self.e) / _PROBE - self.J @ v)
        a = 0.5 * self.solved(bend, damping)
        if np.linalg.norm(a) > _MOST_BENT * np.linalg.norm(v):
            a *= _MOST_BENT * np.linalg.norm(v) / np.linalg.norm(a)
        return np.asarray((v + a) * self.sizes)

    def solved(self, e: FloatArray, damping: float) -> FloatArray:
        return np.asarray(-self.Vt.T @ (self.s / (self.s**2 + damping) * (self.U.T @ e)))


def inside(start: ConsistentEstimate, margin: float) -> FloatArray:
    """The start, moved off the edge of its cone where it lies on it."""
    values = np.array(start.values)
    for body in start.bodies:
        columns = list(body.columns)
        values[columns] += _OFF_THE_EDGE * (1.0 + margin) * body.of(start.prior.values)
    free = np.intersect1d(other_columns(start.names, start.bodies), non_negative_columns(start.names))
    values[free] = np.maximum(values[free], _OFF_THE_EDGE * start.prior.scale[free])
    return values


def _chart_of(estimate: ConsistentEstimate, margin: float = 0.0) -> Chart:
    """The chart of an estimate's parameters above a margin of its prior bodies."""
    bodies = estimate.bodies
    squares = np.intersect1d(other_columns(estimate.names, bodies), non_negative_columns(estimate.names))
    floor = np.zeros(len(estimate.names))
    for body in bodies:
        floor[list(body.columns)] = margin * body.of(estimate.prior.values)
    return Chart(bodies, squares, floor)
