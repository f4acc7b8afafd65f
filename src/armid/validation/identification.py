"""From logs to a judged result: condition, estimate, make consistent, validate, judge. The one call behind `armid identify`."""

from __future__ import annotations

import platform
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.consistency.bounds import Bounds
from armid.estimation.consistency.certificates import certify
from armid.estimation.consistency.consistent import Consistency, ConsistentEstimate
from armid.estimation.consistency.prior import Prior, nominal_prior, scaled_to_data
from armid.estimation.consistency.regularisers import PullBack, Regulariser
from armid.estimation.covariance import AutocorrelatedNoise, Covariance, PerChannelNoise
from armid.estimation.errors import joint_errors, stacked_relative_error
from armid.estimation.estimate import Estimate, identification_notes, units_of
from armid.estimation.factor import solve_factor
from armid.estimation.folds import leave_one_out
from armid.estimation.gains import DriveGains, DriveGainSearch
from armid.estimation.gravity import GravityDirection
from armid.estimation.least_squares import GaussianPrior, WeightedLeastSquares, reduced
from armid.estimation.presliding import CANDIDATES, chosen_distances
from armid.estimation.recording import runs_of
from armid.estimation.result import Result
from armid.estimation.run import Run, check_rows, information_of
from armid.estimation.status import EstimationError, Status
from armid.identifiability.base import BaseParameters, base_parameters
from armid.identifiability.structure import structural_base
from armid.information.information import Information
from armid.logs.conditioning import Conditioning, VelocitySource, condition
from armid.logs.log import Channel, Log
from armid.logs.samples import Samples, concatenated
from armid.notes import Note, Severity
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import transformed
from armid.robot.robot import Robot
from armid.validation.metrics import against_nominal, nominal_standard, traces
from armid.validation.temperature import run_temperatures
from armid.validation.verdict import judge

PRACTICAL_RANK = 1e-4
"""Relative singular value of the column-scaled rows below which a direction is not excited. Useful motions stay above 5e-3;
this far down, noise in the rows themselves outweighs the direction."""

PRIOR_WEIGHT = 0.1
"""Of the pull towards the prior bodies, see `Identification`: weak, it decides what the data leave open."""

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Identification:
    """Settings of an identification.

    Args:
        effects: what the model contains.
        conditioning: of the logs; open choices are made on the training motion.
        velocity: derived from position or as recorded; None: whichever explains the training torque better.
        covariance: how the noise is modelled.
        regulariser: pull towards the prior in the consistent estimate; its weight is one over the squared
            relative doubt, so 0.1 doubts every body by three times its own size.
        bounds: further constraints on the bodies.
        prior: an earlier result to start from.
        prior_inflation: how much wider than its own deviations the earlier result is believed.
        presliding: look for a distance over which Coulomb friction turns around, joint by joint, on the training motion.
        sensitivity: also report what another cut-off and leaving out each file would change.
        seed: of sampled certificates.
    """

    effects: Effects
    conditioning: Conditioning = field(default_factory=Conditioning)
    velocity: VelocitySource | None = None
    covariance: Covariance = field(default_factory=AutocorrelatedNoise)
    regulariser: Regulariser = field(default_factory=lambda: PullBack(PRIOR_WEIGHT))
    bounds: Bounds = field(default_factory=Bounds)
    prior: Result | None = None
    prior_inflation: float = 5.0
    presliding: bool = True
    sensitivity: bool = True
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Data:
    """Training and held-out runs under one conditioning."""

    train: tuple[Run, ...]
    held_out: tuple[Run, ...]
    conditioning: Conditioning
    samples: Samples
    presliding: tuple[float, ...]
    notes: tuple[Note, ...]
    temperatures: tuple[FloatArray | None, ...] = ()


@dataclass(frozen=True, eq=False)
class Fit:
    """Everything estimated from the training runs."""

    information: Information
    structural: BaseParameters
    estimate: Estimate
    consistent: ConsistentEstimate
    notes: tuple[Note, ...]


