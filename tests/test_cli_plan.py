"""`armid plan`: files, JSON, refusals, and one line for every path that cannot be planned."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.motions.trajectory_files import load_trajectory
from support.identified import trusted, untrusted

WAYPOINTS = "waist,shoulder,elbow\n-0.8,-0.4,0.3\n0.0,0.3,-0.5\n0.7,-0.2,0.6\n"


@cache
def stored(kind: str) -> Path:
    folder = Path(mkdtemp()) / kind
    (trusted() if kind == "trusted" else untrusted()).save(folder)
    return folder


def run(*words: object) -> Any:
    return CliRunner().invoke(application(), ["plan", *(str(word) for word in words)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "path.csv"
    file.write_text(WAYPOINTS)
    return file


def test_json_and_files(path: Path, tmp_path: Path) -> None:
    done = run(stored("trusted"), path, "--out", tmp_path / "out", "--json", "--rate-hz", 500, "--passive", "elbow")
    assert done.exit_code == 0, done.output
    values = json.loads(done.stdout)
    assert values["verdict"] == "trusted"
    assert 0.2 < values["duration"] < 5.0
    assert 0.0 < values["torque_usage"] <= 1.0 + 1e-8
    assert max(values["limit_usage"].values()) == pytest.approx(1.0, abs=1e-3)
    assert [joint["name"] for joint in values["joints"]] == ["waist", "shoulder", "elbow"]
    names = [Path(file).name for file in values["files"]]
    motion = ["plan.json", "plan.csv", "plan-joint-trajectory.yaml", "plan.html"]
    assert names == [*motion, "answer.json", "answer.npz"]
    again = load_trajectory(tmp_path / "out" / "plan.json")
    assert again.duration == pytest.approx(values["duration"], abs=1e-9)
    assert np.allclose(again.sample(0.0)[0], [-0.8, -0.4, 0.3])
    page = (tmp_path / "out" / "plan.html").read_text()
    for words in (
        "Torque against limits",
        "Speed along the path",
        "Reduced dynamics",
        "Motion generator with elbow passive",
    ):
        assert words in page
    assert "http://" not in page.split("<script")[0]


def test_confidence_takes_longer_and_says_how_much(path: Path, tmp_path: Path) -> None:
    plain = json.loads(run(stored("trusted"), path, "--out", tmp_path / "a", "--json").stdout)
    wary = run(stored("trusted"), path, "--out", tmp_path / "b", "--json", "--confidence", 0.99)
    assert wary.exit_code == 0
    values = json.loads(wary.stdout)
    assert values["duration_certain"] == pytest.approx(plain["duration"])
    assert values["longer"] == pytest.approx(values["duration"] / plain["duration"] - 1.0)
    assert values["probability"] >= 0.98
    assert values["deviations"] > 2.0
    assert plain["probability"] is None


def test_an_untrusted_result_is_refused_unless_forced(path: Path, tmp_path: Path) -> None:
    refused = run(stored("untrusted"), path, "--out", tmp_path / "out")
    assert refused.exit_code == 1
    assert "untrusted and no motion is planned" in refused.stderr
    assert "40 %" in refused.stderr
    assert not (tmp_path / "out").exists()
    forced = run(stored("untrusted"), path, "--out", tmp_path / "out", "--force", "--json")
    assert forced.exit_code == 3  # planned, and not to be trusted
    values = json.loads(forced.stdout)
    assert values["verdict"] == "untrusted"
    assert all("UNVALIDATED" in Path(file).name for file in values["files"][:4])
    assert "UNVALIDATED" in Path(values["files"][3]).read_text()


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("0,0,0\n2.5,0,0\n3.5,0,0\n", "waist leaves its limits"),
        ("0,0,0\n1,0,0\n0.5,0,0\n", "singular parameterisation"),
        ("0,0,0\n0,0,0\n", "waypoints 1 and 2"),
        ("0,0,0\n0,oops,0\n", "row 3, column shoulder"),
    ],
)
def test_bad_paths_fail_in_one_line_with_their_place(tmp_path: Path, rows: str, problem: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("waist,shoulder,elbow\n" + rows)
    done = run(stored("trusted"), file, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert problem in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_other_bad_input(path: Path, tmp_path: Path) -> None:
    assert "no joint named 'hip'" in run(stored("trusted"), path, "--passive", "hip", "--out", tmp_path / "o").stderr
    assert "not a result folder" in run(tmp_path, path).stderr
    assert "no such file" in run(stored("trusted"), tmp_path / "none.csv").stderr
    assert "probability" in run(stored("trusted"), path, "--confidence", 1.5, "--out", tmp_path / "o").stderr
    assert run(stored("trusted"), path, "--margin", 2).exit_code == 2


def test_path_files(tmp_path: Path) -> None:
    file = tmp_path / "path.yaml"
    file.write_text("format: armid-path/1\nwaypoints_deg: [[0, 0, 0], [20, 10, -30], [40, 0, 0]]\n")
    done = run(stored("trusted"), file, "--out", tmp_path / "out", "--json", "--no-collisions")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["duration"] > 0.0
    # The elbow's own origin moves on a sphere: no straight line.
    file.write_text("format: armid-path/1\nstart: [0, -0.5, 1.2]\norientation: free\nline: {by: [0.05, 0.1, -0.05]}\n")
    assert "% of the tool path: no joint positions reach the pose" in run(stored("trusted"), file).stderr
