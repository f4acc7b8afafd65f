"""`armid elastic` from outside: a simulated arm with springs in its joints, a real one, and recordings of the wrong kind."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.documents import plain
from armid.errors import UnknownNameError
from armid.logs.log import Channel
from armid.logs.read import unchecked_log
from armid.robot.load import load_robot
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import PositionSensor, Sensors, TorqueSensor
from armid.simulation.writers import LogFormat, write_log
from armid.transmission.identify import identify_transmission
from armid.transmission.transmission import joint_checks
from armid.transmission.two_encoders import ElasticJoint
from support.outcomes import answer_of, check_family, failing
from support.realdata import ROOT, real_data

RUNNER = CliRunner()
STIFFNESS = (4000.0, 3000.0, 1500.0)


def run(*arguments: object, code: int = 0) -> dict[str, object]:
    done = RUNNER.invoke(application(), ["elastic", *(str(a) for a in arguments), "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


class Waves:
    """Three sines per joint."""

    duration = 8.0

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        w, phase = np.array([[2.1, 3.3, 5.2], [2.7, 4.1, 6.0], [1.9, 3.7, 5.5]]), np.arange(9.0).reshape(3, 3)
        angle = np.asarray(t)[:, np.newaxis, np.newaxis] * w + phase
        parts = (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle))
        return tuple(0.25 * x.sum(axis=2) for x in parts)  # type: ignore[return-value]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    encoder = 2.0 * np.pi / 2**20
    scenario = Scenario(
        physics=Physics(elastic=True, stiffness=STIFFNESS, collisions=False, tracking_limit=1.0),
        sensors=Sensors(
            position=PositionSensor(resolution=encoder, noise=encoder), torque=None, motor=TorqueSensor(noise=0.1)
        ),
    )
    log = run_scenario(load_robot("cmu-dd-arm2"), Waves(), scenario).log
    assert Channel.MOTOR_POSITION in log
    return write_log(log, tmp_path_factory.mktemp("elastic") / "log.csv", LogFormat.CSV)


def test_simulated_joints(recording: Path) -> None:
    result = run("cmu-dd-arm2", recording, "--cutoff-hz", "15", "--centric")
    for joint, K in zip(result["joints"], STIFFNESS, strict=True):
        deviation = joint["standard_deviations"]["stiffness"]
        assert abs(joint["stiffness"] - K) < 3.0 * deviation
        assert deviation < 0.01 * K
        assert joint["load_deflection"] > 5.0 * joint["encoder_error"]


def test_the_function_behind_the_verb(recording: Path, tmp_path: Path) -> None:
    """Paths or objects, words or objects; the command line prints what the function returns."""
    printed = run("cmu-dd-arm2", recording, "--joint", "joint2", "--motor-inertia", "joint2=0.3", "--cutoff-hz", "15")
    arm = load_robot("cmu-dd-arm2")
    found = identify_transmission(
        arm, [unchecked_log(recording, arm)], joints=["joint2"], motor_inertia={"joint2": 0.3}, cutoff_hz=15.0
    )
    assert answer_of(printed) == plain(found.as_dict())
    assert found.joint("joint2").stiffness == printed["joints"][0]["stiffness"]
    with pytest.raises(UnknownNameError, match="joint9"):
        found.joint("joint9")
    check_family(found, tmp_path)
    log = unchecked_log(recording, arm)
    order = [2, 0, 1]
    mixed = replace(
        log,
        joints=tuple(log.joints[k] for k in order),
        channels={channel: values[:, order] for channel, values in log.channels.items()},
    )
    again = identify_transmission(arm, mixed, joints=["joint2"], motor_inertia={"joint2": 0.3}, cutoff_hz=15.0)
    assert again.joint("joint2").stiffness == pytest.approx(found.joint("joint2").stiffness, rel=1e-9)


def test_a_reversed_torque_is_not_to_be_trusted(recording: Path) -> None:
    arm = load_robot("cmu-dd-arm2")
    log = unchecked_log(recording, arm)
    channels = dict(log.channels) | {Channel.MOTOR_TORQUE: -log[Channel.MOTOR_TORQUE]}
    wrong = identify_transmission(arm, replace(log, channels=channels), joints=["joint2"])
    assert "possible-transmission" in failing(wrong)
    assert wrong.verdict == "untrusted"


def test_torque_of_something_else_is_not_to_be_trusted(recording: Path) -> None:
    """Noise in place of the motor's torque: the equation explains none of it, and no stiffness is seen."""
    arm = load_robot("cmu-dd-arm2")
    log = unchecked_log(recording, arm)
    noise = np.random.default_rng(0).normal(size=log[Channel.MOTOR_TORQUE].shape)
    channels = dict(log.channels) | {Channel.MOTOR_TORQUE: noise}
    found = identify_transmission(arm, replace(log, channels=channels), joints=["joint2"])
    assert {"stiffness-seen", "torque-explained"} <= failing(found)


