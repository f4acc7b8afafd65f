"""Runs without a drift, and sums over runs, while faults are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.run import Run
from armid.identification.elapsed import Place
from armid.identification.sensors import Sized, motion_of
from armid.kernels.evaluate import residuals
from armid.rows.imperfections import MOMENTS, ColumnReference, Columns, Imperfection


@dataclass(frozen=True, eq=False)
class Squares:
    """Of one run: sums of squared errors by channel in recorded units, and how many there are."""

    standard: FloatArray

    def __call__(self, run: Run) -> tuple[FloatArray, int]:
        return np.sum(run.as_recorded(run.residuals(self.standard)) ** 2, axis=0), len(run)


@dataclass(frozen=True, eq=False)
class WithoutDrifts:
    """A run at its place among all, without what drifts over them beside a model.

    When exactly something was another at once is known to a block of time, and a low-pass spreads it: there the model stands in.
    """

    drifts: Sequence[Sized]
    reference: ColumnReference

    def __call__(self, run: Run, place: Place) -> Run:
        columns = Columns(motion_of(run, place=place), self.reference).of([drift.item for drift in self.drifts])
        y = run.y - columns @ np.array([drift.value for drift in self.drifts])
        for k, drift in enumerate(self.drifts):
            near = self._moment(run, place, drift.item)
            if near.any():
                felt = np.any(columns[:, :, k] != 0.0, axis=0)
                y[near] -= np.where(
                    felt, residuals(run.source, run.inputs[near], y[near], self.reference.standard), 0.0
                )
        return replace(run, y=y)

    @staticmethod
    def _moment(run: Run, place: Place, item: Imperfection) -> npt.NDArray[np.bool_]:
        """Samples of a run around the moment at which something was another at once, as far as that is known."""
        moments = [share for share in item.stretch or () if 0.0 < share < 1.0]
        reach = 0.5 / MOMENTS + run.smear * run.rate / place.total
        elapsed = place.elapsed(len(run))
        near = np.zeros(len(run), dtype=bool)
        for moment in moments:
            near |= np.abs(elapsed - moment) < reach
        return near


def seconds_of(run: Run) -> float:
    """That a run lasts."""
    return len(run) / run.rate
