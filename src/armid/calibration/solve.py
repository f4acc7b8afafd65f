"""Iterated least squares on whitened residuals, with a prior, a robust loss and noise estimated along the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.identifiable import Selection, select
from armid.calibration.noise import Component, InstrumentNoise, VectorLoss, estimated_noise, lengths
from armid.calibration.prior import believed_prior, learned_prior
from armid.calibration.words import StepRule
from armid.information.blocks import fold_rows, known_values
from armid.information.information import Information
from armid.information.solve import solve_factor
from armid.kinematics.measurement import Measurements
from armid.kinematics.model import KinematicModel
from armid.rows.pose_residual import Residual, parts, residuals

Mask = npt.NDArray[np.bool_]


_FIRST_DAMPING = 1e-3
"""lambda at the start: the paper leaves it open; at this value the first step is nearly the full one."""
_LARGEST_DAMPING = 1e12
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Linearisation:
    """The weighted problem around one parameter vector.

    Args:
        values: where, shape [p].
        wanted: mask of the parameters it is about, shape [p].
        prior: standard deviations around nominal, shape [p].
        information: of the whitened rows `r = D delta` over the wanted parameters, one channel per sensor and kind.
        cost: of the residuals and of the distance from nominal.
        residuals: measured minus predicted.
    """

    values: FloatArray
    wanted: Mask
    prior: FloatArray
    information: Information
    cost: float
    residuals: tuple[Residual, ...]

    def only(self, kept: Mask) -> Linearisation:
        """The same about fewer parameters."""
        if np.array_equal(kept, self.wanted):
            return self
        return replace(self, wanted=kept, information=self.information.select(np.flatnonzero(kept[self.wanted])))

    def columns(self) -> FloatArray:
        """A matrix with the same column products as all rows, shape [m, p]; zero columns where nothing is wanted."""
        factor = self.information.stacked()
        out = np.zeros((len(factor), len(self.values)))
        out[:, self.wanted] = factor[:, :-1]
        return out


@dataclass(frozen=True, eq=False, kw_only=True)
class FitSolution:
    """Where the iteration ended.

    Args:
        values: parameters, shape [p]; exactly zero where held at nominal.
        selection: which were fitted and why the others were not.
        noise: the weights used.
        prior: standard deviations around nominal that were used: the tolerances, tightened where the arm turned out better
            than them, shape [p].
        covariance: of all parameters, shape [p, p]; zero rows where held.
        information: of the whitened rows at the solution over the fitted parameters, one channel per sensor and kind.
        residuals: at the solution.
        iterations: taken in all.
        converged: whether the last step was below the limit.
        costs: cost after every accepted step of the last round.
    """

    values: FloatArray
    selection: Selection
    noise: InstrumentNoise
    prior: FloatArray
    covariance: FloatArray
    information: Information
    residuals: tuple[Residual, ...]
    iterations: int
    converged: bool
    costs: tuple[float, ...]


def linearise(
    model: KinematicModel,
    values: FloatArray,
    measurements: Measurements,
    noise: InstrumentNoise,
    loss: VectorLoss,
    wanted: Mask,
    prior: FloatArray | None = None,
) -> Linearisation:
    """Whitened, robustly weighted rows at these values, folded into Information over the wanted parameters.

    Args:
        model, values: the arm and its parameters.
        measurements: what was observed.
        noise, loss: how rows are weighted.
        wanted: mask of the parameters it is about.
        prior: standard deviations around nominal, shape [p]; the tolerances by default.
    """
    kept: list[Residual] = []
    prior = model.tolerances if prior is None else prior
    cost = float(np.sum((values / prior) ** 2))

    def blocks() -> Iterator[tuple[str, FloatArray, FloatArray]]:
        nonlocal cost
        for residual in residuals(model, values, measurements, wanted=wanted):
            o = residual.observations
            weight = 1.0 / noise.sigma(o)
            kept.append(residual.alone)
            for _, rows in parts(o.quantity):
                d = rows.stop - rows.start
                length = lengths(residual.r[rows] * weight[rows])
                cost += loss.cost(length, d)
                weight[rows] *= loss.weights(length, d)
            weighted = residual.r * weight
            # The rows are ours alone and large: weighted where they are, and never copied.
            residual.D[...] *= weight
            flat = residual.D.reshape(len(residual.D), -1)
            for part, rows in parts(o.quantity):
                block = slice(rows.start * len(o), rows.stop * len(o))
                yield channel_name(o.setup, part), flat[:, block], weighted[rows].ravel()

    names = tuple(name for name, wants in zip(model.names, wanted, strict=True) if wants)
    information = fold_rows(names, blocks())
    return Linearisation(
        values=values, wanted=wanted, prior=prior, information=information, cost=cost, residuals=tuple(kept)
    )


def channel_name(setup: str, part: str) -> str:
    """Of what one sensor says about positions, orientations or distances."""
    return f"{setup}.{part}"


def posterior(at: Linearisation | FitSolution) -> Information:
    """What rows and prior say together about a change of the parameters."""
    wanted = at.wanted if isinstance(at, Linearisation) else at.selection.kept
    weights = 1.0 / at.prior[wanted]
    return at.information + known_values("prior", at.information.parameters, -at.values[wanted], weights)


def step(information: Information, damping: float) -> FloatArray:
    """The linear step of given information, damped by `damping diag(A^T A)`."""
    if not information.parameters:
        return np.zeros(0)
    if damping > 0.0:
        lengths = np.sqrt(sum((channel.R**2).sum(axis=0) for channel in information.channels))
        still = np.zeros(information.n_parameters)
        information += known_values("damping", information.parameters, still, np.sqrt(damping) * lengths)
    return solve_factor(information.stacked(), information.parameters).values


def _decrement(information: Information, move: FloatArray) -> float:
    """Squared length of a step in the metric of the linearised problem: what it would gain, up to a factor."""
    return sum(float(np.sum((channel.R @ move) ** 2)) for channel in information.channels)


def _descend(
    model: KinematicModel,
    at: Linearisation,
    measurements: Measurements,
    noise: InstrumentNoise,
    settings: SolverSettings,
    *,
    enough: float,
) -> tuple[Linearisation, list[float], bool]:
    """Iterate with given weights until a step would gain less than `enough`."""
    damped = settings.method is StepRule.LEVENBERG_MARQUARDT
    damping = _FIRST_DAMPING if damped else 0.0
    costs = [at.cost]
    for _ in range(settings.iterations):
        known = posterior(at)
        move = step(known, damping)
        if _decrement(known, move) < enough:
            return at, costs, True
        there = np.array(at.values)
        there[at.wanted] += move
        trial = linearise(model, there, measurements, noise, settings.loss, at.wanted, at.prior)
        if trial.cost < at.cost or not damped:
            at, damping = trial, damping / 10.0
            costs.append(at.cost)
        else:
            damping *= 10.0
            if damping > _LARGEST_DAMPING:
                return at, costs, False
    return at, costs, False


def solve(
    model: KinematicModel,
    measurements: Measurements,
    *,
    start: FloatArray | None = None,
    noise: InstrumentNoise | None = None,
    allowed: Mask | None = None,
    settings: SolverSettings | None = None,
    hold: bool = False,
    previous: FitSolution | None = None,
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
        previous: a fit to nearly the same measurements, where `start` and `noise` come from; what it kept is looked at
            first, its prior is the first, and the plain rounds that lead up to the robust ones are left out.
    """
    settings = SolverSettings() if settings is None else settings
    allowed = np.ones(len(model.parameters), dtype=bool) if allowed is None else allowed
    values = np.zeros(len(model.parameters)) if start is None else np.array(start)
    if noise is None:
        noise = _first_noise(model, values, measurements)
    if previous is not None:
        return _rounds(model, measurements, values, noise, allowed, settings, hold=hold, previous=previous)
    # Plain least squares first: a robust loss whose scale is still falling can settle on fitting half of the rows exactly.
    solution = _rounds(model, measurements, values, noise, allowed, replace(settings, loss=VectorLoss(0.0)), hold=hold)
    if settings.loss.probability > 0.0:
        again = _rounds(
            model,
            measurements,
            solution.values,
            solution.noise,
            allowed,
            settings,
            hold=hold,
            previous=solution,
        )
        solution = replace(again, iterations=again.iterations + solution.iterations)
    return solution


