"""Where the joint torque sensor sits: behind the gears it feels none of the drive's friction."""

from __future__ import annotations

import numpy as np
import pytest

import armid
from armid.errors import InputError
from armid.logs.log import Channel
from armid.motions.fourier import FourierTrajectory


def link_minus_motor(share: float) -> np.ndarray:
    """Motor less link torque of each joint, without the rotors' share, at constant speed sign, shape [n_samples, 3]."""
    robot = armid.load_robot("cmu-dd-arm2")
    motion = FourierTrajectory(robot.joint_names, 2.0, np.zeros(3), 0.3 * np.ones((3, 1)), np.zeros((3, 1)))
    done = armid.simulate(robot, motion, sensors="perfect", sensed_friction=share)
    log = done.log
    qdd = np.gradient(log[Channel.VELOCITY], log.time, axis=0)
    return log[Channel.MOTOR_TORQUE] - log[Channel.LINK_TORQUE] - robot.drive("rotor_inertia") * qdd


def test_a_sensor_behind_the_gears_feels_no_friction_and_the_motor_all_of_it() -> None:
    robot = armid.load_robot("cmu-dd-arm2")
    behind, before = link_minus_motor(0.0), link_minus_motor(1.0)
    middle = slice(100, 400)  # moving one way
    assert (np.abs(behind[middle]).mean(axis=0) > 0.9 * robot.drive("coulomb")).all()
    assert (np.abs(before[middle]).mean(axis=0) < 0.1 * robot.drive("coulomb")).all()


def test_a_share_beyond_one_is_refused() -> None:
    with pytest.raises(InputError, match="share between 0 and 1"):
        link_minus_motor(1.5)
