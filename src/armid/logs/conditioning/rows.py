"""The same linear filter on both sides of `y = A(x) pi`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.errors import ShapeError
from armid.logs.samples import Segment
from armid.signals.filters import LowPass, low_pass


def filtered_rows(values: FloatArray, segments: Sequence[Segment], filter: LowPass, *, every: int = 1) -> FloatArray:
    """Rows, torques or inputs low-passed along time within each segment, then thinned.

    A linear filter F commutes with the parameters: `F y = (F A) pi`. Filtering torque alone, while friction's sign(qd) keeps its
    corners, biases friction; filtering the evaluated rows with the same filter does not.

    Args:
        values: one row per sample, shape [n_samples, ...]; evaluated rows [n_samples, n_channels, n_columns], or torques.
        segments: stretches of uniform sampling; no filter runs from one into the next.
        filter: at the rate of the samples.
        every: keep every k-th sample of a segment.

    Returns:
        Shape [n_kept, ...]; segments after one another.
    """
    if segments and segments[-1].stop > len(values):
        raise ShapeError("values", values.shape, f"at least {segments[-1].stop} rows")
    parts = [low_pass(values[segment.slice], filter)[::every] for segment in segments]
    return np.concatenate(parts) if parts else values[:0]
