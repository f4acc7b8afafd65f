"""Base parameters of the load-side inertia from measured axis inertias; seed 002 eqs. 12-13."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import InputError
from armid.estimation.estimate import Estimate, units_of
from armid.estimation.factor import channel_sigmas, solve_factor
from armid.estimation.least_squares import reduced
from armid.experiments.axis_inertia import AxisInertiaRows
from armid.experiments.frequency_response import AxisMeasurement
from armid.identifiability.structure import structural_base
from armid.information.information import ChannelInformation, Information, triangular
from armid.kernels.evaluate import evaluate_rows
from armid.robot.robot import Robot

SMALLEST_DEVIATION = 1e-4
"""Relative: no frequency response is better than this, whatever the stretches of one recording say."""


@dataclass(frozen=True, eq=False)
class AxisInertiaModel:
    """Load-side inertia of every axis as a function of the pose.

    Args:
        robot: the arm.
        estimate: base parameters with relative standard deviations.
    """

    robot: Robot
    estimate: Estimate

    def inertia(self, q: npt.ArrayLike) -> FloatArray:
        """J of every axis at some poses, shape [n_poses, n_joints]."""
        x = samples("q", q, self.robot.n_joints)
        return np.asarray(evaluate_rows(AxisInertiaRows(self.robot), x) @ self.estimate.standard)


def axis_inertia_model(robot: Robot, measured: Sequence[AxisMeasurement]) -> AxisInertiaModel:
    """Weighted least squares over measurements of single axes at many poses.

    Raises:
        InputError: a measurement that is not usable.
        EstimationError: poses that do not tell all base parameters apart.
    """
    for m in measured:
        if not m.usable:
            raise InputError(f"measurement of {m.axis}", m.notes[0].message, "repeat it, or leave it out")
    source = AxisInertiaRows(robot)
    base = structural_base(source, what="axis inertia")
    rows = reduced(information_of(source, measured), base)
    solution = solve_factor(rows.stacked(), base.names)
    spread = channel_sigmas(rows, solution.values, solution.inverse, {})
    factor = solution.energy / max(rows.count - len(base), 1.0)
    estimate = Estimate(
        base, units_of(base, np.array(source.space.units, dtype=object)), solution.values, max(factor, 1.0) * solution.inverse,
        "per-measurement", spread, "weighted least squares of axis inertias",
    )  # fmt: skip
    return AxisInertiaModel(robot, estimate)


def information_of(source: AxisInertiaRows, measured: Sequence[AxisMeasurement]) -> Information:
    """One row per measurement, divided by its standard deviation."""
    q = np.array([m.pose for m in measured])
    A = evaluate_rows(source, q)
    channels = []
    for k, name in enumerate(source.robot.joint_names):
        own = [i for i, m in enumerate(measured) if m.axis == name]
        if not own:
            continue
        y = np.array([measured[i].inertia for i in own])
        finite = [m for m in (measured[i].inertia_deviation for i in own) if np.isfinite(m)]
        typical = float(np.median(finite)) if finite else 0.01 * float(np.abs(y).mean())
        floor = SMALLEST_DEVIATION * np.abs(y)
        # Stretches of one recording give a rough deviation each; all measurements of one axis share their median.
        weight = 1.0 / np.maximum(np.maximum(floor, typical), 1e-300)
        rows = np.column_stack([A[own, k], y]) * weight[:, np.newaxis]
        factor = triangular(rows)
        channels.append(ChannelInformation(source.channels[k], np.arange(A.shape[2]), factor, float(len(own))))
    return Information(tuple(source.columns), tuple(channels))
