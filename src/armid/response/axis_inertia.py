"""Base parameters of the load-side inertia from measured axis inertias; [RWTH2021] eqs. 12-13."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import InputError
from armid.estimation.estimate import Estimate, units_of
from armid.identifiability.structure import structural_base
from armid.information.information import ChannelInformation, Information, triangular
from armid.information.solve import channel_sigmas, reduced, solve_factor
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.motions.limits import motion_limits
from armid.response.frequency_response import AxisMeasurement
from armid.robot.robot import Robot
from armid.rows.axis_inertia import AxisInertiaRows, described_inertia

_SMALLEST_DEVIATION = 1e-4
"""Relative: no frequency response is better than this, whatever the noise of one recording says."""

_UNKNOWN_DEVIATION = 0.01
"""Relative: of measurements of which none says how good it is."""

_FRESH = 2000
"""Poses at which the accuracy of predictions is judged."""


@dataclass(frozen=True, eq=False)
class AxisInertiaModel:
    """Load-side inertia of every axis as a function of the pose.

    Args:
        robot: the arm.
        estimate: base parameters with relative standard deviations.
        disagreement: root mean square of what the parameters leave of the measurements, in their standard deviations.
    """

    robot: Robot
    estimate: Estimate
    disagreement: float = 0.0

    def inertia(self, q: npt.ArrayLike) -> FloatArray:
        """J of every axis at some poses, shape [n_poses, n_joints]."""
        x = samples("q", q, self.robot.n_joints)
        return np.asarray(evaluate_rows(AxisInertiaRows(self.robot), x) @ self.estimate.standard)

    def deviation(self, q: npt.ArrayLike) -> FloatArray:
        """Standard deviation of those, shape [n_poses, n_joints]."""
        x = samples("q", q, self.robot.n_joints)
        rows = Restricted(AxisInertiaRows(self.robot), tuple(int(i) for i in self.estimate.base.independent))
        d = evaluate_rows(rows, x)
        return np.sqrt(np.einsum("nki,ij,nkj->nk", d, self.estimate.covariance, d))


def axis_inertia_model(robot: Robot, measured: Sequence[AxisMeasurement]) -> AxisInertiaModel:
    """Weighted least squares over measurements of single axes at many poses.

    Raises:
        InputError: a measurement that is not usable.
        EstimationError: poses that do not tell all base parameters apart.
    """
    for m in measured:
        if not m.usable:
            failed = next(check.message for check in m.checks if check.decisive and not check.passed)
            raise InputError(f"measurement of {m.axis}", failed, "repeat it, or leave it out")
    source = AxisInertiaRows(robot)
    base = structural_base(source, what="axis inertia")
    rows = reduced(_information_of(source, measured), base)
    solution = solve_factor(rows.stacked(), base.names)
    spread = channel_sigmas(rows, solution.values, solution.inverse, {})
    factor = solution.energy / max(rows.count - len(base), 1.0)
    estimate = Estimate(
        base=base,
        units=units_of(base, np.array(source.space.units, dtype=object)),
        values=solution.values,
        covariance=max(factor, 1.0) * solution.inverse,
        covariance_kind="per-measurement",
        sigma=spread,
        method="weighted least squares of axis inertias",
    )
    return AxisInertiaModel(robot, estimate, float(np.sqrt(factor)))


def _trusted_deviations(y: FloatArray, deviations: FloatArray) -> FloatArray:
    """Deviations of one axis' measurements: each its own, where it is known, and never better than a floor, shape [n]."""
    known = np.isfinite(deviations)
    typical = float(np.median(deviations[known])) if known.any() else _UNKNOWN_DEVIATION * float(np.abs(y).mean())
    return np.maximum(np.where(known, deviations, typical), _SMALLEST_DEVIATION * np.abs(y) + 1e-300)


@dataclass(frozen=True, eq=False)
class ExpectedAccuracy:
    """How well inertias will be predicted at poses where nothing was measured, relative, per axis.

    Args:
        typical: root mean square over poses, shape [n_axes].
        worst: standard deviation at the worst pose, shape [n_axes].
    """

    typical: FloatArray
    worst: FloatArray


def expected_accuracy(
    robot: Robot, poses: npt.ArrayLike, axes: Sequence[int], deviations: npt.ArrayLike, *, seed: int = 0
) -> ExpectedAccuracy:
    """Accuracy of predictions from measurements that are still to be made.

    Args:
        robot: with the masses of its description, which errors are relative to.
        poses: shape [n_measurements, n_joints].
        axes: measured at each, 0-based.
        deviations: of each measurement [kg m^2 or kg].
        seed: of the poses at which predictions are judged, uniform within the limits.

    Raises:
        EstimationError: measurements that do not tell all base parameters apart.
    """
    source = AxisInertiaRows(robot)
    base = structural_base(source, what="axis inertia")
    rows = Restricted(source, tuple(int(i) for i in base.independent))
    q, k = samples("poses", poses, robot.n_joints), np.asarray(axes, dtype=np.intp)
    A = evaluate_rows(rows, q)[np.arange(len(q)), k] / np.asarray(deviations, dtype=np.float64)[:, np.newaxis]
    C = solve_factor(triangular(np.column_stack([A, np.zeros(len(A))])), base.names).inverse
    limits = motion_limits(robot)[0]
    fresh = np.random.default_rng(seed).uniform(limits.lower, limits.upper, size=(_FRESH, robot.n_joints))
    d = evaluate_rows(rows, fresh) / described_inertia(robot, fresh)[:, :, np.newaxis]
    variance = np.einsum("nki,ij,nkj->nk", d, C, d)
    return ExpectedAccuracy(np.sqrt(variance.mean(axis=0)), np.sqrt(variance.max(axis=0)))


def _information_of(source: AxisInertiaRows, measured: Sequence[AxisMeasurement]) -> Information:
    """One row per measurement, divided by its standard deviation."""
    q = np.array([m.pose for m in measured])
    A = evaluate_rows(source, q)
    channels = []
    for k, name in enumerate(source.robot.joint_names):
        own = [i for i, m in enumerate(measured) if m.axis == name]
        if not own:
            continue
        y = np.array([measured[i].inertia for i in own])
        weight = 1.0 / _trusted_deviations(y, np.array([measured[i].inertia_deviation for i in own]))
        rows = np.column_stack([A[own, k], y]) * weight[:, np.newaxis]
        factor = triangular(rows)
        channels.append(ChannelInformation(source.channels[k], np.arange(A.shape[2]), factor, float(len(own))))
    return Information(tuple(source.columns), tuple(channels))
