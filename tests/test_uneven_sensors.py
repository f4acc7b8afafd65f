"""Encoders out of round or with play, torque with hysteresis, delays that come and go: named with size, or bounded."""

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
from armid.identification.settings import Identification
from armid.identification.unsteady import KIND as JITTER
from armid.logs import Channel, Log
from armid.outcome import Verdict
from armid.robot.load import load_robot
from armid.simulation.variation import varied
from support.identified import EFFECTS, log, urdf_file

SHOULDER = 1
Channels = dict[Channel, FloatArray]
Spoil = Callable[[Channels, FloatArray], None]
"""Changes channels of a log, given its stamps."""


@cache
def clean(seed: int) -> Log:
    robot = load_robot(str(urdf_file()))
    return log(robot, varied(robot, 0.2, np.random.default_rng(1)), seed=seed)


def identified(spoil: Spoil, *, correct: bool = False) -> Result:
    def recorded(seed: int) -> Log:
        own = clean(seed)
        channels = {channel: np.array(values) for channel, values in own.channels.items()}
        spoil(channels, np.asarray(own.time))
        return replace(own, channels=channels, notes=())

    settings = Identification(effects=EFFECTS, sensitivity=False, correct=correct)
    return run_identification(load_robot(str(urdf_file())), [recorded(3)], [recorded(5)], settings)


def dragged(values: FloatArray, width: float) -> FloatArray:
    """What follows behind a play of this width."""
    out, at = np.array(values), values[0]
    for k, value in enumerate(values):
        at = min(max(at, value - 0.5 * width), value + 0.5 * width)
        out[k] = at
    return out


def late_by_turns(seconds: float) -> Spoil:
    """Torque of the shoulder late and early by turns, by so much in the mean square, a wave a second."""

    def spoil(channels: Channels, t: FloatArray) -> None:
        when = t - 2.0**0.5 * seconds * np.sin(2.0 * np.pi * t)
        torque = channels[Channel.LINK_TORQUE]
        torque[:, SHOULDER] = np.interp(when, t, torque[:, SHOULDER])

    return spoil


def out_of_round(size: float) -> Spoil:
    def spoil(channels: Channels, _: FloatArray) -> None:
        q = np.array(channels[Channel.POSITION][:, SHOULDER])
        channels[Channel.POSITION][:, SHOULDER] = q + size * np.sin(q)
        if Channel.VELOCITY in channels:
            channels[Channel.VELOCITY][:, SHOULDER] *= 1.0 + size * np.cos(q)

    return spoil


def behind(seconds: float) -> Spoil:
    """Motion of the shoulder recorded late."""

    def spoil(channels: Channels, t: FloatArray) -> None:
        for channel in {Channel.POSITION, Channel.VELOCITY} & set(channels):
            channels[channel][:, SHOULDER] = np.interp(t - seconds, t, channels[channel][:, SHOULDER])

    return spoil


def with_play(width: float) -> Spoil:
    def spoil(channels: Channels, _: FloatArray) -> None:
        channels[Channel.POSITION][:, SHOULDER] = dragged(channels[Channel.POSITION][:, SHOULDER], width)

    return spoil


def with_hysteresis(share: float) -> Spoil:
    def spoil(channels: Channels, _: FloatArray) -> None:
        torque = channels[Channel.LINK_TORQUE]
        torque[:, SHOULDER] = dragged(torque[:, SHOULDER], share * float(np.std(torque[:, SHOULDER])))

    return spoil


def sound(_: Channels, __: FloatArray) -> None:
    pass


def of_shoulder(result: Result, kind: str) -> Fault:
    return next(f for f in result.faults if f.kind == kind and f.joint == "shoulder")


@cache
def of_sound() -> Result:
    return identified(sound)


@pytest.mark.parametrize(
    "kind", ["encoder-delay", "eccentricity sine", "eccentricity cosine", "play", "hysteresis", JITTER]
)
def test_sound_sensors_are_bounded(kind: str) -> None:
    assert of_sound().verdict is Verdict.TRUSTED
    fault = of_shoulder(of_sound(), kind)
    assert fault.answer is Answer.EXCLUDED
    assert fault.low <= 0.0 <= fault.high


