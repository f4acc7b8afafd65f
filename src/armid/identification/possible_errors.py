"""What possible bodies leave of torque: the judge between explanations, because free parameters take up nearly anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.possible import PossibleBodies
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, information_of
from armid.estimation.runs import thinned_runs
from armid.identifiability.base import BaseParameters
from armid.identification.fit import consistent_prior
from armid.identification.imperfection_rows import RowsBeside
from armid.identification.sensors import Imperfections, corrected_runs
from armid.identification.thresholds import TIED
from armid.information.information import Information
from armid.information.status import EstimationError
from armid.robot.robot import Robot

_LOOKED_AT = 1500
"""Samples of either motion, spread evenly: bodies that explain these explain the rest."""


def possible_values(
    robot: Robot,
    information: Information,
    free: Estimate,
    *,
    inflation: float,
    units: tuple[str, ...],
    bodies: PossibleBodies,
) -> FloatArray:
    """Standard parameters of possible bodies on these rows.

    Args:
        robot: as the rows have it.
        information: of the rows.
        free: unconstrained estimate of them.
        inflation: square root of how many rows tell as much as one independent one.
        units: of the parameters.
        bodies: how they are found.

    Raises:
        EstimationError: there are none.
    """
    prior = consistent_prior(robot, information, free)
    rows = information.weighted({name: 1.0 / (sigma * inflation) for name, sigma in free.sigma.items()})
    return bodies.values(rows, units, prior)


def channel_errors(information: Information, values: FloatArray) -> FloatArray:
    """Root mean square error by channel."""
    return np.sqrt([max(c.error_energy(values), 0.0) / max(c.count, 1.0) for c in information.channels])


@dataclass(frozen=True, eq=False, kw_only=True)
class PossibleErrors:
    """Whether possible bodies bear out what free parameters say of a fault.

    Args:
        robot: as the runs have it.
        base: parameters that the training motion determines.
        bodies: how possible bodies are found.
        train, held_out: as recorded.
    """

    robot: Robot
    base: BaseParameters
    bodies: PossibleBodies
    train: Sequence[Run]
    held_out: Sequence[Run]

    def bear_out(self, trial: Imperfections) -> bool:
        """Whether possible bodies of the training motion fit either motion better once the last size of a trial is undone too.

        And the torque of its own joint no worse: an encoder that is off misleads the torque of its own joint first. What merely
        stands in for the cable of another joint makes that one better, and all that it should concern worse.
        """
        item = trial.sizes[-1].item
        try:
            undone_errors = self._errors(trial)
        except EstimationError:
            return False
        try:
            errors = self._errors(replace(trial, sizes=trial.sizes[:-1]))
        except EstimationError:
            return True  # there are such bodies only once it is undone
        least = log(TIED.value)
        for without, undone in zip(errors, undone_errors, strict=True):
            gain = np.log(without / undone)
            if float(gain.sum()) < least or (item.joint is not None and gain[item.joint] < -least):
                return False
        return True

    def _errors(self, record: Imperfections) -> list[FloatArray]:
        """By channel in recorded units, of the training motion and, where there is one, of the held-out motion."""
        learnt, *tried = (
            thinned_runs(corrected_runs(runs, record), _LOOKED_AT) for runs in (self.train, self.held_out) if len(runs)
        )
        information = information_of(learnt)
        free = WeightedLeastSquares().fit(information, self.base)
        rows_per_sample = RowsBeside(learnt, self.base, ()).noise(free).rows_per_sample
        values = possible_values(
            self.robot,
            information,
            free,
            inflation=max(rows_per_sample, 1.0) ** 0.5,
            units=torque_source(learnt).space.units,
            bodies=self.bodies,
        )
        recorded = np.maximum(1.0 + record.gains, 1e-6)
        seen = (information, *(information_of(runs) for runs in tried))
        return [np.maximum(channel_errors(one, values) * recorded, 1e-150) for one in seen]
