"""Functions of samples and a few shared numbers, written once on any scalar and run over arrays.

Small batches run on NumPy directly; larger ones on code compiled for the robot at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.compiled import Kernel, compile_plan, contiguous_columns
from armid.kernels.evaluate import SMALL
from armid.kernels.ir import Finish, KernelPlan
from armid.recursion.scalars import ARRAYS, Scalar, Scalars
from armid.recursion.tape import Tape

Body = Callable[[Sequence[Scalar], Sequence[Scalar], Scalars], Sequence[Scalar]]
"""inputs of one sample, numbers shared by all, scalars -> outputs of one sample. Must be hashable by what it computes."""


def over_samples(body: Body, inputs: Sequence[FloatArray], shared: FloatArray) -> FloatArray:
    """The outputs of `body` for every sample, shape [n_samples, n_outputs].

    Args:
        body: what to compute.
        inputs: arrays [n_samples, k] whose columns, side by side, are the inputs.
        shared: numbers common to all samples, shape [n_shared].
    """
    count = len(inputs[0])
    if count > SMALL:
        columns = [column for array in inputs for column in contiguous_columns(array)]
        return _compiled(body, len(columns), len(shared)).store(columns, shared).T
    outputs = body([column for array in inputs for column in array.T], list(shared), ARRAYS)
    out = np.empty((count, len(outputs)))
    for k, value in enumerate(outputs):
        out[:, k] = value
    return out


@lru_cache(maxsize=128)
def _compiled(body: Body, n_inputs: int, n_shared: int) -> Kernel:
    tape = Tape()
    outputs = body([tape.input(k) for k in range(n_inputs)], [tape.uniform(k) for k in range(n_shared)], tape)
    return compile_plan(KernelPlan(tape, (tuple(tape.node(value) for value in outputs),), Finish.STORE))
