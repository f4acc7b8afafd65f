"""Iterated least squares on whitened residuals, with a prior, a robust loss and noise estimated along the way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from armid.arrays import FloatArray
from armid.calibration.identifiable import Selection, select
from armid.calibration.measurement import Measurements
from armid.calibration.noise import NoiseModel, VectorLoss, estimated_noise, lengths, parts
from armid.calibration.residual import Residual, residuals
from armid.information.information import triangular
from armid.kinematics.model import KinematicModel

Mask = npt.NDArray[np.bool_]


class StepRule(StrEnum):
    """How a step is taken."""

    LEAST_SQUARES = "least-squares"
    """[Kolyubin2017] eq. 11: the full linear step, every time."""
    LEVENBERG_MARQUARDT = "levenberg-marquardt"
    """[Kolyubin2017] eq. 12: damped by `lambda diag(W^T W)`; lambda / 10 after a better step, * 10 after a worse one."""


FIRST_DAMPING = 1e-3
"""lambda at the start: the paper leaves it open; at this value the first step is nearly the full one."""
LARGEST_DAMPING = 1e12
"""Beyond it steps are below round-off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverSettings:
    """How to iterate.

    Args:
        method: of a step.
        iterations: at most, for given weights.
        rounds: of re-estimating noise and deciding what is identifiable.
        converged: the iteration ends when the next step would lower the cost (a sum of squared standard deviations)
            by less than this: 1e-6 moves no parameter by more than a thousandth of its uncertainty.
        loss: on the whitened vectors.
        estimate_noise: whether the part of the noise that did not come with the data is estimated from residuals.
    """

    method: StepRule = StepRule.LEVENBERG_MARQUARDT
    iterations: int = 50
    rounds: int = 12
    converged: float = 1e-6
    loss: VectorLoss = field(default_factory=VectorLoss)
    estimate_noise: bool = True


