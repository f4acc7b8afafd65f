"""What the spectrum says: how strong the noise is, how far the motion reaches, where to cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.notes import Note, Severity

MOTION_SHARE = 0.99
"""Share of the acceleration's power below the edge of the motion's band."""

BAND_FACTOR = 5.0
"""Cut-off over band edge: products of joint motions and friction reversals put torque at multiples of the motion's frequencies;
five keeps the fifth and costs under one percent of amplitude at the band edge with any order."""

SIGNAL_TO_NOISE = 4.0
"""A line of the spectrum counts as motion when it stands this far above the noise floor (6 dB)."""

MIN_PERIODS = 4.0
"""Segments of the averaged periodogram, at least."""

MAX_CUTOFF = 0.4
"""Of the sampling rate: above, the filter's slope folds."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Power spectral density of each column.

    Args:
        frequency: [Hz], shape [n_lines].
        power: [unit^2/Hz], shape [n_lines, n].
        floor: level of the noise, shape [n].
        rate: [Hz].
    """

    frequency: FloatArray
    power: FloatArray
    floor: FloatArray
    rate: float

    @property
    def noise(self) -> FloatArray:
        """Standard deviation of white noise with this floor, shape [n]."""
        return np.sqrt(self.floor * self.rate / 2.0)


def spectrum(values: FloatArray, rate: float) -> Spectrum:
    """Averaged periodogram of the second difference, divided by its response.

    Differencing first keeps the leakage of slow motion, ten orders of magnitude above the noise, out of the noise lines.
    """
    from scipy.signal import welch

    x = np.diff(values, n=2, axis=0)
    length = int(min(len(x), max(256, 2 ** int(np.log2(max(len(x) / MIN_PERIODS, 2.0))))))
    f, power = welch(x, fs=rate, nperseg=length, detrend="constant", axis=0)
    response = (2.0 * np.sin(np.pi * f / rate)) ** 4
    keep = f > 0.0
    power = power[keep] / response[keep, np.newaxis]
    return Spectrum(f[keep], power, noise_floor(f[keep], power, rate), rate)


def noise_floor(f: FloatArray, power: FloatArray, rate: float) -> FloatArray:
    """Median level of the upper half of the band: nothing an arm does reaches there at ordinary rates."""
    upper = power[f > 0.25 * rate]
    # The median of a chi-square spectrum estimate lies a little under its mean; at two degrees of freedom by ln 2.
    return np.median(upper, axis=0) if len(upper) else np.zeros(power.shape[1])


def motion_band(s: Spectrum) -> FloatArray:
    """Frequency below which `MOTION_SHARE` of each joint's acceleration lies [Hz]; zero for a joint that does not move."""
    w4 = (2.0 * np.pi * s.frequency[:, np.newaxis]) ** 4
    signal = np.where(contiguous(s.power > SIGNAL_TO_NOISE * s.floor), s.power - s.floor, 0.0) * w4
    total = signal.sum(axis=0)
    edge = np.zeros(s.power.shape[1])
    for j in np.flatnonzero(total > 0.0):
        share = np.cumsum(signal[:, j]) / total[j]
        edge[j] = s.frequency[int(np.searchsorted(share, MOTION_SHARE))]
    return edge


def contiguous(mask: np.ndarray) -> np.ndarray:
    """The lines from the lowest up to the last before a run of five that fail: a lone line above it is not motion."""
    out = np.zeros_like(mask)
    for j in range(mask.shape[1]):
        bad = np.convolve(~mask[:, j], np.ones(5), mode="valid") >= 5
        end = int(np.argmax(bad)) if bad.any() else len(mask)
        out[:end, j] = mask[:end, j]
    return out


@dataclass(frozen=True, slots=True)
class CutoffChoice:
    """The cut-off [Hz] and the reason for it."""

    cutoff: float
    note: Note


def chosen_cutoff(position: FloatArray, rate: float, joints: tuple[str, ...]) -> CutoffChoice:
    """Cut-off from the spectrum of the positions: `BAND_FACTOR` times the widest joint's band.

    Limited where acceleration would be noise and by the sampling rate.
    """
    s = spectrum(position, rate)
    band = motion_band(s)
    moves = position.std(axis=0) > 10.0 * s.noise
    if not (moves & (band > 0.0)).any():
        cutoff = MAX_CUTOFF * rate
        text = f"no joint moves above its noise: cut-off left at {cutoff:.3g} Hz"
        return CutoffChoice(cutoff, Note("cutoff-chosen", Severity.WARNING, text))
    widest = int(np.argmax(np.where(moves, band, 0.0)))
    cutoff = min(BAND_FACTOR * float(band[widest]), MAX_CUTOFF * rate)
    text = (
        f"cut-off {cutoff:.3g} Hz: {MOTION_SHARE:.0%} of the acceleration of {joints[widest]}, the fastest joint, lies below "
        f"{band[widest]:.3g} Hz, and {BAND_FACTOR:g} times that keeps what products of motions and friction add"
    )
    return CutoffChoice(cutoff, Note("cutoff-chosen", Severity.INFO, text))