def settled_values(
    model: KinematicModel, measurements: Measurements, solution: FitSolution, settings: SolverSettings
) -> FloatArray:
    """Parameters on other measurements, with the weights, the unknowns and the prior of a solution, shape [p]."""
    kept, prior = solution.selection.kept, solution.prior
    at = linearise(model, solution.values, measurements, solution.noise, settings.loss, kept, prior)
    return _descend(model, at, measurements, solution.noise, settings, enough=_ROUGHLY)[0].values


def _first_noise(model: KinematicModel, values: FloatArray, measurements: Measurements) -> InstrumentNoise:
    """As large as the residuals of the start: only the frames and the strongest errors are then fitted first."""
    none = np.zeros(len(values), dtype=bool)
    first = tuple(residuals(model, values, measurements, wanted=none))
    unit = InstrumentNoise(dict.fromkeys(_components(first), 1.0))
    return estimated_noise(first, unit, VectorLoss(0.0), {})


def _rounds(
    model: KinematicModel,
    measurements: Measurements,
    values: FloatArray,
    noise: InstrumentNoise,
    allowed: Mask,
    settings: SolverSettings,
    *,
    hold: bool,
    previous: FitSolution | None = None,
) -> FitSolution:
    """Select, iterate, estimate noise and prior, until neither selection nor they change."""
    iterations, settled = 0, False
    selection: Selection | None = None
    before = None if previous is None else previous.selection.kept
    prior = believed_prior(model) if previous is None else previous.prior
    for _ in range(settings.rounds):
        at = linearise(model, values, measurements, noise, settings.loss, allowed, prior)
        chosen = select(model, at.columns(), allowed, previous=before, n_equations=measurements.n_equations)
        held = np.where(chosen.kept | (hold & ~allowed), values, 0.0)
        if np.array_equal(held, values):
            at = at.only(chosen.kept)
        else:
            at = linearise(model, held, measurements, noise, settings.loss, chosen.kept, prior)
        last = settled and selection is not None and np.array_equal(chosen.kept, selection.kept)
        enough = settings.converged if last else _ROUGHLY
        at, costs, converged = _descend(model, at, measurements, noise, settings, enough=enough)
        values, selection, before = at.values, chosen, chosen.kept
        iterations += len(costs) - 1
        if last:
            break
        old = noise, prior
        if settings.estimate_noise:
            spread = covariance(at)
            noise = estimated_noise(at.residuals, noise, settings.loss, _used(at, spread))
            prior = learned_prior(model, at.values, at.wanted, at.prior, np.diag(spread))
        settled = alike(old[0], noise) and bool(np.all(np.abs(prior - old[1]) <= _SAME_PRIOR * old[1]))
    assert selection is not None
    return FitSolution(
        values=values,
        selection=selection,
        noise=noise,
        prior=at.prior,
        covariance=covariance(at),
        information=at.information,
        residuals=at.residuals,
        iterations=iterations,
        converged=converged,
        costs=tuple(costs),
    )


