"""The limits of a motion as constraints on theta', theta'' at points of a path, and whether the arm can stand there at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.motions.limits import MotionLimits, motion_limits
from armid.notes import Note
from armid.planning.errors import CollisionError, HoldingError, OutsideLimitsError
from armid.planning.path import Path
from armid.planning.reduced import ReducedDynamics
from armid.robot.robot import Robot
from armid.scene.scene import Scene

_POSITION_SLACK = 1e-9
"""[rad or m] Round-off of a waypoint that lies exactly on a limit."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Constraints:
    """Everything that bounds the speed at points of a path.

    Args:
        reduced: dynamics at the points.
        limits: of the joints.
        kappa: deviations of the torque that must fit below the limit beside its expected value.
        caps: largest theta'^2 the velocity limits allow, shape [n_points].
        table: a, b, v, highest c, lowest c of every limited channel (torques first), shape [n_points, n_channels, 5].
        bounds: limit of each channel, shape [n_channels].
        variance: quadratic form of the torque's variance over (theta'', theta'^2, theta', 1),
            shape [n_points, n_torque_channels, 4, 4]; no channels when kappa is zero.
        torques, accelerations: joints of the channels.
    """

    reduced: ReducedDynamics
    limits: MotionLimits
    kappa: float
    caps: FloatArray
    table: FloatArray
    bounds: FloatArray
    variance: FloatArray
    torques: tuple[int, ...]
    accelerations: tuple[int, ...]


def planning_limits(robot: Robot) -> tuple[MotionLimits, tuple[Note, ...]]:
    """The robot's limits; torque alone bounds acceleration where the description gives no limit of it, and jerk is free.

    Velocity limits, and acceleration limits of joints without a torque limit, are completed as for designs, with a note.
    """
    full, notes = motion_limits(robot)
    free = np.isfinite(robot.limit("torque")) & ~np.isfinite(robot.limit("acceleration"))
    limits = full.but(
        lower=robot.limit("lower"),
        upper=robot.limit("upper"),
        acceleration=np.where(free, np.inf, full.acceleration),
        jerk=robot.limit("jerk"),
    )
    assumed = {"velocity"} | ({"acceleration"} if not free.all() else set())
    return limits, tuple(note for note in notes if note.subject in assumed)


def constraints_of(reduced: ReducedDynamics, limits: MotionLimits, kappa: float) -> Constraints:
    """The constraints at the points where the dynamics were reduced.

    Args:
        reduced: at ascending parameters.
        limits: of the joints.
        kappa: how many standard deviations of the torque are kept free below each limit.
    """
    _, first, second, _ = reduced.derivatives
    with np.errstate(divide="ignore"):
        caps = np.min(np.where(first != 0.0, (limits.velocity / first) ** 2, np.inf), axis=1)
    torques = tuple(int(j) for j in np.flatnonzero(np.isfinite(limits.torque)))
    accelerations = tuple(int(j) for j in np.flatnonzero(np.isfinite(limits.acceleration)))
    t, k = list(torques), list(accelerations)
    low, high = _sign_range(reduced.coulomb)
    still = reduced.Gamma + reduced.offset
    zero = np.zeros_like(first)
    table = np.concatenate(
        [
            np.stack([reduced.A, reduced.B, reduced.viscous, still + high, still + low], axis=-1)[:, t],
            np.stack([first, second, zero, zero, zero], axis=-1)[:, k],
        ],
        axis=1,
    )
    bounds = np.concatenate([limits.torque[t], limits.acceleration[k]])
    variance = _torque_variance(reduced)[:, t] if kappa > 0.0 else np.zeros((len(first), 0, 4, 4))
    return Constraints(
        reduced=reduced,
        limits=limits,
        kappa=kappa,
        caps=caps,
        table=np.ascontiguousarray(table),
        bounds=bounds,
        variance=np.ascontiguousarray(variance),
        torques=torques,
        accelerations=accelerations,
    )


def _sign_range(coulomb: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest Coulomb torque from the point before to the point after: it jumps where a joint turns round."""
    padded = np.concatenate([coulomb[:1], coulomb, coulomb[-1:]])
    near = np.stack([padded[:-2], padded[1:-1], padded[2:]])
    return near.min(axis=0), near.max(axis=0)


def _torque_variance(reduced: ReducedDynamics) -> FloatArray:
    """Variance of the torque due to the parameters as a form over (theta'', theta'^2, theta', 1), [n_points, n_joints, 4, 4]."""
    terms = reduced.rows_by_term()
    rows = (terms.reshape(-1, terms.shape[3]) @ reduced.model.covariance_factor).reshape(terms.shape)
    return np.asarray(rows @ rows.transpose(0, 1, 3, 2))


def check_positions(path: Path, theta: FloatArray, q: FloatArray, limits: MotionLimits, names: tuple[str, ...]) -> None:
    """That the path stays between the position limits.

    Raises:
        OutsideLimitsError: where it first leaves them.
    """
    over = np.maximum(q - limits.upper, limits.lower - q)
    outside = (over > _POSITION_SLACK).any(axis=1)
    if outside.any():
        k = int(np.argmax(outside))
        j = int(np.argmax(over[k]))
        worst = int(np.argmax(over[:, j]))
        raise OutsideLimitsError(
            path.place(float(theta[k])),
            f"{names[j]} leaves its limits {limits.lower[j]:.4g} to {limits.upper[j]:.4g}, as far as {q[worst, j]:.4g}",
            "move the waypoints inwards; a spline swings a little beyond its points",
        )


def check_collisions(path: Path, theta: FloatArray, q: FloatArray, scene: Scene) -> None:
    """That no pose on the grid touches the arm itself or the cell.

    Raises:
        CollisionError: where it first does.
    """
    if not len(scene):
        return
    clearances = scene.clearances(q)
    touching = (clearances < 0.0).any(axis=1)
    if touching.any():
        k = int(np.argmax(touching))
        c = int(np.argmin(clearances[k]))
        worst = float(clearances[:, c].min())
        raise CollisionError(
            path.place(float(theta[k])),
            f"{scene.names[c]} come closer than the margin, by {-1000 * worst:.0f} mm at worst",
            "lead the path around, or state a smaller margin in the cell",
        )


def check_holding(constraints: Constraints) -> None:
    """That the drives can hold the arm, and move it slowly, everywhere on the path.

    Static friction is not relied on for holding. An arm that could only rush through is refused: it could not stop there.

    Raises:
        HoldingError: at the worst place.
    """
    reduced, limits, kappa = constraints.reduced, constraints.limits, constraints.kappa
    names = reduced.model.robot.joint_names
    still = reduced.Gamma + reduced.offset
    doubt = (
        kappa * np.sqrt(np.maximum(_torque_variance(reduced)[..., 3, 3], 0.0)) if kappa > 0.0 else np.zeros_like(still)
    )
    low, high = _sign_range(reduced.coulomb)
    moving = np.maximum(np.abs(still + high), np.abs(still + low)) + doubt
    for torque, doing in (
        (np.abs(still) + doubt, "to hold the arm against gravity"),
        (moving, "to move the arm slowly"),
    ):
        usage = torque / limits.torque
        if (usage >= 1.0).any():
            k, j = np.unravel_index(int(np.argmax(usage)), usage.shape)
            extra = f", {doubt[k, j]:.3g} of it for the doubt in the parameters" if kappa > 0.0 else ""
            raise HoldingError(
                reduced.path.place(float(reduced.theta[k])),
                f"{names[j]} needs {torque[k, j]:.4g} {doing}{extra}; its torque limit is {limits.torque[j]:.4g}",
                "choose another posture or payload, or a lower confidence",
            )
