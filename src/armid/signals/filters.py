"""Zero-phase low-pass filters, whole or in pieces with the same result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from armid.arrays import FloatArray

SETTLED = 1e-9
"""What is left of a filter's impulse response is negligible below this fraction."""

MAX_NYQUIST = 0.95
"""Fraction of the Nyquist frequency above which a low-pass does nothing useful."""


@dataclass(frozen=True)
class LowPass:
    """Butterworth low-pass run forward and backward: no phase, amplitude 1/(1 + (f/fc)^(2 order)), half at the cut-off.

    Args:
        rate: of the signal [Hz].
        cutoff: [Hz]; infinite for no filter.
        order: of the one-way filter.
    """

    rate: float
    cutoff: float
    order: int = 4

    @property
    def passes_all(self) -> bool:
        return not self.cutoff < MAX_NYQUIST * self.rate / 2.0

    @cached_property
    def sections(self) -> FloatArray:
        """Second-order sections, shape [ceil(order / 2), 6]: the only form that stays accurate at order 20."""
        from scipy.signal import butter

        return np.asarray(butter(self.order, self.cutoff, fs=self.rate, output="sos"), dtype=np.float64)

    @cached_property
    def settling(self) -> int:
        """Samples after which the one-way impulse response has decayed to `SETTLED`; from the slowest pole."""
        if self.passes_all:
            return 0
        # Section [b0 b1 b2 1 a1 a2]: the poles are the roots of z^2 + a1 z + a2.
        radius = max(float(np.abs(np.roots([1.0, *section[4:]])).max()) for section in self.sections)
        return int(np.ceil(np.log(SETTLED) / np.log(radius)))

    @property
    def transient(self) -> float:
        """Time the ends of a filtered signal cannot be trusted [s]: one period of the cut-off."""
        return 0.0 if self.passes_all else 1.0 / self.cutoff


def low_pass(values: FloatArray, filter: LowPass, *, periodic: bool = False) -> FloatArray:
    """The filtered columns of an array [n_samples, ...], same shape, columns contiguous.

    Ends are continued by odd reflection, or around the period.
    """
    from scipy.signal import sosfiltfilt

    if filter.passes_all:
        return values
    count = len(values)
    columns = np.ascontiguousarray(values.reshape(count, -1).T)
    if periodic:
        wrap = -(-filter.settling // count)
        tiled = np.tile(columns, 2 * wrap + 1)
        out = sosfiltfilt(filter.sections, tiled, axis=-1, padlen=0)[:, wrap * count : (wrap + 1) * count]
    else:
        out = sosfiltfilt(filter.sections, columns, axis=-1, padlen=max(0, min(count - 2, filter.settling)))
    return np.asarray(out).T.reshape(values.shape)
