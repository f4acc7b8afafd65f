"""Sensor files: intervals where they are known, and mistakes refused in one line."""

from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from armid.cli import application
from armid.errors import InputError
from armid.identification.pipeline import run_identification
from armid.identification.sensor_file import read_sensors, sensor_sizes, sensor_text
from armid.identification.sensors import Imperfections, Sized
from armid.identification.settings import Identification
from armid.logs import Channel, Log
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.imperfections import ColumnReference, Family, Imperfection
from support.identified import EFFECTS, log, trusted, urdf_file


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot(str(urdf_file()))


def with_gain(recorded: Log) -> Log:
    """The same with the second joint's torque recorded 30 % too large."""
    torque = recorded.channels[Channel.LINK_TORQUE] * np.array([1.0, 1.3, 1.0])
    return replace(recorded, channels={**recorded.channels, Channel.LINK_TORQUE: torque})


def test_what_was_corrected_has_the_interval_of_its_fault(robot: Robot) -> None:
    logs = [with_gain(log(robot, trusted().robot, seed=seed)) for seed in (3, 5)]
    settings = Identification(effects=EFFECTS, sensitivity=False, correct=True)
    result = run_identification(robot, logs[:1], logs[1:], settings)
    fault = result.faults["gain of shoulder"]
    assert fault.corrected
    assert result.imperfections is not None
    value, deviation = sensor_sizes(result.imperfections)[Family.GAIN, "", 1]
    assert deviation >= fault.standard_deviation > 0.0
    low, high = yaml.safe_load(sensor_text(result.imperfections))["joints"]["shoulder"]["gain_interval"]
    assert low < value < high
    assert low < 0.3 < high


def sized(*deviations: float) -> Imperfections:
    """A gain of joint 2 in corrections one after the other, with these deviations; a clock with the first."""
    gain = Imperfection(family=Family.GAIN, joint=1, unit="1", tolerance=0.05)
    clock = Imperfection(family=Family.CLOCK, joint=None, unit="1", tolerance=0.01)
    found = None
    for s in deviations:
        found = Imperfections(
            joints=("waist", "shoulder", "elbow"),
            sizes=(Sized(gain, 0.1, s), Sized(clock, 0.01, s)),
            reference=ColumnReference.without_model(3, recorded_velocity=False),
            before=found,
        )
    assert found is not None
    return found


@pytest.mark.parametrize("deviations", [(nan,), (nan, 0.01), (0.01, nan), (0.0,)])
def test_an_interval_that_nobody_knows_is_left_out(robot: Robot, tmp_path: Path, deviations: tuple[float, ...]) -> None:
    text = sensor_text(sized(*deviations))
    assert "interval" not in text
    (tmp_path / "sensors.yaml").write_text(text)
    read = read_sensors(tmp_path / "sensors.yaml", robot)
    assert read.size(Family.GAIN, 1) == pytest.approx(1.1 ** len(deviations) - 1.0, rel=1e-5)
    assert all(isnan(s) for _, s in sensor_sizes(read).values())


def test_a_file_that_armid_writes_is_read(robot: Robot, tmp_path: Path) -> None:
    text = sensor_text(sized(0.01, 0.02))
    entry = yaml.safe_load(text)["joints"]["shoulder"]
    assert entry["gain_interval"][1] - entry["gain_interval"][0] == pytest.approx(
        2 * 1.96 * np.hypot(0.01, 0.02), rel=1e-3
    )
    (tmp_path / "sensors.yaml").write_text(text)
    assert read_sensors(tmp_path / "sensors.yaml", robot).size(Family.CLOCK) == pytest.approx(1.01**2 - 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("joints: {waist: {gian: 0.3}}", ["waist", "'gian'", "did you mean gain?", "eccentricity_sine"]),
        ("joints: {waist: {torque: 0.3}}", ["waist", "'torque'", "gain, delay", "gain_interval"]),
        ("joints: {waist: 0.3}", ["waist is 0.3", "{gain: 0.02}"]),
        ("joints: {waist: }", ["waist is None"]),
        ("joints: [waist]", ["joints is ['waist']", "{NAME: {gain: 0.02}}"]),
        ("joints: {waist: {gain: [0.3]}}", ["gain of waist is [0.3]", "finite number"]),
        ("joints: {waist: {gain: true}}", ["gain of waist is True"]),
        ("joints: {waist: {gain: 0.3, gain_interval: 0.1}}", ["gain_interval of waist is 0.1", "[0.01, 0.03]"]),
        ("joints: {waist: {gain: 0.3, gain_interval: [0.4, 0.1]}}", ["lower end first"]),
        ("joints: {waist: {gain: 0.3, gain_interval: [low, high]}}", ["gain_interval of waist is 'low'"]),
        ("joints: {waist: {gain_interval: [0.1, 0.4]}}", ["no gain"]),
        ("clock: 0.01", ["clock is 0.01", "{value: 0.01}"]),
        ("clock: {size: 0.01}", ["clock", "'size'", "value, interval"]),
        ("clock: {interval: [0.0, 0.1]}", ["no value"]),
        ("clock: {}", ["clock has no value"]),
        ("joint: {waist: {gain: 0.3}}", ["'joint'", "did you mean joints?"]),
        ("gain: 0.3", ["'gain'", "schema, joints, clock"]),
    ],
)
def test_a_mistake_is_refused_in_one_line(robot: Robot, tmp_path: Path, text: str, said: list[str]) -> None:
    path = tmp_path / "sensors.yaml"
    path.write_text(f"schema: armid.sensors/1\n{text}\n")
    with pytest.raises(InputError) as refused:
        read_sensors(path, robot)
    message = str(refused.value)
    assert "\n" not in message
    assert all(word in message for word in [str(path), *said]), message


def test_the_command_line_refuses_a_mistake_before_it_identifies(tmp_path: Path) -> None:
    path = tmp_path / "sensors.yaml"
    path.write_text("schema: armid.sensors/1\njoints: {waist: {gian: 0.3}}\n")
    recorded = tmp_path / "run.npz"
    log(load_robot(str(urdf_file())), trusted().robot, seed=3).save(recorded)
    done = CliRunner().invoke(
        application(), ["identify", str(urdf_file()), str(recorded), "--sensors", str(path), "--torques", "link"]
    )
    assert done.exit_code == 1
    assert "gian" in done.stderr
