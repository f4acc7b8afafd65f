"""URDF files other people wrote."""

import numpy as np
import pytest

from armid.errors import RobotError
from armid.robot import load_robot
from armid.robot.urdf.write import updated_urdf
from support.realdata import real_data
from test_robot_urdf import compare_with_pinocchio

FILES = {
    "tx40": ("dynamics/tx40/tx40_mdh_modified.urdf", None, 6),
    "med7": ("dynamics/med7/med7dock.urdf", None, 7),
    "lwr4plus": ("dynamics/lwr4plus/kuka_lwr4.urdf", None, 7),
    "ur10e": ("dynamics/ur10e/ur10e.urdf", None, 6),
    "xmate7pro": ("dynamics/xmate7pro/XM7p.urdf", None, 7),
    "ur10": ("kinematics/ur10_camera_figaroh/ur10_robot.urdf", None, 6),
    "talos": ("kinematics/talos_leftarm/talos_full_v2.urdf", "gripper_left_base_link", 9),
}


@pytest.mark.parametrize("name", FILES)
def test_it_is_the_arm_pinocchio_reads(name):
    path, tip, joints = FILES[name]
    file = real_data(*path.split("/"))
    robot = load_robot(file, tip=tip)
    assert robot.n_joints == joints
    # Right angles given to eleven digits are made exact; one file has 1.570796326589793, 2e-10 off.
    compare_with_pinocchio(file.read_text(), robot, np.random.default_rng(0), place=2e-9, torque=2e-9)


@pytest.mark.parametrize("name", FILES)
def test_written_back_unchanged_it_is_the_same_file(name):
    path, tip, _ = FILES[name]
    file = real_data(*path.split("/"))
    text = file.read_bytes().decode()
    assert updated_urdf(text, load_robot(file, tip=tip)) == text


def test_a_humanoid_needs_a_tip():
    with pytest.raises(RobotError, match=r"chains of 9 moving joints.*one of: .*left"):
        load_robot(real_data("kinematics", "talos_leftarm", "talos_full_v2.urdf"))


def test_what_was_odd_is_said():
    codes = {
        name: {n.code for n in load_robot(real_data(*FILES[name][0].split("/"))).notes}
        for name in ("lwr4plus", "xmate7pro")
    }
    assert "element-twice" in codes["lwr4plus"]
    assert "angle-rounded" in codes["xmate7pro"]


def test_the_catalogue_tx40_has_the_geometry_of_the_recorded_one():
    from armid.kernels.kinematics import forward_kinematics

    ours = load_robot("tx40")
    theirs = load_robot(real_data(*FILES["tx40"][0].split("/")))
    q = np.random.default_rng(1).normal(size=(5, 6))
    drive = np.linalg.solve(ours.coupling, q.T).T
    np.testing.assert_allclose(
        forward_kinematics(ours, drive, "link_6"), forward_kinematics(theirs, q, "link_6"), atol=1e-12
    )
