"""Batch dynamics on arrays [n_samples, n_joints], in drive coordinates.

Positions, velocities, accelerations and torques are those of the drives: with a coupling C the arm itself
moves with `C q`, and torques are `C^T tau`, so power is the same on both sides. Without one there is no difference.
One sample may be given as [n_joints]; it counts as n_samples = 1 (`rigid_body` answers it without the axis of samples).
Batches beyond a few dozen samples run on code compiled for the robot at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import ShapeError
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.kernels.functions import over_samples
from armid.kernels.rigid import RigidRows
from armid.parameters.inertial import N_INERTIAL
from armid.recursion import dynamics as recursion
from armid.recursion.motion import drive_coordinates, geometric_coordinates
from armid.recursion.scalars import Scalar, Scalars
from armid.robot.robot import Robot


@dataclass(frozen=True)
class _Body:
    """One quantity of one robot as a function of drive positions (and velocities, accelerations) and the inertial parameters."""

    robot: Robot

    def split(
        self, inputs: Sequence[Scalar], shared: Sequence[Scalar], scalars: Scalars
    ) -> tuple[list[list[Scalar]], list[Sequence[Scalar]]]:
        """Geometric coordinates (q, qd, ... as many as there are) and ten parameters per link."""
        n = self.robot.n_joints
        kinds = [geometric_coordinates(self.robot, inputs[k : k + n], scalars) for k in range(0, len(inputs), n)]
        return kinds, [shared[k : k + N_INERTIAL] for k in range(0, n * N_INERTIAL, N_INERTIAL)]


class _Torque(_Body):
    def __call__(self, inputs: Sequence[Scalar], shared: Sequence[Scalar], scalars: Scalars) -> Sequence[Scalar]:
        (q, qd, qdd), pi = self.split(inputs, shared, scalars)
        return drive_coordinates(self.robot, recursion.inverse_dynamics(self.robot, q, qd, qdd, pi, scalars), scalars)


class _Gravity(_Body):
    def __call__(self, inputs: Sequence[Scalar], shared: Sequence[Scalar], scalars: Scalars) -> Sequence[Scalar]:
        (q,), pi = self.split(inputs, shared, scalars)
        still = [scalars.constant(0.0)] * len(q)
        torque = recursion.inverse_dynamics(self.robot, q, still, still, pi, scalars)
        return drive_coordinates(self.robot, torque, scalars)


class _Mass(_Body):
    def __call__(self, inputs: Sequence[Scalar], shared: Sequence[Scalar], scalars: Scalars) -> Sequence[Scalar]:
        (q,), pi = self.split(inputs, shared, scalars)
        M = recursion.mass_matrix(self.robot, q, pi, scalars)
        return [M[j][k] for j in range(len(q)) for k in range(len(q))]


class _Coriolis(_Body):
    def __call__(self, inputs: Sequence[Scalar], shared: Sequence[Scalar], scalars: Scalars) -> Sequence[Scalar]:
        (q, qd), pi = self.split(inputs, shared, scalars)
        C = recursion.coriolis(self.robot, q, qd, pi, scalars)
        return [C[j][k] for j in range(len(q)) for k in range(len(q))]


class _Kinetic(_Body):
    def __call__(self, inputs: Sequence[Scalar], shared: Sequence[Scalar], scalars: Scalars) -> Sequence[Scalar]:
        (q, qd), pi = self.split(inputs, shared, scalars)
        return [recursion.kinetic_energy(self.robot, q, qd, pi, scalars)]


class _Potential(_Body):
    def __call__(self, inputs: Sequence[Scalar], shared: Sequence[Scalar], scalars: Scalars) -> Sequence[Scalar]:
        (q,), pi = self.split(inputs, shared, scalars)
        return [recursion.potential_energy(self.robot, q, pi, scalars)]


def states(robot: Robot, **values: npt.ArrayLike) -> list[FloatArray]:
    """Checked arrays [n_samples, n_joints] of one common length."""
    arrays = [samples(name, value, robot.n_joints) for name, value in values.items()]
    for name, array in zip(values, arrays, strict=True):
        if len(array) != len(arrays[0]):
            raise ShapeError(name, array.shape, f"[{len(arrays[0])}, {robot.n_joints}]")
    return arrays


def _inertial_vector(robot: Robot, inertial: npt.ArrayLike | None) -> FloatArray:
    """Standard inertial parameters, shape [10 n_joints]; the robot's own when none are given."""
    values = np.asarray(robot.inertial if inertial is None else inertial, dtype=np.float64)
    if values.size != robot.n_joints * N_INERTIAL:
        raise ShapeError("inertial", values.shape, f"[{robot.n_joints * N_INERTIAL}]")
    return values.reshape(-1)


