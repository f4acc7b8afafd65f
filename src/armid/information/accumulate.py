"""Samples in, Information out, without ever holding the rows of more than one block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import ShapeError
from armid.information.information import ChannelInformation, Information, triangular
from armid.kernels.rows import RowSource
from armid.recursion.scalars import ARRAYS

BLOCK = 4096
"""Samples per block: a few megabytes of rows."""


def accumulate(source: RowSource, inputs: npt.ArrayLike, y: npt.ArrayLike) -> Information:
    """Information of measured samples.

    Args:
        source: what was measured.
        inputs: shape [n_samples, len(source.inputs)].
        y: measured values, shape [n_samples, len(source.channels)].
    """
    x = samples("inputs", inputs, len(source.inputs))
    measured = samples("y", y, len(source.channels))
    if len(x) != len(measured):
        raise ShapeError("y", measured.shape, f"[{len(x)}, {len(source.channels)}]")
    factors: list[tuple[npt.NDArray[np.intp], FloatArray]] = []
    for start in range(0, len(x), BLOCK):
        block, target = x[start : start + BLOCK], measured[start : start + BLOCK]
        for k, row in enumerate(source.rows(list(block.T), ARRAYS)):
            columns = np.array(sorted(row), dtype=np.intp)
            A = np.empty((len(block), len(columns) + 1))
            for place, column in enumerate(columns):
                A[:, place] = row[int(column)]
            A[:, -1] = target[:, k]
            if start == 0:
                factors.append((columns, triangular(A)))
            else:
                factors[k] = (columns, triangular(np.vstack([factors[k][1], A])))
    return Information(
        tuple(source.columns),
        tuple(
            ChannelInformation(name, columns, factor, float(len(x)))
            for name, (columns, factor) in zip(source.channels, factors, strict=True)
        ),
    )
