"""Faults to plant in recordings: what each does to the columns, which joint it concerns, how large it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

import armid
from armid.arrays import FloatArray
from armid.logs.log import Channel, Log
from armid.robot.robot import Robot

TORQUES = (Channel.LINK_TORQUE, Channel.MOTOR_TORQUE, Channel.CURRENT)
MOTION = (Channel.POSITION, Channel.VELOCITY)

Columns = dict[Channel, FloatArray]
Change = Callable[[Log, float, "int | None"], Log]
"""A log with a fault of some size, at one joint or at all."""
Where = Callable[[Log, float], "int | None"]
"""The joint that a fault of some size is planted in, 0-based; None for all."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of fault.

    Args:
        name: of it.
        sizes: three, from small to large; of a discrete one a joint near the base, in the middle, at the tip.
        change: the log with it.
        words: codes of findings and kinds of faults that name it.
        where: the joint it is planted in, which must be named too.
        next_too: whether the joint after that may be named as well: the two were exchanged.
        amount: its size in the unit of the fault that names it; None for what has no size.
        sized: of the words those whose size that is; empty for all.
        grows: whether it grows along a log, so that a part of the log has a part of it.
    """

    name: str
    sizes: tuple[float, float, float]
    change: Change
    words: tuple[str, ...]
    where: Where = lambda log, size: None
    next_too: bool = False
    amount: Callable[[float], float] | None = None
    sized: tuple[str, ...] = ()
    grows: bool = False

    def plant(self, log: Log, size: float) -> Log:
        """The log with it."""
        return self.change(log, size, self.where(log, size))

    def joints(self, log: Log, size: float) -> tuple[str, ...]:
        """Names of the joints that it concerns; empty for the whole arm."""
        j = self.where(log, size)
        return () if j is None else tuple(log.joints[j : j + 1 + self.next_too])


def changed(log: Log, change: Callable[[Columns, FloatArray], None]) -> Log:
    """A log with other columns; not checked yet."""
    channels = {channel: np.array(values) for channel, values in log.channels.items()}
    change(channels, np.asarray(log.time))
    return replace(log, channels=channels, notes=())


def each_column(
    log: Log, channels: Sequence[Channel], change: Callable[[FloatArray], FloatArray], joint: int | None = None
) -> Log:
    """A log in which the columns of one joint, or all, are changed."""

    def change_columns(columns: Columns, _: FloatArray) -> None:
        for channel in set(channels) & set(columns):
            where = slice(None) if joint is None else slice(joint, joint + 1)
            columns[channel][:, where] = change(columns[channel][:, where])

    return changed(log, change_columns)


def _columns(channels: Sequence[Channel], change: Callable[[FloatArray, float], FloatArray]) -> Change:
    """A change of some channels, sample by sample or as a whole."""
    return lambda log, size, joint: each_column(log, channels, lambda x: change(x, size), joint)


def heavy(log: Log, _: float) -> int:
    """The joint with the largest torque."""
    torque = next(np.asarray(log.channels[c]) for c in TORQUES if c in log.channels)
    return int(np.argmax(np.nanstd(torque, axis=0)))


def _middle(log: Log, _: float) -> int:
    return (len(log.joints) - 1) // 2


def _last(log: Log, _: float) -> int:
    return len(log.joints) - 1


def _first(log: Log, _: float) -> int:
    return 0


def second(log: Log, _: float) -> int:
    return min(1, len(log.joints) - 1)


def _along(log: Log, size: float) -> int:
    """Discrete faults: sizes 1, 2, 3 are a joint near the base, in the middle and at the tip."""
    last = len(log.joints) - 1
    return {1: min(1, last), 2: len(log.joints) // 2, 3: last}[int(size)]


def _pair(log: Log, size: float) -> int:
    """The first of two neighbours that are exchanged."""
    return min(int(size) - 1, len(log.joints) - 2)


def _late(log: Log, milliseconds: float, joint: int | None) -> Log:
    t = np.asarray(log.time)

    def shifted(x: FloatArray) -> FloatArray:
        return np.column_stack([np.interp(t - 1e-3 * milliseconds, t, column) for column in x.T])

    return each_column(log, TORQUES, shifted, joint)


def _exchanged(channels: Sequence[Channel]) -> Change:
    def plant(log: Log, _: float, joint: int | None) -> Log:
        i = joint or 0

        def change(columns: Columns, _: FloatArray) -> None:
            for channel in set(channels) & set(columns):
                columns[channel][:, [i, i + 1]] = columns[channel][:, [i + 1, i]]

        return changed(log, change)

    return plant


def _quantised(x: FloatArray, steps: float) -> FloatArray:
    step = np.maximum(np.ptp(x, axis=0) / steps, 1e-12)
    return np.asarray(step * np.round(x / step))


def _dropped(x: FloatArray, share: float) -> FloatArray:
    lost = np.random.default_rng(7).random(len(x)) < share
    return np.where(lost[:, np.newaxis], 0.0, x)


def _clipped(x: FloatArray, share: float) -> FloatArray:
    top = share * np.abs(x).max(axis=0)
    return np.clip(x, -top, top)


def _drift(shape: Callable[[FloatArray], FloatArray]) -> Change:
    def plant(log: Log, size: float, joint: int | None) -> Log:
        t = (np.asarray(log.time) - log.time[0]) / max(float(log.time[-1] - log.time[0]), 1e-9)
        return each_column(log, TORQUES, lambda x: x + size * shape(t)[:, np.newaxis], joint)

    return plant


def _along_log(change: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]) -> Change:
    """A torque changed by the share of the log that has gone by, 0 to 1, and by the position of its joint, times a size."""

    def plant(log: Log, size: float, joint: int | None) -> Log:
        j = joint or 0
        t = (np.asarray(log.time) - log.time[0]) / max(float(log.time[-1] - log.time[0]), 1e-9)
        q = np.asarray(log.channels[Channel.POSITION])[:, j]
        return each_column(log, TORQUES, lambda x: x + size * change(x[:, 0], t, q)[:, np.newaxis], joint)

    return plant


def _rubs(x: FloatArray, t: FloatArray, q: FloatArray) -> FloatArray:
    """Coulomb friction of the torque's own size that grows from nothing."""
    smooth = np.convolve(np.nan_to_num(q), np.ones(21) / 21.0, mode="same")
    return np.asarray(float(np.nanstd(x)) * t * np.sign(np.gradient(smooth)))


