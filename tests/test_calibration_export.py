"""What a calibration writes, read by others: Pinocchio on the URDF, plain products on the tables, MuJoCo on the targets."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import calibrated_robot, predicted_poses
from armid.kinematics.correction import load_correction
from armid.kinematics.model import ErrorModel
from armid.kinematics.rotations import quaternion_from_matrix, rigid, rotation_exp
from armid.kinematics.tables import denavit_tables
from armid.robot.load import load_robot
from armid.robot.urdf.write import new_urdf
from armid.simulation import EncoderErrors, Tracker, track_poses, write_poses

RAILED = """\
<?xml version="1.0"?>
<robot name="railed">
  <link name="floor"/>
  <joint name="rail" type="prismatic">
    <parent link="floor"/><child link="cart"/><origin xyz="0 0 0.4" rpy="0 0 0.3"/><axis xyz="0 1 0"/>
    <limit lower="-0.8" upper="0.8" velocity="1" effort="500"/>
  </joint>
  <link name="cart"/>
  <joint name="turn" type="revolute">
    <parent link="cart"/><child link="column"/><origin xyz="0 0 0.2"/><axis xyz="0 0 1"/>
    <limit lower="-2.5" upper="2.5" velocity="2" effort="100"/>
  </joint>
  <link name="column"/>
  <joint name="lift" type="revolute">
    <parent link="column"/><child link="boom"/><origin xyz="0.15 0 0.3" rpy="-1.5707963 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="2" effort="100"/>
  </joint>
  <link name="boom"/>
  <joint name="elbow" type="revolute">
    <parent link="boom"/><child link="arm"/><origin xyz="0.5 0.05 0"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="2" effort="100"/>
  </joint>
  <link name="arm"/>
  <joint name="quill" type="prismatic">
    <parent link="arm"/><child link="ram"/><origin xyz="0.4 0 0" rpy="0.4 1.2 0"/><axis xyz="0 0 -1"/>
    <limit lower="-0.2" upper="0.3" velocity="1" effort="100"/>
  </joint>
  <link name="ram"/>
  <joint name="roll" type="revolute">
    <parent link="ram"/><child link="hand"/><origin xyz="0 0.1 0" rpy="1.5 0 0"/><axis xyz="0.6 0 0.8"/>
    <limit lower="-3" upper="3" velocity="3" effort="20"/>
  </joint>
  <link name="hand"/>
  <joint name="mount" type="fixed"><parent link="hand"/><child link="tool0"/><origin xyz="0 0.02 0.1" rpy="0 0.3 0"/></joint>
  <link name="tool0"/>
