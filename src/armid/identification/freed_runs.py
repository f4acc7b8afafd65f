"""Runs without a drift, and sums over runs, while faults are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run
from armid.identification.sensors import Sized
from armid.rows.imperfections import drift_curve


@dataclass(frozen=True, eq=False)
class Squares:
    """Of one run: sums of squared errors by channel in recorded units, and how many there are."""

    standard: FloatArray

    def __call__(self, run: Run) -> tuple[FloatArray, int]:
        scale = np.array(run.torque_scale) if run.torque_scale else 1.0
        return np.sum((run.residuals(self.standard) * scale) ** 2, axis=0), len(run)


@dataclass(frozen=True, eq=False)
class WithoutDrifts:
    """A run that begins after so many samples, without torque that drifts over the samples of all runs."""

    drifts: Sequence[Sized]
    total: int

    def __call__(self, run: Run, first: int) -> Run:
        elapsed, y = (first + np.arange(len(run))) / self.total, np.array(run.y)
        for drift in self.drifts:
            y[:, drift.item.joint] -= drift.value * drift_curve(drift.item, elapsed)
        return replace(run, y=y)


def seconds_of(run: Run) -> float:
    """That a run lasts."""
    return len(run) / run.rate
