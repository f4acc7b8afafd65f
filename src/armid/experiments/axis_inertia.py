"""Axis inertias as a source of rows: what a frequency response of one axis at a time shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from armid.experiments.at_pose import AtPose
from armid.experiments.inertia_matrix import inertia_matrix_rows
from armid.experiments.torque import space_of
from armid.kernels.rows import Row
from armid.parameters.space import ParameterSpace
from armid.recursion.scalars import Scalar, Scalars


@dataclass(frozen=True)
class AxisInertiaRows(AtPose):
    """Rows of `J_k(q) = M_kk(q) + rotor_inertia_k`, one channel per drive; seed 002 eq. 23.

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
