"""What held-out residuals still contain: correlation in time, friction shape, dependence on load and temperature, spectrum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray

_LAGS_SECONDS = 1.0
"""Autocorrelation is looked at this far."""
_BINS = 25
"""Of velocity or load, with equal numbers of samples."""
_FEWEST_PER_BIN = 8
_NO_LOAD = 1e-6
"""Range of the gravity torque over that of the measured one below which an axis carries no weight: round-off."""
BAND = 0.1
"""Half width of the band around measured torque, of the joint's largest torque, as in [Halper2024] figs. 4.2-4.3."""


@dataclass(frozen=True, eq=False)
class Binned:
    """Mean and spread of residuals over bins of something else.

    Args:
        centre: mean of that something in each bin.
        mean: of the residual [N m or N].
        spread: standard deviation of the residual within the bin.
    """

    centre: FloatArray
    mean: FloatArray
    spread: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualDiagnostics:
    """One channel's held-out residual.

    Args:
        name: of the channel.
        normalised: root mean square residual over the range (largest minus smallest) of the measured torque, a fraction.
        inside_band: fraction of samples whose residual is within `BAND` of the largest torque.
        lag: [s].
        autocorrelation: at those lags; 1 at lag zero.
        correlation_time: sum of the autocorrelation up to its first zero, times the step [s]; samples closer than this
            are not independent.
        frequency: [Hz].
        spectrum: amplitude density of the residual [N m/sqrt(Hz)].
        torque_spectrum: of the measured torque, for comparison.
        against_velocity: residual over drive velocity.
        against_gravity: residual over the torque that carries the weight; None for an axis that carries none.
        against_temperature: residual over the drive's temperature; None when the log has none or it did not change.
    """

    name: str
    normalised: float
    inside_band: float
    lag: FloatArray
    autocorrelation: FloatArray
    correlation_time: float
    frequency: FloatArray
    spectrum: FloatArray
    torque_spectrum: FloatArray
    against_velocity: Binned
    against_gravity: Binned | None
    against_temperature: Binned | None = None


def diagnose(
    name: str,
    time: FloatArray,
    residual: FloatArray,
    torque: FloatArray,
    velocity: FloatArray,
    gravity: FloatArray,
    *,
    temperature: FloatArray | None = None,
) -> ResidualDiagnostics:
    """All diagnostics of one channel of one run of uniform sampling.

    Args:
        name: of the channel.
        time: [s], shape [n_samples], like everything else.
        residual, torque: measured minus predicted, and measured [N m or N].
        velocity: of the drive [rad/s or m/s].
        gravity: torque that carries the weight in this pose [N m or N].
        temperature: of the drive [degrees Celsius], when recorded.
    """
    step = float(np.median(np.diff(time))) if len(time) > 1 else 1.0
    lag, correlation, correlation_time = autocorrelation(residual, step)
    frequency, spectrum = amplitude_density(residual, step)
    return ResidualDiagnostics(
        name=name,
        normalised=normalised_error(residual, torque),
        inside_band=inside_band(residual, torque),
        lag=lag,
        autocorrelation=correlation,
        correlation_time=correlation_time,
        frequency=frequency,
        spectrum=spectrum,
        torque_spectrum=amplitude_density(torque, step)[1],
        against_velocity=binned(velocity, residual),
        against_gravity=binned(gravity, residual) if np.ptp(gravity) > _NO_LOAD * np.ptp(torque) else None,
        against_temperature=binned(temperature, residual)
        if temperature is not None and np.ptp(temperature) > 0.0
        else None,
    )


def normalised_error(residual: FloatArray, torque: FloatArray) -> float:
    """Root mean square residual over the range of the torque; NaN for a torque that never changes."""
    span = float(np.ptp(torque))
    return float(np.sqrt(np.mean(residual**2))) / span if span > 0.0 else float("nan")


def inside_band(residual: FloatArray, torque: FloatArray) -> float:
    """Fraction of samples within `BAND` of the largest torque."""
    return float(np.mean(np.abs(residual) <= BAND * float(np.abs(torque).max())))


def autocorrelation(x: FloatArray, step: float) -> tuple[FloatArray, FloatArray, float]:
    """Lags [s], autocorrelation there, and the correlation time [s]."""
    centred = x - x.mean()
    count = max(2, min(len(x) - 1, int(_LAGS_SECONDS / step) + 1))
    lag: FloatArray = np.arange(count, dtype=np.float64) * step
    size = 1 << (2 * len(x) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    covariance: FloatArray = np.asarray(np.fft.irfft(power, size)[:count], dtype=np.float64)
    if covariance[0] <= 0.0:
        return lag, np.zeros(count), 0.0
    r = covariance / covariance[0]
    negative = np.flatnonzero(r <= 0.0)
    end = int(negative[0]) if negative.size else count
    return lag, r, float(step * (2.0 * r[1:end].sum() + 1.0))


def amplitude_density(x: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
    """Welch's estimate with half-overlapping Hann windows: frequency [Hz], root of the power density."""
    length = min(len(x), 1024)
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / length)
    starts = range(0, len(x) - length + 1, length - length // 2)
    pieces = np.array([x[start : start + length] - x[start : start + length].mean() for start in starts])
    power = np.mean(np.abs(np.fft.rfft(pieces * window, axis=1)) ** 2, axis=0) * step / np.sum(window**2)
    # One-sided: every frequency but zero and the highest of an even number stands for two.
    power[1 : len(power) if length % 2 else -1] *= 2.0
    frequency = np.fft.rfftfreq(length, step)
    return np.asarray(frequency[1:], dtype=np.float64), np.asarray(np.sqrt(power[1:]), dtype=np.float64)


def binned(over: FloatArray, residual: FloatArray) -> Binned:
    """Mean and spread of the residual in bins of equal population."""
    order = np.argsort(over, kind="stable")
    pieces = np.array_split(order, max(1, min(_BINS, len(order) // _FEWEST_PER_BIN)))
    return Binned(
        np.array([over[p].mean() for p in pieces]),
        np.array([residual[p].mean() for p in pieces]),
        np.array([residual[p].std() for p in pieces]),
    )


def run_names(traces: Mapping[str, FloatArray]) -> tuple[str, ...]:
    """The runs stored in a result's traces."""
    return tuple(dict.fromkeys(key.split(".")[0] for key in traces))
