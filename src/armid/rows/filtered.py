"""Torque rows as a low-pass left them.

Torque is low-passed before it is compared with the model. Smooth rows are hardly changed by that filter, but the jump of
Coulomb friction is: it must pass the same filter, or every reversal leaves a residual that other parameters try to explain
(parallel filtering, [Gautier1997]).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armid.kernels.source import Row
from armid.parameters.space import ParameterSpace
from armid.recursion.scalars import Scalar, Scalars
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows


@dataclass(frozen=True)
class FilteredTorqueRows:
    """Torque rows whose Coulomb columns take the filtered sign of the velocity as further inputs.

    Args:
        torque: the rows otherwise.
    """

    torque: TorqueRows

    @property
    def robot(self) -> Robot:
        return self.torque.robot

    @property
    def space(self) -> ParameterSpace:
        return self.torque.space

    @property
    def columns(self) -> tuple[str, ...]:
        return self.torque.columns

    @property
    def channels(self) -> tuple[str, ...]:
        return self.torque.channels

    @property
    def inputs(self) -> tuple[str, ...]:
        n = self.robot.n_joints
        motion, shapes = self.torque.inputs[: 3 * n], self.torque.inputs[3 * n :]
        return (*motion, *(f"sign{i + 1}" for i in range(n)), *shapes)

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        n = self.robot.n_joints
        rows = []
        for k, row in enumerate(self.torque.rows([*inputs[: 3 * n], *inputs[4 * n :]], scalars)):
            i = k % n
            signs = {
                self.space.index(name): inputs[3 * n + i]
                for name in (f"joint{i + 1}.coulomb", f"joint{i + 1}.motor_coulomb")
                if name in self.space and self.space.index(name) in row
            }
            rows.append({**row, **signs})
        return rows
