"""Complex amplitudes of sines in a recording, with the drift beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.response.modulation import Complex

DRIFT_DEGREE = 3
"""Of the polynomial that takes up constant velocity, Coulomb friction and gravity along the way, line by line."""


def phasors(t: FloatArray, x: FloatArray, frequencies: Sequence[float]) -> Complex:
    """Complex amplitudes c with x = sum of Re(c exp(i w t)) + drift, by weighted least squares over all lines at once.

    The window falls to zero at both ends, so that what is left of the drift leaks nowhere; fitting all lines and the drift
    together leaves no leakage between them.

    Args:
        t: [s], shape [n_samples].
        x: shape [n_samples].
        frequencies: [Hz].
    """
    s = 2.0 * (t - t[0]) / (t[-1] - t[0]) - 1.0
    drift = np.polynomial.legendre.legvander(s, DRIFT_DEGREE)
    w = 2.0 * np.pi * np.asarray(frequencies)
    angle = t[:, np.newaxis] * w
    A = np.hstack([drift, np.cos(angle), -np.sin(angle)])
    window = np.cos(0.5 * np.pi * s) + 1e-9
    solution = np.linalg.lstsq(A * window[:, np.newaxis], x * window, rcond=None)[0]
    n, first = len(w), drift.shape[1]
    return np.asarray(solution[first : first + n] + 1j * solution[first + n :])