def identify(
    robot: Robot,
    train: Sequence[Log],
    held_out: Sequence[Log],
    settings: Identification,
    *,
    progress: Progress = lambda _: None,
) -> Result:
    """A judged result.

    Args:
        robot: as described.
        train: logs to learn from.
        held_out: logs no part of which is used for any choice.
        settings: see there.
        progress: told in words what is being done.

    Raises:
        ArmidError: unusable input; nothing is written then.
    """
    started = time.perf_counter()
    progress("conditioning")
    data = prepared(robot, train, held_out, settings)
    gains = None
    if (
        data.samples.channel(settings.effects.torques) is Channel.CURRENT
        and settings.effects.torques is not TorqueSide.LINK
    ):
        progress("drive gains")
        gains = drive_gains(robot, data)
        data = in_torque_units(data, gains)
    progress("estimating")
    fit = fitted(robot, data.train, settings)
    progress("judging")
    sensitivity = sensitivities(robot, train, held_out, settings, data, fit, gains) if settings.sensitivity else {}
    result = judged(robot, data, fit, settings, gains)
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return replace(
        result,
        sensitivity=sensitivity,
        provenance=provenance(robot, train, held_out, settings),
        seconds=time.perf_counter() - started,
        peak_memory_mb=usage / (1024.0**2 if platform.system() == "Darwin" else 1024.0),
    )


def prepared(robot: Robot, train: Sequence[Log], held_out: Sequence[Log], settings: Identification) -> Data:
    """Conditioned runs; open choices are settled on the training logs alone."""
    if not train:
        raise InputError("logs", "there are none", "give at least one recording")
    sources = [VelocitySource.POSITION] if settings.velocity is None else [settings.velocity]
    if settings.velocity is None and all(Channel.VELOCITY in log for log in train):
        sources.append(VelocitySource.MEASURED)
    options = []
    for source in sources:
        try:
            options.append(conditioned(robot, train, replace(settings.conditioning, velocity=source)))
        except InputError:
            # A recorded velocity full of holes cannot be used; the derived one always can, or the log is refused for good.
            if source is sources[0]:
                raise
    scores = [misfit(robot, samples, settings.effects) for samples, _ in options] if len(options) > 1 else [0.0]
    samples, resolved = options[int(np.argmin(scores))]
    notes = list(samples.notes)
    if len(options) > 1:
        text = f"velocity taken {'as recorded' if resolved.velocity is VelocitySource.MEASURED else 'from position'}: it explains the training torque better"
        notes.append(Note("velocity-source", Severity.INFO, text))
    distances = presliding_of(robot, samples, settings)
    if any(distances):
        shown = ", ".join(f"{name} {1e3 * d:g}" for name, d in zip(samples.joints, distances, strict=True) if d)
        notes.append(
            Note("presliding", Severity.INFO, f"Coulomb friction turns around over a distance [mrad or mm]: {shown}")
        )
    held = [condition(log, robot, resolved) for log in held_out]
    train_runs, *held_runs = (runs_of(part, robot, settings.effects, presliding=distances) for part in (samples, *held))
    temperatures = [run_temperatures(log, robot, part) for log, part in zip(held_out, held, strict=True)]
    return Data(
        train_runs, tuple(run for runs in held_runs for run in runs), resolved, samples, distances, tuple(notes),
        tuple(t for parts in temperatures for t in parts),
    )  # fmt: skip


def presliding_of(robot: Robot, samples: Samples, settings: Identification) -> tuple[float, ...]:
    """Presliding distance per joint, zero where it does not pay."""
    n = robot.n_joints
    if not (settings.effects.coulomb and settings.presliding):
        return (0.0,) * n
    sigma = np.array([residual_noise(robot, samples, settings.effects, (d,) * n) for d in (0.0, *CANDIDATES)])
    # With both sides measured every joint has two channels; their geometric mean decides.
    sigma = np.exp(np.log(np.maximum(sigma, 1e-12)).reshape(len(sigma), -1, n).mean(axis=1))
    return tuple(float(d) for d in chosen_distances(sigma))


def conditioned(robot: Robot, logs: Sequence[Log], settings: Conditioning) -> tuple[Samples, Conditioning]:
    """All training logs under the choices made on the longest of them."""
    longest = max(logs, key=len)
    first = condition(longest, robot, settings)
    assert first.settings is not None
    parts = [first if log is longest else condition(log, robot, first.settings) for log in logs]
    return concatenated(parts), first.settings


def misfit(robot: Robot, samples: Samples, effects: Effects) -> float:
    """Sum over channels of the logarithm of the residual noise, for comparing choices on the same torque."""
    return float(np.sum(np.log(np.maximum(residual_noise(robot, samples, effects, None), 1e-12))))