def _by_direction(log: Log, gain: float, joint: int | None) -> Log:
    """Positive torque read too large, negative torque rightly."""
    return each_column(log, TORQUES, lambda x: np.where(x > 0.0, gain * x, x), joint)


def _by_turning(log: Log, gain: float, joint: int | None) -> Log:
    """Torque read too large while the joint turns forward."""
    q = np.asarray(log.channels[Channel.POSITION])[:, joint or 0]
    forward = np.gradient(np.convolve(np.nan_to_num(q), np.ones(21) / 21.0, mode="same")) > 0.0
    return each_column(log, TORQUES, lambda x: np.where(forward[:, np.newaxis], gain * x, x), joint)


def _crosstalk(log: Log, share: float, joint: int | None) -> Log:
    """A share of the heavy joint's torque on another's sensor."""

    def change(columns: Columns, _: FloatArray) -> None:
        for channel in set(TORQUES) & set(columns):
            columns[channel][:, joint] += share * columns[channel][:, heavy(log, share)]

    return changed(log, change)


def _beside_heavy(log: Log, _: float) -> int:
    """A neighbour of the joint with the largest torque."""
    j = heavy(log, _)
    return j + 1 if j + 1 < len(log.joints) else j - 1


def _contrast(gain: float) -> float:
    """Of two gains, over their mean: what is left of one of them once bodies have taken the mean."""
    return 2.0 * (gain - 1.0) / (gain + 1.0)


def _clock(log: Log, factor: float, _: int | None) -> Log:
    return replace(log, time=np.asarray(log.time) * factor, notes=())


def _geared(log: Log, factor: float, joint: int | None) -> Log:
    """Another gear ratio in the mapping: torque multiplied by it, motion divided."""
    moved = each_column(log, MOTION, lambda x: x / factor, joint)
    return each_column(moved, TORQUES, lambda x: x * factor, joint)


def weightless(log: Log, share: float, robot: Robot) -> Log:
    """A part of the nominal weight taken out, as a controller does that compensates gravity."""
    weight = np.asarray(armid.gravity(robot, np.nan_to_num(np.asarray(log.channels[Channel.POSITION]))))
    return each_column(log, TORQUES, lambda x: x - share * weight)


