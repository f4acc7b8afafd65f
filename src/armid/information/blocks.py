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


def fold_rows(parameters: Sequence[str], blocks: Iterable[tuple[str, FloatArray]]) -> Information:
    """Information of blocks of rows.

    Args:
        parameters: names of the columns.
        blocks: channel and its rows `[A y]^T`, shape [p + 1, n], samples contiguous; a channel may come in several blocks.
    """
    factors: dict[str, list[FloatArray]] = {}
    counts: dict[str, float] = {}
    methods: dict[str, None] = {}
    for channel, rows in blocks:
        method = FactorMethod.GRAM if rows.shape[1] >= MANY else FactorMethod.QR
        factors.setdefault(channel, []).append(
            factor_of_gram(rows @ rows.T) if method is FactorMethod.GRAM else triangular(rows.T)
        )
        counts[channel] = counts.get(channel, 0.0) + rows.shape[1]
        methods[method.value] = None
    columns = np.arange(len(parameters), dtype=np.intp)
    channels = tuple(
        ChannelInformation(name, columns, parts[0] if len(parts) == 1 else triangular(np.vstack(parts)), counts[name])
        for name, parts in factors.items()
    )
    return Information(tuple(parameters), channels, "+".join(methods))


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
