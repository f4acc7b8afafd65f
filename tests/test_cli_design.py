"""`armid design`: the contract's keys, files that can be read back, exit codes."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.cli.design import design
from armid.cli.design_options import LIMITS, CriterionWord
from armid.design import statement
from armid.design.design import design_motion
from armid.identifiability.smooth import SmoothCriterion
from armid.motions.trajectory_files import load_trajectory
from armid.robot.load import load_robot

QUICK = ["--starts", "1", "--seconds", "0", "--workers", "1", "--harmonics", "3", "--period", "4"]
PLAIN = ["--friction", "viscous,coulomb"]


def run(*arguments: str):
    return CliRunner().invoke(application(), ["design", *arguments])


def test_design_writes_what_the_contract_says(tmp_path: Path):
    words = ["cylindrical", *QUICK, *PLAIN, "--criterion", "condition", "--out", str(tmp_path), "--json"]
    outcome = run(*words, "--home", "0,0.5,0.5", "--repeat", "2")
    assert outcome.exit_code == 0, outcome.stderr
    result = json.loads(outcome.stdout)
    for key in ("condition_number", "base_parameters", "feasible", "limit_usage", "seconds", "files"):
        assert key in result
    assert result["feasible"] is True
    assert result["seconds"] >= result["search_seconds"]
    assert set(result["limit_usage"]) >= {"position", "velocity", "acceleration", "torque"}
    assert max(result["limit_usage"].values()) <= 0.95 + 1e-6
    names = {Path(name).name for name in result["files"]}
    assert names == {
        "trajectory.json",
        "trajectory.csv",
        "joint_trajectory.json",
        "joint_trajectory.yaml",
        "answer.json",
        "answer.npz",
        "design.html",
        "search.json",
    }
    exact, table = load_trajectory(tmp_path / "trajectory.json"), load_trajectory(tmp_path / "trajectory.csv")
    assert exact.joint_names == load_robot("cylindrical").joint_names
    t = np.linspace(0.0, exact.duration, 50)
    np.testing.assert_allclose(exact.sample(t)[0], table.sample(t)[0], atol=1e-3)
    message = json.loads((tmp_path / "joint_trajectory.json").read_text())
    assert len(message["points"]) == len((tmp_path / "trajectory.csv").read_text().splitlines()) - 1
    page = (tmp_path / "design.html").read_text()
    assert "certified at every instant" in page
    assert "what remains weak" in page
    assert "default-src 'none'" in page
    again = run(*words, "--resume", str(tmp_path / "search.json"))
    assert json.loads(again.stdout)["condition_number"] <= result["condition_number"] * 1.001


def test_sequential_plan(tmp_path: Path):
    outcome = run("cylindrical", *QUICK, "--sequential", "--out", str(tmp_path), "--json")
    assert outcome.exit_code == 0, outcome.stderr
    result = json.loads(outcome.stdout)
    assert [e["first_moving_joint"] for e in result["experiments"]] == [3, 2, 1]
    assert result["feasible"]
    assert all(Path(name).is_file() for name in result["files"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--start", "0,0"], "start: 2 numbers"),
        (["--start", "0,9,0"], "start pose: joint2 at 9"),
        (["--period", "x"], "period"),
        (["--period", "30:10"], "shorter one first"),
        (["--resonance-hz", "0.5"], "too short for 3 harmonics"),
        (["--goal-reserve", "joint9=0.5", "--goal-condition", "9"], "joint9"),
        (["--goal-reserve", "joint1=2", "--goal-condition", "9"], "fraction of the torque limit"),
        (["--cell", "nowhere"], "no cell named 'nowhere'"),
        (["--resume", "nothing.json"], "expected a search to resume"),
    ],
)
def test_bad_input_is_one_line_and_exit_one(arguments, message, tmp_path: Path):
    outcome = run("cylindrical", *QUICK, "--out", str(tmp_path / "x"), *arguments)
    assert outcome.exit_code == 1, outcome.stdout
    assert message in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--criterion", "luck"], "luck"),
        (["--friction", "sticky"], "sticky"),
        (["--limits", "patience"], "patience"),
        (["--torques", "elbow"], "elbow"),
        (["--rate-hz", "0"], "--rate-hz"),
    ],
)
def test_a_word_that_does_not_exist_is_wrong_usage(arguments, message, tmp_path: Path):
    outcome = run("nobody.urdf", *QUICK, "--out", str(tmp_path / "x"), *arguments)
    assert outcome.exit_code == 2, outcome.stdout
    assert message in outcome.stderr


def test_every_option_is_an_argument_of_the_library():
    options = set(signature(design).parameters) - {"context", "preset", "rate_hz", "controller", "as_json"}
    assert options | {"judge", "progress"} == set(signature(design_motion).parameters)
    assert set(get_args(CriterionWord)) == {word.value for word in SmoothCriterion}
    assert LIMITS == statement.LIMITS


def test_a_preset_is_the_published_problem_and_options_beside_it_win(tmp_path: Path):
    """Eq. 3.55 of [Halper2024]: rest at zero (c), sums of amplitudes within limits (d, e), hence f without its division by L."""
    outcome = run("iiwa14", "--preset", "halper2024", *QUICK[:6], "--harmonics", "6", "--out", str(tmp_path), "--json")
    assert outcome.exit_code in (0, 3), outcome.stderr
    motion = load_trajectory(tmp_path / "trajectory.json")
    assert motion.duration == pytest.approx(20.0)
    q, qd, qdd = motion.sample(np.array([0.0, 20.0]))
    for values in (q, qd, qdd):
        np.testing.assert_allclose(values, 0.0, atol=1e-9)
    amplitude = np.hypot(motion.sine, motion.cosine)
    assert amplitude.shape == (7, 6)
    arm, speed = load_robot("iiwa14"), 2 * np.pi / 20.0 * np.arange(1, 7)
    lower, upper = arm.limit("lower"), arm.limit("upper")
    assert np.all(amplitude.sum(axis=1) <= (upper - lower) / 2 * (1 + 1e-6))
    assert np.all(amplitude @ speed <= arm.limit("velocity") * (1 + 1e-6))


def test_people_get_a_table(tmp_path: Path):
    outcome = run("cylindrical", *QUICK, "--out", str(tmp_path))
    assert outcome.exit_code == 0, outcome.stderr
    assert "condition number" in outcome.stdout
    assert "joint3" in outcome.stdout
    assert "trusted" in outcome.stdout
    assert "trajectory.json" in outcome.stderr


def test_candidates_are_ranked_by_what_they_achieve(tmp_path: Path):
    """The winner's run on the embedded robot has the smallest error, near what its own intervals predict."""
    quick = ["--starts", "2", "--seconds", "0", "--workers", "1", "--harmonics", "4", "--period", "5"]
    outcome = run("cylindrical", *quick, "--rank", "2", "--out", str(tmp_path), "--json")
    assert outcome.exit_code == 0, outcome.stderr
    result = json.loads(outcome.stdout)
    ranking = result["ranking"]
    assert len(ranking) == 2
    assert ranking[0]["achieved_error"] <= ranking[1]["achieved_error"]
    for entry in ranking:
        assert 0.1 * entry["predicted_error"] < entry["achieved_error"] < 10.0 * entry["predicted_error"]
    assert result["feasible"]
