"""Runs without a drift, and sums over runs, while faults are looked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run


@dataclass(frozen=True, eq=False)
class Squares:
    """Of one run: sums of squared errors by channel in recorded units, and how many there are."""

    standard: FloatArray

    def __call__(self, run: Run) -> tuple[FloatArray, int]:
        scale = np.array(run.torque_scale) if run.torque_scale else 1.0
        return np.sum((run.residuals(self.standard) * scale) ** 2, axis=0), len(run)


@dataclass(frozen=True, eq=False)
class WithoutDrift:
    """A run that begins after so many samples, without torque that grows over the samples of all runs by a slope [N m or N]."""

    slope: FloatArray
    total: int

    def __call__(self, run: Run, first: int) -> Run:
        elapsed = (first + np.arange(len(run))) / self.total - 0.5
        return replace(run, y=run.y - np.outer(elapsed, self.slope))


def seconds_of(run: Run) -> float:
    """That a run lasts."""
    return len(run) / run.rate
