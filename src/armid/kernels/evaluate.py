"""Rows of any source, evaluated over many samples at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.kernels.rows import RowSource
from armid.recursion.scalars import ARRAYS


def evaluate_rows(source: RowSource, inputs: npt.ArrayLike) -> FloatArray:
    """The dense rows A(x), shape [n_samples, n_channels, n_columns].

    Args:
        source: what is measured.
        inputs: one sample per row, shape [n_samples, len(source.inputs)].
    """
    x = samples("inputs", inputs, len(source.inputs))
    A = np.zeros((len(x), len(source.channels), len(source.columns)))
    for channel, row in enumerate(source.rows(list(x.T), ARRAYS)):
        for column, value in row.items():
            A[:, channel, column] = value
    return A
