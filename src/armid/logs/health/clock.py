"""Time: does it run, forwards, evenly, without holes?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armid.logs.conditioning.uniform import MAX_STEP, MIN_STEP
from armid.logs.health.findings import finding, share
from armid.logs.health.thresholds import (
    BACKWARDS_ERROR,
    DUPLICATES_ERROR,
    FEW,
    GAP,
    IRREGULAR,
    MIN_ROWS,
    OUT_OF_ORDER,
)
from armid.logs.log import Clock, Log
from armid.notes import Note, Severity


def clock_findings(log: Log) -> Iterator[Note]:
    """Findings about the time channel."""
    count = len(log)
    if count < MIN_ROWS:
        yield finding("too-short", Severity.ERROR, log.name, f"{count} samples", f"at least {MIN_ROWS} are needed")
        return
    if log.clock is not Clock.COLUMN:
        return
    bad = ~np.isfinite(log.time)
    if bad.any():
        severity = Severity.ERROR if bad.mean() > FEW else Severity.WARNING
        yield finding(
            "time-not-finite", severity, log.name, f"{int(bad.sum())} stamps are not numbers", "those rows are left out"
        )
    time = log.time[~bad]
    step = np.diff(time)
    positive = step[step > 0.0]
    if len(positive) < MIN_ROWS // 2:
        yield finding("time-frozen", Severity.ERROR, log.name, "time does not advance", "name the right time column")
        return
    usual = float(np.median(positive))
    if not MIN_STEP <= usual <= MAX_STEP:
        do = "name the unit of time in a mapping (clock: {unit: ms})"
        yield finding("clock-unit", Severity.ERROR, log.name, f"a time step of {usual:.3g} s", do)
        return
    yield from _order_findings(log, step, usual)
    yield from _regularity_findings(log, step, usual)


def _order_findings(log: Log, step: np.ndarray, usual: float) -> Iterator[Note]:
    """Steps back and steps of zero."""
    back = step[step < 0.0]
    if len(back):
        severe = -back.min() > BACKWARDS_ERROR * usual or len(back) > OUT_OF_ORDER * len(step)
        yield finding(
            "time-backwards",
            Severity.ERROR if severe else Severity.WARNING,
            log.name,
            f"time steps back {len(back)} time(s), by up to {-back.min():.4g} s",
            "split the file where the clock restarts" if severe else "rows out of order are left out",
        )
    same = float(np.mean(step == 0.0))
    if same > 0.0:
        severe = same > DUPLICATES_ERROR
        yield finding(
            "time-duplicated",
            Severity.ERROR if severe else Severity.WARNING,
            log.name,
            f"{share(same)} of the stamps repeat the one before",
            "the clock is too coarse: use a finer one, or a fixed step" if severe else "the first row of each is kept",
        )


def _regularity_findings(log: Log, step: np.ndarray, usual: float) -> Iterator[Note]:
    """Jitter and gaps."""
    ordinary = step[(step > 0.0) & (step < GAP * usual)]
    mean, scatter = float(ordinary.mean()), float(ordinary.std())
    if scatter > IRREGULAR * mean:
        yield finding(
            "clock-irregular",
            Severity.WARNING,
            log.name,
            f"steps of {ordinary.min() * 1e3:.3g} to {ordinary.max() * 1e3:.3g} ms, {mean * 1e3:.4g} +- {scatter * 1e3:.2g} ms "
            f"(about {1.0 / mean:.4g} Hz)",
            "samples are put on an even grid before they are filtered",
        )
    gaps = step[step >= GAP * usual]
    if len(gaps):
        lost = float(gaps.sum() / (step[step > 0.0].sum()))
        yield finding(
            "time-gaps",
            Severity.WARNING,
            log.name,
            f"{len(gaps)} gap(s), the longest {gaps.max():.3g} s, {share(lost)} of the time",
            "the log is split there and no gap is bridged",
        )
