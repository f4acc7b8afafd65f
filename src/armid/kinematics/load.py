"""What an arm carries besides its description: joints sag under it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.errors import InputError
from armid.parameters.inertial import N_INERTIAL, from_centre_of_mass
from armid.robot.robot import Robot


def with_tool(robot: Robot, mass: float, centre: npt.ArrayLike = (0.0, 0.0, 0.0)) -> Robot:
    """The arm with a point mass on its last link.

    Args:
        robot: as described.
        mass: of the tool [kg].
        centre: in the frame of the description's tip [m], shape [3].

    Raises:
        InputError: a mass that is negative or no number, or a tip that is not on the last link.
    """
    at = np.asarray(centre, dtype=np.float64)
    if not np.isfinite(mass) or mass < 0.0 or at.shape != (3,) or not np.isfinite(at).all():
        raise InputError("tool", f"mass {mass} kg at {centre!r}", "a mass of zero or more in kg, and x, y, z in m")
    if mass == 0.0:
        return robot
    if robot.tip.link != robot.n_joints:
        raise InputError("tool", f"the tip {robot.tip.name} is not on the last link", "choose another --tip")
    T = robot.tip.T_link_frame
    values = np.array(robot.inertial)
    values[-N_INERTIAL:] += from_centre_of_mass(mass, T[:3, :3] @ at + T[:3, 3], np.zeros((3, 3)))
    return robot.with_inertial(values)


def carries(described: Robot, arm: Robot) -> bool:
    """Whether an arm has another load than its description."""
    return not np.array_equal(described.inertial, arm.inertial)
