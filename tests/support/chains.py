"""Random serial chains and their Pinocchio twins, for tests."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from armid.parameters.inertial import from_log_cholesky, to_centre_of_mass
from armid.robot import Drive, Elementary, Frame, Joint, JointKind, Link, Move, Robot
from armid.robot.elementary import product

MOTIONS = tuple(Move)


def random_inertial(rng: np.random.Generator) -> np.ndarray:
    return from_log_cholesky(np.concatenate([rng.normal(0.3, 0.3, 1), rng.normal(-1.0, 0.3, 3), rng.normal(0, 0.2, 6)]))


def random_joint(rng: np.random.Generator, index: int) -> Joint:
    prismatic = rng.random() < 0.3
    axis = MOTIONS[int(rng.integers(0, 3)) + (0 if prismatic else 3)]

    def constants(count: int) -> tuple[Elementary, ...]:
        out = []
        for _ in range(count):
            motion = MOTIONS[int(rng.integers(0, 6))]
            value = (
                float(rng.choice([np.pi / 2, -np.pi / 2, np.pi, rng.normal()]))
                if motion.is_rotation
                else rng.normal(0, 0.4)
            )
            out.append(Elementary(motion=motion, value=float(value)))
        return tuple(out)

    variable = Elementary(
        motion=axis,
        value=float(rng.choice([0.0, np.pi / 2, rng.normal()])),
        variable=True,
        sign=int(rng.choice([1, -1])),
    )
    transforms = (*constants(int(rng.integers(0, 4))), variable, *constants(int(rng.integers(0, 3))))
    rotor, viscous, coulomb = (float(abs(x)) for x in rng.normal(size=3))
    return Joint(
        name=f"j{index + 1}",
        kind=JointKind.PRISMATIC if prismatic else JointKind.REVOLUTE,
        transforms=transforms,
        drive=Drive(rotor_inertia=rotor, viscous=viscous, coulomb=coulomb, offset=float(rng.normal())),
    )


def random_robot(rng: np.random.Generator, n: int, coupled: bool = False) -> Robot:
    coupling = np.eye(n) + np.tril(rng.normal(size=(n, n)), -1) if coupled else None
    return Robot(
        name="random",
        joints=tuple(random_joint(rng, i) for i in range(n)),
        links=tuple(Link(f"l{i + 1}", random_inertial(rng)) for i in range(n)),
        frames=(Frame("tool", n, (Elementary(motion=Move.TX, value=0.1), Elementary(motion=Move.RY, value=0.3))),),
        gravity=rng.normal(size=3) * 5,
        coupling=coupling,
    )


def pinocchio_model(robot: Robot) -> pin.Model:
    """The same arm in Pinocchio. Joint frames stand at the variable; link parameters are moved there."""
    model = pin.Model()
    parent = 0
    before = np.eye(4)
    for joint, link in zip(robot.joints, robot.links, strict=True):
        k = joint.variable_index
        variable = joint.transforms[k]
        # The constant part of the variable commutes with it.
        constant = Elementary(motion=variable.motion, value=variable.value)
        placement = before @ product((*joint.transforms[:k], constant))
        axis = np.zeros(3)
        axis[variable.motion.axis] = variable.sign
        kind = (
            pin.JointModelPrismaticUnaligned if joint.kind is JointKind.PRISMATIC else pin.JointModelRevoluteUnaligned
        )
        parent = model.addJoint(parent, kind(axis), pin.SE3(placement), joint.name)
        after = product(joint.transforms[k + 1 :])
        mass, centre, inertia = to_centre_of_mass(link.inertial)
        model.appendBodyToJoint(parent, pin.Inertia(mass, centre, inertia), pin.SE3(after))
        model.addFrame(pin.Frame(link.name, parent, 0, pin.SE3(after), pin.FrameType.OP_FRAME))
        before = after
    tip = robot.tip
    model.addFrame(pin.Frame("tip", parent, 0, pin.SE3(before @ tip.T_link_frame), pin.FrameType.OP_FRAME))
    model.gravity.linear = np.array(robot.gravity)
    return model