def residual_noise(
    robot: Robot, samples: Samples, effects: Effects, presliding: tuple[float, ...] | None
) -> FloatArray:
    """Standard deviation of the residuals of the free fit per channel."""
    runs = runs_of(samples, robot, effects, presliding=presliding)
    information = information_of(runs)
    base, _ = usable_base(runs, information)
    return np.array(list(WeightedLeastSquares().fit(information, base).sigma.values()))


def usable_base(runs: Sequence[Run], information: Information) -> tuple[BaseParameters, BaseParameters]:
    """Base parameters the data determine, and those a perfect motion would.

    Raises:
        EstimationError: fewer rows than parameters.
    """
    distinct = {
        (type(run.source), getattr(getattr(run.source, "torque", run.source), "loaded", True)): run.source
        for run in runs
    }
    structural = structural_base(*distinct.values(), what="the torque")
    check_rows(runs, len(structural))
    factor = information.select(structural.independent).stacked()[:, :-1]
    norms = np.linalg.norm(factor, axis=0)
    singular = np.linalg.svd(factor / np.where(norms > 0.0, norms, 1.0), compute_uv=False)
    if np.all(norms > 0.0) and singular[-1] > PRACTICAL_RANK * singular[0]:
        return structural, structural
    why = f"tolerance {PRACTICAL_RANK:g}: less is not excited"
    return base_parameters(information, tolerance=PRACTICAL_RANK, why=why, what="the torque"), structural


def drive_gains(robot: Robot, data: Data) -> DriveGains:
    """Gains of all joints from runs with and without a weighed payload.

    Raises:
        InputError: no such pair among the logs.
    """
    loads = {segment.conditions.payload or 0.0 for segment in data.samples.segments}
    if len(loads) != 2 or 0.0 not in loads:
        raise InputError(
            "logs", f"currents with payloads {sorted(loads)} kg",
            "torque needs drive gains: give runs with and without a payload of known mass (--payload both), or a gain in the mapping",
        )  # fmt: skip
    mass = max(loads)
    if "payload.mass" not in data.train[0].source.columns:
        raise InputError("payload", "some runs carried one", "use --payload both")
    known = {"payload.mass": mass}
    centre = next((s.conditions.payload_centre for s in data.samples.segments if s.conditions.payload), None)
    if centre is not None:
        # Given in the flange frame; parameters live in the last link's frame.
        point = np.array([mass, *(mass * np.asarray(centre)), *np.zeros(6)])
        h = transformed(point, robot.tip.T_link_frame)[1:4]
        known |= {f"payload.m{axis}": float(value) for axis, value in zip("xyz", h, strict=True)}
    information = information_of(data.train)
    base, _ = usable_base(data.train, information)
    return DriveGainSearch().fit(information, base, known)


def in_torque_units(data: Data, gains: DriveGains) -> Data:
    """Currents times gains."""

    def scaled(run: Run) -> Run:
        raw = None if run.y_raw is None else run.y_raw * gains.values
        return replace(run, y=run.y * gains.values, y_raw=raw)

    return replace(data, train=tuple(map(scaled, data.train)), held_out=tuple(map(scaled, data.held_out)))


def fitted(robot: Robot, runs: tuple[Run, ...], settings: Identification) -> Fit:
    """Free and consistent estimate of the training runs."""
    information = information_of(runs)
    names = information.parameters
    units = runs[0].source.space.units  # type: ignore[attr-defined]
    belief = earlier_base(settings, names)
    if belief is None:
        base, structural = usable_base(runs, information)
        estimate = WeightedLeastSquares().fit(information, base, units_of(base, units))
        estimate = settings.covariance.apply(estimate, runs, information)
    else:
        base = structural = belief[0]
        estimate = WeightedLeastSquares().fit(information, base, units_of(base, units), prior=belief[1])
    prior = consistent_prior(robot, names, information, estimate, settings)
    consistency = Consistency(settings.regulariser, settings.bounds)
    consistent = consistency.fit(effective_information(information, estimate), units, prior)
    notes = (*estimate.notes, *identification_notes(estimate), *consistent.notes)
    return Fit(information, structural, estimate, consistent, notes)


def effective_information(information: Information, estimate: Estimate) -> Information:
    """The rows in units of their noise, counted as many times as there are independent samples among them.

    Residuals of sampled motion are correlated, so a plain sum of squares would overrule any prior. The honest deviations
    over those for independent noise say how much news a row is.
    """
    naive = PerChannelNoise().apply(estimate, (), information).standard_deviations
    inflation = max(1.0, float(np.median(estimate.standard_deviations / np.maximum(naive, 1e-300))))
    return information.weighted({name: 1.0 / (sigma * inflation) for name, sigma in estimate.sigma.items()})


