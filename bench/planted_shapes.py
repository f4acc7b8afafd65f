"""Faults without a column of their own: torque that is filtered, held, squashed or rippled, encoders out of round, play, steps.

Sizes of what is added are shares of the joint's own torque (its standard deviation), so that they mean the same on every arm.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armid.arrays import FloatArray
from armid.logs.log import Channel, Log
from bench.planted_faults import KINDS, MOTION, TORQUES, Change, Kind, changed, each_column, heavy, second

RIPPLES = 20.0
"""Waves of a ripple per radian: a harmonic drive of 1:63 has two for every turn of its motor."""

_SMOOTHED = 0.04
"""[s] Over which a position is smoothed before its direction is taken."""
_FILLED = 0.2
"""[s] Of samples that were lost and filled in by a straight line."""


def rate_of(log: Log) -> float:
    """Rows per second [Hz]."""
    return 1.0 / float(np.median(np.diff(log.time)))


def lagged(x: FloatArray, share: float) -> FloatArray:
    """Behind a low-pass of first order that follows by a share in every row."""
    out = np.array(x)
    for k in range(1, len(out)):
        out[k] = out[k - 1] + share * (x[k] - out[k - 1])
    return out


def held(x: FloatArray, rows: int) -> FloatArray:
    """A value every so many rows, held in between."""
    return np.asarray(x[(np.arange(len(x)) // rows) * rows])


def filled(x: FloatArray, rows: int, share: float) -> FloatArray:
    """Straight lines of so many rows in this share of them."""
    out = np.array(x)
    for start in np.linspace(0, len(x) - rows - 1, int(share * len(x) / rows)).astype(int):
        out[start : start + rows] = np.linspace(x[start], x[start + rows], rows, endpoint=False)
    return out


def followed(x: FloatArray, play: float) -> FloatArray:
    """What is dragged along behind a play of this width."""
    out, at = np.array(x), x[0]
    for k, value in enumerate(x):
        at = np.clip(at, value - 0.5 * play, value + 0.5 * play)
        out[k] = at
    return out


def direction(log: Log, joint: int) -> FloatArray:
    """Way in which a joint turns, shape [n_rows]."""
    q = np.nan_to_num(np.asarray(log.channels[Channel.POSITION])[:, joint])
    width = max(3, int(_SMOOTHED * rate_of(log)))
    return np.asarray(np.sign(np.gradient(np.convolve(q, np.ones(width) / width, mode="same"))))


def squashed(x: FloatArray, times: float) -> FloatArray:
    """Less and less of the torque the larger it is, as a bridge that saturates softly."""
    top = np.nanmax(np.abs(x), axis=0)
    return np.asarray(top / times * np.tanh(times * x / top))


Added = Callable[[Log, int], FloatArray]
"""What is added to a joint's torque, over the torque's own deviation, shape [n_rows]."""


def ripple(log: Log, joint: int) -> FloatArray:
    """Waves over the joint's angle."""
    return np.asarray(np.sin(RIPPLES * np.asarray(log.channels[Channel.POSITION])[:, joint]))


def late_half(log: Log, _: int) -> FloatArray:
    """One from half time on."""
    return np.asarray((elapsed(log) > 0.5).astype(float))


def friction_late(log: Log, joint: int) -> FloatArray:
    """Friction from half time on."""
    return late_half(log, joint) * direction(log, joint)


def elapsed(log: Log) -> FloatArray:
    """Share of the log that has gone by, 0 to 1, shape [n_rows]."""
    t = np.asarray(log.time)
    return np.asarray((t - t[0]) / max(float(t[-1] - t[0]), 1e-9))


def _by_rate(change: Callable[[FloatArray, float], FloatArray], size: Callable[[float, float], float]) -> Change:
    """A change of torque whose size depends on the frequency asked for and the rate of the log [Hz]."""
    return lambda log, hz, joint: each_column(log, TORQUES, lambda x: change(x, size(hz, rate_of(log))), joint)


def _with(added: Added) -> Change:
    """Torque with something added, of so many of its deviations."""

    def plant(log: Log, size: float, joint: int | None) -> Log:
        extra = size * added(log, joint or 0)[:, np.newaxis]
        return each_column(log, TORQUES, lambda x: x + np.nanstd(x, axis=0) * extra, joint)

    return plant


