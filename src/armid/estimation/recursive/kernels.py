"""The inner loops of the recursive estimator, compiled by numba.

The state is the factor `F = [R z; 0 rho]` of all rows seen so far, row-major, its rows
padded with zeros.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.numba_cache import compiled

_FAST = {"reassoc", "contract", "nsz"}
"""Sums may be reordered, nothing else: infinities and NaN keep their meaning."""


CHUNK = 16
"""Rows of the factor are padded to a multiple of this and read from a multiple of it on (what lies left of the diagonal is
zero): loops without a remainder run four vectors at a time, and the remainder of a short loop is most of its cost."""

QUAD = 4
"""Rows of a sample, and columns of the factor, are handled four at a time: loops of this fixed length become vector code."""


@compiled(fastmath=_FAST)
def _scatter(
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


@compiled(fastmath=_FAST)
def innovations(A: FloatArray, values: FloatArray, out: FloatArray) -> None:
    """Y - A b for every row, shape [m4]; the padding gives zero."""
    p = len(values)
    out[:] = A[p]
    for c in range(p):
        s = values[c]
        for k in range(A.shape[1]):
            out[k] -= A[c, k] * s


@compiled(fastmath=_FAST)
def _lengthen(lengths: FloatArray, A: FloatArray) -> None:
    """Squared lengths of the columns of R once the rows of A are folded in: no pass over R."""
    for c in range(len(lengths)):
        total = lengths[c]
        for k in range(A.shape[1]):
            total += A[c, k] * A[c, k]
        lengths[c] = total


@compiled(fastmath=_FAST)
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
            _reflect_quad(F[j], A, v, tau, j + 1)
        elif quads == 2:
            _reflect_two_quads(F[j], A, v, tau, j + 1)
        else:
            _reflect(F[j], A, v, tau, j + 1, QUAD * quads)


@compiled(fastmath=_FAST, inline="always")
def _reflect_quad(row: FloatArray, A: FloatArray, v: FloatArray, tau: float, start: int) -> None:
    """The reflection on the columns from `start` on, four rows of the sample taking part."""
    v0, v1, v2, v3 = v[0], v[1], v[2], v[3]
    for c in range(start, A.shape[0]):
        a0, a1, a2, a3 = A[c, 0], A[c, 1], A[c, 2], A[c, 3]
        w = tau * (row[c] + (v0 * a0 + v1 * a1 + v2 * a2 + v3 * a3))
        row[c] -= w
        A[c, 0], A[c, 1], A[c, 2], A[c, 3] = a0 - v0 * w, a1 - v1 * w, a2 - v2 * w, a3 - v3 * w


@compiled(fastmath=_FAST, inline="always")
def _reflect_two_quads(row: FloatArray, A: FloatArray, v: FloatArray, tau: float, start: int) -> None:
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


@compiled(fastmath=_FAST)
def _reflect(row: FloatArray, A: FloatArray, v: FloatArray, tau: float, start: int, count: int) -> None:
    """The same with any number of rows."""
    for c in range(start, A.shape[0]):
        w = row[c]
        for k in range(count):
            w += v[k] * A[c, k]
        w *= tau
        row[c] -= w
        for k in range(count):
            A[c, k] -= v[k] * w


@compiled(fastmath=_FAST)
def faded_copy(F: FloatArray, kept: float, faded: float, out: FloatArray) -> None:
    """The factor of kept * information, with `faded` times the energy of the residuals.

    Args:
        F: factor, shape [p + 1, W].
        kept: factor on the information.
        faded: factor on the energy of the residuals.
        out: written, shape as F.
    """
    p, root = F.shape[0] - 1, np.sqrt(kept)
    for i in range(p + 1):
        for c in range(F.shape[1]):
            out[i, c] = F[i, c] * root
    out[p, p] = F[p, p] * np.sqrt(faded)


@compiled(fastmath=_FAST)
def fold_rows(
    F: FloatArray, rows: FloatArray, start: int, values: FloatArray, lengths: FloatArray, room: FloatArray
) -> None:
    """Information <- information + rows^T rows around given values, for eight rows from `start` on.

    Args:
        F: updated in place.
        rows: shape [p, p].
        start: first of the eight.
        values: shape [p].
        lengths: squared lengths of the columns of R, updated, shape [p].
        room: scratch for eight rows and one reflection, shape [p + 2, 8].
    """
    p = len(values)
    A = room[: p + 1]
    A[:] = 0.0
    for k in range(min(2 * QUAD, p - start)):
        for c in range(p):
            A[c, k] = rows[start + k, c]
            A[p, k] += rows[start + k, c] * values[c]
    _lengthen(lengths, A)
    fold(F, A, np.full(p + 1, 2), room[p + 1])


@compiled(fastmath=_FAST)
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
        lengths: squared lengths of the columns of R, shape [p].
        x: room, shape [W].
        threshold: on |R_jj| / |column j|, the sine of the angle between a column and those before it.
    """
    p, W = len(values), F.shape[1]
    for c in range(W):
        x[c] = 0.0
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


