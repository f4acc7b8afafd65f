"""Batch dynamics on arrays [n_samples, n_joints], in drive coordinates.

Positions, velocities, accelerations and torques are those of the drives: with a coupling C the arm itself
moves with `C q`, and torques are `C^T tau`, so power is the same on both sides. Without one there is no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import ShapeError
from armid.parameters.inertial import N_INERTIAL
from armid.recursion import dynamics as recursion
from armid.recursion.motion import drive_coordinates, geometric_coordinates
from armid.recursion.scalars import ARRAYS
from armid.robot.robot import Robot


def columns_of(robot: Robot, name: str, values: npt.ArrayLike) -> list[FloatArray]:
    """The columns of a [n_samples, n_joints] array after checking it."""
    return list(samples(name, values, robot.n_joints).T)


def inertial_rows(robot: Robot, inertial: npt.ArrayLike | None) -> FloatArray:
    """Parameters of each link, shape [n_joints, 10]; the robot's own when none are given."""
    values = np.asarray(robot.inertial if inertial is None else inertial, dtype=np.float64)
    if values.size != robot.n_joints * N_INERTIAL:
        raise ShapeError("inertial", values.shape, f"[{robot.n_joints * N_INERTIAL}]")
    return values.reshape(robot.n_joints, N_INERTIAL)


def inverse_dynamics(
    robot: Robot,
    q: npt.ArrayLike,
    qd: npt.ArrayLike,
    qdd: npt.ArrayLike,
    *,
    inertial: npt.ArrayLike | None = None,
    drives: bool = False,
) -> FloatArray:
    """Torque that moves the arm so: M(q) qdd + C(q, qd) qd + g(q), plus the drives' own if asked.

    Args:
        robot: the arm; its gravity and coupling are used.
        q, qd, qdd: drive positions, velocities, accelerations [rad or m, ...], shape [n_samples, n_joints].
        inertial: standard inertial parameters, shape [10 n_joints]; the robot's own by default.
        drives: add rotor inertia, viscous and Coulomb friction and offset of the robot's drives.

    Returns:
        Torque [N m or N], shape [n_samples, n_joints].
    """
    x, v, a = (columns_of(robot, name, value) for name, value in (("q", q), ("qd", qd), ("qdd", qdd)))
    pi = inertial_rows(robot, inertial)
    geometric = (geometric_coordinates(robot, z, ARRAYS) for z in (x, v, a))
    torque = drive_coordinates(robot, recursion.inverse_dynamics(robot, *geometric, pi, ARRAYS), ARRAYS)
    tau = stacked(torque, len(x[0]))
    return tau + drive_torque(robot, np.column_stack(v), np.column_stack(a)) if drives else tau


