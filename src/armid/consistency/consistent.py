"""Full standard parameters that belong to possible bodies: a convex program on the Information factor.

    minimise  ||R pi - z||^2 + weight * divergence(pi, prior)
    subject to  P_i(pi) >= margin * P_i(prior) for every body, and the bounds                      [Sousa2014], [Wensing2018]

R and z are the triangular factor of the weighted rows, so the size of the program does not depend on the length of the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.consistency.bodies import Body, bodies_of
from armid.consistency.bounds import Bounds
from armid.consistency.contradictions import add_bodies, contradiction
from armid.consistency.prior import Prior
from armid.consistency.program import ConicProgram, ConicSolution
from armid.consistency.regularisers import PullBack, Regulariser
from armid.errors import ShapeError
from armid.estimation.estimate import Estimate
from armid.information.information import ChannelInformation, Information, triangular
from armid.information.solve import smallest_solution
from armid.information.status import EstimationError, Status
from armid.notes import Note, Severity
from armid.parameters.inertial import pseudo_inertia
from armid.parameters.space import Parameter, named_parameters

_DATA_SHARE = 0.9
"""A parameter with at least this resolution counts as determined by the data."""
_PRIOR_SHARE = 0.1
"""And with less than this, as determined by the prior."""

_ALONE = 0.8
"""And with less than this, as seen in combination with others only, which the prior holds: a resolution of 0.9 has 0.94."""

_WIDER = 10.0
"""Times as wide a prior, with which the deviation of a parameter that the data determine stays what it is."""


_EIGENVALUE_FLOOR = 1e-10
"""Of a correlation matrix: smaller ones are round-off of nearly dependent parameters."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ConsistentEstimate:
    """Standard parameters of bodies that can exist. Regularised: not an unbiased estimate, and never to be mistaken for one.

    Args:
        names, units: of the standard parameters.
        values: shape [p].
        prior: what they were pulled towards.
        data_share: resolution per parameter, shape [p]: 1 determined by the data alone, 0 by the prior alone.
        alone: whether its deviation is the data's, shape [p]: 1 where a wider prior would not change it, 0 where it would be as
            much wider. The mass of a wrist's last link is seen only together with other parameters; where the prior holds those,
            its resolution is high all the same.
        standard_deviations: posterior, of an equally strong Gaussian prior without the constraints, shape [p].
        chi_square: weighted squared error of the rows at the solution.
        chi_square_free: the smallest possible without constraints and prior.
        regulariser: its name and weight.
        status: how the solve ended.
        iterations, seconds: of the conic solver.
        notes: what a reader must know.
        method: `lmi` (convex, global optimum), `successive-lmi` and `log-cholesky` (refined from it with what is not
            convex), or `eq3.53` ([Halper2024]'s inequalities).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: FloatArray
    prior: Prior
    data_share: FloatArray
    alone: FloatArray
    standard_deviations: FloatArray
    chi_square: float
    chi_square_free: float
    regulariser: str
    status: Status
    iterations: int
    seconds: float
    notes: tuple[Note, ...] = ()
    method: str = "lmi"

    def __post_init__(self) -> None:
        for name in ("values", "data_share", "alone", "standard_deviations"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What the names stand for."""
        return named_parameters(self.names)

    @property
    def bodies(self) -> tuple[Body, ...]:
        return bodies_of(self.names)

    @property
    def determined_by(self) -> tuple[str, ...]:
        """`data`, `prior` or `both` for every parameter."""
        return tuple(
            "prior" if share < _PRIOR_SHARE else "data" if share >= _DATA_SHARE and alone >= _ALONE else "both"
            for share, alone in zip(self.data_share, self.alone, strict=True)
        )

    @property
    def smallest_eigenvalues(self) -> dict[str, float]:
        """Of every body's pseudo-inertia; all positive for possible bodies."""
        return {body.owner: float(np.linalg.eigvalsh(pseudo_inertia(body.of(self.values)))[0]) for body in self.bodies}

    @property
    def is_physical(self) -> bool:
        return all(value > 0.0 for value in self.smallest_eigenvalues.values())


