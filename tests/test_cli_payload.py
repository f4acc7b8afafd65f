"""`armid payload` and `armid online` from outside, on the embedded arm with joint torque sensors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.design.trajectory import SampledTrajectory
from armid.logs.log import Channel
from armid.logs.read import read_log
from armid.parameters.inertial import from_centre_of_mass, transformed
from armid.robot.load import load_robot
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import typical_sensors
from armid.simulation.writers import LogFormat, write_log

RUNNER = CliRunner()
ROBOT = load_robot("iiwa14")
TIP = np.asarray(ROBOT.tip.T_link_frame)
CENTRE = np.array([0.02, -0.01, 0.06])
"""[m] Of the load in the flange frame; 1 kg."""


def excitation(seed: int, seconds: float = 14.0) -> SampledTrajectory:
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 0.005)
    w, phase = rng.uniform(0.5, 2.0, (3, 7)), rng.uniform(0, 6, (3, 7))
    angle = t[:, np.newaxis, np.newaxis] * w + phase
    waves = (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle))
    return SampledTrajectory(ROBOT.joint_names, t, *(0.26 * x.sum(axis=1) for x in waves))


def recorded(path: Path, seed: int, load: np.ndarray | None) -> Path:
    physics = Physics(collisions=False, payload=load)
    scenario = Scenario(physics=physics, sensors=typical_sensors(ROBOT.limit("torque")), seed=seed)
    log = run_scenario(ROBOT, excitation(seed), scenario).log
    return write_log(replace(log, name=path.stem), path, LogFormat.CSV)


def run(*arguments: object, code: int = 0, text: str | None = None) -> dict[str, object]:
    done = RUNNER.invoke(application(), [*(str(a) for a in arguments), "--json"], input=text)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("payload")
    in_flange = from_centre_of_mass(1.0, CENTRE, 2e-3 * np.eye(3))
    recorded(place / "empty.csv", 1, None)
    recorded(place / "loaded.csv", 2, transformed(in_flange, TIP))
    done = RUNNER.invoke(
        application(), ["identify", "iiwa14", str(place / "empty.csv"), "--out", str(place / "result"), "--json"]
    )
    assert done.exit_code in (0, 3), done.output
    return place


def test_one_kilogram(folder: Path) -> None:
    """Mass within 0.5 %, centre within 2 mm."""
    result = run("payload", folder / "result", folder / "loaded.csv", "--out", folder / "out")
    assert result["mass"] == pytest.approx(1.0, abs=0.005)
    assert np.abs(np.array(result["centre_of_mass"]) - CENTRE).max() < 2e-3
    assert set(result["standard_deviations"]) == {"mass", "centre_of_mass", "inertia"}
    assert np.linalg.eigvalsh(np.array(result["inertia"]))[0] > 0.0
    assert result["kuka"].startswith("{M ")
    assert (folder / "out" / "payload.json").exists()


def test_sample_by_sample(folder: Path) -> None:
    result = run("payload", folder / "result", folder / "loaded.csv", "--online")
    assert result["mass"] == pytest.approx(1.0, abs=0.03)
    assert np.abs(np.array(result["centre_of_mass"]) - CENTRE).max() < 0.01


def test_with_a_known_gripper(folder: Path) -> None:
    result = run("payload", folder / "result", folder / "loaded.csv", "--gripper", "0.4,0.02,-0.01,0.06")
    assert result["mass"] == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize(
    ("extra", "message"),
    [(("--static",), "at rest"), (("--static", "--online"), "one of them"), (("--gripper", "1,2"), "4 numbers")],
)
def test_known_failures_are_one_line(folder: Path, extra: tuple[str, ...], message: str) -> None:
    done = RUNNER.invoke(application(), ["payload", str(folder / "result"), str(folder / "loaded.csv"), *extra])
    assert done.exit_code == 1
    assert message in done.stderr.replace("\n", " ")


def test_on_line_identification_of_a_stream(folder: Path) -> None:
    log = read_log(folder / "empty.csv", ROBOT)
    step = 5
    lines = "\n".join(
        json.dumps({"time": float(t), "position": q.tolist(), "torque": tau.tolist()})
        for t, q, tau in zip(
            log.time[::step], log[Channel.POSITION][::step], log[Channel.LINK_TORQUE][::step], strict=True
        )
    )
    result = run("online", "iiwa14", "--rate-hz", "200", text=lines)
    assert result["base_parameters"] == 57
    assert result["frozen"] == []
    assert result["gaps"] == 0
    followed = RUNNER.invoke(application(), ["online", "iiwa14", "--rate-hz", "200", "--follow"], input=lines)
    assert followed.exit_code == 0, followed.exception
    assert len(followed.stdout.splitlines()) >= 13
    bad = RUNNER.invoke(application(), ["online", "iiwa14", "--rate-hz", "200"], input="not json\n")
    assert bad.exit_code == 1
    assert "line 1" in bad.stderr
