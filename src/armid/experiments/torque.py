"""Joint torque as a source of rows: rigid links, rotor inertia, friction, offset, payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from armid.errors import InputError
from armid.kernels.rigid import rigid_rows
from armid.kernels.rows import Row
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import N_INERTIAL
from armid.parameters.space import PAYLOAD, ParameterSpace, parameter_space
from armid.recursion.scalars import Scalar, Scalars
from armid.robot.robot import JointKind, Robot


def space_of(robot: Robot, effects: Effects) -> ParameterSpace:
    """The standard parameters of this robot with these effects."""
    return parameter_space([joint.kind is JointKind.PRISMATIC for joint in robot.joints], effects)


@dataclass(frozen=True)
class TorqueRows:
    """Rows of `tau = A(q, qd, qdd) pi`, one channel per drive (two when both sides are measured).

    Inputs and torques are in drive coordinates; with a coupling C the rigid part is C^T tau_rigid(C q) while
    rotor inertia and friction act on the drives themselves.

    Args:
        robot: geometry, gravity, coupling.
        effects: what else is in the torque.
        loaded: whether this run carried the payload; only meaningful with a payload in the effects.
    """

    robot: Robot
    effects: Effects = Effects()
    loaded: bool = True

    def __post_init__(self) -> None:
        if self.effects.payload is PayloadRuns.LOADED and not self.loaded:
            raise InputError(
                "payload", "a run without payload among effects that say every run is loaded", "use 'both'"
            )

    @cached_property
    def space(self) -> ParameterSpace:
        return space_of(self.robot, self.effects)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.space.names

    @property
    def channels(self) -> tuple[str, ...]:
        names = self.robot.joint_names
        if self.effects.torques is TorqueSide.BOTH:
            return (*names, *(f"{name}:motor" for name in names))
        return names

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(f"{kind}{i + 1}" for kind in ("q", "qd", "qdd") for i in range(self.robot.n_joints))

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        n = self.robot.n_joints
        qd, qdd = inputs[n : 2 * n], inputs[2 * n : 3 * n]
        match self.effects.torques:
            case TorqueSide.DIFFERENCE:
                return [self.drive_row(i, qd, qdd, "motor_", scalars) for i in range(n)]
            case TorqueSide.BOTH:
                link = [
                    rigid | self.friction_row(i, qd, "", scalars)
                    for i, rigid in enumerate(self.rigid_rows(inputs, scalars))
                ]
                motor = [row | self.drive_row(i, qd, qdd, "motor_", scalars) for i, row in enumerate(link)]
                return link + motor
            case _:
                return [
                    rigid | self.drive_row(i, qd, qdd, "", scalars)
                    for i, rigid in enumerate(self.rigid_rows(inputs, scalars))
                ]

    def drive_row(self, i: int, qd: Sequence[Scalar], qdd: Sequence[Scalar], side: str, scalars: Scalars) -> Row:
        """Rotor inertia and friction of drive i."""
        name = f"joint{i + 1}.rotor_inertia"
        rotor: Row = {self.space.index(name): qdd[i]} if name in self.space else {}
        return rotor | self.friction_row(i, qd, side, scalars)

    def friction_row(self, i: int, qd: Sequence[Scalar], side: str, scalars: Scalars) -> Row:
        """Viscous, Coulomb and offset of drive i, as far as the effects have them."""
        row: Row = {}
        for name in self.effects.friction:
            match name:
                case "viscous":
                    value = qd[i]
                case "coulomb":
                    value = scalars.sign(qd[i])
                case _:
                    value = scalars.constant(1.0)
            row[self.space.index(f"joint{i + 1}.{side}{name}")] = value
        return row

    def rigid_rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        """Inertial columns of every drive, payload included."""
        n = self.robot.n_joints
        starts = [self.space.index(f"link{i + 1}.mass") for i in range(n)]
        carries = self.effects.payload is not PayloadRuns.NONE and self.loaded
        payload = self.space.index(f"{PAYLOAD}.mass") if carries else None
        out: list[Row] = []
        for rigid in rigid_rows(self.robot, inputs, scalars):
            row = {starts[column // N_INERTIAL] + column % N_INERTIAL: value for column, value in rigid.items()}
            if payload is not None:
                # A payload is felt exactly as the last link is.
                last = (n - 1) * N_INERTIAL
                row |= {payload + column - last: value for column, value in rigid.items() if column >= last}
            out.append(row)
        return out
