"""Filters, averaging and differences as options: the processing of [Halper2024] and its parts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.errors import InputError, UnknownNameError
from armid.identification.identify import identify
from armid.kernels import dynamics
from armid.logs.conditioning import Differentiator, FilterKind, LowPass, Processing, low_pass, processing_of
from armid.logs.conditioning.repetitions import repetition
from armid.logs.log import Channel, Log
from armid.logs.processed import processed_log
from armid.logs.recording import open_recording
from armid.robot.load import load_robot

RATE = 100.0


def motion(t: np.ndarray, period: float, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random Fourier series of five harmonics: position, velocity, acceleration."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = (np.zeros((len(t), n)) for _ in range(3))
    for k in range(1, 6):
        w = 2 * np.pi * k / period
        a, b = rng.normal(size=(2, n)) * 0.35 / k
        q += a * np.sin(w * t)[:, None] + b * np.cos(w * t)[:, None]
        qd += w * (a * np.cos(w * t)[:, None] - b * np.sin(w * t)[:, None])
        qdd -= w**2 * (a * np.sin(w * t)[:, None] + b * np.cos(w * t)[:, None])
    return q, qd, qdd


def recorded(period: float, repetitions: int, *, lead: float = 0.0, seed: int = 0, noise: float = 0.3) -> Log:
    """A 3-joint arm along a repeated motion, after standing still and a way there."""
    robot = load_robot("cmu-dd-arm2")
    t = np.arange(0.0, lead + repetitions * period, 1.0 / RATE)
    q, qd, qdd = motion(t - lead, period, robot.n_joints, seed)
    if lead:
        blend = np.clip((t - 0.5 * lead) / (0.5 * lead), 0.0, 1.0)[:, None]
        s = blend**3 * (10 - 15 * blend + 6 * blend**2)
        q = np.where(t[:, None] < lead, s * q, q)
        qd, qdd = np.gradient(q, 1 / RATE, axis=0), np.gradient(np.gradient(q, 1 / RATE, axis=0), 1 / RATE, axis=0)
    rng = np.random.default_rng(seed + 1)
    tau = dynamics.inverse_dynamics(robot, q, qd, qdd) + noise * rng.normal(size=q.shape)
    channels = {Channel.POSITION: q + 1e-5 * rng.normal(size=q.shape), Channel.LINK_TORQUE: tau}
    return Log(name="repeated", joints=robot.joint_names, time=t, channels=channels)


@pytest.mark.parametrize(("period", "lead"), [(7.3, 0.0), (5.0, 4.0), (3.14159, 2.5)])
def test_the_period_and_where_it_begins_are_found(period: float, lead: float) -> None:
    log = recorded(period, 4, lead=lead)
    found = repetition(log.time, log[Channel.POSITION])
    assert found is not None
    assert found.period == pytest.approx(period, abs=2e-4)
    assert found.start_s == pytest.approx(lead, abs=0.1 * period)
    assert found.count >= 3


def test_a_motion_that_does_not_come_again_is_not_taken_for_one() -> None:
    log = recorded(20.0, 1)
    assert repetition(log.time, log[Channel.POSITION]) is None
    still = np.zeros((2000, 3))
    assert repetition(np.arange(2000) / RATE, still) is None
    # Twice the same way there, with long rests between: the rests alone are no repetition of a motion.
    rest = np.vstack([still, log[Channel.POSITION][:600], still])
    assert repetition(np.arange(len(rest)) / RATE, rest) is None


def test_the_mean_of_the_repetitions_has_the_noise_of_a_mean() -> None:
    robot, log = load_robot("cmu-dd-arm2"), recorded(5.0, 9, lead=3.0)
    whole = open_recording(log, robot, check=False)
    done = processed_log(whole, processing_of(average=True, cutoff_hz=np.inf).conditioning(rate=np.inf))
    assert done.repetitions >= 8
    assert done.scatter == pytest.approx((0.3, 0.3, 0.3), rel=0.1)
    samples = whole.repeated().condition(processing_of(average=True, cutoff_hz=np.inf).conditioning(rate=np.inf))
    q, qd, qdd = motion(samples.time - 3.0, 5.0, 3)
    error = samples.torques[Channel.LINK_TORQUE] - dynamics.inverse_dynamics(robot, q, qd, qdd)
    assert error.std() == pytest.approx(0.3 / np.sqrt(done.repetitions), rel=0.15)


def test_presets_say_what_the_works_say() -> None:
    halper = processing_of("halper2024").conditioning()
    assert (halper.cutoff, halper.torque_cutoff, halper.order, halper.average) == (3.0, 3.5, 20, True)
    assert halper.differentiator is Differentiator.CENTRAL
    assert processing_of("halper2024", cutoff_hz=5.0).cutoff_hz == 5.0
    assert processing_of("khosla1985").differentiator is Differentiator.LEAST_SQUARES
    with pytest.raises(UnknownNameError, match="halper2024"):
        processing_of("halper")


@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_the_critically_damped_filter_halves_at_the_cutoff_and_never_overshoots(order: int) -> None:
    filter = LowPass(1000.0, 10.0, order, FilterKind.CRITICAL)
    t = np.arange(4000) / 1000.0
    sine = np.sin(2 * np.pi * 10.0 * t)[:, None]
    assert np.abs(low_pass(sine, filter)[1500:2500]).max() == pytest.approx(0.5, rel=0.01)
    step = low_pass((t > 2.0).astype(float)[:, None], filter)
    assert step.max() < 1.0 + 1e-9
    if order > 1:
        ringing = low_pass((t > 2.0).astype(float)[:, None], LowPass(1000.0, 10.0, order))
        assert ringing.max() > 1.0 + 1e-3


def test_identify_averages_whole_repetitions_and_says_so() -> None:
    log = recorded(5.0, 5, lead=3.0)
    found = identify("cmu-dd-arm2", log, friction="none", processing="halper2024", drop="link3.Ixy")
    assert found.sensitivity.essential is not None
    assert [step.name for step in found.sensitivity.essential.removals] == ["link3.Ixy"]
    assert found.conditioning.averaged
    assert (found.conditioning.cutoff_hz, found.conditioning.torque_cutoff_hz) == (3.0, 3.5)
    assert (found.conditioning.filter_order, found.conditioning.differentiator) == (20, "central")
    assert any(note.code == "averaged" and "repetitions of 5" in note.message for note in found.notes)
    assert found.conditioning.samples_train <= 5.0 * found.conditioning.rate_hz + 2


def test_a_motion_run_once_cannot_be_averaged() -> None:
    with pytest.raises(InputError, match="comes twice"):
        identify("cmu-dd-arm2", recorded(20.0, 1), processing=Processing(average=True))


def test_check_shows_what_the_processing_makes_of_a_log(tmp_path: Path) -> None:
    log = recorded(5.0, 4, lead=3.0)
    head = ",".join(["time", *(f"q{j}" for j in (1, 2, 3)), *(f"tau{j}" for j in (1, 2, 3))])
    table = np.column_stack([log.time, log[Channel.POSITION], log[Channel.LINK_TORQUE]])
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=head, comments="")
    words = ["check", "cmu-dd-arm2", str(tmp_path / "log.csv"), "--processing", "halper2024", "--json"]
    done = CliRunner().invoke(application(), words)
    assert done.exit_code in (0, 3), done.output
    (shown,) = json.loads(done.stdout)["processing"]
    assert shown["period_s"] == pytest.approx(5.0, abs=1e-3)
    assert (shown["order"], shown["cutoff_hz"], shown["torque_cutoff_hz"]) == (20, 3.0, 3.5)