def earlier_base(settings: Identification, names: tuple[str, ...]) -> tuple[BaseParameters, GaussianPrior] | None:
    """The base parameters and belief of an earlier result, when there is one about the same parameters.

    Raises:
        InputError: it is about other parameters.
    """
    if settings.prior is None:
        return None
    earlier = settings.prior.estimate
    if earlier.base.parameters != names:
        raise InputError("--prior", "its result is about other parameters", "use the same robot and effects")
    return earlier.base, GaussianPrior.from_estimate(earlier, inflation=settings.prior_inflation)


def consistent_prior(
    robot: Robot, names: tuple[str, ...], information: Information, estimate: Estimate, settings: Identification
) -> Prior:
    """The earlier result's bodies, the description's, or stand-ins scaled to the torque."""
    prior = nominal_prior(robot, names)
    if settings.prior is not None:
        origin = dict.fromkeys(prior.origin, "result")
        return replace(prior, values=settings.prior.consistent.values, origin=origin, notes=())
    return scaled_to_data(prior, information.weighted({name: 1.0 / s for name, s in estimate.sigma.items()}))


def judged(robot: Robot, data: Data, fit: Fit, settings: Identification, gains: DriveGains | None) -> Result:
    """Errors, certificates and verdict."""
    free, values = fit.estimate.standard, fit.consistent.values
    joints, raw = (joint_errors(data.train, data.held_out, x) for x in (values, free))
    nominal = joint_errors(data.train, data.held_out, nominal_standard(robot, fit.information.parameters))
    cost = {j.name: j.train.rmse / max(r.train.rmse, 1e-300) - 1.0 for j, r in zip(joints, raw, strict=True)}
    certificates = certify(robot, fit.consistent, fit.estimate, cost, seed=settings.seed)
    relative = {"train": stacked_relative_error(data.train, values)}
    relative["held_out"] = stacked_relative_error(data.held_out, values) if data.held_out else float("nan")
    checks = judge(
        fit.estimate, fit.consistent, certificates, joints, raw,
        structural_rank=len(fit.structural), relative_error=relative,
        against_nominal=against_nominal(data.held_out, robot, values, fit.information.parameters),
        gravity_error=gravity_errors(data.train, settings), log_notes=data.notes,
    )  # fmt: skip
    condition_number, scaled = condition_numbers(fit)
    return Result(
        robot, settings.effects, fit.estimate, fit.consistent, certificates, joints, raw, nominal, relative,
        condition_number, scaled, checks, gains_of(gains), conditioning_of(data), {}, {},
        tuple(dict.fromkeys((*data.notes, *fit.notes))), traces(data.held_out, values, free, temperatures=data.temperatures),
    )  # fmt: skip


def condition_numbers(fit: Fit) -> tuple[float, float]:
    """Of the stacked base regressor in SI units, and with unit columns; infinite when the data lack rank."""
    try:
        solution = solve_factor(reduced(fit.information, fit.structural).stacked(), fit.structural.names)
    except EstimationError:
        return float("inf"), float("inf")
    return solution.condition_number, solution.condition_number_scaled


def gravity_errors(runs: Sequence[Run], settings: Identification) -> dict[str, float]:
    """Consistent error with gravity as described and reversed; empty when gravity does not act or the solver fails."""
    gravity = np.array(runs[0].source.robot.gravity)  # type: ignore[attr-defined]
    if settings.effects.torques is TorqueSide.DIFFERENCE or not np.any(gravity):
        return {}
    search = GravityDirection(consistency=Consistency(settings.regulariser, settings.bounds))
    try:
        return {
            name: search.consistent_error(runs, g) for name, g in (("as described", gravity), ("reversed", -gravity))
        }
    except EstimationError as error:
        if error.status is Status.SOLVER_FAILED:
            return {}
        raise


def gains_of(gains: DriveGains | None) -> dict[str, tuple[float, float]]:
    """Gain and standard deviation per joint."""
    if gains is None:
        return {}
    return {
        name: (float(k), float(s))
        for name, k, s in zip(gains.channels, gains.values, gains.standard_deviations, strict=True)
    }


