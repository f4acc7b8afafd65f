"""Rows that cannot be measurements: missing numbers, corrupt packets, spikes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.logs.log import Channel, Log

Mask = npt.NDArray[np.bool_]

ABSURD = {
    Channel.POSITION: 1e4,
    Channel.VELOCITY: 1e4,
    Channel.LINK_TORQUE: 1e6,
    Channel.MOTOR_TORQUE: 1e6,
    Channel.CURRENT: 1e6,
    Channel.COMMANDED_TORQUE: 1e6,
}
"""SI units. No arm turns a thousand revolutions or carries a meganewton metre: such numbers are damaged bytes."""

SPIKE = 12.0
"""Times the local scatter. Gaussian noise never gets there; a flipped bit or a lost digit does."""

USUAL = 0.98
"""Quantile of distances that is still ordinary; 2.5 standard deviations of Gaussian noise."""

SCALE_SAMPLES = 5000
"""Samples from which the scale is taken; a long log needs no more."""

SPIKE_JUMP = 6.0
"""And times the distance between its two neighbours, and their own distances: fast motion is not a spike."""


def usable_rows(log: Log) -> Mask:
    """Rows whose position and torques are finite, believable and not spikes."""
    good = np.isfinite(log.time)
    for channel in needed(log):
        good &= ~corrupt(log[channel], ABSURD[channel]).any(axis=1)
    for channel in needed(log):
        good &= ~spikes(log[channel], good).any(axis=1)
    return good


def needed(log: Log) -> tuple[Channel, ...]:
    """The channels identification uses: what a controller asked for matters only when nothing was measured."""
    measured = [c for c in log.torques if c is not Channel.COMMANDED_TORQUE]
    return tuple(c for c in (Channel.POSITION, *(measured or log.torques)) if c in log)


def corrupt(values: FloatArray, limit: float) -> Mask:
    """Numbers that are missing or absurd."""
    with np.errstate(invalid="ignore"):
        return ~(np.abs(values) < limit)


def spikes(values: FloatArray, good: Mask) -> Mask:
    """Single samples far off the line between their neighbours, by many times the ordinary distance from it.

    The neighbours must agree with each other, so that real steps and fast motion do not count.
    """
    out = np.zeros(values.shape, dtype=np.bool_)
    if len(values) < 7 or not good.any():
        return out
    x = np.where(good[:, np.newaxis], values, 0.0) if not good.all() else values
    size = np.zeros_like(x)
    size[1:-1] = np.abs(x[1:-1] - 0.5 * (x[:-2] + x[2:]))
    # Heavy tails and friction reversals bend a torque, too: the largest ordinary distances set the scale as well.
    thin = size[1 : -1 : max(1, len(size) // SCALE_SAMPLES)]
    ordinary = np.maximum(np.median(thin, axis=0) * 1.4826, np.quantile(thin, USUAL, axis=0) / 2.5)
    ordinary = np.maximum(ordinary, resolution(x))
    far = size > SPIKE * ordinary
    if far.any():
        around = np.maximum(size[:-4], size[4:])
        far &= size > SPIKE_JUMP * apart_of(x)
        out[2:-2] = far[2:-2] & (size[2:-2] > SPIKE_JUMP * around)
    return out & good[:, np.newaxis]


def apart_of(x: FloatArray) -> FloatArray:
    """Distance between the two neighbours of each sample."""
    apart = np.zeros_like(x)
    apart[1:-1] = np.abs(x[2:] - x[:-2])
    return apart


def resolution(x: FloatArray) -> FloatArray:
    """The smallest step of each column that is more than rounding: at rest a channel flickers by it."""
    step = np.abs(np.diff(x, axis=0))
    floor = 1e-9 * np.maximum(np.abs(x).max(axis=0), 1e-12)
    smallest = np.where(step > floor, step, np.inf).min(axis=0)
    return np.where(np.isfinite(smallest), smallest, 0.0)
