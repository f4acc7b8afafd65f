"""Stretches in which a torque channel stands still while its joint moves, against how the channel repeats itself otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.logs.conditioning.uniform import ordinary_step
from armid.logs.health.rows import Mask, resolution
from armid.logs.health.thresholds import FREEZE_CHANCE, FREEZE_REPEATS, GAP, LEAP, REST_CHANGE
from armid.logs.log import Channel, Log

_MOTION_SECONDS = 0.2
"""Over which a change of position is looked at: reversals pass in less."""

_TAIL = 0.9
"""Quantile of the run lengths beyond which their tail is taken as geometric."""

_STEPS = 1.5
"""Steps of resolution: a channel that held still because its torque did goes on by one."""


@dataclass(frozen=True, slots=True)
class HeldStretch:
    """A stretch of equal values: first row from 0, and rows."""

    start: int
    length: int

    @property
    def rows(self) -> slice:
        return slice(self.start, self.start + self.length)


def held_stretches(log: Log, channel: Channel, j: int) -> list[HeldStretch]:
    """Stretches of one value that joint j moves through and that the channel's own repeats do not explain.

    Runs of equal values beyond their 90 % quantile are taken as geometric (a sensor that is read more often than it measures, or
    a coarse one, has long runs and so a far limit); a stretch counts when chance gives one so long in fewer than `FREEZE_CHANCE`
    logs. A channel that does not change nearly every row must have missed its turns by the same chance as well. A stretch must
    not be the flat top of a saturated channel, and must end in more than one step of the channel's resolution: what was missed
    meanwhile.
    """
    values, q = log[channel][:, j], log[Channel.POSITION][:, j]
    starts, lengths = runs_of_equal(values)
    if len(starts) < 2 or int(lengths.max()) <= GAP:
        return []
    travel = travel_of(log, j)
    if travel.least <= 0.0:
        return []
    chance = FREEZE_CHANCE / len(log.joints)
    ordinary = np.sort(lengths[travel.moving[starts]])[:-1]
    limit = longest_by_chance(ordinary, chance)
    if len(ordinary) < (1.0 - FREEZE_REPEATS) * int(ordinary.sum()):
        limit = max(limit, _longest_without_turn(values, travel.moving, chance))
    step = _STEPS * float(resolution(values[:, np.newaxis])[0])
    top = 0.999 * float(np.nanmax(np.abs(values)))
    return [
        HeldStretch(int(starts[k]), int(lengths[k]))
        for k in np.flatnonzero(lengths > limit)
        if abs(values[starts[k]]) < top
        and _rows_moved(q[starts[k] : starts[k] + lengths[k]], travel.least) > limit
        and _missed(values, int(starts[k] + lengths[k])) > step
    ]


def leapt_stretch(time: FloatArray, position: FloatArray, long: int) -> HeldStretch | None:
    """The longest stretch of one position that ends in a leap; None where there is none.

    An encoder that stood still has missed what its joint did meanwhile, and goes on from there at once: faster, by `LEAP`, than
    the joint moves in any other row. A joint at rest sets out slowly.

    Args:
        time: [s], shape [n_rows].
        position: of one joint [rad or m], shape [n_rows].
        long: rows from which on a stretch counts; seconds do not, the leap tells how long the joint went on.
    """
    starts, lengths = runs_of_equal(position)
    ends = starts + lengths
    held = np.flatnonzero((lengths >= long) & (ends < len(position)))
    if len(held) == 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.abs(np.diff(position)) / np.diff(time)
    ordinary = np.delete(speed, ends[held] - 1)
    fastest = float(np.max(ordinary[np.isfinite(ordinary)], initial=0.0))
    leaps = [k for k in held if speed[ends[k] - 1] > LEAP * fastest > 0.0]
    longest = max(leaps, key=lambda k: lengths[k], default=None)
    return None if longest is None else HeldStretch(int(starts[longest]), int(lengths[longest]))


def runs_of_equal(values: FloatArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """First rows and lengths of the runs of equal values, those of a single row included."""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return starts, np.diff(np.concatenate([starts, [len(values)]]))


@dataclass(frozen=True, slots=True)
class Travel:
    """Rows in which a joint moves, and the change of position below which it stands still [rad or m]."""

    moving: Mask
    least: float


def travel_of(log: Log, j: int) -> Travel:
    """How a joint moves."""
    q, step = log[Channel.POSITION][:, j], ordinary_step(log.time) or 0.0
    reach = max(1, round(_MOTION_SECONDS / step)) if step > 0.0 else 1
    finite = np.where(np.isfinite(q), q, 0.0)
    if len(q) <= 4 * reach:
        return Travel(np.zeros(len(q), dtype=np.bool_), 0.0)
    change = np.abs(finite[reach:] - finite[:-reach])
    least = REST_CHANGE * float(change.max())
    return Travel(np.concatenate([change > least, np.repeat(change[-1:] > least, reach)]), least)


def longest_by_chance(ordinary: npt.NDArray[np.intp], chance: float) -> float:
    """Rows that a run of equal values exceeds in a log with this probability; `ordinary` are all but the longest [rows].

    Counted in long but ordinary runs: of a sensor that is read more often than it measures, in its own samples. Fewer than what
    conditioning bridges of these are never too many.
    """
    if len(ordinary) == 0:
        return np.inf
    unit = float(np.quantile(ordinary, _TAIL))
    beyond = ordinary[ordinary >= unit] / unit - 1.0
    # One more than seen: where nothing is repeated, a repeat is as likely as one in all of them.
    mean = (float(beyond.sum()) + 1.0) / len(beyond)
    return unit * max(GAP, 1.0 + float(np.log(len(beyond) / chance) / np.log1p(1.0 / mean)))


def _rows_moved(q: FloatArray, least: float) -> int:
    """Rows of a stretch after a tenth of the way that its joint makes in it; none when it stands still."""
    way = np.abs(q - q[0])
    if not float(way.max()) > least:
        return 0
    inside = np.flatnonzero(way > 0.1 * way.max())
    return int(inside[-1] - inside[0] + 1)


def _longest_without_turn(values: FloatArray, moving: Mask, chance: float) -> float:
    """Rows without a turn of the channel that a log has with this probability, its turns falling at random.

    Noise turns a channel around every few rows; rounding adds no turn. A perfect channel turns with the motion only, and may
    rightly stand still for seconds: its limit is far.
    """
    change = np.sign(np.diff(values))
    at = np.flatnonzero(change)
    turns = at[1:][change[at[1:]] * change[at[:-1]] < 0.0]
    count = int(moving[turns].sum())
    rows = max(1, int(moving.sum()))
    return float(np.log(count / chance) * rows / count) if count else np.inf


def _missed(values: FloatArray, after: int) -> float:
    """By how much a channel changes when a stretch ends; anything where nobody knows, as at the end of a log."""
    change = abs(values[after] - values[after - 1]) if after < len(values) else np.inf
    return float(change) if np.isfinite(change) else np.inf
