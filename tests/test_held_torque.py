"""A torque that its controller held since the last tick: the arm felt it half a tick later than it was written down."""

from __future__ import annotations

import numpy as np
import pytest

import armid
from armid.identification.metrics import nominal_standard
from armid.kernels.dynamics import inverse_dynamics
from armid.logs.log import Channel, Log
from armid.robot.load import load_robot

ARM = load_robot("cmu-dd-arm2")
RATE, SECONDS, VISCOUS, NOISE = 500.0, 12.0, 0.8, 0.01


def motion(t: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    n = ARM.n_joints
    w, phase = 2.0 * np.pi * rng.uniform(0.2, 1.2, size=(n, 3)), rng.uniform(0.0, 2.0 * np.pi, size=(n, 3))
    angle = w * t[:, None, None] + phase
    parts = (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle))
    return tuple((0.4 * part).sum(axis=2) for part in parts)


def held_log(seed: int, *, held: bool) -> Log:
    """What is written down at a sample is the torque that acts from there to the next one, on average in its middle."""
    t = np.arange(int(SECONDS * RATE)) / RATE
    q, qd, qdd = motion(t + (0.5 / RATE if held else 0.0), seed)
    tau = inverse_dynamics(ARM, q, qd, qdd) + VISCOUS * qd
    tau += np.random.default_rng(seed + 100).normal(0.0, NOISE, size=tau.shape)
    channels = {Channel.POSITION: motion(t, seed)[0], Channel.LINK_TORQUE: tau}
    return Log(name=f"held {seed}", joints=tuple(ARM.joint_names), time=t, channels=channels, named=True)


def scores(*, held: bool, sensitivity: bool) -> np.ndarray:
    """Errors in standard deviations."""
    result = armid.identify(
        ARM,
        held_log(0, held=held),
        validate=held_log(1, held=held),
        friction="viscous",
        imperfections="none",
        sensitivity=sensitivity,
    )
    estimate = result.estimate
    truth = nominal_standard(ARM, estimate.base.parameters)
    truth = np.array(
        [VISCOUS if name.endswith("viscous") else x for name, x in zip(estimate.base.parameters, truth, strict=True)]
    )
    return (estimate.values - estimate.base.values(truth)) / estimate.standard_deviations


def test_intervals_hold_the_truth_when_torque_was_held() -> None:
    assert np.abs(scores(held=True, sensitivity=False)).max() > 4.0
    assert np.abs(scores(held=True, sensitivity=True)).max() < 1.96


@pytest.mark.parametrize("sensitivity", [False, True])
def test_torque_of_a_sensor_is_within_them_too(sensitivity: bool) -> None:
    assert np.sqrt(np.mean(scores(held=False, sensitivity=sensitivity) ** 2)) < 1.5
