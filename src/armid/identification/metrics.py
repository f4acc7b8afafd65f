"""Predictions held against measured torque: several models in one pass over the runs, with what judges and reports need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run, each_run
from armid.estimation.runs import lengths_of
from armid.identification.comparison import BLOCK_SECONDS, BlockSquares, Comparison, compared_blocks
from armid.identification.motion import MotionSums, largest_speeds, still_channels
from armid.identification.thresholds import NEGLIGIBLE_ERROR, TOLERATED_RATIO
from armid.identification.torque_error import ErrorSums
from armid.parameters.space import named_parameters
from armid.robot.described import described_values
from armid.robot.robot import Robot

_MOST_TRACE_SAMPLES = 20_000
"""Per run in a result folder: enough to see anything, small enough to keep."""

_MOST_TRACED = 1 << 15
"""Samples of all runs together, 15 MB of seven joints; longer motion is thinned out, and so are many logs: nobody looks at the
traces of all."""

CONSISTENT, FREE, NOMINAL, RIGID, CONSTANT = "consistent", "free", "nominal", "rigid", "constant"
"""Models that predictions are made with; `rigid` is the description without its friction."""


def nominal_standard(robot: Robot, names: Sequence[str]) -> FloatArray:
    """The description's own parameters in the order of the names; zero where it says nothing."""
    return described_values(robot, named_parameters(tuple(names)))


def nominal_models(robot: Robot, names: Sequence[str]) -> dict[str, FloatArray]:
    """The description as it is, and without its friction: in a URDF that is often there to calm a simulator.

    Args:
        robot: as described.
        names: of the standard parameters.
    """
    whole = nominal_standard(robot, names)
    return {NOMINAL: whole, RIGID: np.where([one.of_joint for one in named_parameters(tuple(names))], 0.0, whole)}


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
    whole = _RunFigures(channels, names, seconds)
    scale = None
    if CONSISTENT in models and len(runs):
        scale = largest_speeds(runs) if speeds is None or not len(speeds) else speeds
        whole.motion = MotionSums(channels, scale, models[CONSISTENT])
    share = None if traces is None else traces.share
    one = _OneRun(models=dict(models), constant=constant, seconds=seconds, speeds=scale, share=share)
    for found in each_run(runs, one):
        whole.merge(found)
        if traces is not None:
            traces.put(found.traces)
    return Predicted(
        sums=whole.sums,
        blocks=whole.blocks,
        mean=whole.total / max(whole.count, 1),
        torque=whole.torque,
        motion=whole.motion,
    )


class _RunFigures:
    """What comes of predicting some runs, before it is put together.

    Args:
        channels: names.
        models: names.
        seconds: length of the blocks.
    """

    def __init__(self, channels: Sequence[str], models: Sequence[str], seconds: float) -> None:
        self.sums = {name: ErrorSums(channels) for name in models}
        self.blocks = {name: BlockSquares(channels, seconds) for name in models}
        self.torque = BlockSquares(channels, seconds)
        self.total, self.count = np.zeros(len(channels)), 0
        self.motion: MotionSums | None = None
        self.traces: dict[str, FloatArray] = {}

    def merge(self, other: _RunFigures) -> None:
        """Those of further runs, but for their traces."""
        for name, sums in other.sums.items():
            self.sums[name].merge(sums)
            self.blocks[name].merge(other.blocks[name])
        self.torque.merge(other.torque)
        self.total, self.count = self.total + other.total, self.count + other.count
        if self.motion is not None and other.motion is not None:
            self.motion.merge(other.motion)


@dataclass(frozen=True, eq=False, kw_only=True)
class _OneRun:
    """Figures of one run; arguments as for `predicted`, `share` as for `Traces`, None for no traces."""

    models: Mapping[str, FloatArray]
    constant: FloatArray | None
    seconds: float
    speeds: FloatArray | None
    share: float | None

    def __call__(self, run: Run) -> _RunFigures:
        residuals = {name: run.residuals(standard) for name, standard in self.models.items()}
        if self.constant is not None:
            residuals[CONSTANT] = run.y - self.constant
        out = _RunFigures(run.channels, tuple(residuals), self.seconds)
        still = None if self.speeds is None else still_channels(run, self.speeds)
        for name, residual in residuals.items():
            out.sums[name].add(run, residual)
            out.blocks[name].add(run, residual, still)
        out.torque.add(run, run.y, still)
        out.total, out.count = run.y.sum(axis=0), len(run)
        if self.speeds is not None:
            out.motion = MotionSums(run.channels, self.speeds, self.models[CONSISTENT])
            out.motion.add(run, residuals[CONSISTENT])
        if self.share is not None:
            out.traces = _traced(run, residuals, self.share)
        return out


def _traced(run: Run, residuals: Mapping[str, FloatArray], share: float) -> dict[str, FloatArray]:
    """Thinned motion and torque of one run; `share` is by how much all runs together are too long."""
    every = int(np.ceil(max(1.0, len(run) / _MOST_TRACE_SAMPLES, share)))
    out = {
        "time": np.arange(len(run))[::every] / run.rate,
        "inputs": np.array(run.inputs[::every]),
        "measured": np.array(run.y[::every]),
    }
    if run.y_raw is not None:
        out["raw"] = np.array(run.y_raw[::every])
    known = [name for name in (CONSISTENT, FREE, NOMINAL) if name in residuals]
    return {**out, **{name: run.y[::every] - residuals[name][::every] for name in known}, "every": np.array(every)}


class Traces:
    """Motion and torque over time of held-out runs, for reports: measured, raw, predicted by both estimates and the description.

    Args:
        runs: that will be added, in order; their lengths decide how far they are thinned out.
        temperatures: of the drives, per run where known [degrees Celsius].
    """

    def __init__(self, runs: Sequence[Run], temperatures: Sequence[FloatArray | None] = ()) -> None:
        self.arrays: dict[str, FloatArray] = {}
        self.share = max(1.0, sum(lengths_of(runs)) / _MOST_TRACED)
        self._temperatures = tuple(temperatures)
        self._count = 0

    def put(self, traced: Mapping[str, FloatArray]) -> None:
        """One more run."""
        k, self._count = self._count, self._count + 1
        self.arrays |= {f"run{k}.{name}": values for name, values in traced.items() if name != "every"}
        if k < len(self._temperatures) and (celsius := self._temperatures[k]) is not None:
            self.arrays[f"run{k}.temperature"] = np.array(celsius[:: int(traced["every"])])
