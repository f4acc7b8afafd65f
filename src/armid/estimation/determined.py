"""Base parameters of runs: those that a perfect motion would determine, and those that the data do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source, with_torque_source
from armid.estimation.run import Run, each_run
from armid.identifiability.base import BaseParameters
from armid.identifiability.practical import excited, excited_base
from armid.identifiability.structure import structural_base
from armid.information.information import Information
from armid.information.status import EstimationError, Status
from armid.robot.robot import Robot


def structure_of(runs: Sequence[Run]) -> BaseParameters:
    """Base parameters that a perfect motion would determine, by the rows of these runs."""
    return structural_base(*(run.source for run in _one_each(runs)), what="the torque")


def described_structure(runs: Sequence[Run], described: Robot | None) -> BaseParameters | None:
    """The same for the arm as described; None when that is the arm of the runs."""
    if described is None:
        return None
    arm = described.with_gravity(torque_source(runs).robot.gravity)
    return structural_base(
        *(with_torque_source(run, replace(torque_source([run]), robot=arm)).source for run in _one_each(runs)),
        what="the torque",
    )


def usable_base(
    runs: Sequence[Run],
    information: Information,
    structural: BaseParameters | None = None,
    intended: BaseParameters | None = None,
) -> tuple[BaseParameters, BaseParameters]:
    """Base parameters the data determine, and those a perfect motion would.

    In a calibrated arm axes that should meet miss each other by a fraction of a millimetre. Each such miss adds a
    parameter that is independent on paper and far below the noise in any torque. What a motion must determine is therefore
    counted on the arm as described; what the data show beyond that is estimated too.

    Args:
        runs: with their rows.
        information: of these runs, and of earlier ones.
        structural: of the rows, when it is known already.
        intended: of the arm before calibration; None when the runs' own arm is the described one.

    Raises:
        EstimationError: fewer rows than parameters.
    """
    structural = structure_of(runs) if structural is None else structural
    if information.count < len(structural):
        raise EstimationError(Status.TOO_FEW_ROWS, f"{information.count:.0f} rows for {len(structural)} parameters")
    if excited(information, structural):
        return structural, structural
    return excited_base(information), intended if intended is not None and excited(
        information, intended
    ) else structural


def noise_left(information: Information, structural: BaseParameters, intended: BaseParameters | None) -> FloatArray:
    """Standard deviation of what the free fit to rows leaves, by channel; arguments as for `usable_base`."""
    base, _ = usable_base((), information, structural, intended)
    return np.array(list(WeightedLeastSquares().quick(information, base)[1].values()))


def _one_each(runs: Sequence[Run]) -> tuple[Run, ...]:
    """One run of every kind of rows: with and without payload, filtered and not."""
    kinds: dict[tuple[type, bool], int] = {}
    for k, kind in enumerate(each_run(runs, _kind)):
        kinds.setdefault(kind, k)
    return tuple(runs[k] for k in kinds.values())


def _kind(run: Run) -> tuple[type, bool]:
    return type(run.source), torque_source([run]).loaded
