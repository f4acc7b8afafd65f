"""Whole experiments: specimens, settings files, the truth, determinism, parallel runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armid.errors import ArmidError, InputError, UnknownNameError
from armid.kernels.dynamics import gravity
from armid.logs.log import Channel
from armid.robot.load import load_robot
from armid.simulation.controllers import ComputedTorque, HandGuiding, PdGravity
from armid.simulation.drift import FrictionDrift
from armid.simulation.files import Job, run_jobs
from armid.simulation.measure import Mistakes
from armid.simulation.motions import Held
from armid.simulation.physics import Physics
from armid.simulation.run import run_motion
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import (
    ChannelLag,
    Packets,
    RecordedVelocity,
    SampleClock,
    Sensors,
    TorqueSensor,
    typical_sensors,
)
from armid.simulation.settings_file import load_scenario
from armid.simulation.truth import truth_of
from armid.simulation.variation import varied
from armid.simulation.writers import LogFormat
from support.motions import sines


@pytest.fixture(scope="module")
def panda():
    return load_robot("panda")


def test_a_specimen_differs_as_much_as_asked_and_is_always_possible(panda):
    masses = []
    for seed in range(40):
        other = varied(panda, 0.2, np.random.default_rng(seed))
        assert all(link.is_sound for link in other.links)
        masses.append([link.inertial[0] for link in other.links])
    nominal = np.array([link.inertial[0] for link in panda.links])
    assert np.std(np.log(np.array(masses) / nominal)) == pytest.approx(0.2, rel=0.15)
    friction = [varied(panda, 0.2, np.random.default_rng(s)).drive("viscous") for s in range(40)]
    assert np.std(np.log(np.array(friction) / panda.drive("viscous"))) == pytest.approx(0.2, rel=0.15)


def test_the_same_seed_gives_the_same_log_and_another_seed_another(panda):
    plan = Scenario(sensors=typical_sensors(panda.limit("torque")), variation=0.1, seed=5)
    one, same = (run_scenario(panda, sines(panda, 0.1), plan).log for _ in range(2))
    other = run_scenario(panda, sines(panda, 0.1), replace(plan, seed=6)).log
    for channel in one.channels:
        np.testing.assert_array_equal(one[channel], same[channel])
    assert (one[Channel.LINK_TORQUE] != other[Channel.LINK_TORQUE]).any()


def test_an_arm_mounted_wrongly_shows_the_opposite_weight(panda):
    plan = Scenario(mistakes=Mistakes(upside_down=True))
    done = run_scenario(panda, Held(np.array([0.0, 0.5, 0.0, -1.5, 0.0, 1.0, 0.0]), 0.2), plan)
    weight = gravity(panda, done.run.q)
    assert np.abs(weight).max() > 10.0
    # At rest the sensor carries the weight, but for what dry friction holds.
    assert (np.abs(done.log[Channel.LINK_TORQUE] + weight) <= panda.drive("coulomb") + 0.05).all()
    assert truth_of(done)["gravity"] == {"true": [0.0, 0.0, 9.81], "declared": [0.0, 0.0, -9.81]}


def test_a_wrong_controller_model_only_costs_tracking(panda):
    motion = sines(panda, 0.5)
    right = run_scenario(panda, motion, Scenario(controller=ComputedTorque())).run
    wrong = run_scenario(panda, motion, Scenario(controller=ComputedTorque(), model_variation=0.3, seed=1)).run

    def error(run):
        return np.abs(run.q - run.command.q).max()

    assert error(wrong) > 3.0 * error(right)
    np.testing.assert_array_equal(wrong.robot.inertial, panda.inertial)


def test_truth_says_everything_that_was_done_to_the_log(panda):
    plan = Scenario(
        sensors=Sensors(
            torque=TorqueSensor(gain=1.1, offset=0.2),
            clock=SampleClock(jitter=1e-5),
            lag=ChannelLag(torque=0.002),
            packets=Packets(0.01, 0.02),
        ),
        mistakes=Mistakes(wrong_sign=("joint1",), degrees=True),
        physics=Physics(drift=FrictionDrift(start=20.0, end=40.0), payload=np.array([1.0, 0, 0, 0, *[0.0] * 6])),
        seed=9,
    )
    done = run_scenario(panda, sines(panda, 0.1), plan)
    truth = json.loads(json.dumps(truth_of(done), allow_nan=False))
    assert truth["seed"] == 9
    assert set(truth["faults_injected"]) == {
        "torque-sign",
        "degrees",
        "clock-jitter",
        "lag",
        "dropped-samples",
        "repeated-samples",
        "friction-drift",
        "payload",
        "torque-gain",
        "torque-offset",
    }
    assert truth["parameters"]["link"]["link3.mass"] == panda.links[2].inertial[0]
    assert truth["parameters"]["motor"]["joint2.rotor_inertia"] == panda.joints[1].drive.rotor_inertia
    assert truth["parameters"]["link"]["payload.mass"] == 1.0
    assert Channel.TEMPERATURE in done.log


def test_parallel_runs_write_the_same_bytes(panda, tmp_path):
    def jobs(folder):
        plan = Scenario(sensors=typical_sensors(panda.limit("torque")))
        return [
            Job(
                robot=panda,
                motion=sines(panda, 0.05),
                scenario=replace(plan, seed=s),
                directory=tmp_path / folder,
                name=f"log{s}",
                formats=(LogFormat.CSV,),
            )
            for s in range(2)
        ]

    alone, together = run_jobs(jobs("one")), run_jobs(jobs("two"), processes=2)
    for a, b in zip(alone, together, strict=True):
        assert [file.name for file in a.files] == [file.name for file in b.files]
        for one, other in zip(a.files[:2], b.files[:2], strict=True):
            assert one.read_bytes() == other.read_bytes()


SETTINGS = """
seed: 7
variation: 0.2
controller: {kind: computed-torque, frequency_hz: 5}
physics:
  control_rate_hz: 2000
  sensed_friction: 0.5
  locked: [joint1]
  drift: {start: 20, end: 45, time_constant: 300}
  payload: {mass: 2.0, centre: [0, 0, 0.1], inertia: [0.01, 0, 0, 0.01, 0, 0.01]}
  on_fault: record
