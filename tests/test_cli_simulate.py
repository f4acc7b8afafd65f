"""`armid simulate` from outside."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.cli import simulate as verb
from armid.cli import simulate_options as own
from armid.logs.log import Channel
from armid.logs.read import unchecked_log
from armid.motions.sample_table import save_csv
from armid.motions.trajectory import SampledTrajectory
from armid.motions.trajectory_files import save_trajectory
from armid.robot.load import load_robot
from armid.simulation.measure import MISTAKE_WORDS
from armid.simulation.settings_file import CONTROLLERS
from armid.simulation.simulation import RecordedChannels
from armid.simulation.writers import ALL, LogFormat
from support.motions import sines

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory):
    robot = load_robot("panda")
    time = np.linspace(0.0, 0.2, 41)
    motion = SampledTrajectory(robot.joint_names, time, *sines(robot).sample(time))
    folder = tmp_path_factory.mktemp("trajectory")
    save_csv(motion, folder / "motion.csv", rate_hz=200.0)
    return save_trajectory(motion, folder / "motion.json")


def invoke(*arguments):
    return RUNNER.invoke(application(), ["simulate", *(str(a) for a in arguments)])


def result_of(*arguments):
    done = invoke(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_all_formats_and_the_truth(trajectory, tmp_path):
    result = result_of("panda", trajectory, "--out", tmp_path, "--format", "all", "--seed", 4)
    names = [Path(file).name for file in result["files"]]
    assert names == [
        "log.csv",
        "log.npz",
        "log.parquet",
        "log.libfranka.csv",
        "log.rtde.csv",
        "log_bag.mcap",
        "log.truth.json",
        "log.truth.npz",
    ]
    assert all(Path(file).is_file() for file in result["files"])
    truth = json.loads(Path(result["files"][-2]).read_text())
    assert truth["seed"] == 4
    with np.load(result["files"][-1]) as arrays:
        log = unchecked_log(result["files"][0], load_robot("panda"))
        np.testing.assert_allclose(log[Channel.POSITION], arrays["q"], atol=1e-4)  # typical encoders
        assert (log[Channel.LINK_TORQUE] != arrays["link_torque"]).any()


def test_csv_trajectories_and_flags(trajectory, tmp_path):
    result = result_of(
        "panda",
        trajectory.with_suffix(".csv"),
        "--out",
        tmp_path,
        "--sensors",
        "perfect",
        "--rate-hz",
        250,
        "--controller",
        "computed-torque",
        "--lock",
        "joint1",
        "--payload-mass",
        1.5,
        "--variation",
        0.1,
        "--control-rate-hz",
        2000,
        "--mistake",
        "torque-sign=joint2",
        "--mistake",
        "degrees",
    )
    truth = json.loads(Path(result["files"][1]).read_text())
    assert truth["payload"][0] == 1.5
    assert truth["scenario"]["controller"]["kind"] == "ComputedTorque"
    assert set(truth["faults_injected"]) == {"torque-sign", "degrees", "payload"}
    assert truth["samples"] == 51
    assert truth["step"] == pytest.approx(5e-4)


def test_same_seed_same_bytes_and_several_runs(trajectory, tmp_path):
    first = result_of("panda", trajectory, "--out", tmp_path / "a", "--runs", 2, "--seed", 1)
    again = result_of("panda", trajectory, "--out", tmp_path / "b", "--seed", 2)
    assert first["runs"] == 2
    second = next(Path(f) for f in first["files"] if f.endswith("log2.csv"))
    assert second.read_bytes() == Path(again["files"][0]).read_bytes()


def test_tracked_poses_and_controller_models(tmp_path):
    q = np.random.default_rng(0).uniform(-0.5, 0.5, size=(6, 7))
    q[:, 3] -= 1.5
    header = ",".join(f"q{i + 1}" for i in range(7))
    np.savetxt(tmp_path / "postures.csv", q, delimiter=",", header=header, comments="")
    (tmp_path / "s.yaml").write_text("tracker: {position_noise: 1.0e-4}\n")
    out = tmp_path / "out"
    poses = result_of(
        "panda", tmp_path / "postures.csv", "--record", "tracker", "--out", out, "--scenario", tmp_path / "s.yaml"
    )
    assert Path(poses["files"][0]).read_text().startswith("joint1,joint2")
    model = result_of("panda", tmp_path / "postures.csv", "--record", "controller-model", "--out", out)
    with np.load(model["files"][0]) as arrays:
        assert arrays["M"].shape == (6, 7, 7)
    assert json.loads(Path(model["files"][1]).read_text())["inertial"][0] > 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nobody", "TRAJECTORY"), "nobody"),
        (("panda", "none.json"), "no such file"),
        (("panda", "TRAJECTORY", "--mistake", "joint-order=joint1"), "two joint names"),
        (("panda", "TRAJECTORY", "--lock", "elbow"), "elbow"),
        (("panda", "TRAJECTORY", "--scenario", "none.yaml"), "none.yaml"),
        (("panda", "TRAJECTORY", "--payload-mass", "-1"), "negative"),
        (("tx40", "TRAJECTORY"), "7 joints"),
        (("panda", "TRAJECTORY", "--control-rate-hz", "0"), "control_rate_hz"),
        (("panda", "TRAJECTORY", "--control-rate-hz", "20"), "50 to 100000"),
        (("panda", "TRAJECTORY", "--control-rate-hz", "1e9"), "50 to 100000"),
        (("panda", "TRAJECTORY", "--record", "tracker"), "q1..q7"),
        (("panda", "TRAJECTORY", "--variation", "5"), "from 0 to 1"),
        (("panda", "TRAJECTORY", "--tip", "finger"), "no frame named 'finger'"),
    ],
)
def test_known_failures_are_one_line(trajectory, tmp_path, arguments, message):
    done = invoke(*(trajectory if a == "TRAJECTORY" else a for a in arguments), "--out", tmp_path)
    assert done.exit_code == 1, done.output
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1


@pytest.mark.parametrize(("rate", "codes"), [(1000, []), (500, ["control-rate"]), (10_000, ["control-rate"])])
def test_a_control_loop_slower_or_faster_than_usual_is_said(trajectory, tmp_path, rate, codes):
    found = result_of("panda", trajectory, "--control-rate-hz", rate, "--out", tmp_path)["notes"]
    assert [note["code"] for note in found] == codes


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        (3, "nan", "joint3, column q_joint3: nan in row 4 at 0.01 s"),
        (0, "inf", "time: inf in row 4"),
        (9, "-inf", "joint2, column qd_joint2: -inf in row 4 at 0.01 s"),
    ],
)
def test_a_command_that_is_no_number_is_named_by_file_joint_and_time(trajectory, tmp_path, column, text, message):
    motion = tmp_path / "motion.csv"
    lines = trajectory.with_suffix(".csv").read_text().splitlines()
    words = lines[3].split(",")
    lines[3] = ",".join([*words[:column], text, *words[column + 1 :]])
    motion.write_text("\n".join(lines) + "\n")
    done = invoke("panda", motion, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert f"{motion}, {message}" in done.output
    assert len(done.output.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "content", [b"", b"time\n", b"\xff\xfe\x00\x01", b"time,q1,qd1,qdd1\n", b"time,q1,qd1,qdd1\n0,a,0,0\n"]
)
def test_tables_that_are_no_motion_are_one_line(tmp_path, content):
    motion = tmp_path / "motion.csv"
    motion.write_bytes(content)
    done = invoke("panda", motion, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert str(motion) in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_all_formats_are_those_this_machine_can_write(trajectory, tmp_path, monkeypatch):
    monkeypatch.setattr("armid.simulation.writers.find_spec", lambda name: None if name == "pyarrow" else name)
    result = result_of("panda", trajectory, "--format", "all", "--out", tmp_path)
    assert any("log.csv" in file for file in result["files"])
    assert not any("parquet" in file for file in result["files"])
    assert [(n["code"], n["subject"]) for n in result["notes"]] == [("format-left-out", "parquet")]
    refused = invoke("panda", trajectory, "--format", "parquet", "--out", tmp_path / "none")
    assert refused.exit_code == 1
    assert "pyarrow" in refused.output
    assert not (tmp_path / "none").exists()


def test_a_negative_seed_is_wrong_usage(trajectory, tmp_path):
    assert invoke("panda", trajectory, "--seed", "-5", "--out", tmp_path / "none").exit_code == 2
    assert not (tmp_path / "none").exists()


def test_an_approach_from_where_the_arm_stands(trajectory, tmp_path):
    robot = load_robot("panda")
    home = ",".join(str(x) for x in sines(robot).centre)
    refused = invoke("panda", trajectory, "--out", tmp_path, "--start", home)
    assert refused.exit_code == 1
    assert "approach" in refused.output
    result = result_of("panda", trajectory, "--out", tmp_path, f"--start={home}", "--approach-seconds", 0.5)
    assert result["duration"] == pytest.approx(0.7)
    for wrong in ("1,2", "a,b"):
        assert invoke("panda", trajectory, "--out", tmp_path, "--start", wrong).exit_code == 1
    assert invoke("panda", trajectory, "--out", tmp_path, "--approach-seconds", 1).exit_code == 1


def test_a_motion_that_had_to_be_stopped_is_not_to_be_trusted(trajectory, tmp_path):
    (tmp_path / "s.yaml").write_text("physics: {tracking_limit: 1.0e-4, on_fault: record}\n")
    done = invoke("panda", trajectory, "--out", tmp_path / "out", "--scenario", tmp_path / "s.yaml", "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["events"][-1]["code"] == "tracking-lost"


def test_people_see_what_happened(trajectory, tmp_path):
    done = invoke("panda", trajectory, "--out", tmp_path)
    assert done.exit_code == 0
    assert "times real time" in done.stdout
    assert "log.csv" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--format", "floppy"),
        ("--mistake", "laziness"),
        ("--sensors", "magic"),
        ("--controller", "luck"),
        ("--record", "video"),
    ],
)
def test_a_word_that_does_not_exist_is_wrong_usage(tmp_path, words):
    done = invoke("nobody.urdf", "none.json", *words, "--out", tmp_path / "x")
    assert done.exit_code == 2
    assert words[1] in done.stderr


def test_options_and_words_are_those_of_the_library():
    options = set(signature(verb.simulate).parameters) - {"as_json"}
    assert options == set(signature(armid.simulate).parameters)
    assert set(get_args(verb.RecordWord)) == {kind.value for kind in RecordedChannels}
    assert set(get_args(own.ControllerWord)) == set(CONTROLLERS)
    assert set(own.FORMATS) == {ALL, *(kind.value for kind in LogFormat)}
    assert own.MISTAKES == MISTAKE_WORDS
