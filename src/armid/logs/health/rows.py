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

SPIKE_JUMP = 6.0
"""And times the larger of the local steps to the neighbours two samples away: fast motion is not a spike."""


def usable_rows(log: Log) -> Mask:
    """Rows whose position and torques are finite, believable and not spikes."""
    good = np.isfinite(log.time)
    for channel in needed(log):
        good &= ~corrupt(log[channel], ABSURD[channel]).any(axis=1)
    for channel in needed(log):
        good &= ~spikes(log[channel], good).any(axis=1)
    return good


def needed(log: Log) -> tuple[Channel, ...]:
    """The channels identification uses."""
    return tuple(c for c in (Channel.POSITION, *log.torques) if c in log)


def corrupt(values: FloatArray, limit: float) -> Mask:
    """Numbers that are missing or absurd."""
    with np.errstate(invalid="ignore"):
        return ~(np.abs(values) < limit)


def spikes(values: FloatArray, good: Mask) -> Mask:
    """Single samples far off the line between their neighbours, by many times the ordinary distance from it.

    The distance of a sample from the mean of its two neighbours is compared with the same distance two steps wide, so that real
    steps (both sides differ) and fast motion do not count.
    """
    out = np.zeros(values.shape, dtype=np.bool_)
    if len(values) < 7:
        return out
    x = np.where(good[:, np.newaxis], values, 0.0) if not good.all() else values
    bend = np.zeros_like(x)
    bend[1:-1] = x[1:-1] - 0.5 * (x[:-2] + x[2:])
    # A spike stands out from both neighbours alike: the neighbours agree with each other.
    agree = np.zeros_like(x)
    agree[1:-1] = np.abs(x[2:] - x[:-2])
    size = np.abs(bend)
    scatter = np.maximum(np.median(size, axis=0) * 1.4826, np.mean(size, axis=0) * 1.2533)
    resolution = np.maximum(scatter, 1e-12 * np.abs(x).max(axis=0))
    wide = np.zeros_like(x)
    wide[2:-2] = np.abs(x[2:-2] - 0.5 * (x[:-4] + x[4:]))
    near = np.zeros_like(x)
    near[2:-2] = np.maximum(size[:-4], size[4:])
    out[2:-2] = (
        (size > SPIKE * resolution) & (size > SPIKE_JUMP * agree / 2.0) & (size > SPIKE_JUMP * near)
    )[2:-2]  # fmt: skip
    return out & good[:, np.newaxis]
