"""Torque that was recorded late, moved back in time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armid.arrays import FloatArray
from armid.signals.spline import CubicSpline


def advanced(values: FloatArray, shifts: FloatArray, predicted: Callable[[slice], FloatArray]) -> FloatArray:
    """Columns `shifts` samples earlier, each by its own, from cubic splines: straight lines would smooth the noise.

    What is known of a column ends with it. Beyond, it is its own value, corrected by what the model changes over that time:
    y(t) + tau(t) - tau(t - shift).

    Args:
        values: of one segment of uniform sampling, shape [n, k].
        shifts: [samples], shape [k]; positive for columns that came late.
        predicted: torque of the model along a part of the segment, shape [len(part), k].
    """
    n = len(values)
    if n < 4:
        return values
    out, at = np.array(values), np.arange(float(n))
    spline = CubicSpline.through(at, values)
    for k in np.flatnonzero(shifts):
        one = slice(k, k + 1)
        wanted = at + shifts[k]
        inside = (wanted >= 0.0) & (wanted <= n - 1.0)
        out[inside, k] = CubicSpline(at, spline.y[:, one], spline.slopes[:, one])(wanted[inside])[:, 0]
        reach = min(n, int(np.ceil(2.0 * abs(shifts[k]))) + 4)
        part = slice(n - reach, n) if shifts[k] > 0.0 else slice(0, reach)
        model, outside = predicted(part)[:, one], ~inside[part]
        curve = CubicSpline.through(at[part], model)
        earlier = np.clip(at[part][outside] - shifts[k], at[part][0], at[part][-1])
        out[part, k][outside] += model[outside, 0] - curve(earlier)[:, 0]
    return out