@compiled(fastmath=_FAST)
def watch(errors: FloatArray, after: FloatArray, monitor: FloatArray, rule: FloatArray) -> bool:
    """One-sided cumulative sum of the innovations' energy against its own slow mean; [Page1954].

    Innovations before times after the update are e^T S^-1 e with S = 1 + A (R^T R)^-1 A^T: large errors in directions that were
    not known yet are expected, and count for little.

    Args:
        errors: weighted innovations against the values before the sample, shape [m].
        after: the same against the values after it, shape [m].
        monitor: (samples since the last reset, slow mean, cumulative sum), updated.
        rule: (samples before watching, share of the slow mean a sample replaces, allowance, threshold).

    Returns:
        Whether the sum passed the threshold.
    """
    energy = 0.0
    for k in range(len(errors)):
        energy += errors[k] * after[k]
    energy = max(energy, 0.0) / len(errors)
    monitor[0] += 1.0
    if monitor[0] <= rule[0]:
        # The first innovations are those of a model that knows nothing: the mean starts over its last third.
        begun = monitor[0] - rule[0] * (2.0 / 3.0)
        if begun > 0.0:
            monitor[1] += (energy - monitor[1]) / (begun + 1.0)
        return False
    # However large an error is, it must last: a joint that sticks while it turns back is wrong for a few samples.
    ratio = min(energy / max(monitor[1], 1e-300), 2.0 * (1.0 + rule[2]))
    monitor[2] = max(0.0, monitor[2] + ratio - 1.0 - rule[2])
    if monitor[2] == 0.0:
        monitor[1] += rule[1] * (energy - monitor[1])
    return bool(monitor[2] > rule[3])


@compiled(fastmath=_FAST)
def fold_also(
    F: FloatArray,
    A: FloatArray,
    packed: FloatArray,
    place: npt.NDArray[np.intp],
    weighted: FloatArray,
    y: FloatArray,
    active: npt.NDArray[np.intp],
    lengths: FloatArray,
    room: FloatArray,
) -> None:
    """The rows of one sample folded into a further factor; arguments as in `update`."""
    _scatter(A, packed, place, weighted, y)
    _lengthen(lengths, A)
    fold(F, A, active, room)


@compiled(fastmath=_FAST)
def update(
    F: FloatArray,
    A: FloatArray,
    packed: FloatArray,
    place: npt.NDArray[np.intp],
    weighted: FloatArray,
    y: FloatArray,
    active: npt.NDArray[np.intp],
    values: FloatArray,
    frozen: npt.NDArray[np.bool_],
    errors: FloatArray,
    rooms: FloatArray,
    monitor: FloatArray,
    rule: FloatArray,
    lengths: FloatArray,
    threshold: float,
) -> bool:
    """One sample: innovations against the present values, fold, solve, watch.

    Args:
        F, A, packed, place, weighted, y, active, values, frozen: as in the functions above.
        errors: innovations, written, shape [m4].
        rooms: scratch, shape [3, max(m4, W)].
        monitor, rule: of `watch`.
        lengths: squared lengths of the columns of R, shape [p], updated.
        threshold: of `solve`.

    Returns:
        Whether a change of the arm was noticed.
    """
    _scatter(A, packed, place, weighted, y)
    innovations(A, values, errors)
    _lengthen(lengths, A)
    fold(F, A, active, rooms[1])
    solve(F, values, frozen, lengths, rooms[0], threshold)
    # Folding has consumed the rows; writing them again costs less than keeping them.
    _scatter(A, packed, place, weighted, y)
    after = rooms[2, : len(errors)]
    innovations(A, values, after)
    return bool(watch(errors, after, monitor, rule))
