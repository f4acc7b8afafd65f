"""Torque, regressor, inertia matrix, Coriolis matrix and energies on any scalar, all linear in the ten parameters per link.

The wrench of one link about its origin is `A_i pi_i` with the body regressor

    force  = m a + (skew(al) + skew(w)^2) h
    moment = h x a + I al + w x I w

and the torque of joint k is the sum over links i >= k of (axis of k seen from i) . wrench_i.
"""

from __future__ import annotations

from collections.abc import Sequence

from armid.recursion.motion import (
    LinkMotion,
    Twist,
    joint_placements,
    link_motions,
    propagate_axes,
)
from armid.recursion.placement import identity
from armid.recursion.scalars import Scalar, Scalars, Vector, add, cross, dot, scale, times
from armid.robot.robot import Robot

Ten = tuple[Scalar, ...]
"""One value for each of the ten standard parameters, in the order of `InertialIndex`."""


def _symmetric_columns(a: Vector, b: Vector) -> Ten:
    """The six coefficients of (Ixx, Ixy, Ixz, Iyy, Iyz, Izz) in a^T I b."""
    return (
        a[0] * b[0],
        a[0] * b[1] + a[1] * b[0],
        a[0] * b[2] + a[2] * b[0],
        a[1] * b[1],
        a[1] * b[2] + a[2] * b[1],
        a[2] * b[2],
    )


def _moment_columns(motion: LinkMotion) -> tuple[Vector, ...]:
    """For each of the six inertia entries, the moment I al + w x I w it contributes."""
    (x, y, z), (ax, ay, az) = motion.angular_velocity, motion.angular_acceleration
    xy, xz, yz = x * y, x * z, y * z
    xx, yy, zz = x * x, y * y, z * z
    return (
        (ax, xz, -xy),
        (ay - xz, ax + yz, xx - yy),
        (az + xy, zz - xx, ax - yz),
        (-yz, ay, xy),
        (yy - zz, az - xy, ay + xz),
        (yz, -xz, az),
    )


def _force_rows(motion: LinkMotion) -> tuple[Vector, Vector, Vector]:
    """skew(al) + skew(w)^2, row by row."""
    (x, y, z), (ax, ay, az) = motion.angular_velocity, motion.angular_acceleration
    xy, xz, yz = x * y, x * z, y * z
    xx, yy, zz = x * x, y * y, z * z
    return (
        (-(yy + zz), xy - az, xz + ay),
        (xy + az, -(xx + zz), yz - ax),
        (xz - ay, yz + ax, -(xx + yy)),
    )


def _torque_columns(axis: Twist, motion: LinkMotion) -> Ten:
    """Torque about one joint's axis for each of the ten parameters of one link."""
    u, s, a = axis.linear, axis.angular, motion.acceleration
    L = _force_rows(motion)
    first = add(
        (
            u[0] * L[0][0] + u[1] * L[1][0] + u[2] * L[2][0],
            u[0] * L[0][1] + u[1] * L[1][1] + u[2] * L[2][1],
            u[0] * L[0][2] + u[1] * L[1][2] + u[2] * L[2][2],
        ),
        cross(a, s),
    )
    return (dot(u, a), *first, *(dot(s, column) for column in _moment_columns(motion)))


def regressor(
    robot: Robot,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    scalars: Scalars,
    *,
    gravity: Sequence[Scalar] | None = None,
) -> list[list[Ten | None]]:
    """Rigid-body torque regressor: entry [joint][link] holds ten columns, None where the link cannot be felt.

    tau_k = sum over i >= k of entry[k][i] . pi_i. Coordinates are geometric.
    """
    placements = joint_placements(robot, q, scalars)
    motions = link_motions(robot, placements, qd, qdd, scalars, gravity)
    n = robot.n_joints
    rows: list[list[Ten | None]] = [[None] * n for _ in range(n)]
    for i, motion in enumerate(motions):
        for k, axis in enumerate(motion.axes):
            rows[k][i] = _torque_columns(axis, motion)
    return rows