def _frozen(x: FloatArray, share: float) -> FloatArray:
    stop = int(share * len(x))
    return np.concatenate([x[:1].repeat(stop, axis=0), x[stop:]])


def _spiked(x: FloatArray, count: float) -> FloatArray:
    out = np.array(x)
    rows = np.random.default_rng(3).integers(0, len(x), size=int(count))
    out[rows] += 2.0 * np.ptp(x, axis=0)
    return out


def _stuck(x: FloatArray, share: float) -> FloatArray:
    """A stretch in the middle at one value."""
    out, start = np.array(x), len(x) // 2
    out[start : start + int(share * len(x))] = out[start]
    return out


def _lost_rows(log: Log, share: float, _: int | None) -> Log:
    """Rows lost by chance, the others stamped as if none were."""
    kept = np.random.default_rng(5).random(len(log.time)) >= share
    channels = {channel: np.array(values)[kept] for channel, values in log.channels.items()}
    return replace(log, time=np.asarray(log.time)[: int(kept.sum())], channels=channels, notes=())


def share_of(size: float) -> float:
    return size - 1.0


def seconds_of(size: float) -> float:
    return 1e-3 * size


def radians(size: float) -> float:
    return float(np.deg2rad(size))


def _as_it_is(size: float) -> float:
    return size


def _swing(size: float) -> float:
    """Between the extremes of a wave [N m]."""
    return 2.0 * size


_GAIN = _columns(TORQUES, lambda x, size: size * x)
_SCALE = _columns(MOTION, lambda x, size: size * x)
_ZERO = _columns((Channel.POSITION,), lambda x, size: x + np.deg2rad(size))
_TORQUE_SIGN = _columns(TORQUES, lambda x, _: -x)

