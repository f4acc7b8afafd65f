"""`armid calibrate` end to end on simulated measurements."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.calibration.start import ALL
from armid.cli import application
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.correction import load_correction
from armid.kinematics.model import ErrorModel, FrameModel
from armid.kinematics.rotations import quaternion_from_matrix, rigid, rotation_exp
from armid.parameters.space import OwnerKind
from armid.robot.load import load_robot
from armid.robot.urdf.write import new_urdf

KEYS = (
    "parameters",
    "identified",
    "position_error_before",
    "position_error_after",
    "position_error_held_out",
    "orientation_error_before",
    "orientation_error_after",
    "orientation_error_held_out",
    "verdict",
    "files",
)


def run(*arguments):
    return CliRunner().invoke(application(), ["calibrate", *map(str, arguments)])


def write_poses(path, q, T):
    rows = np.column_stack([q, T[:, :3, 3], quaternion_from_matrix(T[:, :3, :3])])
    header = [*(f"q{i + 1}" for i in range(q.shape[1])), "x", "y", "z", "qw", "qx", "qy", "qz"]
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(header)
        writer.writerows([[repr(float(x)) for x in row] for row in rows])
    return path


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A URDF, an arm that deviates from it, and its measured poses, fitted and held out."""
    folder = tmp_path_factory.mktemp("workshop")
    rng = np.random.default_rng(8)
    (folder / "arm.urdf").write_text(new_urdf(load_robot("ur10e")))
    robot = load_robot(folder / "arm.urdf")
    frames = [rigid(rotation_exp(rng.normal(size=3)), rng.normal(size=3)) for _ in range(2)]
    model = kinematic_model(
        robot,
        ErrorModel(),
        setups={"sensor": FrameModel.around(frames[0], ALL, outside=True)},
        targets={"tool": FrameModel.around(0.2 * frames[1] + np.diag([0.8, 0.8, 0.8, 0.8]), ALL, outside=False)},
    )
    arm = model.owned(OwnerKind.LINK, OwnerKind.JOINT)
    values = np.where(arm, 0.3 * model.tolerances * rng.normal(size=len(arm)), 0.0)
    for name, count in (("fit", 50), ("other", 30)):
        q = rng.uniform(-2, 2, (count, 6))
        T = predicted_poses(model, values, q, setup="sensor", target="tool")
        T[:, :3, 3] += 1e-5 * rng.normal(size=(count, 3))
        write_poses(folder / f"{name}.csv", q, T)
    return folder


def test_contract_files_and_round_trip(workshop, tmp_path):
    out = tmp_path / "out"
    result = run(
        workshop / "arm.urdf",
        workshop / "fit.csv",
        "--validate",
        workshop / "other.csv",
        "--terms",
        "offset",
        "--enough",
        "--compensate",
        workshop / "other.csv",
        "--out",
        out,
        "--json",
    )
    assert result.exit_code == 0, result.stderr
    data = json.loads(result.stdout)
    assert all(key in data for key in KEYS)
    assert data["verdict"] == "trusted"
    assert data["identified"] == 30
    assert data["position_error_held_out"]["mean"] < 1e-4 < data["position_error_before"]["mean"]
    assert data["position_error_held_out"]["count"] == 30
    assert [row["configurations"] for row in data["enough"]] == sorted(row["configurations"] for row in data["enough"])
    assert set(data["files"]) >= {
        "urdf",
        "yaml",
        "correction",
        "residuals",
        "mdh",
        "dh",
        "summary",
        "targets",
        "report",
    }
    page = Path(data["files"]["report"]).read_text()
    assert all(anchor in page for anchor in ("histogram-position", "error-map", "joint3.offset", "enough"))
    nominal = load_robot(workshop / "arm.urdf")
    model, values = load_correction(data["files"]["correction"], nominal)
    q = np.random.default_rng(0).uniform(-3, 3, (50, 6))
    expected = predicted_poses(model, values, q)
    for kind in ("urdf", "yaml"):
        arm = load_robot(data["files"][kind])
        np.testing.assert_allclose(forward_kinematics(arm, q), expected, atol=1e-9)
    np.testing.assert_allclose(expected[:, :3, 3], forward_kinematics(nominal, q)[:, :3, 3], atol=0.1)


def test_people_get_tables_and_machines_an_exit_code(workshop, tmp_path):
    rng = np.random.default_rng(0)
    robot = load_robot("ur10e")
    q = rng.uniform(-2, 2, (30, 6))
    T = forward_kinematics(robot, q)
    T[:, :3, 3] += 5e-3 * rng.normal(size=(30, 3))
    path = write_poses(tmp_path / "noisy.csv", q, T)
    result = run("ur10e", path, "--terms", "offset", "--folds", 3, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "no held-out gain" in result.stdout
    assert "untrusted" in result.stdout
    assert "wrote" in result.stderr
    assert "wrote" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "match"),
    [
        (("ur10e", "missing.csv"), 1, "no such file"),
        (("ur10e", "missing.csv", "--model", "euler"), 2, "is not one of"),
        (("ur10e", "{fit}", "--terms", "offset,friction"), 2, "no 'friction'; there are"),
        (("ur10e", "missing.csv", "--orientation", "euler"), 2, "is not one of"),
        (("panda", "{fit}"), 1, "7 joints"),
    ],
)
def test_refusals(workshop, arguments, code, match):
    filled = [a.format(fit=workshop / "fit.csv") for a in arguments]
    result = run(*filled)
    assert result.exit_code == code
    assert match in " ".join(result.stderr.replace("│", " ").split())


def test_two_files_in_two_setups(workshop, tmp_path):
    rng = np.random.default_rng(1)
    robot = load_robot("ur10e")
    files = []
    for k in range(2):
        q = rng.uniform(-2, 2, (25, 6))
        Z = rigid(rotation_exp(rng.normal(size=3)), rng.normal(size=3))
        files.append(write_poses(tmp_path / f"part{k}.csv", q, Z @ forward_kinematics(robot, q)))
    result = run("ur10e", *files, "--terms", "offset", "--folds", 2, "--out", tmp_path / "out", "--json")
    data = json.loads(result.stdout)
    assert set(data["T_sensor_base"]) == {"part0.sensor", "part1.sensor"}
    assert data["position_error_after"]["max"] < 1e-6
