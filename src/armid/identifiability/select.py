"""One column after the other: which of them add something to those already kept.

Gram-Schmidt in a given order. It decides base parameters (in the order of the parameter vector, against round-off) and the
parameters of a calibration (in the order of preference, against the noise) alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnChoice:
    """What became of every column.

    Args:
        kept: indices in the order they were taken.
        distance: of each column from the span of those kept before it, shape [p]; zero for columns that were not looked at.
        dependent: whether that distance is a negligible part of the column, shape [p].
    """

    kept: tuple[int, ...]
    distance: FloatArray
    dependent: npt.NDArray[np.bool_]


def choose_columns(
    columns: FloatArray, order: Sequence[int], *, dependent: float, worth: float = 0.0, most: int | None = None
) -> ColumnChoice:
    """Keeps the columns that are far enough from the span of those kept before them.

    Args:
        columns: shape [m, p].
        order: in which they are looked at; others are never kept.
        dependent: distance relative to the column's own length up to which it counts as spanned.
        worth: smallest distance of a column that is kept.
        most: how many may be kept.
    """
    m, p = columns.shape
    room = min(m, p) if most is None else min(m, p, most)
    basis = np.zeros((m, min(m, p)))
    kept: list[int] = []
    distance, spanned = np.zeros(p), np.ones(p, dtype=bool)
    for j in order:
        left = columns[:, j]
        Q = basis[:, : len(kept)]
        for _ in range(2):  # twice is enough: the second pass removes what round-off left of the first
            left = left - Q @ (Q.T @ left)
        distance[j] = np.linalg.norm(left)
        spanned[j] = distance[j] <= dependent * np.linalg.norm(columns[:, j])
        if not spanned[j] and distance[j] >= worth and len(kept) < room:
            basis[:, len(kept)] = left / distance[j]
            kept.append(j)
    return ColumnChoice(kept=tuple(kept), distance=distance, dependent=spanned)
