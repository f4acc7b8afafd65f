"""Pose of any frame, and its derivative with respect to joint positions and to every constant of the chain."""

from __future__ import annotations

from collections.abc import Sequence

from armid.recursion.motion import Twist
from armid.recursion.placement import Placement, elementary, identity
from armid.recursion.scalars import Scalar, Scalars, Vector, cross, subtract
from armid.robot.elementary import Elementary
from armid.robot.robot import Frame, Robot


def elements_to(robot: Robot, frame: Frame) -> list[tuple[Elementary, int | None]]:
    """Every elementary transform from the base to the frame, with the joint whose variable it uses (or None)."""
    out: list[tuple[Elementary, int | None]] = []
    for i, joint in enumerate(robot.joints[: frame.link]):
        out += [(element, i if element.variable else None) for element in joint.transforms]
    return out + [(element, None) for element in frame.transforms]


def chain_pose(elements: Sequence[tuple[Elementary, int | None]], q: Sequence[Scalar], scalars: Scalars) -> Placement:
    """Pose at the end of a chain of elementary transforms at the geometric coordinates q."""
    T = identity(scalars)
    for element, joint in elements:
        T = T.then(elementary(element, None if joint is None else q[joint], scalars))
    return T


def element_twists(
    elements: Sequence[tuple[Elementary, int | None]], q: Sequence[Scalar], scalars: Scalars
) -> tuple[Placement, list[Twist]]:
    """The end pose, and for each element the twist of the end per unit of that element's value, in base axes.

    Twist: angular part, and velocity of the end frame's origin. This is the geometric Jacobian with respect to
    *every* number of the chain; the joint variables' columns are the usual one.
    """
    T = identity(scalars)
    places: list[tuple[bool, Vector, Vector]] = []
    for element, joint in elements:
        axis = element.motion.axis
        places.append((element.motion.is_rotation, (T.R[0][axis], T.R[1][axis], T.R[2][axis]), T.p))
        T = T.then(elementary(element, None if joint is None else q[joint], scalars))
    zero = scalars.constant(0.0)
    still: Vector = (zero, zero, zero)
    twists = [
        Twist(axis, cross(axis, subtract(T.p, origin))) if rotates else Twist(still, axis)
        for rotates, axis, origin in places
    ]
    return T, twists
