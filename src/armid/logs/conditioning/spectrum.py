"""What the spectrum says: how strong the noise is, how far the motion reaches, where to cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.notes import Note, Severity

_MOTION_SHARE = 0.99
"""Share of the velocity's power, all joints together, below the edge of the motion's band."""

_BAND_FACTOR = 10.0
"""Cut-off over band edge, the usual rule of thumb of robot identification: products of joint motions and friction reversals put
torque at multiples of the motion's frequencies, and the filter must leave the motion itself untouched."""

_SIGNAL_TO_NOISE = 10.0
"""How far the peak of the velocity's spectrum must stand above its valley (10 dB) for anything to count as motion."""

_SEGMENTS = 2.0
"""Of the averaged periodogram: few, because the lines of slow motions lie close together."""

_SMOOTHING = 0.25
"""Octaves over which the spectrum is smoothed before its valley is looked for."""

_MAX_CUTOFF = 0.4
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
    x = np.diff(values, n=2, axis=0)
    length = int(min(len(x), max(256, 2 ** int(np.log2(max(len(x) / _SEGMENTS, 2.0))))))
    f, power = averaged_periodogram(x, rate, length)
    response = (2.0 * np.sin(np.pi * f / rate)) ** 4
    keep = f > 0.0
    power = power[keep] / response[keep, np.newaxis]
    return Spectrum(f[keep], power, _noise_floor(f[keep], power, rate), rate)


def averaged_periodogram(x: FloatArray, rate: float, length: int) -> tuple[FloatArray, FloatArray]:
    """One-sided power spectral density by the mean over half-overlapping stretches, each without its mean under a Hann window.

    [Welch1967].

    Args:
        x: uniform samples, shape [n, k].
        rate: [Hz].
        length: of a stretch, n at most.

    Returns:
        Frequencies [Hz], shape [n_lines], and power [unit^2/Hz], shape [n_lines, k].
    """
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / length)
    starts = range(0, len(x) - length + 1, length - length // 2)
    power = np.zeros((length // 2 + 1, x.shape[1]))
    for start in starts:
        part = x[start : start + length]
        lines = np.fft.rfft((part - part.mean(axis=0)) * window[:, np.newaxis], axis=0)
        power += lines.real**2 + lines.imag**2
    # Lines above zero stand for those below it, too; that at half the rate is its own mirror image.
    power[1 : -1 if length % 2 == 0 else None] *= 2.0
    f = np.asarray(np.fft.rfftfreq(length, 1.0 / rate), dtype=np.float64)
    return f, power / (len(starts) * rate * float(window @ window))


def _noise_floor(f: FloatArray, power: FloatArray, rate: float) -> FloatArray:
    """Median level of the upper half of the band: nothing an arm does reaches there at ordinary rates."""
    upper = power[f > 0.25 * rate]
    # The median of a chi-square spectrum estimate lies a little under its mean; at two degrees of freedom by ln 2.
    return np.median(upper, axis=0) if len(upper) else np.zeros(power.shape[1])


def _motion_band(s: Spectrum) -> tuple[float, float]:
    """Edge of the motion's band, and the valley where noise takes over [Hz].

    The velocity's spectrum falls with the motion and rises with the noise, whatever colour that has: what lies below the
    lowest point in between is motion. Zero when nothing rises above the noise.
    """
    velocity = (s.power * (2.0 * np.pi * s.frequency[:, np.newaxis]) ** 2).sum(axis=1)
    smooth = _octave_smoothed(s.frequency, velocity)
    peak = int(np.argmax(smooth[: max(1, len(smooth) // 2)]))
    valley = peak + int(np.argmin(smooth[peak:]))
    share = np.cumsum(velocity[: valley + 1])
    if share[-1] <= 0.0 or smooth[peak] < _SIGNAL_TO_NOISE * smooth[valley]:
        return 0.0, float(s.frequency[valley])
    return float(s.frequency[int(np.searchsorted(share, _MOTION_SHARE * share[-1]))]), float(s.frequency[valley])


def _octave_smoothed(frequency: FloatArray, power: FloatArray) -> FloatArray:
    """Mean over a band of constant relative width around each line."""
    total = np.concatenate([[0.0], np.cumsum(power)])
    low = np.searchsorted(frequency, frequency * 2.0 ** (-_SMOOTHING / 2.0), side="left")
    high = np.searchsorted(frequency, frequency * 2.0 ** (_SMOOTHING / 2.0), side="right")
    return (total[high] - total[low]) / (high - low)


@dataclass(frozen=True, slots=True)
class CutoffChoice:
    """The cut-off [Hz] and the reason for it."""

    cutoff: float
    note: Note


def chosen_cutoff(position: FloatArray, rate: float) -> CutoffChoice:
    """Cut-off from the spectrum of the positions, shape [n_samples, n]: `_BAND_FACTOR` times the motion's band.

    Limited by the sampling rate only: between the valley and the cut-off acceleration is partly noise, but leaving it out
    would flatten friction reversals in the torque.
    """
    edge, valley = _motion_band(spectrum(position, rate))
    if edge == 0.0:
        cutoff = _MAX_CUTOFF * rate
        text = f"no joint moves above its noise: cut-off left at {cutoff:.3g} Hz"
        return CutoffChoice(cutoff, Note("cutoff-chosen", Severity.WARNING, text))
    cutoff = min(_BAND_FACTOR * edge, _MAX_CUTOFF * rate)
    text = (
        f"cut-off {cutoff:.3g} Hz: {_MOTION_SHARE:.0%} of the velocity's power lies below {edge:.3g} Hz, and "
        f"{'the sampling rate allows no more' if cutoff < _BAND_FACTOR * edge else f'{_BAND_FACTOR:g} times that keeps'} "
        f"what products of motions and friction reversals add (noise outweighs velocity above {valley:.3g} Hz)"
    )
    return CutoffChoice(cutoff, Note("cutoff-chosen", Severity.INFO, text))