def test_an_encoder_out_of_round_is_named_with_its_size_and_decisive() -> None:
    result = identified(out_of_round(0.1))
    fault = of_shoulder(result, "eccentricity sine")
    assert fault.answer is Answer.FOUND
    assert fault.low < 0.1 < fault.high
    assert fault.high - fault.low < 0.01
    assert result.verdict is Verdict.UNTRUSTED


@pytest.mark.parametrize("seconds", [-0.03, 0.006, 0.02, 0.06])
def test_motion_of_one_joint_that_came_late_is_named_with_its_size(seconds: float) -> None:
    result = identified(behind(seconds))
    fault = of_shoulder(result, "encoder-delay")
    assert fault.answer is Answer.FOUND
    # By less than half a sample, and by a twentieth where undoing it is far from its derivative.
    assert fault.estimate == pytest.approx(seconds, abs=0.0015, rel=0.05)
    assert "encoder_delay" in fault.words
    # Decisive is what is beyond three tolerances.
    assert (result.verdict is Verdict.UNTRUSTED) == (abs(seconds) > 0.009)


def test_motion_of_one_joint_that_came_late_is_undone_on_request() -> None:
    result = identified(behind(0.06), correct=True)
    assert result.verdict is Verdict.TRUSTED
    assert of_shoulder(result, "encoder-delay").corrected
    assert result.relative_error["held_out"] < 1.1 * of_sound().relative_error["held_out"]


@pytest.mark.parametrize("width", [0.008, 0.015, 0.03])
def test_play_of_an_encoder_is_named_with_its_size_and_decisive(width: float) -> None:
    result = identified(with_play(width))
    fault = of_shoulder(result, "play")
    assert fault.answer is Answer.FOUND
    assert fault.low < width < fault.high
    assert result.verdict is Verdict.UNTRUSTED


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_hysteresis_of_torque_is_named_with_its_size_and_decisive(share: float) -> None:
    result = identified(with_hysteresis(share))
    fault = of_shoulder(result, "hysteresis")
    assert fault.answer is Answer.FOUND
    assert fault.low < share * float(np.std(clean(3).channels[Channel.LINK_TORQUE][:, SHOULDER])) < fault.high
    assert result.verdict is Verdict.UNTRUSTED


def test_little_hysteresis_of_torque_is_said() -> None:
    fault = of_shoulder(identified(with_hysteresis(0.1)), "hysteresis")
    assert fault.answer is Answer.UNDECIDABLE
    assert fault.low > 0.0


@pytest.mark.parametrize("seconds", [0.002, 0.004, 0.010])
def test_a_delay_that_comes_and_goes_is_within_its_interval(seconds: float) -> None:
    before, fault = of_shoulder(of_sound(), JITTER), of_shoulder(identified(late_by_turns(seconds)), JITTER)
    assert fault.low < seconds < fault.high
    assert fault.high > before.high
    assert (fault.answer is Answer.UNDECIDABLE) == (seconds > 0.006)


def rippled(share: float, joint: int) -> Spoil:
    """Torque of a joint that goes with its position, as of a gear or a cable, by a share of its own."""

    def spoil(channels: Channels, t: FloatArray) -> None:
        torque = channels[Channel.LINK_TORQUE]
        torque[:, joint] += share * float(np.std(torque[:, joint])) * np.sin(9.0 * channels[Channel.POSITION][:, joint])

    return spoil


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_ripple_of_a_gear_is_no_delay_that_comes_and_goes(share: float) -> None:
    fault = of_shoulder(identified(rippled(share, SHOULDER)), JITTER)
    assert fault.low == 0.0
    assert np.isnan(fault.estimate)
    assert fault.high > of_shoulder(of_sound(), JITTER).high


def test_a_delay_longer_than_a_period_of_the_cut_off_cannot_be_bounded() -> None:
    fault = of_shoulder(identified(rippled(5.0, SHOULDER)), JITTER)
    assert fault.answer is Answer.UNDECIDABLE
    assert fault.bound == np.inf
    assert "cannot be bounded; record torque and motion" in fault.sentence
