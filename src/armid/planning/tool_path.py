"""Lines and arcs of the tool as joint paths: inverse kinematics of all points at once, by damped least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only, samples
from armid.errors import InputError
from armid.kernels.kinematics import forward_kinematics, jacobian
from armid.kinematics.rotations import rotation_exp, rotation_log
from armid.planning.errors import UnreachableError
from armid.planning.path import SplinePath
from armid.robot.robot import Robot

_POINTS = 160
"""Waypoints of the joint path; the spline between them stays within micrometres of the tool path for arcs of a metre."""

_STAGES = 40
"""Steps from the start to each pose; each step is small enough for one or two Newton iterations."""

_CORRECTIONS = 3
_POLISH = 12

_DAMPING = 1e-3
"""Of the pseudo-inverse [m or rad per rad]: small against the singular values of any pose worth driving through."""

_REACHED = 1e-7
"""[m, rad] Largest pose error of a point that counts as reached."""


class ToolCurve(Protocol):
    """Poses of a frame as a function of a parameter from 0 to 1."""

    def poses(self, share: npt.ArrayLike) -> FloatArray:
        """T_base_frame, shape [n, 4, 4]."""


@dataclass(frozen=True, eq=False)
class ToolLine:
    """A straight line; orientation turns at a constant rate from the first pose to the last.

    Args:
        start, end: T_base_frame, shape [4, 4].
    """

    start: FloatArray
    end: FloatArray

    def poses(self, share: npt.ArrayLike) -> FloatArray:
        s = np.atleast_1d(np.asarray(share, dtype=np.float64))
        out = _turn(self.start, self.end, s)
        out[:, :3, 3] = self.start[:3, 3] + s[:, np.newaxis] * (self.end[:3, 3] - self.start[:3, 3])
        return out


@dataclass(frozen=True, eq=False)
class Arc:
    """A circular arc through three points; orientation turns at a constant rate from the first pose to the last.

    Args:
        start, end: T_base_frame, shape [4, 4].
        via: a point between them [m], shape [3].
    """

    start: FloatArray
    via: FloatArray
    end: FloatArray

    def poses(self, share: npt.ArrayLike) -> FloatArray:
        s = np.atleast_1d(np.asarray(share, dtype=np.float64))
        centre, first, normal, angle = _circle(self.start[:3, 3], self.via, self.end[:3, 3])
        out = _turn(self.start, self.end, s)
        side = np.cross(normal, first)
        out[:, :3, 3] = centre + np.outer(np.cos(s * angle), first) + np.outer(np.sin(s * angle), side)
        return out


def _turn(start: FloatArray, end: FloatArray, s: FloatArray) -> FloatArray:
    """Poses whose rotation goes from one to the other about one axis; positions are left to the caller."""
    step = rotation_log((end[:3, :3] @ start[:3, :3].T)[np.newaxis])[0]
    out = np.tile(np.eye(4), (len(s), 1, 1))
    out[:, :3, :3] = rotation_exp(np.outer(s, step)) @ start[:3, :3]
    return out


def _circle(a: FloatArray, b: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Centre, vector from it to a, unit normal, and the angle from a over b to c.

    Raises:
        InputError: the points lie on a line.
    """
    u, v = b - a, c - a
    w = np.cross(u, v)
    size = float(np.linalg.norm(w))
    if size < 1e-9 * max(float(u @ u), float(v @ v), 1e-12):
        raise InputError("arc", "start, via and end lie on a line", "give a via point off the line, or use a line")
    centre = a + (np.cross(w, u) * float(v @ v) + np.cross(v, w) * float(u @ u)) / (2.0 * size**2)
    normal = w / size
    first, last = a - centre, c - centre
    angle = float(np.arctan2(normal @ np.cross(first, last), first @ last)) % (2.0 * np.pi)
    return centre, first, normal, angle


def tool_path(
    robot: Robot,
    start: npt.ArrayLike,
    curve: ToolCurve,
    *,
    frame: str | None = None,
    orientation: bool = True,
    points: int = _POINTS,
) -> SplinePath:
    """The joint path whose frame follows a curve.

    All points are solved side by side: each is led along the curve from the start in small steps, so that every
    point lies on the branch of solutions the arm starts on, and neighbouring points stay neighbours.

    Args:
        robot: the arm.
        start: drive positions at the curve's first pose [rad or m], shape [n_joints].
        curve: poses.
        frame: that follows it; the tip by default.
        orientation: whether the frame also turns with the curve; otherwise only its origin follows it.
        points: waypoints of the joint path.

    Raises:
        UnreachableError: a pose the arm cannot take, with its place on the curve.
    """
    q0 = samples("start", start, robot.n_joints)
    share = np.linspace(0.0, 1.0, points)
    rows = 6 if orientation else 3
    q = np.tile(q0, (points, 1))
    for stage in range(1, _STAGES + 1):
        goal = curve.poses(share * stage / _STAGES)
        for _ in range(_CORRECTIONS):
            q = q + _correction(robot, q, goal, frame, rows, _DAMPING)
    goal = curve.poses(share)
    for _ in range(_POLISH):
        q = q + _correction(robot, q, goal, frame, rows, 0.0)
    missed = np.abs(_pose_error(forward_kinematics(robot, q, frame), goal)[:, :rows]).max(axis=1)
    bad = ~(missed < _REACHED)
    if bad.any():
        k = int(np.argmax(bad))
        raise UnreachableError(
            f"{100 * share[k]:.0f} % of the tool path",
            f"no joint positions reach the pose (closest {missed[k]:.2g})",
            "move the path into the arm's reach, or start from another posture",
        )
    return SplinePath(robot.joint_names, read_only(q), straight_ends=False)


def _correction(
    robot: Robot, q: FloatArray, goal: FloatArray, frame: str | None, rows: int, damping: float
) -> FloatArray:
    """One step of damped least squares for every point, shape [n, n_joints]; 3 rows for position alone."""
    error = _pose_error(forward_kinematics(robot, q, frame), goal)[:, :rows]
    J = jacobian(robot, q, frame)[:, :rows]
    if damping == 0.0:
        return np.asarray(np.einsum("nij,nj->ni", np.linalg.pinv(J, rcond=1e-6), error))
    normal = J @ J.transpose(0, 2, 1) + damping**2 * np.eye(rows)
    weights = np.linalg.solve(normal, error[..., np.newaxis])
    return np.asarray((J.transpose(0, 2, 1) @ weights)[..., 0])


def _pose_error(T: FloatArray, goal: FloatArray) -> FloatArray:
    """Translation and rotation vector from poses T to the goals, in base axes, shape [n, 6]."""
    turn = rotation_log(goal[:, :3, :3] @ T[:, :3, :3].transpose(0, 2, 1))
    return np.hstack([goal[:, :3, 3] - T[:, :3, 3], turn])
