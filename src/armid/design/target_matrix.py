"""The pose selection of [RWTH2021]: an ideal target matrix, and for each of its rows the pose whose base functions come closest.

Algorithm 5.2 builds the target from the identity, each row scaled by the largest or smallest value its base function
takes over the pool (the printed algorithm scales by arbitrary samples; the text says extrema). Algorithm 5.3 rates
candidates by dot product and distance with a penalty that is swept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray

_PENALTIES = 400
"""`penInt` of its table 6.2."""

_CONSTANT = 1e-9
"""A base function whose range is below this is the constant one."""


@dataclass(frozen=True, eq=False)
class RatedSelection:
    """Poses chosen by rating.

    Args:
        chosen: index into the pool for each row of the target, shape [n_rows].
        target: shape [n_rows, n_functions].
        penalty: that gave the smallest condition number.
        condition_number: of the chosen rows.
    """

    chosen: npt.NDArray[np.intp]
    target: FloatArray
    penalty: float
    condition_number: float


def target_matrix(values: FloatArray, *, decimals: int | None = None) -> FloatArray:
    """Algorithm 5.2: for each base function a row with its maximum and one with its minimum, zero elsewhere, and a one
    where the base function is constant.

    Args:
        values: base functions over the pool, shape [n_poses, n_functions].
        decimals: to which the extrema are rounded, one in the printed algorithm; None for as they are, which a coarse pool
            does not turn into values that no pose has.
    """
    high, low = values.max(axis=0), values.min(axis=0)
    if decimals is not None:
        high, low = np.round(high, decimals), np.round(low, decimals)
    constant = high - low <= _CONSTANT * np.maximum(1.0, np.abs(high))
    rows = []
    for m in range(values.shape[1]):
        for extreme in (high[m], low[m]):
            row = np.where(constant, high, 0.0)
            if not constant[m]:
                row[m] = extreme
            rows.append(row)
    # Functions whose minimum is zero all contribute the row with the constants alone; one of them is enough.
    unique: list[FloatArray] = []
    for row in rows:
        if not any(np.allclose(row, other, rtol=0.0, atol=1e-12) for other in unique):
            unique.append(row)
    return np.array(unique)


def rated_selection(values: FloatArray, target: FloatArray, penalties: int = _PENALTIES) -> RatedSelection:
    """Algorithm 5.3: for each penalty the best-rated pose per target row; the penalty with the smallest condition number.

    Rating of pose i for row j: C = A - penalty * B with A = values_i . target_j - sum(target_j), B = |values_i - target_j|.
    """
    sweep = np.linspace(0.0, 1.0, penalties)
    picks = np.empty((penalties, len(target)), dtype=np.intp)
    for j, row in enumerate(target):
        A = values @ row - row.sum()
        B = np.linalg.norm(values - row, axis=1)
        front = undominated(A, B)
        ratings = A[front] - sweep[:, np.newaxis] * B[front]
        picks[:, j] = front[np.argmax(ratings, axis=1)]
    conditions = [safe_condition(values[chosen]) for chosen in picks]
    best = int(np.argmin(conditions))
    return RatedSelection(picks[best], target, float(sweep[best]), conditions[best])


def undominated(A: FloatArray, B: FloatArray) -> npt.NDArray[np.intp]:
    """Poses for which no other has both a larger A and a smaller B: no penalty between 0 and 1 prefers the rest."""
    order = np.lexsort((-A, B))
    running = np.maximum.accumulate(A[order])
    first = np.concatenate([[True], running[1:] > running[:-1]])
    return order[first]


def safe_condition(A: FloatArray) -> float:
    """Condition number; infinite for a matrix without full column rank."""
    if A.shape[0] < A.shape[1]:
        return float("inf")
    s = np.linalg.svd(A, compute_uv=False)
    return float(s[0] / s[-1]) if s[-1] > 1e-12 * s[0] else float("inf")
