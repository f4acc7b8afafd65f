"""Stretches in which a torque runs along a straight line: samples that were lost and filled in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armid.arrays import FloatArray
from armid.logs.health.findings import finding, share
from armid.logs.health.frozen import HeldStretch, longest_by_chance, runs_of_equal, travel_of
from armid.logs.health.rows import resolution
from armid.logs.health.thresholds import FEW, FREEZE_CHANCE
from armid.logs.log import Channel, Log
from armid.notes import Note, Severity

_ROUNDING = 2.0
"""Times what rounding makes of one value, by which it moves the middle of three off their line."""

_WHOLE = 1e-3
"""Of its steps, by which a channel that was rounded may be off whole ones."""

_LARGEST = 1e100
"""What is more is no number to count with, as is what is none."""

_SLOPE = 5.0
"""The same between the ends of a stretch: what does not rise is held, which is another finding."""


def bridged_findings(log: Log, channel: Channel) -> Iterator[Note]:
    """Torques of which more rows than may be left out lie on straight lines."""
    for j, name in enumerate(log.joints):
        stretches = bridged_stretches(log, channel, j)
        rows = sum(stretch.length for stretch in stretches)
        if rows > FEW * len(log):
            yield finding(
                "bridged",
                Severity.WARNING,
                name,
                f"{channel.value} runs along straight lines, {len(stretches)} in {share(rows / len(log))} of the rows, "
                f"the first from row {stretches[0].start + 1}: lost samples were filled in",
                "record again, or leave those rows out with `rows`",
            )


def bridged_stretches(log: Log, channel: Channel, j: int) -> list[HeldStretch]:
    """Straight stretches of a joint's torque while it moves, longer than chance makes in one of a thousand clean logs.

    No measurement follows a line to the last digit for long. Lines are those through the ends in time or row by row. Runs of
    them beyond their 90 % quantile are taken as geometric: a recording that was sampled up by straight lines has long ones
    everywhere, and so a far limit.
    """
    values, time = log[channel][:, j], log.time
    values = np.where(np.abs(values) < _LARGEST, values, np.nan)
    if len(values) < 3:
        return []
    slack = _ROUNDING * _rounding(values)
    straight = (_off_line(values, np.arange(len(values), dtype=np.float64)) <= slack) | (
        _off_line(values, time) <= slack
    )
    starts, lengths = runs_of_equal(np.where(straight, 0.0, np.arange(1.0, len(straight) + 1.0)))
    moving = travel_of(log, j).moving
    on_line = straight[starts] & moving[starts + 1]
    # A row that is on no line is a line of its own two neighbours at most.
    ordinary = np.sort(np.where(on_line, lengths, 1)[moving[starts + 1]])[:-1]
    limit = longest_by_chance(ordinary, FREEZE_CHANCE / len(log.joints))
    found = [HeldStretch(int(starts[k]), int(lengths[k]) + 2) for k in np.flatnonzero(on_line & (lengths > limit))]
    return [one for one in found if _is_line(values[one.rows], time[one.rows], slack)]


def _rounding(values: FloatArray) -> float:
    """What rounding makes of one value: a step of a channel that has steps, else what its numbers hold.

    The smallest difference of a channel that was not rounded is where it turns around, and no step.
    """
    known = values[np.isfinite(values)]
    if len(known) == 0:
        return 0.0
    with np.errstate(over="ignore"):
        single = bool(np.all(known == known.astype(np.float32)))
    last = (float(np.finfo(np.float32).eps) if single else 1e-12) * float(np.max(np.abs(known)))
    step = float(resolution(known[:, np.newaxis])[0])
    if step == 0.0:
        return last
    steps = (known - known[0]) / step
    return max(last, step) if np.all(np.abs(steps - np.rint(steps)) < _WHOLE) else last


def _off_line(values: FloatArray, along: FloatArray) -> FloatArray:
    """How far every value but the outer two is off the line through its neighbours."""
    before, middle, after = values[:-2], values[1:-1], values[2:]
    span = np.where(along[2:] > along[:-2], along[2:] - along[:-2], 1.0)
    return np.asarray(np.abs(middle - before - (after - before) * (along[1:-1] - along[:-2]) / span))


def _is_line(values: FloatArray, time: FloatArray, slack: float) -> bool:
    """Whether one line holds all of them; a coarse channel that bends slowly is straight from row to row only."""
    rows = np.arange(len(values), dtype=np.float64)
    chords = (np.interp(along, along[[0, -1]], values[[0, -1]]) for along in (rows, time))
    rises = abs(values[-1] - values[0]) > _SLOPE * slack
    return bool(rises and any(np.max(np.abs(values - chord)) <= slack for chord in chords))
