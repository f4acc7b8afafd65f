"""Held out by whole motion: k-fold over motions, and what leaving out one file does to the parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares, reduced
from armid.estimation.run import Run
from armid.identifiability.base import BaseParameters
from armid.information.information import Information, total


@dataclass(frozen=True, eq=False)
class Fold:
    """One motion left out.

    Args:
        name: of the motion.
        values: base parameters from all the others, shape [r].
        shift: change against all together, in standard deviations, shape [r].
        relative_error: norm of the torque error over the norm of the torque on the motion left out, per channel.
    """

    name: str
    values: FloatArray
    shift: FloatArray
    relative_error: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "shift", read_only(self.shift))


def motions(runs: Sequence[Run]) -> tuple[Run, ...]:
    """One run per motion: the logs, or the stretches of a single log that a gap separates."""
    if len(runs) != 1:
        return tuple(runs)
    whole = runs[0]
    return tuple(
        replace(
            whole,
            name=f"{whole.name} [{a}:{b}]",
            inputs=whole.inputs[a:b],
            y=whole.y[a:b],
            segments=((0, b - a),),
            y_raw=None if whole.y_raw is None else whole.y_raw[a:b],
        )
        for a, b in whole.segments
    )


def leave_one_out(runs: Sequence[Run], estimate: Estimate) -> tuple[Fold, ...]:
    """Every motion predicted by the others. Information adds up, so no row is evaluated twice.

    Args:
        runs: at least two motions.
        estimate: of all of them together, with the covariance that shifts are measured in.
    """
    if len(runs) < 2:
        raise InputError("runs", "leaving one out needs at least two motions")
    parts = [run.information() for run in runs]
    deviations = np.maximum(estimate.standard_deviations, 1e-300)
    folds = []
    for k, run in enumerate(runs):
        others = total(part for i, part in enumerate(parts) if i != k)
        fit = WeightedLeastSquares().fit(others, estimate.base)
        errors = relative_errors(parts[k], estimate.base, fit.values)
        folds.append(Fold(run.name, fit.values, (fit.values - estimate.values) / deviations, errors))
    return tuple(folds)


def relative_errors(information: Information, base: BaseParameters, values: FloatArray) -> dict[str, float]:
    """Norm of the error over the norm of the measured values, per channel."""
    out = {}
    for channel in reduced(information, base).channels:
        size = float(np.sum(channel.factor[:, -1] ** 2))
        out[channel.name] = float(np.sqrt(channel.error_energy(values) / size)) if size > 0.0 else float("inf")
    return out