def inverse_dynamics(
    robot: Robot,
    q: npt.ArrayLike,
    qd: npt.ArrayLike,
    qdd: npt.ArrayLike,
    *,
    inertial: npt.ArrayLike | None = None,
    drives: bool = False,
) -> FloatArray:
    """Torque that moves the arm so, plus the drives' own if asked.

    `inverse_dynamics = mass_matrix @ qdd + coriolis @ qd + gravity = regressor @ inertial`.

    Args:
        robot: the arm; its gravity and coupling are used.
        q, qd, qdd: drive positions, velocities, accelerations [rad or m, /s, /s^2], shape [n_samples, n_joints].
        inertial: standard inertial parameters, shape [10 n_joints]; the robot's own by default.
        drives: add rotor inertia, viscous and Coulomb friction and offset of the robot's drives.

    Returns:
        Torque [N m or N], shape [n_samples, n_joints].
    """
    x, v, a = states(robot, q=q, qd=qd, qdd=qdd)
    tau = over_samples(_Torque(robot), (x, v, a), _inertial_vector(robot, inertial))
    return tau + _drive_torque(robot, v, a) if drives else tau


def _drive_torque(robot: Robot, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Rotor inertia, friction and offset of the robot's own drives, shape [n_samples, n_joints]."""
    return (
        robot.drive("rotor_inertia") * qdd
        + robot.drive("viscous") * qd
        + robot.drive("coulomb") * np.sign(qd)
        + robot.drive("offset")
    )


def regressor(
    robot: Robot,
    q: npt.ArrayLike,
    qd: npt.ArrayLike,
    qdd: npt.ArrayLike,
    *,
    columns: Sequence[int] | None = None,
    joints: Sequence[str] | None = None,
) -> FloatArray:
    """Rigid-body torque regressor Y with `inverse_dynamics = Y @ inertial`.

    Args:
        robot: the arm.
        q, qd, qdd: drive positions, velocities, accelerations [rad or m, /s, /s^2], shape [n_samples, n_joints].
        columns: only these of the 10 n_joints columns, in this order; others are not even computed.
        joints: only the rows of these drives, by name.

    Returns:
        Shape [n_samples, n_rows, n_columns].
    """
    source = RigidRows(robot, None if joints is None else tuple(joints))
    inputs = np.concatenate([a.T for a in states(robot, q=q, qd=qd, qdd=qdd)]).T
    return evaluate_rows(source if columns is None else Restricted(source, tuple(columns)), inputs)


def mass_matrix(robot: Robot, q: npt.ArrayLike, *, inertial: npt.ArrayLike | None = None) -> FloatArray:
    """Inertia matrix M(q) of the links without rotors, symmetric.

    `kinetic_energy = 1/2 qd^T M qd`, and column k is `inverse_dynamics(q, 0, e_k) - gravity(q)`.

    Args:
        robot: the arm.
        q: drive positions [rad or m], shape [n_samples, n_joints].
        inertial: standard inertial parameters, shape [10 n_joints]; the robot's own by default.

    Returns:
        [kg m^2; kg m or kg where joints slide], shape [n_samples, n_joints, n_joints].
    """
    return _both_sides(robot, over_samples(_Mass(robot), states(robot, q=q), _inertial_vector(robot, inertial)))


def coriolis(robot: Robot, q: npt.ArrayLike, qd: npt.ArrayLike, *, inertial: npt.ArrayLike | None = None) -> FloatArray:
    """Coriolis matrix C(q, qd) from the Christoffel symbols.

    `C qd = inverse_dynamics(q, qd, 0) - gravity(q)`, and d/dt M(q) - 2 C is skew.

    Args:
        robot: the arm.
        q, qd: drive positions and velocities [rad or m, /s], shape [n_samples, n_joints].
        inertial: standard inertial parameters, shape [10 n_joints]; the robot's own by default.

    Returns:
        Shape [n_samples, n_joints, n_joints].
    """
    C = over_samples(_Coriolis(robot), states(robot, q=q, qd=qd), _inertial_vector(robot, inertial))
    return _both_sides(robot, C)


def gravity(robot: Robot, q: npt.ArrayLike, *, inertial: npt.ArrayLike | None = None) -> FloatArray:
    """Torque that holds the arm still: `gravity(q) = inverse_dynamics(q, 0, 0)`, the gradient of `potential_energy`.

    Args:
        robot: the arm; its gravity vector is used.
        q: drive positions [rad or m], shape [n_samples, n_joints].
        inertial: standard inertial parameters, shape [10 n_joints]; the robot's own by default.

    Returns:
        [N m or N], shape [n_samples, n_joints].
    """
    return over_samples(_Gravity(robot), states(robot, q=q), _inertial_vector(robot, inertial))


def kinetic_energy(
    robot: Robot, q: npt.ArrayLike, qd: npt.ArrayLike, *, inertial: npt.ArrayLike | None = None
) -> FloatArray:
    """1/2 qd^T M(q) qd [J], shape [n_samples]."""
    return over_samples(_Kinetic(robot), states(robot, q=q, qd=qd), _inertial_vector(robot, inertial))[:, 0]


def potential_energy(robot: Robot, q: npt.ArrayLike, *, inertial: npt.ArrayLike | None = None) -> FloatArray:
    """Potential energy [J] with its zero at the base frame's origin, shape [n_samples]; its gradient is `gravity`."""
    return over_samples(_Potential(robot), states(robot, q=q), _inertial_vector(robot, inertial))[:, 0]


def forward_dynamics(
    robot: Robot,
    q: npt.ArrayLike,
    qd: npt.ArrayLike,
    torque: npt.ArrayLike,
    *,
    inertial: npt.ArrayLike | None = None,
    drives: bool = False,
) -> FloatArray:
    """Acceleration under a given torque: `inverse_dynamics(q, qd, forward_dynamics(q, qd, torque)) = torque`.

    Args:
        robot: the arm.
        q, qd: drive positions and velocities [rad or m, /s], shape [n_samples, n_joints].
        torque: of the drives [N m or N], shape [n_samples, n_joints].
        inertial: standard inertial parameters, shape [10 n_joints]; the robot's own by default.
        drives: whether part of the torque moves rotors and overcomes friction of the robot's drives.

    Returns:
        [rad/s^2 or m/s^2], shape [n_samples, n_joints].
    """
    x, v, tau = states(robot, q=q, qd=qd, torque=torque)
    bias = inverse_dynamics(robot, x, v, np.zeros_like(x), inertial=inertial, drives=drives)
    M = mass_matrix(robot, x, inertial=inertial)
    if drives:
        M = M + np.diag(robot.drive("rotor_inertia"))
    return np.asarray(np.linalg.solve(M, (tau - bias)[..., np.newaxis])[..., 0], dtype=np.float64)


def _both_sides(robot: Robot, entries: FloatArray) -> FloatArray:
    """C^T A C with the robot's coupling C, for matrices A given row by row, shape [n_samples, n n]."""
    A = entries.reshape(len(entries), robot.n_joints, robot.n_joints)
    return A if robot.coupling is None else robot.coupling.T @ A @ robot.coupling
