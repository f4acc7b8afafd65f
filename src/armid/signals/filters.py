"""Zero-phase low-pass filters, whole or in pieces with the same result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from armid.arrays import FloatArray
from armid.signals.recursive import filter_packs, packed, unpacked

_SETTLED = 1e-9
"""What is left of a filter's impulse response is negligible below this fraction."""

_MAX_NYQUIST = 0.95
"""Fraction of the Nyquist frequency above which a low-pass does nothing useful."""


class FilterKind(StrEnum):
    """Where the poles of a low-pass lie."""

    BUTTERWORTH = "butterworth"
    """On a circle: as flat as can be below the cut-off. Rings after a step, the more the higher its order."""
    CRITICAL = "critical"
    """All at one real value: never overshoots, but rolls off slowly; what is below the cut-off is weakened too."""


@dataclass(frozen=True)
class LowPass:
    """Low-pass run forward and backward: no phase, half the amplitude at the cut-off.

    The amplitude is 1 / (1 + (f/fc)^(2 order)) of Butterworth's, and (1 + (2^(1/order) - 1) (f/fc)^2)^-order of the critically
    damped one.

    Args:
        rate: of the signal [Hz].
        cutoff: [Hz]; infinite for no filter.
        order: of the one-way filter.
        kind: where its poles lie.
    """

    rate: float
    cutoff: float
    order: int = 4
    kind: FilterKind = FilterKind.BUTTERWORTH

    @property
    def passes_all(self) -> bool:
        return not self.cutoff < _MAX_NYQUIST * self.rate / 2.0

    @cached_property
    def sections(self) -> FloatArray:
        """Second-order sections [b0 b1 b2 1 a1 a2], shape [ceil(order / 2), 6]: the only form that stays accurate at order 20.

        Butterworth's poles `exp(i pi (2 k + order + 1) / (2 order))` times the warped cut-off, through the bilinear transform
        `z = (1 + u) / (1 - u)`; each section passes a constant unchanged.
        """
        warped = np.tan(np.pi * self.cutoff / self.rate)
        # One pole of each pair; a real one is left over when the order is odd.
        angles = np.pi * (2.0 * np.arange((self.order + 1) // 2) + self.order + 1.0) / (2.0 * self.order)
        if self.kind is FilterKind.CRITICAL:
            angles = np.full_like(angles, np.pi)
            warped /= np.sqrt(2.0 ** (1.0 / self.order) - 1.0)
        u = warped * np.exp(1j * angles)
        z, short = (1.0 + u) / (1.0 - u), -2.0 * u / (1.0 - u)  # short = 1 - z, without cancellation
        rows = []
        for k, (pole, gap) in enumerate(zip(z, short, strict=True)):
            if 2 * k + 1 == self.order:
                gain = gap.real / 2.0
                rows.append([gain, gain, 0.0, 1.0, -pole.real, 0.0])
            else:
                gain = abs(gap) ** 2 / 4.0
                rows.append([gain, 2.0 * gain, gain, 1.0, -2.0 * pole.real, abs(pole) ** 2])
        # From the fastest to the slowest pole: what rings longest comes last.
        return np.array(rows[::-1])

    @cached_property
    def settling(self) -> int:
        """Samples after which the one-way impulse response has decayed to `_SETTLED`; from the slowest pole."""
        if self.passes_all:
            return 0
        # Section [b0 b1 b2 1 a1 a2]: the poles are the roots of z^2 + a1 z + a2.
        radius = max(float(np.abs(np.roots([1.0, *section[4:]])).max()) for section in self.sections)
        return int(np.ceil(np.log(_SETTLED) / np.log(radius)))

    @property
    def transient(self) -> float:
        """Time the ends of a filtered signal cannot be trusted [s]: one period of the cut-off."""
        return 0.0 if self.passes_all else 1.0 / self.cutoff


def low_pass(values: FloatArray, filter: LowPass, *, periodic: bool = False) -> FloatArray:
    """The filtered columns of an array [n_samples, ...], same shape, columns contiguous.

    Ends are continued by odd reflection, or around the period.
    """
    if filter.passes_all:
        return values
    count = len(values)
    columns = values.reshape(count, -1)
    if periodic:
        wrap = -(-filter.settling // count)
        skipped, wide = wrap * count, np.tile(columns, (2 * wrap + 1, 1))
    else:
        skipped = max(0, min(count - 2, filter.settling))
        wide = _reflected(columns, skipped)
    packs = packed(wide)
    for backward in (False, True):
        first = packs[:, -1 if backward else 0]
        state = np.ascontiguousarray(
            _steady_state(filter.sections)[:, :, np.newaxis] * first[:, np.newaxis, np.newaxis]
        )
        filter_packs(packs, filter.sections, state=state, backward=backward)
    return unpacked(packs[:, skipped : skipped + count], columns.shape[1]).reshape(values.shape)


def _reflected(columns: FloatArray, reach: int) -> FloatArray:
    """Columns continued by odd reflection at both ends, which keeps value and slope."""
    if reach == 0:
        return columns
    before, after = columns[reach:0:-1], columns[-2 : -reach - 2 : -1]
    return np.concatenate([2.0 * columns[0] - before, columns, 2.0 * columns[-1] - after])


def _steady_state(sections: FloatArray) -> FloatArray:
    """State of each section that a constant one at the input keeps, shape [n_sections, 2]."""
    out, level = np.empty((len(sections), 2)), 1.0
    for row, (b0, b1, b2, _, a1, a2) in zip(out, sections, strict=True):
        gain = (b0 + b1 + b2) / (1.0 + a1 + a2)
        row[1] = level * (b2 - a2 * gain)
        row[0] = level * (b1 - a1 * gain) + row[1]
        level *= gain
    return out