def _out_of_round(log: Log, size: float, joint: int | None) -> Log:
    """An encoder whose disc sits off its axis by so much of its radius: it reads q + size sin(q), and a velocity to match."""
    j = joint or 0
    q = np.asarray(log.channels[Channel.POSITION])[:, j]

    def change(columns: dict[Channel, FloatArray], _: FloatArray) -> None:
        columns[Channel.POSITION][:, j] = q + size * np.sin(q)
        if Channel.VELOCITY in columns:
            columns[Channel.VELOCITY][:, j] *= 1.0 + size * np.cos(q)

    return changed(log, change)


def _late_motion(log: Log, milliseconds: float, joint: int | None) -> Log:
    t = np.asarray(log.time)

    def late(x: FloatArray) -> FloatArray:
        return np.column_stack([np.interp(t - 1e-3 * milliseconds, t, column) for column in x.T])

    return each_column(log, MOTION, late, joint)


def _late_by_turns(log: Log, milliseconds: float, joint: int | None) -> Log:
    """Late and early by turns, a wave a second."""
    t = np.asarray(log.time)
    when = t - 1e-3 * milliseconds * np.sin(2.0 * np.pi * t)
    return each_column(log, TORQUES, lambda x: np.column_stack([np.interp(when, t, c) for c in x.T]), joint)


def _two_gains(log: Log, gain: float, joint: int | None) -> Log:
    """A joint reads too much, its neighbour as much too little."""
    j = joint or 0
    more = each_column(log, TORQUES, lambda x: gain * x, j)
    return each_column(more, TORQUES, lambda x: x / gain, j + 1 if j + 1 < len(log.joints) else j - 1)


def _at_half_time(log: Log, gain: float, joint: int | None) -> Log:
    """Torque times a gain from half time on."""
    later = np.where(late_half(log, 0) > 0.0, gain, 1.0)[:, np.newaxis]
    return each_column(log, TORQUES, lambda x: later * x, joint)


def _slipped(log: Log, degrees: float, joint: int | None) -> Log:
    """Positions that read so much more from half time on, reached within a second: a coupling that slips."""
    t = np.asarray(log.time)
    shift = np.radians(degrees) * np.clip(t - 0.5 * (t[0] + t[-1]), 0.0, 1.0)[:, np.newaxis]
    return each_column(log, (Channel.POSITION,), lambda x: x + shift, joint)


_LATE = ("delay", "common-delay", "torque-lag")
_LEFT = ("unexplained torque",)
_ROUND = ("eccentricity sine", "eccentricity cosine")

