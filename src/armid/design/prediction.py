"""What a designed motion will give: deviations to expect, and by how much goals are missed."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.design.excitation import ExcitationProblem
from armid.identifiability.expectation import assumed_noise, excitation_inputs
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.motions.trajectory import Trajectory
from armid.rows.nominal_torque import NominalTorque


def predicted_deviations(problem: ExcitationProblem, trajectory: Trajectory) -> FloatArray:
    """Standard deviation of each base parameter after one period at `REPORT_RATE_HZ` with white noise, shape [r]."""
    noise = (
        assumed_noise(problem.robot, len(problem.rows.channels)) if problem.weights is None else 1.0 / problem.weights
    )
    A = evaluate_rows(Restricted(problem.rows, problem.columns), excitation_inputs(trajectory))
    R = np.linalg.qr((A / noise[:, np.newaxis]).reshape(-1, A.shape[2]), mode="r")
    return np.linalg.norm(np.linalg.inv(R), axis=1)


def goal_misses(problem: ExcitationProblem, trajectory: Trajectory, condition: float) -> FloatArray:
    """Relative misses of the goals; none positive when all are attained."""
    if problem.goals is None:
        return np.zeros(0)
    torque = evaluate_rows(NominalTorque(problem.robot), excitation_inputs(trajectory))[:, :, 0]
    return problem.goals.misses(condition, torque.T)
