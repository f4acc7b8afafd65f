"""Axis inertias as a source of rows: what a frequency response of one axis at a time shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from armid.experiments.inertia_matrix import inertia_matrix_rows
from armid.experiments.torque import space_of
from armid.kernels.rows import Row
from armid.parameters.effects import Effects
from armid.parameters.space import ParameterSpace
from armid.recursion.scalars import Scalar, Scalars
from armid.robot.robot import Robot


@dataclass(frozen=True)
class AxisInertiaRows:
    """Rows of `J_k(q) = M_kk(q) + rotor_inertia_k`, one channel per drive; seed 002 eq. 23.

    The rotor always counts: a response at the motor cannot be had without it.

    Args:
        robot: geometry and coupling.
        effects: decides the rest of the parameter vector.
        loaded: whether the payload was there; only meaningful with a payload among the effects.
    """

    robot: Robot
    effects: Effects = Effects()
    loaded: bool = True

    @cached_property
    def space(self) -> ParameterSpace:
        return space_of(self.robot, replace(self.effects, rotor_inertia=True))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.space.names

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(f"{name}:inertia" for name in self.robot.joint_names)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(f"q{i + 1}" for i in range(self.robot.n_joints))

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        M = inertia_matrix_rows(self.robot, self.space, inputs, scalars, loaded=self.loaded)
        return [M[k][k] for k in range(self.robot.n_joints)]
