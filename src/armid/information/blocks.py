"""Rows that are already numbers, folded into Information: for sources whose rows change with every iteration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.information.accumulate import FactorMethod, factor_of_gram
from armid.information.information import ChannelInformation, Information, triangular

MANY = 20_000
"""Rows of a block from which on products of columns are summed directly: ten times faster. The seven digits that leaves are
enough for a step that the next iteration corrects, and for decisions at a relative length of 1e-4."""


def fold_rows(parameters: Sequence[str], blocks: Iterable[tuple[str, FloatArray, FloatArray]]) -> Information:
    """Information of blocks of rows.

    Args:
        parameters: names of the columns.
        blocks: channel, its columns as rows `A^T`, shape [p, n], and its right-hand side, shape [n]; a channel may come in
            several blocks.
    """
    factors: dict[str, list[FloatArray]] = {}
    counts: dict[str, float] = {}
    methods: dict[str, None] = {}
    for channel, columns, y in blocks:
        method = FactorMethod.GRAM if len(y) >= MANY else FactorMethod.QR
        factors.setdefault(channel, []).append(_factor(columns, y, method))
        counts[channel] = counts.get(channel, 0.0) + len(y)
        methods[method.value] = None
    seen = np.arange(len(parameters), dtype=np.intp)
    channels = tuple(
        ChannelInformation(name, seen, parts[0] if len(parts) == 1 else triangular(np.vstack(parts)), counts[name])
        for name, parts in factors.items()
    )
    return Information(tuple(parameters), channels, "+".join(methods))


def _factor(columns: FloatArray, y: FloatArray, method: FactorMethod) -> FloatArray:
    """`[R z; 0 rho]` of one block."""
    if method is FactorMethod.QR:
        return triangular(np.column_stack([columns.T, y]))
    p = len(columns)
    G = np.empty((p + 1, p + 1))
    G[:p, :p] = columns @ columns.T
    G[:p, p] = G[p, :p] = columns @ y
    G[p, p] = y @ y
    return factor_of_gram(G)


def known_values(name: str, parameters: Sequence[str], values: FloatArray, weights: FloatArray) -> Information:
    """What is known of every parameter by itself: one row `weight * parameter = weight * value` each.

    Args:
        name: of the channel.
        parameters: names, p of them.
        values: shape [p].
        weights: one over the standard deviation, shape [p].
    """
    p = len(parameters)
    factor = np.zeros((p + 1, p + 1))
    factor[np.arange(p), np.arange(p)] = weights
    factor[:p, p] = weights * values
    return Information(tuple(parameters), (ChannelInformation(name, np.arange(p), factor, float(p)),))
