"""Where the joint torque sensor sits: behind the gears it feels none of the drive's friction."""

from __future__ import annotations

import numpy as np
import pytest

import armid
from armid.errors import InputError, RobotError
from armid.logs.log import Channel
from armid.motions.fourier import FourierTrajectory
from armid.robot.yaml_file import parse_yaml, to_yaml


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


def test_an_arm_whose_description_says_so_has_its_sensors_behind_the_gears() -> None:
    """[Gaz2014] section III: friction is negligible in the link equations of this arm."""
    robot = armid.load_robot("lwr4-dh")
    motion = FourierTrajectory(robot.joint_names, 2.0, np.zeros(7), 0.1 * np.ones((7, 1)), np.zeros((7, 1)))
    done = armid.simulate(robot, motion, sensors="perfect")
    assert done.truth["sensed_friction"] == [0.0] * 7
    assert done.truth["parameters"]["link"]["joint2.coulomb"] == 0.0
    assert done.truth["parameters"]["motor"]["joint2.coulomb"] == robot.drive("coulomb")[1]
    assert "sensor-behind-gears" in [note.code for note in done.notes]
    asked = armid.simulate(robot, motion, sensors="perfect", sensed_friction=1.0)
    assert asked.truth["parameters"]["link"]["joint2.coulomb"] == robot.drive("coulomb")[1]
    assert "sensor-behind-gears" not in [note.code for note in asked.notes]


def test_a_description_with_an_impossible_share_is_refused() -> None:
    text = to_yaml(armid.load_robot("lwr4-dh")).replace("sensed_friction: 0", "sensed_friction: 2", 1)
    with pytest.raises(RobotError, match="between 0 and 1"):
        parse_yaml(text)