def drive_torque(robot: Robot, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Rotor inertia, friction and offset of the robot's own drives, shape [n_samples, n_joints]."""
    return (
        robot.drive("rotor_inertia") * qdd
        + robot.drive("viscous") * qd
        + robot.drive("coulomb") * np.sign(qd)
        + robot.drive("offset")
    )


def regressor(robot: Robot, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike) -> FloatArray:
    """Rigid-body torque regressor Y with `inverse_dynamics = Y @ inertial`, shape [n_samples, n_joints, 10 n_joints]."""
    x, v, a = (
        geometric_coordinates(robot, columns_of(robot, name, value), ARRAYS)
        for name, value in (("q", q), ("qd", qd), ("qdd", qdd))
    )
    n, count = robot.n_joints, len(x[0])
    Y = np.zeros((count, n, n * N_INERTIAL))
    for k, row in enumerate(recursion.regressor(robot, x, v, a, ARRAYS)):
        for i, ten in enumerate(row):
            if ten is not None:
                Y[:, k, i * N_INERTIAL : (i + 1) * N_INERTIAL] = stacked(ten, count)
    return Y if robot.coupling is None else np.einsum("kj,skc->sjc", robot.coupling, Y)


def mass_matrix(robot: Robot, q: npt.ArrayLike, *, inertial: npt.ArrayLike | None = None) -> FloatArray:
    """M(q) of the links without rotors, symmetric, shape [n_samples, n_joints, n_joints]."""
    x = geometric_coordinates(robot, columns_of(robot, "q", q), ARRAYS)
    M = recursion.mass_matrix(robot, x, inertial_rows(robot, inertial), ARRAYS)
    return both_sides(robot, matrix(M, len(x[0])))


def coriolis_matrix(
    robot: Robot, q: npt.ArrayLike, qd: npt.ArrayLike, *, inertial: npt.ArrayLike | None = None
) -> FloatArray:
    """C(q, qd) from the Christoffel symbols: M_dot - 2 C is skew. Shape [n_samples, n_joints, n_joints]."""
    x, v = (geometric_coordinates(robot, columns_of(robot, n, z), ARRAYS) for n, z in (("q", q), ("qd", qd)))
    C = recursion.coriolis_matrix(robot, x, v, inertial_rows(robot, inertial), ARRAYS)
    return both_sides(robot, matrix(C, len(x[0])))


def gravity(robot: Robot, q: npt.ArrayLike, *, inertial: npt.ArrayLike | None = None) -> FloatArray:
    """Torque that holds the arm still: g(q), shape [n_samples, n_joints]."""
    x = samples("q", q, robot.n_joints)
    zero = np.zeros_like(x)
    return inverse_dynamics(robot, x, zero, zero, inertial=inertial)


def kinetic_energy(
    robot: Robot, q: npt.ArrayLike, qd: npt.ArrayLike, *, inertial: npt.ArrayLike | None = None
) -> FloatArray:
    """1/2 qd^T M(q) qd [J], shape [n_samples]."""
    x, v = (geometric_coordinates(robot, columns_of(robot, n, z), ARRAYS) for n, z in (("q", q), ("qd", qd)))
    energy = recursion.kinetic_energy(robot, x, v, inertial_rows(robot, inertial), ARRAYS)
    return np.broadcast_to(energy, x[0].shape).astype(np.float64)


def potential_energy(robot: Robot, q: npt.ArrayLike, *, inertial: npt.ArrayLike | None = None) -> FloatArray:
    """Potential energy [J] with its zero at the base frame's origin, shape [n_samples]; its gradient is `gravity`."""
    x = geometric_coordinates(robot, columns_of(robot, "q", q), ARRAYS)
    energy = recursion.potential_energy(robot, x, inertial_rows(robot, inertial), ARRAYS)
    return np.broadcast_to(energy, x[0].shape).astype(np.float64)


def forward_dynamics(
    robot: Robot,
    q: npt.ArrayLike,
    qd: npt.ArrayLike,
    torque: npt.ArrayLike,
    *,
    inertial: npt.ArrayLike | None = None,
    drives: bool = False,
) -> FloatArray:
    """Acceleration under a given torque, the inverse of `inverse_dynamics`, shape [n_samples, n_joints]."""
    x, v = samples("q", q, robot.n_joints), samples("qd", qd, robot.n_joints)
    tau = samples("torque", torque, robot.n_joints)
    bias = inverse_dynamics(robot, x, v, np.zeros_like(x), inertial=inertial, drives=drives)
    M = mass_matrix(robot, x, inertial=inertial)
    if drives:
        M = M + np.diag(robot.drive("rotor_inertia"))
    return np.linalg.solve(M, (tau - bias)[..., np.newaxis])[..., 0]


def stacked(columns: Sequence[object], count: int) -> FloatArray:
    """Columns, some of them constants, as one array [count, n_columns]."""
    out = np.empty((count, len(columns)))
    for i, column in enumerate(columns):
        out[:, i] = column
    return out


def matrix(rows: Sequence[Sequence[object]], count: int) -> FloatArray:
    """A matrix of columns as one array [count, n, n]."""
    out = np.empty((count, len(rows), len(rows)))
    for j, row in enumerate(rows):
        for k, value in enumerate(row):
            out[:, j, k] = value
    return out


def both_sides(robot: Robot, A: FloatArray) -> FloatArray:
    """C^T A C with the robot's coupling C."""
    return A if robot.coupling is None else robot.coupling.T @ A @ robot.coupling
