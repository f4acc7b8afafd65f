"""Exact derivatives of the rows with respect to what they are computed from."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import ShapeError
from armid.kernels.evaluate import compiled_rows
from armid.kernels.source import RowSource


def rows_vjp(source: RowSource, inputs: npt.ArrayLike, cotangent: npt.ArrayLike) -> FloatArray:
    """Gradient of `sum(cotangent * A(x))` with respect to x, by reverse mode through the recursion.

    Args:
        source: what is measured.
        inputs: samples, shape [n_samples, n_inputs].
        cotangent: shape [n_samples, n_channels, n_columns]; entries where A is structurally zero do not matter.

    Returns:
        Shape [n_samples, n_inputs]. The sign function counts as constant.
    """
    x = samples("inputs", inputs, len(source.inputs))
    bar = np.asarray(cotangent, dtype=np.float64)
    expected = (len(x), len(source.channels), len(source.columns))
    if bar.shape != expected:
        raise ShapeError("cotangent", bar.shape, str(list(expected)))
    return compiled_rows(source).vjp(x, bar)
