"""Least squares with values that must not be negative, by the active set of [Lawson1974]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray

_GRADIENT = 1e-12
"""Relative to the data: a slope below it is round-off, and letting the value go would not lower the error."""


def bounded_least_squares(A: FloatArray, y: FloatArray, bounded: npt.NDArray[np.bool_]) -> FloatArray:
    """The x that minimises |A x - y|^2 with x >= 0 where `bounded`.

    Holds: the slope A^T (y - A x) is zero where x is free or positive, and not positive where it is held at zero.

    Args:
        A: of full column rank, columns of similar length, shape [m, n].
        y: shape [m].
        bounded: which values must not be negative, shape [n].
    """
    free = np.ones(A.shape[1], dtype=bool)
    x = _solved(A, y, free)
    while np.any(wrong := free & bounded & (x < 0.0)):
        free &= ~wrong
        x = _solved(A, y, free)
    tolerance = _GRADIENT * float(np.linalg.norm(A) * np.linalg.norm(y))
    for _ in range(3 * len(x)):
        slope = np.where(free, 0.0, A.T @ (y - A @ x))
        best = int(np.argmax(slope))
        if slope[best] <= tolerance:
            break
        free[best] = True
        x = _feasible(A, y, x, free, bounded)
    return x


def _solved(A: FloatArray, y: FloatArray, free: npt.NDArray[np.bool_]) -> FloatArray:
    """Least squares over the free values; the others are zero."""
    x = np.zeros(A.shape[1])
    x[free] = np.linalg.lstsq(A[:, free], y, rcond=None)[0]
    return x


def _feasible(
    A: FloatArray, y: FloatArray, x: FloatArray, free: npt.NDArray[np.bool_], bounded: npt.NDArray[np.bool_]
) -> FloatArray:
    """From a permitted x towards the best over the free values; those that reach zero first are held there."""
    while True:
        target = _solved(A, y, free)
        below = free & bounded & (target < 0.0)
        if not np.any(below):
            return target
        step = float(np.min(x[below] / (x[below] - target[below])))
        x = x + step * (target - x)
        free &= ~(below & (x <= np.finfo(float).eps * np.abs(target)))
        x[~free] = 0.0
