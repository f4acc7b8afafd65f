"""From a robot and a choice of errors to the model with its parameter vector."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armid.kinematics.conventions import dh_form, mdh_form
from armid.kinematics.model import ErrorModel, FrameModel, JointTerm, KinematicModel, Slot, TermBasis, prismatic
from armid.kinematics.parameter import KinematicParameter, Tolerances
from armid.kinematics.words import Term, UnknownGeometry
from armid.parameters.space import OwnerKind
from armid.robot.elementary import Elementary, Move
from armid.robot.robot import Joint, Robot

MOTIONS = (Move.TX, Move.TY, Move.TZ, Move.RX, Move.RY, Move.RZ)

KEEP_FIRST, KEEP_SECOND, KEEP_THIRD, KEEP_LAST = 0, 1, 2, 3
"""Ranks of parameters: frames first (nothing else is known about them), zeros, then lengths and axes, then the rest."""

DENAVIT = {Move.RX: "alpha", Move.TX: "a", Move.RZ: "theta", Move.TZ: "d", Move.RY: "beta"}


class ModelBuilder:
    """Collects parameters while slots and terms are laid out."""

    def __init__(self, tolerances: Tolerances) -> None:
        self.tolerances = tolerances
        self.parameters: list[KinematicParameter] = []
        self.terms: list[JointTerm] = []

    def add(self, parameter: KinematicParameter) -> int:
        """Index of a new parameter."""
        self.parameters.append(parameter)
        return len(self.parameters) - 1

    def shared(self, parameter: KinematicParameter) -> int:
        """Index of the parameter of this name and kind of owner, made when it does not exist."""
        for index, known in enumerate(self.parameters):
            if known.name == parameter.name and known.kind is parameter.kind:
                return index
        return self.add(parameter)

    def frame(self, name: str, frame: FrameModel, kind: OwnerKind, *, body: int) -> tuple[Slot, ...]:
        """The slots of a sensor or tool frame."""
        t = self.tolerances
        sensor = kind is OwnerKind.SETUP
        angle, position = (t.sensor_angle, t.sensor_position) if sensor else (t.tool_angle, t.tool_position)
        slots = []
        for element, free in zip(frame.elements, frame.free, strict=True):
            index = None
            if free is not None:
                unit, width = ("rad", angle) if element.motion.is_rotation else ("m", position)
                place = frame.body or name
                parameter = KinematicParameter(kind, body, free, unit, frame=place, tolerance=width, rank=frame.rank)
                index = self.shared(parameter)
            slots.append(Slot(element, parameter=index))
        return tuple(slots)

    def constant(self, link: int, element: Elementary, quantity: str, rank: int) -> Slot:
        """A slot whose value is an unknown of the link."""
        t = self.tolerances
        unit, width = ("rad", t.angle) if element.motion.is_rotation else ("m", t.length)
        parameter = KinematicParameter(OwnerKind.LINK, link, quantity, unit, tolerance=width, rank=rank)
        return Slot(element, parameter=self.add(parameter))

    def offset(self, kind: OwnerKind, joint: int, quantity: str, rank: int, *, slides: bool) -> None:
        """An unknown zero of a joint."""
        unit, width = ("m", self.tolerances.offset_length) if slides else ("rad", self.tolerances.offset)
        parameter = KinematicParameter(kind, joint, quantity, unit, tolerance=width, rank=rank)
        self.terms.append(JointTerm(joint=joint, parameter=self.add(parameter), basis=TermBasis.ONE))


def kinematic_model(
    robot: Robot,
    errors: ErrorModel | None = None,
    *,
    setups: Mapping[str, FrameModel],
    targets: Mapping[str, FrameModel],
) -> KinematicModel:
    """The arm with its unknowns: sensors, then joints and links from base to tip, then targets.

    Args:
        robot: nominal arm.
        errors: what may be off; every link frame and joint zero by default.
        setups: frame of each sensor placement: chain from the sensor to the robot's base.
        targets: frame of each target: chain from the last link's frame to the target.
    """
    errors = ErrorModel() if errors is None else errors
    form = {UnknownGeometry.MDH: mdh_form, UnknownGeometry.HAYATI: mdh_form, UnknownGeometry.DH: dh_form}.get(
        errors.geometry
    )
    shaped = robot if form is None else form(robot)
    builder = ModelBuilder(errors.tolerances)
    setup_slots = {name: builder.frame(name, frame, OwnerKind.SETUP, body=-1) for name, frame in setups.items()}
    links: list[tuple[Slot, ...]] = []
    for i, joint in enumerate(shaped.joints):
        links.append(tuple(_link_slots(builder, shaped, i, joint, errors)))
        _joint_terms(builder, shaped, i, errors)
    target_slots = {
        name: builder.frame(name, frame, OwnerKind.TARGET, body=shaped.n_joints) for name, frame in targets.items()
    }
    return KinematicModel(
        robot=shaped,
        parameters=tuple(builder.parameters),
        links=tuple(links),
        terms=tuple(builder.terms),
        setups=setup_slots,
        targets=target_slots,
    )


def _link_slots(builder: ModelBuilder, robot: Robot, i: int, joint: Joint, errors: ErrorModel) -> list[Slot]:
    """The chain from the previous link to this one, with its unknown constants."""
    plain = [Slot(e, i if e.variable else None) for e in joint.transforms]
    slides = prismatic(robot, i)
    match errors.geometry:
        case UnknownGeometry.NONE:
            if Term.OFFSET in errors.terms:
                builder.offset(OwnerKind.JOINT, i, "offset", KEEP_SECOND, slides=slides)
            return plain
        case UnknownGeometry.COMPLETE:
            return _complete_slots(builder, i, joint, plain, offset=Term.OFFSET in errors.terms, slides=slides)
        case _:
            beta = errors.geometry is UnknownGeometry.HAYATI and i > 0 and _follows_parallel(joint)
            return _denavit_slots(builder, i, joint, slides=slides, beta=beta)


def _complete_slots(
    builder: ModelBuilder, i: int, joint: Joint, plain: list[Slot], *, offset: bool, slides: bool
) -> list[Slot]:
    """Six small transforms just before the joint's variable; the one along its motion is the joint's zero."""
    k = joint.variable_index
    own = joint.transforms[k].motion
    if offset:
        builder.offset(OwnerKind.JOINT, i, "offset", KEEP_SECOND, slides=slides)
    small = []
    for motion in MOTIONS:
        if motion is not own:
            along = motion.axis == own.axis
            small.append(
                builder.constant(i, Elementary(motion=motion), motion.value.lower(), KEEP_LAST if along else KEEP_THIRD)
            )
    return [*plain[:k], *small, *plain[k:]]


def _denavit_slots(builder: ModelBuilder, i: int, joint: Joint, *, slides: bool, beta: bool) -> list[Slot]:
    """alpha, a, theta, d of a joint in (modified) Denavit-Hartenberg form; its variable's constant is the zero."""
    slots: list[Slot] = []
    for element in joint.transforms:
        label = DENAVIT.get(element.motion)
        if element.variable:
            builder.offset(OwnerKind.LINK, i, str(label), KEEP_THIRD, slides=slides)
            slots.append(Slot(element, i))
        elif element.symbol is None:
            slots.append(Slot(element))
        else:
            slots.append(builder.constant(i, element, str(label), KEEP_THIRD))
            if beta and element.motion is Move.TX:
                slots.append(builder.constant(i, Elementary(motion=Move.RY), "beta", KEEP_THIRD))
    return slots


