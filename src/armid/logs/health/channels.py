"""Numbers: are they there, alive, believable, fine enough?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armid.arrays import FloatArray
from armid.logs.conditioning.uniform import ordinary_step, stale_rows
from armid.logs.health.bridged import bridged_findings
from armid.logs.health.findings import finding, share
from armid.logs.health.frozen import HeldStretch, held_stretches, leapt_stretch
from armid.logs.health.rows import ABSURD, Mask, channel_spikes, corrupt, needed, resolution, within
from armid.logs.health.thresholds import (
    AT_LIMIT,
    BEYOND_LIMIT,
    COARSE,
    FEW,
    FLAT_SAMPLES,
    FREEZE_SAMPLES,
    FREEZE_SECONDS,
    FREEZE_USUAL,
    MANY,
    PILED,
    REPEATED,
    SATURATED,
    SATURATED_ERROR,
    STILL_ANGLE,
    STILL_LENGTH,
    USELESS,
    ZERO_SHARE,
    ZERO_UNUSUAL,
)
from armid.logs.log import Channel, Log
from armid.notes import Note, Severity
from armid.robot.robot import JointKind, Robot

_LOOKED_AT = 2000
"""Rows of a torque among which its most frequent value is looked for; a value of a twentieth of all rows has a hundred there."""

_STEPS = 1.5
"""Steps of its resolution by which a coarse torque need not leap: it goes on by one."""

_AGAIN = 5
"""Leaps into one value and back from which on a torque drops out; a single stretch of it is a frozen one."""


def channel_findings(log: Log, robot: Robot) -> Iterator[Note]:
    """Findings about single channels."""
    for channel in (*needed(log), Channel.VELOCITY):
        if channel in log:
            yield from _value_findings(log, channel)
    moving = _moving_rows(log)
    yield from _repeated_findings(log, moving)
    yield from _frozen_findings(log, moving)
    for channel in needed(log):
        if channel.is_torque:
            yield from _saturation_findings(log, channel, robot)
            yield from bridged_findings(log, channel)
    yield from _resolution_findings(log, robot)


def _value_findings(log: Log, channel: Channel) -> Iterator[Note]:
    """Missing numbers, absurd numbers, spikes."""
    values = log[channel]
    used = channel is not Channel.VELOCITY
    sound: Mask = np.ones(len(values), dtype=np.bool_)
    if not within(values, ABSURD[channel]):
        sound = np.asarray(~corrupt(values, ABSURD[channel]).any(axis=1))
        yield from _corrupt_findings(log, channel, used=used)
    if not used:
        return
    found = channel_spikes(log, channel, sound)
    for j in np.flatnonzero(found.any(axis=0)):
        fraction = float(found[:, j].mean())
        yield finding(
            "spikes",
            Severity.ERROR if fraction > MANY else Severity.WARNING,
            log.joints[j],
            f"{int(found[:, j].sum())} single samples of {channel.value} stand far off their neighbours, first in row "
            f"{int(np.argmax(found[:, j])) + 1}",
            "corrupt packets: those rows are left out",
        )


def _corrupt_findings(log: Log, channel: Channel, *, used: bool) -> Iterator[Note]:
    """Missing numbers and absurd ones.

    Args:
        log: as read.
        channel: looked at.
        used: whether a fit needs it.
    """
    missing = np.isnan(log[channel])
    absurd = corrupt(log[channel], ABSURD[channel]) & ~missing
    for code, mask, what in (("not-finite", missing, "missing"), ("corrupt-values", absurd, "absurd")):
        for j in np.flatnonzero(mask.any(axis=0)):
            fraction = float(mask[:, j].mean())
            severe = used and fraction > FEW
            first = int(np.argmax(mask[:, j]))
            do = "mend the recording or leave the stretch out with `rows`" if severe else "those rows are left out"
            yield finding(
                code,
                Severity.ERROR if severe else Severity.WARNING,
                log.joints[j],
                f"{share(fraction)} of {channel.value} is {what}, first in row {first + 1}",
                do if used else "velocity is derived from position instead",
            )


def _repeated_findings(log: Log, moving: Mask) -> Iterator[Note]:
    """Rows that repeat the row before while the arm moves."""
    q = log[Channel.POSITION]
    stale = stale_rows(q) & moving
    fraction = float(stale.sum() / max(1, moving.sum()))
    if fraction > REPEATED:
        everything = np.column_stack([q, *(log[c] for c in log.torques)])
        whole = float(stale_rows(everything)[stale].mean())
        what = "whole rows" if whole > 0.5 else "positions"
        yield finding(
            "repeated-rows",
            Severity.WARNING,
            log.name,
            f"{share(fraction)} of the rows repeat the {what} of the row before while the arm moves",
            "the recorder polls faster than the controller answers; repeats are left out before resampling",
        )


def _moving_rows(log: Log) -> Mask:
    """Rows during which some joint moves: the position changes over the surrounding samples by more than ever at rest."""
    values = log[Channel.POSITION]
    reach = min(10, (len(values) - 1) // 2)
    if reach < 1:
        return np.ones(len(values), dtype=np.bool_)
    fast = np.zeros(len(values) - 2 * reach)
    # One joint after the other: a column of a long block stays in cache.
    for x in values.T:
        q = x if np.isfinite(x.sum()) else np.where(np.isfinite(x), x, 0.0)
        change = q[2 * reach :] - q[: -2 * reach]
        np.abs(change, out=change)
        change /= max(float(q.std()), 1e-9)
        np.maximum(fast, change, out=fast)
    moving = fast > 0.1 * np.median(fast[fast > 0.0]) if (fast > 0.0).any() else np.zeros(len(fast), dtype=np.bool_)
    return np.concatenate([np.repeat(moving[:1], reach), moving, np.repeat(moving[-1:], reach)])


def _drive_or_sensor(log: Log) -> tuple[Channel, ...]:
    """Channels of torque that something measured; of commanded torque only where the drives report no other.

    A controller's model may rightly say exactly zero, of a joint that carries no weight or stands still.
    """
    reported = Channel.MOTOR_TORQUE in log or Channel.CURRENT in log
    return tuple(c for c in log.torques if not (reported and c is Channel.COMMANDED_TORQUE))


def _frozen_findings(log: Log, moving: Mask) -> Iterator[Note]:
    """Channels that stop changing to the last bit."""
    step = ordinary_step(log.time) or 1.0
    long = max(FREEZE_SAMPLES, int(np.ceil(FREEZE_SECONDS / step)))
    for channel in _drive_or_sensor(log):
        values = log[channel]
        dead = (values == values[:1]).all(axis=0)
        if dead.all():
            yield finding(
                "torque-dead",
                Severity.ERROR,
                log.name,
                f"{channel.value} has the value {values[0, 0]:g} throughout",
                "this controller does not report it: record another channel",
            )
            continue
        for j in range(values.shape[1]):
            yield from _freeze(log, channel, j, long, moving, bool(dead[j]))
            if not dead[j]:
                yield from _half_dead(log, channel, j)
    for j in range(len(log.joints)):
        yield from _position_freeze(log, j, long)


def _freeze(log: Log, channel: Channel, j: int, long: int, moving: Mask, dead: bool) -> Iterator[Note]:
    """A torque that holds one value while the arm moves, for much longer than it usually does."""
    if dead:
        yield finding(
            "frozen", Severity.ERROR, log.joints[j], f"{channel.value} never changes", "its sensor or column is dead"
        )
        return
    stretches = _torque_stretches(log, channel, j, long, moving)
    if not stretches:
        return
    length = sum(stretch.length for stretch in stretches)
    first, fraction = stretches[0], length / len(log)
    seconds = f"{length * step:.3g} s, " if (step := ordinary_step(log.time)) else ""
    several = f"in {len(stretches)} stretches, the first " if len(stretches) > 1 else ""
    yield finding(
        "frozen",
        Severity.ERROR if fraction > FEW else Severity.WARNING,
        log.joints[j],
        f"{channel.value} holds one value for {length} samples ({seconds}{share(fraction)} of the log) "
        f"{several}from row {first.start + 1} while the arm moves",
        "leave that stretch out with `rows`",
    )


def _torque_stretches(log: Log, channel: Channel, j: int, long: int, moving: Mask) -> list[HeldStretch]:
    """Where a torque stands still while its own joint moves, or for long while the arm does; in the order of the log."""
    found = held_stretches(log, channel, j) if channel in needed(log) else []
    longest = _frozen_torque(log, channel, j, long, moving)
    if longest is not None and not any(h.start <= longest.start < h.start + h.length for h in found):
        found = sorted([*found, longest], key=lambda held: held.start)
    return found


def _frozen_torque(log: Log, channel: Channel, j: int, long: int, moving: Mask) -> HeldStretch | None:
    """Start and length of the longest stretch with one value; None when it is not unusual."""
    start, length, usual = _longest_run(log[channel][:, j], moving)
    # A flat top is saturation, which is said elsewhere.
    unusual = length >= max(long, FREEZE_USUAL * usual) and not _is_extreme(log[channel][:, j], start)
    return HeldStretch(start, length) if unusual else None


def _half_dead(log: Log, channel: Channel, j: int) -> Iterator[Note]:
    """A torque that is at one value, zero or another, again and again while its joint moves."""
    q = log[Channel.POSITION][:, j]
    speed = np.abs(np.gradient(np.where(np.isfinite(q), q, 0.0)))
    x = log[channel][speed > 0.1 * np.quantile(speed, 0.95), j]
    if not np.isfinite(x.sum()):
        x = x[np.isfinite(x)]
    for value in {0.0, *_frequent_values(x)}:
        there = int(np.sum(x == value))
        if there <= ZERO_SHARE * len(x):
            continue
        _, counts = np.unique(x[x != value], return_counts=True)
        unusual = there > ZERO_UNUSUAL * counts.max(initial=0)
        dropped = _drops(x, value) > ZERO_SHARE * len(x)
        # Where it is zero it may come from anywhere; any other value a torque may rightly keep.
        if (unusual or dropped) if value == 0.0 else (unusual and dropped):
            yield finding(
                "half-dead",
                Severity.ERROR,
                log.joints[j],
                f"{channel.value} is exactly {f'{value:.4g}' if value else 'zero'} in {share(there / len(x))} of the rows in "
                "which the joint moves",
                "its sensor or bus drops out: mend it, or leave those rows out with `rows`",
            )
            return


def _frequent_values(x: FloatArray) -> tuple[float, ...]:
    """The value that a torque has most often, where a few hundred of its rows show any as often as `ZERO_SHARE` does."""
    if len(x) == 0:
        return ()
    # By chance, and the same each time: even steps would meet what drops out evenly in all rows or in none.
    some = x[np.random.default_rng(0).integers(0, len(x), _LOOKED_AT)]
    values, counts = np.unique(some, return_counts=True)
    most = int(np.argmax(counts))
    return (float(values[most]),) if counts[most] > 0.5 * ZERO_SHARE * _LOOKED_AT else ()


def _drops(x: FloatArray, value: float) -> int:
    """Rows at a value into which a torque leaps, from far off on one side of it, and back.

    A coarse channel comes to it by steps, one that is cut off there by no more than its noise.
    """
    at = x == value
    steps = np.abs(np.diff(x[~at]))
    if len(steps) == 0:
        return 0
    coarse = float(resolution(x[:, np.newaxis])[0])
    far = max(2.0 * float(np.quantile(steps, 0.95)), _STEPS * coarse)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], at, [False]]).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    inside = (starts > 0) & (stops < len(x))
    starts, stops = starts[inside], stops[inside]
    before, after = x[starts - 1] - value, x[stops] - value
    leapt = (np.abs(before) > far) & (np.abs(after) > far) & (before * after > 0.0)
    return int((stops - starts)[leapt].sum()) if int(leapt.sum()) >= _AGAIN else 0


def _is_extreme(values: FloatArray, row: int) -> bool:
    """Whether a value is among the largest either way."""
    size = np.abs(values[np.isfinite(values)])
    return bool(np.abs(values[row]) >= 0.999 * size.max())


def _position_freeze(log: Log, j: int, long: int) -> Iterator[Note]:
    """A position that holds one value while its own velocity says otherwise, or that jumps out of it."""
    stretch = _frozen_position(log, j, long)
    why = "while its velocity is not zero" if stretch is not None else "and then jumps, faster than it ever moves"
    stretch = stretch or leapt_stretch(log.time, log[Channel.POSITION][:, j], FREEZE_SAMPLES)
    if stretch is not None:
        yield finding(
            "frozen",
            Severity.ERROR if stretch.length > FEW * len(log) else Severity.WARNING,
            log.joints[j],
            f"position holds one value for {stretch.length} samples from row {stretch.start + 1} {why}",
            "its encoder or column is dead; leave that stretch out with `rows`",
        )


def _frozen_position(log: Log, j: int, long: int) -> HeldStretch | None:
    """Start and length of the longest stretch with one value; None when it is not unusual."""
    if Channel.VELOCITY not in log or not np.isfinite(log[Channel.VELOCITY][:, j]).any():
        return None
    q, qd = log[Channel.POSITION][:, j], log[Channel.VELOCITY][:, j]
    speed = np.abs(np.where(np.isfinite(qd), qd, 0.0))
    fast = speed > max(0.2 * float(np.quantile(speed, 0.95)), 1e-3)
    start, length, usual = _longest_run(q, fast)
    return HeldStretch(start, length) if length >= max(long, FREEZE_USUAL * usual) else None


def bad_rows(log: Log) -> Mask:
    """Rows that cannot be used: frozen, of torque cut off at a top, with missing or absurd numbers; shape [n_rows]."""
    bad: Mask = np.zeros(len(log), dtype=np.bool_)
    for channel in (Channel.POSITION, *log.torques):
        bad |= np.asarray(corrupt(log[channel], ABSURD[channel]).any(axis=1) | np.isnan(log[channel]).any(axis=1))
    step = ordinary_step(log.time) or 1.0
    long = max(FREEZE_SAMPLES, int(np.ceil(FREEZE_SECONDS / step)))
    moving = _moving_rows(log)
    joints = range(len(log.joints))
    found = [held for c in log.torques for j in joints for held in _torque_stretches(log, c, j, long, moving)]
    leaps = [leapt_stretch(log.time, log[Channel.POSITION][:, j], FREEZE_SAMPLES) for j in joints]
    found += [held for held in (*leaps, *(_frozen_position(log, j, long) for j in joints)) if held is not None]
    for held in found:
        bad[held.rows] = True
    still = _still_rows(log)
    for top in (_flat_top(log[c][:, j], still) for c in log.torques for j in joints):
        if np.mean(top) > SATURATED:
            bad |= top
    return bad


def _longest_run(values: FloatArray, where: Mask) -> tuple[int, int, int]:
    """Start and length of the longest run of equal values within the rows given, and a long but ordinary run."""
    same = np.concatenate([[False], (values[1:] == values[:-1]) & where[1:]])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    if len(edges) == 0:
        return 0, 0, 1
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    best = int(np.argmax(lengths))
    rest = np.delete(lengths, best)
    usual = int(np.quantile(rest, 0.99)) + 1 if len(rest) else 1
    return int(starts[best]) - 1, int(lengths[best]) + 1, usual


def _saturation_findings(log: Log, channel: Channel, robot: Robot) -> Iterator[Note]:
    """Torque at the robot's limit, or cut off at a flat top of its own."""
    values = log[channel]
    limit = robot.limit("torque")
    for j in range(values.shape[1]):
        x = np.abs(values[:, j])
        x = x if np.isfinite(x.sum()) else x[np.isfinite(x)]
        if len(x) == 0 or x.max() == 0.0:
            continue
        top = float(x.max())
        # A torque that goes beyond the limit of the description is not held by it.
        known = channel is not Channel.CURRENT and np.isfinite(limit[j]) and top < BEYOND_LIMIT * limit[j]
        near = top if not known else float(limit[j])
        # A flat top: many samples exactly at the extreme, which a smooth signal touches but once.
        flat = float(np.mean(x >= top * (1.0 - 1e-9)))
        at = float(np.mean(np.abs(x - near) < (1.0 - AT_LIMIT) * near)) if known and top > AT_LIMIT * near else 0.0
        if max(flat, at) <= SATURATED:
            continue
        clipped = flat if flat > SATURATED and _flat_top(values[:, j], _still_rows(log)).any() else 0.0
        if max(clipped, at) > SATURATED:
            severe = max(clipped, at) > SATURATED_ERROR
            yield finding(
                "saturated",
                Severity.ERROR if severe else Severity.WARNING,
                log.joints[j],
                f"{channel.value} stays at {near if at >= clipped else top:.4g} for {share(max(clipped, at))} of the samples",
                "the drive or the sensor is at its limit: move slower, or carry less",
            )


