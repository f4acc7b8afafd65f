"""Three arms that armid was not raised on, from description to files read by other programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.errors import InputError
from armid.export.joint_properties import joint_properties
from armid.robot.load import load_robot
from armid.robot.robot import Drive
from armid.studies.arms import arm_story, drives_beside, package_arms

ARMS = ("kinova.urdf", "ur5_robot.urdf", "z1.urdf")


@pytest.fixture(scope="module")
def arms():
    try:
        return {file.path.name: file for file in package_arms(*ARMS) if file.path.name in ARMS}
    except InputError:
        pytest.skip("example-robot-data is not installed")


def test_drives_are_those_of_the_file_and_not_of_the_model_behind_it(tmp_path) -> None:
    robot = load_robot("panda")
    joints = tuple(
        replace(joint, drive=Drive(rotor_inertia=0.1 + k, viscous=0.2, coulomb=0.3, offset=-0.01 * k))
        for k, joint in enumerate(robot.joints)
    )
    path = tmp_path / "arm.joints.yaml"
    path.write_text(joint_properties(replace(robot, joints=joints)), encoding="utf-8")
    assert drives_beside(path) == {joint.name: joint.drive for joint in joints}


@pytest.mark.parametrize("name", ARMS)
def test_an_unknown_arm_gets_a_model_and_files_as_good_as_it(arms, name: str) -> None:
    robot = arms[name].robot
    assert robot is not None, arms[name].reason
    record = arm_story(robot, name=name, design=False, motion_seconds=10.0, rate_hz=100.0)
    assert record.model < 0.03, record.line()
    assert record.wrong_masses == (), record.line()
    assert record.inside >= 0.8 * record.intervals, record.line()
    if record.verdict == "trusted":
        # The only file that a trusted model may be refused is one that lost what made it better than the description.
        assert all("error is larger than the description's" in why for why in record.refused), record.line()
        written = [error for error in (record.urdf, record.mjcf) if not np.isnan(error)]
        assert len(written) + len(record.refused) == 2, record.line()
        assert all(error < max(1.5 * record.model, 0.02) for error in written), record.line()
