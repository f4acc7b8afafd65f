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
from armid.kernels.lanes import Lanes
from armid.kernels.machine import load
from armid.kernels.source import RowSource
from armid.recursion.tape import Node, Tape

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


def single_text(tape: Tape, outputs: tuple[Node, ...]) -> str:
    """LLVM module whose `kernel` writes every output of one sample to consecutive doubles."""
    body = Arithmetic(_LANES)
    places: dict[int, list[int]] = {}
    for slot, node in enumerate(outputs):
        places.setdefault(node.index, []).append(slot)
    for index in tape.needed(list(outputs)):
        body.operation(index, tape.operations[index])
        for slot in places.pop(index, ()):
            body.line(f"%e{index}_{slot} = extractelement {_LANES.vector} {body.names[index]}, i32 0")
            body.line(f"%o{index}_{slot} = getelementptr double, ptr %out, i64 {slot}")
            body.line(f"store double %e{index}_{slot}, ptr %o{index}_{slot}, align 8")
    lines = "\n".join(body.lines)
    return f"""
define void @kernel(ptr noalias %inputs, ptr %uniform, ptr %scratch, ptr noalias %out, i64 %sample0, i64 %last) #0 {{
entry:
  %sample = add i64 0, 0
{lines}
  ret void
}}
{_LANES.declarations()}"""
