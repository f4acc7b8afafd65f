"""The arm, camera and LED fixture of [Kolyubin2017]: table 2, nominal and calibrated."""

from __future__ import annotations

from math import pi

import numpy as np

from armid.kinematics.model import FrameModel
from armid.robot import Elementary, Joint, JointKind, Limits, Link, Move, Robot
from armid.robot.dh import Convention, Row, transforms
from armid.robot.elementary import product

# alpha [rad], d [m], theta offset [rad], r [m] of frames 0..8
NOMINAL = (
    (0.0, 0.0, 1.55, -4.3),
    (1.5, 0.1, -0.79, -0.14),
    (pi / 2, 0.0, 0.0, 0.0),
    (-pi / 2, 0.0, 0.0, 0.4),
    (-pi / 2, 0.0, 0.0, 0.0),
    (pi / 2, 0.0, 0.0, 0.39),
    (pi / 2, 0.0, 0.0, 0.0),
    (-pi / 2, 0.0, 0.0, 0.0),
    (0.0, 0.0015, 0.79, 0.093),
)
# Deviations of frames 2..8; the camera rows 0 and 1 are start values, not manufacturing deviations.
DEVIATIONS = (
    (1.2e-4, -3e-4, -4.2e-3, 3.9e-5),
    (6.1e-4, -3e-4, -9.8e-3, -1e-4),
    (1.4e-4, 1.1e-3, -6.5e-3, 2.6e-4),
    (-1.1e-4, -9e-4, 1.1e-3, 8e-4),
    (6.4e-4, 4e-4, -1.6e-3, 1.6e-4),
    (-3.6e-4, -6e-4, 0.0, 0.0),
    (5.3e-4, -1.7e-3, -4.1e-3, -1.9e-3),
)
TRUE = (*NOMINAL[:2], *(tuple(np.add(a, b)) for a, b in zip(NOMINAL[2:], DEVIATIONS, strict=True)))
LIMITS = np.array([17 * pi / 18, 2 * pi / 3, 17 * pi / 18, 2 * pi / 3, 17 * pi / 18, pi / 2, 17 * pi / 18])
NAMES = ("alpha", "a", "theta", "d")


def row(numbers) -> Row:
    alpha, a, theta, d = numbers
    return Row(alpha=alpha, a=a, d=d, theta=theta)


def arm(table=NOMINAL, inertial=None) -> Robot:
    """Joints 1..7 of the table."""
    joints = tuple(
        Joint(
            name=f"joint{i}",
            kind=JointKind.REVOLUTE,
            transforms=transforms(row(table[i]), Convention.MODIFIED, JointKind.REVOLUTE),
            limits=Limits(lower=-limit, upper=limit),
        )
        for i, limit in zip(range(1, 8), LIMITS, strict=True)
    )
    links = tuple(Link(f"link{i + 1}", None if inertial is None else inertial[i]) for i in range(7))
    return Robot(name="lwr4plus-kolyubin", joints=joints, links=links)


def chain(numbers) -> tuple[Elementary, ...]:
    alpha, a, theta, d = numbers
    return (
        Elementary(motion=Move.RX, value=alpha),
        Elementary(motion=Move.TX, value=a),
        Elementary(motion=Move.RZ, value=theta),
        Elementary(motion=Move.TZ, value=d),
    )


def camera(*, free: bool) -> FrameModel:
    return FrameModel(chain(NOMINAL[0]), NAMES if free else (None,) * 4, rank=2)


def fixture() -> FrameModel:
    return FrameModel(chain(NOMINAL[8]), NAMES, rank=2)


def poses(q, table=TRUE, robot=None):
    """T_camera_tool at drive positions, by plain products of the table's rows: independent of the library's recursion."""
    T = np.tile(product(chain(table[0])), (len(q), 1, 1))
    for i in range(7):
        steps = []
        for angle in q[:, i]:
            alpha, a, theta, d = table[i + 1]
            steps.append(product(chain((alpha, a, theta + angle, d))))
        T = T @ np.array(steps)
    return T @ product(chain(table[8]))
