"""One uniform stretch: filter, differentiate, trim, decimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.conditioning.parts import Uniform
from armid.logs.conditioning.settings import Conditioning, VelocitySource
from armid.logs.log import Channel
from armid.logs.samples import Samples, Segment
from armid.rows.presliding import SUBSTEPS
from armid.signals.differentiate import Differentiator, derivatives
from armid.signals.filters import low_pass

MIN_PERIODS = 3.0
"""Of the cut-off: a shorter stretch has not let the filter settle."""

_EDGE_SHARE = 0.05
_EDGE_SECONDS = 0.5
"""Beyond the filter's own transient, this share of a stretch at each end, and at most this long, is left out: recorders
filter too, and their transients at the ends of a recording look like motion without torque."""

FINER = 4.0
"""Cut-off of the velocity that friction is evaluated with, over that of the motion. A joint stays near standstill for some ten
milliseconds at a reversal while its controller turns the torque around. Bodies feel little of it, but the low-pass would make it
look like a slow crossing at another time."""

FASTEST = 0.25
"""Of the sampling rate: up to there the velocity between two samples is what their slopes say."""

_CAUSAL_DELAY = 4
"""Samples by which derivatives of the causal differentiator are late."""


def is_long_enough(part: Uniform, settings: Conditioning) -> bool:
    """Whether the filter settles within a stretch."""
    return part.periodic or settles(len(part.time), part.rate, settings)


def settles(count: int, rate: float, settings: Conditioning) -> bool:
    """The same for so many rows at a rate [Hz]."""
    assert settings.cutoff is not None
    return settings.low_pass(rate).passes_all or count / rate * settings.cutoff >= MIN_PERIODS


def conditioned(part: Uniform, settings: Conditioning) -> Samples:
    """A whole stretch. Settings are resolved."""
    edge = _edge(part, settings)
    return conditioned_range(part, settings, edge, len(part.time) - edge)


def _edge(part: Uniform, settings: Conditioning) -> int:
    """Samples to leave out at each end of a whole stretch."""
    # A whole period has no ends for a filter to spoil; what the user wants left out is left out all the same.
    whole_period = part.periodic and settings.trim is None
    return 0 if whole_period else trimmed_edge(len(part.time), part.rate, settings)


def with_recorded_velocity(derived: Samples, parts: Sequence[Uniform], settings: Conditioning) -> Samples:
    """Samples with velocity as it was recorded; positions and torques are those of the samples with derived velocity.

    Args:
        derived: of the same stretches under the same settings, velocity derived from position.
        parts: the stretches they were taken from, in order; of some nothing may be left.
        settings: resolved, velocity as recorded.
    """
    motions, between = [], []
    for part in parts:
        edge = _edge(part, settings)
        keep, delay = _kept(part, settings, edge, len(part.time) - edge)
        if len(part.time[keep]):
            motions.append(_recorded_motion(part, settings, keep, delay))
            between.append(_velocities_between(part, settings, keep) if delay == 0 else None)
    qd, qdd = (np.concatenate(values) for values in zip(*motions, strict=True))
    known = [fine for fine in between if fine is not None]
    fine_velocity = np.concatenate(known) if len(known) == len(motions) else None
    return replace(derived, qd=qd, qdd=qdd, velocities_between=fine_velocity, settings=settings)


def conditioned_range(part: Uniform, settings: Conditioning, start: int, stop: int) -> Samples:
    """Samples start, start + every, ... before stop of a stretch that may reach further on both sides."""
    assert settings.torque_cutoff is not None
    torque = settings.low_pass(part.rate, settings.torque_cutoff)
    delay = _delay(settings)
    keep = samples_between(start, stop, part.rate, settings)
    q, qd, qdd = _motion_of(part, settings, keep, delay)
    torques = {c: low_pass(part.channels[c], torque, periodic=part.periodic)[keep] for c in part.log.torques}
    time, rate = part.time[keep], part.rate / keep.step
    between = _velocities_between(part, settings, keep) if delay == 0 else None
    return Samples(
        joints=part.log.joints,
        time=time,
        q=q,
        qd=qd,
        qdd=qdd,
        torques=torques,
        raw_torques={c: part.channels[c][keep] for c in torques},
        variances={c: v[keep] for c, v in part.variances.items()},
        velocities_between=between,
        segments=(Segment(start=0, stop=len(time), log=part.log.name, rate=rate, conditions=part.log.conditions),)
        if len(time)
        else (),
        rate=rate,
        settings=settings,
    )


def samples_between(start: int, stop: int, rate: float, settings: Conditioning) -> slice:
    """Rows that become samples."""
    return slice(start, stop - _delay(settings), decimation(rate, settings))


def _delay(settings: Conditioning) -> int:
    """Samples by which derivatives are late."""
    return _CAUSAL_DELAY if settings.differentiator is Differentiator.LEAST_SQUARES_CAUSAL else 0


def decimation(rate: float, settings: Conditioning) -> int:
    """Samples of the log per sample kept."""
    assert settings.rate is not None
    return max(1, round(rate / settings.rate)) if np.isfinite(settings.rate) else 1


def _kept(part: Uniform, settings: Conditioning, start: int, stop: int) -> tuple[slice, int]:
    """Rows that samples are kept of, and by how many derivatives are late."""
    delay = _CAUSAL_DELAY if settings.differentiator is Differentiator.LEAST_SQUARES_CAUSAL else 0
    return slice(start, stop - delay, decimation(part.rate, settings)), delay


def _motion_of(
    part: Uniform, settings: Conditioning, keep: slice, delay: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Position, velocity and acceleration at the samples kept, filtered."""
    assert settings.cutoff is not None
    q = low_pass(part.channels[Channel.POSITION], settings.low_pass(part.rate), periodic=part.periodic)
    if settings.velocity is VelocitySource.MEASURED:
        return q[keep], *_recorded_motion(part, settings, keep, delay)
    return q[keep], *_derivatives_at(q, part, settings, keep, delay)


