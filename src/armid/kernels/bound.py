"""A kernel bound to its buffers: called over and over on the same memory, nothing is allocated or looked up again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.compiled import Kernel, aligned_zeros
from armid.kernels.lanes import BLOCK, STRIDE


class BoundKernel:
    """A storing kernel on fixed arrays.

    Args:
        kernel: one that stores its columns.
        inputs: matrices whose rows, one after the other, are the kernel's input columns; write to them, then `run`.
        count: samples, a multiple of the kernels' block.

    Attributes:
        output: one row per output column, and padding rows after them, shape [slots, count].
    """

    def __init__(self, kernel: Kernel, inputs: list[FloatArray], count: int) -> None:
        self.output = np.zeros((kernel.slots, count))
        self._keep = inputs
        self._call = kernel.loaded.call
        self._sources = np.concatenate([_addresses(array) for array in inputs])
        self._targets = _addresses(self.output)
        self._uniform = np.zeros(1)
        self._scratch = aligned_zeros(max(kernel.slots, 1) * STRIDE)
        self._pointers = tuple(a.ctypes.data for a in (self._sources, self._uniform, self._scratch, self._targets))

    def run(self, blocks: int) -> None:
        """The first so many blocks of samples."""
        if len(self.output):
            self._call(*self._pointers, blocks, BLOCK)


def _addresses(array: FloatArray) -> npt.NDArray[np.uintp]:
    """Address of each row of a C-contiguous matrix."""
    assert array.flags.c_contiguous
    return np.arange(len(array), dtype=np.uintp) * np.uintp(array.strides[0]) + np.uintp(array.ctypes.data)
