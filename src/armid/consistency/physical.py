"""Physical parameters mu = (mass, centre of mass, inertia about it) beside the standard ones, on whole parameter vectors."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.bodies import Body
from armid.parameters.inertial import from_centre_of_mass, tensor, to_centre_of_mass


def to_physical(values: FloatArray, bodies: tuple[Body, ...]) -> FloatArray:
    """Mu of standard parameters; everything outside the bodies unchanged."""
    mu = np.array(values)
    for body in bodies:
        mass, c, I = to_centre_of_mass(body.of(values))
        mu[list(body.columns)] = [mass, *c, I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]]
    return mu


def to_standard(mu: FloatArray, bodies: tuple[Body, ...]) -> FloatArray:
    """Standard parameters of mu."""
    values = np.array(mu)
    for body in bodies:
        own = mu[list(body.columns)]
        values[list(body.columns)] = from_centre_of_mass(float(own[0]), own[1:4], tensor(own[4:]))
    return values


def physical_jacobian(mu: FloatArray, bodies: tuple[Body, ...]) -> FloatArray:
    """d(standard) / d(mu), shape [p, p]: h = m c, I = I_c + m (c^T c 1 - c c^T)."""
    J = np.eye(len(mu))
    for body in bodies:
        columns = list(body.columns)
        m, c = mu[columns[0]], mu[columns[1:4]]
        block = np.eye(10)
        block[1:4, 0], block[1:4, 1:4] = c, m * np.eye(3)
        block[4:, 0] = from_centre_of_mass(1.0, c, np.zeros((3, 3)))[4:]
        for k in range(3):
            e = np.eye(3)[k]
            D = m * (2.0 * c[k] * np.eye(3) - np.outer(e, c) - np.outer(c, e))
            block[4:, 1 + k] = D[np.triu_indices(3)]
        J[np.ix_(columns, columns)] = block
    return J


def physical_curvature(mu: FloatArray, bodies: tuple[Body, ...], weights: FloatArray) -> FloatArray:
    """Sum over k of weights_k times the second derivative of standard parameter k by mu, shape [p, p]."""
    H = np.zeros((len(mu), len(mu)))
    for body in bodies:
        columns = list(body.columns)
        m, c, w = mu[columns[0]], mu[columns[1:4]], weights[columns]
        block = np.zeros((10, 10))
        # h = m c, and I = I_c + m (c^T c 1 - c c^T); w for the six moments as a full symmetric matrix.
        W = tensor(w[4:])
        W[~np.eye(3, dtype=bool)] *= 0.5
        block[0, 1:4] = w[1:4] + 2.0 * (np.trace(W) * c - W @ c)
        block[1:4, 0] = block[0, 1:4]
        block[1:4, 1:4] = 2.0 * m * (np.trace(W) * np.eye(3) - W)
        H[np.ix_(columns, columns)] = block
    return H