@dataclass(frozen=True, eq=False)
class Linearisation:
    """The weighted problem around one parameter vector: triangular factor of [A r], the cost, and the residuals."""

    values: FloatArray
    factor: FloatArray
    cost: float
    residuals: tuple[Residual, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class FitSolution:
    """Where the iteration ended.

    Args:
        values: parameters, shape [p]; exactly zero where held at nominal.
        selection: which were fitted and why the others were not.
        noise: the weights used.
        covariance: of all parameters, shape [p, p]; zero rows where held.
        residuals: at the solution.
        iterations: taken in all.
        converged: whether the last step was below the limit.
        costs: cost after every accepted step of the last round.
    """

    values: FloatArray
    selection: Selection
    noise: NoiseModel
    covariance: FloatArray
    residuals: tuple[Residual, ...]
    iterations: int
    converged: bool
    costs: tuple[float, ...]


def linearise(
    model: KinematicModel,
    values: FloatArray,
    measurements: Measurements,
    noise: NoiseModel,
    loss: VectorLoss,
    wanted: Mask,
) -> Linearisation:
    """Whitened, robustly weighted rows at these values, reduced to a triangular factor over the wanted columns."""
    p = len(values)
    columns = np.flatnonzero(wanted)
    blocks, kept, cost = [], [], prior_cost(model, values)
    for residual in residuals(model, values, measurements, wanted=wanted):
        weight = 1.0 / noise.sigma(residual.observations)
        for _, channels in parts(residual.observations.quantity):
            d = channels.stop - channels.start
            length = lengths(residual.r[channels] * weight[channels])
            cost += loss.cost(length, d)
            weight[channels] *= loss.weights(length, d)
        A = np.empty((len(columns) + 1, residual.r.size))
        np.multiply(residual.D, weight, out=A[:-1].reshape(len(columns), *weight.shape))
        A[-1] = (residual.r * weight).ravel()
        blocks.append(factor_of(A))
        kept.append(residual)
    small = triangular(np.vstack(blocks))
    factor = np.zeros((len(small), p + 1))
    factor[:, [*columns, p]] = small
    return Linearisation(values, factor, cost, tuple(kept))


MANY = 20_000
"""Equations from which on products of columns are summed directly: ten times faster, and the seven digits that leaves are
enough for a step that the next iteration corrects and for decisions at a relative length of 1e-6."""


def factor_of(A: FloatArray) -> FloatArray:
    """A matrix with the same column products as A^T, shape [p + 1, p + 1]."""
    if A.shape[1] < MANY:
        return triangular(A.T)
    gram = A @ A.T
    length = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    values, vectors = np.linalg.eigh(gram / np.outer(length, length))
    return np.sqrt(np.maximum(values, 0.0))[:, np.newaxis] * vectors.T * length


def prior_cost(model: KinematicModel, values: FloatArray) -> float:
    """Squared distance from nominal in standard deviations."""
    z = values / model.tolerances
    return float(z @ z)


def step(model: KinematicModel, at: Linearisation, kept: Mask, damping: float) -> FloatArray:
    """The damped linear step over the kept parameters, with the prior as further rows."""
    tolerance = model.tolerances[kept]
    A, z = at.factor[:, :-1][:, kept], at.factor[:, -1]
    prior = np.diag(1.0 / tolerance)
    rows, right = [A, prior], [z, -at.values[kept] / tolerance]
    if damping > 0.0:
        diagonal = np.sqrt((A**2).sum(axis=0) + 1.0 / tolerance**2)
        rows.append(np.diag(np.sqrt(damping) * diagonal))
        right.append(np.zeros(len(tolerance)))
    # Scaled by the tolerances the prior's rows are the identity: full rank, so a QR factor is enough.
    Q, R = np.linalg.qr(np.vstack(rows) * tolerance)
    out = np.zeros(len(at.values))
    out[kept] = solve_triangular(R, Q.T @ np.concatenate(right)) * tolerance
    return out


def decrement(model: KinematicModel, at: Linearisation, move: FloatArray) -> float:
    """Squared length of a step in the metric of the linearised problem: what it would gain, up to a factor."""
    moved = at.factor[:, :-1] @ move
    prior = move / model.tolerances
    return float(moved @ moved + prior @ prior)


def descend(
    model: KinematicModel,
    at: Linearisation,
    measurements: Measurements,
    noise: NoiseModel,
    kept: Mask,
    settings: SolverSettings,
    *,
    enough: float,
) -> tuple[Linearisation, list[float], bool]:
    """Iterate with given weights until a step would gain less than `enough`."""
    damped = settings.method is StepRule.LEVENBERG_MARQUARDT
    damping = FIRST_DAMPING if damped else 0.0
    costs = [at.cost]
    for _ in range(settings.iterations):
        move = step(model, at, kept, damping)
        if decrement(model, at, move) < enough:
            return at, costs, True
        trial = linearise(model, at.values + move, measurements, noise, settings.loss, kept)
        if trial.cost < at.cost or not damped:
            at, damping = trial, damping / 10.0
            costs.append(at.cost)
        else:
            damping *= 10.0
            if damping > LARGEST_DAMPING:
                return at, costs, False
    return at, costs, False


def solve(
    model: KinematicModel,
    measurements: Measurements,
    *,
    start: FloatArray | None = None,
    noise: NoiseModel | None = None,
    allowed: Mask | None = None,
    settings: SolverSettings | None = None,
    hold: bool = False,
    previous: Selection | None = None,
) -> FitSolution:
    """Parameters that explain the measurements, given the tolerances.

    Rounds of: decide what is identifiable at the present noise, iterate to convergence, estimate the noise again.

    Args:
        model: the arm with its unknowns.
        measurements: what was observed.
        start: parameters to begin with, shape [p]; nominal by default.
        noise: to begin with; by default so large that only the frames and the strongest errors are fitted first.
        allowed: mask of the parameters that may be fitted; all by default.
        settings: how to iterate.
        hold: parameters that are not allowed keep their start values instead of nominal.
        previous: the selection of a fit to nearly the same measurements, where `start` and `noise` come from; what it
            kept is looked at first, and the plain rounds that lead up to the robust ones are left out.
    """
    settings = SolverSettings() if settings is None else settings
    allowed = np.ones(len(model.parameters), dtype=bool) if allowed is None else allowed
    values = np.zeros(len(model.parameters)) if start is None else np.array(start)
    if noise is None:
        noise = first_noise(model, values, measurements)
    if previous is not None:
        return rounds(model, measurements, values, noise, allowed, settings, hold=hold, previous=previous.kept)
    # Plain least squares first: a robust loss whose scale is still falling can settle on fitting half of the rows exactly.
    solution = rounds(model, measurements, values, noise, allowed, replace(settings, loss=VectorLoss(0.0)), hold=hold)
    if settings.loss.probability > 0.0:
        again = rounds(
            model,
            measurements,
            solution.values,
            solution.noise,
            allowed,
            settings,
            hold=hold,
            previous=solution.selection.kept,
        )
        solution = replace(again, iterations=again.iterations + solution.iterations)
    return solution


def first_noise(model: KinematicModel, values: FloatArray, measurements: Measurements) -> NoiseModel:
    """As large as the residuals of the start: only the frames and the strongest errors are then fitted first."""
    none = np.zeros(len(values), dtype=bool)
    first = tuple(residuals(model, values, measurements, wanted=none))
    unit = NoiseModel(dict.fromkeys(components(first), 1.0))
    return estimated_noise(first, unit, VectorLoss(0.0), n_parameters=0, n_equations=1)


def rounds(
    model: KinematicModel,
    measurements: Measurements,
    values: FloatArray,
    noise: NoiseModel,
    allowed: Mask,
    settings: SolverSettings,
    *,
    hold: bool,
    previous: Mask | None = None,
) -> FitSolution:
    """Select, iterate, estimate the noise, until neither selection nor noise change."""
    iterations, settled = 0, False
    selection: Selection | None = None
    for _ in range(settings.rounds):
        at = linearise(model, values, measurements, noise, settings.loss, allowed)
        chosen = select(model, at.factor[:, :-1], allowed, previous=previous, n_equations=measurements.n_equations)
        held = np.where(chosen.kept | (hold & ~allowed), values, 0.0)
        if not np.array_equal(held, values):
            at = linearise(model, held, measurements, noise, settings.loss, chosen.kept)
        last = settled and selection is not None and np.array_equal(chosen.kept, selection.kept)
        enough = settings.converged if last else ROUGHLY
        at, costs, converged = descend(model, at, measurements, noise, chosen.kept, settings, enough=enough)
        values, selection, previous = at.values, chosen, chosen.kept
        iterations += len(costs) - 1
        if last:
            break
        before, noise = noise, next_noise(at, noise, settings, measurements, chosen.kept)
        settled = alike(before, noise)
    assert selection is not None
    spread = covariance(model, at, selection.kept)
    return FitSolution(
        values=values,
        selection=selection,
        noise=noise,
        covariance=spread,
        residuals=at.residuals,
        iterations=iterations,
        converged=converged,
        costs=tuple(costs),
    )


def next_noise(
    at: Linearisation, noise: NoiseModel, settings: SolverSettings, measurements: Measurements, kept: Mask
) -> NoiseModel:
    """The noise the residuals show, or the given one when it is not to be estimated."""
    if not settings.estimate_noise:
        return noise
    return estimated_noise(
        at.residuals, noise, settings.loss, n_parameters=int(kept.sum()), n_equations=measurements.n_equations
    )


ROUGHLY = 1e-2
"""Gain below which iterating is pointless while the weights are still to change."""


def components(first: tuple[Residual, ...]) -> list[tuple[str, str]]:
    """Every sensor and kind of channel there is."""
    return list(
        dict.fromkeys((r.observations.setup, part) for r in first for part, _ in parts(r.observations.quantity))
    )


SAME_NOISE = 0.01
"""Relative change of a standard deviation below which the weights are settled."""


def alike(a: NoiseModel, b: NoiseModel) -> bool:
    return all(abs(b.model[k] - a.model.get(k, 0.0)) <= SAME_NOISE * b.model[k] + 1e-12 for k in b.model)


def covariance(model: KinematicModel, at: Linearisation, kept: Mask) -> FloatArray:
    """Posterior covariance of all parameters, zero where held, shape [p, p]."""
    tolerance = model.tolerances[kept]
    scaled = np.vstack([at.factor[:, :-1][:, kept] * tolerance, np.eye(int(kept.sum()))])
    R = np.linalg.qr(scaled, mode="r")
    half = np.linalg.solve(R, np.eye(len(tolerance))) * tolerance[:, np.newaxis]
    out = np.zeros((len(kept), len(kept)))
    out[np.ix_(kept, kept)] = half @ half.T
    return out
