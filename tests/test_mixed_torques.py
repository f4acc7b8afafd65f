"""Torque sensors that read by direction, or what another joint carries: found by name and size, decisive; else bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.identification.candidates import MIXED
from armid.identification.faults import Answer
from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.identification.tolerances import ImperfectionTolerances
from armid.logs import Channel, Log
from armid.outcome import Verdict
from armid.robot.load import load_robot
from armid.rows.imperfections import Family
from armid.simulation.variation import varied
from support.identified import EFFECTS, log, urdf_file

WAIST, SHOULDER = 0, 1
Read = Callable[[FloatArray, FloatArray], FloatArray]
"""Torque that the waist's sensor reads, from the positions and torques of the log."""


def identified(read: Read, joint: int = WAIST) -> Result:
    robot = load_robot(str(urdf_file()))
    truth = varied(robot, 0.2, np.random.default_rng(1))

    def recorded(seed: int) -> Log:
        own = log(robot, truth, seed=seed)
        torque = np.array(own[Channel.LINK_TORQUE])
        torque[:, joint] = read(own[Channel.POSITION], torque)
        return replace(own, channels={**own.channels, Channel.LINK_TORQUE: torque})

    settings = Identification(effects=EFFECTS, sensitivity=False, imperfections=ImperfectionTolerances(families=()))
    return run_identification(robot, [recorded(3)], [recorded(5)], settings)


def by_sign(_: FloatArray, torque: FloatArray) -> FloatArray:
    return np.where(torque[:, WAIST] > 0.0, 1.2, 1.0) * torque[:, WAIST]


def by_turning(q: FloatArray, torque: FloatArray) -> FloatArray:
    return np.where(np.gradient(q[:, WAIST]) > 0.0, 1.2, 1.0) * torque[:, WAIST]


def of_the_shoulder(_: FloatArray, torque: FloatArray) -> FloatArray:
    return torque[:, WAIST] + 0.1 * torque[:, SHOULDER]


def by_load(_: FloatArray, torque: FloatArray) -> FloatArray:
    """A fifth less at the largest torque; at the largest load, which leaves out drives, about half of that."""
    own = torque[:, WAIST]
    return own * (1.0 - 0.2 * np.abs(own) / np.abs(own).max())


def by_position(q: FloatArray, torque: FloatArray) -> FloatArray:
    return (1.0 + 0.2 * np.sin(q[:, WAIST])) * torque[:, WAIST]


@pytest.mark.parametrize(
    ("read", "name", "size"),
    [
        (by_sign, "direction-gain of waist", 0.2 / 1.1),
        (by_turning, "turning-gain of waist", 0.2 / 1.1),
        (by_load, "load-gain of waist", -0.1),
        (by_position, "position-gain sine of waist", 0.2),
        (of_the_shoulder, "crosstalk from shoulder of waist", 0.1),
    ],
)
def test_a_sensor_that_mixes_is_named_and_decisive(read: Read, name: str, size: float) -> None:
    result = identified(read)
    fault = result.faults[name]
    assert fault.answer is Answer.FOUND
    assert fault.estimate == pytest.approx(size, rel=0.2)  # a load gain is per largest load, known from misread torque
    assert result.verdict is Verdict.UNTRUSTED


def test_a_gain_that_goes_with_the_position_is_no_spring_and_no_gain_of_all_positions() -> None:
    """Both were found in its place where the joint carries weight, and the model was trusted."""
    result = identified(lambda q, torque: (1.0 + 0.3 * np.sin(2.0 * q[:, SHOULDER])) * torque[:, SHOULDER], SHOULDER)
    found = {f.name: f for f in result.faults if f.answer is Answer.FOUND}
    assert set(found) == {"position-gain sine of twice of shoulder"}
    assert found["position-gain sine of twice of shoulder"].estimate == pytest.approx(0.3, rel=0.1)
    assert result.verdict is Verdict.UNTRUSTED


def test_sound_sensors_are_said_not_to_mix() -> None:
    faults = identified(lambda _, torque: torque[:, WAIST]).faults
    assert not [f.name for f in faults if f.answer is Answer.FOUND]
    of_waist = {f.kind.split(" ")[0]: f.answer for f in faults if f.joint == "waist"}
    # An upright axis has no weight that play could turn.
    assert all(of_waist[family.value] is Answer.EXCLUDED for family in MIXED if family is not Family.PLAY)
    # The shoulder's torque has one sign: two gains by direction are one gain, and friction of the load is one by turning.
    assert faults["direction-gain of shoulder"].answer is Answer.UNDECIDABLE
