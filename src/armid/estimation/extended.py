"""A source with further columns whose entries are computed outside: friction shapes, known payload torque, gravity tangents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import ShapeError, UnknownNameError
from armid.estimation.run import Run
from armid.kernels.source import Row, RowSource
from armid.recursion.scalars import Scalar, Scalars


@dataclass(frozen=True, eq=False)
class ExtendedRows:
    """Rows of a source plus columns that enter as inputs.

    Args:
        source: the rows to extend.
        names: of the new columns.
        places: for each new column, the (channel index, input index) pairs it stands in.
        n_inputs: number of new inputs.
    """

    source: RowSource
    names: tuple[str, ...]
    places: tuple[tuple[tuple[int, int], ...], ...]
    n_inputs: int

    @property
    def channels(self) -> tuple[str, ...]:
        return self.source.channels

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.source.columns, *self.names)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.source.inputs, *(f"extra{k + 1}" for k in range(self.n_inputs)))

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        n, p = len(self.source.inputs), len(self.source.columns)
        rows = self.source.rows(inputs[:n], scalars)
        for column, pairs in enumerate(self.places):
            for channel, k in pairs:
                rows[channel] = {**rows[channel], p + column: inputs[n + k]}
        return rows


@dataclass(frozen=True, eq=False)
class Column:
    """One new column: its name and its entries in one or more channels, each shape [n_samples]."""

    name: str
    entries: tuple[tuple[str, FloatArray], ...]


def extended(run: Run, columns: Sequence[Column]) -> Run:
    """The run with further columns."""
    channels = run.channels
    places: list[tuple[tuple[int, int], ...]] = []
    inputs: list[FloatArray] = []
    for column in columns:
        pairs = []
        for channel, values in column.entries:
            if channel not in channels:
                raise UnknownNameError("channel", channel, channels)
            if values.shape != (len(run),):
                raise ShapeError(column.name, values.shape, f"[{len(run)}]")
            pairs.append((channels.index(channel), len(inputs)))
            inputs.append(values)
        places.append(tuple(pairs))
    source = ExtendedRows(run.source, tuple(column.name for column in columns), tuple(places), len(inputs))
    return replace(run, source=source, inputs=np.column_stack([run.inputs, *inputs]) if inputs else run.inputs)
