"""Rows of any source over many samples: dense, as Gram matrices, as residuals, and their exact gradients.

A source is recorded once on a tape, specialised to its robot and its columns, and compiled for each use on demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import ShapeError
from armid.kernels.compiled import Kernel, compile_plan, contiguous_columns
from armid.kernels.ir import Finish, KernelPlan
from armid.kernels.source import Row, RowSource
from armid.recursion.replay import Replay
from armid.recursion.scalars import ARRAYS, Scalar, Scalars
from armid.recursion.tape import Node, Tape, vector_jacobian

SMALL = 512
"""Up to this many samples NumPy goes through the recorded recursion: compiling a new robot takes longer than that.
The choice depends on the number of samples only, so that results do not depend on what is in a cache."""


@dataclass(frozen=True)
class Restricted:
    """A source reduced to some of its columns, for example the base parameters'; the others are dropped from the code."""

    source: RowSource
    kept: tuple[int, ...]

    @property
    def channels(self) -> tuple[str, ...]:
        return self.source.channels

    @property
    def columns(self) -> tuple[str, ...]:
        names = self.source.columns
        return tuple(names[k] for k in self.kept)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.source.inputs

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        place = {old: new for new, old in enumerate(self.kept)}
        return [
            {place[column]: value for column, value in row.items() if column in place}
            for row in self.source.rows(inputs, scalars)
        ]


