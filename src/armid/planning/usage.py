"""How much of each limit a motion uses, the doubt in the parameters included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.motions.limits import MotionLimits
from armid.planning.model import TorqueModel
from armid.planning.time_law import PathTrajectory


@dataclass(frozen=True, eq=False, kw_only=True)
class Usage:
    """Each limited quantity over its limit at instants of a motion, shape [n_instants, n_joints]; zero where unlimited.

    Args:
        time: instants [s].
        velocity, acceleration, jerk: magnitudes over limits.
        torque: magnitude of the expected torque plus its margin, over the limit.
        expected: torque [N m or N].
        margin: kappa deviations of the torque [N m or N].
    """

    time: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    jerk: FloatArray
    torque: FloatArray
    expected: FloatArray
    margin: FloatArray

    def worst(self) -> dict[str, float]:
        """The largest usage of each kind."""
        return {name: float(getattr(self, name).max()) for name in ("velocity", "acceleration", "jerk", "torque")}

    @property
    def needed(self) -> float:
        """A factor on the duration after which the limits hold, or nearly so for torque; at most 1 when they hold now."""
        worst = self.worst()
        kinematic = max(worst["velocity"], worst["acceleration"] ** (1 / 2), worst["jerk"] ** (1 / 3))
        # Gravity and dry friction do not shrink with speed, so that torque needs more than its square root.
        return max(kinematic, worst["torque"])


def usage_of(
    trajectory: PathTrajectory, model: TorqueModel, limits: MotionLimits, kappa: float, time: FloatArray
) -> Usage:
    """Usage at given instants.

    Args:
        trajectory: the motion.
        model: torque and its doubt.
        limits: of the joints.
        kappa: deviations of the torque that count as margin.
        time: [s], shape [n_instants].
    """
    q, qd, qdd = trajectory.sample(time)
    rows = model.rows(q, qd, qdd)
    expected = np.asarray((model.values @ rows.transpose(1, 2, 0)).T)
    margin = kappa * torque_deviation(model, rows) if kappa > 0.0 else np.zeros_like(expected)
    jerk = np.abs(trajectory.jerk(time)) / limits.jerk if np.isfinite(limits.jerk).any() else np.zeros_like(q)
    return Usage(
        time=time,
        velocity=np.abs(qd) / limits.velocity,
        acceleration=np.abs(qdd) / limits.acceleration,
        jerk=jerk,
        torque=(np.abs(expected) + margin) / limits.torque,
        expected=expected,
        margin=margin,
    )


def torque_deviation(model: TorqueModel, rows: FloatArray) -> FloatArray:
    """Standard deviation of the torque due to the parameters [N m or N], shape [n_samples, n_joints]."""
    flat = rows.reshape(-1, rows.shape[2])  # one large product instead of many small ones
    return np.asarray(np.linalg.norm(flat @ model.covariance_factor, axis=1).reshape(rows.shape[:2]))
