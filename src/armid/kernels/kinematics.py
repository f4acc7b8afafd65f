"""Batch kinematics on arrays [n_samples, n_joints], in drive coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.dynamics import columns_of
from armid.recursion import kinematics as recursion
from armid.recursion.motion import Twist, geometric_coordinates
from armid.recursion.placement import Placement
from armid.recursion.scalars import ARRAYS
from armid.robot.elementary import Elementary
from armid.robot.robot import Frame, Robot


def resolved(robot: Robot, frame: str | Frame | None) -> Frame:
    return frame if isinstance(frame, Frame) else robot.frame(frame)


def forward_kinematics(robot: Robot, q: npt.ArrayLike, frame: str | Frame | None = None) -> FloatArray:
    """T_base_frame, shape [n_samples, 4, 4]; the tip frame by default."""
    x = columns_of(robot, "q", q)
    T = recursion.pose(robot, geometric_coordinates(robot, x, ARRAYS), resolved(robot, frame), ARRAYS)
    return homogeneous(T, len(x[0]))


def jacobian(robot: Robot, q: npt.ArrayLike, frame: str | Frame | None = None) -> FloatArray:
    """Geometric Jacobian [n_samples, 6, n_joints]: rows vx vy vz wx wy wz of the frame's origin, in base axes."""
    x = columns_of(robot, "q", q)
    twists = recursion.jacobian(robot, geometric_coordinates(robot, x, ARRAYS), resolved(robot, frame), ARRAYS)
    J = twist_columns(twists, len(x[0]))
    return J if robot.coupling is None else J @ robot.coupling


def parametric_jacobian(
    robot: Robot, q: npt.ArrayLike, elements: Sequence[tuple[Elementary, int | None]]
) -> tuple[FloatArray, FloatArray]:
    """Pose at the end of a chain of elementary transforms and its derivative by every value in the chain.

    Args:
        robot: for the number of joints and the coupling.
        q: drive positions, shape [n_samples, n_joints].
        elements: the chain, each with the joint whose variable it uses or None (`recursion.kinematics.elements_to`
            gives the robot's own; base, tool and error transforms are inserted where they act).

    Returns:
        T, shape [n_samples, 4, 4], and J, shape [n_samples, 6, n_elements]: rows vx vy vz wx wy wz in base axes.
    """
    x = columns_of(robot, "q", q)
    T, twists = recursion.element_twists(elements, geometric_coordinates(robot, x, ARRAYS), ARRAYS)
    return homogeneous(T, len(x[0])), twist_columns(twists, len(x[0]))


def homogeneous(T: Placement, count: int) -> FloatArray:
    out = np.zeros((count, 4, 4))
    out[:, 3, 3] = 1.0
    for i in range(3):
        out[:, i, 3] = T.p[i]
        for j in range(3):
            out[:, i, j] = T.R[i][j]
    return out


def twist_columns(twists: Sequence[Twist | None], count: int) -> FloatArray:
    J = np.zeros((count, 6, len(twists)))
    for k, twist in enumerate(twists):
        if twist is not None:
            for i in range(3):
                J[:, i, k] = twist.linear[i]
                J[:, 3 + i, k] = twist.angular[i]
    return J
