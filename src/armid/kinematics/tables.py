"""Denavit-Hartenberg tables that hold the whole arm, from its base frame to its tip, also when axes are not quite parallel.

    modified   T_base_tip = Rz(theta_0) Tz(d_0)  prod_i  Rx(alpha_i) Tx(a_i) Ry(beta_i) Rz(theta_i + q_i) Tz(d_i)  (row i)
    standard   T_base_tip = prod_i  Rz(theta_i + q_i) Tz(d_i) Tx(a_i) Rx(alpha_i) Ry(beta_i)

Rows are `base`, the joints, `tip`; the position of a prismatic joint adds to d instead. The tip's z axis counts as one
axis more, as in [Kolyubin2017] eq. 3b. beta is zero unless consecutive axes are nearly parallel, where the common normal
of the plain tables runs away by metres ([Hayati1985]); x then points to where the next axis meets the plane across this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.kinematics.build import PARALLEL
from armid.kinematics.conventions import (
    MODIFIED,
    STANDARD,
    clean,
    clean_angle,
    foot,
    frame_of,
    is_in_form,
    joint_axes,
    link_frames,
    perpendicular,
)
from armid.robot.robot import Robot

COLUMNS = ("alpha", "a", "beta", "theta", "d")
BASE, TIP = "base", "tip"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One line: alpha [rad], a [m], beta [rad], theta [rad], d [m] at joint position zero."""

    name: str
    alpha: float = 0.0
    a: float = 0.0
    beta: float = 0.0
    theta: float = 0.0
    d: float = 0.0


def denavit_tables(
    nominal: Robot, calibrated: Robot, *, modified: bool
) -> tuple[tuple[TableRow, ...], tuple[TableRow, ...]]:
    """The tables of an arm before and after calibration, in the same frames up to the calibration itself.

    Directions of x axes and turns of angles are those of the description where it is in Denavit-Hartenberg form, so that
    its own numbers come back, and the calibrated table differs by the corrections alone.

    Args:
        nominal: the arm as described.
        calibrated: the same with other geometry.
        modified: Khalil-Kleinfinger, or the standard table.
    """
    own = is_in_form(nominal, MODIFIED) or is_in_form(nominal, STANDARD)
    described = [T[:3, 0] for T in link_frames(nominal)] if own else None
    frames = _table_frames(nominal, described)
    before = _table_rows(nominal, frames)
    after = _table_rows(calibrated, _table_frames(calibrated, [T[:3, 0] for T in frames]))
    after = tuple(near(row, to) for row, to in zip(after, before, strict=True))
    return (before, after) if modified else (_standard(before), _standard(after))


def _table_frames(robot: Robot, directions: Sequence[FloatArray] | None) -> list[FloatArray]:
    """Frames 0..n at joint position zero and the tip's own, in base coordinates.

    Args:
        robot: the arm.
        directions: of the x axes of frames 0..n, up to the sign of each; the usual ones when None.
    """
    last = robot.tip
    T_base_tip = link_frames(robot)[last.link] @ last.T_link_frame
    axes = [*joint_axes(robot), (T_base_tip[:3, 2], T_base_tip[:3, 3])]
    frames: list[FloatArray] = []
    for i, (z, point) in enumerate(axes[:-1]):
        before = frames[-1] if frames else np.eye(4)
        wanted = before[:3, 0] if directions is None else directions[i]
        x, origin = _x_axis(z, point, *axes[i + 1], before[:3, 3], wanted)
        if directions is not None and x @ wanted < 0.0:
            x = -x
        frames.append(frame_of(x, z, origin))
    return [*frames, T_base_tip]


_MEETING = 1e-9
"""[m] Axes closer than this meet, and their common normal has no direction of its own."""


def _x_axis(
    z: FloatArray, p: FloatArray, z_next: FloatArray, p_next: FloatArray, before: FloatArray, wanted: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Direction of x and origin of the frame on an axis, from the axis after it.

    Args:
        z, p: direction and a point of the axis.
        z_next, p_next: of the next one.
        before: origin of the frame before.
        wanted: direction to take where the axes leave it open.
    """
    n = np.cross(z, z_next)
    if np.linalg.norm(n) < PARALLEL:
        origin = foot(z, p, before)
        across = p_next + ((origin - p_next) @ z) / (z_next @ z) * z_next - origin
        return perpendicular(across if np.linalg.norm(across) > _MEETING else wanted, z, wanted), origin
    c, apart = z @ z_next, p_next - p
    # Feet of the common normal: minimise the distance of p + s z and p_next + t z_next.
    s = (apart @ z - c * (apart @ z_next)) / (1.0 - c * c)
    t = (c * (apart @ z) - apart @ z_next) / (1.0 - c * c)
    origin = p + s * z
    across = p_next + t * z_next - origin
    # The normal's direction from the axes' own directions: a distance near round-off has none.
    return (n if np.linalg.norm(across) <= _MEETING or across @ n >= 0.0 else -n) / np.linalg.norm(n), origin


def _table_rows(robot: Robot, frames: Sequence[FloatArray]) -> tuple[TableRow, ...]:
    """Modified rows between consecutive frames."""
    chain = [np.eye(4), *frames]
    names = (BASE, *robot.joint_names, TIP)
    return tuple(
        _row_between(name, np.linalg.inv(F) @ G) for name, F, G in zip(names, chain[:-1], chain[1:], strict=True)
    )


def _row_between(name: str, T: FloatArray) -> TableRow:
    """The numbers of `T = Rx(alpha) Tx(a) Ry(beta) Rz(theta) Tz(d)`."""
    alpha, theta = float(np.arctan2(-T[1, 2], T[2, 2])), float(np.arctan2(-T[0, 1], T[0, 0]))
    s = float(np.clip(T[0, 2], -1.0, 1.0))  # sin(beta); p_x = a + d s and p . z = a s + d
    along = float(T[:3, 3] @ T[:3, 2])
    a = (float(T[0, 3]) - s * along) / (1.0 - s * s)
    beta = clean(float(np.arcsin(s)))
    return TableRow(
        name=name, alpha=clean_angle(alpha), a=clean(a), beta=beta, theta=clean_angle(theta), d=clean(along - a * s)
    )


def frame_rows(name: str, T: FloatArray, *, modified: bool) -> tuple[TableRow, TableRow]:
    """Two rows whose product is a rigid transform: any frame of a sensor or a tool fits into two lines of either table.

    Args:
        name: of the frame.
        T: homogeneous, shape [4, 4].
        modified: Khalil-Kleinfinger, or the standard table.
    """
    start, z = np.zeros(3), np.array([0.0, 0.0, 1.0])
    x, origin = _x_axis(z, start, T[:3, 2], T[:3, 3], start, np.array([1.0, 0.0, 0.0]))
    F = frame_of(x, z, origin)
    rows = _row_between(f"{name} 1", F), _row_between(f"{name} 2", np.linalg.inv(F) @ T)
    first, second = rows if modified else _standard(rows)
    return first, second


def near(row: TableRow, to: TableRow) -> TableRow:
    """The same row with angles by whole turns nearest to another's."""

    def turned(value: float, reference: float) -> float:
        return value + 2.0 * np.pi * round((reference - value) / (2.0 * np.pi))

    return replace(row, alpha=turned(row.alpha, to.alpha), theta=turned(row.theta, to.theta))


def _standard(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """Modified rows regrouped: each keeps theta and d and takes alpha, a and beta of the next."""
    following = [*rows[1:], TableRow(name="")]
    return tuple(
        replace(row, alpha=after.alpha, a=after.a, beta=after.beta) for row, after in zip(rows, following, strict=True)
    )