def _recorded_motion(part: Uniform, settings: Conditioning, keep: slice, delay: int) -> tuple[FloatArray, FloatArray]:
    """Velocity as recorded, filtered, and its derivative, at the samples kept."""
    if Channel.VELOCITY not in part.channels:
        raise InputError(part.log.name, "no usable velocity was recorded", "derive it from position")
    velocity = low_pass(part.channels[Channel.VELOCITY], settings.low_pass(part.rate), periodic=part.periodic)
    return velocity[keep], _derivatives_at(velocity, part, settings, keep, delay)[0]


def _derivatives_at(
    values: FloatArray, part: Uniform, settings: Conditioning, keep: slice, delay: int
) -> tuple[FloatArray, FloatArray]:
    """First and second derivative at the samples kept."""
    assert settings.cutoff is not None
    late = slice(keep.start + delay, keep.stop + delay, keep.step)
    return derivatives(
        values, part.rate, settings.differentiator, cutoff=settings.cutoff, periodic=part.periodic, keep=late
    )


def _velocities_between(part: Uniform, settings: Conditioning, keep: slice) -> FloatArray | None:
    """Velocity at points around the samples kept, low-passed at a multiple of the cut-off, shape [n_kept, points, n_joints].

    None where the cut-off leaves nothing to gain.
    """
    assert settings.cutoff is not None
    fine = settings.low_pass(part.rate, min(FINER * settings.cutoff, FASTEST * part.rate))
    if settings.low_pass(part.rate).passes_all or fine.cutoff <= settings.cutoff:
        return None
    measured = settings.velocity is VelocitySource.MEASURED
    source = low_pass(part.channels[Channel.VELOCITY if measured else Channel.POSITION], fine, periodic=part.periodic)
    kept = np.arange(len(part.time))[keep]
    points = ((np.arange(SUBSTEPS) + 0.5) / SUBSTEPS - 0.5) * keep.step
    at = np.clip(points[:, np.newaxis] + kept, 0.0, len(part.time) - 1.0)
    nearest = np.rint(at).astype(np.intp)
    apart = (at - nearest) / part.rate
    out = np.empty((source.shape[1], *at.shape))
    # One joint after the other: of a long stretch all of them take as much memory as the log.
    for own, column in zip(out, source.T, strict=True):
        first, second = (
            x[:, 0]
            for x in derivatives(
                column[:, np.newaxis],
                part.rate,
                settings.differentiator,
                cutoff=fine.cutoff,
                periodic=part.periodic,
            )
        )
        velocity, slope = (column, first) if measured else (first, second)
        own[:] = velocity[nearest] + slope[nearest] * apart
    return out.T


def trimmed_edge(count: int, rate: float, settings: Conditioning) -> int:
    """Samples to leave out at each end; at most a quarter of the stretch unless the user says more."""
    assert settings.cutoff is not None and settings.torque_cutoff is not None  # noqa: PT018
    if settings.trim is not None:
        return min(whole(settings.trim * rate), count // 2)
    transient = max(settings.low_pass(rate, f).transient for f in (settings.cutoff, settings.torque_cutoff))
    seconds = max(transient, min(_EDGE_SECONDS, _EDGE_SHARE * count / rate))
    return min(whole(seconds * rate) + 4, count // 4)


def whole(samples: float) -> int:
    """Rounded up, but not for a millionth: rates differ in their last digits."""
    return int(np.ceil(samples - 1e-6))