def _still_rows(log: Log) -> Mask:
    """Rows in which no position differs from the row before: without noise, torque is then the same as well."""
    still: Mask = np.zeros(len(log), dtype=np.bool_)
    still[1:] = np.all(np.diff(log[Channel.POSITION], axis=0) == 0.0, axis=1)
    return still


def _flat_top(values: FloatArray, still: Mask) -> Mask:
    """Rows of one channel at its extreme, where it stays or returns there; none of a smooth or coarse signal, shape [n_rows].

    Args:
        values: of the channel.
        still: rows in which the arm stands: one that comes back to a pose comes back to its torque.
    """
    size = np.nan_to_num(np.abs(values))
    extreme = (size >= float(size.max()) * (1.0 - 1e-9)) & (size > 0.0)
    held, usual = _longest_run(size, extreme)[1], _longest_run(values, ~extreme)[1]
    # Steps of a coarse signal hold as long at any other value.
    return extreme if held >= max(FLAT_SAMPLES, 2 * usual) or _piled(size, extreme & ~still) else np.zeros_like(extreme)


def _piled(size: FloatArray, extreme: Mask) -> bool:
    """Whether a channel comes back to its very extreme again and again, far more often than to the values next to it.

    A torque that is cut off leaves its limit with every bit of noise, and elsewhere the arm may stand still for longer than it
    stays there. A coarse channel comes back to all of its values.
    """
    visits = int(np.count_nonzero(np.diff(extreme.astype(np.int8)) == 1)) + int(extreme[0])
    if visits < FLAT_SAMPLES or float(np.mean(extreme)) <= SATURATED or extreme.all():
        return False
    counts = np.unique(size[size < size[extreme].min()], return_counts=True)[1]
    return bool(np.count_nonzero(extreme) > PILED * int(counts[-FLAT_SAMPLES:].max(initial=0)))