@dataclass(frozen=True, eq=False)
class Consistency:
    """Settings of the projection onto possible bodies.

    Args:
        regulariser: the pull towards the prior; weak by default, so that it decides only what the data cannot see.
        bounds: further constraints.
        error_budget: when given, the divergence alone is minimised subject to a weighted squared error of at most this
            ([Lee2020] compares its regularisers so); by default both are added.
        tolerance: of the conic solver.
    """

    regulariser: Regulariser = field(default_factory=PullBack)
    bounds: Bounds = field(default_factory=Bounds)
    error_budget: float | None = None
    tolerance: float = 1e-8

    def fit(self, information: Information, units: tuple[str, ...], prior: Prior) -> ConsistentEstimate:
        """The nearest possible bodies.

        Args:
            information: over the full standard parameters, every channel already divided by its noise.
            units: of the parameters.
            prior: same names as the information.

        Raises:
            EstimationError: contradictory bounds, or the solver failed.
        """
        factor = _factor_of(information, prior)
        R, z, rest = factor[:-1, :-1], factor[:-1, -1], float(factor[-1, -1] ** 2)
        solution, scale = self.solve(R, z, prior, rest)
        values = solution.v[: len(scale)] * scale
        share, alone, deviations = shares(R, self.regulariser, prior)
        free = R @ smallest_solution(R, z) - z
        return ConsistentEstimate(
            names=information.parameters,
            units=units,
            values=values,
            prior=prior,
            data_share=share,
            alone=alone,
            standard_deviations=deviations,
            chi_square=sum_of_squares(factor, values),
            chi_square_free=float(free @ free) + rest,
            regulariser=f"{self.regulariser.name} {self.regulariser.weight:g}",
            status=solution.status,
            iterations=solution.iterations,
            seconds=solution.seconds,
            notes=(*prior.notes, *self.bounds.notes, *active_notes(self.bounds, prior, values)),
        )

    def values(self, information: Information, prior: Prior) -> tuple[FloatArray, float]:
        """The parameters of the nearest possible bodies alone, and the weighted squared error they leave.

        What `fit` says besides (deviations, what data and prior decide) takes as long as finding them.

        Raises:
            EstimationError: contradictory bounds, or the solver failed.
        """
        factor = _factor_of(information, prior)
        solution, scale = self.solve(factor[:-1, :-1], factor[:-1, -1], prior, float(factor[-1, -1] ** 2))
        values = solution.v[: len(scale)] * scale
        return values, sum_of_squares(factor, values)

    def solve(self, R: FloatArray, z: FloatArray, prior: Prior, rest: float) -> tuple[ConicSolution, FloatArray]:
        """The conic program in scaled variables; the scale with it."""
        scale = parameter_scale(prior)
        program = ConicProgram(len(scale))
        bodies = prior.bodies
        if self.error_budget is None:
            program.add_squares(R * scale, z)
        else:
            room = self.error_budget - rest
            if room < 0.0:
                raise EstimationError(
                    Status.INFEASIBLE, f"error budget {self.error_budget:g} is below the residual {rest:g}"
                )
            size = max(np.sqrt(room), 1e-12)
            G = np.vstack([np.zeros((1, len(scale))), R * scale / size])
            program.second_order(G, np.concatenate([[1.0], -z / size]))
        add_bodies(program, prior, scale, self.bounds.margin)
        self.bounds.add_to(program, prior.names, bodies, scale)
        self.regulariser.add_to(program, prior, scale)
        T, centre = rounding(R, z, self.regulariser, prior, scale)
        # With a budget the error is a constraint, and the optimum of both together is no place to look from.
        near = centre if self.error_budget is None else None
        solution = program.solve(tolerance=self.tolerance, transform=T, centre=near)
        if solution.detail != "Solved":
            # Bounds far from where the data are: seen from the data, the bounds' own size is lost in the distance.
            again = program.solve(tolerance=self.tolerance, transform=T)
            solution = replace(again, seconds=solution.seconds + again.seconds)
        if solution.status is Status.SOLVED:
            return solution, scale
        why = contradiction(self.bounds, prior, scale)
        raise EstimationError(Status.INFEASIBLE if why else solution.status, why or _unsolved(solution))


def _factor_of(information: Information, prior: Prior) -> FloatArray:
    """One factor of all rows, once it is sure that the prior is about the same parameters."""
    if information.parameters != prior.names:
        raise ShapeError("prior", (len(prior.names),), f"the information's {information.n_parameters} parameters")
    return information.stacked()


def _unsolved(solution: ConicSolution) -> str:
    return f"consistent estimate ({solution.detail})"


