"""A planar arm of two links with friction whose equations of motion are written out by hand, for any scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from armid.parameters.inertial import from_centre_of_mass
from armid.robot import Drive, Elementary, Joint, JointKind, Limits, Link, Move, Robot

LENGTH, MASS, CENTRE, INERTIA = 0.5, (4.0, 2.5), (0.22, 0.2), (0.09, 0.05)
VISCOUS, COULOMB, ROTOR = (3.0, 1.5), (2.0, 1.0), (0.2, 0.1)
GRAVITY = 9.81


def planar_arm(
    *,
    torque: tuple[float, float] = (60.0, 25.0),
    velocity: float = 4.0,
    acceleration: float = np.inf,
    jerk: float = np.inf,
    friction: bool = True,
) -> Robot:
    """Both axes along z, gravity along -y."""
    chains = (
        (Elementary(motion=Move.RZ, variable=True),),
        (Elementary(motion=Move.TX, value=LENGTH), Elementary(motion=Move.RZ, variable=True)),
    )
    joints, links = [], []
    for i, chain in enumerate(chains):
        drive = Drive(rotor_inertia=ROTOR[i], viscous=VISCOUS[i] * friction, coulomb=COULOMB[i] * friction)
        limits = Limits(
            lower=-3.0, upper=3.0, velocity=velocity, acceleration=acceleration, jerk=jerk, torque=torque[i]
        )
        joints.append(Joint(name=f"j{i + 1}", kind=JointKind.REVOLUTE, transforms=chain, limits=limits, drive=drive))
        own = from_centre_of_mass(MASS[i], [CENTRE[i], 0.0, 0.0], np.diag([0.01, INERTIA[i], INERTIA[i]]))
        links.append(Link(f"l{i + 1}", own))
    return Robot(name="planar", joints=tuple(joints), links=tuple(links), gravity=np.array([0.0, -GRAVITY, 0.0]))


def planar_torque(
    q: Any, qd: Any, qdd: Any, sign: Any, *, cos: Any, sin: Any, friction: bool = True
) -> tuple[Any, Any]:
    """Textbook equations of two links with rotors and friction; `sign` are the directions of motion."""
    (m1, m2), (c1, c2), (i1, i2), l = MASS, CENTRE, INERTIA, LENGTH
    h = m2 * l * c2
    M11 = i1 + i2 + m1 * c1**2 + m2 * (l**2 + c2**2) + 2 * h * cos(q[1]) + ROTOR[0]
    M12 = i2 + m2 * c2**2 + h * cos(q[1])
    M22 = i2 + m2 * c2**2 + ROTOR[1]
    g2 = m2 * c2 * GRAVITY * cos(q[0] + q[1])
    g1 = (m1 * c1 + m2 * l) * GRAVITY * cos(q[0]) + g2
    t1 = M11 * qdd[0] + M12 * qdd[1] - h * sin(q[1]) * (2 * qd[0] * qd[1] + qd[1] ** 2) + g1
    t2 = M12 * qdd[0] + M22 * qdd[1] + h * sin(q[1]) * qd[0] ** 2 + g2
    if friction:
        t1 = t1 + VISCOUS[0] * qd[0] + COULOMB[0] * sign[0]
        t2 = t2 + VISCOUS[1] * qd[1] + COULOMB[1] * sign[1]
    return t1, t2
