"""What is wrong with a poses file, said in one line by the command, with the likely cause; and files that are merely hard."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from armid.calibration.calibrate import calibrate
from armid.calibration.readings import readings
from armid.cli import application
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.measurement import MeasurementError, Observed
from armid.kinematics.rotations import inverse
from armid.robot.load import load_robot
from armid.robot.quaternion import quaternion_from_matrix
from support.calibration_cells import Cell
from support.measured_arm import MeasuredArm, pose_columns, position_columns, write_table


@pytest.fixture(scope="module")
def recording():
    arm = MeasuredArm(load_robot("ur10e"), np.random.default_rng(31))
    q = arm.configurations(30)
    return arm, q, arm.noisy(arm.Z @ arm.tool_in_base(q))


def command(path, *options):
    done = CliRunner().invoke(
        application(),
        [
            "calibrate",
            "ur10e",
            str(path),
            "--terms",
            "offset",
            "--folds",
            "3",
            "--json",
            "--out",
            str(path.parent / "out"),
            *options,
        ],
    )
    return done, " ".join(done.stderr.replace("│", " ").split())


def angles(T, names, order):
    return dict(zip(names, Rotation.from_matrix(T[:, :3, :3]).as_euler(order).T, strict=True))


def some_rows(x, factor, rows=slice(20, None)):
    out = np.array(x)
    out[rows] *= factor
    return out


def changed(q, i, j):
    out = np.array(q)
    out[:, [i, j]] = q[:, [j, i]]
    return out


def with_position(T, p):
    out = np.array(T)
    out[:, :3, 3] = p
    return out


RPY = ("roll", "pitch", "yaw")
QUATERNION = ("qw", "qx", "qy", "qz")
MISTAKES = {
    "degrees": (lambda a, q, T: a.joints(np.degrees(q)) | pose_columns(T), "--angles deg"),
    "some rows in degrees": (
        lambda a, q, T: a.joints(some_rows(q, 180 / np.pi)) | pose_columns(T),
        "p.csv:22): these are degrees",
    ),
    "millimetres": (lambda a, q, T: a.joints(q) | pose_columns(with_position(T, 1e3 * T[:, :3, 3])), "--lengths mm"),
    "some rows in millimetres": (
        lambda a, q, T: a.joints(q) | pose_columns(with_position(T, some_rows(T[:, :3, 3], 1e3))),
        "p.csv:22: units are mixed within the file",
    ),
    "quaternion not normalised": (
        lambda a, q, T: a.joints(q) | pose_columns(T) | {"qw": 1.5 + 0 * q[:, 0]},
        "not normalised",
    ),
    "quaternion x y z w": (
        lambda a, q, T: (
            a.joints(q)
            | position_columns(T[:, :3, 3])
            | dict(zip(QUATERNION, np.roll(quaternion_from_matrix(T[:, :3, :3]), -1, axis=1).T, strict=True))
        ),
        "--orientation quaternion-xyzw",
    ),
    "Euler zyx": (lambda a, q, T: a.joints(q) | position_columns(T[:, :3, 3]) | angles(T, RPY, "zyx"), "euler-zyx"),
    "Euler ZYX": (lambda a, q, T: a.joints(q) | position_columns(T[:, :3, 3]) | angles(T, RPY, "ZYX"), "euler-ZYX"),
    "Euler ZYZ": (lambda a, q, T: a.joints(q) | position_columns(T[:, :3, 3]) | angles(T, RPY, "ZYZ"), "euler-ZYZ"),
    "swapped joints": (
        lambda a, q, T: a.joints(changed(q, 2, 4)) | pose_columns(T),
        "elbow_joint and wrist_2_joint are swapped",
    ),
    "joints from the tip": (lambda a, q, T: a.joints(q[:, ::-1]) | pose_columns(T), "listed from the tip to the base"),
    "another zero": (
        lambda a, q, T: a.joints(q + np.pi / 2 * np.eye(6)[1]) | pose_columns(T),
        "shoulder_lift_joint counts from another zero: add -90 deg",
    ),
    "camera on the hand": (lambda a, q, T: a.joints(q) | pose_columns(inverse(T)), "--sensor hand"),
    "left-handed": (lambda a, q, T: a.joints(q) | position_columns(T[:, :3, 3] * [1, 1, -1]), "axes are left-handed"),
    "two configurations": (
        lambda a, q, T: a.joints(q[:2]) | position_columns(T[:2, :3, 3]),
        "6 equations from 2 configurations",
    ),
    "another arm": (lambda a, q, T: a.joints(q[::-1]) | pose_columns(T), "is this the right robot"),
    "no rotation matrix": (
        lambda a, q, T: (
            a.joints(q)
            | position_columns(T[:, :3, 3])
            | {f"r{i + 1}{j + 1}": 1.1 * T[:, i, j] for i in range(3) for j in range(3)}
        ),
        "no rotation matrix",
    ),
    "no length": (lambda a, q, T: a.joints(q) | {"distance": -(T[:, 0, 3] ** 2)}, "expected > 0"),
}


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_mistakes_are_refused_with_their_cause(recording, tmp_path, mistake):
    make, words = MISTAKES[mistake]
    done, said = command(write_table(tmp_path / "p.csv", make(*recording)))
    assert done.exit_code == 1
    assert words in said
    assert "Traceback" not in said
    assert words in json.loads(done.stdout)["error"]["message"]


def test_the_flag_that_is_named_is_the_cure(recording, tmp_path):
    for mistake, flag in (
        ("Euler ZYX", ("--orientation", "euler-ZYX")),
        ("degrees", ("--angles", "deg")),
        ("millimetres", ("--lengths", "mm")),
        ("camera on the hand", ("--sensor", "hand")),
    ):
        done, said = command(write_table(tmp_path / "p.csv", MISTAKES[mistake][0](*recording)), *flag)
        assert done.exit_code == 0, (mistake, said)


def test_duplicated_targets_are_named_and_left_out(recording, tmp_path):
    arm, q, T = recording
    S = np.array(T)
    S[[7, 19]] = S[3]
    done, _ = command(write_table(tmp_path / "p.csv", arm.joints(q) | pose_columns(S)))
    data = json.loads(done.stdout)
    note = next(n for n in data["notes"] if n["code"] == "duplicated-target")
    assert "p.csv:9" in note["message"]
    assert "p.csv:21" in note["message"]
    assert data["verdict"] == "trusted"


def test_fewer_equations_than_parameters_are_named_and_not_believed(recording, tmp_path):
    arm, q, T = recording
    done, _ = command(write_table(tmp_path / "p.csv", arm.joints(q[:6]) | position_columns(T[:6, :3, 3])))
    data = json.loads(done.stdout)
    assert done.exit_code == 3
    assert any(n["code"] == "few-equations" for n in data["notes"])
    assert data["identified"] <= 0.75 * 18
    for kind in ("urdf", "yaml"):
        with Path(data["files"][kind]).open() as handle:
            assert "UNVALIDATED: no held-out gain" in handle.read()
        assert load_robot(data["files"][kind]).n_joints == 6


def test_bad_rows_are_named_and_do_not_decide(recording, tmp_path):
    """One row in twenty points elsewhere: the fit, the verdict and the names of the rows are right."""
    arm, _, _ = recording
    q = arm.configurations(60)
    T = arm.noisy(arm.Z @ arm.tool_in_base(q))
    T[[5, 25, 45], :3, 3] += 0.3
    done, _ = command(write_table(tmp_path / "p.csv", arm.joints(q) | pose_columns(T)))
    data = json.loads(done.stdout)
    assert {x["row"] for x in data["outliers"][:3]} == {"p.csv:7", "p.csv:27", "p.csv:47"}
    assert data["verdict"] == "trusted"
    assert data["position_error_held_out"]["median"] < 2e-4


def test_an_arm_far_from_its_description_is_calibrated_with_a_warning(tmp_path):
    arm = MeasuredArm(load_robot("panda"), np.random.default_rng(0), size=1.0)
    q = arm.configurations(40)
    path = write_table(tmp_path / "p.csv", arm.joints(q) | pose_columns(arm.noisy(arm.Z @ arm.tool_in_base(q))))
    done = CliRunner().invoke(
        application(),
        [
            "calibrate",
            "panda",
            str(path),
            "--terms",
            "offset",
            "--folds",
            "3",
            "--json",
            "--out",
            str(tmp_path / "out"),
        ],
    )
    data = json.loads(done.stdout)
    assert any(n["code"] == "far-from-nominal" for n in data["notes"])
    assert data["position_error_before"]["mean"] > 0.015
    assert data["position_error_held_out"]["mean"] < 3e-4


def test_poses_that_nobody_measured_are_named(recording, tmp_path):
    """The controller's own tool pose, recorded instead of a tracker's."""
    _, q, _ = recording
    T = forward_kinematics(load_robot("ur10e"), q)
    columns = {f"q{i + 1}": q[:, i] for i in range(6)}
    done, _ = command(write_table(tmp_path / "p.csv", columns | pose_columns(T)))
    data = json.loads(done.stdout)
    assert any(n["code"] == "computed-poses" for n in data["notes"])
    assert (data["verdict"], data["advice"]) == ("untrusted", "no held-out gain")


def test_slides_in_millimetres(tmp_path):
    arm = MeasuredArm(load_robot("cylindrical"), np.random.default_rng(2))
    q = arm.configurations(30)
    T = arm.noisy(arm.Z @ arm.tool_in_base(q))
    path = write_table(tmp_path / "p.csv", arm.joints(q * [1, 1e3, 1e3]) | pose_columns(T))
    done = CliRunner().invoke(application(), ["calibrate", "cylindrical", str(path), "--out", str(tmp_path / "o")])
    assert done.exit_code == 1
    assert "prismatic joints are in millimetres" in " ".join(done.stderr.split())


def test_one_axis_alone_is_refused_and_not_taken_for_millimetres():
    cell, rng = Cell.drawn("ur10e", seed=2), np.random.default_rng(2)
    q = np.zeros((8, 6))
    q[:, 1] = np.linspace(-0.8, 0.8, 8)
    with pytest.raises(MeasurementError, match=r"only .*shoulder_lift.* moves: one axis alone"):
        calibrate(cell.robot, cell.measured(8, rng, q=q))
    with pytest.raises(MeasurementError, match="no joint moves"):
        calibrate(cell.robot, cell.measured(8, rng, q=np.zeros((8, 6))))
    # A target that may be put on the axes that turn fits anything that is made small enough.
    q = cell.poses(20, rng)
    q[:, :3] = 0.0
    m = cell.measured(20, rng, q=q, quantity=Observed.POSITION)
    assert not any("are in millimetres" in r.cause for r in readings(cell.robot, m))
    (o,) = m.observations
    m = replace(m, observations=(replace(o, position=1e3 * o.position),))
    assert any("are in millimetres" in r.cause for r in readings(cell.robot, m))