def conditioning_of(data: Data) -> dict[str, Any]:
    """The choices beside which every error must be read."""
    c = data.conditioning
    return {
        "cutoff_hz": c.cutoff,
        "torque_cutoff_hz": c.torque_cutoff,
        "filter_order": c.order,
        "rate_hz": data.samples.rate,
        "velocity": c.velocity.value,
        "differentiator": c.differentiator.value,
        "torque": [channel.value for channel in data.samples.torques],
        "presliding": list(data.presliding),
        "samples_train": sum(len(run) for run in data.train),
        "samples_held_out": sum(len(run) for run in data.held_out),
    }


CUTOFF_FACTORS = (0.5, 2.0)


def sensitivities(
    robot: Robot,
    train: Sequence[Log],
    held_out: Sequence[Log],
    settings: Identification,
    data: Data,
    fit: Fit,
    gains: DriveGains | None,
) -> dict[str, Any]:
    """How far base parameters move, in their own deviations, with the cut-off and without each file."""
    out: dict[str, Any] = {"cutoff": [], "leave_one_out": []}
    cutoff = data.conditioning.cutoff
    if cutoff is not None and np.isfinite(cutoff):
        for factor in CUTOFF_FACTORS:
            changed = replace(
                data.conditioning, cutoff=cutoff * factor, rate=None,
                torque_cutoff=None if data.conditioning.torque_cutoff is None else data.conditioning.torque_cutoff * factor,
            )  # fmt: skip
            out["cutoff"].append(other_cutoff(robot, train, changed, settings, fit, gains, data.presliding))
    if len(data.train) > 1 and settings.prior is None:
        try:
            folds = leave_one_out(data.train, fit.estimate)
        except EstimationError:
            # One of the files alone carries the excitation; that is what the entry would have said.
            folds = ()
        out["leave_one_out"] = [
            {
                "name": fold.name,
                "largest_shift": float(np.abs(fold.shift).max()),
                "relative_error": dict(fold.relative_error),
            }
            for fold in folds
        ]
    return out


def other_cutoff(
    robot: Robot,
    logs: Sequence[Log],
    conditioning: Conditioning,
    settings: Identification,
    fit: Fit,
    gains: DriveGains | None,
    presliding: tuple[float, ...],
) -> dict[str, Any]:
    """Shift of the base parameters under another cut-off."""
    entry: dict[str, Any] = {"cutoff_hz": conditioning.cutoff, "largest_shift": None, "parameter": None}
    try:
        samples, _ = conditioned(robot, logs, conditioning)
        runs = runs_of(samples, robot, settings.effects, presliding=presliding)
        if gains is not None:
            runs = tuple(replace(run, y=run.y * gains.values) for run in runs)
        values = WeightedLeastSquares().fit(information_of(runs), fit.estimate.base).values
    except (EstimationError, InputError):
        return entry
    shift = np.abs(values - fit.estimate.values) / np.maximum(fit.estimate.standard_deviations, 1e-300)
    worst = int(np.argmax(shift))
    return entry | {"largest_shift": float(shift[worst]), "parameter": fit.estimate.names[worst]}


def provenance(robot: Robot, train: Sequence[Log], held_out: Sequence[Log], settings: Identification) -> dict[str, Any]:
    """Inputs with hashes, versions, settings."""
    return {
        "robot": {"name": robot.name, "path": robot.source.path, "sha256": robot.source.sha256},
        "train": [log_record(log) for log in train],
        "held_out": [log_record(log) for log in held_out],
        "versions": {name: installed(name) for name in ("armid", "numpy", "scipy", "clarabel")},
        "settings": {
            "regulariser": settings.regulariser.name,
            "regulariser_weight": settings.regulariser.weight,
            "covariance": type(settings.covariance).__name__,
            "seed": settings.seed,
            "prior": None if settings.prior is None else dict(settings.prior.provenance).get("robot"),
        },
    }


def log_record(log: Log) -> dict[str, Any]:
    return {
        "name": log.name,
        "samples": len(log),
        "start_s": float(log.time[0]),
        "end_s": float(log.time[-1]),
        "files": [{"path": path, "sha256": digest} for path, digest in log.source.files],
        "reader": log.source.reader,
    }


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def payload_effects(effects: Effects, logs: Sequence[Log]) -> Effects:
    """Effects with `payload both` when the logs say that only some runs carried one and nothing else was asked for."""
    loaded = {bool(log.conditions.loaded) for log in logs}
    if effects.payload is PayloadRuns.NONE and loaded == {True, False}:
        return replace(effects, payload=PayloadRuns.BOTH)
    return effects
