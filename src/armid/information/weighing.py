"""Channels weighed against one another, over and over, at the cost of one small Gram matrix each time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.information.information import Information, triangular

_WELL_CONDITIONED = 1e10
"""Condition number of the column-scaled Gram matrix up to which one correction by residuals makes its solution as good as that
of the rows themselves: 1e5 of the rows, squared it leaves six digits, and the correction squares the error."""


@dataclass(frozen=True, eq=False)
class ChannelResiduals:
    """What a weighted solution leaves in every channel.

    Args:
        values: of the solution, shape [p].
        energies: sum of squared residuals, unweighted, shape [channels].
        leverages: how many of the parameters each channel pays for, shape [channels]; a belief pays for the rest.
    """

    values: FloatArray
    energies: FloatArray
    leverages: FloatArray


class Weighing:
    """Rows of some channels, ready to be solved under one set of weights after the other.

    Args:
        rows: of the parameters to solve for.
        prior: further rows of weight one.
    """

    def __init__(self, rows: Information, prior: Information | None = None) -> None:
        p, n = rows.n_parameters, len(rows.channels)
        heights = [len(channel.factor) for channel in rows.channels]
        factors = np.zeros((n, max(heights, default=0), p + 1))
        for block, channel in zip(factors, rows.channels, strict=True):
            block[: len(channel.factor), [*channel.columns, p]] = channel.factor
        full = (block[:height] for block, height in zip(factors, heights, strict=True))
        self._rows = np.concatenate([np.empty((0, p + 1)), *full])
        self._channel = np.repeat(np.arange(n), heights)
        self._grams = (factors.transpose(0, 2, 1) @ factors).reshape(n, (p + 1) ** 2)
        self._belief = np.zeros((0, p + 1)) if prior is None else prior.stacked()

    def residuals(self, weights: FloatArray, *, believing: bool = True) -> ChannelResiduals | None:
        """Of the solution under these weights; None where only the rows themselves are accurate enough.

        Args:
            weights: by which every channel's rows are multiplied, shape [channels].
            believing: whether the further rows count.
        """
        squared, belief = weights**2, self._belief if believing else self._belief[:0]
        gram = (squared @ self._grams).reshape(self._rows.shape[1], -1) + belief.T @ belief
        scale = np.sqrt(np.diag(gram)[:-1])
        inverse = None if np.any(scale == 0.0) else _inverse(gram[:-1, :-1] / np.outer(scale, scale))
        if inverse is None:
            return None
        inverse /= np.outer(scale, scale)
        values = np.append(inverse @ gram[:-1, -1], -1.0)
        # What rounding took from the right-hand side is put back from the residuals of the rows (corrected normal equations).
        pull = (squared[self._channel] * (self._rows @ values)) @ self._rows + (belief @ values) @ belief
        return self.left(values[:-1] - inverse @ pull[:-1], inverse, weights)

    def factor(self, weights: FloatArray, *, believing: bool = True) -> FloatArray:
        """One triangular factor of all rows under these weights, and of the further ones."""
        whole = triangular(weights[self._channel, np.newaxis] * self._rows)
        return triangular(np.vstack([whole, self._belief])) if believing and len(self._belief) else whole

    def left(self, values: FloatArray, inverse: FloatArray, weights: FloatArray) -> ChannelResiduals:
        """What given values leave.

        Args:
            values: shape [p].
            inverse: of the weighted Gram matrix, shape [p, p].
            weights: by which every channel's rows are multiplied, shape [channels].
        """
        error = self._rows @ np.append(values, -1.0)
        energies = np.bincount(self._channel, error**2, minlength=len(weights)).astype(np.float64)
        return ChannelResiduals(values, energies, weights**2 * (self._grams @ _bordered(inverse).ravel()))


def _bordered(matrix: FloatArray) -> FloatArray:
    """A square matrix with a last row and column of zeros."""
    out = np.zeros((len(matrix) + 1, len(matrix) + 1))
    out[:-1, :-1] = matrix
    return out


def _inverse(gram: FloatArray) -> FloatArray | None:
    """Of a matrix with ones on its diagonal; None where it is too near to a singular one."""
    try:
        inverse: FloatArray = np.asarray(np.linalg.inv(gram))
    except np.linalg.LinAlgError:
        return None
    # The condition number is at most the product of these.
    size = float(np.sqrt(np.vdot(inverse, inverse) * np.vdot(gram, gram)))
    return inverse if size < _WELL_CONDITIONED else None
