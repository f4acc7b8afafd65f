"""The ten standard inertial parameters of a body, and the other ways to write them.

A body is described about the origin of its link frame, in that frame's axes:
mass m, first moment (mx, my, mz) = m c, and the inertia tensor I about the *origin*
(not the centre of mass). All torques are linear in these ten numbers.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray


class InertialIndex(IntEnum):
    """Position of each parameter in the ten-vector. This order is used everywhere."""

    MASS = 0
    MX = 1
    MY = 2
    MZ = 3
    IXX = 4
    IXY = 5
    IXZ = 6
    IYY = 7
    IYZ = 8
    IZZ = 9


N_INERTIAL = len(InertialIndex)
INERTIAL_NAMES = ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
INERTIAL_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)

# Position in the row-major 3 x 3 tensor of the six entries, in our order.
_ROWS, _COLS = np.triu_indices(3)


def tensor(six: npt.ArrayLike) -> FloatArray:
    """Symmetric 3 x 3 matrix from (Ixx, Ixy, Ixz, Iyy, Iyz, Izz)."""
    I = np.empty((3, 3))
    I[_ROWS, _COLS] = I[_COLS, _ROWS] = np.asarray(six, dtype=np.float64)
    return I


def six(I: FloatArray) -> FloatArray:
    """(Ixx, Ixy, Ixz, Iyy, Iyz, Izz) of a symmetric 3 x 3 matrix."""
    return np.asarray(I)[_ROWS, _COLS]


def skew(v: npt.ArrayLike) -> FloatArray:
    """The matrix with skew(v) @ w = v x w."""
    x, y, z = np.asarray(v, dtype=np.float64)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def from_centre_of_mass(mass: float, centre: npt.ArrayLike, inertia_at_centre: npt.ArrayLike) -> FloatArray:
    """Standard parameters from mass [kg], centre of mass [m] and the 3 x 3 inertia about it [kg m^2].

    Parallel-axis theorem: I = I_c - m skew(c)^2.
    """
    c = np.asarray(centre, dtype=np.float64)
    I = np.asarray(inertia_at_centre, dtype=np.float64) - mass * skew(c) @ skew(c)
    return np.concatenate([[mass], mass * c, six(I)])


def to_centre_of_mass(inertial: npt.ArrayLike) -> tuple[float, FloatArray, FloatArray]:
    """Mass, centre of mass, and inertia about it; the inverse of `from_centre_of_mass`. Needs a non-zero mass."""
    values = np.asarray(inertial, dtype=np.float64)
    mass = float(values[0])
    c = values[1:4] / mass
    return mass, c, tensor(values[4:]) + mass * skew(c) @ skew(c)


def pseudo_inertia(inertial: npt.ArrayLike) -> FloatArray:
    """The 4 x 4 pseudo-inertia [[Sigma, h], [h^T, m]], Sigma = tr(I)/2 1 - I; [Wensing2018] eq. 10.

    A body with these parameters exists if and only if it is positive semidefinite.
    """
    values = np.asarray(inertial, dtype=np.float64)
    I = tensor(values[4:])
    P = np.empty((4, 4))
    P[:3, :3] = 0.5 * np.trace(I) * np.eye(3) - I
    P[:3, 3] = P[3, :3] = values[1:4]
    P[3, 3] = values[0]
    return P


def from_pseudo_inertia(P: FloatArray) -> FloatArray:
    """The ten standard parameters of a 4 x 4 pseudo-inertia: I = tr(Sigma) 1 - Sigma."""
    Sigma = P[:3, :3]
    return np.concatenate([[P[3, 3]], P[:3, 3], six(np.trace(Sigma) * np.eye(3) - Sigma)])


def from_log_cholesky(theta: npt.ArrayLike) -> FloatArray:
    """Standard parameters of U U^T, U upper triangular with log diagonal; [Rucker2022]. Always a possible body.

    Args:
        theta: (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3), shape [10].
    """
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = np.asarray(theta, dtype=np.float64)
    U = np.array(
        [[np.exp(d1), s12, s13, t1], [0, np.exp(d2), s23, t2], [0, 0, np.exp(d3), t3], [0, 0, 0, 1.0]]
    ) * np.exp(alpha)
    return from_pseudo_inertia(U @ U.T)


def to_log_cholesky(inertial: npt.ArrayLike) -> FloatArray:
    """The inverse of `from_log_cholesky`; needs a positive definite pseudo-inertia."""
    P = pseudo_inertia(inertial)
    # Upper-triangular factor P = U U^T: Cholesky of the matrix with rows and columns reversed.
    U = np.linalg.cholesky(P[::-1, ::-1])[::-1, ::-1]
    scale = U[3, 3]
    V = U / scale
    return np.array([np.log(scale), *np.log(np.diag(V)[:3]), V[0, 1], V[1, 2], V[0, 2], V[0, 3], V[1, 3], V[2, 3]])


def transformed(inertial: npt.ArrayLike, T_new_old: FloatArray) -> FloatArray:
    """The same body expressed in another frame: P_new = T P_old T^T."""
    return from_pseudo_inertia(T_new_old @ pseudo_inertia(inertial) @ T_new_old.T)


_PINOCCHIO_ORDER = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)
"""Our index for each place of Pinocchio's (m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz); its own inverse."""


def from_pinocchio(values: npt.ArrayLike) -> FloatArray:
    """From the order of `pinocchio.Inertia.toDynamicParameters`."""
    return np.asarray(values, dtype=np.float64)[..., _PINOCCHIO_ORDER]


def to_pinocchio(inertial: npt.ArrayLike) -> FloatArray:
    """To the order of `pinocchio.Inertia.toDynamicParameters`; the last axis has length ten."""
    return np.asarray(inertial, dtype=np.float64)[..., _PINOCCHIO_ORDER]


# A point mass or a rod is a possible body with a singular pseudo-inertia; decimal text rounds it to either side of zero.
_INERTIAL_TOLERANCE = 1e-6
"""Relative to the trace: eigenvalues of the pseudo-inertia above minus this count as non-negative."""

_ROUND_OFF = 1e-14
"""Of the moments about the link's origin, from which those about the centre of mass are a difference."""


def inertial_problem(inertial: npt.ArrayLike) -> str | None:
    """What makes these ten numbers impossible for a body, in words; None when nothing does."""
    values = np.asarray(inertial, dtype=np.float64)
    if not np.isfinite(values).all():
        return "a parameter is not finite"
    mass = float(values[0])
    if mass < 0.0:
        return f"mass {mass:g} kg is negative"
    if mass == 0.0:
        return None if not values.any() else "mass is zero but other parameters are not"
    _, _, I = to_centre_of_mass(values)
    moments = np.linalg.eigvalsh(I)
    about_origin = float(np.abs(values[4:]).sum())
    slack = max(_INERTIAL_TOLERANCE * max(float(np.abs(moments).sum()), 1e-12), _ROUND_OFF * about_origin)
    if moments[0] < -slack:
        return f"principal moment of inertia {moments[0]:g} kg m^2 is negative"
    if moments[0] + moments[1] < moments[2] - slack:
        return (
            f"principal moments {moments[0]:g}, {moments[1]:g}, {moments[2]:g} kg m^2 "
            "break the triangle inequality (the two smaller must add up to the largest or more)"
        )
    return None
