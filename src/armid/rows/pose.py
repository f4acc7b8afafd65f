"""Measured poses, points and distances as a source of rows in kinematic errors.

The rows are the derivative of the measurement by every constant of the chain, so `y` is a small deviation and the
parameters are errors of those constants [m or rad].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from armid.kernels.source import Row as LinearRow
from armid.kinematics.build import DENAVIT, MOTIONS, kinematic_model
from armid.kinematics.model import ErrorModel, FrameModel, Slot
from armid.kinematics.parameter import KinematicParameter
from armid.parameters.space import OwnerKind, Parameter
from armid.recursion.kinematics import element_twists, elements_to
from armid.recursion.motion import geometric_coordinates
from armid.recursion.placement import Placement
from armid.recursion.scalars import Scalar, Scalars, Vector, add, cross, dot, subtract, times
from armid.robot.dh import Convention, Row, row_of, transforms
from armid.robot.elementary import Elementary, Move
from armid.robot.robot import Frame, Robot


class PoseMeasure(StrEnum):
    """What an instrument sees of the tool."""

    POSE = "pose"
    """Position of the frame's origin and orientation: six rows."""
    POINTS = "points"
    """Positions of points fixed to the frame: three rows each."""
    DISTANCE = "distance"
    """Distance of each point from a fixed place: one row each (derivative of half the square)."""


class ChainErrors(StrEnum):
    """Which constants of the chain are in question."""

    DESCRIBED = "described"
    """Every constant the description has, joint offsets included: four per Denavit-Hartenberg row."""
    COMPLETE = "complete"
    """Six small motions at the sensor, before every further joint and at the tool: whatever a rigid error can be."""


@dataclass(frozen=True, slots=True)
class ChainElement:
    """One elementary transform of a chain.

    Args:
        element: the transform.
        joint: whose variable it uses, 0-based, or None.
        parameter: its error; None when its value is beyond doubt.
    """

    element: Elementary
    joint: int | None
    parameter: Parameter | None


SENSOR, TOOL = "sensor", "tool"
"""Owners of the errors in front of the base and behind the last link: the instrument's frame and the measured one."""


def _error_chain(robot: Robot, frame: Frame, model: ChainErrors) -> tuple[ChainElement, ...]:
    """The chain from the instrument to the frame with a name for every number in question, the names of a calibration.

    `sensor.rx`, `link3.ty`, `joint3.offset`, `tool.tz` for all errors; `sensor.theta`, `link3.alpha`, `tool.d` for those of
    Denavit-Hartenberg rows.
    """
    return _described_chain(robot, frame) if model is ChainErrors.DESCRIBED else _complete_chain(robot, frame)


def _complete_chain(robot: Robot, frame: Frame) -> tuple[ChainElement, ...]:
    """The chain of a calibration with its six unknowns at the sensor, before every joint from the second on, and at the tool.

    The first joint's own six are left out: they are those of the sensor, moved by a constant.
    """
    model = kinematic_model(
        robot,
        ErrorModel(),
        setups={SENSOR: FrameModel.around(np.eye(4), MOTIONS, outside=True)},
        targets={TOOL: FrameModel.around(frame.T_link_frame, MOTIONS, outside=False)},
    )
    zeros = {term.joint: term.parameter for term in model.terms}

    def placed(slot: Slot) -> ChainElement:
        index = slot.parameter if slot.joint is None else zeros[slot.joint]
        parameter = None if index is None else model.parameters[index]
        first = parameter is not None and parameter.body == 0
        return ChainElement(slot.element, slot.joint, None if first else parameter)

    arm = (slot for link in model.links[: frame.link] for slot in link)
    return tuple(placed(slot) for slot in (*model.setups[SENSOR], *arm, *model.targets[TOOL]))


_INSTRUMENT = (Row(theta=1.55, d=-4.3), Row(alpha=1.5, a=0.1, theta=-0.79, d=-0.14))
"""Two modified rows from an instrument across the room to the first joint, the start values of [Kolyubin2017] table 2.
What can be identified is the same for any place of the instrument in general position."""


def _described_chain(robot: Robot, frame: Frame) -> tuple[ChainElement, ...]:
    """The description's own constants, joint offsets included.

    An arm in modified rows gets a row for the instrument in front of the first joint and one for the tool behind the
    last, as in [Kolyubin2017] eq. 3: four numbers a row, n + 2 rows. When the description already holds rows for base
    and tool, or is of another form, it is taken as it stands.
    """
    joints = [joint.transforms for joint in robot.joints[: frame.link]]
    tool = _tool_row(frame)
    out: list[ChainElement] = []
    if tool is not None and all(_is_modified_row(chain) for chain in joints):
        row, first = row_of(joints[0])[1], _INSTRUMENT[1]  # type: ignore[index]
        placed = replace(row, alpha=first.alpha, a=first.a, theta=row.theta + first.theta, d=row.d + first.d)
        joints[0] = transforms(placed, Convention.MODIFIED, robot.joints[0].kind)
        out += _named(OwnerKind.SETUP, -1, [(e, None) for e in transforms(_INSTRUMENT[0], Convention.MODIFIED, None)])
    for i, chain in enumerate(joints):
        out += _named(OwnerKind.LINK, i, [(e, i if e.variable else None) for e in chain])
    return tuple(out + _named(OwnerKind.TARGET, frame.link, [(e, None) for e in tool or frame.transforms]))


