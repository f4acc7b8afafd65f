"""Errors of a fit at configurations it would not have seen, without fitting again.

Near its solution the problem is linear least squares, where leaving a group g of rows out changes their residuals to
`(I - H_gg)^-1 z_g` with the leverage `H_gg = A_g (A^T A + P)^-1 A_g^T` (PRESS). That is what a choice between error
models costs inside a training set: one fit per model instead of one per model and group.
"""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.noise import lengths
from armid.calibration.solve import posterior
from armid.calibration.tool_error import ErrorTable, error_table
from armid.estimation.left_out import left_out
from armid.kinematics.measurement import Measurements
from armid.rows.pose_residual import Residual, parts, residuals


def left_out_errors(fit: KinematicFit, measurements: Measurements) -> ErrorTable:
    """Error norms with every group of configurations left out in turn, in the linearised fit.

    Args:
        fit: to these measurements.
        measurements: what was fitted.
    """
    found = list(residuals(fit.model, fit.after.values, measurements, wanted=fit.after.selection.kept))
    weights = [fit_weights(fit, r) for r in found]
    A = np.vstack([_flat(r.D * w).T for r, w in zip(found, weights, strict=True)])
    z = np.concatenate([(r.r * w).T.ravel() for r, w in zip(found, weights, strict=True)])
    group = np.concatenate([np.repeat(measurements.group[r.observations.rows], len(r.r)) for r in found])
    predicted = left_out(A, z, group, posterior(fit.after).stacked()[:-1, :-1])
    out, start = [], 0
    for r, w in zip(found, weights, strict=True):
        end = start + r.r.size
        out.append(Residual(r.observations, predicted[start:end].reshape(r.r.T.shape).T / w))
        start = end
    return error_table(out)


def _flat(D: FloatArray) -> FloatArray:
    """Channels of one measurement side by side, shape [p, channels, m] -> [p, m channels]."""
    return np.transpose(D, (0, 2, 1)).reshape(len(D), -1)


def fit_weights(fit: KinematicFit, residual: Residual) -> FloatArray:
    """Square roots of the weights that the fit gave to every channel, shape [channels, m]."""
    weight = 1.0 / fit.after.noise.sigma(residual.observations)
    loss = fit.settings.solver.loss
    for _, channels in parts(residual.observations.quantity):
        d = channels.stop - channels.start
        weight[channels] *= loss.weights(lengths(residual.r[channels] * weight[channels]), d)
    return weight
