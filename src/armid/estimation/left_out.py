"""Residuals of a linear fit with groups of rows left out, without fitting again (PRESS).

Leaving a group g of rows out of a least-squares problem changes their residuals to `(I - H_gg)^-1 z_g` with the leverage
`H_gg = A_g (A^T A + P)^-1 A_g^T`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray

_LARGEST_LEVERAGE = 0.999
"""A group that alone determines a direction would get an infinite error; it is limited to a thousandfold one."""


def left_out(A: FloatArray, z: FloatArray, group: npt.NDArray[np.intp], R: FloatArray) -> FloatArray:
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
        out[rows] = _enlarged(own @ np.swapaxes(own, 1, 2), z[rows])
    return out


def _enlarged(H: FloatArray, z: FloatArray) -> FloatArray:
    """`(I - H)^-1 z` for groups of leverages H, shape [g, m, m], and residuals z, shape [g, m], with leverages limited."""
    out = np.empty_like(z)
    # No eigenvalue exceeds the trace: most groups need none.
    small = np.einsum("gii->g", H) < _LARGEST_LEVERAGE
    out[small] = np.linalg.solve(np.eye(H.shape[1]) - H[small], z[small][..., np.newaxis])[..., 0]
    values, vectors = np.linalg.eigh(H[~small])
    turned = np.einsum("gji,gj->gi", vectors, z[~small]) / (1.0 - np.minimum(values, _LARGEST_LEVERAGE))
    out[~small] = np.einsum("gij,gj->gi", vectors, turned)
    return out
