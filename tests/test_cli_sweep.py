"""`armid sweep` from outside: motions planned, run on the embedded arm, analysed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.documents import plain
from armid.response.sweep import sweep
from armid.robot.load import load_robot
from armid.simulation.dynamics import RigidModel
from support.outcomes import answer_of

RUNNER = CliRunner()


def run(*arguments: object, code: int = 0) -> dict[str, object]:
    done = RUNNER.invoke(application(), [*(str(a) for a in arguments), "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_from_poses_to_inertia(tmp_path: Path) -> None:
    pose = np.array([0.1, 0.3, 0.4, 0.2, 0.5, 0.3])
    (tmp_path / "poses.csv").write_text("q1,q2,q3,q4,q5,q6\n" + ",".join(map(str, pose)) + "\n")
    planned = run(
        "sweep", "mabi-max100", "--plan", tmp_path / "poses.csv", "--axis", "joint1", "--out", tmp_path / "plan"
    )
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
    result = run("sweep", "mabi-max100", log, "--out", tmp_path / "swept")
    axis = result["axes"][0]
    assert axis["axis"] == "joint1"
    truth = RigidModel(load_robot("mabi-max100")).mass_matrix(pose, rotors=True)[0, 0]
    assert axis["inertia"] == pytest.approx(truth, rel=0.01)
    assert axis["viscous"] == pytest.approx(350.0, rel=0.1)
    assert axis["standard_deviation"] > 0.0
    assert (tmp_path / "swept" / "sweep.json").exists()
    assert answer_of(result) == plain(sweep("mabi-max100", log).as_dict())


def test_a_campaign_predicts_every_axis_at_every_fresh_pose_within_one_per_cent(tmp_path: Path) -> None:
    """Poses by expected error, motions, MuJoCo with typical sensors, 32 parameters: `bench/bench_sweep.py` is the long version.

    Torque noise is 0.3 % of the limit per sample at 1 kHz, encoders have 20 bits; 2.3 minutes of motion.
    """
    poses = tmp_path / "poses"
    chosen = run(
        "poses",
        "mabi-max100",
        "--for",
        "axis-inertia",
        "--method",
        "prediction",
        "--count",
        34,
        "--no-transitions",
        "--pool",
        1500,
        "--out",
        poses,
    )
    assert chosen["base_parameters"] == 32
    plan = run("sweep", "mabi-max100", "--plan", poses / "poses.json", "--minutes", 2.3, "--out", tmp_path / "motions")
    assert plan["minutes"] == pytest.approx(2.3, rel=0.1)
    assert max(a["worst_relative_deviation"] for a in plan["expected_accuracy"]) < 0.0025
    robot = load_robot("mabi-max100")
    logs = [simulated(path, tmp_path / "logs", k) for k, path in enumerate(plan["files"])]
    fresh = np.random.default_rng(9).uniform(robot.limit("lower"), robot.limit("upper"), size=(300, 6))
    np.savetxt(tmp_path / "fresh.csv", fresh, delimiter=",", header="q1,q2,q3,q4,q5,q6", comments="")
    result = run("sweep", "mabi-max100", *logs, "--parameters", "--predict", tmp_path / "fresh.csv")
    assert result["base_parameters"] == 32
    assert all(p["relative_standard_deviation"] > 0.0 for p in result["parameters"])
    rigid = RigidModel(robot)
    truth = np.array([np.diag(rigid.mass_matrix(q, rotors=True)) for q in fresh])
    error = np.array([p["inertia"] for p in result["predictions"]]) / truth - 1.0
    assert np.abs(error).max() < 0.01, np.abs(error).max(axis=0)
    score = (error * truth) / np.array([p["standard_deviation"] for p in result["predictions"]])
    assert np.sqrt(np.mean(score**2)) < 2.5


def simulated(motion: str, folder: Path, seed: int) -> Path:
    """A motion run on the embedded arm, which holds its other axes with a loop of 10 Hz."""
    made = run(
        "simulate",
        "mabi-max100",
        motion,
        "--format",
        "npz",
        "--sensors",
        "typical",
        "--seed",
        seed,
        "--out",
        folder / str(seed),
    )
    return next(Path(f) for f in made["files"] if f.endswith(".npz") and "truth" not in f)


def test_a_plan_needs_poses_of_this_arm(tmp_path: Path) -> None:
    (tmp_path / "poses.json").write_text(
        json.dumps({"joint_names": ["a"], "poses": [[0]], "measured": [[]], "purpose": "axis-inertia"})
    )
    (tmp_path / "bad.json").write_text("{}")
    for name, message in (("poses.json", "axis-inertia poses of mabi-max100"), ("bad.json", "expected poses.json")):
        done = RUNNER.invoke(
            application(), ["sweep", "mabi-max100", "--plan", str(tmp_path / name), "--out", str(tmp_path / "out")]
        )
        assert done.exit_code == 1
        assert message in done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sweep", "mabi-max100"), "no LOG given"),
        (("sweep", "mabi-max100", "--plan", "poses.csv"), "--out DIR"),
        (("sweep", "mabi-max100", "nothing.csv"), "nothing.csv"),
    ],
)
def test_known_failures_are_one_line(arguments: tuple[str, ...], message: str) -> None:
    done = RUNNER.invoke(application(), list(arguments))
    assert done.exit_code == 1
    assert message in done.stderr
