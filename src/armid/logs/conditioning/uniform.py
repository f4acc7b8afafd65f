"""From recorded stamps to uniform time: gaps, stale rows, jitter, resampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.log import Log
from armid.signals.spline import CubicSpline

Mask = npt.NDArray[np.bool_]

UNIFORM_JITTER = 1e-3
"""Steps that differ by less than this fraction are rounding of printed time, not jitter."""

_MAX_STALE_RUN = 3
"""A reader that polls faster than the controller answers repeats a row once or twice; longer runs are standstill."""


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
    return float(near_steps(steps, median).mean())


def near_steps(steps: FloatArray, median: float) -> FloatArray:
    """The steps near the median; limits between whole multiples, so that rounding does not decide over lost rows."""
    return steps[(steps > 0.3 * median) & (steps < 2.5 * median)]


MIN_STEP = 1e-7
MAX_STEP = 1e3
"""[s] No recorder samples faster or slower; such steps are damaged stamps or a wrong unit."""


def check_step(name: str, step: float) -> None:
    """Refuses a step no recorder has.

    Raises:
        InputError: naming the step.
    """
    if not MIN_STEP <= step <= MAX_STEP:
        raise InputError(name, f"a time step of {step:.3g} s", "name the unit of time in a mapping (clock: {unit: ms})")


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
    check_step(log.name, step)
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
    short = stops - starts <= _MAX_STALE_RUN
    change = np.zeros(len(same) + 1, dtype=np.int64)
    np.add.at(change, starts[short], 1)
    np.add.at(change, stops[short], -1)
    return np.asarray(np.cumsum(change[:-1]) > 0)


def is_uniform(time: FloatArray, step: float) -> bool:
    return len(time) < 2 or bool(np.abs(np.diff(time) - step).max() <= UNIFORM_JITTER * step)


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
    if fresh.all() and len(time) == len(grid) and np.abs(time - grid).max() <= UNIFORM_JITTER * (grid[1] - grid[0]):
        return values
    if fresh.sum() < 4:
        return np.column_stack([np.interp(grid, time[fresh], column[fresh]) for column in values.T])
    return CubicSpline.through(time[fresh], values[fresh])(grid)
