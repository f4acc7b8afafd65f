"""Which frequencies one axis was excited with: those given, or those its velocity shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.motions.sweep import check_frequencies
from armid.response.axis_fit import Excited
from armid.response.phasors import DRIFT_DEGREE, phasors

_FEWEST_PERIODS = 3.0
"""Of the slowest sine: with fewer, drift and sine cannot be told apart."""

_MOST_LINES = 12
"""More peaks than this are the ripples of a chirp."""

_CHIRP_RESIDUAL = 0.2
"""Of the oscillation: when sines at all peaks leave more, it was no sum of sines."""

_CHIRP_FLOOR = 0.5
"""Of its level: where the spectrum of a chirp is above this the axis was excited."""


def excitation_of(
    t: FloatArray,
    q: FloatArray,
    frequencies: Sequence[float],
    band: tuple[float, float] | None,
    *,
    axis: str,
    name: str,
) -> Excited:
    """The frequencies given, or those the spectrum shows.

    Raises:
        InputError: above Nyquist, not positive, or none to be seen.
    """
    rate = sampling_rate(name, t)
    if band is not None:
        check_frequencies(axis, band, rate)
        return Excited(min(band), max(band))
    if frequencies:
        check_frequencies(axis, frequencies, rate)
        return Excited(min(frequencies), max(frequencies), tuple(frequencies))
    return found_excitation(t, q, rate, axis)


def sampling_rate(name: str, t: FloatArray) -> float:
    steps = np.diff(t)
    if len(t) < 16 or not (steps > 0.0).all():
        raise InputError(name, "time does not increase, or too few samples", "a recording at a constant rate")
    return float(1.0 / np.median(steps))


def found_excitation(t: FloatArray, q: FloatArray, rate: float, axis: str) -> Excited:
    """Sines that stand out of the velocity's spectrum, refined between its bins; or the band of a chirp."""
    v = np.gradient(q, t)
    trend = np.polynomial.polynomial.Polynomial.fit(t, v, DRIFT_DEGREE)(t)
    f = np.asarray(np.fft.rfftfreq(8 * len(v), 1.0 / rate), dtype=np.float64)
    size, flat = (np.abs(np.fft.rfft((v - trend) * w, 8 * len(v))) for w in (np.hanning(len(v)), np.ones(len(v))))
    if size.max() < 10.0 * np.median(size[f < 0.4 * rate]):
        raise InputError(f"joint {axis!r}", "no sine stands out of its velocity", "give --frequency-hz")
    inner = size[1:-1]
    peaks = np.flatnonzero((inner >= size[:-2]) & (inner > size[2:]) & (inner > 0.2 * size.max())) + 1
    lines = _refined(t, q, [float(f[i]) for i in peaks]) if len(peaks) <= _MOST_LINES else ()
    if lines and _unexplained(t, q, lines) < _CHIRP_RESIDUAL:
        return Excited(min(lines), max(lines), lines)
    # The ends of a chirp lie at the ends of the recording, where a window would hide them.
    return Excited(*_widest(f, flat > _CHIRP_FLOOR * np.median(flat[flat > 0.5 * flat.max()])))


def _unexplained(t: FloatArray, q: FloatArray, lines: Sequence[float]) -> float:
    """Share of the oscillation that these sines leave."""
    s = 2.0 * (t - t[0]) / (t[-1] - t[0]) - 1.0
    drift = np.polynomial.legendre.legvander(s, DRIFT_DEGREE)
    angle = 2.0 * np.pi * np.outer(t - t[0], lines)
    left = []
    for A in (drift, np.hstack([drift, np.cos(angle), np.sin(angle)])):
        left.append(float(np.linalg.norm(q - A @ np.linalg.lstsq(A, q, rcond=None)[0])))
    return left[1] / left[0]


def _widest(f: FloatArray, above: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """First and last frequency of the longest run; gaps of a few bins (ripples of a chirp) do not end one."""
    places = np.flatnonzero(above)
    runs = np.split(places, np.flatnonzero(np.diff(places) > 8) + 1)
    best = max(runs, key=lambda run: int(run[-1] - run[0]))
    return float(f[best[0]]), float(f[best[-1]])


def _refined(t: FloatArray, q: FloatArray, frequencies: Sequence[float], *, iterations: int = 8) -> tuple[float, ...]:
    """Frequencies that explain the position best, by Gauss-Newton from near ones: a hundredth of a hertz off shifts phases."""
    f = np.array(frequencies)
    middle = 0.5 * (t[0] + t[-1])
    for _ in range(iterations):
        c = phasors(t, q, f.tolist())
        waves = c * np.exp(2j * np.pi * np.outer(t, f))
        s = 2.0 * (t - t[0]) / (t[-1] - t[0]) - 1.0
        drift = np.polynomial.legendre.legvander(s, DRIFT_DEGREE)
        # Derivative by frequency around the middle of the window, where it is not confused with the phase.
        by_frequency = (2j * np.pi * (t - middle)[:, np.newaxis] * waves).real
        A = np.hstack([by_frequency, drift, waves.real, waves.imag])
        window = (np.cos(0.5 * np.pi * s) + 1e-9)[:, np.newaxis]
        norms = np.linalg.norm(A * window, axis=0)
        step = np.linalg.lstsq(A * window / norms, (q * window[:, 0]), rcond=None)[0] / norms
        f = f + step[: len(f)]
        if np.abs(step[: len(f)]).max() < 1e-7:
            break
    return tuple(float(x) for x in f)


def check_length(name: str, t: FloatArray, slowest: float) -> None:
    periods = (t[-1] - t[0]) * slowest
    if periods < _FEWEST_PERIODS:
        raise InputError(
            name, f"{periods:.2g} periods of {slowest:g} Hz in the steady part", f"record at least {_FEWEST_PERIODS:g}"
        )
