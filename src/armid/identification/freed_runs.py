"""Runs without a drift, and sums over runs, while faults are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run
from armid.identification.elapsed import Place
from armid.identification.sensors import Sized, motion_of
from armid.rows.imperfections import ColumnReference, Columns


@dataclass(frozen=True, eq=False)
class Squares:
    """Of one run: sums of squared errors by channel in recorded units, and how many there are."""

    standard: FloatArray

    def __call__(self, run: Run) -> tuple[FloatArray, int]:
        return np.sum(run.as_recorded(run.residuals(self.standard)) ** 2, axis=0), len(run)


@dataclass(frozen=True, eq=False)
class WithoutDrifts:
    """A run at its place among all, without what drifts over them beside a model."""

    drifts: Sequence[Sized]
    reference: ColumnReference

    def __call__(self, run: Run, place: Place) -> Run:
        columns = Columns(motion_of(run, place=place), self.reference).of([drift.item for drift in self.drifts])
        return replace(run, y=run.y - columns @ np.array([drift.value for drift in self.drifts]))


def seconds_of(run: Run) -> float:
    """That a run lasts."""
    return len(run) / run.rate
