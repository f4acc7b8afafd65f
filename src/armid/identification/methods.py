"""The unconstrained estimate by the method asked for, with the covariance asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from armid.arrays import FloatArray
from armid.closed_loop.bodies import nearest_bodies
from armid.closed_loop.fit import LoopMethod
from armid.consistency.consistent import honest_information
from armid.consistency.drive_scale import torque_sizes, with_drive_scales
from armid.consistency.prior import Prior, nominal_prior, scaled_to_data
from armid.errors import InputError
from armid.estimation.autoregression import fit_autoregression
from armid.estimation.covariance import Covariance, Earlier
from armid.estimation.estimate import Estimate
from armid.estimation.fit_record import NominalCorrection
from armid.estimation.instrumental import InstrumentalVariables
from armid.estimation.least_squares import GaussianPrior, OrdinaryLeastSquares, TorqueError, WeightedLeastSquares
from armid.estimation.noise import stretches_of
from armid.estimation.recording import torque_source
from armid.estimation.robust import Huber, Loss, RobustFit, RobustLeastSquares, Tukey
from armid.estimation.run import Run, information_of, weighted_information
from armid.estimation.runs import Runs, lengths_of
from armid.estimation.total_least_squares import TotalLeastSquares, row_noise
from armid.identifiability.base import BaseParameters
from armid.identification.closed_loop import ClosedLoop, RealLoop
from armid.identification.loop_methods import RawMotion, loop_estimate, raw_motions, simulated_positions
from armid.identification.settings import Identification, Method
from armid.information.information import Information
from armid.logs.conditioning import Conditioning, VelocitySource, condition
from armid.logs.log import Channel
from armid.logs.recording import Recording
from armid.logs.samples import concatenated
from armid.robot.robot import Robot

_AR_ORDER = 24
"""Highest order of autoregressions of residuals."""

_SMALLEST_DOUBT = 1e-3
"""Of the value that would explain all of the torque: doubt of a parameter that the description has at zero."""


@dataclass(frozen=True, eq=False)
class Aids:
    """What some methods need besides rows.

    Args:
        commanded: (q, qd, qdd) that the controller asked for, by run, shape [n_samples, 3 n_joints].
        motion_noise: standard deviation of conditioned (q, qd, qdd), shape [3 n_joints]; empty when not known.
        raw: recordings as the controller lived them; empty without one.
        conditioned: positions of every recording at its own samples to (q, qd, qdd) by run, like the measured ones.
    """

    commanded: dict[str, FloatArray] = field(default_factory=dict)
    motion_noise: FloatArray = field(default_factory=lambda: np.empty(0))
    raw: tuple[RawMotion, ...] = ()
    conditioned: Callable[[Sequence[FloatArray]], dict[str, FloatArray]] | None = None


@dataclass(frozen=True, eq=False)
class Free:
    """An unconstrained estimate and the rows it stands for.

    Args:
        estimate: with its covariance.
        information: whose least-squares solution it is: rows reweighted, instruments, or the rows as they were.
    """

    estimate: Estimate
    information: Information


def aids_of(
    robot: Robot,
    logs: Sequence[Recording],
    runs: Sequence[Run],
    conditioning: Conditioning,
    settings: Identification,
    *,
    torque: Channel = Channel.LINK_TORQUE,
) -> Aids:
    """The aids that the method of the settings needs.

    Args:
        robot: the arm.
        logs: of the training runs.
        runs: made of them.
        conditioning: as resolved.
        settings: with the method.
        torque: channel that the rows explain.

    Raises:
        InputError: the logs do not hold what the method needs.
    """
    if settings.prior is not None and settings.method is not Method.WEIGHTED:
        raise InputError(f"--method {settings.method}", "with --prior", "an earlier result is continued by wls")
    match settings.method:
        case Method.INSTRUMENTAL:
            if settings.effects.shapes:
                raise InputError("--method iv", "with shapes of friction", "it simulates linear friction only")
            commanded = _commands_of(robot, logs, runs, conditioning)
            if settings.controller is None:
                return Aids(commanded=commanded)
            raw = raw_motions(logs, torque, settings.method)
            return Aids(
                commanded=commanded,
                raw=raw,
                conditioned=lambda positions: _conditioned_positions(robot, logs, runs, conditioning, positions),
            )
        case Method.DIDIM | Method.CLOE | Method.ML:
            if settings.controller is None:
                raise InputError(
                    f"--method {settings.method}",
                    "without --controller",
                    "give the file of the controller (docs/formats.md); kp: unknown has its gains estimated",
                )
            return Aids(raw=raw_motions(logs, torque, settings.method))
        case Method.TOTAL:
            return Aids(motion_noise=_motion_noise_of(robot, logs, conditioning))
        case _:
            return Aids()


def _commands_of(
    robot: Robot, logs: Sequence[Recording], runs: Sequence[Run], conditioning: Conditioning
) -> dict[str, FloatArray]:
    """The commanded motion at the samples of every run, conditioned like the measured one.

    Raises:
        InputError: a log without commanded positions, or whose command does not cover its motion.
    """
    missing = [log.name for log in logs if Channel.COMMANDED_POSITION not in log]
    if missing:
        raise InputError(
            missing[0],
            "no commanded positions; --method iv simulates the arm along them",
            "record what the controller asked for, or use another method",
        )
    return _conditioned_positions(
        robot, logs, runs, conditioning, [recording.log[Channel.COMMANDED_POSITION] for recording in logs]
    )


def _conditioned_positions(
    robot: Robot,
    logs: Sequence[Recording],
    runs: Sequence[Run],
    conditioning: Conditioning,
    positions: Sequence[FloatArray],
) -> dict[str, FloatArray]:
    """Other positions at the samples of every recording, conditioned like the measured ones.

    Raises:
        InputError: they do not cover the motion.
    """
    settings = replace(conditioning, velocity=VelocitySource.POSITION)
    parts = []
    for log, position in zip((recording.log for recording in logs), positions, strict=True):
        channels = dict(log.channels) | {Channel.POSITION: position}
        parts.append(condition(replace(log, channels=channels), robot, settings))
    whole = concatenated(parts)
    out, start = {}, 0
    for run in runs:
        out[run.name] = np.asarray(whole.inputs()[start : start + len(run)])
        start += len(run)
    if start != len(whole) or any(len(out[run.name]) != len(run) for run in runs):
        raise InputError(
            "--method iv", f"{len(whole)} commanded samples for {start} measured ones", "record both without holes"
        )
    return out


def _motion_noise_of(robot: Robot, logs: Sequence[Recording], conditioning: Conditioning) -> FloatArray:
    """Noise of conditioned (q, qd, qdd) from the white noise of the recorded position, shape [3 n_joints].

    White noise of deviation s at rate f has density 2 s^2 / f; what passes a low-pass at f_c after k derivatives is its
    integral times (2 pi f)^2k.

    Raises:
        InputError: no noise can be told from the logs.
    """
    noise = np.zeros(robot.n_joints)
    rate = np.inf
    for log in logs:
        found = next(log.samples(conditioning)).noise.get(Channel.POSITION)
        if found is not None:
            noise = np.maximum(noise, found)
            rate = min(rate, (len(log) - 1) / log.duration)
    cutoff = conditioning.cutoff or np.inf
    if not np.isfinite(rate) or not np.any(noise > 0.0):
        raise InputError(
            "--method tls", "the noise of the positions cannot be told", "record longer, or use another method"
        )
    edge = min(cutoff, rate / 2.0)
    w = 2.0 * np.pi
    shares = [w ** (2 * k) * edge ** (2 * k + 1) / (2 * k + 1) for k in range(3)]
    return np.concatenate([noise * np.sqrt(2.0 / rate * share) for share in shares])


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
            return _instrumental(robot, runs, information, base, units, settings, aids)
        case Method.DIDIM | Method.CLOE | Method.ML:
            first = WeightedLeastSquares().fit(information, base, units)
            return _in_loop(robot, runs, information, first, settings, aids)
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
    prior = nominal_prior(robot, information.parameters)
    sigma = {c.name: max(float(np.sqrt(np.sum(c.factor[:, -1] ** 2) / c.count)), 1e-12) for c in information.channels}
    rows = information.weighted({name: 1.0 / s for name, s in sigma.items()})
    return with_drive_scales(scaled_to_data(prior, rows), rows)


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


def _instrumental(
    robot: Robot,
    runs: Sequence[Run],
    information: Information,
    base: BaseParameters,
    units: tuple[str, ...],
    settings: Identification,
    aids: Aids,
) -> Free:
    """Instruments from simulating the estimate along the commanded motion; the covariance is that of the instruments' rows."""
    noise, prior = settings.covariance, _description_prior(robot, information)
    simulate: Callable[[FloatArray, Run], FloatArray]
    if settings.controller is None or aids.conditioned is None:
        simulate = ClosedLoop(base=base, commanded=aids.commanded, bodies=nearest_bodies(base, prior))
    else:
        positions = simulated_positions(torque_source(runs), base, aids.raw, settings.controller, prior)
        simulate = RealLoop(positions, aids.conditioned)
    estimate = InstrumentalVariables().fit(runs, base, simulate, units)
    clean = []
    for run in runs:
        moved = replace(run, inputs=simulate(estimate.values, run))
        clean.append(moved.with_measured(moved.predicted(estimate.standard) + run.residuals(estimate.standard)))
    rows = information_of(clean)
    covariance = noise.apply(estimate, clean, rows)
    return Free(estimate.with_covariance(covariance.covariance, covariance.covariance_kind), rows)


def _in_loop(
    robot: Robot,
    runs: Sequence[Run],
    information: Information,
    first: Estimate,
    settings: Identification,
    aids: Aids,
) -> Free:
    """The closed loop simulated with the values sought; its covariance is what the rows stand for."""
    assert settings.controller is not None
    estimate = loop_estimate(
        torque_source(runs),
        aids.raw,
        settings.controller,
        LoopMethod(settings.method.value),
        first,
        information,
        _description_prior(robot, information),
        seed=settings.seed,
    )
    return Free(estimate, honest_information(estimate))


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
