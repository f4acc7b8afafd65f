"""A tracker's poses against our own kinematics."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from armid.errors import InputError, ShapeError
from armid.kernels.dynamics import gravity
from armid.kernels.kinematics import forward_kinematics
from armid.motions.postures import load_postures
from armid.robot import Link
from armid.robot.load import load_robot
from armid.robot.quaternion import quaternion_from_matrix
from armid.simulation.tracker import EncoderErrors, Tracker, rotation, track_poses, write_poses


@pytest.fixture(scope="module")
def robot():
    return load_robot("lwr4plus")


@pytest.fixture(scope="module")
def q():
    return np.random.default_rng(0).uniform(-1.0, 1.0, size=(400, 7))


def placed(vector, xyz):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_rotvec(vector).as_matrix(), xyz
    return T


def test_a_perfect_tracker_sees_the_tip_in_its_own_frame(robot, q):
    tracker = Tracker(placed([0.1, 0.2, 1.0], [2.0, 0.0, 1.0]), placed([0.0, 0.3, 0.0], [0.0, 0.0, 0.05]))
    T = track_poses(robot, q, tracker).T_tracker_target
    expected = tracker.T_tracker_base @ forward_kinematics(robot, q) @ tracker.T_tip_target
    np.testing.assert_allclose(T, expected, atol=1e-12)


def test_noise_of_position_and_orientation(robot, q):
    tracker = Tracker(position_noise=1e-4, orientation_noise=2e-3)
    poses = track_poses(robot, q, tracker, seed=2)
    exact = forward_kinematics(robot, q)
    assert (poses.T_tracker_target[:, :3, 3] - exact[:, :3, 3]).std() == pytest.approx(1e-4, rel=0.06)
    turn = Rotation.from_matrix(np.swapaxes(exact[:, :3, :3], 1, 2) @ poses.T_tracker_target[:, :3, :3]).as_rotvec()
    assert turn.std() == pytest.approx(2e-3, rel=0.06)
    again = track_poses(robot, q, tracker, seed=2)
    np.testing.assert_array_equal(again.T_tracker_target, poses.T_tracker_target)


def test_compliance_and_eccentricity_move_the_links(robot, q):
    errors = EncoderErrors(compliance=1e-4, eccentricity=2e-3, eccentricity_phase=0.4)
    T = track_poses(robot, q, errors=errors).T_tracker_target
    turned = q + 2e-3 * np.sin(q + 0.4)
    np.testing.assert_allclose(T, forward_kinematics(robot, turned - 1e-4 * gravity(robot, turned)), atol=1e-10)
    shown = track_poses(robot, q, errors=EncoderErrors(noise=1e-3)).q
    assert (shown - q).std() == pytest.approx(1e-3, rel=0.06)


def test_kinematics_need_no_masses(robot, q):
    from dataclasses import replace

    bare = replace(robot, links=tuple(Link(link.name) for link in robot.links))
    np.testing.assert_allclose(track_poses(bare, q).T_tracker_target, forward_kinematics(robot, q), atol=1e-12)


def test_rotation_and_quaternion_agree_with_scipy():
    for turn in np.random.default_rng(1).normal(size=(20, 3)):
        R = rotation(turn)
        np.testing.assert_allclose(R, Rotation.from_rotvec(turn).as_matrix(), atol=1e-12)
        x, y, z, w = Rotation.from_matrix(R).as_quat(canonical=True)
        np.testing.assert_allclose(quaternion_from_matrix(R), [w, x, y, z], atol=1e-12)
    np.testing.assert_array_equal(rotation(np.zeros(3)), np.eye(3))


def test_poses_as_a_file(robot, q, tmp_path):
    poses = track_poses(robot, q[:5], Tracker(position_noise=1e-4, orientation_noise=1e-3))
    path = write_poses(poses, tmp_path / "poses.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert float(rows[2]["z"]) == pytest.approx(poses.T_tracker_target[2, 2, 3], abs=1e-11)
    assert float(rows[0]["std_rx"]) == 1e-3
    np.testing.assert_allclose(load_postures(path, robot), q[:5], atol=1e-11)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "header"),
        ("a,b\n1,2\n", "q1..q7"),
        ("q1,q2,q3,q4,q5,q6,q7\n", "no postures"),
        ("q1,q2,q3,q4,q5,q6,q7\n1,2,3\n", "without all its numbers"),
        ("q1,q2,q3,q4,q5,q6,q7\n1,2,3,4,5,6,x\n", "numbers"),
    ],
)
def test_bad_posture_files(robot, tmp_path, text, message):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_postures(path, robot)
    with pytest.raises(InputError, match=r"does not exist \(expected postures"):
        load_postures(tmp_path / "none.csv", robot)
    with pytest.raises(ShapeError, match="T_tip_target"):
        Tracker(T_tip_target=np.eye(3))
