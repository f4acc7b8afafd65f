"""Estimates that simulate the arm under its controller: instruments, and the closed loop itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from armid.arrays import FloatArray
from armid.closed_loop.bodies import nearest_bodies
from armid.closed_loop.fit import LoopMethod
from armid.consistency.consistent import honest_information
from armid.consistency.prior import Prior
from armid.estimation.estimate import Estimate
from armid.estimation.instrumental import InstrumentalVariables
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, information_of
from armid.identifiability.base import BaseParameters
from armid.identification.aids import Aids
from armid.identification.closed_loop import ClosedLoop, RealLoop
from armid.identification.loop_methods import loop_estimate, simulated_positions
from armid.identification.settings import Identification
from armid.information.information import Information


def instrumental(
    runs: Sequence[Run],
    base: BaseParameters,
    units: tuple[str, ...],
    prior: Prior,
    settings: Identification,
    aids: Aids,
) -> tuple[Estimate, Information]:
    """Instruments from simulating the estimate along the commanded motion; the covariance is that of the instruments' rows.

    Args:
        runs: measured.
        base, units: of the estimate.
        prior: bodies that the first simulation moves.
        settings: see there.
        aids: the commanded motion, or the recordings for a real loop.
    """
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
    covariance = settings.covariance.apply(estimate, clean, rows)
    return estimate.with_covariance(covariance.covariance, covariance.covariance_kind), rows


def in_loop(
    runs: Sequence[Run],
    information: Information,
    first: Estimate,
    prior: Prior,
    settings: Identification,
    aids: Aids,
) -> tuple[Estimate, Information]:
    """The closed loop simulated with the values sought; its covariance is what the rows stand for.

    Args:
        runs, information: measured, and what they tell.
        first: estimate to begin with.
        prior: bodies where the rows say nothing.
        settings: with the controller.
        aids: recordings as the controller lived them.
    """
    assert settings.controller is not None
    estimate = loop_estimate(
        torque_source(runs),
        aids.raw,
        settings.controller,
        LoopMethod(settings.method.value),
        first,
        information,
        prior,
        seed=settings.seed,
    )
    return estimate, honest_information(estimate)
