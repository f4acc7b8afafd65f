"""Weight that a controller takes out, clocks, tilts, computed torque: found as what they are, or beside what looks the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.identification.faults import Answer, Fault
from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.sensor_file import read_sensors, sensor_text
from armid.identification.settings import Identification
from armid.identification.tolerances import ImperfectionTolerances
from armid.kernels.dynamics import gravity
from armid.logs import Channel, Log
from armid.logs.conditioning import Conditioning, VelocitySource
from armid.outcome import Verdict
from armid.parameters.effects import Effects
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.rows.imperfections import Family
from armid.simulation.variation import varied
from support.identified import log, urdf_file

EFFECTS = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)
SEEDS = (3, 5)
Change = Callable[[Log], Log]


@cache
def arm() -> Robot:
    return load_robot("ur10e")


@cache
def specimen() -> Robot:
    """Off its description by a tenth."""
    return varied(arm(), 0.1, np.random.default_rng(1))


def identified(
    change: Change,
    *,
    robot: Robot | None = None,
    truth: Robot | None = None,
    correct: bool = False,
    measured: bool = False,
) -> Result:
    described = robot or arm()
    train, test = (change(log(described, truth or specimen(), seed=seed)) for seed in SEEDS)
    velocity = VelocitySource.MEASURED if measured else VelocitySource.POSITION
    settings = Identification(
        effects=EFFECTS,
        sensitivity=False,
        correct=correct,
        imperfections=ImperfectionTolerances(families=()),
        conditioning=Conditioning(velocity=velocity),
    )
    return run_identification(described, [train], [test], settings)


def found(result: Result) -> dict[str, Fault]:
    return {fault.name: fault for fault in result.faults if fault.answer is Answer.FOUND}


def lighter(share: float, robot: Robot) -> Change:
    """Torque without a share of what the bodies of an arm weigh."""

    def change(own: Log) -> Log:
        torque = own[Channel.LINK_TORQUE] - share * gravity(robot, own[Channel.POSITION])
        return replace(own, channels={**own.channels, Channel.LINK_TORQUE: torque})

    return change


def stamped(clock: float, *, velocities: bool = False) -> Change:
    """Time stamped too long, with velocities that a recorder has made from the stamps."""

    def change(own: Log) -> Log:
        channels = dict(own.channels)
        if velocities:
            channels[Channel.VELOCITY] = np.gradient(own[Channel.POSITION], own.time, axis=0) / clock
        return replace(own, time=own.time * clock, channels=channels)

    return change


def weight_error(result: Result, truth: Robot) -> float:
    """Of the gravity torque that the identified bodies have, over that of the arm."""
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (200, truth.n_joints))
    own: FloatArray = gravity(truth, q)
    return float(np.linalg.norm(gravity(result.robot, q) - own) / np.linalg.norm(own))


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_share_of_the_weight_that_is_missing_is_told_from_a_clock_by_the_described_bodies_or_not_at_all(
    share: float,
) -> None:
    """To the torque the two are the same: corrected as the wrong one, all bodies would be as light as the torque is."""
    result = identified(lighter(share, specimen()), correct=True)
    named = found(result)
    assert {"weight", "clock"} & set(named)
    if result.verdict is Verdict.TRUSTED:
        assert named["weight"].estimate == pytest.approx(share, abs=0.02)
        assert weight_error(result, specimen()) < 0.03
    else:
        (fault,) = (named[name] for name in ("weight", "clock") if name in named)
        assert fault.rivals


def test_weight_that_a_controller_takes_out_by_the_description_is_found_as_that_and_undone() -> None:
    robot = load_robot(str(urdf_file()))
    change, truth = lighter(0.4, robot), varied(robot, 0.3, np.random.default_rng(2))
    fault = found(identified(change, robot=robot, truth=truth))["weight as described"]
    assert fault.estimate == pytest.approx(0.4, abs=0.02)
    assert fault.large
    corrected = identified(change, robot=robot, truth=truth, correct=True)
    assert corrected.verdict is Verdict.TRUSTED
    assert weight_error(corrected, truth) < 0.03


def test_a_clock_that_is_in_the_recorded_velocities_too_is_no_missing_weight() -> None:
    result = identified(stamped(1.3, velocities=True), measured=True)
    named = found(result)
    fault = next(named[name] for name in ("clock with velocities", "weight") if name in named)
    assert fault.kind != "weight" or fault.rivals == ("clock with velocities",)
    if fault.kind == "clock with velocities":
        assert fault.estimate == pytest.approx(0.3, abs=0.01)
        assert " and velocity: {gain: " in fault.words


def test_a_clock_with_velocities_is_read_back_from_a_sensor_file(tmp_path) -> None:
    text = "schema: armid.sensors/1\nclock_with_velocities: {value: 0.3}\n"
    file = tmp_path / "sensors.yaml"
    file.write_text(text)
    sensors = read_sensors(file, arm())
    assert sensors.size(Family.CLOCK, part="with velocities") == pytest.approx(0.3)
    assert "clock_with_velocities: {value: 0.3" in sensor_text(sensors)


def test_a_base_that_stands_askew_is_found_at_its_angle_and_left_to_a_search_for_gravity() -> None:
    """Undone as a line, 29 degrees would leave a gravity that is too long, and a clock to make up for it."""
    turn = np.radians([20.0, -15.0])
    angle = float(np.linalg.norm(turn))
    axis = np.array([*turn, 0.0]) / angle
    level = np.array(specimen().gravity)
    askew = np.cos(angle) * level + np.sin(angle) * np.cross(axis, level)
    result = identified(lambda own: own, truth=specimen().with_gravity(askew), correct=True)
    named = found(result)
    sizes = [fault.estimate for name, fault in named.items() if name.startswith("tilt")]
    assert np.degrees(np.linalg.norm(sizes)) == pytest.approx(25.0, abs=0.5)
    assert not any(name.startswith(("clock", "weight")) for name in named)
    assert result.verdict is Verdict.UNTRUSTED


def test_an_encoder_that_counts_half_is_nothing_else() -> None:
    def half(own: Log) -> Log:
        q = np.array(own[Channel.POSITION])
        q[:, 2] *= 0.5
        return replace(own, channels={**own.channels, Channel.POSITION: q})

    result = identified(half, correct=True)
    assert found(result)["scale of elbow_joint"].estimate == pytest.approx(-0.5, abs=0.01)
    assert result.verdict is Verdict.TRUSTED
    assert weight_error(result, specimen()) < 0.03


def test_bodies_that_are_the_descriptions_own_may_have_been_computed(monkeypatch) -> None:
    monkeypatch.setattr("support.identified.NOISE", 0.002)

    def doubted(truth: Robot) -> bool:
        faults = identified(lambda own: own, truth=truth).faults
        return any(f.kind == "computed torque" and f.answer is Answer.UNDECIDABLE for f in faults)

    assert doubted(arm())
    assert not doubted(specimen())
