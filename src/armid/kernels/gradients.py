"""Exact derivatives of the rows with respect to what they are computed from."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import ShapeError
from armid.kernels.compiled import Kernel, compile_plan, contiguous_columns
from armid.kernels.evaluate import CompiledRows, compiled_rows
from armid.kernels.ir import Finish, KernelPlan
from armid.kernels.source import RowSource
from armid.recursion.tape import Node, Tape, vector_jacobian


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


def prediction_jacobian(source: RowSource, inputs: npt.ArrayLike, parameters: npt.ArrayLike) -> FloatArray:
    """Derivative of `A(x) parameters` with respect to x, shape [n_samples, n_channels, n_inputs].

    One reverse pass per channel through the recorded recursion. The sign function counts as constant.

    Args:
        source: what is measured.
        inputs: samples, shape [n_samples, n_inputs].
        parameters: full parameter vector.
    """
    x = samples("inputs", inputs, len(source.inputs))
    pi = np.asarray(parameters, dtype=np.float64)
    if pi.shape != (len(source.columns),):
        raise ShapeError("parameters", pi.shape, f"[{len(source.columns)}]")
    channels = len(source.channels)
    kernel = _jacobian_kernel(source)
    columns = contiguous_columns(x)
    out = np.empty((len(x), channels, x.shape[1]))
    for k in range(channels):
        seeds = np.zeros((channels, len(x)))
        seeds[k] = 1.0
        out[:, k] = kernel.store([*columns, *seeds], pi).T
    return out


@lru_cache(maxsize=32)
def _jacobian_kernel(source: RowSource) -> Kernel:
    """Inputs are the samples followed by a seed per channel."""
    tape, gradient = recorded_gradient(source)
    return compile_plan(KernelPlan(tape, (gradient,), Finish.STORE))


def recorded_gradient(source: RowSource) -> tuple[Tape, tuple[Node, ...]]:
    """Sum over channels of seed times d(A parameters)/d(input), for every input.

    Inputs of the tape are those of a sample followed by a seed per channel; the parameters are its uniform numbers.
    """
    # A tape of its own: other kernels of the source should not carry the adjoint's operations along.
    tape, rows = CompiledRows(source).recorded
    first = len(source.inputs)
    predicted = []
    for row in rows:
        total = tape.node(tape.constant(0.0))
        for column, node in row.items():
            total = total + node * tape.uniform(column)
        predicted.append(total)
    seeds = [tape.input(first + k) for k in range(len(predicted))]
    return tape, tuple(vector_jacobian(tape, predicted, seeds, [tape.input(k) for k in range(first)]))