</robot>
"""


def run(*words: object):
    return CliRunner().invoke(application(), [str(word) for word in words])


def within_limits(robot, count, rng):
    lower, upper = robot.limit("lower"), robot.limit("upper")
    return rng.uniform(np.maximum(0.6 * lower, -2.0), np.minimum(0.6 * upper, 2.0), (count, robot.n_joints))


@pytest.fixture(scope="module", params=["railed", "ur10e", "lwr4plus"])
def calibrated(request, tmp_path_factory):
    """A description, a misbuilt arm tracked in MuJoCo, and the files of its calibration: slides, parallel axes, MDH."""
    folder = tmp_path_factory.mktemp(request.param)
    text = RAILED if request.param == "railed" else new_urdf(load_robot(request.param))
    (folder / "arm.urdf").write_text(text)
    nominal = load_robot(folder / "arm.urdf")
    rng = np.random.default_rng(3)
    model = kinematic_model(nominal, ErrorModel(), setups={}, targets={})
    # What poses of the target cannot tell from the frames of tracker and target stays as described: the first joint, and
    # turning about and sliding along the last one.
    last = nominal.n_joints
    fixed = ("link1.", "joint1.", f"joint{last}.", f"link{last}.tz")
    free = [not name.startswith(fixed) for name in model.names]
    values = np.where(free, 0.3 * model.tolerances * rng.normal(size=len(free)), 0.0)
    real = calibrated_robot(model, values)
    tracker = Tracker(
        rigid(rotation_exp(rng.normal(size=3)), rng.normal(size=3)), position_noise=1e-5, orientation_noise=1e-5
    )
    write_poses(track_poses(real, within_limits(nominal, 60, rng), tracker, seed=1), folder / "poses.csv")
    done = run(
        "calibrate", folder / "arm.urdf", folder / "poses.csv", "--terms", "offset", "--out", folder / "out", "--json"
    )
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["position_error_held_out"]["mean"] < 0.1 * data["position_error_held_out_before"]["mean"]
    return folder, nominal, (real, replace(tracker, position_noise=0.0, orientation_noise=0.0)), data["files"]


def predicted(calibrated, q):
    """The tip in the base frame by the correction file."""
    _, nominal, _, files = calibrated
    return predicted_poses(*load_correction(files["correction"], nominal), q)


def test_urdf_in_pinocchio(calibrated):
    """Joint origins and offsets folded in as users expect: the same joint positions, the calibrated pose."""
    _, nominal, _, files = calibrated
    arm = pin.buildModelFromUrdf(files["urdf"])
    data = arm.createData()
    rng = np.random.default_rng(0)
    q = rng.uniform(-1.5, 1.5, (30, nominal.n_joints))
    want = predicted(calibrated, q)
    frame = arm.getFrameId(nominal.tip.name)
    for row, T in zip(q, want, strict=True):
        full = np.zeros(arm.nq)
        for name, x in zip(nominal.joint_names, row, strict=True):
            full[arm.joints[arm.getJointId(name)].idx_q] = x
        pin.framesForwardKinematics(arm, data, full)
        assert np.abs(data.oMf[frame].homogeneous - T).max() < 1e-9
    assert np.abs(want - forward_kinematics(nominal, q)).max() > 1e-4


def test_yaml_round_trip(calibrated):
    q = np.random.default_rng(1).uniform(-1.5, 1.5, (30, calibrated[1].n_joints))
    assert np.abs(forward_kinematics(load_robot(calibrated[3]["yaml"]), q) - predicted(calibrated, q)).max() < 1e-9


def turn(axis, angle):
    out = np.eye(4)
    out[:3, :3] = rotation_exp(angle * np.eye(3)[axis])
    return out


def slide(axis, length):
    out = np.eye(4)
    out[axis, 3] = length
    return out


@pytest.mark.parametrize("kind", ["mdh", "dh"])
@pytest.mark.parametrize("suffix", ["", "_calibrated"])
def test_tables_by_plain_products(calibrated, kind, suffix):
    """The numbers in the file alone give the whole arm, as the header of `calibration.tables` says."""
    _, nominal, _, files = calibrated
    with Path(files[kind]).open() as handle:
        rows = [row for row in csv.DictReader(handle) if not row["row"].startswith(("sensor ", "target "))]
    q = np.random.default_rng(2).uniform(-1.0, 1.0, (10, nominal.n_joints))
    want = predicted(calibrated, q) if suffix else forward_kinematics(nominal, q)
    for positions, T_want in zip(q, want, strict=True):
        T = np.eye(4)
        for row in rows:
            alpha, a, beta, theta, d = (float(row[c + suffix]) for c in ("alpha", "a", "beta", "theta", "d"))
            if row["row"] in nominal.joint_names:
                i = nominal.joint_names.index(row["row"])
                if nominal.joints[i].kind.value == "prismatic":
                    d += positions[i]
                else:
                    theta += positions[i]
            across = turn(0, alpha) @ slide(0, a) @ turn(1, beta)
            along = turn(2, theta) @ slide(2, d)
            T = T @ (across @ along if kind == "mdh" else along @ across)
        assert np.abs(T - T_want).max() < 1e-9


@pytest.mark.parametrize("kind", ["mdh", "dh"])
def test_tables_hold_sensor_and_target_too(calibrated, kind):
    """Two rows each: from the sensor to the base, and from the tip to the target."""
    _, nominal, _, files = calibrated
    frames = json.loads(Path(files["correction"]).read_text())
    T_link_tip = nominal.tip.T_link_frame
    want = {f"sensor {n}": np.array(T) for n, T in frames["T_sensor_base"].items()}
    want |= {f"target {n}": np.linalg.inv(T_link_tip) @ np.array(T) for n, T in frames["T_link_target"].items()}
    with Path(files[kind]).open() as handle:
        rows = {row["row"]: row for row in csv.DictReader(handle)}
    for name, T_want in want.items():
        T = np.eye(4)
        for number in (1, 2):
            row = rows[f"{name} {number}"]
            assert row["alpha"] == ""  # nobody described them
            alpha, a, beta, theta, d = (float(row[f"{c}_calibrated"]) for c in ("alpha", "a", "beta", "theta", "d"))
            across, along = turn(0, alpha) @ slide(0, a) @ turn(1, beta), turn(2, theta) @ slide(2, d)
            T = T @ (across @ along if kind == "mdh" else along @ across)
        assert np.abs(T - T_want).max() < 1e-9


def test_tables_of_the_two_arms_differ_by_corrections_only(calibrated):
    _, nominal, _, files = calibrated
    before, after = denavit_tables(nominal, load_robot(files["yaml"]), modified=True)
    for old, new in zip(before, after, strict=True):
        assert abs(new.alpha - old.alpha) < 0.02
        assert abs(new.a - old.a) < 0.02
        assert abs(new.beta - old.beta) < 0.02


def test_compensated_targets_take_the_real_arm_where_the_nominal_would_go(calibrated):
    """Commanded in MuJoCo: what is left is what calibration leaves."""
    folder, nominal, (real, tracker), files = calibrated
    q = within_limits(nominal, 12, np.random.default_rng(7))
    with (folder / "targets.csv").open("w", newline="") as handle:
        csv.writer(handle).writerows([nominal.joint_names, *q.tolist()])
    done = run(
        "compensate", folder / "arm.urdf", files["correction"], folder / "targets.csv", "--out", folder / "c", "--json"
    )
    answer = json.loads(done.stdout)
    assert answer["usable"] >= 9  # the arm on a rail has poses that only it can take
    assert done.exit_code == (0 if answer["usable"] == 12 else 3)
    with Path(answer["file"]).open() as handle:
        rows = list(csv.DictReader(handle))
    commanded = np.array([[float(row[name]) for name in nominal.joint_names] for row in rows])
    usable = [float(row["orientation_error"]) < 1e-6 and row["within_limits"] == "true" for row in rows]
    assert sum(usable) == answer["usable"]
    q, commanded = q[usable], commanded[usable]
    # Seen by the tracker, since a base or a tip that nobody measured is only where its own frame says.
    frames = json.loads(Path(files["correction"]).read_text())
    T_sensor_base, T_link_target = (
        np.array(next(iter(frames[k].values()))) for k in ("T_sensor_base", "T_link_target")
    )
    wanted = T_sensor_base @ forward_kinematics(nominal, q, nominal.link_names[-1]) @ T_link_target
    before, after = (
        np.linalg.norm((track_poses(real, x, tracker).T_tracker_target - wanted)[:, :3, 3], axis=1)
        for x in (q, commanded)
    )
    assert after.mean() < 0.1 * before.mean()
    assert after.max() < 1e-4


def test_poses_may_be_given_and_what_cannot_be_reached_is_said(calibrated):
    folder, nominal, _, files = calibrated
    q = within_limits(nominal, 4, np.random.default_rng(8))
    goals = forward_kinematics(nominal, q)
    goals[3, :3, 3] += 20.0
    start = q + 0.01
    with (folder / "goals.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow([*nominal.joint_names, "x", "y", "z", "qw", "qx", "qy", "qz"])
        for row, T in zip(start, goals, strict=True):
            writer.writerow(
                [repr(float(v)) for v in (*row, *T[:3, 3], *quaternion_from_matrix(T[np.newaxis, :3, :3])[0])]
            )
    done = run(
        "compensate",
        folder / "arm.urdf",
        files["correction"],
        folder / "goals.csv",
        "--poses",
        "--out",
        folder / "p",
        "--json",
    )
    assert done.exit_code == 3  # the last is twenty metres away
    answer = json.loads(done.stdout)
    assert answer["reached"] == 3
    with Path(answer["file"]).open() as handle:
        found = np.array([[float(row[name]) for name in nominal.joint_names] for row in csv.DictReader(handle)])
    assert np.abs(predicted(calibrated, found[:3]) - goals[:3]).max() < 1e-8


def test_encoder_errors_are_compensated_too(tmp_path):
    """Eccentric encoders: the commanded position is what the encoder must show."""
    nominal = load_robot("ur10e")
    errors = EncoderErrors(eccentricity=3e-3, eccentricity_phase=0.7)
    rng = np.random.default_rng(2)
    write_poses(track_poses(nominal, within_limits(nominal, 80, rng), errors=errors, seed=1), tmp_path / "poses.csv")
    done = run(
        "calibrate",
        "ur10e",
        tmp_path / "poses.csv",
        "--terms",
        "offset,eccentricity",
        "--out",
        tmp_path / "out",
        "--json",
    )
    assert done.exit_code == 0, done.stderr
    q = within_limits(nominal, 10, rng)
    with (tmp_path / "t.csv").open("w", newline="") as handle:
        csv.writer(handle).writerows([nominal.joint_names, *q.tolist()])
    done = run(
        "compensate",
        "ur10e",
        tmp_path / "out" / "correction.json",
        tmp_path / "t.csv",
        "--out",
        tmp_path / "compensated",
        "--json",
    )
    with Path(json.loads(done.stdout)["file"]).open() as handle:
        commanded = np.array([[float(row[name]) for name in nominal.joint_names] for row in csv.DictReader(handle)])
    T = track_poses(nominal, commanded, errors=errors).T_tracker_target
    away = np.linalg.norm((T - forward_kinematics(nominal, q))[:, :3, 3], axis=1)
    assert away.max() < 2e-5
