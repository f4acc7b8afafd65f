"""Rows of one sample at a time, for estimators that run along with the arm.

The blocked kernels work on `BLOCK` samples whatever is asked of them; here the same tape is laid down once, without loop
or scratch, and the entries that are not structurally zero land in a fixed array.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.arithmetic import Arithmetic
from armid.kernels.evaluate import compiled_rows
from armid.kernels.gradients import recorded_gradient
from armid.kernels.lanes import MOST_LANES, Lanes
from armid.kernels.machine import load
from armid.kernels.source import RowSource
from armid.recursion.tape import Node, Tape

_SEEDS = Lanes(MOST_LANES)
"""Channels whose derivatives are taken at a time: every lane has the same sample and another seed."""

_LANES = Lanes(2)
"""The narrowest vector the emitter writes: one sample fills one lane, and wider ones would only be wasted."""


class SingleRows:
    """Compiled rows of a source for one sample after the other. Not for use by several threads at once.

    Args:
        source: what is measured.
    """

    def __init__(self, source: RowSource) -> None:
        recorded = compiled_rows(source)
        tape, _ = recorded.recorded
        entries = recorded.entries
        self.channels: npt.NDArray[np.intp] = np.array([k for k, _ in entries], dtype=np.intp)
        self.columns: npt.NDArray[np.intp] = np.array([c for _, c in entries], dtype=np.intp)
        self._inputs = np.zeros((len(source.inputs), _LANES.lanes))
        self._packed = np.zeros(len(entries))
        self._sources = (
            self._inputs.ctypes.data + np.arange(len(source.inputs), dtype=np.uintp) * self._inputs.strides[0]
        )
        self._loaded = load(single_text(tape, recorded.outputs))
        self._first = self._inputs[:, 0]
        self._call = self._loaded.call
        self._arguments = (self._sources.ctypes.data, 0, 0, self._packed.ctypes.data, 1, 1)

    def __call__(self, inputs: FloatArray) -> FloatArray:
        """The non-zero entries of A for one sample [n_inputs], in the order of `channels` and `columns`.

        The array is the same at every call and is overwritten by the next one.
        """
        self._first[:] = inputs
        self._call(*self._arguments)
        return self._packed


class SingleJacobian:
    """Compiled derivatives of `A(x) parameters` for one sample after the other. Not for use by several threads at once.

    `prediction_jacobian` gives the same for many samples.

    Args:
        source: what is measured.
        parameters: full parameter vector.
        kept: inputs with respect to which derivatives are wanted: the first so many.
    """

    def __init__(self, source: RowSource, parameters: FloatArray, kept: int) -> None:
        tape, gradient = recorded_gradient(source)
        first, lanes = len(source.inputs), MOST_LANES
        self._m = len(source.channels)
        self._rounds = -(-self._m // lanes)
        self._inputs = np.zeros((self._rounds, first + self._m, lanes))
        for k in range(self._m):
            self._inputs[k // lanes, first + k, k % lanes] = 1.0
        self._samples = self._inputs[:, :first]
        self._out = np.zeros((self._rounds, kept, lanes))
        self._parameters = np.array(parameters, dtype=np.float64)
        rows = np.arange(first + self._m, dtype=np.uintp) * np.uintp(self._inputs.strides[1])
        starts = self._inputs.ctypes.data + np.arange(self._rounds, dtype=np.uintp) * self._inputs.strides[0]
        self._sources = np.ascontiguousarray(starts[:, np.newaxis] + rows, dtype=np.uintp)
        self._loaded = load(single_text(tape, gradient[:kept], _SEEDS))
        self._calls = [
            (self._sources[k].ctypes.data, self._parameters.ctypes.data, 0, self._out[k].ctypes.data, 1, 1)
            for k in range(self._rounds)
        ]

    def __call__(self, inputs: FloatArray) -> FloatArray:
        """Derivatives at one sample [n_inputs], shape [kept, n_channels]; a view that the next call overwrites."""
        self._samples[:] = inputs[:, np.newaxis]
        for arguments in self._calls:
            self._loaded.call(*arguments)
        return self._out[0] if self._rounds == 1 else np.concatenate(self._out, axis=1)


def single_text(tape: Tape, outputs: tuple[Node, ...], lanes: Lanes = _LANES) -> str:
    """LLVM module whose `kernel` writes every output of one sample to consecutive doubles; with wider lanes, all of them."""
    body = Arithmetic(lanes)
    places: dict[int, list[int]] = {}
    for slot, node in enumerate(outputs):
        places.setdefault(node.index, []).append(slot)
    for index in tape.needed(list(outputs)):
        body.operation(index, tape.operations[index])
        for slot in places.pop(index, ()):
            if lanes is _LANES:
                body.line(f"%e{index}_{slot} = extractelement {lanes.vector} {body.names[index]}, i32 0")
                body.line(f"%o{index}_{slot} = getelementptr double, ptr %out, i64 {slot}")
                body.line(f"store double %e{index}_{slot}, ptr %o{index}_{slot}, align 8")
            else:
                body.line(f"%o{index}_{slot} = getelementptr double, ptr %out, i64 {lanes.lanes * slot}")
                body.line(f"store {lanes.vector} {body.names[index]}, ptr %o{index}_{slot}, align 8")
    lines = "\n".join(body.lines)
    return f"""
define void @kernel(ptr noalias %inputs, ptr %uniform, ptr %scratch, ptr noalias %out, i64 %sample0, i64 %last) #0 {{
entry:
  %sample = add i64 0, 0
{lines}
  ret void
}}
{lanes.declarations()}"""
