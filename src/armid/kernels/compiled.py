"""A compiled plan that runs over columns of samples, in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.finish import gram_length, gram_matrix
from armid.kernels.ir import Finish, KernelPlan, module_text
from armid.kernels.lanes import BLOCK, STRIDE
from armid.kernels.machine import Loaded, load, machine

Addresses = npt.NDArray[np.uintp]

_MINIMUM_BLOCKS_PER_THREAD = 8
"""Below this, waking a thread costs more than the work."""


def thread_count() -> int:
    """Threads to use: `$ARMID_THREADS`, else the cores this process may run on."""
    chosen = os.environ.get("ARMID_THREADS", "")
    if chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="armid-kernel")


@dataclass(frozen=True, slots=True)
class Kernel:
    """Compiled code with the shapes it works on.

    Args:
        sizes: number of output columns in each group.
        widths: the same, padded as the code wants them.
        finish: what the code does with its columns.
        loaded: the code.
    """

    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    finish: Finish
    loaded: Loaded = field(repr=False)

    @property
    def slots(self) -> int:
        return sum(self.widths)

    def store(self, columns: Sequence[FloatArray], uniform: FloatArray | None = None) -> FloatArray:
        """The output columns, shape [n_outputs, n_samples]."""
        assert self.finish is Finish.STORE
        out = np.empty((self.slots, len(columns[0])))
        base, stride = out.ctypes.data, out.strides[0]

        def targets(first: int) -> Addresses:
            return np.arange(self.slots, dtype=np.uintp) * np.uintp(stride) + np.uintp(base + 8 * first)

        self._run(columns, uniform, lambda: targets, thread_count())
        return out

    def total(self, columns: Sequence[FloatArray], uniform: FloatArray | None = None) -> FloatArray:
        """Sum of each output column over the samples, shape [n_outputs]."""
        assert self.finish is Finish.TOTAL
        assert len(self.sizes) == 1
        parts: list[FloatArray] = []

        def private() -> Callable[[int], Addresses]:
            parts.append(np.zeros(self.slots))
            address = np.array([parts[-1].ctypes.data], dtype=np.uintp)
            return lambda first: address

        self._run(columns, uniform, private, thread_count())
        return np.sum(parts, axis=0)[: self.sizes[0]]

    def gram(self, columns: Sequence[FloatArray], uniform: FloatArray | None = None) -> list[FloatArray]:
        """For each group of columns W its Gram matrix W^T W, shape [size, size]."""
        assert self.finish is Finish.GRAM
        parts: list[list[FloatArray]] = []

        def private() -> Callable[[int], Addresses]:
            parts.append([np.zeros(gram_length(width)) for width in self.widths])
            addresses = np.array([G.ctypes.data for G in parts[-1]], dtype=np.uintp)
            return lambda first: addresses

        self._run(columns, uniform, private, thread_count())
        return [
            gram_matrix(np.sum([part[k] for part in parts], axis=0), width)[:size, :size]
            for k, (size, width) in enumerate(zip(self.sizes, self.widths, strict=True))
        ]

    def _run(
        self,
        columns: Sequence[FloatArray],
        uniform: FloatArray | None,
        private: Callable[[], Callable[[int], Addresses]],
        threads: int,
    ) -> None:
        """Splits the samples into one run of blocks per thread; the last, shorter block reads a padded copy.

        Args:
            columns: contiguous input columns.
            uniform: numbers shared by all samples.
            private: gives, once per thread, a function from the first sample of a call to the output addresses.
            threads: at most this many.
        """
        count = len(columns[0])
        blocks, rest = divmod(count, BLOCK)
        workers = max(1, min(threads, blocks // _MINIMUM_BLOCKS_PER_THREAD))
        bounds = [blocks * k // workers for k in range(workers + 1)]
        sources = np.array([column.ctypes.data for column in columns], dtype=np.uintp)
        shared = np.zeros(1) if uniform is None else np.ascontiguousarray(uniform, dtype=np.float64)
        # Taken here, one after the other, so that sums are added up in the same order whichever thread ends first.
        targets = [private() for _ in range(workers)]
        if not self.slots:
            return  # no entry is ever anything but zero, as for the torque of an arm without mass; the code would write one

        def call(worker: int) -> None:
            start, end = bounds[worker], bounds[worker + 1]
            scratch = aligned_zeros(self.slots * STRIDE)
            self._call(
                sources + np.uintp(8 * BLOCK * start),
                shared,
                scratch,
                targets[worker](BLOCK * start),
                end - start,
                BLOCK,
            )
            if worker == workers - 1 and rest:
                padded = [np.concatenate([c[blocks * BLOCK :], np.repeat(c[-1:], BLOCK - rest)]) for c in columns]
                addresses = np.array([c.ctypes.data for c in padded], dtype=np.uintp)
                self._call(addresses, shared, scratch, targets[worker](BLOCK * blocks), 1, rest)

        if workers == 1:
            call(0)
        else:
            list(_pool(workers).map(call, range(workers)))

    def _call(
        self, sources: Addresses, uniform: FloatArray, scratch: FloatArray, targets: Addresses, blocks: int, last: int
    ) -> None:
        self.loaded.call(
            sources.ctypes.data, uniform.ctypes.data, scratch.ctypes.data, targets.ctypes.data, blocks, last
        )


def aligned_zeros(count: int) -> FloatArray:
    """Zeros that start on a cache line: a vector that straddles two lines takes twice as long to load."""
    line = 64
    room = np.zeros(count + line // 8)
    start = (-room.ctypes.data % line) // 8
    return room[start : start + count]


def compile_plan(plan: KernelPlan) -> Kernel:
    """Machine code for a plan, compiled or taken from the cache."""
    sizes = tuple(len(group) for group in plan.groups)
    return Kernel(sizes, plan.widths, plan.finish, load(module_text(plan, machine().lanes)))


def contiguous_columns(array: FloatArray) -> list[FloatArray]:
    """The columns of a [n_samples, k] array, each contiguous; free when the array is stored column by column."""
    stored = np.asfortranarray(array)
    return [stored[:, k] for k in range(stored.shape[1])]
