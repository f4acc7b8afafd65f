"""Instrumental variables: rows from a noise-free simulation decorrelate the estimate from noise in the measured motion.

    b = (V^T W A)^-1 V^T W y

A are the rows along the measured motion, V those along the motion the current estimate would have produced under the
same command; [Janot2014]. Both converge together in a few iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.errors import ShapeError
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, check_rows, information_of
from armid.identifiability.base import BaseParameters
from armid.information.status import EstimationError, Status
from armid.kernels.evaluate import evaluate_rows
from armid.notes import Note, Severity

Simulate = Callable[[FloatArray, Run], FloatArray]
"""From base values and a run to the inputs a noise-free arm with these values would have had, same shape as `run.inputs`."""


@dataclass(frozen=True, slots=True)
class InstrumentalVariables:
    """Iterated instrumental variables with per-channel weights.

    Args:
        iterations: at most so many simulations.
        tolerance: largest change of a value, relative to its standard deviation, that counts as settled.
    """

    iterations: int = 10
    tolerance: float = 0.02

    def fit(
        self, runs: Sequence[Run], base: BaseParameters, simulate: Simulate, units: tuple[str, ...] = ()
    ) -> Estimate:
        """Args:
        runs: measured motion.
        base: what to estimate.
        simulate: the instrument; from the simulation of the closed loop along the commanded motion.
        units: of the base parameters.
        """
        check_rows(runs, len(base))
        start = WeightedLeastSquares().fit(information_of(runs), base, units)
        values: FloatArray = start.values
        sigma = dict(start.sigma)
        covariance: FloatArray = start.covariance
        status, used = Status.NOT_CONVERGED, 0
        for _ in range(self.iterations):
            used += 1
            cross, target, power = moments(runs, [checked(simulate(values, run), run) for run in runs], base, sigma)
            condition = np.linalg.cond(cross / np.sqrt(np.outer(np.diag(power), np.diag(power))))
            if not np.isfinite(condition) or condition > 1e14:
                raise EstimationError(
                    Status.RANK_DEFICIENT, f"instrument and rows are unrelated (condition {condition:.1e})"
                )
            inverse = np.asarray(np.linalg.inv(cross))
            fresh = np.asarray(np.linalg.solve(cross, target))
            covariance = np.asarray(inverse @ power @ inverse.T)
            step = np.abs(fresh - values) / np.sqrt(np.maximum(np.diag(covariance), 1e-300))
            values = fresh
            sigma = _residual_sigmas(runs, base.embedding @ values)
            if step.max() < self.tolerance:
                status = Status.SOLVED
                break
        notes = () if status is Status.SOLVED else (Note("not-converged", Severity.WARNING, status.message),)
        return Estimate(
            base=base,
            units=start.units,
            values=values,
            covariance=covariance,
            covariance_kind="per-channel",
            sigma=sigma,
            method="instrumental variables",
            status=status,
            iterations=used,
            notes=notes,
        )


def checked(inputs: FloatArray, run: Run) -> FloatArray:
    """The simulated inputs when their shape fits."""
    if inputs.shape != run.inputs.shape:
        raise ShapeError("simulated inputs", inputs.shape, str(list(run.inputs.shape)))
    return inputs


def moments(
    runs: Sequence[Run], simulated: Sequence[FloatArray], base: BaseParameters, sigma: dict[str, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """V^T W A, V^T W y and V^T W V over all runs; one streaming pass."""
    r = len(base)
    cross, target, power = np.zeros((r, r)), np.zeros(r), np.zeros((r, r))
    for run, inputs in zip(runs, simulated, strict=True):
        weight = np.array([1.0 / sigma[name] for name in run.channels])
        for part, _, rows in run.blocks():
            A = (rows[:, :, base.independent] * weight[:, np.newaxis]).reshape(-1, r)
            V = (evaluate_rows(run.source, inputs[part])[:, :, base.independent] * weight[:, np.newaxis]).reshape(-1, r)
            cross += V.T @ A
            power += V.T @ V
            target += V.T @ (run.y[part] * weight).ravel()
    return cross, target, power


def _residual_sigmas(runs: Sequence[Run], standard: FloatArray) -> dict[str, float]:
    """Root mean square residual per channel over all runs."""
    energy: dict[str, float] = {}
    count: dict[str, int] = {}
    for run in runs:
        squares = np.sum(run.residuals(standard) ** 2, axis=0)
        for name, value in zip(run.channels, squares, strict=True):
            energy[name] = energy.get(name, 0.0) + float(value)
            count[name] = count.get(name, 0) + len(run)
    return {name: max(float(np.sqrt(energy[name] / count[name])), 1e-300) for name in energy}
