"""Predictions held against measured torque: several models in one pass over the runs, with what judges and reports need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run
from armid.estimation.runs import lengths_of
from armid.estimation.torque_error import ErrorSums
from armid.identification.comparison import BLOCK_SECONDS, BlockSquares, Comparison, compared_blocks
from armid.identification.motion import MotionSums, largest_speeds
from armid.identification.thresholds import NEGLIGIBLE_ERROR, TOLERATED_RATIO
from armid.parameters.space import named_parameter
from armid.robot.described import described_values
from armid.robot.robot import Robot

_MOST_TRACE_SAMPLES = 20_000
"""Per run in a result folder: enough to see anything, small enough to keep."""

_MOST_TRACED = 200_000
"""Of all runs together; longer motion is thinned out."""

CONSISTENT, FREE, NOMINAL, RIGID, CONSTANT = "consistent", "free", "nominal", "rigid", "constant"
"""Models that predictions are made with; `rigid` is the description without its friction."""


def nominal_standard(robot: Robot, names: Sequence[str]) -> FloatArray:
    """The description's own parameters in the order of the names; zero where it says nothing."""
    return described_values(robot, map(named_parameter, names))


def nominal_models(robot: Robot, names: Sequence[str]) -> dict[str, FloatArray]:
    """The description as it is, and without its friction: in a URDF that is often there to calm a simulator.

    Args:
        robot: as described.
        names: of the standard parameters.
    """
    whole = nominal_standard(robot, names)
    return {NOMINAL: whole, RIGID: np.where([named_parameter(name).of_joint for name in names], 0.0, whole)}


def has_masses(robot: Robot) -> bool:
    """Whether a description says what its links weigh."""
    return all(link.inertial is not None and link.inertial[0] > 0.0 for link in robot.links[1:])


@dataclass(frozen=True, eq=False, kw_only=True)
class Predicted:
    """What came of predicting some runs.

    Args:
        sums: errors by model.
        blocks: squared errors over blocks of time by model.
        mean: measured torque per channel.
        torque: measured, squared over the same blocks of time.
        motion: of the consistent estimate, in motion and at rest; None when there were no runs.
    """

    sums: Mapping[str, ErrorSums]
    blocks: Mapping[str, BlockSquares]
    mean: FloatArray
    torque: BlockSquares
    motion: MotionSums | None = None

    def best_nominal(self) -> str:
        """The description at its best, with or without its friction."""
        return min((NOMINAL, RIGID), key=lambda name: self.sums[name].stacked_relative())

    def against_description(self) -> tuple[Comparison, ...]:
        """The consistent estimate beside the description at its best, per joint, worse only where it matters."""
        return self.against(self.best_nominal(), tolerated=TOLERATED_RATIO.value, negligible=NEGLIGIBLE_ERROR.value)

    def against(self, other: str, *, tolerated: float, negligible: float = 0.0) -> tuple[Comparison, ...]:
        """The consistent estimate beside another model, per joint; empty without runs or without that model.

        Args:
            other: name of that model.
            tolerated: ratio of errors up to which the estimate does not count as worse.
            negligible: share of a joint's torque up to which it does not either.
        """
        if not len(self.blocks.get(CONSISTENT, ())) or other not in self.blocks:
            return ()
        floor = negligible * np.sqrt(self.torque.shares @ self.torque.means)
        return compared_blocks(self.blocks[CONSISTENT], self.blocks[other], tolerated=tolerated, floor=floor)


def predicted(
    runs: Sequence[Run],
    models: Mapping[str, FloatArray],
    *,
    constant: FloatArray | None = None,
    seconds: float = BLOCK_SECONDS,
    traces: Traces | None = None,
    speeds: FloatArray | None = None,
) -> Predicted:
    """One pass over the runs.

    Args:
        runs: to predict.
        models: full standard parameters by name.
        constant: torque per channel that a further model says at all times.
        seconds: length of the blocks that comparisons rest on.
        traces: kept along the way.
        speeds: largest of every joint in the training motion [rad/s or m/s]; of these runs themselves when left out.
    """
    channels = runs[0].channels if len(runs) else ()
    names = (*models, *(() if constant is None else (CONSTANT,)))
    sums = {name: ErrorSums(channels) for name in names}
    blocks = {name: BlockSquares(channels, seconds) for name in names}
    torque = BlockSquares(channels, seconds)
    total, count = np.zeros(len(channels)), 0
    motion = None
    if CONSISTENT in models and len(runs):
        scale = largest_speeds(runs) if speeds is None or not len(speeds) else speeds
        motion = MotionSums(channels, scale, models[CONSISTENT])
    for run in runs:
        residuals = {name: run.residuals(standard) for name, standard in models.items()}
        if constant is not None:
            residuals[CONSTANT] = run.y - constant
        for name, residual in residuals.items():
            sums[name].add(run, residual)
            blocks[name].add(run, residual)
        torque.add(run, run.y)
        total, count = total + run.y.sum(axis=0), count + len(run)
        if motion is not None:
            motion.add(run, residuals[CONSISTENT])
        if traces is not None:
            traces.add(run, residuals)
    return Predicted(sums=sums, blocks=blocks, mean=total / max(count, 1), torque=torque, motion=motion)


class Traces:
    """Motion and torque over time of held-out runs, for reports: measured, raw, predicted by both estimates and the description.

    Args:
        runs: that will be added, in order; their lengths decide how far they are thinned out.
        temperatures: of the drives, per run where known [degrees Celsius].
    """

    def __init__(self, runs: Sequence[Run], temperatures: Sequence[FloatArray | None] = ()) -> None:
        self.arrays: dict[str, FloatArray] = {}
        self._temperatures = tuple(temperatures)
        self._share = max(1.0, sum(lengths_of(runs)) / _MOST_TRACED)
        self._count = 0

    def add(self, run: Run, residuals: Mapping[str, FloatArray]) -> None:
        """One more run."""
        k, self._count = self._count, self._count + 1
        most = max(_MOST_TRACE_SAMPLES / self._share, 2.0)
        every = max(1, int(np.ceil(len(run) / most)), int(self._share))
        self.arrays[f"run{k}.time"] = np.arange(len(run))[::every] / run.rate
        self.arrays[f"run{k}.inputs"] = np.array(run.inputs[::every])
        self.arrays[f"run{k}.measured"] = np.array(run.y[::every])
        if run.y_raw is not None:
            self.arrays[f"run{k}.raw"] = np.array(run.y_raw[::every])
        if k < len(self._temperatures) and (celsius := self._temperatures[k]) is not None:
            self.arrays[f"run{k}.temperature"] = celsius[::every]
        for name in (CONSISTENT, FREE, NOMINAL):
            if name in residuals:
                self.arrays[f"run{k}.{name}"] = (run.y - residuals[name])[::every]
