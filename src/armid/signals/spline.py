"""Cubic splines through samples, all columns at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.signals.recursive import packed, solve_tridiagonal, unpacked


@dataclass(frozen=True, eq=False)
class CubicSpline:
    """The cubic spline through points, with third derivatives that are continuous at the second and the last but one.

    Args:
        x: increasing, shape [n], at least 4.
        y: shape [n, k].
        slopes: at the points, shape [n, k].
    """

    x: FloatArray
    y: FloatArray
    slopes: FloatArray

    @staticmethod
    def through(x: FloatArray, y: FloatArray) -> CubicSpline:
        """The spline through points.

        Raises:
            InputError: fewer than four points, or x does not increase.
        """
        dx = np.diff(x)
        if len(x) < 4 or not (dx > 0.0).all():
            raise InputError("points", f"{len(x)} of them", "a spline needs four or more at increasing places")
        # Continuity of the second derivative at every inner point, de Boor (1978) chapter IV.
        rise = np.diff(y, axis=0) / dx[:, np.newaxis]
        bands = np.zeros((len(x), 3))
        bands[1:-1] = np.column_stack([dx[1:], 2.0 * (dx[:-1] + dx[1:]), dx[:-1]])
        right = np.empty_like(y)
        right[1:-1] = 3.0 * (dx[1:, np.newaxis] * rise[:-1] + dx[:-1, np.newaxis] * rise[1:])
        first, last = x[2] - x[0], x[-1] - x[-3]
        bands[0, 1:] = dx[1], first
        bands[-1, :2] = last, dx[-2]
        right[0] = ((dx[0] + 2.0 * first) * dx[1] * rise[0] + dx[0] ** 2 * rise[1]) / first
        right[-1] = (dx[-1] ** 2 * rise[-2] + (2.0 * last + dx[-1]) * dx[-2] * rise[-1]) / last
        packs = packed(right)
        solve_tridiagonal(bands, packs)
        return CubicSpline(x, y, unpacked(packs, y.shape[1]))

    def __call__(self, at: FloatArray) -> FloatArray:
        """Values at some places, shape [len(at), k]; beyond the ends the outer cubics go on."""
        k = np.clip(np.searchsorted(self.x, at, side="right") - 1, 0, len(self.x) - 2)
        width, t = (self.x[k + 1] - self.x[k]), at - self.x[k]
        out = np.empty((self.y.shape[1], len(at)))
        for column, y, s in zip(out, self.y.T, self.slopes.T, strict=True):
            start, slope = y[k], s[k]
            rise = (y[k + 1] - start) / width
            bend = (slope + s[k + 1] - 2.0 * rise) / width
            column[:] = start + t * (slope + t * ((rise - slope) / width - bend + t * (bend / width)))
        return out.T
