"""`armid poses`: the contract's keys, files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.cli.poses import ErrorsWord, MethodWord, PurposeWord, SpreadWord
from armid.design.pose_pool import Spread
from armid.design.poses import PoseMethod, Purpose
from armid.motions.trajectory_files import load_trajectory
from armid.rows.pose import ChainErrors


def run(*arguments: str):
    return CliRunner().invoke(application(), ["poses", *arguments])


def test_poses_writes_what_the_contract_says(tmp_path: Path):
    outcome = run(
        "panda", "--for", "gravity", "--pool", "800", "--starts", "1", "--count", "10", "--out", str(tmp_path), "--json"
    )
    assert outcome.exit_code == 0, outcome.stderr
    result = json.loads(outcome.stdout)
    for key in ("condition_number", "initial_condition_number", "observability", "poses", "files"):
        assert key in result
    assert set(result["observability"]) == {"O1", "O2", "O3", "O4", "O5"}
    assert result["condition_number"] < result["initial_condition_number"]
    lines = (tmp_path / "poses.csv").read_text().splitlines()
    assert lines[0] == ",".join(f"joint{k}" for k in range(1, 8))
    table = np.loadtxt(lines[1:], delimiter=",")
    np.testing.assert_allclose(table, result["poses"], atol=1e-8)
    details = json.loads((tmp_path / "poses.json").read_text())
    motion = load_trajectory(tmp_path / "transitions.json")
    np.testing.assert_allclose(motion.waypoints[details["stops"]], table, atol=1e-8)


def test_people_get_tables(tmp_path: Path):
    outcome = run(
        "mabi-max100",
        "--for",
        "axis-inertia",
        "--pool",
        "400,300,200,100,50",
        "--method",
        "target",
        "--no-transitions",
        "--out",
        str(tmp_path),
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert "target matrix" in outcome.stdout
    assert "penalty" in outcome.stdout
    assert "poses.csv" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--for", "gravity", "--cell", "nowhere"],
            "no cell named 'nowhere'; there are: lwr4plus-excitation, lwr4plus-tracker, mabi-max100",
        ),
        (["--for", "gravity", "--method", "target", "--pool", "100"], "axis inertias"),
        (["--for", "calibration", "--frame", "elbow"], "no frame named 'elbow'"),
        (["--for", "gravity", "--count", "1"], "at least"),
    ],
)
def test_bad_input_is_one_line_and_exit_one(arguments, message, tmp_path: Path):
    outcome = run("panda", "--out", str(tmp_path / "x"), *arguments)
    assert outcome.exit_code == 1, outcome.stdout
    assert message in outcome.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "words", [("--for", "fun"), ("--method", "luck"), ("--spread", "thin"), ("--errors", "all")], ids=" ".join
)
def test_a_word_that_does_not_exist_is_wrong_usage(words, tmp_path: Path):
    purpose = () if words[0] == "--for" else ("--for", "gravity")
    outcome = run("nobody.urdf", *purpose, "--out", str(tmp_path / "x"), *words)
    assert outcome.exit_code == 2
    assert words[1] in outcome.stderr


def test_words_are_those_of_the_library():
    for words, kind in (
        (PurposeWord, Purpose),
        (MethodWord, PoseMethod),
        (SpreadWord, Spread),
        (ErrorsWord, ChainErrors),
    ):
        assert set(get_args(words)) == {member.value for member in kind}