KINDS: tuple[Kind, ...] = (
    Kind(
        name="torque gain, heavy joint",
        sizes=(1.1, 1.3, 2.0),
        change=_GAIN,
        words=("gain", "torque-unit"),
        where=heavy,
        amount=share_of,
    ),
    Kind(
        name="torque gain too small, heavy joint",
        sizes=(0.85, 0.75, 0.6),
        change=_GAIN,
        words=("gain", "torque-unit"),
        where=heavy,
        amount=share_of,
    ),
    Kind(
        name="torque gain, joint in the middle",
        sizes=(0.7, 1.25, 1.6),
        change=_GAIN,
        words=("gain", "torque-unit"),
        where=_middle,
        amount=share_of,
    ),
    Kind(
        name="torque gain, last joint",
        sizes=(1.1, 1.3, 2.0),
        change=_GAIN,
        words=("gain", "torque-unit"),
        where=_last,
        amount=share_of,
    ),
    Kind(
        name="torque gain, all joints",
        sizes=(1.1, 1.3, 2.0),
        change=_GAIN,
        words=("common gain", "torque-unit"),
        amount=share_of,
    ),
    Kind(
        name="gear ratio missing, one joint",
        sizes=(0.02, 0.01, 0.006),
        change=_GAIN,
        words=("gain", "torque-unit", "gear-ratio", "torque-dead"),
        where=heavy,
    ),
    Kind(
        name="gear ratio off, joint 2",
        sizes=(0.9, 1.1, 1.3),
        change=_geared,
        words=("gear-ratio", "position-limits"),
        where=second,
        amount=share_of,
    ),
    Kind(
        name="millinewton metres",
        sizes=(1e3, 1e3, 1e3),
        change=_GAIN,
        words=("torque-unit", "common gain", "corrupt-values"),
    ),
    Kind(
        name="torque sign",
        sizes=(1, 2, 3),
        change=_TORQUE_SIGN,
        words=("torque-sign", "friction-sign"),
        where=_along,
    ),
    Kind(
        name="torque sign, all joints",
        sizes=(1, 2, 3),
        change=_TORQUE_SIGN,
        words=("torque-sign", "gravity-reversed", "gravity-direction"),
    ),
    Kind(
        name="position sign",
        sizes=(1, 2, 3),
        change=_columns(MOTION, lambda x, _: -x),
        words=("position-sign", "torque-sign", "position-limits", "mirrored"),
        where=_along,
    ),
    Kind(
        name="mirrored joint",
        sizes=(1, 2, 3),
        change=_columns((*MOTION, *TORQUES), lambda x, _: -x),
        words=("mirrored", "position-sign", "position-limits"),
        where=_along,
    ),
    Kind(
        name="torques swapped",
        sizes=(1, 2, 3),
        change=_exchanged(TORQUES),
        words=("torques-swapped", "swapped", "joint-order"),
        where=_pair,
        next_too=True,
    ),
    Kind(
        name="joints swapped",
        sizes=(1, 2, 3),
        change=_exchanged((*TORQUES, *MOTION)),
        words=("swapped", "joint-order", "position-limits"),
        where=_pair,
        next_too=True,
    ),
    Kind(
        name="dead channel",
        sizes=(1, 2, 3),
        change=_columns(TORQUES, lambda x, _: np.zeros_like(x)),
        words=("frozen", "torque-dead"),
        where=_along,
    ),
    Kind(
        name="half-dead channel",
        sizes=(0.1, 0.3, 0.7),
        change=_columns(TORQUES, _dropped),
        words=("half-dead", "frozen"),
        where=_last,
    ),
    Kind(
        name="frozen torque",
        sizes=(0.03, 0.1, 0.3),
        change=_columns(TORQUES, _frozen),
        words=("frozen",),
        where=heavy,
    ),
    Kind(
        name="coarse torque",
        sizes=(60, 20, 6),
        change=_columns(TORQUES, _quantised),
        words=("quantised",),
        where=heavy,
    ),
    Kind(
        name="coarse encoder",
        sizes=(90, 40, 15),
        change=_columns((Channel.POSITION,), _quantised),
        words=("quantised",),
        where=heavy,
    ),
    Kind(
        name="saturated torque",
        sizes=(0.8, 0.6, 0.4),
        change=_columns(TORQUES, _clipped),
        words=("saturated",),
        where=heavy,
    ),
    Kind(
        name="spikes of torque",
        sizes=(3, 30, 300),
        change=_columns(TORQUES, _spiked),
        words=("spikes",),
        where=heavy,
    ),
    Kind(
        name="spikes of torque, share of rows",
        sizes=(0.005, 0.02, 0.06),
        change=_columns(TORQUES, lambda x, share: _spiked(x, share * len(x))),
        words=("spikes",),
        where=heavy,
    ),
    Kind(
        name="frozen position",
        sizes=(0.02, 0.05, 0.2),
        change=_columns((Channel.POSITION,), _stuck),
        words=("frozen", "velocity-inconsistent"),
        where=second,
    ),
    Kind(
        name="rows missing, stamps even",
        sizes=(0.02, 0.1, 0.3),
        change=_lost_rows,
        words=("clock", "clock-rate", "velocity-inconsistent", "spikes", "position-leap"),
    ),
    Kind(
        name="offset drifts, N m",
        sizes=(1.0, 5.0, 20.0),
        change=_drift(lambda t: t),
        words=("drift", "slow-drift"),
        where=heavy,
        amount=_as_it_is,
        grows=True,
    ),
    Kind(
        name="offset wanders, N m",
        sizes=(1.0, 5.0, 20.0),
        change=_drift(lambda t: np.sin(9.0 * t)),
        words=("drift", "slow-drift"),
        where=heavy,
        amount=_swing,
    ),
    Kind(
        name="torque gain drifts, heavy joint",
        sizes=(0.1, 0.2, 0.5),
        change=_along_log(lambda x, t, _: x * t),
        words=("gain-drift",),
        where=heavy,
        amount=_as_it_is,
        grows=True,
    ),
    Kind(
        name="torque gain by sign of torque, heavy joint",
        sizes=(1.1, 1.3, 2.0),
        change=_by_direction,
        words=("direction-gain",),
        where=heavy,
        amount=_contrast,
    ),
    Kind(
        name="torque gain by direction of motion, heavy joint",
        sizes=(1.1, 1.3, 2.0),
        change=_by_turning,
        words=("turning-gain",),
        where=heavy,
        amount=_contrast,
    ),
    Kind(
        name="crosstalk of the heavy joint, share",
        sizes=(0.05, 0.1, 0.2),
        change=_crosstalk,
        words=("crosstalk",),
        where=_beside_heavy,
        amount=_as_it_is,
    ),
    Kind(
        name="friction grows, heavy joint, share of torque",
        sizes=(0.1, 0.2, 0.4),
        change=_along_log(_rubs),
        words=("friction-drift", "unexplained torque"),
        where=heavy,
    ),
    Kind(
        name="cable pulls, joint 2, share of torque per rad",
        sizes=(0.1, 0.2, 0.5),
        change=_along_log(lambda x, _, q: float(np.nanstd(x)) * q),
        words=("spring", "position torque"),
        where=second,
    ),
    Kind(
        name="torque late, all joints, ms",
        sizes=(5, 15, 40),
        change=_late,
        words=("common-delay", "torque-lag"),
        amount=seconds_of,
    ),
    Kind(
        name="torque late, heavy joint, ms",
        sizes=(5, 15, 40),
        change=_late,
        words=("delay", "torque-lag"),
        where=heavy,
        amount=seconds_of,
    ),
    Kind(
        name="torque late, last joint, ms",
        sizes=(5, 15, 40),
        change=_late,
        words=("delay", "torque-lag"),
        where=_last,
        amount=seconds_of,
    ),
    Kind(
        name="encoder zero, joint 2, deg",
        sizes=(1, 5, 10),
        change=_ZERO,
        words=("zero", "position-limits"),
        where=second,
        amount=radians,
    ),
    Kind(
        name="encoder zero, joint 1, deg",
        sizes=(1, 5, 10),
        change=_ZERO,
        words=("zero", "position-limits"),
        where=_first,
        amount=radians,
    ),
    Kind(
        name="encoder zero, last joint, deg",
        sizes=(1, 5, 10),
        change=_ZERO,
        words=("zero", "position-limits"),
        where=_last,
        amount=radians,
    ),
    Kind(
        name="quarter turn",
        sizes=(1, 2, 3),
        change=_columns((Channel.POSITION,), lambda x, _: x + 0.5 * np.pi),
        words=("quarter-turn", "zero", "position-limits", "mounting"),
        where=_along,
    ),
    Kind(
        name="encoder scale, joint 2",
        sizes=(1.02, 1.1, 1.3),
        change=_SCALE,
        words=("scale", "position-limits"),
        where=second,
        amount=share_of,
    ),
    Kind(
        name="encoder scale, last joint",
        sizes=(1.02, 1.1, 1.3),
        change=_SCALE,
        words=("scale", "position-limits"),
        where=_last,
        amount=share_of,
    ),
    Kind(
        name="degrees for radians",
        sizes=(1, 2, 3),
        change=_columns(MOTION, lambda x, _: np.degrees(x)),
        words=("degrees",),
    ),
    Kind(
        name="clock",
        sizes=(1.02, 1.1, 1.5),
        change=_clock,
        words=("clock", "clock-unit", "clock-rate", "velocity-inconsistent"),
        amount=share_of,
    ),
    Kind(
        name="milliseconds for seconds",
        sizes=(1e3, 1e3, 1e3),
        change=_clock,
        words=("clock", "clock-unit", "clock-rate", "velocity-inconsistent"),
    ),
    Kind(
        name="velocity column of another joint",
        sizes=(1, 2, 3),
        change=_exchanged((Channel.VELOCITY,)),
        words=("joint-order", "velocity-inconsistent"),
        where=_pair,
        next_too=True,
    ),
)

