"""Joint targets for a controller that only knows the nominal arm: what to command so that the tool goes where it was meant to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.kernels.kinematics import forward_kinematics, jacobian
from armid.kinematics.calibrated import calibrated_robot, predicted_poses
from armid.kinematics.model import KinematicModel
from armid.kinematics.rotations import rotation_log

REACHED = 1e-10
"""[m, rad] Residual of a target that counts as reached: a thousandth of any encoder step."""
ITERATIONS = 60

DAMPING = 1e-2
"""[m/rad, rad/rad] First damping: singular values of the Jacobian below this move the joints little. Where steps help it
shrinks, so that ordinary targets converge as fast as by Newton's own steps."""
STALLED = 1e3
"""Damping beyond which a step no longer moves anything: the target is as near as it gets."""


@dataclass(frozen=True, eq=False)
class CompensatedTargets:
    """What to command.

    Args:
        q: joint targets, shape [n, n_joints].
        position_error, orientation_error: what is left to each target [m, rad], shape [n]; not zero where an arm with
            fewer than six joints cannot reach the pose exactly.
        within_limits: whether every joint stays within its limits, shape [n].
    """

    q: FloatArray
    position_error: FloatArray
    orientation_error: FloatArray
    within_limits: npt.NDArray[np.bool_]


def compensated_targets(
    model: KinematicModel,
    values: FloatArray,
    q_nominal: npt.ArrayLike,
    *,
    poses: FloatArray | None = None,
) -> CompensatedTargets:
    """Joint positions at which the real arm is where the nominal one would be at `q_nominal`.

    Damped Newton steps on the calibrated model with the Jacobian of its geometry; terms a description cannot hold
    (eccentricity, compliance) enter the pose and change that Jacobian by less than a thousandth. A step that does not
    come nearer is not taken: at a singular pose the joints stay near where they were instead of turning round.

    Args:
        model, values: the calibrated arm.
        q_nominal: what would be commanded to a nominal arm, shape [n, n_joints]; the start of the iteration.
        poses: T_base_tip to reach instead, shape [n, 4, 4].
    """
    q = np.array(samples("q_nominal", q_nominal, model.robot.n_joints))
    wanted = forward_kinematics(model.robot, q) if poses is None else np.asarray(poses, dtype=np.float64)
    arm = calibrated_robot(model, values)
    e = twist_to(predicted_poses(model, values, q), wanted)
    damping = np.full(len(q), DAMPING)
    for _ in range(ITERATIONS):
        open_ = (np.abs(e).max(axis=1, initial=0.0) > REACHED) & (damping < STALLED)
        if not open_.any():
            break
        trial = q[open_] + damped_step(jacobian(arm, q[open_]), e[open_], damping[open_])
        left = twist_to(predicted_poses(model, values, trial), wanted[open_])
        better = np.linalg.norm(left, axis=1) < np.linalg.norm(e[open_], axis=1)
        rows = np.flatnonzero(open_)
        q[rows[better]], e[rows[better]] = trial[better], left[better]
        damping[rows] *= np.where(better, 0.1, 10.0)
    lower, upper = model.robot.limit("lower"), model.robot.limit("upper")
    inside: npt.NDArray[np.bool_] = np.all((q >= lower) & (q <= upper), axis=1, keepdims=True)[:, 0]
    return CompensatedTargets(q, np.linalg.norm(e[:, :3], axis=1), np.linalg.norm(e[:, 3:], axis=1), inside)


def damped_step(J: FloatArray, e: FloatArray, damping: FloatArray) -> FloatArray:
    """`J^T (J J^T + lambda^2 I)^-1 e` for every target, shape [n, n_joints]."""
    Jt = np.swapaxes(J, 1, 2)
    G = J @ Jt + (damping**2)[:, np.newaxis, np.newaxis] * np.eye(6)
    return np.asarray((Jt @ np.linalg.solve(G, e[..., np.newaxis]))[..., 0])


def twist_to(T: FloatArray, wanted: FloatArray) -> FloatArray:
    """Position difference and rotation vector from T to the wanted pose, in base axes, shape [n, 6]."""
    turn = rotation_log(wanted[:, :3, :3] @ np.swapaxes(T[:, :3, :3], 1, 2))
    return np.hstack([wanted[:, :3, 3] - T[:, :3, 3], turn])
