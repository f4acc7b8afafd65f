"""The forward recursion: velocity, acceleration and joint axes of every link, seen from that link.

For link i with parent i-1 and joint twist (s_i, u_i) in link axes:

    w_i  = R^T w_{i-1} + s_i qd
    v_i  = R^T (v_{i-1} + w_{i-1} x p) + u_i qd
    al_i = R^T al_{i-1} + s_i qdd + w_i x s_i qd
    a_i  = R^T (a_{i-1} + al_{i-1} x p + w_{i-1} x (w_{i-1} x p)) + [joint terms]

where a is the acceleration of the link origin minus gravity. The axes of all joints k <= i are carried
along, so that the row of joint k is formed at link i directly instead of carrying wrenches back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armid.recursion.placement import JointPlacement, joint_placement
from armid.recursion.scalars import Scalar, Scalars, Vector, add, cross, scale, transpose_times
from armid.robot.robot import Robot


@dataclass(frozen=True, slots=True)
class Twist:
    """Angular and linear part (at the link origin) of a motion, in link axes."""

    angular: Vector
    linear: Vector


@dataclass(frozen=True, slots=True)
class LinkMotion:
    """One link in motion, everything in its own axes.

    Args:
        angular_velocity: [rad/s].
        angular_acceleration: [rad/s^2].
        acceleration: of the link origin, minus gravity [m/s^2].
        axes: unit twists of the joints 0..i seen from this link.
    """

    angular_velocity: Vector
    angular_acceleration: Vector
    acceleration: Vector
    axes: tuple[Twist, ...]


def geometric_coordinates(robot: Robot, drive: Sequence[Scalar], scalars: Scalars) -> list[Scalar]:
    """`q_geometric = coupling @ q_drive`, also for velocities and accelerations."""
    if robot.coupling is None:
        return list(drive)
    return [_linear_combination(row, drive, scalars) for row in robot.coupling]


def drive_coordinates(robot: Robot, torque: Sequence[Scalar], scalars: Scalars) -> list[Scalar]:
    """`tau_drive = coupling^T tau_geometric`: the transpose, so that power is the same on both sides."""
    if robot.coupling is None:
        return list(torque)
    return [_linear_combination(column, torque, scalars) for column in robot.coupling.T]


def _linear_combination(weights: Sequence[float], values: Sequence[Scalar], scalars: Scalars) -> Scalar:
    """Sum of weights times values; weights that are zero or one cost nothing."""
    total = scalars.constant(0.0)
    for weight, value in zip(weights, values, strict=True):
        if weight != 0.0:
            total = total + (value if weight == 1.0 else scalars.constant(float(weight)) * value)
    return total


def joint_placements(robot: Robot, q: Sequence[Scalar], scalars: Scalars) -> list[JointPlacement]:
    """Every joint at its position; q are geometric coordinates."""
    return [joint_placement(joint, qi, scalars) for joint, qi in zip(robot.joints, q, strict=True)]


def _transported(twist: Twist, placement: JointPlacement) -> Twist:
    """A twist given in the parent's axes at the parent's origin, seen from the child."""
    T = placement.placement
    return Twist(
        transpose_times(T.R, twist.angular),
        transpose_times(T.R, add(twist.linear, cross(twist.angular, T.p))),
    )


def propagate_axes(placements: Sequence[JointPlacement]) -> list[tuple[Twist, ...]]:
    """For every link i the unit twists of joints 0..i, in link i's axes at its origin."""
    axes: list[tuple[Twist, ...]] = []
    carried: tuple[Twist, ...] = ()
    for joint in placements:
        carried = (*(_transported(twist, joint) for twist in carried), Twist(joint.angular, joint.linear))
        axes.append(carried)
    return axes


def link_motions(
    robot: Robot,
    placements: Sequence[JointPlacement],
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    scalars: Scalars,
    gravity: Sequence[Scalar] | None = None,
) -> list[LinkMotion]:
    """The forward Newton-Euler recursion; `gravity` replaces the robot's own (for symbols, or zero)."""
    zero = scalars.constant(0.0)
    g = [scalars.constant(float(x)) for x in robot.gravity] if gravity is None else gravity
    w: Vector = (zero, zero, zero)
    alpha: Vector = (zero, zero, zero)
    a: Vector = (-g[0], -g[1], -g[2])
    motions: list[LinkMotion] = []
    for i, (joint, axes) in enumerate(zip(placements, propagate_axes(placements), strict=True)):
        R, p = joint.placement.R, joint.placement.p
        # Acceleration of the point of the parent that coincides with the child's origin.
        a_carried = add(a, add(cross(alpha, p), cross(w, cross(w, p))))
        w_in, alpha_in, a_in = transpose_times(R, w), transpose_times(R, alpha), transpose_times(R, a_carried)
        s_qd, u_qd = scale(qd[i], joint.angular), scale(qd[i], joint.linear)
        w_next = add(w_in, s_qd)
        alpha_next = add(add(alpha_in, scale(qdd[i], joint.angular)), cross(w_in, s_qd))
        # Relative motion: u qdd, Coriolis 2 w_in x u qd, and s qd x u qd, the centripetal part when the axis misses the origin.
        relative = add(cross(add(w_in, add(w_in, s_qd)), u_qd), scale(qdd[i], joint.linear))
        a_next = add(a_in, relative)
        motions.append(LinkMotion(w_next, alpha_next, a_next, axes))
        w, alpha, a = w_next, alpha_next, a_next
    return motions
