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
from armid.kinematics.measurement import IntArray, Measurements
from armid.rows.pose_residual import Residual, parts, residuals

LARGEST_LEVERAGE = 0.999
"""A group that alone determines a direction would get an infinite error; it is limited to a thousandfold one."""


def left_out_errors(fit: KinematicFit, measurements: Measurements) -> ErrorTable:
    """Error norms with every group of configurations left out in turn, in the linearised fit.

    Args:
        fit: to these measurements.
        measurements: what was fitted.
    """
    found = list(residuals(fit.model, fit.after.values, measurements, wanted=fit.after.selection.kept))
    weights = [weight_of(fit, r) for r in found]
    A = np.vstack([flat(r.D * w).T for r, w in zip(found, weights, strict=True)])
    z = np.concatenate([(r.r * w).T.ravel() for r, w in zip(found, weights, strict=True)])
    group = np.concatenate([np.repeat(measurements.group[r.observations.rows], len(r.r)) for r in found])
    predicted = left_out(A, z, group, posterior(fit.model, fit.after).stacked()[:-1, :-1])
    out, start = [], 0
    for r, w in zip(found, weights, strict=True):
        end = start + r.r.size
        out.append(Residual(r.observations, predicted[start:end].reshape(r.r.T.shape).T / w))
        start = end
    return error_table(out)


def flat(D: FloatArray) -> FloatArray:
    """Channels of one measurement side by side, shape [p, channels, m] -> [p, m channels]."""
    return np.transpose(D, (0, 2, 1)).reshape(len(D), -1)


def weight_of(fit: KinematicFit, residual: Residual) -> FloatArray:
    """Square roots of the weights that the fit gave to every channel, shape [channels, m]."""
    weight = 1.0 / fit.after.noise.sigma(residual.observations)
    loss = fit.settings.solver.loss
    for _, channels in parts(residual.observations.quantity):
        d = channels.stop - channels.start
        weight[channels] *= loss.weights(lengths(residual.r[channels] * weight[channels]), d)
    return weight


def left_out(A: FloatArray, z: FloatArray, group: IntArray, R: FloatArray) -> FloatArray:
    """Residuals of every row with its group left out of a least-squares problem with a prior.

    Args:
        A: whitened rows, shape [n, p].
        z: their residuals at the solution, shape [n].
        group: of each row, shape [n].
        R: triangular factor of the rows and of what is known beforehand, shape [p, p].
    """
    B = A @ np.linalg.inv(R)
    order = np.argsort(group, kind="stable")
    _, first, count = np.unique(group[order], return_index=True, return_counts=True)
    out = np.empty_like(z)
    for size in np.unique(count):
        rows = order[first[count == size][:, np.newaxis] + np.arange(size)]
        own = B[rows]
        out[rows] = enlarged(own @ np.swapaxes(own, 1, 2), z[rows])
    return out


def enlarged(H: FloatArray, z: FloatArray) -> FloatArray:
    """`(I - H)^-1 z` for groups of leverages H, shape [g, m, m], and residuals z, shape [g, m], with leverages limited."""
    out = np.empty_like(z)
    # No eigenvalue exceeds the trace: most groups need none.
    small = np.einsum("gii->g", H) < LARGEST_LEVERAGE
    out[small] = np.linalg.solve(np.eye(H.shape[1]) - H[small], z[small][..., np.newaxis])[..., 0]
    values, vectors = np.linalg.eigh(H[~small])
    turned = np.einsum("gji,gj->gi", vectors, z[~small]) / (1.0 - np.minimum(values, LARGEST_LEVERAGE))
    out[~small] = np.einsum("gij,gj->gi", vectors, turned)
    return out
