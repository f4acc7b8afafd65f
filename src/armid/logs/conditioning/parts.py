"""Stretches of a log on uniform grids; the mean of repetitions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.conditioning.periods import averaged
from armid.logs.conditioning.settings import Conditioning
from armid.logs.conditioning.timebase import with_time_base
from armid.logs.conditioning.uniform import (
    Stretch,
    even_step,
    grid_of,
    resampled,
    stale_rows,
    stretches,
)
from armid.logs.health.rows import usable_rows
from armid.logs.log import Channel, Clock, Log
from armid.notes import Note, Severity

MIN_STRETCH = 20
"""Samples; a shorter piece between gaps has no derivatives worth having."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Uniform:
    """A stretch on a uniform grid.

    Args:
        log: whose rows it holds.
        time: uniform [s], shape [n_samples].
        rate: [Hz].
        channels: position, velocity if recorded, torques; shape [n_samples, n_joints].
        variances: of averaged torques.
        periodic: whether the last sample is followed by the first.
    """

    log: Log
    time: FloatArray
    rate: float
    channels: dict[Channel, FloatArray]
    variances: dict[Channel, FloatArray]
    periodic: bool = False


def uniform_parts(log: Log, settings: Conditioning) -> tuple[list[Uniform], list[Note]]:
    """The stretches of a log on uniform grids; of a repeated motion, on grids whose step divides the period."""
    if log.clock is Clock.UNKNOWN:
        raise InputError(
            log.name, "no clock, so no derivatives", "give the sampling step: --step, or clock in a mapping"
        )
    if not log.torques:
        raise InputError(log.name, "no torque channel", f"there are {', '.join(c.value for c in log.channels)}")
    usable = usable_rows(log)
    found = stretches(log, usable, settings.gap)
    long = [s for s in found if len(s.time) >= MIN_STRETCH]
    notes = []
    if not long:
        raise InputError(log.name, f"no stretch of {MIN_STRETCH} samples without a gap among {len(log)} rows")
    if len(found) > 1:
        dropped = len(found) - len(long)
        text = f"split at {len(found) - 1} gap(s)" + (
            f"; {dropped} piece(s) too short to use left out" if dropped else ""
        )
        notes.append(Note("split-at-gaps", Severity.INFO, text, log.name))
    based = [with_time_base(s) for s in long]
    notes += [note for _, note in based if note is not None][:1]
    return [_on_grid(stretch, settings) for stretch, _ in based], notes


def with_period(step: float, period: float | None) -> float:
    """The step nearest to one that divides the period [s]."""
    return step if period is None else period / max(1, round(period / step))


def _on_grid(stretch: Stretch, settings: Conditioning) -> Uniform:
    """Channels resampled; a period becomes a whole number of steps."""
    step = with_period(even_step(stretch), settings.period)
    grid = grid_of(stretch, step)
    if settings.torque_delay != 0.0:
        # Only where torque is known at the shifted time: no extrapolation.
        first, last = stretch.time[0] - settings.torque_delay, stretch.time[-1] - settings.torque_delay
        grid = grid[(grid >= first) & (grid <= last)]
    log = stretch.log
    stale = stale_rows(log[Channel.POSITION])
    channels = {}
    for channel, values in log.channels.items():
        if channel is Channel.POSITION or channel is Channel.VELOCITY or channel.is_torque:
            fresh = ~stale if channel is Channel.POSITION else ~(stale & stale_rows(values))
            finite = np.isfinite(values).all(axis=1)
            if channel is Channel.VELOCITY and finite.mean() < 0.5:
                continue
            late = settings.torque_delay if channel.is_torque else 0.0
            channels[channel] = resampled(stretch.time - late, values, grid, fresh & finite)
    return Uniform(log=log, time=grid, rate=1.0 / step, channels=channels, variances={})


def averaged_part(part: Uniform, period: float) -> Uniform:
    """The mean period, with the variance of the mean torque.

    A motion that was run only once stays as it is: it began and ended at rest, so its end is not followed by its beginning.
    """
    per_period = round(period * part.rate)
    if len(part.time) < 2 * per_period:
        return part
    means = {channel: averaged(values, per_period) for channel, values in part.channels.items()}
    repetitions = means[Channel.POSITION].repetitions
    variances = {c: a.variance for c, a in means.items() if c.is_torque and repetitions > 1}
    channels = {channel: a.mean for channel, a in means.items()}
    return replace(part, time=part.time[:per_period], channels=channels, variances=variances, periodic=True)
