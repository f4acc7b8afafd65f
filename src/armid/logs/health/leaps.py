"""Positions that leap from one row to the next: rows are missing while the stamps go on evenly, or an encoder has slipped.

A joint is carried by its inertia. Between two rows that follow one another in time it makes about the way that it made before
and makes after. A single step that is far longer, between steps that agree with each other, is no motion: derived twice it is an
acceleration that no torque explains, and what lies behind it may belong to another zero or another time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import pi

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.logs.conditioning.uniform import increasing_mask, stale_rows
from armid.logs.health.findings import finding
from armid.logs.health.rows import ABSURD, corrupt, resolution, spikes, within
from armid.logs.health.thresholds import FEW, LEAP, SPIKE
from armid.logs.log import Channel, Log
from armid.notes import Note, Severity
from armid.robot.robot import JointKind, Robot

_FOLLOWS = 1.5
"""Ordinary steps of time, up to which one row follows another: a row that is missing there is missing in the stamps, too."""

_NOTABLE = 1.2
"""Times the largest speed of the joint in other rows, from which on a leap is said: where stamps jitter and an encoder is coarse
that speed is not known better than to a fifth."""

_WRAPPED = 0.01
"""Of a turn, by which a leap may be off it where an angle was folded into one turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leap:
    """A step of a position that is no motion.

    Args:
        joint: place of it.
        row: before the step, from 0.
        size: beyond what the steps around it make of it [rad or m].
        times: speed of the step over the joint's largest in other rows.
    """

    joint: int
    row: int
    size: float
    times: float


def leap_findings(log: Log, robot: Robot) -> Iterator[Note]:
    """One finding for all leaps of a log: the rows, the joints, by how much.

    A step no faster than the joint moves elsewhere is no more than a lost packet, and changes little.
    """
    found = [leap for leap in leaps(log) if leap.times > _NOTABLE]
    if not found:
        return
    places = sorted({leap.row for leap in found})
    worst = max(found, key=lambda leap: leap.times)
    # Many small ones are a recorder that polls another clock; what is far beyond the arm's own motion is none however many.
    severe = worst.times > LEAP
    if not severe and len(places) > FEW * len(log):
        return
    revolute = robot.joints[worst.joint].kind is JointKind.REVOLUTE
    joints = {leap.joint for leap in found if leap.row == worst.row}
    others = f" ({len(joints)} joints do)" if len(joints) > 1 else ""
    several = f", in one of {len(places)} places" if len(places) > 1 else ""
    if revolute and abs(abs(worst.size) / (2.0 * pi) - 1.0) < _WRAPPED:
        do = "angles were folded into one turn: unfold them, so that they go on beyond it"
    elif len(joints) > 1:
        do = "rows are missing although the stamps go on, or two recordings were joined: use those before or after (`rows`)"
    else:
        do = "its encoder slipped, or its packets were lost: use the rows before or after (`rows`), each with its own zero"
    size = f"{np.degrees(worst.size):.3g} deg" if revolute else f"{worst.size:.3g} m"
    yield finding(
        "position-leap",
        Severity.ERROR if severe else Severity.WARNING,
        log.joints[worst.joint],
        f"its position leaps by {size} between rows {worst.row + 1} and {worst.row + 2}{others}{several}, "
        f"{worst.times:.2g} times as fast as it moves otherwise",
        do,
    )


def leaps(log: Log) -> list[Leap]:
    """Steps between rows that follow one another in time, far off those before and after, which agree with each other.

    A recorder that polls faster than the controller answers repeats rows, and an encoder that is read too seldom holds its value:
    a step away from such a value is long by rights.
    """
    q = log[Channel.POSITION]
    good = increasing_mask(log.time)
    if not within(q, ABSURD[Channel.POSITION]):
        good &= ~corrupt(q, ABSURD[Channel.POSITION]).any(axis=1)
    good &= ~spikes(q, good).any(axis=1)
    row = np.flatnonzero(good)
    row = row[~stale_rows(q[row])]
    if len(row) < 8:
        return []
    q, step = q[row], np.diff(log.time[row])
    usual = float(np.median(step))
    # Rows that were left out in between are told of by themselves.
    left_out = np.cumsum(~good)[row]
    follows = (step < _FOLLOWS * usual) & (step > usual / _FOLLOWS) & (np.diff(left_out) == 0)
    speed = np.diff(q, axis=0) / np.where(follows, step, usual)[:, np.newaxis]
    found = spikes(speed, follows)
    found[1:-1] &= (speed[:-2] != 0.0) & (speed[2:] != 0.0)
    if not found.any():
        return []
    size = _beside(speed) * usual
    found &= np.abs(size) > SPIKE * resolution(q)
    return [
        Leap(
            joint=int(j),
            row=int(row[k]),
            size=float(size[k, j]),
            times=_times(speed[:, j], found[:, j] | ~follows, int(k)),
        )
        for k, j in np.argwhere(found)
    ]


def _beside(speed: FloatArray) -> FloatArray:
    """Every speed less the mean of those before and after; nothing at the ends, which have none."""
    out = np.zeros(speed.shape)
    out[1:-1] = speed[1:-1] - 0.5 * (speed[:-2] + speed[2:])
    return out


def _times(speed: FloatArray, left_out: npt.NDArray[np.bool_], k: int) -> float:
    """A speed over the largest of all others."""
    fastest = float(np.max(np.abs(speed), where=~left_out, initial=0.0))
    return abs(float(speed[k])) / max(fastest, 1e-300)