WEIGHT = ("weight partly subtracted", (0.3, 0.5, 1.0), ("gravity-compensated", "weight", "common gain"))
TILT = ("base out of level, deg", (2.0, 5.0, 20.0), ("tilt first", "tilt second", "mounting"))
PAYLOAD = ("payload nobody mentioned, kg", (0.2, 0.5, 2.0), ("payload",))
LENGTH = ("length described too long", (1.02, 1.05, 1.1), ("length",))
"""Faults that need the arm: its nominal weight is subtracted, its base tilted, its flange loaded, a length drawn too long."""

PAIRS = (
    ("torque gain, heavy joint", "encoder zero, joint 2, deg"),
    ("torque sign", "torque late, all joints, ms"),
    ("half-dead channel", "clock"),
    ("encoder scale, last joint", "torque gain, last joint"),
    ("offset drifts, N m", "torque late, heavy joint, ms"),
)
"""Two at once."""


def longest_way(robot: Robot) -> int:
    """The joint to which the translation from the joint before is longest."""
    return max(range(1, robot.n_joints), key=lambda j: float(np.linalg.norm(robot.joints[j].transform()[:3, 3])))


def tilted(robot: Robot, degrees: float) -> Robot:
    """The arm described as standing level although its base is out of level: gravity of the description turned."""
    a = np.deg2rad(degrees)
    turn = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    return robot.with_gravity(turn @ np.asarray(robot.gravity))