def _link_wrench(motion: LinkMotion, pi: Sequence[Scalar]) -> tuple[Vector, Vector]:
    """Force and moment about the link origin that move the link."""
    h = (pi[1], pi[2], pi[3])
    w, alpha, a = motion.angular_velocity, motion.angular_acceleration, motion.acceleration
    force = add(scale(pi[0], a), add(cross(alpha, h), cross(w, cross(w, h))))
    moment = add(cross(h, a), add(_inertia_times(pi, alpha), cross(w, _inertia_times(pi, w))))
    return force, moment


def _inertia_times(pi: Sequence[Scalar], v: Vector) -> Vector:
    """I v with I from the ten parameters."""
    return (
        pi[4] * v[0] + pi[5] * v[1] + pi[6] * v[2],
        pi[5] * v[0] + pi[7] * v[1] + pi[8] * v[2],
        pi[6] * v[0] + pi[8] * v[1] + pi[9] * v[2],
    )


def inverse_dynamics(
    robot: Robot,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    inertial: Sequence[Sequence[Scalar]],
    scalars: Scalars,
    *,
    gravity: Sequence[Scalar] | None = None,
) -> list[Scalar]:
    """Rigid-body torque by Newton-Euler, wrenches carried back: [Luh1980]. Equals regressor times parameters."""
    placements = joint_placements(robot, q, scalars)
    motions = link_motions(robot, placements, qd, qdd, scalars, gravity)
    torque: list[Scalar] = [None] * robot.n_joints
    force: Vector | None = None
    moment: Vector | None = None
    for i in reversed(range(robot.n_joints)):
        own_force, own_moment = _link_wrench(motions[i], inertial[i])
        if force is None or moment is None:
            force, moment = own_force, own_moment
        else:
            outer = placements[i + 1].placement
            carried = times(outer.R, force)
            force = add(own_force, carried)
            moment = add(own_moment, add(times(outer.R, moment), cross(outer.p, carried)))
        joint = placements[i]
        torque[i] = dot(joint.linear, force) + dot(joint.angular, moment)
    return torque


def _energy_columns(a: Twist, b: Twist) -> Ten:
    """The ten coefficients of a^T [spatial inertia] b: m, h and I enter linearly."""
    first = add(cross(a.linear, b.angular), cross(b.linear, a.angular))
    # a_v . (b_w x h) = h . (a_v x b_w), and the same with a and b exchanged.
    return (dot(a.linear, b.linear), *first, *_symmetric_columns(a.angular, b.angular))


def inertia_matrix_columns(robot: Robot, q: Sequence[Scalar], scalars: Scalars) -> list[list[list[Ten | None]]]:
    """Entry [j][k][link]: ten coefficients of M_jk; symmetric in j and k. Coordinates are geometric."""
    n = robot.n_joints
    entries: list[list[list[Ten | None]]] = [[[None] * n for _ in range(n)] for _ in range(n)]
    for i, axes in enumerate(propagate_axes(joint_placements(robot, q, scalars))):
        for j in range(i + 1):
            for k in range(j + 1):
                entries[j][k][i] = entries[k][j][i] = _energy_columns(axes[j], axes[k])
    return entries


def mass_matrix(
    robot: Robot, q: Sequence[Scalar], inertial: Sequence[Sequence[Scalar]], scalars: Scalars
) -> list[list[Scalar]]:
    """M(q) = sum over links of J^T I J, J the axes seen from the link. Coordinates are geometric."""
    n = robot.n_joints
    M: list[list[Scalar]] = [[scalars.constant(0.0)] * n for _ in range(n)]
    for i, axes in enumerate(propagate_axes(joint_placements(robot, q, scalars))):
        momenta = [_momentum(inertial[i], axis) for axis in axes]
        for j in range(i + 1):
            for k in range(j + 1):
                M[j][k] = M[j][k] + dot(axes[j].angular, momenta[k].angular) + dot(axes[j].linear, momenta[k].linear)
                M[k][j] = M[j][k]
    return M


def _momentum(pi: Sequence[Scalar], twist: Twist) -> Twist:
    """Spatial inertia times twist: (I w + h x v, m v - h x w), angular part first."""
    h = (pi[1], pi[2], pi[3])
    w, v = twist.angular, twist.linear
    return Twist(
        add(_inertia_times(pi, w), cross(h, v)),
        add(scale(pi[0], v), cross(w, h)),
    )


