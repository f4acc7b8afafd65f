"""What a model leaves of a joint's torque, and constant torque: bounded, or listed with what it goes with."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.identification.candidates import Seen, within_chance, worth_undoing
from armid.identification.faults import Answer, Fault
from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.identification.thresholds import GOES_WITH
from armid.logs.check import check_log
from armid.logs.log import Channel, Log
from armid.robot.load import load_robot
from armid.rows.imperfections import Family, Imperfection
from support.identified import EFFECTS, log, trusted, urdf_file

ELBOW = 2


@cache
def clean(seed: int) -> Log:
    return log(load_robot(str(urdf_file())), trusted().robot, seed=seed)


TRAINING, HELD_OUT = 3, 5


def identified(
    added: Callable[[FloatArray], FloatArray], *, joint: int = ELBOW, to: tuple[int, ...] = (TRAINING, HELD_OUT)
) -> Result:
    """The arm with something added to a joint's torque: so many of its standard deviations, by the joint's angle."""
    robot = load_robot(str(urdf_file()))
    logs = []
    for seed in (TRAINING, HELD_OUT):
        one = clean(seed)
        channels = {channel: np.array(values) for channel, values in one.channels.items()}
        for channel in (c for c in channels if c.is_torque and seed in to):
            torque = channels[channel][:, joint]
            channels[channel][:, joint] = torque + np.std(torque) * added(one[Channel.POSITION][:, joint])
        logs.append(check_log(replace(one, channels=channels, notes=()), robot))
    return run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS, sensitivity=False))


def answers(result: Result, kind: str) -> dict[str, Fault]:
    return {fault.joint or "": fault for fault in result.faults if fault.kind == kind}


def test_a_clean_recording_bounds_what_is_left_of_every_joint() -> None:
    found = answers(identified(np.zeros_like), "unexplained torque")
    assert {fault.answer for fault in found.values()} == {Answer.EXCLUDED}
    assert max(fault.bound for fault in found.values()) < 0.05


def test_ripple_is_listed_as_torque_that_goes_with_the_position_of_its_joint() -> None:
    found = answers(identified(lambda q: 0.4 * np.sin(20.0 * q)), "unexplained torque")
    assert [name for name, fault in found.items() if fault.answer is Answer.UNDECIDABLE] == ["elbow"]
    assert "goes with its position" in found["elbow"].experiment
    assert found["elbow"].explains > GOES_WITH.value
    assert 0.1 < found["elbow"].estimate < 0.3


def test_a_small_ripple_is_listed_while_other_motion_repeats_it_and_within_its_bound_once_it_is_negligible() -> None:
    small, least = (
        answers(identified(lambda q, by=by: by * np.sin(20.0 * q)), "unexplained torque")["elbow"]
        for by in (0.05, 0.01)
    )
    assert small.answer is Answer.UNDECIDABLE
    assert "goes with its position" in small.experiment
    assert least.answer is Answer.EXCLUDED
    assert least.bound > 0.005


def test_a_ripple_finer_than_the_samples_in_its_waves_is_listed_with_its_number_of_waves() -> None:
    found = answers(identified(lambda q: 0.1 * np.sin(40.0 * q), joint=1), "unexplained torque")["shoulder"]
    assert found.answer is Answer.UNDECIDABLE
    assert re.search(r"in (39\.[5-9]\d*|40(\.\d*)?) waves a turn", found.experiment), found.experiment


def test_what_grew_from_training_to_held_out_motion_is_listed_though_it_is_small() -> None:
    rng = np.random.default_rng(2)
    found = answers(
        identified(lambda q: 0.06 * np.cumsum(rng.normal(size=len(q))) / len(q) ** 0.5, joint=1, to=(HELD_OUT,)),
        "unexplained torque",
    )["shoulder"]
    assert found.estimate < found.tolerance
    assert found.answer is Answer.UNDECIDABLE
    assert "times that of the training motion" in found.experiment


@pytest.mark.parametrize("size", [-1.0, 1.0])
def test_a_torque_sensor_off_its_zero_is_listed_with_its_size(size: float) -> None:
    before, found = (answers(identified(lambda q, by=by: np.full_like(q, by)), "torque offset") for by in (0.0, size))
    assert {fault.answer for fault in before.values()} == {Answer.EXCLUDED}
    torque = np.std(next(v for c, v in clean(3).channels.items() if c.is_torque)[:, ELBOW])
    assert found["elbow"].answer is Answer.UNDECIDABLE
    assert found["elbow"].estimate - before["elbow"].estimate == pytest.approx(size * torque, rel=0.03)
    assert found["shoulder"].answer is Answer.EXCLUDED


def seen_as(family: Family, size: float, taken: float) -> bool:
    item = Imperfection(family=family, joint=0, unit="s", tolerance=0.003)
    return worth_undoing(Seen(item=item, size=size, deviation=0.001, taken=taken), 100.0, 1.0)


def test_a_large_fault_is_undone_before_its_derivative_counts_for_little() -> None:
    assert not seen_as(Family.DELAY, 0.004, 2.0)  # ordinary in size: what it shows is what it explains
    assert seen_as(Family.DELAY, 0.030, 2.0)
    assert not seen_as(Family.DELAY, 0.030, 0.5)
    assert not seen_as(Family.DRIFT, 0.030, 2.0)  # linear: its derivative is all of it


def test_rivals_are_within_chance_up_to_three_standard_deviations() -> None:
    assert within_chance(100.0, 108.9)
    assert not within_chance(100.0, 109.1)
