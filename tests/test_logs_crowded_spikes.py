"""Spikes so many that they make the ordinary distance between samples are spikes all the same."""

from __future__ import annotations

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.logs.health.rows import spikes

ROWS = 1400
"""Fourteen seconds at 100 Hz."""


def torque(seed: int) -> FloatArray:
    """Slow torque with noise and friction that turns around, shape [n_rows, 1]."""
    rng, t = np.random.default_rng(seed), np.arange(ROWS) / 100.0
    return (4.0 * np.sin(1.3 * t) + 0.5 * np.sign(np.cos(2.1 * t)) + 0.1 * rng.standard_normal(ROWS))[:, np.newaxis]


@pytest.mark.parametrize("share", [0.02, 0.1, 0.15, 0.2])
def test_spikes_are_found_however_many_there_are(share: float) -> None:
    x = torque(0)
    at = np.random.default_rng(3).random(ROWS) < share
    x[at] += 16.0
    found = spikes(x, np.ones(ROWS, dtype=bool))[:, 0]
    assert found.mean() > 0.01
    assert not np.any(found & ~at)


def test_noise_and_friction_alone_have_none() -> None:
    assert not any(spikes(torque(seed), np.ones(ROWS, dtype=bool)).any() for seed in range(200))