PARALLEL = 0.05
"""[rad] Axes closer than this make the common normal ill-defined: a small error of direction moves it by metres."""


def _follows_parallel(joint: Joint) -> bool:
    """Whether the joint's axis is nearly parallel to the one before it (its alpha is near 0 or pi)."""
    alpha = sum(e.value for e in joint.transforms if e.motion is Move.RX and e.symbol is not None)
    return abs(np.sin(alpha)) < PARALLEL


def _joint_terms(builder: ModelBuilder, robot: Robot, i: int, errors: ErrorModel) -> None:
    """Gain, eccentricity, coupling and compliance of one joint."""
    t, slides = errors.tolerances, prismatic(robot, i)
    unit = "m" if slides else "rad"

    def term(quantity: str, unit: str, width: float, basis: TermBasis, other: int = 0) -> None:
        parameter = KinematicParameter(OwnerKind.JOINT, i, quantity, unit, tolerance=width, rank=KEEP_LAST)
        builder.terms.append(JointTerm(joint=i, parameter=builder.add(parameter), basis=basis, other=other))

    if Term.GAIN in errors.terms:
        term("gain", "1", t.gain, TermBasis.POSITION)
    if Term.ECCENTRICITY in errors.terms and not slides:
        term("eccentricity_sin", unit, t.eccentricity, TermBasis.SIN)
        term("eccentricity_cos", unit, t.eccentricity, TermBasis.COS)
    if Term.COUPLING in errors.terms:
        pairs = errors.couplings or tuple((j + 1, j) for j in range(robot.n_joints - 1))
        for moved, moving in pairs:
            if moved == i:
                term(f"coupling{moving + 1}", "1", t.coupling, TermBasis.OTHER, moving)
    if Term.COMPLIANCE in errors.terms:
        width, per = (t.compliance_length, "m/N") if slides else (t.compliance, "rad/(N m)")
        term("compliance", per, width, TermBasis.TORQUE)
