"""Torque sensors that drift while the arm moves are followed and named; sound ones stay silent."""

from __future__ import annotations

import numpy as np
import pytest

from armid.kernels.evaluate import evaluate_rows
from armid.online.estimator import OnlineEstimator
from armid.rows.imperfections import Family
from armid.rows.torque import TorqueRows
from support.identified import trusted
from support.outcomes import failing

RATE = 100.0
SECONDS = 40.0
RESULT = trusted()
SOURCE = TorqueRows(RESULT.robot, RESULT.effects)


def stream(seed: int, *, gain: float = 0.0, offset: float = 0.0, joint: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A motion of the identified arm, with a sensor that drifts to this gain and offset over its first half."""
    rng = np.random.default_rng(seed)
    n = RESULT.robot.n_joints
    t = np.arange(0.0, SECONDS, 1.0 / RATE)
    w = 2.0 * np.pi * np.linspace(0.1, 0.5, n) * rng.uniform(0.8, 1.2, n)
    phase = np.outer(t, w) + rng.uniform(0.0, 6.0, n)
    x = np.hstack([0.8 * np.sin(phase), 0.8 * w * np.cos(phase), -0.8 * w**2 * np.sin(phase)])
    tau = evaluate_rows(SOURCE, x) @ RESULT.estimate.standard
    if RESULT.imperfections is not None:
        tau *= 1.0 + RESULT.imperfections.per_joint(Family.GAIN)
    ramp = np.minimum(2.0 * t / SECONDS, 1.0)
    tau[:, joint] = (1.0 + gain * ramp) * tau[:, joint] + offset * ramp
    sigma = np.array([RESULT.estimate.sigma[name] for name in SOURCE.channels])
    return x, tau + sigma * rng.normal(size=tau.shape)


def watched(x: np.ndarray, tau: np.ndarray) -> OnlineEstimator:
    online = OnlineEstimator(RESULT, rate=RATE)
    for row, sample in zip(x, tau, strict=True):
        online.update(*np.split(row, 3), sample)
    return online


@pytest.mark.parametrize(("gain", "offset"), [(0.3, 0.0), (-0.25, 0.0), (0.0, 4.0)])
def test_a_sensor_that_drifts_is_named_and_sized(gain: float, offset: float) -> None:
    online = watched(*stream(0, gain=gain, offset=offset))
    name = SOURCE.channels[1]
    assert {note.subject for note in online.drifts} == {name}
    assert ("gain" if gain else "offset") in online.drifts[0].message
    state = online.state()
    assert "sensors-steady" in {check.code for check in state.checks if not check.passed}
    drift = next(sensor for sensor in state.sensors if sensor.name == name)
    assert drift.gain == pytest.approx(gain, abs=4.0 * drift.gain_deviation)
    assert drift.offset == pytest.approx(offset, abs=4.0 * drift.offset_deviation)
    assert state.as_dict()["sensors"][1]["channel"] == name


def test_sound_sensors_stay_silent() -> None:
    for seed in range(3):
        online = watched(*stream(seed))
        assert not online.drifts
        assert "sensors-steady" not in failing(online.state())
