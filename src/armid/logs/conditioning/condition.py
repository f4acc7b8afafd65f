"""Log to Samples: one function, every step of it elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.conditioning.differentiate import derivatives
from armid.logs.conditioning.filters import LowPass, check_length, low_pass
from armid.logs.conditioning.periods import averaged
from armid.logs.conditioning.settings import OVERSAMPLING, Conditioning, Differentiator, VelocitySource
from armid.logs.conditioning.spectrum import chosen_cutoff, spectrum
from armid.logs.conditioning.uniform import (
    Stretch,
    even_step,
    grid_of,
    resampled,
    stale_rows,
    stretches,
    with_time_base,
)
from armid.logs.health.refuse import refuse_errors
from armid.logs.health.rows import usable_rows
from armid.logs.log import Channel, Clock, Log, matched
from armid.logs.samples import Samples, Segment, concatenated
from armid.notes import Note, Severity
from armid.robot.robot import Robot

MIN_STRETCH = 20
"""Samples; a shorter piece between gaps has no derivatives worth having."""


@dataclass(frozen=True, eq=False)
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


def condition(log: Log, robot: Robot, settings: Conditioning | None = None) -> Samples:
    """Uniform samples with derivatives.

    Rows that are corrupt or repeat the one before are left out, the rest is cut at gaps and put on a uniform grid; the motion
    and the torque pass the same zero-phase low-pass; velocity and acceleration are derived; ends are trimmed; the
    rate is brought down to what the cut-off needs.

    Args:
        log: as read, and checked (`armid.logs.check_log`) or not.
        robot: for the joint order.
        settings: see `Conditioning`; automatic where it leaves a choice.

    Raises:
        LogRefusedError: the log has errors that `settings.accept` does not name.
        InputError: nothing left to condition.
    """
    settings = settings or Conditioning()
    ordered = matched(log, robot)
    refuse_errors(ordered, settings.accept)
    parts, notes = uniform_parts(ordered, settings)
    resolved, chosen = resolved_settings(parts, settings)
    pieces = [conditioned(part, resolved) for part in parts]
    whole = concatenated([piece for piece in pieces if len(piece)])
    return replace(
        whole,
        settings=resolved,
        noise=noise_levels(parts),
        sources=(log.source,),
        notes=(*ordered.notes, *notes, *chosen),
    )


def uniform_parts(log: Log, settings: Conditioning) -> tuple[list[Uniform], list[Note]]:
    """The stretches of a log on uniform grids."""
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
    parts = [on_grid(stretch, settings) for stretch, _ in based]
    if settings.period is not None:
        parts = [averaged_part(part, settings.period) for part in parts]
    return parts, notes


def on_grid(stretch: Stretch, settings: Conditioning) -> Uniform:
    """Channels resampled; a period becomes a whole number of steps."""
    step = even_step(stretch)
    if settings.period is not None:
        step = settings.period / max(1, round(settings.period / step))
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
    return Uniform(log, grid, 1.0 / step, channels, {})


def averaged_part(part: Uniform, period: float) -> Uniform:
    """The mean period, with the variance of the mean torque."""
    per_period = round(period * part.rate)
    means = {channel: averaged(values, per_period) for channel, values in part.channels.items()}
    repetitions = means[Channel.POSITION].repetitions
    variances = {c: a.variance for c, a in means.items() if c.is_torque and repetitions > 1}
    channels = {channel: a.mean for channel, a in means.items()}
    return replace(part, time=part.time[:per_period], channels=channels, variances=variances, periodic=True)


def resolved_settings(parts: list[Uniform], settings: Conditioning) -> tuple[Conditioning, list[Note]]:
    """The settings with cut-offs and rate chosen where they were left open."""
    longest = max(parts, key=lambda part: len(part.time))
    notes = []
    cutoff = settings.cutoff
    if cutoff is None:
        choice = chosen_cutoff(longest.channels[Channel.POSITION], longest.rate)
        cutoff = choice.cutoff
        notes.append(replace(choice.note, subject=longest.log.name))
    torque_cutoff = settings.torque_cutoff if settings.torque_cutoff is not None else cutoff
    rate = settings.rate if settings.rate is not None else OVERSAMPLING * max(cutoff, torque_cutoff)
    return replace(settings, cutoff=cutoff, torque_cutoff=torque_cutoff, rate=rate), notes


def conditioned(part: Uniform, settings: Conditioning) -> Samples:
    """One stretch: filter, differentiate, trim, decimate. Settings are resolved."""
    assert settings.cutoff is not None and settings.torque_cutoff is not None and settings.rate is not None
    motion = LowPass(part.rate, settings.cutoff, settings.order)
    torque = LowPass(part.rate, settings.torque_cutoff, settings.order)
    if not part.periodic and not motion.passes_all:
        check_length(part.log.name, len(part.time), motion)
    q, qd, qdd = motion_of(part, motion, settings)
    delay = 4 if settings.differentiator is Differentiator.LEAST_SQUARES_CAUSAL else 0
    torques = {c: low_pass(part.channels[c], torque, periodic=part.periodic) for c in part.log.torques}
    edge = 0 if part.periodic else trimmed_edge(part, settings, max(motion.transient, torque.transient))
    every = max(1, round(part.rate / settings.rate)) if np.isfinite(settings.rate) else 1
    pick = slice(edge + delay, len(part.time) - edge, every)
    behind = slice(edge, len(part.time) - edge - delay, every)
    time = part.time[behind]
    rate = part.rate / every
    return Samples(
        joints=part.log.joints,
        time=time,
        q=q[behind],
        qd=qd[pick],
        qdd=qdd[pick],
        torques={c: v[behind] for c, v in torques.items()},
        raw_torques={c: part.channels[c][behind] for c in torques},
        variances={c: v[behind] for c, v in part.variances.items()},
        segments=(Segment(0, len(time), part.log.name, rate, part.log.conditions),) if len(time) else (),
        rate=rate,
    )


def motion_of(part: Uniform, filter: LowPass, settings: Conditioning) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Position, velocity and acceleration of a stretch, filtered."""
    assert settings.cutoff is not None
    q = low_pass(part.channels[Channel.POSITION], filter, periodic=part.periodic)
    method = settings.differentiator
    if settings.velocity is VelocitySource.MEASURED:
        if Channel.VELOCITY not in part.channels:
            raise InputError(part.log.name, "no usable velocity was recorded", "derive it from position")
        qd = low_pass(part.channels[Channel.VELOCITY], filter, periodic=part.periodic)
        return q, qd, derivatives(qd, part.rate, method, cutoff=settings.cutoff, periodic=part.periodic)[0]
    return q, *derivatives(q, part.rate, method, cutoff=settings.cutoff, periodic=part.periodic)


EDGE_SHARE = 0.05
EDGE_SECONDS = 0.5
"""Beyond the filter's own transient, this share of a stretch at each end, and at most this long, is left out: recorders
filter too, and their transients at the ends of a recording look like motion without torque."""


def trimmed_edge(part: Uniform, settings: Conditioning, transient: float) -> int:
    """Samples to leave out at each end; at most a quarter of the stretch unless the user says more."""
    count = len(part.time)
    if settings.trim is not None:
        return min(int(np.ceil(settings.trim * part.rate)), count // 2)
    seconds = max(transient, min(EDGE_SECONDS, EDGE_SHARE * count / part.rate))
    return min(int(np.ceil(seconds * part.rate)) + 4, count // 4)


def noise_levels(parts: list[Uniform]) -> dict[Channel, FloatArray]:
    """Standard deviation of the noise of each channel, from the longest stretch."""
    longest = max(parts, key=lambda part: len(part.time))
    if len(longest.time) < 64:
        return {}
    return {channel: spectrum(values, longest.rate).noise for channel, values in longest.channels.items()}