def _resolution_findings(log: Log, robot: Robot) -> Iterator[Note]:
    """Channels whose steps are coarse against their range."""
    for channel in (Channel.POSITION, *log.torques[:1]):
        values = log[channel]
        for j in range(values.shape[1]):
            x = values[:, j] if np.isfinite(values[:, j].sum()) else values[np.isfinite(values[:, j]), j]
            span = float(np.ptp(x)) if len(x) else 0.0
            if span <= 0.0 or (channel is Channel.POSITION and span < minimum_range(robot, j)):
                continue
            enough = min(COARSE, len(x) // 4)
            # A fraction of the samples settles it for a fine channel, whatever the length of the log.
            if len(np.unique(x[:: max(1, len(x) // (50 * COARSE))])) >= enough:
                continue
            distinct = len(np.unique(x))
            if distinct < enough:
                useless = channel.is_torque and distinct < min(USELESS, enough)
                yield finding(
                    "quantised",
                    Severity.ERROR if useless else Severity.WARNING,
                    log.joints[j],
                    f"{channel.value} has {distinct} distinct values over a range of {span:.3g}",
                    "record with more digits, or expect its parameters to be uncertain",
                )


def minimum_range(robot: Robot, j: int) -> float:
    """Range below which a joint counts as standing still [rad or m]."""
    return STILL_ANGLE if robot.joints[j].kind is JointKind.REVOLUTE else STILL_LENGTH
