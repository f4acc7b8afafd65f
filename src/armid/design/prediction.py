"""What a designed motion will give: deviations to expect, and by how much goals are missed."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.design.excitation import ExcitationProblem
from armid.identifiability.expectation import assumed_noise, excitation_inputs
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.motions.trajectory import Trajectory
from armid.rows.nominal_torque import NominalTorque


def channel_noise(problem: ExcitationProblem) -> FloatArray:
    """Standard deviation of each channel's torque that predictions rest on [N m or N], shape [n_channels]."""
    if problem.weights is None:
        return assumed_noise(problem.robot, len(problem.rows.channels))
    return np.asarray(1.0 / problem.weights)


def period_information(problem: ExcitationProblem, trajectory: Trajectory) -> FloatArray:
    """Inverse covariance of the base parameters after one period at `REPORT_RATE_HZ` with white noise, shape [r, r]."""
    A = evaluate_rows(Restricted(problem.rows, problem.columns), excitation_inputs(trajectory))
    weighted = (A / channel_noise(problem)[:, np.newaxis]).reshape(-1, A.shape[2])
    return np.asarray(weighted.T @ weighted)


def predicted_deviations(
    problem: ExcitationProblem, trajectory: Trajectory, *, periods: int = 1, known: FloatArray | None = None
) -> FloatArray:
    """Standard deviation of each base parameter after some periods, shape [r].

    Args:
        problem: rows and noise.
        trajectory: one period.
        periods: run one after another.
        known: inverse covariance before them, shape [r, r].
    """
    total = periods * period_information(problem, trajectory)
    return np.asarray(np.sqrt(np.diag(np.linalg.inv(total if known is None else total + known))))


def goal_misses(problem: ExcitationProblem, trajectory: Trajectory, condition: float) -> FloatArray:
    """Relative misses of the goals; none positive when all are attained."""
    if problem.goals is None:
        return np.zeros(0)
    torque = evaluate_rows(NominalTorque(problem.robot), excitation_inputs(trajectory))[:, :, 0]
    return problem.goals.misses(condition, torque.T)
