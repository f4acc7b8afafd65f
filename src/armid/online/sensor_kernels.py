"""One sample of the watch of torque sensors, compiled: some fifty operations per channel, which array by array took 45 us."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.numba_cache import compiled


@compiled(nogil=True)
def follow(
    known: FloatArray,
    torque: FloatArray,
    counted: npt.NDArray[np.bool_],
    sigma: FloatArray,
    walk: float,
    samples: int,
    energy: FloatArray,
    state: FloatArray,
    covariance: FloatArray,
) -> None:
    """A step of the random walk and a measurement of every channel; what is known of the channels changes in place.

    Args:
        known: torque of the arm it started from, shape [m].
        torque: measured, less what the gains known to begin with explain, shape [m].
        counted: channels that count, shape [m].
        sigma: noise, shape [m].
        walk: variance that a gain gains in a sample.
        samples: so far, this one included.
        energy: sum of the squares of `known` so far, shape [m].
        state: gain and offset, shape [m, 2].
        covariance: theirs, shape [m, 2, 2].
    """
    for k in range(len(known)):
        h = known[k]
        energy[k] += h * h
        p00 = covariance[k, 0, 0] + walk
        p01 = covariance[k, 0, 1]
        p11 = covariance[k, 1, 1] + walk * energy[k] / samples
        if counted[k]:
            a, b = p00 * h + p01, p01 * h + p11
            spread = h * a + b + sigma[k] * sigma[k]
            error = (torque[k] - h * state[k, 0] - state[k, 1]) / spread
            state[k, 0] += a * error
            state[k, 1] += b * error
            p00 -= a * a / spread
            p01 -= a * b / spread
            p11 -= b * b / spread
        covariance[k, 0, 0], covariance[k, 1, 1] = p00, p11
        covariance[k, 0, 1] = covariance[k, 1, 0] = p01


@compiled(nogil=True)
def any_news(
    state: FloatArray,
    covariance: FloatArray,
    limit: FloatArray,
    sure: float,
    said: npt.NDArray[np.bool_],
    new: npt.NDArray[np.bool_],
) -> bool:
    """Whether a gain or an offset has just gone beyond its limit; which, in `new`, and what was said already, in place.

    Args:
        state: shape [m, 2].
        covariance: shape [m, 2, 2].
        limit: shape [m, 2].
        sure: deviations by which it must be beyond noise.
        said: what has been said and holds still, shape [m, 2].
        new: what is new, shape [m, 2].
    """
    found = False
    for k in range(len(state)):
        for part in range(2):
            now = abs(state[k, part])
            noise = sure * np.sqrt(max(covariance[k, part, part], 0.0))
            beyond = now > limit[k, part] and now > noise
            new[k, part] = beyond and not said[k, part]
            said[k, part] = (said[k, part] or beyond) and now > 0.5 * limit[k, part]
            found = found or new[k, part]
    return found
