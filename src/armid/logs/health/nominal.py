"""What an arm of this shape should weigh, when its description does not say."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.inertial import from_centre_of_mass, skew
from armid.robot.elementary import product
from armid.robot.robot import Robot

_ROD_MASS = 3.0
"""[kg] of every stand-in link. Only signs and shapes over the motion are used, so its value does not matter."""

_ROD_RADIUS = 0.06
"""[m] A stand-in link is not infinitely thin."""


def has_inertials(robot: Robot) -> bool:
    """Whether the description gives the masses of at least the links beyond the first."""
    known = [link.inertial is not None and link.inertial[0] > 0.0 for link in robot.links]
    return all(known[1:]) and any(known)


def rods(robot: Robot) -> FloatArray:
    """Standard parameters of an arm whose links are uniform rods between their joints, shape [10 n].

    A link reaches from its own joint to the next one (the last to the tip), so its weight pulls in the direction in which
    the real link's does: enough to tell the sign of torque and of gravity, not their size.
    """
    out = []
    for i, joint in enumerate(robot.joints):
        after = product(joint.transforms[joint.variable_index + 1 :])
        start = -after[:3, :3].T @ after[:3, 3]
        if i + 1 < robot.n_joints:
            following = robot.joints[i + 1]
            end = product(following.transforms[: following.variable_index])[:3, 3]
        else:
            end = robot.tip.T_link_frame[:3, 3] if robot.tip.link == robot.n_joints else np.zeros(3)
        along = end - start
        # A rod about its middle, and a ball for its thickness.
        inertia = -_ROD_MASS / 12.0 * skew(along) @ skew(along) + 0.4 * _ROD_MASS * _ROD_RADIUS**2 * np.eye(3)
        out.append(from_centre_of_mass(_ROD_MASS, (start + end) / 2.0, inertia))
    return np.concatenate(out)
