"""Joint torque as a source of rows: rigid links, rotor inertia, friction, offset, payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from armid.errors import InputError
from armid.kernels.rigid import rigid_rows
from armid.kernels.source import Row
from armid.parameters.effects import FRICTION_SHAPES, Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import N_INERTIAL
from armid.parameters.space import ROTOR_INERTIA, OwnerKind, ParameterSpace, parameter_space
from armid.recursion.scalars import Scalar, Scalars
from armid.robot.robot import JointKind, Robot


def space_of(robot: Robot, effects: Effects) -> ParameterSpace:
    """The standard parameters of this robot with these effects.

    Raises:
        InputError: friction of coupled joints on an arm that has none.
    """
    shared = _coupled_joints(robot)
    if effects.coupled and not any(shared):
        raise InputError("friction", f"coupled, but {robot.name} has no joint that several drives move", "leave it out")
    return parameter_space([joint.kind is JointKind.PRISMATIC for joint in robot.joints], effects, coupled=shared)


def _coupled_joints(robot: Robot) -> tuple[bool, ...]:
    """Whether each joint is moved by several drives together."""
    if robot.coupling is None:
        return (False,) * robot.n_joints
    return tuple(int((row != 0.0).sum()) > 1 for row in robot.coupling)


@dataclass(frozen=True, slots=True)
class ShapeColumn:
    """One column of friction beyond the linear one, whose entries come in as an input.

    Args:
        column: in the parameter vector.
        joint: 0-based.
        quantity: `stribeck`, ...
        entries: channels it stands in, each with the factor it enters with.
    """

    column: int
    joint: int
    quantity: str
    entries: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class TorqueRows:
    """Rows of `tau = A(q, qd, qdd) pi`, one channel per drive (two when both sides are measured).

    Inputs and torques are in drive coordinates; with a coupling C the rigid part is C^T tau_rigid(C q) while
    rotor inertia and friction act on the drives themselves.

    Shapes of friction other than the linear ones depend on velocity scales, on the load, on the past: each is a further
    input per joint, computed where these are known (`estimation.recording`).

    Args:
        robot: geometry, gravity, coupling.
        effects: what else is in the torque.
        loaded: whether this run carried the payload; only meaningful with a payload in the effects.
    """

    robot: Robot
    effects: Effects = Effects()
    loaded: bool = field(default=True, kw_only=True)

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
        motion = (f"{kind}{i + 1}" for kind in ("q", "qd", "qdd") for i in range(self.robot.n_joints))
        return (*motion, *(f"{shape.quantity}{shape.joint + 1}" for shape in self.shape_columns))

    @cached_property
    def shape_columns(self) -> tuple[ShapeColumn, ...]:
        """In the order of their inputs."""
        out = []
        for i in range(self.robot.n_joints):
            for word, quantity in ((w, q) for w in self.effects.shapes for q in FRICTION_SHAPES[w]):
                column = self.space.find(OwnerKind.JOINT, i, quantity)
                if column is not None:
                    entries = self.joint_entries(i) if word == "coupled" else ((i, 1.0),)
                    out.append(ShapeColumn(column, i, quantity, entries))
        return tuple(out)

    def joint_entries(self, i: int) -> tuple[tuple[int, float], ...]:
        """Where torque on joint i itself shows in the drives: row i of the coupling."""
        assert self.robot.coupling is not None
        return tuple((k, float(c)) for k, c in enumerate(self.robot.coupling[i]) if c != 0.0)

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        rows = self.motion_rows(inputs, scalars)
        first = 3 * self.robot.n_joints
        for k, shape in enumerate(self.shape_columns):
            for channel, factor in shape.entries:
                rows[channel][shape.column] = inputs[first + k] * scalars.constant(factor)
        return rows

    def motion_rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        """Rows of everything that the motion alone decides."""
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
        column = self.space.find(OwnerKind.JOINT, i, ROTOR_INERTIA)
        rotor: Row = {} if column is None else {column: qdd[i]}
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
        starts = [self.space.start(OwnerKind.LINK, i) for i in range(n)]
        carries = self.effects.payload is not PayloadRuns.NONE and self.loaded
        payload = self.space.start(OwnerKind.PAYLOAD, n) if carries else None
        out: list[Row] = []
        for rigid in rigid_rows(self.robot, inputs, scalars):
            row = {starts[column // N_INERTIAL] + column % N_INERTIAL: value for column, value in rigid.items()}
            if payload is not None:
                # A payload is felt exactly as the last link is.
                last = (n - 1) * N_INERTIAL
                row |= {payload + column - last: value for column, value in rigid.items() if column >= last}
            out.append(row)
        return out
