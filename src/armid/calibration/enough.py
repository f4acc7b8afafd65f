"""How many configurations are enough: error against their number, predicted from noise and observed on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit, refit
from armid.calibration.solve import covariance, linearise
from armid.calibration.tool_error import error_table
from armid.kinematics.measurement import Measurements, Observed
from armid.kinematics.model import pose_and_derivative
from armid.kinematics.sag import holding_torque
from armid.rows.pose_residual import parts, residuals


@dataclass(frozen=True, slots=True)
class PoseCount:
    """One number of configurations.

    Args:
        configurations: how many were used.
        predicted: mean error at the others that noise alone would leave, from the covariance: position [m], or orientation
            [rad] when nothing else was measured.
        predicted_total: the same with the noise of the measurement it is compared with, as observed errors contain it.
        observed: mean error at the others.
    """

    configurations: int
    predicted: float
    predicted_total: float
    observed: float


def position_uncertainty(fit: KinematicFit, cov: FloatArray, measurements: Measurements) -> FloatArray:
    """Standard deviation of the predicted position [m], root of the trace of its covariance, per observation."""
    kept = fit.after.selection.kept
    torque = holding_torque(fit.model, measurements)
    small = cov[np.ix_(kept, kept)]
    out = []
    for o in measurements.observations:
        if o.quantity is Observed.LENGTH:
            continue
        _, _, J = pose_and_derivative(
            fit.model,
            fit.after.values,
            measurements.q[o.rows],
            o.setup,
            o.target,
            torque=None if torque is None else torque[o.rows],
            wanted=kept,
        )
        out.append(np.sqrt(np.einsum("pim,pq,qim->m", J[:, :3], small, J[:, :3], optimize=True)))
    return np.concatenate(out) if out else np.zeros(0)


MEAN_OVER_RMS = 0.92
"""Mean length of a three-dimensional Gaussian vector over its root mean square."""
_MEAN_OVER_RMS_1 = 0.80
"""The same of a single number: planes, bars and wires."""


def pose_count_study(
    fit: KinematicFit, measurements: Measurements, counts: Sequence[int], *, rng: np.random.Generator, repeats: int = 5
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
        rows = [_subset_errors(fit, measurements, rng.permutation(groups)[:count]) for _ in range(repeats)]
        predicted, total, observed = (float(np.mean([row[k] for row in rows])) for k in range(3))
        out.append(PoseCount(count, predicted, total, observed))
    return out


_COUNTS = 6
"""Numbers of configurations a study looks at, from a twelfth to nine tenths of them."""


def pose_counts(fit: KinematicFit, measurements: Measurements, *, seed: int) -> tuple[PoseCount, ...]:
    """The study over as many numbers of configurations as show the course of the error."""
    n = len(np.unique(measurements.group))
    counts = sorted({round(float(x)) for x in np.geomspace(max(6, n // 12), 0.9 * n, _COUNTS)})
    return tuple(pose_count_study(fit, measurements, counts, rng=np.random.default_rng(seed)))


def _subset_errors(fit: KinematicFit, measurements: Measurements, chosen: FloatArray) -> tuple[float, float, float]:
    """Predicted error, predicted difference to a measurement, and observed difference, for one subset."""
    inside = np.isin(measurements.group, chosen)
    again = refit(fit, measurements.subset(inside))
    rest = measurements.subset(~inside)
    kept = again.after.selection.kept
    at = linearise(
        fit.model, again.after.values, measurements.subset(inside), fit.after.noise, fit.settings.solver.loss, kept
    )
    cov = covariance(at)[np.ix_(kept, kept)]
    found = list(residuals(fit.model, again.after.values, rest, wanted=kept))
    observed = error_table(found).main[0]
    wanted = "orientation" if all(o.quantity is Observed.ORIENTATION for o in rest.observations) else "position"
    predicted, total = [], []
    for r in found:
        for part, channels in parts(r.observations.quantity):
            if (part == "orientation") == (wanted == "orientation"):
                D = r.D[:, channels]
                variance = np.einsum("pim,pq,qim->m", D, cov, D, optimize=True)
                noise = (fit.after.noise.sigma(r.observations)[channels] ** 2).sum(axis=0)
                factor = MEAN_OVER_RMS if D.shape[1] == 3 else _MEAN_OVER_RMS_1
                predicted.append(factor * np.sqrt(variance))
                total.append(factor * np.sqrt(variance + noise))
    return float(np.concatenate(predicted).mean()), float(np.concatenate(total).mean()), float(observed.mean())
