"""Rows that cannot be measurements: missing numbers, corrupt packets, spikes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.logs.health.thresholds import (
    ABSURD_MOTION,
    ABSURD_TORQUE,
    JUMP,
    REVERSING,
    SPIKE,
    SPIKE_JUMP,
    SPIKE_SWING,
    USUAL,
)
from armid.logs.log import Channel, Log

Mask = npt.NDArray[np.bool_]

ABSURD = {
    Channel.POSITION: ABSURD_MOTION,
    Channel.VELOCITY: ABSURD_MOTION,
    Channel.LINK_TORQUE: ABSURD_TORQUE,
    Channel.MOTOR_TORQUE: ABSURD_TORQUE,
    Channel.CURRENT: ABSURD_TORQUE,
    Channel.COMMANDED_TORQUE: ABSURD_TORQUE,
}
"""SI units: from which on a number is damaged bytes."""


_SCALE_SAMPLES = 5000
"""Samples from which the scale is taken; a long log needs no more."""

_STRETCH = 1000
"""Consecutive samples of one look at the resolution."""


def usable_rows(log: Log) -> Mask:
    """Rows whose position and torques are finite, believable and not spikes."""
    good: Mask = np.isfinite(log.time)
    for channel in needed(log):
        if not within(log[channel], ABSURD[channel]):
            good &= ~corrupt(log[channel], ABSURD[channel]).any(axis=1)
    for channel in needed(log):
        found = channel_spikes(log, channel, good)
        if found.any():
            good &= ~found.any(axis=1)
    return good


def channel_spikes(log: Log, channel: Channel, good: Mask) -> Mask:
    """Spikes of a channel; of torque, not those that friction can cause where the joint reverses or stops."""
    found = spikes(log[channel], good)
    if channel is Channel.POSITION or not found.any():
        return found
    values, q = log[channel], log[Channel.POSITION]
    for j in np.flatnonzero(found.any(axis=0)):
        at = np.flatnonzero(found[:, j])
        speed = np.abs(q[2:, j] - q[:-2, j])
        around = np.clip(at[:, np.newaxis] + np.arange(-3, 2), 0, len(speed) - 1)
        slow = speed[around].min(axis=1) < REVERSING * float(np.nanmax(np.where(good[1:-1], speed, 0.0)))
        low, high = np.quantile(values[good, j], (0.02, 0.98))
        off = np.abs(values[at, j] - 0.5 * (values[at - 1, j] + values[at + 1, j]))
        found[at[slow & (off < JUMP * (high - low))], j] = False
    return found


def needed(log: Log) -> tuple[Channel, ...]:
    """The channels identification uses: what a controller asked for matters only when nothing was measured."""
    measured = [c for c in log.torques if c is not Channel.COMMANDED_TORQUE]
    return tuple(c for c in (Channel.POSITION, *(measured or log.torques)) if c in log)


def within(values: FloatArray, limit: float) -> bool:
    """Whether nothing is missing or absurd; two reductions, which a long log passes in no time."""
    return len(values) == 0 or bool(np.all(values.max(axis=0) < limit) and np.all(values.min(axis=0) > -limit))


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
    x = values if good.all() else np.where(good[:, np.newaxis], values, 0.0)
    # |x[k] - (x[k-1] + x[k+1]) / 2| for all but the two ends, in place.
    size = x[:-2] + x[2:]
    size *= -0.5
    size += x[1:-1]
    np.abs(size, out=size)
    limit = SPIKE * _ordinary_distance(x, size)
    if (size.max(axis=0) <= limit).all():
        return out
    apart = np.abs(x[2:] - x[:-2])
    far = (size > limit) & (size > SPIKE_JUMP * apart)
    around = np.maximum(size[:-4], size[4:]) if len(size) > 4 else np.full_like(size[:0], np.inf)
    step = np.abs(np.diff(x, axis=0))
    # The tip of a fast swing is approached and left by steps as large as itself.
    swing = np.maximum(step[1:-4], step[4:-1])
    out[3:-3] = far[2:-2] & (size[2:-2] > SPIKE_JUMP * around) & (size[2:-2] > SPIKE_SWING * swing)
    return out & good[:, np.newaxis]


def _ordinary_distance(x: FloatArray, size: FloatArray) -> FloatArray:
    """How far samples usually stand off the line between their neighbours, per column.

    Heavy tails and friction reversals bend a torque, too: the largest ordinary distances set the scale as well, and a channel at
    rest flickers by its resolution.
    """
    thin = size[:: max(1, len(size) // _SCALE_SAMPLES)]
    scale = np.maximum(np.median(thin, axis=0) * 1.4826, np.quantile(thin, USUAL, axis=0) / 2.5)
    return np.maximum(scale, resolution(x))


def resolution(x: FloatArray) -> FloatArray:
    """The smallest step of each column that is more than rounding, from a few stretches of it."""
    starts = np.linspace(0, max(0, len(x) - _STRETCH), 1 if len(x) <= _STRETCH else 8).astype(int)
    step = np.abs(np.concatenate([np.diff(x[k : k + _STRETCH], axis=0) for k in starts]))
    floor = 1e-9 * np.maximum(np.abs(x[::100]).max(axis=0), 1e-12)
    smallest = np.where(step > floor, step, np.inf).min(axis=0)
    return np.where(np.isfinite(smallest), smallest, 0.0)