def sum_of_squares(factor: FloatArray, values: FloatArray) -> float:
    """Weighted squared error of all rows behind a stacked factor [R z; 0 rho]."""
    error = factor[:, :-1] @ values - factor[:, -1]
    return float(error @ error)


def active_notes(bounds: Bounds, prior: Prior, values: FloatArray) -> tuple[Note, ...]:
    """Says which bounds decided something; signs of friction are told by the values themselves."""
    scale = parameter_scale(prior)
    labels = replace(bounds, non_negative_drives=False).active(prior.names, prior.bodies, values, scale)
    if not labels:
        return ()
    return (Note("bounds-active", Severity.INFO, f"decided by bounds, not by data alone: {'; '.join(labels)}"),)


def rounding(
    R: FloatArray, z: FloatArray, regulariser: Regulariser, prior: Prior, scale: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """T with (R scale T)^T (R scale T) + prior curvature = 1, and the optimum without constraints.

    Variables in which data and prior weigh the same, and where they would be if nothing were impossible.
    """
    curvature = regulariser.weight * regulariser.curvature(prior) * np.outer(scale, scale)
    root = np.linalg.cholesky(curvature).T
    factor = triangular(
        np.column_stack([np.vstack([R * scale, root]), np.concatenate([z, root @ (prior.values / scale)])])
    )
    T = np.asarray(np.linalg.inv(factor[:-1, :-1]), dtype=np.float64)
    return T, T @ factor[:-1, -1]


def honest_information(estimate: Estimate) -> Information:
    """Information whose only content is an unconstrained estimate and its covariance, over the standard parameters.

    (b - P pi)^T C^-1 (b - P pi) counts correlated residuals once, where the rows' own squares would count them as if every
    sample were news; the pull towards the prior then weighs what it says it does.
    """
    C = np.array(estimate.covariance)
    # Where rounding has left no variance nothing is known, rather than everything.
    variances = np.diag(C)
    deviations = np.sqrt(np.where(variances > 0.0, variances, max(float(np.abs(C).max()), 1e-300)))
    values, vectors = np.linalg.eigh(C / np.outer(deviations, deviations))
    root = (vectors / np.sqrt(np.maximum(values, _EIGENVALUE_FLOOR))).T / deviations
    p = len(estimate.base.parameters)
    factor = triangular(np.column_stack([root @ estimate.base.projection, root @ estimate.values]))
    channel = ChannelInformation("estimate", np.arange(p), factor, float(len(estimate)))
    return Information(estimate.base.parameters, (channel,))


def parameter_scale(prior: Prior) -> FloatArray:
    """Natural units of every parameter: m, m l and m l^2 of the prior body; keeps the program well scaled."""
    scale = np.array(prior.scale)
    for body in prior.bodies:
        ten = body.of(prior.values)
        mass = float(ten[0])
        length = float(np.sqrt(np.trace(pseudo_inertia(ten)[:3, :3]) / mass))
        scale[list(body.columns)] = [mass, *[mass * length] * 3, *[mass * length**2] * 6]
    return scale


def shares(R: FloatArray, regulariser: Regulariser, prior: Prior) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Diagonal of the resolution matrix (data and prior curvature)^-1 data curvature, `alone`, and posterior deviations.

    A parameter that no row contains has resolution zero even where the prior ties it to others that rows do contain.
    """
    # Everything in units of the prior scale: the raw matrices span twenty decades.
    scale = parameter_scale(prior)
    L = np.linalg.cholesky(regulariser.weight * regulariser.curvature(prior) * np.outer(scale, scale))
    # Generalised eigenvalues of data against prior, by SVD of R L^-T: no squaring of condition numbers.
    _, s, Vt = np.linalg.svd(np.linalg.solve(L, (R * scale).T).T)
    s = np.concatenate([s, np.zeros(len(Vt) - len(s))])
    back = np.linalg.solve(L.T, Vt.T)
    deviations = np.sqrt(np.sum((back / np.sqrt(1.0 + s**2)) ** 2, axis=1)) * scale
    share = np.einsum("ik,k,ki->i", back, s**2 / (1.0 + s**2), Vt @ L.T)
    wider = np.sqrt(np.sum((back / np.sqrt(_WIDER**-2 + s**2)) ** 2, axis=1)) * scale
    alone = (_WIDER * deviations / wider - 1.0) / (_WIDER - 1.0)
    return np.clip(share, 0.0, 1.0), np.clip(alone, 0.0, 1.0), deviations
