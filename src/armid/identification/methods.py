"""The unconstrained estimate by the method asked for, with the covariance asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.drive_scale import prior_of_rows, torque_sizes
from armid.consistency.prior import Prior
from armid.estimation.autoregression import fit_autoregression
from armid.estimation.covariance import Covariance, Earlier
from armid.estimation.estimate import Estimate
from armid.estimation.fit_record import NominalCorrection
from armid.estimation.least_squares import GaussianPrior, OrdinaryLeastSquares, TorqueError, WeightedLeastSquares
from armid.estimation.noise import stretches_of
from armid.estimation.robust import Huber, Loss, RobustFit, RobustLeastSquares, Tukey
from armid.estimation.run import Run, weighted_information
from armid.estimation.runs import Runs, lengths_of
from armid.estimation.total_least_squares import TotalLeastSquares, row_noise
from armid.identifiability.base import BaseParameters
from armid.identification.aids import Aids
from armid.identification.settings import Identification, Method
from armid.information.information import Information
from armid.robot.robot import Robot

_AR_ORDER = 24
"""Highest order of autoregressions of residuals."""

_SMALLEST_DOUBT = 1e-3
"""Of the value that would explain all of the torque: doubt of a parameter that the description has at zero."""


@dataclass(frozen=True, eq=False)
class Free:
    """An unconstrained estimate and the rows it stands for.

    Args:
        estimate: with its covariance.
        information: whose least-squares solution it is: rows reweighted, instruments, or the rows as they were.
    """

    estimate: Estimate
    information: Information


def free_estimate(
    robot: Robot,
    runs: Sequence[Run],
    information: Information,
    base: BaseParameters,
    units: tuple[str, ...],
    settings: Identification,
    aids: Aids,
    *,
    earlier: Earlier | None = None,
) -> Free:
    """By the method asked for, with the covariance asked for; rows of an earlier result are weighted least squares."""
    noise = settings.covariance
    if earlier is not None:
        every = information + earlier.information
        estimate = WeightedLeastSquares().fit(every, base, units)
        named = replace(estimate, method=f"{estimate.method} with the rows of an earlier result")
        return Free(noise.apply(named, runs, information, earlier=earlier), every)
    if settings.method is Method.WEIGHTED:
        estimate = WeightedLeastSquares().fit(information, base, units)
        return Free(noise.apply(estimate, runs, information), information)
    if settings.method is Method.RIDGE:
        belief = _nominal_belief(robot, information.pooled(), base, settings.regulariser.weight)
        return Free(_updated_estimate(runs, information, base, units, belief), information)
    if settings.method is Method.TORQUE_ERROR:
        return Free(_torque_error(robot, runs, information, base, units, noise), information)
    # The others weigh rows in their own way: one noise per channel.
    information = information.pooled()
    match settings.method:
        case Method.ORDINARY:
            return Free(ordinary(runs, information, base, units, noise), information)
        case Method.HUBER | Method.TUKEY:
            loss = Huber() if settings.method is Method.HUBER else Tukey()
            return _robust(RobustLeastSquares(loss).fit(runs, base, units), runs, noise)
        case Method.TOTAL:
            estimate = total(runs, information, base, units, noise, aids.motion_noise)
            return Free(estimate, _recentred(information, estimate.standard))
        case Method.INSTRUMENTAL:
            from armid.identification.simulated import instrumental

            prior = _description_prior(robot, information)
            return Free(*instrumental(runs, base, units, prior, settings, aids))
        case Method.DIDIM | Method.CLOE | Method.ML:
            from armid.identification.simulated import in_loop

            first = WeightedLeastSquares().fit(information, base, units)
            prior = _description_prior(robot, information)
            return Free(*in_loop(runs, information, first, prior, settings, aids))
        case _:
            raise AssertionError(settings.method)


def _recentred(information: Information, standard: FloatArray) -> Information:
    """The same rows with values whose least-squares solution is given, and the residual energy it leaves on the real ones."""
    channels = []
    for channel in information.channels:
        factor = np.array(channel.factor)
        values = standard[channel.columns]
        energy = channel.error_energy(standard)
        factor[:, -1] = 0.0
        factor[:-1, -1] = factor[:-1, :-1] @ values
        factor[-1, -1] = np.sqrt(energy)
        channels.append(replace(channel, factor=factor))
    return Information(information.parameters, tuple(channels))


def ordinary(
    runs: Sequence[Run], information: Information, base: BaseParameters, units: tuple[str, ...], noise: Covariance
) -> Estimate:
    """Ordinary least squares; the sandwich must use the weights of the fit: the same for every channel."""
    estimate = OrdinaryLeastSquares().fit(information, base, units)
    pooled = dict.fromkeys(estimate.sigma, float(np.sqrt(np.mean(np.square(list(estimate.sigma.values()))))))
    covariance = noise.apply(replace(estimate, sigma=pooled), runs, information)
    return estimate.with_covariance(covariance.covariance, covariance.covariance_kind)


def _robust(fit: RobustFit, runs: Sequence[Run], noise: Covariance) -> Free:
    """A robust estimate with the covariance of its pseudo-values A b + psi(r), over the squared mean of psi'.

    The fit is the least-squares fit of these pseudo-values; outliers enter them only as far as they entered the fit.
    """
    estimate = fit.estimate

    def believed(k: int) -> Run:
        run = runs[k]
        residual = run.residuals(estimate.standard)
        return run.with_measured(run.y - (1.0 - fit.weights[k]) * residual)

    slope, rows = 0.0, 0
    for w, run in zip(fit.weights, runs, strict=True):
        slope, rows = slope + float(np.sum(_slopes(fit.loss, w, run, estimate))), rows + w.size
    share = max(slope / rows, 0.1)
    covariance = noise.apply(estimate, Runs(believed, lengths_of(runs)))
    honest = estimate.with_covariance(covariance.covariance / share**2, covariance.covariance_kind)
    return Free(honest, weighted_information(runs, [np.sqrt(w) for w in fit.weights]))


def _slopes(loss: Loss, weights: FloatArray, run: Run, estimate: Estimate) -> FloatArray:
    """psi'(u) of every row, shape [n_samples, n_channels]."""
    scale = np.array([estimate.sigma[name] for name in run.channels])
    return loss.slopes(run.residuals(estimate.standard) / scale, weights)


