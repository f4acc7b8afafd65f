"""Recordings that contradict each other: a zero, a gain or an offset that only one of them has is found, friction is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.identification.faults import Answer, Fault
from armid.identification.logs_apart import HALVES, LOGS
from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.logs import Channel, Log
from armid.outcome import Verdict
from armid.robot.load import load_robot
from support.identified import EFFECTS, log, trusted, urdf_file

Q, TAU = Channel.POSITION, Channel.LINK_TORQUE
Change = Callable[[dict[Channel, FloatArray], FloatArray], None]


def changed(whole: Log, change: Change, start: float = 0.0) -> Log:
    """A log with something else from a share of its rows on."""
    channels = {channel: np.array(values) for channel, values in whole.channels.items()}
    late = (np.arange(len(whole)) >= start * len(whole)).astype(float)[:, np.newaxis]
    change(channels, late)
    return replace(whole, channels=channels)


def zero(channels: dict[Channel, FloatArray], late: FloatArray) -> None:
    channels[Q][:, 1:2] += np.radians(15.0) * late


def gain(channels: dict[Channel, FloatArray], late: FloatArray) -> None:
    channels[TAU][:, 1:2] *= 1.0 + 0.3 * late


def offset(channels: dict[Channel, FloatArray], late: FloatArray) -> None:
    channels[TAU][:, 1:2] += 6.0 * late


def friction(channels: dict[Channel, FloatArray], late: FloatArray) -> None:
    channels[TAU] += late * np.sign(np.gradient(channels[Q], axis=0))


def nothing(channels: dict[Channel, FloatArray], late: FloatArray) -> None:
    del channels, late


def learnt(*train: Log) -> Result:
    robot = load_robot(str(urdf_file()))
    settings = Identification(effects=EFFECTS, sensitivity=False)
    return run_identification(robot, train, [log(robot, trusted().robot, seed=7)], settings)


def recorded(seed: int) -> Log:
    return log(load_robot(str(urdf_file())), trusted().robot, seed=seed)


def said(result: Result, kind: str) -> dict[str | None, Fault]:
    return {fault.joint: fault for fault in result.faults if fault.kind == kind}


@pytest.mark.parametrize("change", [zero, gain, offset])
def test_what_only_one_of_two_logs_has_is_found_and_decisive(change: Change) -> None:
    result = learnt(recorded(3), changed(recorded(5), change))
    found = said(result, LOGS)["shoulder"]
    assert found.answer is Answer.FOUND
    assert found.large
    assert "what changed between run3 and run5" in found.words
    assert result.verdict is Verdict.UNTRUSTED


@pytest.mark.parametrize("change", [nothing, friction])
def test_logs_of_one_arm_agree_however_warm_it_was(change: Change) -> None:
    result = learnt(recorded(3), changed(recorded(5), change))
    answers = {kind: [fault.answer for fault in said(result, kind).values()] for kind in (LOGS, HALVES)}
    assert answers == {LOGS: [Answer.EXCLUDED] * 3, HALVES: [Answer.EXCLUDED] * 3}


def test_what_changes_half_way_is_said() -> None:
    result = learnt(changed(recorded(3), gain, start=0.5))
    assert not said(result, LOGS)
    found = said(result, HALVES)["shoulder"]
    assert found.answer is Answer.UNDECIDABLE
    assert "what changed along run3" in found.experiment
