"""Rows of one source on a fixed number of samples, over and over: buffers and addresses are set up once.

An excitation search evaluates the same few hundred samples tens of thousands of times; allocating and looking
up two hundred column addresses each time would cost several times the arithmetic.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from armid.kernels.bound import BoundKernel
from armid.kernels.evaluate import CompiledRows, compiled_rows
from armid.kernels.lanes import BLOCK
from armid.kernels.source import RowSource


class GridRows:
    """Entries of A(x) on `count` samples and the gradient back to x, in buffers that are reused.

    Args:
        source: what is measured.
        count: samples, a multiple of the kernels' block.

    Attributes:
        x: inputs, shape [n_inputs, count]; write to it, then call `evaluate`.
        entries: structurally non-zero entries of A, shape [n_entries, count].
        bar: cotangents of the entries, same shape; write to it, then call `pull_back`.
        x_bar: gradient with respect to x, shape [n_inputs, count].
    """

    def __init__(self, source: RowSource, count: int) -> None:
        assert count % BLOCK == 0, f"{count} samples are not whole blocks of {BLOCK}"
        rows: CompiledRows = compiled_rows(source)
        self.channel_columns = rows.channel_columns
        self.blocks = count // BLOCK
        n_in, n_entries = len(source.inputs), len(rows.entries)
        self.x = np.zeros((n_in, count))
        self.bar = np.zeros((n_entries, count))
        self._forward = BoundKernel(rows.store_kernel, [self.x], count)
        self._backward = BoundKernel(rows.adjoint_kernel, [self.x, self.bar], count)
        self.entries = self._forward.output[:n_entries]
        self.x_bar = self._backward.output[:n_in]

    def evaluate(self) -> None:
        """`entries` from `x`."""
        self._forward.run(self.blocks)

    def pull_back(self) -> None:
        """`x_bar` from `x` and `bar`."""
        self._backward.run(self.blocks)

    @property
    def channel_slices(self) -> list[slice]:
        """For each channel the rows of `entries` that belong to it."""
        ends = np.cumsum([0, *(len(columns) for columns in self.channel_columns)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]
