"""Free and consistent estimates of prepared runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.aliases import alias_notes, with_weight_kept
from armid.consistency.consistent import Consistency, ConsistentEstimate
from armid.consistency.drive_scale import prior_of_rows
from armid.consistency.prior import Prior
from armid.consistency.within_links import within_links
from armid.errors import InputError
from armid.estimation.covariance import Earlier, row_inflation
from armid.estimation.determined import usable_base
from armid.estimation.estimate import Estimate, identification_notes, units_of
from armid.estimation.recording import torque_source
from armid.estimation.reversals import classed_information
from armid.estimation.run import Run, information_of
from armid.estimation.runs import lengths_of, thinned_runs
from armid.identifiability.base import BaseParameters
from armid.identification.aids import Aids
from armid.identification.gravity import GravityDirection
from armid.identification.imperfections import Weighed
from armid.identification.methods import free_estimate
from armid.identification.settings import Identification
from armid.information.information import Information
from armid.information.solve import solve
from armid.information.status import EstimationError, Status
from armid.notes import Note
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot

_FOR_GRAVITY = 20_000
"""Samples that show whether gravity is reversed; of twice as many and more, about so many are looked at."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """Everything estimated from the training runs.

    Args:
        rows: Information of the runs.
        information: of the runs, and of an earlier result when there is one.
        structural: base parameters that a perfect motion would determine.
        estimate: without constraints.
        consistent: of possible bodies.
        notes: of both.
        scale_deviations: of velocity scales of friction, when there are any.
    """

    rows: Information
    information: Information
    structural: BaseParameters
    estimate: Estimate
    consistent: ConsistentEstimate
    notes: tuple[Note, ...]
    scale_deviations: tuple[float, ...] = ()


Widen = Callable[[Estimate], tuple[Estimate, tuple[float, ...]]]
"""Adds to the covariance what uncertain scales of friction bring, and tells their deviations."""


def fitted(
    robot: Robot,
    runs: Sequence[Run],
    settings: Identification,
    *,
    structural: BaseParameters | None = None,
    intended: BaseParameters | None = None,
    widen: Widen | None = None,
    aids: Aids | None = None,
    beside: Weighed | None = None,
) -> Fit:
    """Free and consistent estimate of the training runs.

    Args:
        robot: as the runs have it.
        runs: to learn from.
        settings: see there.
        structural, intended: see `usable_base`.
        widen: adds to the covariance what uncertain scales of friction bring.
        aids: what the method needs besides rows.
        beside: imperfections that the runs were freed from: they widen intervals, and bodies are found together with them.
    """
    information = classed_information(runs)
    names = information.parameters
    units = torque_source(runs).space.units
    earlier = _earlier_rows(settings, names)
    every = information if earlier is None else information + earlier.information
    base, structural = usable_base(runs, every, structural, intended)
    free = free_estimate(
        robot, runs, information, base, units_of(base, units), settings, aids or Aids(), earlier=earlier
    )
    estimate, deviations = (free.estimate, ()) if widen is None else widen(free.estimate)
    marginal = None if beside is None else beside.marginal
    rows = effective_information(free.information, estimate) if marginal is None else marginal
    if beside is not None and beside.widening.shape == estimate.covariance.shape:
        estimate = estimate.with_covariance(estimate.covariance + beside.widening, estimate.covariance_kind)
    prior = with_weight_kept(consistent_prior(robot, free.information, estimate), base)
    if settings.population is not None:
        from armid.estimation.population import informed

        estimate = informed(estimate, rows, structural, units_of(structural, units), settings.population)
        rows = rows + settings.population.rows(structural)
    consistent = within_links(robot, settings.bodies.fit(rows, units, prior), rows, settings.bodies)
    notes = (*estimate.notes, *identification_notes(estimate), *alias_notes(base), *consistent.notes)
    return Fit(
        rows=information.pooled(),
        information=every,
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


def refitted(robot: Robot, information: Information, fit: Fit, settings: Identification) -> FloatArray:
    """Parameters of possible bodies from other rows, weighted and counted as those of a fit were.

    Args:
        robot: as the rows have it.
        information: of the rows.
        fit: whose noise and correlation they share.
        settings: see there.
    """
    prior = consistent_prior(robot, information, fit.estimate)
    rows = effective_information(information, fit.estimate)
    return settings.bodies.values(rows, fit.consistent.units, prior)


def _earlier_rows(settings: Identification, names: tuple[str, ...]) -> Earlier | None:
    """The Information of an earlier result, when there is one about the same parameters.

    Raises:
        InputError: it is about other parameters.
    """
    if settings.prior is None:
        return None
    earlier = settings.prior
    if earlier.information.parameters != names:
        raise InputError("--prior", "its result is about other parameters", "use the same robot and effects")
    return Earlier(earlier.information, earlier.estimate)


def consistent_prior(robot: Robot, information: Information, estimate: Estimate) -> Prior:
    """That of rows weighted by the noise of their estimate."""
    return prior_of_rows(robot, information.weighted({name: 1.0 / sigma for name, sigma in estimate.sigma.items()}))


def condition_numbers(information: Information, structural: BaseParameters) -> tuple[float, float]:
    """Of the stacked base regressor in SI units, and with unit columns; infinite when the data lack rank."""
    try:
        solution = solve(information, structural)
    except EstimationError:
        return float("inf"), float("inf")
    return solution.condition_number, solution.condition_number_scaled


def gravity_errors(runs: Sequence[Run], settings: Identification, information: Information) -> dict[str, float]:
    """Consistent error with gravity as described and reversed; empty when gravity does not act or the solver fails.

    Args:
        runs: of the training motion.
        settings: see there.
        information: of these runs.
    """
    gravity = np.array(torque_source(runs).robot.gravity)
    if settings.effects.torques is TorqueSide.DIFFERENCE or not np.any(gravity):
        return {}
    search = GravityDirection(consistency=Consistency(settings.regulariser, settings.bounds))
    looked = runs
    if sum(lengths_of(runs)) >= 2 * _FOR_GRAVITY:
        looked = thinned_runs(runs, _FOR_GRAVITY)
        information = information_of(looked)
    try:
        return {
            "as described": search.consistent_error(looked, gravity, information=information),
            "reversed": search.consistent_error(looked, -gravity),
        }
    except EstimationError as error:
        if error.status is Status.SOLVER_FAILED:
            return {}
        raise