def _description_prior(robot: Robot, information: Information) -> Prior:
    """The description's bodies, stand-ins scaled to the torque where it has none."""
    sigma = {c.name: max(float(np.sqrt(np.sum(c.factor[:, -1] ** 2) / c.count)), 1e-12) for c in information.channels}
    return prior_of_rows(robot, information.weighted({name: 1.0 / s for name, s in sigma.items()}))


def _nominal_belief(robot: Robot, information: Information, base: BaseParameters, weight: float) -> GaussianPrior:
    """Nominal base values, each doubted by its own size over the root of the weight: ridge with a stated strength."""
    prior = _description_prior(robot, information)
    P = np.abs(base.projection)
    size = P @ np.where(prior.values != 0.0, np.abs(prior.values), prior.scale * np.array(_joint_columns(prior)))
    smallest = _SMALLEST_DOUBT * torque_sizes(information)[base.independent]
    doubt = np.maximum(size, smallest) / np.sqrt(weight)
    origin = f"nominal values, each doubted by {1.0 / np.sqrt(weight):.3g} times its size"
    return GaussianPrior.independent(base.values(prior.values), doubt, origin)


def _joint_columns(prior: Prior) -> list[float]:
    """One where a parameter belongs to a drive (its prior is centred at zero), zero elsewhere."""
    return [1.0 if one.of_joint else 0.0 for one in prior.parameters]


def _torque_error(
    robot: Robot,
    runs: Sequence[Run],
    information: Information,
    base: BaseParameters,
    units: tuple[str, ...],
    noise: Covariance,
) -> Estimate:
    """Corrections to the description's values from the error of its torque ([Khosla1985]); each is kept beside its nominal."""
    nominal = base.values(_description_prior(robot, information).values)
    estimate = noise.apply(TorqueError().fit(information, base, nominal, units), runs, information)
    kept = {
        name: NominalCorrection(nominal=float(b), correction=float(v - b), standard_deviation=float(s))
        for name, b, v, s in zip(estimate.names, nominal, estimate.values, estimate.standard_deviations, strict=True)
    }
    return replace(estimate, provenance=replace(estimate.provenance, corrections=kept))


def total(
    runs: Sequence[Run],
    information: Information,
    base: BaseParameters,
    units: tuple[str, ...],
    noise: Covariance,
    motion_noise: FloatArray,
) -> Estimate:
    """Total least squares with row noise propagated from the noise of the motion."""
    start = WeightedLeastSquares().fit(information, base, units)
    rows = row_noise(runs, base, start.sigma, motion_noise)
    estimate = TotalLeastSquares().fit(information, base, rows, units)
    honest = noise.apply(estimate, runs, information)
    named = dict(zip(base.names, rows.tolist(), strict=True))
    return replace(honest, provenance=replace(honest.provenance, row_noise=named))


def _updated_estimate(
    runs: Sequence[Run], information: Information, base: BaseParameters, units: tuple[str, ...], belief: GaussianPrior
) -> Estimate:
    """A belief and new rows, the rows counted by their independent samples.

    One factor stands for all channels: the mean number of samples per independent one, from autoregressions of the residuals.
    """
    first = WeightedLeastSquares().fit(information, base, units, prior=belief)
    stretches = stretches_of(runs, first.standard, first.sigma)
    lengths = [
        fit_autoregression([s.residuals[:, c] for s in stretches], max_order=_AR_ORDER).correlation_length()
        for c in range(len(runs[0].channels))
    ]
    length = float(np.mean(lengths))
    second = WeightedLeastSquares().fit(
        information, base, units, prior=replace(belief, root=belief.root * np.sqrt(length))
    )
    return second.with_covariance(length * second.covariance, "autocorrelation")