def _twist_cross(a: Twist, b: Twist) -> Twist:
    """Motion cross product a x b (rate of change of b carried along with a)."""
    return Twist(cross(a.angular, b.angular), add(cross(a.angular, b.linear), cross(a.linear, b.angular)))


def _force_cross(a: Twist, f: Twist) -> Twist:
    """Force cross product a x* f; f holds (moment, force)."""
    return Twist(add(cross(a.angular, f.angular), cross(a.linear, f.linear)), cross(a.angular, f.linear))


def _power(a: Twist, f: Twist) -> Scalar:
    """Pairing of a twist with a wrench (moment, force)."""
    return dot(a.angular, f.angular) + dot(a.linear, f.linear)


def _twist_sum(a: Twist, b: Twist) -> Twist:
    return Twist(add(a.angular, b.angular), add(a.linear, b.linear))


def _twist_scaled(s: Scalar, a: Twist) -> Twist:
    return Twist(scale(s, a.angular), scale(s, a.linear))


def _link_velocities(axes: Sequence[tuple[Twist, ...]], qd: Sequence[Scalar]) -> list[list[Twist]]:
    """Entry [i][k]: velocity of link k seen from link i (k <= i)."""
    velocities: list[list[Twist]] = []
    for carried in axes:
        partial: list[Twist] = []
        for k, axis in enumerate(carried):
            step = _twist_scaled(qd[k], axis)
            partial.append(step if k == 0 else _twist_sum(partial[-1], step))
        velocities.append(partial)
    return velocities


def coriolis(
    robot: Robot,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    inertial: Sequence[Sequence[Scalar]],
    scalars: Scalars,
) -> list[list[Scalar]]:
    """C(q, qd) of the Christoffel symbols, so that M_dot - 2 C is skew; [Echeandia2021].

    C = sum over links of J^T (I Psi + B J), Psi_k = v_k x S_k, and the symmetric-part-preserving
    B = 1/2 (v x* I + (I v) bar-x* - I v x). Coordinates are geometric.
    """
    n = robot.n_joints
    half = scalars.constant(0.5)
    C: list[list[Scalar]] = [[scalars.constant(0.0)] * n for _ in range(n)]
    axes = propagate_axes(joint_placements(robot, q, scalars))
    velocities = _link_velocities(axes, qd)
    for i, carried in enumerate(axes):
        pi, v = inertial[i], velocities[i][i]
        p = _momentum(pi, v)
        for k, axis in enumerate(carried):
            psi = _twist_cross(velocities[i][k], axis)
            own = _momentum(pi, axis)
            # B S = 1/2 (v x* I S + S x* I v - I (v x S))
            swirl = _twist_sum(_force_cross(v, own), _force_cross(axis, p))
            rate = _momentum(pi, _twist_cross(v, axis))
            for j in range(i + 1):
                C[j][k] = (
                    C[j][k]
                    + _power(carried[j], _momentum(pi, psi))
                    + half * (_power(carried[j], swirl) - _power(carried[j], rate))
                )
    return C


def kinetic_energy(
    robot: Robot,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    inertial: Sequence[Sequence[Scalar]],
    scalars: Scalars,
) -> Scalar:
    """1/2 sum over links of v^T I v."""
    total = scalars.constant(0.0)
    axes = propagate_axes(joint_placements(robot, q, scalars))
    for pi, velocities in zip(inertial, _link_velocities(axes, qd), strict=True):
        total = total + _power(velocities[-1], _momentum(pi, velocities[-1]))
    return scalars.constant(0.5) * total


def potential_energy(
    robot: Robot,
    q: Sequence[Scalar],
    inertial: Sequence[Sequence[Scalar]],
    scalars: Scalars,
    *,
    gravity: Sequence[Scalar] | None = None,
) -> Scalar:
    """- sum over links of g . (m p + R h), zero for a massless arm; the gradient with respect to q is the gravity torque."""
    g = tuple(scalars.constant(float(x)) for x in robot.gravity) if gravity is None else tuple(gravity)
    total = scalars.constant(0.0)
    T = identity(scalars)
    for joint, pi in zip(joint_placements(robot, q, scalars), inertial, strict=True):
        T = T.then(joint.placement)
        total = total - dot(g, add(scale(pi[0], T.p), times(T.R, (pi[1], pi[2], pi[3]))))
    return total
