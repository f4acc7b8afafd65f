"""Free and consistent estimates of prepared runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.consistency.consistent import Consistency, ConsistentEstimate
from armid.consistency.prior import Prior, nominal_prior, scaled_to_data
from armid.errors import InputError
from armid.estimation.covariance import PerChannelNoise
from armid.estimation.estimate import Estimate, identification_notes, units_of
from armid.estimation.least_squares import GaussianPrior
from armid.estimation.recording import torque_source, with_torque_source
from armid.estimation.run import Run, check_rows, information_of
from armid.identifiability.base import BaseParameters, base_parameters
from armid.identifiability.structure import structural_base
from armid.identification.gravity import GravityDirection
from armid.identification.methods import Aids, free_estimate, updated_estimate
from armid.identification.settings import Identification
from armid.information.information import Information
from armid.information.solve import solve
from armid.information.status import EstimationError, Status
from armid.notes import Note
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot

PRACTICAL_RANK = 1e-4
"""Relative singular value of the column-scaled rows below which a direction is not excited. Useful motions stay above 5e-3;
this far down, noise in the rows themselves outweighs the direction."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """Everything estimated from the training runs."""

    information: Information
    structural: BaseParameters
    estimate: Estimate
    consistent: ConsistentEstimate
    notes: tuple[Note, ...]
    scale_deviations: tuple[float, ...] = ()


Widen = Callable[[Estimate], tuple[Estimate, tuple[float, ...]]]
"""Adds to the covariance what uncertain scales of friction bring, and tells their deviations."""


def usable_base(
    runs: Sequence[Run], information: Information, described: Robot | None = None
) -> tuple[BaseParameters, BaseParameters]:
    """Base parameters the data determine, and those a perfect motion would.

    In a calibrated arm axes that should meet miss each other by a fraction of a millimetre. Each such miss adds a
    parameter that is independent on paper and far below the noise in any torque. What a motion must determine is therefore
    counted on the arm as described; what the data show beyond that is estimated too.

    Args:
        runs: with their rows.
        information: of these runs.
        described: the arm before calibration; None when the runs' own arm is the described one.

    Raises:
        EstimationError: fewer rows than parameters.
    """
    structural = structural_base(*(run.source for run in one_each(runs)), what="the torque")
    check_rows(runs, len(structural))
    if excited(information, structural):
        return structural, structural
    why = f"tolerance {PRACTICAL_RANK:g}: less is not excited"
    base = base_parameters(information, tolerance=PRACTICAL_RANK, why=why, what="the torque")
    if described is not None:
        arm = described.with_gravity(torque_source(runs).robot.gravity)
        intended = structural_base(
            *(with_torque_source(run, replace(torque_source([run]), robot=arm)).source for run in one_each(runs)),
            what="the torque",
        )
        if excited(information, intended):
            return base, intended
    return base, structural


def one_each(runs: Sequence[Run]) -> tuple[Run, ...]:
    """One run of every kind of rows: with and without payload, filtered and not."""
    kinds = {(type(r.source), getattr(getattr(r.source, "torque", r.source), "loaded", True)): r for r in runs}
    return tuple(kinds.values())


def excited(information: Information, base: BaseParameters) -> bool:
    """Whether the rows show every one of these parameters apart from the others."""
    factor = information.select(base.independent).stacked()[:, :-1]
    norms = np.linalg.norm(factor, axis=0)
    singular = np.linalg.svd(factor / np.where(norms > 0.0, norms, 1.0), compute_uv=False)
    return bool(np.all(norms > 0.0) and singular[-1] > PRACTICAL_RANK * singular[0])


def fitted(
    robot: Robot,
    runs: tuple[Run, ...],
    settings: Identification,
    *,
    widen: Widen | None = None,
    aids: Aids | None = None,
) -> Fit:
    """Free and consistent estimate of the training runs.

    Args:
        robot: as the runs have it.
        runs: to learn from.
        settings: see there.
        widen: adds to the covariance what uncertain scales of friction bring.
        aids: what the method needs besides rows.
    """
    information = information_of(runs)
    names = information.parameters
    units = torque_source(runs).space.units
    belief = earlier_base(settings, names)
    if belief is None:
        base, structural = usable_base(runs, information, settings.described)
        free = free_estimate(robot, runs, information, base, units_of(base, units), settings, aids or Aids())
        estimate, rows = free.estimate, free.information
    else:
        base = structural = belief[0]
        rows = information
        estimate = updated_estimate(runs, information, base, units_of(base, units), belief[1])
    estimate, deviations = (estimate, ()) if widen is None else widen(estimate)
    prior = consistent_prior(robot, names, rows, estimate, settings)
    consistent = settings.bodies.fit(effective_information(rows, estimate), units, prior)
    notes = (*estimate.notes, *identification_notes(estimate), *consistent.notes)
    return Fit(
        information=information,
        structural=structural,
        estimate=estimate,
        consistent=consistent,
        notes=notes,
        scale_deviations=deviations,
    )


def effective_information(information: Information, estimate: Estimate) -> Information:
    """The rows in units of their noise, counted as many times as there are independent samples among them.

    Residuals of sampled motion are correlated, so a plain sum of squares would overrule any prior.
    """
    inflation = row_inflation(information, estimate)
    return information.weighted({name: 1.0 / (sigma * inflation) for name, sigma in estimate.sigma.items()})


def row_inflation(information: Information, estimate: Estimate) -> float:
    """How much wider honest deviations are than those for independent noise, median over the parameters; at least 1."""
    try:
        naive = PerChannelNoise().apply(estimate, (), information).standard_deviations
    except EstimationError:
        # Rows that leave directions open, completed by an earlier result: nothing to compare with.
        return 1.0
    return max(1.0, float(np.median(estimate.standard_deviations / np.maximum(naive, 1e-300))))


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


def condition_numbers(fit: Fit) -> tuple[float, float]:
    """Of the stacked base regressor in SI units, and with unit columns; infinite when the data lack rank."""
    try:
        solution = solve(fit.information, fit.structural)
    except EstimationError:
        return float("inf"), float("inf")
    return solution.condition_number, solution.condition_number_scaled


def gravity_errors(runs: Sequence[Run], settings: Identification) -> dict[str, float]:
    """Consistent error with gravity as described and reversed; empty when gravity does not act or the solver fails."""
    gravity = np.array(torque_source(runs).robot.gravity)
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
