"""Rows that cannot be measurements: missing numbers, corrupt packets, spikes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.logs.health.thresholds import (
    ABSURD_MOTION,
    ABSURD_TORQUE,
    FEW,
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

_SHORT = 64
"""Consecutive samples that are taken for equally loud."""

_GAUSSIAN = 1.4826
"""Standard deviations of Gaussian noise per median distance from zero."""

_QUIETEST = 0.1257
"""Distance from zero, in standard deviations, that a tenth of Gaussian noise stays below."""

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
        with np.errstate(invalid="ignore", over="ignore"):
            speed = np.abs(q[2:, j] - q[:-2, j])
        around = np.clip(at[:, np.newaxis] + np.arange(-3, 2), 0, len(speed) - 1)
        top = float(np.max(speed, where=good[1:-1] & np.isfinite(speed), initial=0.0))
        slow = speed[around].min(axis=1) < REVERSING * top
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

    The neighbours must agree with each other, so that real steps and fast motion do not count; a channel at rest flickers by its
    resolution.
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
    least = SPIKE * np.maximum(_GAUSSIAN * np.median(_thin(size), axis=0), resolution(x))
    if (size.max(axis=0) <= least).all():
        return out
    lonely = _stands_alone(x, size)
    alone = lonely & (size > least)
    if alone.any():
        out[1:-1] = alone & (size > SPIKE * _ordinary_distance(size, least))
    return (out | _crowded(lonely, size, resolution(x))) & good[:, np.newaxis]


def _crowded(lonely: Mask, size: FloatArray, step: FloatArray) -> Mask:
    """Spikes so many that they make the ordinary distances themselves: each bends three samples, and whole stretches in the end.

    The quietest tenth of the samples tells the noise all the same. Only a channel that has more of them by that measure than may
    be left out without asking has them at all: clean and recorded channels had less than half as many.

    Args:
        lonely: samples, all but the two ends, that stand alone.
        size: their distances from the line between their neighbours.
        step: resolution of each column.
    """
    out = np.zeros((len(size) + 2, size.shape[1]), dtype=np.bool_)
    quiet = np.maximum(np.quantile(_thin(size), 0.1, axis=0) / _QUIETEST, step)
    found = lonely & (size > SPIKE * quiet)
    out[1:-1] = found & (found.mean(axis=0) > FEW)
    return out


def _stands_alone(x: FloatArray, size: FloatArray) -> Mask:
    """Samples, all but the two ends, whose neighbours agree with each other and with theirs, however far off they are."""
    out = np.zeros(size.shape, dtype=np.bool_)
    if len(size) <= 4:
        return out
    apart = np.abs(x[2:] - x[:-2])
    around = np.maximum(size[:-4], size[4:])
    step = np.abs(np.diff(x, axis=0))
    # The tip of a fast swing is approached and left by steps as large as itself.
    swing = np.maximum(step[1:-4], step[4:-1])
    own = size[2:-2]
    out[2:-2] = (own > SPIKE_JUMP * apart[2:-2]) & (own > SPIKE_JUMP * around) & (own > SPIKE_SWING * swing)
    return out


def _ordinary_distance(size: FloatArray, least: FloatArray) -> FloatArray:
    """How far samples usually stand off the line between their neighbours, per column.

    Heavy tails and friction reversals bend a torque, too: the largest ordinary distances set the scale as well. Spikes must not,
    nor the neighbours that they bend: the more there were, the fewer would be found.

    Args:
        size: distances.
        least: below which none is a spike, per column.
    """
    far = size > np.maximum(least, SPIKE * _GAUSSIAN * _around(size))
    far[1:] |= far[:-1]
    far[:-1] |= far[1:]
    thin = np.where(_thin(far), np.nan, _thin(size))
    return np.asarray(np.nan_to_num(np.nanquantile(thin, USUAL, axis=0)) / 2.5)


def _around(size: FloatArray) -> FloatArray:
    """Median of the distances of the same short stretch: an arm that moves now and then is louder there."""
    whole = len(size) - len(size) % _SHORT
    if not whole:
        return np.broadcast_to(np.median(size, axis=0), size.shape)
    middle = np.median(size[:whole].reshape(-1, _SHORT, size.shape[1]), axis=1)
    return np.asarray(np.repeat(middle, _SHORT, axis=0)[np.minimum(np.arange(len(size)), whole - 1)])


def _thin(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rows of a long log from which a scale is taken."""
    return values[:: max(1, len(values) // _SCALE_SAMPLES)]


def resolution(x: FloatArray) -> FloatArray:
    """The smallest step of each column that is more than rounding, from a few stretches of it; none where nothing steps."""
    starts = np.linspace(0, max(0, len(x) - _STRETCH), 1 if len(x) <= _STRETCH else 8).astype(int)
    step = np.abs(np.concatenate([np.diff(x[k : k + _STRETCH], axis=0) for k in starts]))
    floor = 1e-9 * np.maximum(np.abs(x[::100]).max(axis=0, initial=0.0), 1e-12)
    smallest = np.where(step > floor, step, np.inf).min(axis=0, initial=np.inf)
    return np.where(np.isfinite(smallest), smallest, 0.0)