def test_a_resonance_above_half_the_sampling_rate_is_said() -> None:
    joint = ElasticJoint(
        joint="joint1",
        stiffness=1e6,
        rotor_inertia=0.1,
        viscous=0.0,
        coulomb=0.0,
        offset=0.0,
        lag=0.0,
        standard_deviations=np.full(5, 1e-3),
        relative_error=0.01,
        rate=100.0,
    )
    assert [check.code for check in joint_checks(joint) if not check.passed] == ["resonance-in-band"]


def test_known_motor_inertia(recording: Path) -> None:
    options = ("--cutoff-hz", "15", "--joint", "joint1")
    free = run("cmu-dd-arm2", recording, *options)["joints"][0]
    assert [n["code"] for n in free["notes"]].count("unloaded-joint") == 1
    known = run("cmu-dd-arm2", recording, *options, "--motor-inertia", "joint1=0.3")["joints"][0]
    assert known["rotor_inertia"] == 0.3
    assert known["standard_deviations"]["rotor_inertia"] == 0.0
    assert "unloaded-joint" not in [n["code"] for n in known["notes"]]
    assert known["stiffness"] == pytest.approx(4000.0, rel=0.02)


@pytest.mark.parametrize(
    ("columns", "options", "match"),
    [
        ("q_motor", (), "position.motor"),
        ("tau_motor", (), "torque.motor"),
        ("", ("--joint", "joint9"), "joint9"),
        ("", ("--motor-inertia", "joint1"), "expected JOINT=KGM2"),
        ("", ("--motor-inertia", "joint9=3"), "joint9"),
        ("", ("--cutoff-hz", "0.1"), "of signal"),
    ],
)
def test_recordings_of_the_wrong_kind(
    recording: Path, tmp_path: Path, columns: str, options: tuple[str, ...], match: str
) -> None:
    table = np.genfromtxt(recording, delimiter=",", names=True)
    kept = [n for n in table.dtype.names if not columns or not n.startswith(columns)]
    values = np.column_stack([table[n] for n in kept])
    np.savetxt(tmp_path / "log.csv", values, delimiter=",", header=",".join(kept), comments="")
    done = RUNNER.invoke(application(), ["elastic", "cmu-dd-arm2", str(tmp_path / "log.csv"), *options])
    assert done.exit_code == 1, done.output
    assert match in done.stderr


def test_an_unsynchronised_pair_of_encoders_is_refused(recording: Path, tmp_path: Path) -> None:
    table = np.genfromtxt(recording, delimiter=",", names=True)
    late = 12
    columns = [table[n][:-late] if n.startswith("q_motor") else table[n][late:] for n in table.dtype.names]
    header = ",".join(table.dtype.names)
    np.savetxt(tmp_path / "log.csv", np.column_stack(columns), delimiter=",", header=header, comments="")
    command = ["elastic", "cmu-dd-arm2", str(tmp_path / "log.csv"), "--cutoff-hz", "15", "--joint", "joint3"]
    done = RUNNER.invoke(application(), command)
    assert done.exit_code == 1
    assert "not synchronised" in done.stderr


def test_one_sensor(tmp_path: Path) -> None:
    """Eqs. 4-5: stiffness without the motors' encoders, 20-bit link encoders and friction, within two of its deviations."""
    arm = load_robot("cmu-dd-arm2")
    soft = (1500.0, 1000.0, 500.0)
    scenario = Scenario(
        physics=Physics(elastic=True, stiffness=soft, sensed_friction=0.0, collisions=False, tracking_limit=1.0),
        sensors=Sensors(position=PositionSensor(resolution=2.0 * np.pi / 2**20), torque=None),
    )
    path = write_log(run_scenario(arm, Waves(), scenario).log, tmp_path / "log.csv", LogFormat.CSV)
    known = [f"{n}={B}" for n, B in zip(arm.joint_names, arm.drive("rotor_inertia"), strict=True)]
    inertia = [word for item in known for word in ("--motor-inertia", item)]
    result = run("cmu-dd-arm2", path, "--one-sensor", *inertia)
    for joint, K in zip(result["joints"], soft, strict=True):
        assert abs(joint["stiffness"] - K) < 2.0 * joint["stiffness_deviation"]
        assert joint["stiffness_deviation"] < 0.15 * joint["stiffness"]
        assert joint["relative_error"] < joint["relative_error_rigid"]
        assert not joint["notes"]
    blind = run("cmu-dd-arm2", path, "--one-sensor", "--joint", "joint3")["joints"][0]
    assert blind["stiffness"] is None
    assert [n["code"] for n in blind["notes"]] == ["motor-inertia-unknown"]


