"""A load as the controllers of three makers want it.

All three take the centre of mass in the flange frame and the inertia about the centre of mass: KUKA as principal moments with
the orientation of their axes (KR IONTEC assembly instructions, "load center of gravity": A about Z, then B about Y', then C
about X''), Universal Robots as six elements in flange axes (script manual, `set_target_payload`, which replaces the deprecated
`set_payload`), Franka as a matrix in flange axes, column-major (`franka::RobotState::I_load`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armid.arrays import FloatArray

if TYPE_CHECKING:
    from armid.payload.payload import Payload


def kuka_load_data(payload: Payload) -> str:
    """KUKA `$LOAD`: mass [kg], centre X Y Z [mm] with the angles A B C [deg] of the principal axes, moments JX JY JZ [kg m^2]."""
    moments, axes = _principal_axes(_clean(payload.inertia))
    x, y, z = 1e3 * payload.centre_of_mass
    # KUKA turns about z, then the new y, then the new x: R = Rz(A) Ry(B) Rx(C).
    a = np.rad2deg(np.arctan2(axes[1, 0], axes[0, 0]))
    b = np.rad2deg(np.arctan2(-axes[2, 0], np.hypot(axes[0, 0], axes[1, 0])))
    c = np.rad2deg(np.arctan2(axes[2, 1], axes[2, 2]))
    # Adding zero after rounding turns -0.0 into 0.0.
    numbers = [round(float(v), digits) + 0.0 for v, digits in zip((x, y, z, a, b, c), (1, 1, 1, 2, 2, 2), strict=True)]
    centre = "X {:.1f},Y {:.1f},Z {:.1f},A {:.2f},B {:.2f},C {:.2f}".format(*numbers)
    inertia = ",".join(f"{name} {value:.5f}" for name, value in zip(("X", "Y", "Z"), moments, strict=True))
    return f"{{M {payload.mass:.3f},CM {{{centre}}},J {{{inertia}}}}}"


def ur_set_target_payload(payload: Payload) -> str:
    """URScript `set_target_payload(m, cog, inertia)`: kg, m, and (Ixx, Iyy, Izz, Ixy, Ixz, Iyz) about the centre."""
    I = _clean(payload.inertia)
    six = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
    return f"set_target_payload({payload.mass:.4f}, {_listed(payload.centre_of_mass)}, {_listed(six)})"


def franka_set_load(payload: Payload) -> str:
    """Libfranka `setLoad(mass, F_x_Cload, load_inertia)`: kg, m, and the inertia about the centre, column by column."""
    return f"setLoad({payload.mass:.4f}, {{{_bare(payload.centre_of_mass)}}}, {{{_bare(_clean(payload.inertia).T.ravel())}}})"


def _principal_axes(I: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments and a right-handed rotation to their axes, each axis as near to the frame's as can be."""
    moments, axes = np.linalg.eigh(I)
    order, left = [], [0, 1, 2]
    for row in range(3):
        best = max(left, key=lambda k: abs(axes[row, k]))
        order.append(best)
        left.remove(best)
    axes = axes[:, order] * np.where(np.diag(axes[:, order]) < 0.0, -1.0, 1.0)
    if np.linalg.det(axes) < 0.0:
        axes[:, 2] = -axes[:, 2]
    return moments[order], axes


def _clean(I: FloatArray) -> FloatArray:
    """Without elements that are round-off: equal moments would otherwise get the principal axes of that."""
    return np.where(np.abs(I) > 1e-9 * np.abs(I).max(), I, 0.0)


def _listed(values: np.ndarray | tuple[float, ...]) -> str:
    return f"[{_bare(values)}]"


def _bare(values: np.ndarray | tuple[float, ...]) -> str:
    return ", ".join(f"{float(value) + 0.0:.6g}" for value in values)
