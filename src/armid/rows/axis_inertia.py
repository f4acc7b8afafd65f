"""Axis inertias as a source of rows: what a frequency response of one axis at a time shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.kernels.evaluate import evaluate_rows
from armid.kernels.source import Row
from armid.parameters.space import ParameterSpace
from armid.recursion.scalars import Scalar, Scalars
from armid.robot.described import described_values
from armid.robot.robot import Robot
from armid.rows.at_pose import AtPose
from armid.rows.inertia_matrix import inertia_matrix_rows
from armid.rows.torque import space_of


@dataclass(frozen=True)
class AxisInertiaRows(AtPose):
    """Rows of `J_k(q) = M_kk(q) + rotor_inertia_k`, one channel per drive; [RWTH2021] eq. 23.

    The rotor always counts: a response at the motor cannot be had without it.
    """

    @cached_property
    def space(self) -> ParameterSpace:
        return space_of(self.robot, replace(self.effects, rotor_inertia=True))

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(f"{name}:inertia" for name in self.robot.joint_names)

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        M = inertia_matrix_rows(self.robot, self.space, inputs, scalars, loaded=self.loaded)
        return [M[k][k] for k in range(self.robot.n_joints)]


def described_inertia(robot: Robot, poses: FloatArray) -> FloatArray:
    """Axis inertias of the described arm, shape [n_poses, n_axes]."""
    if not robot.inertial.any():
        raise InputError(
            robot.name, "no masses in its description", "errors of prediction are relative to them; use --method best"
        )
    source = AxisInertiaRows(robot)
    return np.asarray(evaluate_rows(source, poses) @ described_values(robot, source.space))
