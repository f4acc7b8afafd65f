"""Recordings of real robots: held-out errors at or below what a careful hand-written script reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from armid.calibration.arm import load_arm
from armid.calibration.calibrate import Calibration, calibrate
from armid.calibration.diagnose import diagnose
from armid.calibration.hold_out import Advice
from armid.calibration.poses_table import read_table
from armid.calibration.read import read_poses
from armid.calibration.setups import frame_test
from support.realdata import real_data

ROBOTS = Path(__file__).parents[1] / "docs" / "robots"


def calibrated(robot: Path, *parts: str) -> Calibration:
    path = real_data("kinematics", *parts)
    arm = load_arm(str(robot), list(read_table(path).columns))
    return calibrate(arm, read_poses(path, arm.joint_names))


@pytest.mark.parametrize(
    ("robot", "parts", "method", "limit"),
    [
        ("ur10.yaml", ("ur10_ipa", "series_A.csv"), "kept aside", 0.41e-3),
        ("ur10.yaml", ("ur10_ipa", "series_B.csv"), "5-fold", 0.40e-3),
        ("irb120.yaml", ("irb120_wu2015", "calibration.csv"), "leave-one-out over 36", 0.30e-3),
        ("fr3.yaml", ("fr3_d405", "camera_poses.csv"), "10-fold", 1.2e-3),
        ("fanuc-r2000ic-165f.yaml", ("fanuc_r2000ic_165f", "three_smr.csv"), "leave-one-out over 36", 0.34e-3),
    ],
)
def test_held_out_error_of_described_arms(robot, parts, method, limit):
    result = calibrated(ROBOTS / robot, *parts)
    assert method in result.held_out.method
    assert result.held_out.after.position.mean() < limit
    assert result.held_out_geometric.after.position.mean() < limit  # also with what a URDF can hold
    assert result.advice is Advice.TRUSTED


def test_talos_arm_is_found_in_its_branched_description():
    result = calibrated(
        real_data("kinematics", "talos_leftarm", "talos_full_v2.urdf"),
        "talos_leftarm",
        "talos_left_arm_02_10_contact.csv",
    )
    assert result.nominal.joint_names[0] == "torso_1_joint"
    assert result.nominal.n_joints == 9
    assert "10-fold" in result.held_out.method
    assert result.held_out.after.position.mean() < 0.64e-3
    assert result.advice is Advice.TRUSTED


def test_camera_set_without_gain_is_told_so():
    result = calibrated(
        real_data("kinematics", "ur10_camera_figaroh", "ur10_robot.urdf"), "ur10_camera_figaroh", "calibration.csv"
    )
    assert result.advice is Advice.NO_GAIN


def test_two_series_with_the_tracker_moved_do_not_share_frames():
    arm = load_arm(str(ROBOTS / "ur10.yaml"), [])
    parts = [
        read_poses(real_data("kinematics", "ur10_ipa", name), arm.joint_names)
        for name in ("series_A.csv", "series_B.csv")
    ]
    assert not frame_test(arm, parts).sensor


def test_stale_rows_of_series_b_are_named():
    arm = load_arm(str(ROBOTS / "ur10.yaml"), [])
    _, notes = diagnose(arm, read_poses(real_data("kinematics", "ur10_ipa", "series_B.csv"), arm.joint_names))
    note = next(n for n in notes if n.code == "duplicated-target")
    assert "series_B.csv:534" in note.message
