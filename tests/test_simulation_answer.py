"""`armid.simulate`: files or objects, in memory or written as it runs, and what the answer can do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.errors import ArmidError, InputError, UnknownNameError
from armid.logs.log import Channel
from armid.logs.read import unchecked_log
from armid.motions.trajectory import SampledTrajectory
from armid.motions.trajectory_files import save_trajectory
from armid.outcome import Verdict
from armid.robot.load import load_robot
from armid.simulation import OnFault, PdGravity, Physics, Scenario, typical_sensors
from armid.simulation.simulation import Simulation
from support.motions import sines


@pytest.fixture(scope="module")
def motion() -> SampledTrajectory:
    robot = load_robot("panda")
    time = np.linspace(0.0, 0.2, 41)
    return SampledTrajectory(robot.joint_names, time, *sines(robot).sample(time))


@pytest.fixture(scope="module")
def done(motion: SampledTrajectory) -> Simulation:
    return armid.simulate("panda", motion, seed=3)


def test_words_and_objects_give_the_same_log(done: Simulation, motion: SampledTrajectory, tmp_path: Path) -> None:
    robot = load_robot("panda")
    again = armid.simulate(
        robot,
        save_trajectory(motion, tmp_path / "motion.json"),
        scenario=Scenario(seed=3),
        controller=PdGravity(),
        sensors=typical_sensors(robot.limit("torque")),
    )
    np.testing.assert_array_equal(again.log[Channel.LINK_TORQUE], done.log[Channel.LINK_TORQUE])
    assert [file.role for file in again.provenance.inputs] == ["robot", "trajectory"]
    assert len(again.provenance.inputs[1].sha256) == 64


def test_the_answer_can_be_read(done: Simulation, tmp_path: Path) -> None:
    assert done.verdict is Verdict.TRUSTED
    assert "\n" not in repr(done)
    assert len(repr(done)) < 200
    assert "times real time" in done.summary()
    assert done.truth["seed"] == 3
    assert done.truth["parameters"]["link"]["link1.mass"] > 0.0
    assert set(done.figures()) >= {"tracking"}
    for name in done.figures():
        assert done.plot(name).data
    assert done.report(tmp_path / "page.html").stat().st_size > 1000
    files = done.save(tmp_path / "out")
    assert [file.name for file in files] == ["log.csv", "log.truth.json", "log.truth.npz"]
    assert json.loads(files[1].read_text()) == done.truth
    log = unchecked_log(files[0], load_robot("panda"))
    np.testing.assert_allclose(log[Channel.POSITION], done.log[Channel.POSITION], rtol=1e-11)


def test_the_command_line_gives_the_same_answer(done: Simulation, motion: SampledTrajectory, tmp_path: Path) -> None:
    path = save_trajectory(motion, tmp_path / "motion.json")
    words = ["simulate", "panda", str(path), "--seed", "3", "--out", str(tmp_path / "cli"), "--json"]
    told = json.loads(CliRunner().invoke(application(), words).stdout)
    assert {key: told[key] for key in done.as_dict()} == done.as_dict()
    assert told.keys() - done.as_dict().keys() == {"files", "seconds"}
    done.save(tmp_path / "own")
    for name in ("log.csv", "log.truth.json"):
        assert (tmp_path / "cli" / name).read_bytes() == (tmp_path / "own" / name).read_bytes()


def test_many_runs_are_written_as_they_finish(motion: SampledTrajectory, tmp_path: Path) -> None:
    kept = armid.simulate("panda", motion, runs=2)
    assert len(kept.logs) == 2
    assert [file.name for file in kept.save(tmp_path / "kept")][:1] == ["log1.csv"]
    written = armid.simulate("panda", motion, runs=2, out=tmp_path / "written")
    assert [file.name for file in written.files if file.suffix == ".csv"] == ["log1.csv", "log2.csv"]
    assert written.as_dict() == kept.as_dict()
    for name in ("log1.csv", "log2.csv"):
        assert (tmp_path / "kept" / name).read_bytes() == (tmp_path / "written" / name).read_bytes()
    with pytest.raises(ArmidError, match="written as they finished"):
        written.save(tmp_path / "again")


def test_a_motion_that_was_stopped_is_not_trusted(motion: SampledTrajectory) -> None:
    physics = Physics(tracking_limit=1e-4, on_fault=OnFault.RECORD)
    stopped = armid.simulate("panda", motion, scenario=Scenario(physics=physics))
    (failed,) = (check for check in stopped.checks if check.decisive and not check.passed)
    assert failed.code == "complete"
    assert failed.value < failed.limit
    assert "tracking-lost" in stopped.reasons[0]
    assert stopped.verdict is Verdict.UNTRUSTED


def test_postures_by_array_or_file(tmp_path: Path) -> None:
    q = np.random.default_rng(0).uniform(-0.5, 0.5, size=(6, 7))
    q[:, 3] -= 1.5
    tracked = armid.simulate("panda", q, record="tracker")
    assert tracked.samples == 6
    assert tracked.truth["inertial"][0] > 0.0
    assert "tracker at 6 postures" in repr(tracked)
    assert [file.name for file in tracked.save(tmp_path)] == ["poses.csv", "poses.truth.json"]
    with pytest.raises(ArmidError, match="has no log"):
        _ = tracked.log
    assert tracked.page().sections
    model = armid.simulate("panda", tmp_path / "poses.csv", record="controller-model", out=tmp_path / "m")
    assert [file.name for file in model.files] == ["controller.npz", "controller.truth.json"]


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"record": "video"}, UnknownNameError, "no record named 'video'"),
        ({"controller": "luck"}, UnknownNameError, "luck"),
        ({"sensors": "magic"}, UnknownNameError, "magic"),
        ({"formats": "floppy"}, UnknownNameError, "no log format named 'floppy'"),
        ({"mistakes": ["laziness"]}, UnknownNameError, "no mistake named 'laziness'"),
        ({"approach_seconds": 1.0}, InputError, "say where the arm stands"),
        ({"start": "1,2"}, InputError, "expected 7 numbers"),
    ],
)
def test_bad_input_is_named(motion: SampledTrajectory, asked, error, message) -> None:
    with pytest.raises(error, match=message):
        armid.simulate("panda", motion, **asked)