@dataclass(frozen=True, eq=False)
class CompiledRows:
    """A recorded source and the kernels made from it, compiled when first used.

    *Packed* arrays hold one row per structurally non-zero entry (channel, column) of A, in the order of `entries`,
    and one column per sample: nothing is stored for the zeros.
    """

    source: RowSource

    @cached_property
    def recorded(self) -> tuple[Tape, list[dict[int, Node]]]:
        """The tape, and per channel its entries that are not structurally zero, by column."""
        tape = Tape()
        rows = self.source.rows([tape.input(k) for k in range(len(self.source.inputs))], tape)
        nodes = [{c: tape.node(value) for c, value in sorted(row.items())} for row in rows]
        return tape, [{c: node for c, node in row.items() if not node.is_zero} for row in nodes]

    @cached_property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """(channel, column) of every entry of A that is not structurally zero."""
        return tuple((k, column) for k, row in enumerate(self.recorded[1]) for column in row)

    @cached_property
    def channel_columns(self) -> tuple[npt.NDArray[np.intp], ...]:
        """The columns each channel can see, ascending."""
        return tuple(np.array(list(row), dtype=np.intp) for row in self.recorded[1])

    @cached_property
    def outputs(self) -> tuple[Node, ...]:
        """What the tape computes for each of the entries."""
        return tuple(node for row in self.recorded[1] for node in row.values())

    @cached_property
    def replay(self) -> Replay:
        """The non-zero entries of A by NumPy, for a few samples."""
        return Replay(self.recorded[0], self.outputs)

    @cached_property
    def store_kernel(self) -> Kernel:
        """The non-zero entries of A."""
        return compile_plan(KernelPlan(self.recorded[0], (self.outputs,), Finish.STORE))

    @cached_property
    def gram_kernel(self) -> Kernel:
        """Gram matrices of `[A_k y_k]` per channel k; inputs are the samples followed by one y per channel."""
        tape, rows = self.recorded
        first = len(self.source.inputs)
        groups = tuple((*row.values(), tape.input(first + k)) for k, row in enumerate(rows))
        return compile_plan(KernelPlan(tape, groups, Finish.GRAM))

    @cached_property
    def correction_kernel(self) -> Kernel:
        """Sums of `A_k^T r_k` and `r_k^2` per channel, `r_k = y_k - A_k b`, with b as uniform input."""
        tape, rows = self.recorded
        first = len(self.source.inputs)
        totals: list[Node] = []
        for k, row in enumerate(rows):
            r = self._residual(tape, row, first + k)
            totals += [*(node * r for node in row.values()), r * r]
        return compile_plan(KernelPlan(tape, (tuple(totals),), Finish.TOTAL))

    @cached_property
    def residual_kernel(self) -> Kernel:
        """`y_k - A_k b` per channel and sample."""
        tape, rows = self.recorded
        first = len(self.source.inputs)
        outputs = tuple(self._residual(tape, row, first + k) for k, row in enumerate(rows))
        return compile_plan(KernelPlan(tape, (outputs,), Finish.STORE))

    @staticmethod
    def _residual(tape: Tape, row: dict[int, Node], y: int) -> Node:
        r = tape.input(y)
        for column, node in row.items():
            r = r - node * tape.uniform(column)
        return r

    @cached_property
    def adjoint_kernel(self) -> Kernel:
        """Gradient with respect to the inputs; inputs are the samples followed by a cotangent per entry."""
        # A tape of its own: the other kernels should not carry the adjoint's operations along.
        tape, rows = CompiledRows(self.source).recorded
        nodes = [node for row in rows for node in row.values()]
        first = len(self.source.inputs)
        seeds = [tape.input(first + k) for k in range(len(nodes))]
        inputs = [tape.input(k) for k in range(first)]
        return compile_plan(KernelPlan(tape, (tuple(vector_jacobian(tape, nodes, seeds, inputs)),), Finish.STORE))

    def packed(self, inputs: FloatArray) -> FloatArray:
        """The non-zero entries of A, shape [len(entries), n_samples]."""
        return self.store_kernel.store(contiguous_columns(inputs))

    def packed_vjp(self, inputs: FloatArray, cotangent: FloatArray) -> FloatArray:
        """Sum over entries of cotangent times d(entry)/d(input), shape [n_inputs, n_samples]."""
        seeds = np.ascontiguousarray(cotangent)
        return self.adjoint_kernel.store([*contiguous_columns(inputs), *seeds])

    def dense(self, inputs: FloatArray) -> FloatArray:
        """A with its zeros, shape [n_samples, n_channels, n_columns], stored column by column."""
        out = np.zeros((len(self.source.channels), len(self.source.columns), len(inputs)))
        channels, columns = self._entry_arrays
        out[channels, columns] = self.packed(inputs)
        return out.transpose(2, 0, 1)

    def few(self, inputs: FloatArray) -> FloatArray:
        """The same for a few samples, without compiling anything."""
        out = np.zeros((len(self.source.channels), len(self.source.columns), len(inputs)))
        for place, values in zip(self.entries, self.replay(contiguous_columns(inputs)), strict=True):
            out[place] = values
        return out.transpose(2, 0, 1)

    @cached_property
    def _entry_arrays(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        pairs = np.array(self.entries, dtype=np.intp).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def vjp(self, inputs: FloatArray, cotangent: FloatArray) -> FloatArray:
        """The same for a dense cotangent [n_samples, n_channels, n_columns]; returns [n_samples, n_inputs]."""
        channels, columns = self._entry_arrays
        return self.packed_vjp(inputs, cotangent[:, channels, columns].T).T


@lru_cache(maxsize=64)
def compiled_rows(source: RowSource) -> CompiledRows:
    """The compiled form of a source, shared by all who ask for an equal one."""
    return CompiledRows(source)


def evaluate_rows(source: RowSource, inputs: npt.ArrayLike) -> FloatArray:
    """The dense rows A(x), shape [n_samples, n_channels, n_columns].

    Args:
        source: what is measured.
        inputs: one sample per row, shape [n_samples, len(source.inputs)].
    """
    x = samples("inputs", inputs, len(source.inputs))
    return np.array(few_rows(source, x)) if len(x) <= SMALL else compiled_rows(source).dense(x)


def few_rows(source: RowSource, inputs: FloatArray) -> FloatArray:
    """Rows at up to `SMALL` samples, read-only; those evaluated last are at hand for whoever asks next about the same motion."""
    return _kept_rows(source, len(inputs), inputs.tobytes(order="F"))


@lru_cache(maxsize=8)
def _kept_rows(source: RowSource, count: int, data: bytes) -> FloatArray:
    A = compiled_rows(source).few(np.frombuffer(data).reshape(-1, count).T)
    A.flags.writeable = False
    return A


def reference_rows(source: RowSource, inputs: FloatArray) -> FloatArray:
    """The same by NumPy on the recursion itself: the reference the compiled code is tested against."""
    A = np.zeros((len(inputs), len(source.channels), len(source.columns)))
    for channel, row in enumerate(source.rows(list(inputs.T), ARRAYS)):
        for column, value in row.items():
            A[:, channel, column] = value
    return A


def residuals(source: RowSource, inputs: npt.ArrayLike, y: npt.ArrayLike, parameters: npt.ArrayLike) -> FloatArray:
    """`y - A(x) parameters`, shape [n_samples, n_channels], without forming A."""
    x = samples("inputs", inputs, len(source.inputs))
    measured = samples("y", y, len(source.channels))
    if len(x) != len(measured):
        raise ShapeError("y", measured.shape, f"[{len(x)}, {len(source.channels)}]")
    pi = np.asarray(parameters, dtype=np.float64)
    if pi.shape != (len(source.columns),):
        raise ShapeError("parameters", pi.shape, f"[{len(source.columns)}]")
    if len(x) <= SMALL:
        return measured - few_rows(source, x) @ pi
    kernel = compiled_rows(source).residual_kernel
    return kernel.store([*contiguous_columns(x), *contiguous_columns(measured)], pi).T