def _used(at: Linearisation, spread: FloatArray) -> dict[Component, float]:
    """Degrees of freedom that the fit took from each component: the trace of its rows' leverage."""
    inside = spread[np.ix_(at.wanted, at.wanted)]
    names = {channel_name(*key): key for key in _components(at.residuals)}
    return {
        names[c.name]: float(np.sum((c.R @ inside[np.ix_(c.columns, c.columns)]) * c.R))
        for c in at.information.channels
    }


_ROUGHLY = 1e-2
"""Gain below which iterating is pointless while the weights are still to change."""


def _components(first: tuple[Residual, ...]) -> list[tuple[str, str]]:
    """Every sensor and kind of channel there is."""
    return list(
        dict.fromkeys((r.observations.setup, part) for r in first for part, _ in parts(r.observations.quantity))
    )


_SAME_PRIOR = 0.05
"""Relative change of a prior below which it is settled: it moves what the data know by less than a hundredth of that."""
_SAME_NOISE = 0.01
"""Relative change of a standard deviation below which the weights are settled."""


def alike(a: InstrumentNoise, b: InstrumentNoise) -> bool:
    return all(abs(b.model[k] - a.model.get(k, 0.0)) <= _SAME_NOISE * b.model[k] + 1e-12 for k in b.model)


def covariance(at: Linearisation) -> FloatArray:
    """Posterior covariance of all parameters, zero where held, shape [p, p]."""
    out = np.zeros((len(at.values), len(at.values)))
    if at.information.parameters:
        known = posterior(at)
        out[np.ix_(at.wanted, at.wanted)] = solve_factor(known.stacked(), known.parameters).inverse
    return out
