"""Gains and friction that change along a recording, and a spring at a joint: found by name and size, else excluded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.identification.both_sides import merged
from armid.identification.candidates import CHANGES
from armid.identification.faults import Answer, Fault
from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.identification.tolerances import ImperfectionTolerances
from armid.logs import Channel, Log
from armid.parameters.effects import TorqueSide
from armid.robot.load import load_robot
from armid.simulation.variation import varied
from support.identified import EFFECTS, log, urdf_file

SHOULDER = 1
Change = Callable[[Log, FloatArray, FloatArray], FloatArray]
"""Torque of the shoulder from the log, the share of it that has gone by, and that torque."""


def changed(own: Log, change: Change, channel: Channel = Channel.LINK_TORQUE) -> Log:
    elapsed = (own.time - own.time[0]) / (own.time[-1] - own.time[0])
    torque = np.array(own[channel])
    torque[:, SHOULDER] = change(own, elapsed, torque[:, SHOULDER])
    return replace(own, channels={**own.channels, channel: torque})


def identified(change: Change, *more: int) -> Result:
    """Of a recording, and further ones by their seeds."""
    robot = load_robot(str(urdf_file()))
    truth = varied(robot, 0.2, np.random.default_rng(1))
    test, *train = (changed(log(robot, truth, seed=seed), change) for seed in (5, 3, *more))
    train = [replace(own, name=f"{own.name} {k}") for k, own in enumerate(train)]
    settings = Identification(effects=EFFECTS, sensitivity=False, imperfections=ImperfectionTolerances(families=()))
    return run_identification(robot, train, [test], settings)


def gained(_: Log, elapsed: FloatArray, torque: FloatArray) -> FloatArray:
    return torque * (1.0 + 0.3 * elapsed)


def rubbed(own: Log, elapsed: FloatArray, torque: FloatArray) -> FloatArray:
    return torque + 4.0 * elapsed * np.sign(np.gradient(own[Channel.POSITION][:, SHOULDER]))


def pulled(own: Log, _: FloatArray, torque: FloatArray) -> FloatArray:
    return torque + 6.0 * own[Channel.POSITION][:, SHOULDER]


@pytest.mark.parametrize(
    ("change", "name", "low", "high"),
    [
        (gained, "gain-drift of shoulder", 0.2, 0.32),  # of a gain that is 1.15 in the middle
        (rubbed, "friction-drift of shoulder", 3.0, 6.5),  # as if it grew with the speed by half
        (pulled, "spring of shoulder", 5.5, 6.5),
    ],
)
def test_what_changes_along_a_recording_and_what_pulls_back_is_named(
    change: Change, name: str, low: float, high: float
) -> None:
    fault = identified(change).faults[name]
    assert fault.answer is Answer.FOUND
    assert low < fault.estimate < high


@pytest.mark.parametrize(("change", "kind"), [(gained, "gain-drift"), (rubbed, "friction-drift")])
def test_what_changes_anew_in_every_recording_is_named_as_that(change: Change, kind: str) -> None:
    found = [f for f in identified(change, 7, 9).faults if f.answer is Answer.FOUND]
    assert [f.name for f in found] == [f"{kind} in every recording of shoulder"]


@pytest.mark.parametrize("more", [(), (7, 9)])
def test_where_nothing_changes_that_is_said(more: tuple[int, ...]) -> None:
    faults = identified(lambda _, elapsed, torque: torque, *more).faults
    assert not [f.name for f in faults if f.answer is Answer.FOUND]
    for kind in (*(family.value for family in CHANGES), "spring"):
        assert faults[f"{kind} of shoulder"].answer is Answer.EXCLUDED


def stepped(own: Log, elapsed: FloatArray, torque: FloatArray) -> FloatArray:
    return torque * np.where(elapsed > 0.4, 1.2, 1.0)


def before_stepped(own: Log, elapsed: FloatArray, torque: FloatArray) -> FloatArray:
    return torque * np.where(elapsed < 0.6, 0.7, 1.0)


def shifted(_: Log, elapsed: FloatArray, torque: FloatArray) -> FloatArray:
    return torque + np.where(elapsed > 0.3, 6.0, 0.0)


def rubbed_at_once(own: Log, elapsed: FloatArray, torque: FloatArray) -> FloatArray:
    return torque + np.where(elapsed > 0.5, 4.0, 0.0) * np.sign(np.gradient(own[Channel.POSITION][:, SHOULDER]))


@pytest.mark.parametrize(
    ("change", "name", "low", "high"),
    [
        (stepped, r"gain-step from (38|40|42) % on of shoulder", 0.17, 0.22),
        (before_stepped, r"gain-step until (58|60|62) % of shoulder", -0.33, -0.27),
        (shifted, r"offset-step from (28|30|32) % on of shoulder", 5.5, 6.5),
        (rubbed_at_once, r"friction-step from (48|50|52) % on of shoulder", 3.0, 6.5),
    ],
)
def test_what_is_another_at_once_is_named_with_its_moment_and_size(
    change: Change, name: str, low: float, high: float
) -> None:
    result = identified(change)
    (fault,) = (f for f in result.faults if f.answer is Answer.FOUND)
    assert re.fullmatch(name, fault.name)
    assert low < fault.estimate < high
    decisive = any(check.code == "fault" and not check.passed for check in result.checks)
    assert decisive is not name.startswith("friction")


def test_an_encoder_that_slipped_between_two_recordings_is_named_with_its_angle() -> None:
    robot = load_robot(str(urdf_file()))
    truth = varied(robot, 0.2, np.random.default_rng(1))
    test, first, second = (log(robot, truth, seed=seed) for seed in (5, 3, 7))
    q = np.array(second[Channel.POSITION])
    q[:, SHOULDER] += np.radians(4.0)
    slipped = replace(second, name="second", channels={**second.channels, Channel.POSITION: q})
    settings = Identification(effects=EFFECTS, sensitivity=False)
    faults = run_identification(robot, [first, slipped], [test], settings).faults
    fault = faults["zero-step from 50 % on of shoulder"]
    assert fault.answer is Answer.FOUND
    assert fault.large
    assert np.degrees(fault.estimate) == pytest.approx(4.0, abs=0.4)


def test_of_both_sides_motion_is_answered_by_the_surer_and_torque_by_each() -> None:
    def one(kind: str, deviation: float, answer: Answer = Answer.EXCLUDED) -> Fault:
        return Fault(kind=kind, joint="elbow", standard_deviation=deviation, answer=answer)

    found = one("scale", 3.0, Answer.FOUND)
    link = [one("zero", 2.0), one("gain", 1.0), one("scale", 1.0), Fault(kind="weight")]
    told = merged(link, [one("zero", 1.0), one("gain", 2.0), found, Fault(kind="weight")])
    assert {f.name: f.standard_deviation for f in told if f.kind == "zero"} == {"zero of elbow": 1.0}
    assert [f for f in told if f.kind == "scale"] == [found]
    assert [f.name for f in told if f.kind == "gain"] == ["gain of elbow", "gain of elbow:motor"]
    assert [f.name for f in told if f.kind == "weight"] == ["weight", "weight of motor side"]


def test_the_gain_of_one_side_is_found_where_both_are_recorded() -> None:
    robot = load_robot(str(urdf_file()))
    truth = varied(robot, 0.2, np.random.default_rng(1))
    logs = []
    for seed in (3, 5):
        own = log(robot, truth, seed=seed)
        both = replace(own, channels={**own.channels, Channel.MOTOR_TORQUE: own[Channel.LINK_TORQUE]})
        logs.append(changed(both, lambda _, __, torque: 1.3 * torque, Channel.MOTOR_TORQUE))
    effects = replace(EFFECTS, torques=TorqueSide.BOTH)
    result = run_identification(robot, logs[:1], logs[1:], Identification(effects=effects, sensitivity=False))
    assert [f.name for f in result.faults if f.answer is Answer.FOUND] == ["gain of shoulder:motor"]
    assert not any(check.passed for check in result.checks if check.code == "fault")