@dataclass(frozen=True)
class Harmonics:
    """Six harmonics of one radian per second, random amplitudes; it begins and ends at speed."""

    seed: int
    duration: float = 8.0

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a, b = np.random.default_rng(self.seed).uniform(-0.6, 0.6, (2, 3, 6))
        k = np.arange(1.0, 7.0)
        angle = np.asarray(t)[:, np.newaxis, np.newaxis] * k
        c, s = np.cos(angle), np.sin(angle)
        return (a / k * s - b / k * c).sum(2), (a * c + b * s).sum(2), (k * (b * c - a * s)).sum(2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_sensor_is_not_misled_by_the_ends_of_a_recording(seed: int) -> None:
    """What a fourth derivative makes up beyond either end once tripled B / K, with deviations that denied it."""
    arm, soft = load_robot("cmu-dd-arm2"), (1500.0, 1000.0, 500.0)
    scenario = Scenario(
        physics=Physics(elastic=True, stiffness=soft, sensed_friction=0.0, collisions=False, tracking_limit=1.0),
        sensors=Sensors(
            position=PositionSensor(resolution=2.0 * np.pi / 2**20), motor=TorqueSensor(noise=0.1), torque=None
        ),
        seed=seed,
    )
    found = identify_transmission(arm, run_scenario(arm, Harmonics(seed), scenario).log, one_sensor=True)
    for joint, K, B in zip(found.joints, soft, arm.drive("rotor_inertia"), strict=True):
        assert abs(joint.ratio - B / K) < 3.0 * joint.ratio_deviation
        assert joint.ratio < 1.5 * B / K


def test_one_sensor_on_a_rigid_arm_sees_no_elasticity(tmp_path: Path) -> None:
    arm = load_robot("cmu-dd-arm2")
    scenario = Scenario(physics=Physics(collisions=False), sensors=Sensors(motor=TorqueSensor(noise=0.5), torque=None))
    path = write_log(run_scenario(arm, Waves(), scenario).log, tmp_path / "log.csv", LogFormat.CSV)
    joint = run("cmu-dd-arm2", path, "--one-sensor", "--joint", "joint3", "--motor-inertia", "joint3=0.05")
    assert [n["code"] for n in joint["joints"][0]["notes"]] == ["rigid-joint"]


def test_one_sensor_on_stiff_joints_says_that_it_cannot() -> None:
    """B / K of 1e-5: a number three deviations from zero would be wrong; the bound holds."""
    arm = load_robot("cmu-dd-arm2")
    stiff = (30000.0, 20000.0, 10000.0)
    scenario = Scenario(
        physics=Physics(elastic=True, stiffness=stiff, sensed_friction=0.0, collisions=False, tracking_limit=1.0),
        sensors=Sensors(
            position=PositionSensor(resolution=2.0 * np.pi / 2**20), motor=TorqueSensor(noise=0.1), torque=None
        ),
    )
    found = identify_transmission(arm, run_scenario(arm, Waves(), scenario).log, one_sensor=True)
    for joint, K, B in zip(found.joints, stiff, arm.drive("rotor_inertia"), strict=True):
        assert "rigid-joint" in [note.code for note in joint.notes]
        assert max(joint.ratio, 0.0) + 2.0 * joint.ratio_deviation > B / K
        assert f"below {max(joint.ratio, 0.0) + 2.0 * joint.ratio_deviation:.2g} s^2" in joint.notes[0].message


def test_elastic_joints_of_a_real_arm() -> None:
    mapping = ROOT / "docs" / "mappings" / "kr300-A-elastic.yaml"
    arm = ROOT / "docs" / "robots" / "kr300.yaml"
    for option in ("--instruments", "--no-instruments"):
        result = run(arm, mapping, "--joint", "joint3", "--data-root", real_data(), option)
        joint = result["joints"][0]
        assert 3e6 < joint["stiffness"] < 7e6
        assert joint["notes"][0]["code"] == "encoder-lag"