sensors:
  like: typical
  clock: {rate_hz: 500, jitter: 1.0e-5}
  torque: {noise: [1, 1, 1, 1, 1, 1, 2], saturation: 80}
  current: {torque_constant: 10}
mistakes: {wrong_sign: [joint2], swapped: [[joint1, joint2]]}
tracker: {position_noise: 1.0e-4, T_tracker_base: [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]}
joint_errors: {compliance: 1.0e-5}
"""


def test_a_settings_file_reaches_every_field(panda, tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(SETTINGS)
    plan = load_scenario(path, panda)
    assert plan.seed == 7
    assert plan.controller.frequency_hz == 5.0
    assert plan.physics.locked == ("joint1",)
    np.testing.assert_allclose(plan.physics.payload[:4], [2.0, 0.0, 0.0, 0.2])
    np.testing.assert_allclose(plan.physics.payload[4], 0.01 + 2.0 * 0.01)
    assert plan.sensors.velocity.source is RecordedVelocity.DIFFERENCED
    assert plan.sensors.torque.noise[-1] == 2.0
    assert plan.sensors.clock.rate_hz == 500.0
    assert plan.mistakes.swapped == (("joint1", "joint2"),)
    assert plan.tracker.T_tracker_base[0, 3] == 1.0
    assert run_scenario(panda, sines(panda, 0.05), plan).log.joints == panda.joint_names


def test_the_documented_scenario_is_one(panda, tmp_path):
    text = (Path(__file__).parents[1] / "docs" / "simulation.md").read_text(encoding="utf-8")
    path = tmp_path / "documented.yaml"
    path.write_text(text.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    plan = load_scenario(path, panda)
    assert plan.sensors.packets.repeated == 0.05
    assert plan.physics.drift.end == 45.0
    done = run_scenario(panda, sines(panda, 0.05), plan)
    assert done.run.complete


@pytest.mark.parametrize(
    ("word", "kind"), [("pd", PdGravity), ("computed-torque", ComputedTorque), ("hand", HandGuiding)]
)
def test_controllers_by_name(panda, tmp_path, word, kind):
    path = tmp_path / "s.yaml"
    path.write_text(f"controller: {word}\n")
    assert isinstance(load_scenario(path, panda).controller, kind)
    path.write_text(f"controller: {{kind: {word}, model: panda}}\n")
    assert load_scenario(path, panda).controller.model.name == panda.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "not a set of named fields"),
        ("sead: 3", "no field.*sead.*seed"),
        ("seed: many", "seed.*'many'"),
        ("physics: {control_rate: 3}", "control_rate_hz"),
        ("physics: {step: fast}", "not a number"),
        ("controller: {kind: pd, kp: 1e9}", "kp: '1e9' is not a number.*write 1.0e.9"),
        ("seed: -5", "seed: -5"),
        ("variation: 5", "variation: 5.*from 0 to 1"),
        ("model_variation: .nan", "model_variation"),
        ("physics: {step: -1}", "step"),
        ("physics: {on_fault: cry}", "raise, record"),
        ("physics: {payload: {mass: 1, colour: red}}", "colour"),
        ("physics: {payload: {mass: heavy}}", "not a number"),
        ("physics: {locked: joint1}", "a list"),
        ("controller: magic", "pd, computed-torque, hand"),
        ("sensors: superb", "perfect, typical"),
        ("sensors: {torque: {noise: loud}}", "loud"),
        ("sensors: {current: {}}", "torque_constant"),
        ("mistakes: {degrees: 3}", "degrees"),
        ("mistakes: {swapped: [[a]]}", "a list of 2"),
        ("tracker: {T_tracker_base: 3}", "four rows"),
        ("a: [1, 2", "not valid YAML"),
        ("seed: !!python/object/apply:os.system [ls]", "is not read"),
    ],
)
def test_bad_settings_files_are_named(panda, tmp_path, text, message):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(ArmidError, match=message):
        load_scenario(path, panda)


def test_a_settings_file_that_is_not_there(panda, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load_scenario(tmp_path / "none.yaml", panda)
    (tmp_path / "binary.yaml").write_bytes(bytes(range(128, 256)))
    with pytest.raises(InputError):
        load_scenario(tmp_path / "binary.yaml", panda)
    with pytest.raises(UnknownNameError):
        run_motion(panda, sines(panda, 0.1), physics=Physics(locked=("elbow",)))
