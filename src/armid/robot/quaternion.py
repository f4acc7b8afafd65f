"""Unit quaternions of rotation matrices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray


def quaternion_from_matrix(R: npt.ArrayLike) -> FloatArray:
    """Unit quaternions (w, x, y, z), w not negative, of rotation matrices, shape [..., 3, 3] -> [..., 4].

    The largest of the four squared components is found from the diagonal, the others divided by it ([Shepperd1978]), so
    nothing is divided by nearly zero.
    """
    m = np.asarray(R, dtype=np.float64)
    d = np.diagonal(m, axis1=-2, axis2=-1)
    trace = d.sum(axis=-1, keepdims=True)
    squares = np.concatenate([1.0 + trace, 1.0 - trace + 2.0 * d], axis=-1)
    s, t = m + np.swapaxes(m, -1, -2), m - np.swapaxes(m, -1, -2)
    x, y, z = t[..., 2, 1], t[..., 0, 2], t[..., 1, 0]
    xy, xz, yz = s[..., 0, 1], s[..., 0, 2], s[..., 1, 2]
    largest = np.argmax(squares, axis=-1)[..., np.newaxis, np.newaxis]
    # Row k holds 4 q_k (w, x, y, z); the row of the largest component is safe to normalise.
    first = [squares[..., 0], x, y, z]
    if not np.any(largest):  # small rotations, as between what was measured and what was predicted
        chosen = np.stack(first, axis=-1)
    else:
        others = [x, squares[..., 1], xy, xz, y, xy, squares[..., 2], yz, z, xz, yz, squares[..., 3]]
        rows = np.stack([*first, *others], axis=-1).reshape(*m.shape[:-2], 4, 4)
        chosen = np.take_along_axis(rows, largest, axis=-2)[..., 0, :]
    unit: FloatArray = chosen / np.linalg.norm(chosen, axis=-1, keepdims=True)
    return np.where(unit[..., :1] < 0.0, -unit, unit)
