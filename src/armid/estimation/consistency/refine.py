"""Smooth refinement in log-Cholesky coordinates: every point is a possible body, so non-convex extras need no cone.

minimise  ||R pi(theta) - z||^2 + weight * ||F (pi(theta) - pi_prior)||^2 + ||extras(pi(theta))||^2        [Rucker2022]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.consistency.bodies import Body, non_negative_columns, other_columns
from armid.estimation.consistency.consistent import ConsistentEstimate
from armid.estimation.consistency.regularisers import PullBack
from armid.estimation.status import Status
from armid.information.information import Information
from armid.notes import Note, Severity
from armid.parameters.inertial import from_log_cholesky, from_pseudo_inertia, to_log_cholesky

Extras = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From standard parameters [p] to residuals [m] and their Jacobian [m, p], in units of the weighted rows."""


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
    """

    bodies: tuple[Body, ...]
    squares: npt.NDArray[np.intp]

    def to(self, values: FloatArray) -> FloatArray:
        """Coordinates of given parameters; bodies must be positive definite."""
        theta = np.array(values)
        for body in self.bodies:
            theta[list(body.columns)] = to_log_cholesky(body.of(values))
        theta[self.squares] = np.sqrt(np.maximum(values[self.squares], 1e-16))
        return theta

    def back(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Parameters [p] and their Jacobian [p, p]."""
        values, J = np.array(theta), np.eye(len(theta))
        for body in self.bodies:
            columns = list(body.columns)
            values[columns] = from_log_cholesky(theta[columns])
            J[np.ix_(columns, columns)] = log_cholesky_jacobian(theta[columns])
        values[self.squares] = theta[self.squares] ** 2
        J[self.squares, self.squares] = 2.0 * theta[self.squares]
        return values, J


@dataclass(frozen=True, slots=True)
class LogCholeskyRefinement:
    """Levenberg-Marquardt from a consistent estimate.

    Args:
        weight: of the pull-back divergence from the prior.
        evaluations: at most so many.
    """

    weight: float = 1e-3
    evaluations: int = 200

    def fit(
        self, information: Information, start: ConsistentEstimate, extras: Extras | None = None
    ) -> ConsistentEstimate:
        """Args:
        information: the same weighted rows the start was fitted to.
        start: a consistent estimate with positive definite bodies.
        extras: further residuals, convex or not.
        """
        from scipy.optimize import least_squares

        factor = information.stacked()
        R, z, rest = factor[:-1, :-1], factor[:-1, -1], float(factor[-1, -1] ** 2)
        F = np.sqrt(self.weight) * PullBack().root(start.prior)
        chart = chart_of(start)

        def residual(theta: FloatArray) -> FloatArray:
            x, _ = chart.back(theta)
            parts = [R @ x - z, F @ (x - start.prior.values)]
            return np.concatenate([*parts, extras(x)[0]] if extras else parts)

        def jacobian(theta: FloatArray) -> FloatArray:
            x, J = chart.back(theta)
            slopes = [R, F, extras(x)[1]] if extras else [R, F]
            return np.vstack(slopes) @ J

        found = least_squares(
            residual, chart.to(start.values), jacobian, method="trf", x_scale="jac", max_nfev=self.evaluations
        )
        values, _ = chart.back(found.x)
        error = R @ values - z
        status = Status.SOLVED if found.status > 0 else Status.NOT_CONVERGED
        notes = (
            start.notes
            if status is Status.SOLVED
            else (*start.notes, Note("not-converged", Severity.WARNING, status.message))
        )
        return replace(
            start, values=values, chi_square=float(error @ error) + rest, regulariser=f"log-Cholesky, pull-back {self.weight:g}",
            status=status, iterations=int(found.nfev), notes=notes,
        )  # fmt: skip


def chart_of(estimate: ConsistentEstimate) -> Chart:
    """The chart of an estimate's parameters."""
    bodies = estimate.bodies
    squares = np.intersect1d(other_columns(estimate.names, bodies), non_negative_columns(estimate.names))
    return Chart(bodies, squares)
