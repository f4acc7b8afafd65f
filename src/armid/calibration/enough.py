"""How many configurations are enough: error against their number, predicted from noise and observed on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.errors import error_table
from armid.calibration.fit import Fit, refit
from armid.calibration.measurement import Measurements, Quantity
from armid.calibration.model import pose_and_derivative
from armid.calibration.residual import gravity_torque, residuals
from armid.calibration.solve import covariance, linearise


@dataclass(frozen=True, slots=True)
class PoseCount:
    """One number of configurations.

    Args:
        configurations: how many were used.
        predicted: mean position error at the others that noise alone would leave [m], from the covariance.
        predicted_total: the same with the noise of the measurement it is compared with, as observed errors contain it.
        observed: mean position error at the others [m].
    """

    configurations: int
    predicted: float
    predicted_total: float
    observed: float


def position_uncertainty(fit: Fit, cov: FloatArray, measurements: Measurements) -> FloatArray:
    """Standard deviation of the predicted position [m], root of the trace of its covariance, per observation."""
    kept = fit.after.selection.kept
    torque = gravity_torque(fit.model, measurements.q)
    small = cov[np.ix_(kept, kept)]
    out = []
    for o in measurements.observations:
        if o.quantity is Quantity.LENGTH:
            continue
        _, _, J = pose_and_derivative(
            fit.model, fit.after.values, measurements.q[o.rows], o.setup, o.target,
            torque=None if torque is None else torque[o.rows], wanted=kept,
        )  # fmt: skip
        out.append(np.sqrt(np.einsum("pim,pq,qim->m", J[:, :3], small, J[:, :3], optimize=True)))
    return np.concatenate(out) if out else np.zeros(0)


MEAN_OVER_RMS = 0.92
"""Mean length of a three-dimensional Gaussian vector over its root mean square."""


def pose_count_study(
    fit: Fit, measurements: Measurements, counts: Sequence[int], *, rng: np.random.Generator, repeats: int = 5
) -> list[PoseCount]:
    """Fit on random subsets of growing size and look at the configurations left out.

    Args:
        fit: on all measurements; gives the model, the noise and the start.
        measurements: to draw from.
        counts: numbers of groups of configurations.
        rng: draws the subsets.
        repeats: subsets per number.
    """
    groups = np.unique(measurements.group)
    out = []
    for count in counts:
        if not 2 < count < len(groups):
            continue
        rows = [subset_errors(fit, measurements, rng.permutation(groups)[:count]) for _ in range(repeats)]
        predicted, total, observed = (float(np.mean([row[k] for row in rows])) for k in range(3))
        out.append(PoseCount(count, predicted, total, observed))
    return out


def subset_errors(fit: Fit, measurements: Measurements, chosen: FloatArray) -> tuple[float, float, float]:
    """Predicted error, predicted difference to a measurement, and observed difference, for one subset."""
    inside = np.isin(measurements.group, chosen)
    again = refit(fit, measurements.subset(inside))
    rest = measurements.subset(~inside)
    kept = again.after.selection.kept
    at = linearise(
        fit.model, again.after.values, measurements.subset(inside), fit.after.noise, fit.settings.solver.loss, kept
    )
    sigma = position_uncertainty(again, covariance(fit.model, at, kept), rest)
    noise = np.sqrt(np.mean([np.mean((fit.after.noise.sigma(o)[:3] ** 2).sum(axis=0)) for o in rest.observations]))
    none = np.zeros(len(kept), dtype=bool)
    errors = error_table(residuals(fit.model, again.after.values, rest, wanted=none)).position
    total = MEAN_OVER_RMS * float(np.sqrt(np.mean(sigma**2) + noise**2))
    return MEAN_OVER_RMS * float(np.sqrt(np.mean(sigma**2))), total, float(errors.mean())
