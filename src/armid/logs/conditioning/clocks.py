"""The clock of a long log: one pass over its stamps alone, in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from armid.arrays import FloatArray
from armid.logs.conditioning.uniform import UNIFORM_JITTER, near_steps


@dataclass(eq=False, kw_only=True)
class LineFit:
    """Running straight line `x = a + b c` through points that come in pieces; means and sums about them, so nothing cancels."""

    count: float = 0.0
    mean_c: float = 0.0
    mean_x: float = 0.0
    cc: float = 0.0
    cx: float = 0.0
    xx: float = 0.0

    def add(self, c: FloatArray, x: FloatArray) -> None:
        """Further points (the update of Chan, Golub and LeVeque for sums of two samples)."""
        n, mean_c, mean_x = float(len(c)), float(c.mean()), float(x.mean())
        dc, dx = c - mean_c, x - mean_x
        total = self.count + n
        share = self.count * n / total
        gap_c, gap_x = mean_c - self.mean_c, mean_x - self.mean_x
        self.cc += float(dc @ dc) + share * gap_c**2
        self.cx += float(dc @ dx) + share * gap_c * gap_x
        self.xx += float(dx @ dx) + share * gap_x**2
        self.mean_c += gap_c * n / total
        self.mean_x += gap_x * n / total
        self.count = total

    @property
    def slope(self) -> float:
        return self.cx / self.cc if self.cc > 0.0 else 0.0

    @property
    def scatter(self) -> float:
        """Standard deviation of the points about the line."""
        return float(np.sqrt(max(0.0, self.xx - self.slope * self.cx) / max(self.count, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StretchClock:
    """Time in one stretch between gaps.

    Args:
        step: of the even grid [s].
        start: of the line through the stamps over the count [s]; None when the stamps themselves are time.
        slope: of that line [s].
        missing: whether the count includes samples that are missing.
        count: samples from the first to the last; infinite when nobody has counted.
    """

    step: float
    start: float | None = None
    slope: float = 0.0
    missing: bool = False
    count: float = np.inf

    def with_step(self, step: float) -> StretchClock:
        """The same on another grid."""
        return replace(self, step=step)

    @property
    def aligned(self) -> bool:
        """Whether samples counted evenly stay on the grid to the end of the stretch."""
        return self.start is None or self.count * abs(self.slope - self.step) <= UNIFORM_JITTER * self.step


def ordinary_step_of(stamps: Iterable[FloatArray], median: float) -> float:
    """Mean of the steps that are near the median, as `ordinary_step` has it for a whole log [s]."""
    last, total, count = np.nan, 0.0, 0
    for piece in stamps:
        near = near_steps(np.diff(piece, prepend=last), median)
        total, count, last = total + float(near.sum()), count + len(near), float(piece[-1])
    return total / count if count else median


def counts(time: FloatArray, last: float, step: float) -> tuple[FloatArray, FloatArray]:
    """How far each row is after the row before: one by one, and with missing samples; the first of a stretch is zero."""
    ahead = np.diff(time, prepend=last)
    plain, full = np.ones(len(time)), np.maximum(1.0, np.rint(ahead / step))
    if not np.isfinite(last):
        plain[0] = full[0] = 0.0
    return plain, full


def stretch_clocks(stamps: Iterable[FloatArray], step: float, gap: float, *, counted: bool) -> Iterator[StretchClock]:
    """The clock of every stretch, in order.

    Args:
        stamps: recorded times in pieces [s].
        step: ordinary step [s].
        gap: a longer step begins a new stretch [s].
        counted: whether samples lie on an even count (`TimeBase.COUNTED`) rather than on their stamps.
    """
    fits = (LineFit(), LineFit())
    last, first, ends = -np.inf, 0.0, np.zeros(2)
    for piece in stamps:
        time = forward(piece, last)
        for start, stop in bounds(time, last, gap):
            own = time[start:stop]
            before = last if start == 0 else float(time[start - 1])
            if not own[0] - before <= gap:
                if np.isfinite(last) or start:
                    yield _clock_of(fits, first, before, float(ends[1]), step, counted=counted)
                fits, first, ends, before = (LineFit(), LineFit()), float(own[0]), np.zeros(2), -np.inf
            for k, ahead in enumerate(counts(own, before, step)):
                number = ends[k] + np.cumsum(ahead)
                fits[k].add(number, own - first - step * number)
                ends[k] = number[-1]
        if len(time):
            last = float(time[-1])
    if np.isfinite(last):
        yield _clock_of(fits, first, last, float(ends[1]), step, counted=counted)


def _clock_of(
    fits: tuple[LineFit, LineFit], first: float, last: float, count: float, step: float, *, counted: bool
) -> StretchClock:
    """The clock of a stretch that has ended."""
    if counted:
        missing = fits[1].scatter < fits[0].scatter
        fit = fits[missing]
        slope = step + fit.slope
        return StretchClock(
            step=slope, start=first + fit.mean_x - fit.slope * fit.mean_c, slope=slope, missing=missing, count=count
        )
    exact = (last - first) / count if count else step
    return StretchClock(step=exact if abs(exact - step) < UNIFORM_JITTER * step else step)


def forward(time: FloatArray, last: float) -> FloatArray:
    """The stamps later than every one before."""
    return time[forward_mask(time, last)]


def forward_mask(time: FloatArray, last: float) -> np.ndarray:
    if (np.diff(time, prepend=last) > 0.0).all():
        return np.ones(len(time), dtype=np.bool_)
    finite = np.where(np.isfinite(time), time, -np.inf)
    return np.asarray(finite > np.maximum.accumulate(np.concatenate([[last], finite]))[:-1])


def bounds(time: FloatArray, last: float, gap: float) -> list[tuple[int, int]]:
    """Ranges of rows without a gap in between."""
    if len(time) == 0:
        return []
    cuts = np.flatnonzero(np.diff(time, prepend=last) > gap)
    edges = np.unique(np.concatenate([[0], cuts, [len(time)]]))
    return [(int(a), int(b)) for a, b in pairwise(edges)]
