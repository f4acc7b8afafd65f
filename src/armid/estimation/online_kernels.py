"""The inner loops of the recursive estimator, compiled by numba.

The state is the factor `F = [R z; 0 rho]` of all rows seen so far, row-major, its rows
padded with zeros.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from armid.arrays import FloatArray

_FAST = {"reassoc", "contract", "nsz"}
"""Sums may be reordered, nothing else: infinities and NaN keep their meaning."""


CHUNK = 16
"""Rows of the factor are padded to a multiple of this and read from a multiple of it on (what lies left of the diagonal is
zero): loops without a remainder run four vectors at a time, and the remainder of a short loop is most of its cost."""

QUAD = 4
"""Rows of a sample, and columns of the factor, are handled four at a time: loops of this fixed length become vector code."""


@njit(cache=True, fastmath=_FAST)
def scatter(
    A: FloatArray, packed: FloatArray, place: npt.NDArray[np.intp], weighted: FloatArray, y: FloatArray
) -> None:
    """Dense weighted rows `[A y]` of one sample from the entries that are not structurally zero.

    Args:
        A: written; one row of the sample per *column* here, shape [p + 1, m4], m4 the number of rows rounded up to four.
        packed: entries.
        place: flat position of each entry in A.
        weighted: weight of each entry (that of its row).
        y: already weighted, shape [m].
    """
    width, m4 = A.shape
    flat = A.reshape(width * m4)
    flat[:] = 0.0
    for i in range(len(packed)):
        flat[place[i]] = packed[i] * weighted[i]
    for k in range(len(y)):
        A[width - 1, k] = y[k]


@njit(cache=True, fastmath=_FAST)
def innovations(A: FloatArray, values: FloatArray, out: FloatArray) -> None:
    """Y - A b for every row, shape [m4]; the padding gives zero."""
    p = len(values)
    out[:] = A[p]
    for c in range(p):
        s = values[c]
        for k in range(A.shape[1]):
            out[k] -= A[c, k] * s


@njit(cache=True, fastmath=_FAST)
def fold(F: FloatArray, A: FloatArray, active: npt.NDArray[np.intp], v: FloatArray) -> None:
    """QR of F with the rows of A below it, by one Householder reflection per column; A is consumed.

    Args:
        F: updated in place, shape [p + 1, at least p + 1].
        A: as written by `scatter`, rows that begin further to the right last.
        active: for each column, how many quads of rows hold one that has begun by then, shape [p + 1].
        v: room for one reflection, shape [m4].
    """
    width = A.shape[0]
    for j in range(width):
        quads = active[j]
        tail = 0.0
        for k in range(QUAD * quads):
            tail += A[j, k] * A[j, k]
        if tail == 0.0:
            continue
        head = F[j, j]
        norm = np.sqrt(head * head + tail)
        # The diagonal stays non-negative: the reflection that maps (head, tail) to (+norm, 0), without cancellation.
        v0 = -tail / (head + norm)
        tau = -v0 / norm
        for k in range(QUAD * quads):
            v[k] = A[j, k] / v0
        F[j, j] = norm
        if quads == 1:
            reflect_quad(F[j], A, v, tau, j + 1)
        elif quads == 2:
            reflect_two_quads(F[j], A, v, tau, j + 1)
        else:
            reflect(F[j], A, v, tau, j + 1, QUAD * quads)


@njit(cache=True, fastmath=_FAST, inline="always")
def reflect_quad(row: FloatArray, A: FloatArray, v: FloatArray, tau: float, start: int) -> None:
    """The reflection on the columns from `start` on, four rows of the sample taking part."""
    v0, v1, v2, v3 = v[0], v[1], v[2], v[3]
    for c in range(start, A.shape[0]):
        a0, a1, a2, a3 = A[c, 0], A[c, 1], A[c, 2], A[c, 3]
        w = tau * (row[c] + (v0 * a0 + v1 * a1 + v2 * a2 + v3 * a3))
        row[c] -= w
        A[c, 0], A[c, 1], A[c, 2], A[c, 3] = a0 - v0 * w, a1 - v1 * w, a2 - v2 * w, a3 - v3 * w


@njit(cache=True, fastmath=_FAST, inline="always")
def reflect_two_quads(row: FloatArray, A: FloatArray, v: FloatArray, tau: float, start: int) -> None:
    """The same with eight rows: every arm of five to eight joints."""
    v0, v1, v2, v3 = v[0], v[1], v[2], v[3]
    v4, v5, v6, v7 = v[4], v[5], v[6], v[7]
    for c in range(start, A.shape[0]):
        a0, a1, a2, a3 = A[c, 0], A[c, 1], A[c, 2], A[c, 3]
        a4, a5, a6, a7 = A[c, 4], A[c, 5], A[c, 6], A[c, 7]
        w = (v0 * a0 + v4 * a4) + (v1 * a1 + v5 * a5) + ((v2 * a2 + v6 * a6) + (v3 * a3 + v7 * a7))
        w = tau * (row[c] + w)
        row[c] -= w
        A[c, 0], A[c, 1], A[c, 2], A[c, 3] = a0 - v0 * w, a1 - v1 * w, a2 - v2 * w, a3 - v3 * w
        A[c, 4], A[c, 5], A[c, 6], A[c, 7] = a4 - v4 * w, a5 - v5 * w, a6 - v6 * w, a7 - v7 * w


@njit(cache=True, fastmath=_FAST)
def reflect(row: FloatArray, A: FloatArray, v: FloatArray, tau: float, start: int, count: int) -> None:
    """The same with any number of rows."""
    for c in range(start, A.shape[0]):
        w = row[c]
        for k in range(count):
            w += v[k] * A[c, k]
        w *= tau
        row[c] -= w
        for k in range(count):
            A[c, k] -= v[k] * w


@njit(cache=True, fastmath=_FAST)
def forget_along(
    F: FloatArray, row: FloatArray, kept: float, u: FloatArray, g: FloatArray, rotations: FloatArray
) -> None:
    """Forgets what is known along one row and nothing else; [Cao2000] in square-root form.

    With u = R a / |R a| the information splits into a part that does not know a at all and the rank-one part
    R^T u u^T R; only the latter is multiplied by `kept`, which is R <- (1 - (1 - sqrt(kept)) u u^T) R. Directions that
    nothing excites keep their information for ever, and the estimate does not move. Rotations from below turn u into
    the first unit vector, where the subtraction touches one row; rotations from above restore the triangle. Both
    sweeps run down four columns at a time, so that the row in work stays in registers.

    Args:
        F: updated in place, shape [p + 1, W], W a multiple of `CHUNK`.
        row: the row a, then zeros, shape [W].
        kept: factor on the information along it, in (0, 1).
        u, g: room, shape [at least p] and [at least W].
        rotations: room, shape [2, at least p].
    """
    p, W = F.shape[0] - 1, F.shape[1]
    total = 0.0
    for i in range(p):
        s = 0.0
        for c in range(i // CHUNK * CHUNK, W):
            s += F[i, c] * row[c]
        u[i] = s
        total += s * s
    if total == 0.0:
        return
    norm = np.sqrt(total)
    for c in range(W):
        g[c] = 0.0
    for i in range(p):
        u[i] /= norm
        s = u[i]
        for c in range(i // CHUNK * CHUNK, W):
            g[c] += s * F[i, c]
    cosines, sines = rotations[0], rotations[1]
    for i in range(p - 2, -1, -1):
        r = np.sqrt(u[i] * u[i] + u[i + 1] * u[i + 1])
        if r > 0.0:
            cosines[i], sines[i], u[i] = u[i] / r, u[i + 1] / r, r
        else:
            cosines[i], sines[i] = 1.0, 0.0
    for c in range(0, W, QUAD):
        if p > 1:
            rise(F[:, c : c + QUAD], cosines, sines, min(p - 2, c + QUAD - 1))
    # u is now +e1: its length is one, and the last rotation left its first entry positive; for p = 1 it keeps its sign.
    first = (1.0 - np.sqrt(kept)) * (1.0 if u[0] > 0.0 else -1.0)
    for c in range(W):
        F[0, c] -= first * g[c]
    for c in range(0, W, QUAD):
        descend(F[:, c : c + QUAD], cosines, sines, c, min(p - 1, c + QUAD))


@njit(cache=True, fastmath=_FAST)
def rise(B: FloatArray, cosines: FloatArray, sines: FloatArray, top: int) -> None:
    """Rotations of rows (i, i + 1), i from `top` up to the first, on four columns B; rows below `top` + 1 are zero there."""
    # Constant column indices: with variable ones the compiler must allow for negative ones and gives up on vectors.
    y0, y1, y2, y3 = B[top + 1, 0], B[top + 1, 1], B[top + 1, 2], B[top + 1, 3]
    for k in range(top + 1):
        i = top - k
        a, b = cosines[i], sines[i]
        x0, x1, x2, x3 = B[i, 0], B[i, 1], B[i, 2], B[i, 3]
        B[i + 1, 0] = a * y0 - b * x0
        B[i + 1, 1] = a * y1 - b * x1
        B[i + 1, 2] = a * y2 - b * x2
        B[i + 1, 3] = a * y3 - b * x3
        y0, y1, y2, y3 = a * x0 + b * y0, a * x1 + b * y1, a * x2 + b * y2, a * x3 + b * y3
    B[0, 0] = y0
    B[0, 1] = y1
    B[0, 2] = y2
    B[0, 3] = y3


@njit(cache=True, fastmath=_FAST)
def descend(B: FloatArray, cosines: FloatArray, sines: FloatArray, c: int, last: int) -> None:
    """Rotations that clear the entries just below the diagonal, on four columns B that begin at column c.

    Rotations of columns left of c are known by then; those of the block's own columns, up to `last`, are found on the way.
    """
    x0, x1, x2, x3 = B[0, 0], B[0, 1], B[0, 2], B[0, 3]
    for i in range(min(c, last)):
        a, b = cosines[i], sines[i]
        y0, y1, y2, y3 = B[i + 1, 0], B[i + 1, 1], B[i + 1, 2], B[i + 1, 3]
        B[i, 0] = a * x0 + b * y0
        B[i, 1] = a * x1 + b * y1
        B[i, 2] = a * x2 + b * y2
        B[i, 3] = a * x3 + b * y3
        x0, x1, x2, x3 = a * y0 - b * x0, a * y1 - b * x1, a * y2 - b * x2, a * y3 - b * x3
    row = min(c, last)
    B[row, 0] = x0
    B[row, 1] = x1
    B[row, 2] = x2
    B[row, 3] = x3
    for i in range(c, last):
        x, y = B[i, i - c], B[i + 1, i - c]
        r = np.sqrt(x * x + y * y)
        cosines[i], sines[i] = (x / r, y / r) if r > 0.0 else (1.0, 0.0)
        a, b = cosines[i], sines[i]
        for k in range(QUAD):
            x, y = B[i, k], B[i + 1, k]
            B[i, k] = a * x + b * y
            B[i + 1, k] = a * y - b * x
        B[i + 1, i - c] = 0.0


@njit(cache=True, fastmath=_FAST)
def solve(
    F: FloatArray,
    values: FloatArray,
    frozen: npt.NDArray[np.bool_],
    lengths: FloatArray,
    x: FloatArray,
    threshold: float,
) -> None:
    """Back-substitution; a parameter whose column the others explain keeps its value.

    Args:
        F: factor, shape [p + 1, W].
        values: read where a parameter is frozen, written elsewhere, shape [p].
        frozen: written, shape [p].
        lengths, x: room, shape [W].
        threshold: on |R_jj| / |column j|, the sine of the angle between a column and those before it.
    """
    p, W = len(values), F.shape[1]
    for c in range(W):
        lengths[c] = 0.0
        x[c] = 0.0
    for i in range(p):
        for c in range(i // CHUNK * CHUNK, W):
            lengths[c] += F[i, c] * F[i, c]
    # Minus one for the right-hand side: R b - z is then one sum over a whole row.
    x[p] = -1.0
    for k in range(p):
        j = p - 1 - k
        diagonal = F[j, j]
        frozen[j] = not (diagonal * diagonal > threshold * threshold * lengths[j])
        if not frozen[j]:
            total = 0.0
            for c in range(j // CHUNK * CHUNK, W):
                total += F[j, c] * x[c]
            values[j] = -total / diagonal
        x[j] = values[j]


@njit(cache=True, fastmath=_FAST)
def watch(errors: FloatArray, monitor: FloatArray, rule: FloatArray) -> bool:
    """One-sided cumulative sum of the innovations' energy against its own slow mean; [Page1954].

    Args:
        errors: weighted innovations, shape [m].
        monitor: (samples since the last reset, slow mean, cumulative sum), updated.
        rule: (samples before watching, share of the slow mean a sample replaces, allowance, threshold).

    Returns:
        Whether the sum passed the threshold.
    """
    energy = 0.0
    for k in range(len(errors)):
        energy += errors[k] * errors[k]
    energy /= len(errors)
    monitor[0] += 1.0
    if monitor[0] <= rule[0]:
        # The first innovations are those of a model that knows nothing: the mean starts over its last third.
        begun = monitor[0] - rule[0] * (2.0 / 3.0)
        if begun > 0.0:
            monitor[1] += (energy - monitor[1]) / (begun + 1.0)
        return False
    ratio = energy / max(monitor[1], 1e-300)
    monitor[2] = max(0.0, monitor[2] + ratio - 1.0 - rule[2])
    if monitor[2] == 0.0:
        monitor[1] += rule[1] * (energy - monitor[1])
    return bool(monitor[2] > rule[3])


@njit(cache=True, fastmath=_FAST)
def update(
    F: FloatArray, A: FloatArray, packed: FloatArray, place: npt.NDArray[np.intp], weighted: FloatArray, y: FloatArray,
    active: npt.NDArray[np.intp], values: FloatArray, frozen: npt.NDArray[np.bool_], errors: FloatArray, rooms: FloatArray,
    monitor: FloatArray, rule: FloatArray, turn: int, kept: float, threshold: float,
) -> bool:  # fmt: skip
    """One sample: innovations against the present values, forgetting along one of its rows, fold, solve, watch.

    Args:
        F, A, packed, place, weighted, y, active, values, frozen: as in the functions above.
        errors: innovations, written, shape [m4].
        rooms: scratch, shape [6, max(m4, W)].
        monitor, rule: of `watch`.
        turn: which row to forget along.
        kept: factor on the information along it; 1 forgets nothing.
        threshold: of `solve`.

    Returns:
        Whether a change of the arm was noticed.
    """
    scatter(A, packed, place, weighted, y)
    innovations(A, values, errors)
    if kept < 1.0:
        row = rooms[2]
        row[:] = 0.0
        for c in range(len(values)):
            row[c] = A[c, turn]
        forget_along(F, row, kept, rooms[0], rooms[1], rooms[4:6])
    fold(F, A, active, rooms[3])
    solve(F, values, frozen, rooms[0], rooms[1], threshold)
    return bool(watch(errors, monitor, rule))
