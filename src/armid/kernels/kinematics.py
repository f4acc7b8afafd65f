"""Batch kinematics on arrays [n_samples, n_joints], in drive coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.dynamics import states
from armid.kernels.functions import over_samples
from armid.recursion import kinematics as recursion
from armid.recursion.kinematics import elements_to
from armid.recursion.motion import geometric_coordinates
from armid.recursion.placement import Placement
from armid.recursion.scalars import Scalar, Scalars
from armid.robot.elementary import Elementary
from armid.robot.robot import Frame, Robot

Elements = Sequence[tuple[Elementary, int | None]]
"""A chain of elementary transforms, each with the joint whose variable it uses, or None."""


@dataclass(frozen=True)
class _Pose:
    """Rotation and position at the end of a chain."""

    robot: Robot
    elements: tuple[tuple[Elementary, int | None], ...]

    def __call__(self, inputs: Sequence[Scalar], shared: Sequence[Scalar], scalars: Scalars) -> Sequence[Scalar]:
        q = geometric_coordinates(self.robot, inputs, scalars)
        return _entries(recursion.chain_pose(self.elements, q, scalars))


@dataclass(frozen=True)
class _Twists(_Pose):
    """The same and the twist of the end per unit of each wanted element."""

    wanted: tuple[int, ...]

    def __call__(self, inputs: Sequence[Scalar], shared: Sequence[Scalar], scalars: Scalars) -> Sequence[Scalar]:
        q = geometric_coordinates(self.robot, inputs, scalars)
        T, twists = recursion.element_twists(self.elements, q, scalars)
        columns = [value for k in self.wanted for value in (*twists[k].linear, *twists[k].angular)]
        return [*_entries(T), *columns]


def _entries(T: Placement) -> list[Scalar]:
    """Rotation row by row, then position."""
    return [*(value for row in T.R for value in row), *T.p]


def _resolved(robot: Robot, frame: str | Frame | None) -> Frame:
    return frame if isinstance(frame, Frame) else robot.frame(frame)


def forward_kinematics(robot: Robot, q: npt.ArrayLike, frame: str | Frame | None = None) -> FloatArray:
    """Where a frame is: T_base_frame, the product of the chain's elementary transforms.

    Args:
        robot: the arm.
        q: drive positions [rad or m], shape [n_samples, n_joints]; one sample as [n_joints].
        frame: a frame or its name; the tip by default.

    Returns:
        Homogeneous transforms, lengths in m, shape [n_samples, 4, 4].
    """
    body = _Pose(robot, tuple(elements_to(robot, _resolved(robot, frame))))
    return _homogeneous(over_samples(body, states(robot, q=q), np.empty(0)))


def jacobian(robot: Robot, q: npt.ArrayLike, frame: str | Frame | None = None) -> FloatArray:
    """Geometric Jacobian: `J qd` is the frame's twist, the derivative of `forward_kinematics` along qd.

    Args:
        robot: the arm.
        q: drive positions [rad or m], shape [n_samples, n_joints]; one sample as [n_joints].
        frame: a frame or its name; the tip by default.

    Returns:
        Rows vx vy vz wx wy wz of the frame's origin in base axes [m or rad per unit of q], shape [n_samples, 6, n_joints].
    """
    elements = elements_to(robot, _resolved(robot, frame))
    moving = [k for k, (_, joint) in enumerate(elements) if joint is not None]
    _, columns = parametric_jacobian(robot, q, elements, wanted=moving)
    J = np.zeros((len(columns), 6, robot.n_joints))
    for place, k in enumerate(moving):
        element, joint = elements[k]
        J[:, :, joint] = element.sign * columns[:, :, place]
    return J if robot.coupling is None else J @ robot.coupling


def parametric_jacobian(
    robot: Robot, q: npt.ArrayLike, elements: Elements, *, wanted: Sequence[int] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Pose at the end of a chain of elementary transforms and its derivative by the values in the chain.

    Args:
        robot: for the number of joints and the coupling.
        q: drive positions, shape [n_samples, n_joints].
        elements: the chain (`recursion.kinematics.elements_to` gives the robot's own; base, tool and error transforms
            are inserted where they act).
        wanted: derivative by these elements only; by all of them when not given.

    Returns:
        T, shape [n_samples, 4, 4], and J, shape [n_samples, 6, n_wanted]: rows vx vy vz wx wy wz in base axes.
    """
    chosen = tuple(range(len(elements)) if wanted is None else wanted)
    values = over_samples(_Twists(robot, tuple(elements), chosen), states(robot, q=q), np.empty(0))
    J = values[:, 12:].reshape(len(values), len(chosen), 6).transpose(0, 2, 1)
    return _homogeneous(values), J


def _homogeneous(values: FloatArray) -> FloatArray:
    """4 x 4 matrices from the twelve columns that `_entries` lists."""
    out = np.zeros((len(values), 4, 4))
    out[:, :3, :3] = values[:, :9].reshape(-1, 3, 3)
    out[:, :3, 3] = values[:, 9:12]
    out[:, 3, 3] = 1.0
    return out
