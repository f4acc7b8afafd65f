"""Rank decisions that say how they were made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.identifiability.errors import ToleranceError
from armid.words import number

STRUCTURAL_TOLERANCE = 1e-9
"""For rows computed in double precision: round-off of a recursion over ten joints stays below 1e-12 of the
largest singular value, and true singular values of column-scaled random rows stay above 1e-6."""

ZERO_COLUMN = 1e-11
"""A column this small against the largest is round-off. Scaling it to unit length would make a parameter of noise."""

WEAK = 1e-3
"""A direction whose singular value is below this fraction of the largest one is identifiable only by a hair:
the estimate along it is a thousand times worse than along the best one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RankDecision:
    """How many columns are independent, and why.

    Args:
        rank: the decision.
        tolerance: relative to the largest singular value of the column-scaled matrix.
        singular_values: of the column-scaled matrix without its zero columns, descending.
        gap: ratio of the last singular value that counts to the first that does not; infinite when none is dropped.
        reason: the decision in words.
    """

    rank: int
    tolerance: float
    singular_values: FloatArray
    gap: float
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "singular_values", read_only(self.singular_values))

    def as_dict(self) -> dict[str, Any]:
        return {
            "tolerance": self.tolerance,
            "gap": self.gap,
            "reason": self.reason,
            "singular_values": self.singular_values.tolist(),
        }

    @property
    def condition_number(self) -> float:
        """Of the column-scaled matrix restricted to its numerical row space."""
        s = self.singular_values
        return float(s[0] / s[self.rank - 1]) if self.rank else float("inf")


def checked_tolerance(tolerance: float) -> float:
    """The tolerance itself when it is a fraction."""
    if not 0.0 < (tolerance if isinstance(tolerance, float) else number("tolerance", tolerance)) < 1.0:
        raise ToleranceError(tolerance)
    return tolerance


def scaled_columns(A: FloatArray, *, largest: float | None = None) -> tuple[FloatArray, FloatArray]:
    """Columns of unit length and their former lengths; columns that are zero up to round-off become exactly zero.

    Args:
        A: shape [m, p].
        largest: the length against which a column counts as zero; that of A's longest column by default.
    """
    norms = np.linalg.norm(A, axis=0)
    alive = norms > ZERO_COLUMN * (float(norms.max(initial=0.0)) if largest is None else largest)
    norms = np.where(alive, norms, 0.0)
    return np.where(alive, A, 0.0) / np.where(alive, norms, 1.0), norms


def decide_rank(scaled: FloatArray, *, tolerance: float, why: str) -> RankDecision:
    """Rank of a column-scaled matrix from its singular values.

    Args:
        scaled: shape [m, p]; columns of length one or zero.
        tolerance: relative to the largest singular value.
        why: what the tolerance is tied to, for the record.
    """
    live = scaled[:, np.any(scaled != 0.0, axis=0)]
    values: FloatArray = (
        np.asarray(np.linalg.svd(live, compute_uv=False), dtype=np.float64) if live.size else np.zeros(0)
    )
    largest = float(values[0]) if values.size else 0.0
    rank = int(np.count_nonzero(values > tolerance * largest))
    next_value = float(values[rank]) if rank < values.size else 0.0
    gap = float(values[rank - 1]) / next_value if rank and next_value > 0.0 else float("inf")
    dropped = scaled.shape[1] - live.shape[1]
    reason = f"{rank} of {scaled.shape[1]} columns independent: {dropped} zero, {live.shape[1] - rank} dependent; {why}"
    if rank and np.isfinite(gap):
        reason += f"; singular values fall from {values[rank - 1]:.2g} to {next_value:.2g} there"
    return RankDecision(rank=rank, tolerance=tolerance, singular_values=values, gap=gap, reason=reason)