SHAPES: tuple[Kind, ...] = (
    Kind(
        name="torque behind a low-pass, heavy joint, Hz",
        sizes=(20, 5, 2),
        change=_by_rate(lagged, lambda hz, rate: 1.0 - float(np.exp(-2.0 * np.pi * hz / rate))),
        words=_LATE,
        where=heavy,
        amount=lambda hz: 0.5 / (np.pi * hz),
    ),
    Kind(
        name="torque held, heavy joint, Hz",
        sizes=(50, 20, 5),
        change=_by_rate(lambda x, rows: held(x, int(rows)), lambda hz, rate: max(1.0, round(rate / hz))),
        words=(*_LATE, *_LEFT, "frozen"),
        where=heavy,
    ),
    Kind(
        name="torque filled in, heavy joint, share of rows",
        sizes=(0.05, 0.2, 0.4),
        change=lambda log, share, joint: each_column(
            log, TORQUES, lambda x: filled(x, max(20, int(_FILLED * rate_of(log))), share), joint
        ),
        words=("bridged", *_LEFT),
        where=heavy,
    ),
    Kind(
        name="motion late, all joints, ms",
        sizes=(5, 15, 40),
        change=_late_motion,
        words=_LATE,
        amount=lambda milliseconds: 1e-3 * milliseconds,
    ),
    Kind(
        name="motion late, joint 2, ms",
        sizes=(5, 15, 40),
        change=_late_motion,
        words=("encoder-delay", "play", *_LATE, *_LEFT),
        amount=lambda milliseconds: 1e-3 * milliseconds,
        sized=("encoder-delay",),
        where=second,
    ),
    Kind(
        name="torque late and early by turns, heavy joint, ms",
        sizes=(5, 15, 40),
        change=_late_by_turns,
        words=("jitter", *_LATE, *_LEFT),
        where=heavy,
        amount=lambda milliseconds: 1e-3 * milliseconds / 2.0**0.5,
        sized=("jitter",),
    ),
    Kind(
        name="torque sensor off its zero, heavy joint, share of torque",
        sizes=(0.2, 0.5, 2.0),
        change=_with(lambda log, _: np.ones(len(log.time))),
        words=("torque offset",),
        where=heavy,
    ),
    Kind(
        name="offset steps at half time, share of torque",
        sizes=(0.05, 0.2, 0.5),
        change=_with(late_half),
        words=("drift", "slow-drift", "offset-step"),
        where=heavy,
    ),
    Kind(
        name="torque gain changes at half time, heavy joint",
        sizes=(1.05, 1.2, 0.5),
        change=_at_half_time,
        words=("gain-step", "gain-drift", *_LEFT),
        where=heavy,
        amount=lambda gain: gain - 1.0,
        sized=("gain-step",),
    ),
    Kind(
        name="encoder zero changes at half time, joint 2, deg",
        sizes=(1, 3, 10),
        change=_slipped,
        words=("zero-step", "zero-drift", "position-leaps", "velocity-inconsistent", *_LEFT),
        where=second,
        amount=lambda degrees: float(np.radians(degrees)),
        sized=("zero-step",),
    ),
    Kind(
        name="friction steps at half time, share of torque",
        sizes=(0.05, 0.15, 0.4),
        change=_with(friction_late),
        words=("friction-drift", "friction-step", *_LEFT),
        where=heavy,
    ),
    Kind(
        name="ripple, heavy joint, share of torque",
        sizes=(0.05, 0.15, 0.4),
        change=_with(ripple),
        words=_LEFT,
        where=heavy,
    ),
    Kind(
        name="encoder out of round, joint 2, share of radius",
        sizes=(0.02, 0.06, 0.15),
        change=_out_of_round,
        words=(*_ROUND, "scale", "zero", "spring", "position torque", *_LEFT),
        where=second,
        amount=lambda size: size,
        sized=_ROUND[:1],
    ),
    Kind(
        name="play of the encoder, joint 2, rad",
        sizes=(0.005, 0.02, 0.06),
        change=lambda log, play, joint: each_column(
            log, (Channel.POSITION,), lambda x: followed(x[:, 0], play)[:, np.newaxis], joint
        ),
        words=("play", "encoder-delay", "zero", *_LATE, "frozen", "velocity-inconsistent", *_LEFT),
        where=second,
        amount=lambda width: width,
        sized=("play",),
    ),
    Kind(
        name="hysteresis of the torque, heavy joint, share of torque",
        sizes=(0.1, 0.3, 0.8),
        change=lambda log, share, joint: each_column(
            log, TORQUES, lambda x: followed(x[:, 0], share * float(np.nanstd(x)))[:, np.newaxis], joint
        ),
        words=("hysteresis", *_LATE, "direction-gain", "turning-gain", *_LEFT),
        where=heavy,
    ),
    Kind(
        name="torque saturates softly, heavy joint, times",
        sizes=(0.5, 1.0, 2.0),
        change=lambda log, times, joint: each_column(log, TORQUES, lambda x: squashed(x, times), joint),
        words=("load-gain", "gain", "direction-gain", "saturated", *_LEFT),
        where=heavy,
    ),
    Kind(
        name="torque gains of two joints, one too large, one too small",
        sizes=(1.1, 1.3, 2.0),
        change=_two_gains,
        words=("gain",),
        where=heavy,
        amount=lambda gain: gain - 1.0,
    ),
)
"""What stays below what is ordinary must respect the bound of everything that is left over."""

EVERY_KIND = (*KINDS, *SHAPES)


def kind_of(name: str) -> Kind:
    """The kind of this name."""
    return next(kind for kind in EVERY_KIND if kind.name == name)
