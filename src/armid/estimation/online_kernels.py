"""The inner loops of the recursive estimator, compiled by numba.

The state is the factor `F = [R z; 0 rho]` of all rows seen so far, shape [p + 1, p + 1], row-major, so that every loop below
runs along contiguous memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from armid.arrays import FloatArray

_FAST = {"reassoc", "contract", "nsz"}
"""Sums may be reordered, nothing else: infinities and NaN keep their meaning."""


@njit(cache=True, fastmath=_FAST)
def scatter(A: FloatArray, packed: FloatArray, place: npt.NDArray[np.intp], weighted: FloatArray, y: FloatArray) -> None:
    """Dense weighted rows `[A y]` of one sample, shape [m, p + 1], from the entries that are not structurally zero.

    Args:
        A: written; row-major.
        packed: entries.
        place: flat position of each entry in A.
        weighted: weight of each entry (that of its row).
        y: already weighted, in the order of the rows of A.
    """
    m, width = A.shape
    flat = A.reshape(m * width)
    flat[:] = 0.0
    for i in range(len(packed)):
        flat[place[i]] = packed[i] * weighted[i]
    for k in range(m):
        A[k, width - 1] = y[k]


@njit(cache=True, fastmath=_FAST)
def innovations(A: FloatArray, values: FloatArray, out: FloatArray) -> None:
    """y - A b for every row, shape [m]."""
    p = len(values)
    for k in range(A.shape[0]):
        total = A[k, p]
        for c in range(p):
            total -= A[k, c] * values[c]
        out[k] = total


@njit(cache=True, fastmath=_FAST)
def fold(F: FloatArray, A: FloatArray, active: npt.NDArray[np.intp], work: FloatArray, v: FloatArray) -> None:
    """QR of F with the rows of A below it, by one Householder reflection per column; A is consumed.

    Args:
        F: updated in place.
        A: rows `[A y]`, those that begin further to the right last, shape [m, p + 1].
        active: for each column, how many rows of A have begun by then, shape [p + 1].
        work: room for one row, shape [p + 1].
        v: room for one reflection, shape [m].
    """
    width = F.shape[1]
    for j in range(width):
        a = active[j]
        tail = 0.0
        for k in range(a):
            tail += A[k, j] * A[k, j]
        if tail == 0.0:
            continue
        head = F[j, j]
        norm = np.sqrt(head * head + tail)
        # The diagonal stays non-negative: the reflection that maps (head, tail) to (+norm, 0), without cancellation.
        v0 = -tail / (head + norm)
        tau = -v0 / norm
        for k in range(a):
            v[k] = A[k, j] / v0
        F[j, j] = norm
        for c in range(j + 1, width):
            work[c] = F[j, c]
        for k in range(a):
            s = v[k]
            for c in range(j + 1, width):
                work[c] += s * A[k, c]
        for c in range(j + 1, width):
            work[c] *= tau
            F[j, c] -= work[c]
        for k in range(a):
            s = v[k]
            for c in range(j + 1, width):
                A[k, c] -= s * work[c]


@njit(cache=True, fastmath=_FAST)
def forget_along(F: FloatArray, row: FloatArray, kept: float, u: FloatArray, g: FloatArray) -> None:
    """Forgets what is known along one row and nothing else; [Cao2000] in square-root form.

    With u = R a / |R a| the information splits into a part that does not know a at all and the rank-one part
    R^T u u^T R; only the latter is multiplied by `kept`, which is R <- (1 - (1 - sqrt(kept)) u u^T) R. Directions that
    nothing excites keep their information for ever, and the estimate does not move. Rotations from below turn u into
    the first unit vector, where the subtraction touches one row; rotations from above restore the triangle.

    Args:
        F: updated in place.
        row: the row a (its last entry, y, is not used), shape [p + 1].
        kept: factor on the information along it, in (0, 1).
        u, g: room, shape [p] and [p + 1].
    """
    width = F.shape[1]
    p = width - 1
    total = 0.0
    for i in range(p):
        s = 0.0
        for c in range(i, p):
            s += F[i, c] * row[c]
        u[i] = s
        total += s * s
    if total == 0.0:
        return
    norm = np.sqrt(total)
    for c in range(width):
        g[c] = 0.0
    for i in range(p):
        u[i] /= norm
        s = u[i]
        for c in range(i, width):
            g[c] += s * F[i, c]
    for i in range(p - 2, -1, -1):
        if u[i + 1] != 0.0:
            r = np.sqrt(u[i] * u[i] + u[i + 1] * u[i + 1])
            cosine, sine = u[i] / r, u[i + 1] / r
            u[i] = r
            for c in range(i, width):
                x, y = F[i, c], F[i + 1, c]
                F[i, c] = cosine * x + sine * y
                F[i + 1, c] = cosine * y - sine * x
    share = 1.0 - np.sqrt(kept)
    # u is now +e1 (its length is one and rotations keep the first entry positive) or, for p = 1, +-1.
    first = share * (1.0 if u[0] > 0.0 else -1.0)
    for c in range(width):
        F[0, c] -= first * g[c]
    for i in range(p - 1):
        x0, y0 = F[i, i], F[i + 1, i]
        if y0 != 0.0:
            r = np.sqrt(x0 * x0 + y0 * y0)
            cosine, sine = x0 / r, y0 / r
            for c in range(i, width):
                x, y = F[i, c], F[i + 1, c]
                F[i, c] = cosine * x + sine * y
                F[i + 1, c] = cosine * y - sine * x
            F[i + 1, i] = 0.0


@njit(cache=True, fastmath=_FAST)
def solve(F: FloatArray, values: FloatArray, frozen: npt.NDArray[np.bool_], threshold: float) -> int:
    """Back-substitution; a parameter whose column the others explain keeps its value. Returns how many moved.

    Args:
        F: factor.
        values: read where a parameter is frozen, written elsewhere, shape [p].
        frozen: written, shape [p].
        threshold: on |R_jj| / |column j|, the sine of the angle between a column and those before it.
    """
    p = len(values)
    free = 0
    for j in range(p - 1, -1, -1):
        length = 0.0
        for i in range(j + 1):
            length += F[i, j] * F[i, j]
        diagonal = F[j, j]
        frozen[j] = not (abs(diagonal) > threshold * np.sqrt(length))
        if not frozen[j]:
            total = F[j, p]
            for c in range(j + 1, p):
                total -= F[j, c] * values[c]
            values[j] = total / diagonal
            free += 1
    return free


@njit(cache=True, fastmath=_FAST)
def update(
    F: FloatArray, A: FloatArray, packed: FloatArray, place: npt.NDArray[np.intp], weighted: FloatArray, y: FloatArray,
    active: npt.NDArray[np.intp], values: FloatArray, frozen: npt.NDArray[np.bool_], errors: FloatArray, rooms: FloatArray,
    turn: int, kept: float, threshold: float,
) -> int:  # fmt: skip
    """One sample: innovations against the present values, forgetting along one of its rows, fold, solve.

    Args:
        F, A, packed, place, weighted, y, active, values, frozen: as in the functions above.
        errors: innovations, written, shape [m].
        rooms: scratch, shape [4, max(m, p + 1)].
        turn: which row to forget along.
        kept: factor on the information along it; 1 forgets nothing.
        threshold: of `solve`.

    Returns:
        Number of parameters that are determined.
    """
    scatter(A, packed, place, weighted, y)
    innovations(A, values, errors)
    if kept < 1.0:
        forget_along(F, A[turn], kept, rooms[0], rooms[1])
    fold(F, A, active, rooms[2], rooms[3])
    return int(solve(F, values, frozen, threshold))
