"""`armid sweep` from outside: motions planned, run on the embedded arm, analysed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.robot.load import load_robot
from armid.simulation.dynamics import RigidModel

RUNNER = CliRunner()


def run(*arguments: object, code: int = 0) -> dict[str, object]:
    done = RUNNER.invoke(application(), [*(str(a) for a in arguments), "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_from_poses_to_inertia(tmp_path: Path) -> None:
    pose = np.array([0.1, 0.3, 0.4, 0.2, 0.5, 0.3])
    (tmp_path / "poses.csv").write_text("q1,q2,q3,q4,q5,q6\n" + ",".join(map(str, pose)) + "\n")
    planned = run("sweep", "mabi-max100", "--plan", tmp_path / "poses.csv", "--axis", "joint1", "--out", tmp_path)
    assert [Path(f).name for f in planned["files"]] == ["pose1-joint1.csv"]
    simulated = run(
        "simulate",
        "mabi-max100",
        planned["files"][0],
        "--format",
        "npz",
        "--sensors",
        "perfect",
        "--out",
        tmp_path / "log",
    )
    log = next(f for f in simulated["files"] if f.endswith(".npz") and "truth" not in f)
    result = run("sweep", "mabi-max100", log, "--out", tmp_path)
    axis = result["axes"][0]
    assert axis["axis"] == "joint1"
    truth = RigidModel(load_robot("mabi-max100")).mass_matrix(pose, rotors=True)[0, 0]
    assert axis["inertia"] == pytest.approx(truth, rel=0.01)
    assert axis["viscous"] == pytest.approx(350.0, rel=0.1)
    assert axis["standard_deviation"] > 0.0
    assert (tmp_path / "sweep.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sweep", "mabi-max100"), "none given"),
        (("sweep", "mabi-max100", "--plan", "poses.csv"), "--out DIR"),
        (("sweep", "mabi-max100", "nothing.csv"), "nothing.csv"),
    ],
)
def test_known_failures_are_one_line(arguments: tuple[str, ...], message: str) -> None:
    done = RUNNER.invoke(application(), list(arguments))
    assert done.exit_code == 1
    assert message in done.stderr
