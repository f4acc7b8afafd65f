"""From recorded stamps to uniform time: gaps, stale rows, jitter, resampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.logs.log import Channel, Clock, Log
from armid.notes import Note, Severity

Mask = npt.NDArray[np.bool_]

UNIFORM_JITTER = 1e-3
"""Steps that differ by less than this fraction are rounding of printed time, not jitter."""

MAX_STALE_RUN = 3
"""A reader that polls faster than the controller answers repeats a row once or twice; longer runs are standstill."""

SMOOTHER = 0.7
"""Uniform time replaces recorded stamps when it makes positions smoother by this factor; below, the stamps are kept."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """A part of a log without gaps.

    Args:
        log: its rows.
        time: the time base used [s], shape [n_samples]; strictly increasing.
        step: ordinary step [s].
    """

    log: Log
    time: FloatArray
    step: float


def ordinary_step(time: FloatArray) -> float:
    """Mean of the steps that are near the median: the true mean rate, without gaps and duplicates [s]."""
    steps = np.diff(time)
    steps = steps[np.isfinite(steps) & (steps > 0.0)]
    if len(steps) == 0:
        return 0.0
    median = float(np.median(steps))
    near = steps[(steps > 0.3 * median) & (steps < 3.0 * median)]
    return float(near.mean())


def stretches(log: Log, usable: Mask, gap: float) -> list[Stretch]:
    """The log cut at gaps, rows that are not usable left out; never bridged.

    Args:
        log: as recorded.
        usable: rows with finite, believable numbers.
        gap: a step longer than this many ordinary steps is a gap.
    """
    step = ordinary_step(log.time)
    if step <= 0.0:
        return []
    kept = np.flatnonzero(usable & increasing_mask(log.time))
    if len(kept) == 0:
        return []
    cuts = np.flatnonzero(np.diff(log.time[kept]) > gap * step) + 1
    parts = np.split(kept, cuts)
    out = []
    for part in parts:
        piece = log.selected(part) if len(part) < len(log) else log
        out.append(Stretch(piece, piece.time, step))
    return out


def increasing_mask(time: FloatArray) -> Mask:
    """Rows whose time is later than every row before: drops duplicates and steps back."""
    good = np.isfinite(time)
    running = np.maximum.accumulate(np.where(good, time, -np.inf))
    before = np.concatenate([[-np.inf], running[:-1]])
    return good & (time > before)


def stale_rows(values: FloatArray) -> Mask:
    """Rows that repeat the row before, in runs too short to be standstill."""
    same = np.concatenate([[False], (values[1:] == values[:-1]).all(axis=1)])
    if not same.any():
        return same
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    short = stops - starts <= MAX_STALE_RUN
    change = np.zeros(len(same) + 1, dtype=np.int64)
    np.add.at(change, starts[short], 1)
    np.add.at(change, stops[short], -1)
    return np.asarray(np.cumsum(change[:-1]) > 0)


def is_uniform(time: FloatArray, step: float) -> bool:
    return len(time) < 2 or bool(np.abs(np.diff(time) - step).max() <= UNIFORM_JITTER * step)


def counted_time(time: FloatArray, step: float) -> FloatArray:
    """Uniform time with missing samples counted: a straight line through the stamps over the sample count."""
    count = np.concatenate([[0.0], np.cumsum(np.maximum(1.0, np.rint(np.diff(time) / step)))])
    slope, start = np.polyfit(count, time - time[0], 1)
    return time[0] + start + slope * count


def with_time_base(stretch: Stretch) -> tuple[Stretch, Note | None]:
    """The stretch on the time base in which the arm moves smoothest.

    Stamps taken on arrival jitter though the samples were taken evenly; taking such stamps at their word turns 1 ms of
    jitter into 1 mrad of position noise at 1 rad/s. Where samples really were taken unevenly, the stamps make it smoother.
    """
    time, step, log = stretch.time, stretch.step, stretch.log
    if log.clock is not Clock.COLUMN or len(time) < 50 or is_uniform(time, step):
        return stretch, None
    q = log[Channel.POSITION]
    fresh = ~stale_rows(q)
    counted = counted_time(time, step)
    if not (np.diff(counted) > 0.0).all() or fresh.sum() < 20:
        return stretch, None
    # Only while moving does the time base matter; standstill would hide the difference.
    speed = np.abs(np.gradient(q[fresh], axis=0)).max(axis=1)
    moving = speed[2:-2] > np.median(speed)
    recorded = roughness_where(time[fresh], q[fresh], moving)
    even = roughness_where(counted[fresh], q[fresh], moving)
    jitter = float(np.std(time - counted))
    if jitter > step or not even < SMOOTHER * recorded:
        return stretch, None
    every = float(np.median(np.diff(counted)))
    text = (
        f"the stamps jitter by {jitter * 1e3:.2g} ms around even sampling, but the motion is {recorded / max(even, 1e-300):.3g} "
        f"times smoother without: samples were taken evenly every {every * 1e3:.4g} ms, the jitter is ignored"
    )
    return Stretch(log, counted, step), Note("stamp-jitter-ignored", Severity.INFO, text, log.name)


def roughness_where(time: FloatArray, values: FloatArray, moving: Mask) -> float:
    """Roughness over all joints while moving, each joint in units of its own travel."""
    t0, t1, t2, t3, t4 = (time[k : len(time) - 4 + k][moving] for k in range(5))
    nodes = {0: t0, 1: t1, 3: t3, 4: t4}
    residual = values[2:-2][moving].copy()
    for k, own in nodes.items():
        weight = np.ones(len(t2))
        for other in nodes.values():
            if other is not own:
                weight = weight * (t2 - other) / (own - other)
        residual -= weight[:, np.newaxis] * values[k : len(values) - 4 + k][moving]
    spread = np.maximum(values.std(axis=0), 1e-12)
    return float(np.median(np.abs(residual) / spread))


def even_step(stretch: Stretch) -> float:
    """Step of the uniform grid [s]: the span over the number of steps, missing rows counted, so that even logs pass unchanged."""
    steps = np.diff(stretch.time)
    exact = float(steps.sum() / np.maximum(1.0, np.rint(steps / stretch.step)).sum())
    return exact if abs(exact - stretch.step) < UNIFORM_JITTER * stretch.step else stretch.step


def grid_of(stretch: Stretch, step: float) -> FloatArray:
    """Uniform time from the first to the last sample."""
    count = int(np.floor((stretch.time[-1] - stretch.time[0]) / step * (1.0 + 1e-12))) + 1
    return stretch.time[0] + step * np.arange(count)


def resampled(time: FloatArray, values: FloatArray, grid: FloatArray, fresh: Mask) -> FloatArray:
    """Values on a uniform grid by a cubic spline through the fresh rows; unchanged when they are on the grid already."""
    from scipy.interpolate import CubicSpline

    if fresh.all() and len(time) == len(grid) and np.abs(time - grid).max() <= UNIFORM_JITTER * (grid[1] - grid[0]):
        return values
    if fresh.sum() < 4:
        return np.column_stack([np.interp(grid, time[fresh], column[fresh]) for column in values.T])
    return np.asarray(CubicSpline(time[fresh], values[fresh], axis=0)(grid))
