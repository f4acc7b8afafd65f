"""When samples were really taken: stamps, even counting, or the controller's ticks."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray
from armid.logs.conditioning.uniform import Mask, Stretch, is_uniform, stale_rows
from armid.logs.log import Channel, Clock
from armid.notes import Note, Severity

_SMOOTHER = 0.7
"""Another time base replaces recorded stamps when it makes positions smoother by this factor; else the stamps are kept."""

_NEAR_TICK = 0.15
"""Distance from a whole number of ticks, in ticks, that rounding and noise of the velocity may cause."""

_ON_TICKS = 0.97
"""Share of moving samples that must lie on ticks before we believe there are any."""

_MAX_DRIFT = 5e-3
"""[s] Between ticks counted and stamps: stamps are late by scheduling, not by more."""


class TimeBase(StrEnum):
    """What the samples of a stretch lie on."""

    STAMPS = "stamps"
    COUNTED = "counted"
    """Even counting."""
    TICKS = "ticks"
    """Ticks of a controller that was polled."""


def with_time_base(stretch: Stretch) -> tuple[Stretch, Note | None]:
    """The stretch on the time base in which the arm moves smoothest.

    Stamps taken on arrival jitter though the samples were taken evenly; taking such stamps at their word turns 1 ms of
    jitter into 1 mrad of position noise at 1 rad/s. Where samples really were taken unevenly, the stamps make it smoother.
    A reader that polls a controller gets some samples twice and misses others: then time runs in whole ticks of the
    controller, and the recorded velocity tells how many passed.
    """
    _, best, note = chosen_base(stretch)
    return best, note


def chosen_base(stretch: Stretch) -> tuple[TimeBase, Stretch, Note | None]:
    """The same, with the kind of base; the note says why when it is not the stamps."""
    time, step, log = stretch.time, stretch.step, stretch.log
    if log.clock is not Clock.COLUMN or len(time) < 50 or is_uniform(time, step):
        return TimeBase.STAMPS, stretch, None
    recorded = _roughness(stretch)
    bases = {TimeBase.COUNTED: evenly_counted(stretch), TimeBase.TICKS: _ticked(stretch)}
    found = {kind: (_roughness(base), base) for kind, base in bases.items() if base is not None}
    if not found:
        return TimeBase.STAMPS, stretch, None
    kind = min(found, key=lambda k: found[k][0])
    value, best = found[kind]
    if not value < _SMOOTHER * recorded:
        return TimeBase.STAMPS, stretch, None
    every = float(np.median(np.diff(best.time)))
    text = (
        f"the motion is {recorded / max(value, 1e-300):.3g} times smoother when samples are taken to lie on ticks of "
        f"{every * 1e3:.4g} ms than with the stamps: the stamps' jitter is ignored"
    )
    return kind, best, Note("stamp-jitter-ignored", Severity.INFO, text, log.name)


_WANDER_SAMPLES = 50
WANDER = 0.25
"""Steps. Jitter averages out over so many samples; a lost or invented sample shifts all stamps after it by a whole step."""


def evenly_counted(stretch: Stretch) -> Stretch | None:
    """A straight line through the stamps over the sample count; None when stamps stray from it.

    Samples are counted one by one, or with those that are missing where a step is longer; the count whose line lies closer to
    the stamps is right.
    """
    time, step = stretch.time, stretch.step
    plain = np.arange(float(len(time)))
    with_missing = np.concatenate([[0.0], np.cumsum(np.maximum(1.0, np.rint(np.diff(time) / step)))])
    lines = [_on_line(count, time) for count in (plain, with_missing)]
    counted = min(lines, key=lambda line: float(np.std(time - line)))
    if np.std(time - counted) >= step or wander(time - counted) > WANDER * step:
        return None
    return Stretch(stretch.log, counted, step)


def wander(residual: FloatArray) -> float:
    """The largest mean over some samples [s]."""
    width = min(_WANDER_SAMPLES, len(residual))
    total = np.concatenate([[0.0], np.cumsum(residual)])
    return float(np.abs(total[width:] - total[:-width]).max()) / width


def _ticked(stretch: Stretch) -> Stretch | None:
    """Fresh rows on the controller's ticks; None without a velocity, or when time does not run in ticks.

    From one row to the next, `dt = dq . qd / qd . qd`. Where this is a whole multiple of one tick for nearly all rows, it
    is the number of ticks that passed; at rest, where it says nothing, the stamps do.
    """
    log = stretch.log
    if Channel.VELOCITY not in log or not np.isfinite(log[Channel.VELOCITY]).all():
        return None
    kept = np.flatnonzero(~stale_rows(log[Channel.POSITION]))
    q, qd, time = log[Channel.POSITION][kept], log[Channel.VELOCITY][kept], stretch.time[kept]
    mean = 0.5 * (qd[1:] + qd[:-1])
    power = (mean**2).sum(axis=1)
    moving = power > 0.1 * np.median(power)
    if moving.sum() < 50:
        return None
    passed = (np.diff(q, axis=0) * mean).sum(axis=1) / np.maximum(power, 1e-300)
    tick = float(np.median(passed[moving]))
    if tick <= 0.0:
        return None
    ticks = np.where(moving, passed, np.diff(time)) / tick
    whole = np.rint(ticks)
    if np.mean(np.abs(ticks - whole)[moving] < _NEAR_TICK) < _ON_TICKS:
        return None
    # No tick between two rows: the second repeats the first up to its last digit.
    new = np.concatenate([[True], whole > 0.0])
    count = np.concatenate([[0.0], np.cumsum(whole)])[new]
    counted = _on_line(count, time[new])
    if np.abs(counted - time[new]).max() > _MAX_DRIFT + 2.0 * float(np.diff(time).max()):
        return None
    return Stretch(log.selected(kept[new]), counted, float(counted[-1] - counted[0]) / count[-1])


def _on_line(count: FloatArray, time: FloatArray) -> FloatArray:
    """The straight line through the stamps over a count."""
    slope, start = np.polyfit(count, time - time[0], 1)
    return np.asarray(time[0] + start + slope * count)


def _roughness(stretch: Stretch) -> float:
    """Median distance of positions from the cubic through their four neighbours, in units of each joint's travel.

    Over samples in motion only, since standstill would hide the difference; infinite when time does not advance.
    """
    fresh = ~stale_rows(stretch.log[Channel.POSITION])
    time, q = stretch.time[fresh], stretch.log[Channel.POSITION][fresh]
    if len(q) < 20 or not (np.diff(time) > 0.0).all():
        return np.inf
    speed = np.abs(np.gradient(q, axis=0)).max(axis=1)
    return _roughness_where(time, q, speed[2:-2] > np.median(speed))


def _roughness_where(time: FloatArray, values: FloatArray, moving: Mask) -> float:
    """The same for the samples given."""
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
    return float(np.median(np.abs(residual) / spread)) if len(residual) else 0.0