def _is_modified_row(chain: tuple[Elementary, ...]) -> bool:
    found = row_of(chain)
    return found is not None and found[0] is Convention.MODIFIED


def _tool_row(frame: Frame) -> tuple[Elementary, ...] | None:
    """The frame as one modified row: as described, or when it only turns about and moves along the last z axis."""
    if _is_modified_row(frame.transforms):
        return frame.transforms
    if any(e.motion not in (Move.RZ, Move.TZ) for e in frame.transforms):
        return None
    theta, d = (sum(e.value for e in frame.transforms if e.motion is m) for m in (Move.RZ, Move.TZ))
    return transforms(Row(theta=theta, d=d), Convention.MODIFIED, None)


def _named(kind: OwnerKind, body: int, elements: Sequence[tuple[Elementary, int | None]]) -> list[ChainElement]:
    """Elements with names made of the owner and the constant: of a Denavit-Hartenberg row `alpha`, `a`, `theta`, `d`; of any
    other chain the motion, numbered from the second of a kind on.
    """
    frame = {OwnerKind.SETUP: SENSOR, OwnerKind.TARGET: TOOL}.get(kind, "")
    row = row_of(tuple(element for element, _ in elements)) is not None
    seen: Counter[str] = Counter()
    out = []
    for element, joint in elements:
        quantity = DENAVIT[element.motion] if row else element.motion.value.lower()
        seen[quantity] += 1
        number = str(seen[quantity]) if seen[quantity] > 1 else ""
        unit = "rad" if element.motion.is_rotation else "m"
        parameter = KinematicParameter(kind, body, f"{quantity}{number}", unit, frame=frame)
        out.append(ChainElement(element, joint, parameter))
    return out


def natural_model(robot: Robot, frame: Frame) -> ChainErrors:
    """The described constants when they are Denavit-Hartenberg rows of base, joints and tool; else all errors."""
    elements = [element for element, _ in elements_to(robot, frame)]
    groups = [tuple(elements[k : k + 4]) for k in range(0, len(elements), 4)]
    described = len(groups) == frame.link + 2 and all(row_of(group) is not None for group in groups)
    return ChainErrors.DESCRIBED if described else ChainErrors.COMPLETE


@dataclass(frozen=True, kw_only=True)
class PoseRows:
    """Rows of `deviation = A(q) errors`; [Kolyubin2017] eq. 8, as twists in base axes.

    Args:
        robot: geometry and coupling.
        frame: name of the measured frame; the tip by default.
        measure: what the instrument sees.
        model: which constants are in question; by default what the description calls for (`natural_model`).
        points: fixed to the frame [m], used with POINTS and DISTANCE.
        reference: where distances are measured from, in the base frame [m].
    """

    robot: Robot
    frame: str | None = None
    measure: PoseMeasure = PoseMeasure.POSE
    model: ChainErrors | None = None
    points: tuple[tuple[float, float, float], ...] = ((0.0, 0.0, 0.0),)
    reference: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", PoseMeasure(self.measure))

    @cached_property
    def chain(self) -> tuple[ChainElement, ...]:
        frame = self.robot.frame(self.frame)
        return _error_chain(self.robot, frame, self.model or natural_model(self.robot, frame))

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The errors in question, from the instrument to the tool."""
        return tuple(part.parameter for part in self.chain if part.parameter is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def channels(self) -> tuple[str, ...]:
        match self.measure:
            case PoseMeasure.POSE:
                return ("x", "y", "z", "rx", "ry", "rz")
            case PoseMeasure.POINTS:
                return tuple(f"{axis}{k + 1}" for k in range(len(self.points)) for axis in "xyz")
            case PoseMeasure.DISTANCE:
                return tuple(f"distance{k + 1}" for k in range(len(self.points)))

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(f"q{i + 1}" for i in range(self.robot.n_joints))

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[LinearRow]:
        q = geometric_coordinates(self.robot, inputs, scalars)
        T, twists = element_twists([(part.element, part.joint) for part in self.chain], q, scalars)
        wanted = [twist for part, twist in zip(self.chain, twists, strict=True) if part.parameter is not None]
        if self.measure is PoseMeasure.POSE:
            return [{c: t.linear[i] for c, t in enumerate(wanted)} for i in range(3)] + [
                {c: t.angular[i] for c, t in enumerate(wanted)} for i in range(3)
            ]
        out: list[LinearRow] = []
        for point in self.points:
            arm = _lever(T, point, scalars)
            moved = [add(t.linear, cross(t.angular, arm)) for t in wanted]
            if self.measure is PoseMeasure.POINTS:
                out += [{c: v[i] for c, v in enumerate(moved)} for i in range(3)]
            else:
                x, y, z = (scalars.constant(float(value)) for value in self.reference)
                place: Vector = (x, y, z)
                away = subtract(add(T.p, arm), place)
                out.append({c: dot(away, v) for c, v in enumerate(moved)})
        return out


def _lever(T: Placement, point: Sequence[float], scalars: Scalars) -> Vector:
    """From the frame's origin to a point fixed to it, in base axes."""
    x, y, z = (scalars.constant(float(value)) for value in point)
    return times(T.R, (x, y, z))
