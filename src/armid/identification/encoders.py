"""Motion as encoders without errors would have recorded it: discs that sit off their axes, readings that came late."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.signals.spline import CubicSpline

_NEWTON_STEPS = 5
"""Each doubles the digits; two from a degree."""


def centred(read: FloatArray, sine: float, cosine: float) -> FloatArray:
    """Angle, velocity and acceleration as a disc without eccentricity would have them, shape [n, 3].

    The angle q is read as q + s sin(q) + c cos(q); a few steps of Newton's method undo that.
    """
    angle, velocity, acceleration = read.T
    q = angle
    for _ in range(_NEWTON_STEPS):
        error = sine * np.sin(q) + cosine * np.cos(q)
        q = q - (q + error - angle) / (1.0 + sine * np.cos(q) - cosine * np.sin(q))
    stretch = 1.0 + sine * np.cos(q) - cosine * np.sin(q)
    qd = velocity / stretch
    qdd = (acceleration + (sine * np.sin(q) + cosine * np.cos(q)) * qd**2) / stretch
    return np.column_stack([q, qd, qdd])


def sooner(read: FloatArray, late: float, rate: float) -> FloatArray:
    """Motion that was recorded late, when it happened; beyond what is known the last acceleration goes on.

    Args:
        read: position, velocity, acceleration of one joint, and the direction of its friction where that is given, of one
            stretch of uniform sampling, shape [n, 3 or 4].
        late: by how much [s]; negative for what came early.
        rate: [Hz].
    """
    if len(read) < 4:
        return read
    at = np.arange(float(len(read)))
    wanted = at + late * rate
    within = np.clip(wanted, 0.0, at[-1])
    out = np.empty_like(read)
    out[:, :3] = CubicSpline.through(at, read[:, :3])(within)
    beyond = (wanted - within) / rate
    out[:, 0] += out[:, 1] * beyond + 0.5 * out[:, 2] * beyond**2
    out[:, 1] += out[:, 2] * beyond
    for direction, recorded in zip(out.T[3:], read.T[3:], strict=True):
        direction[:] = np.interp(within, at, recorded)  # a spline would swing about its jumps
    return out
