"""`armid sequential` and `armid elastic` from outside."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.kernels.dynamics import inverse_dynamics
from armid.robot.load import load_robot
from realdata import ROOT, real_data

RUNNER = CliRunner()


def run(*arguments: object, code: int = 0) -> dict[str, object]:
    done = RUNNER.invoke(application(), [*(str(a) for a in arguments), "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def stage_file(folder: Path, first: int) -> Path:
    """Three seconds of the direct-drive arm at 500 Hz with the joints before `first` on their brakes."""
    robot = load_robot("cmu-dd-arm2")
    t = np.arange(0.0, 3.0, 0.002)
    w = np.array([5.0, 7.0, 9.0])
    moves = np.arange(3) >= first
    q = np.where(moves, 0.7 * np.sin(np.outer(t, w)), 0.3)
    qd = np.where(moves, 0.7 * w * np.cos(np.outer(t, w)), 0.0)
    qdd = np.where(moves, -0.7 * w**2 * np.sin(np.outer(t, w)), 0.0)
    tau = inverse_dynamics(robot, q, qd, qdd)
    header = "time," + ",".join(f"{k}_{name}" for k in ("q", "tau") for name in robot.joint_names)
    path = folder / f"stage{first + 1}.csv"
    np.savetxt(path, np.column_stack([t, q, tau]), delimiter=",", header=header, comments="")
    return path


def test_stages_with_locked_joints(tmp_path: Path) -> None:
    files = [stage_file(tmp_path, k) for k in (0, 2, 1)]
    result = run("sequential", "cmu-dd-arm2", *files[1:], files[0], "--cutoff-hz", "40", "--out", tmp_path)
    assert result["base_parameters"] == 11
    assert [s["joint"] for s in result["stages"]][:2] == ["joint3", "joint3"]
    assert result["known_directions"] == 11
    robot = load_robot("cmu-dd-arm2")
    for p in result["parameters"]:
        truth = sum(c * robot.inertial[10 * (int(name[4]) - 1) + order(name)] for name, c in p["terms"].items())
        assert p["value"] == pytest.approx(truth, abs=2e-3), p["name"]
    assert (tmp_path / "sequential.json").exists()


def order(name: str) -> int:
    return ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz").index(name.split(".")[1])


def test_a_stage_alone_is_not_to_be_trusted(tmp_path: Path) -> None:
    result = run("sequential", "cmu-dd-arm2", stage_file(tmp_path, 2), "--cutoff-hz", "40", code=3)
    assert result["notes"][0]["code"] == "not-determined"
    assert result["stages"][0]["locked"] == ["joint1", "joint2"]


def test_elastic_joints_of_a_real_arm() -> None:
    mapping = ROOT / "docs" / "mappings" / "kr300-A-elastic.yaml"
    result = run("elastic", mapping, "--joint", "joint3", "--data-root", real_data())
    joint = result["joints"][0]
    assert 3e6 < joint["stiffness"] < 7e6
    assert joint["notes"][0]["code"] == "encoder-lag"
