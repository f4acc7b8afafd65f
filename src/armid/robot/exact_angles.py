"""Right and half-right angles written with a few decimals, as the angles they were meant to be.

`1.5708` is four micrometres at a metre away from pi/2: nobody's calibration, but enough to make a column of the regressor
independent by a
hair. What is identifiable is decided on the arm that was meant; positions and torques are those of the arm as written.
"""

from __future__ import annotations

from dataclasses import replace
from math import floor, pi

from armid.robot.robot import Robot

_DECIMALS = range(2, 10)
"""Digits after the point that people write."""

_FEWEST_OF_HALF = 3
"""An odd multiple of pi/4 needs one digit more: 0.79 may well be meant as 0.79."""

_SAME = 1e-9
"""[rad] Text that was read, multiplied and added up is the same number."""

_REMAINDER = 2e-5
"""[rad] What roundings leave in the other angles when fixed joints are merged."""


def meant_angle(angle: float) -> float:
    """The multiple of pi/4 whose decimal rounding, or truncation, an angle is; otherwise the angle itself."""
    quarter = round(angle / (pi / 4))
    exact = quarter * (pi / 4)
    if quarter == 0 or angle == exact:
        return angle
    for decimals in _DECIMALS:
        if quarter % 2 and decimals < _FEWEST_OF_HALF:
            continue
        scale = 10.0**decimals
        cut = floor(abs(exact) * scale) / scale
        if min(abs(abs(angle) - round(abs(exact), decimals)), abs(abs(angle) - cut)) < _SAME:
            return exact
    return angle


def is_rounded(angle: float) -> bool:
    """Whether an angle is a multiple of pi/4 written with a few decimals."""
    return meant_angle(angle) != angle


def meant_robot(robot: Robot) -> Robot:
    """The arm with rounded angles made exact; the same object when there are none."""
    turns = [e.value for joint in robot.joints for e in joint.transforms if e.motion.is_rotation]
    if not any(is_rounded(value) for value in turns):
        return robot
    joints = tuple(
        replace(
            joint,
            transforms=tuple(
                replace(e, value=_settled(e.value)) if e.motion.is_rotation else e for e in joint.transforms
            ),
        )
        for joint in robot.joints
    )
    return replace(robot, joints=joints)


def _settled(angle: float) -> float:
    """A rounded angle, or the small rest of one, made exact."""
    exact = round(angle / (pi / 4)) * (pi / 4)
    return exact if abs(angle - exact) < _REMAINDER else meant_angle(angle)
