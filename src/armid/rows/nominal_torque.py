"""Torque of the nominal arm as a source with a single column, so that it is compiled and differentiated like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.kernels.source import Row
from armid.parameters.inertial import N_INERTIAL
from armid.recursion.dynamics import inverse_dynamics
from armid.recursion.motion import drive_coordinates, geometric_coordinates
from armid.recursion.scalars import Scalar, Scalars
from armid.robot.robot import Robot


@dataclass(frozen=True)
class NominalTorque:
    """`tau(q, qd, qdd)` of the robot's own parameters and drives, one channel per drive, one column.

    Args:
        robot: with inertial parameters, friction and rotor inertia.
        coulomb: whether Coulomb friction counts; a certificate treats its jumps separately.
    """

    robot: Robot
    coulomb: bool = True

    @property
    def channels(self) -> tuple[str, ...]:
        return self.robot.joint_names

    @property
    def columns(self) -> tuple[str, ...]:
        return ("nominal",)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(f"{kind}{i + 1}" for kind in ("q", "qd", "qdd") for i in range(self.robot.n_joints))

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        n, robot = self.robot.n_joints, self.robot
        q, qd, qdd = (inputs[k * n : (k + 1) * n] for k in range(3))
        x, v, a = (geometric_coordinates(robot, values, scalars) for values in (q, qd, qdd))
        pi = [[scalars.constant(float(x)) for x in row] for row in np.reshape(robot.inertial, (n, N_INERTIAL))]
        rigid = drive_coordinates(robot, inverse_dynamics(robot, x, v, a, pi, scalars), scalars)
        return [{0: rigid[i] + self.drive(i, qd[i], qdd[i], scalars)} for i in range(n)]

    def drive(self, i: int, qd: Scalar, qdd: Scalar, scalars: Scalars) -> Scalar:
        """Rotor inertia, friction and offset of drive i."""
        own = self.robot.joints[i].drive
        total = scalars.constant(own.offset)
        for value, factor in ((own.rotor_inertia, qdd), (own.viscous, qd)):
            if value != 0.0:
                total = total + scalars.constant(value) * factor
        if self.coulomb and own.coulomb != 0.0:
            total = total + scalars.constant(own.coulomb) * scalars.sign(qd)
        return total
