"""The error to expect at poses that neither training nor held-out motion visits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.estimation.least_squares import WeightedLeastSquares
from armid.identification.elsewhere import elsewhere_checks
from armid.information.accumulate import accumulate
from armid.kernels.evaluate import evaluate_rows
from support.elbow import Case, case

NOISE = np.array([0.5, 0.5, 0.2])


@pytest.fixture(scope="module")
def arm() -> Case:
    return case()


def estimated(arm: Case, share: float, seed: int = 0):
    """From a motion through some share of the range, with the same noise; and the torque errors at other poses."""
    inputs = arm.inputs * share
    clean = evaluate_rows(arm.source, inputs) @ arm.standard
    noise = np.random.default_rng(seed).normal(size=clean.shape) * NOISE
    run = replace(arm.run(), inputs=inputs, y=clean + noise)
    return run, WeightedLeastSquares().fit(accumulate(arm.source, inputs, run.y), arm.base)


def test_a_motion_through_the_range_leaves_nothing_to_say(arm: Case) -> None:
    run, estimate = estimated(arm, 1.0)
    assert elsewhere_checks(arm.robot, [run], estimate) == ()


def test_a_motion_in_a_corner_is_said_to_leave_the_rest_open_and_by_how_much(arm: Case) -> None:
    runs = [estimated(arm, 0.05, seed) for seed in range(12)]
    checks = [elsewhere_checks(arm.robot, [run], estimate) for run, estimate in runs]
    assert all(len(found) == 1 and not found[0].decisive and not found[0].passed for found in checks)
    # The expected error is the one that comes about, in the mean over recordings.
    rng = np.random.default_rng(5)
    picked = runs[0][0].inputs[rng.integers(len(arm.inputs), size=400), 3:]
    states = np.hstack([rng.uniform(-np.pi, np.pi, size=(400, 3)), picked])
    rows = evaluate_rows(arm.source, states)
    torque = np.linalg.norm(rows @ arm.standard)
    actual = [
        np.linalg.norm(rows[:, :, list(e.base.independent)] @ e.values - rows @ arm.standard) / torque for _, e in runs
    ]
    expected = np.sqrt(np.mean([found[0].value ** 2 for found in checks]))
    assert expected == pytest.approx(np.sqrt(np.mean(np.square(actual))), rel=0.4)
