"""Residual diagnostics against closed forms, and temperatures on their way into the report."""

from __future__ import annotations

import numpy as np
import pytest

from armid.errors import InputError
from armid.identification.compare import agreement, same_terms
from armid.identification.residuals import (
    BAND,
    amplitude_density,
    autocorrelation,
    binned,
    diagnose,
    inside_band,
    normalised_error,
)
from support.identified import trusted


def test_autocorrelation_of_a_first_order_process() -> None:
    rng = np.random.default_rng(0)
    a, step = 0.9, 0.01
    x = np.zeros(200_000)
    noise = rng.normal(size=len(x))
    for i in range(1, len(x)):
        x[i] = a * x[i - 1] + noise[i]
    lag, r, time = autocorrelation(x, step)
    assert r[:20] == pytest.approx(a ** np.arange(20), abs=0.02)
    assert lag[1] == pytest.approx(step)
    # sum over all lags of a^|k| = (1 + a) / (1 - a) samples.
    assert time == pytest.approx(step * (1 + a) / (1 - a), rel=0.1)


def test_autocorrelation_of_nothing() -> None:
    assert autocorrelation(np.ones(100), 0.01)[2] == 0.0


def test_spectrum_of_white_noise() -> None:
    x = np.random.default_rng(1).normal(0.0, 2.0, 100_000)
    frequency, density = amplitude_density(x, 0.001)
    # One-sided density of variance 4 over 500 Hz.
    assert np.sqrt(np.mean(density**2)) == pytest.approx(np.sqrt(4.0 / 500.0), rel=0.03)
    assert frequency[-1] == pytest.approx(500.0)


def test_bins_show_a_missing_slope() -> None:
    v = np.random.default_rng(2).uniform(-1.0, 1.0, 5000)
    found = binned(v, 0.3 * v)
    assert found.mean == pytest.approx(0.3 * found.centre)
    assert np.ptp([len(p) for p in np.array_split(np.arange(5000), len(found.centre))]) <= 1


def test_normalised_error_and_band() -> None:
    torque = np.array([-10.0, 0.0, 10.0, 5.0])
    residual = np.array([1.1, 0.5, -0.9, 0.0])
    assert normalised_error(residual, torque) == pytest.approx(np.sqrt(np.mean(residual**2)) / 20.0)
    assert inside_band(residual, torque) == 0.75
    assert BAND == 0.1
    assert np.isnan(normalised_error(residual, np.ones(4)))


def test_what_was_not_recorded_or_does_not_change_is_left_out() -> None:
    rng = np.random.default_rng(3)
    t, r, tau, v = np.arange(500) / 100.0, *rng.normal(size=(3, 500))
    none = diagnose("a", t, r, tau, v, np.full(500, 1e-15))
    assert none.against_gravity is None
    assert none.against_temperature is None
    full = diagnose("a", t, r, tau, v, tau, temperature=20.0 + t)
    assert full.against_gravity is not None
    assert full.against_temperature is not None
    assert full.against_temperature.centre[0] < full.against_temperature.centre[-1]


def test_temperatures_arrive_at_the_instants_of_the_run() -> None:
    celsius, t = trusted().traces["run0.temperature"], trusted().traces["run0.time"]
    assert celsius.shape == (len(t), 3)
    # The log warms up linearly, joint by joint faster; trimming its ends shifts time but not the slope.
    slope = np.polyfit(t, celsius, 1)[0]
    assert slope == pytest.approx(10.0 / 19.99 * np.array([1.0, 2.0, 3.0]), rel=1e-6)


def test_agreement_of_a_result_with_itself() -> None:
    rows = agreement([trusted(), trusted()])
    assert len(rows) == len(trusted().estimate)
    assert all(row.differences == (0.0, 0.0) for row in rows)
    with pytest.raises(InputError, match="at least two"):
        agreement([trusted()])


def test_differences_are_in_standard_deviations() -> None:
    from dataclasses import replace

    estimate = trusted().estimate
    moved = replace(estimate, values=np.array(estimate.values) + 3.0 * estimate.standard_deviations)
    rows = agreement([trusted(), replace(trusted(), estimate=moved)])
    assert [row.differences[1] for row in rows] == pytest.approx([3.0 / np.sqrt(2.0)] * len(rows))


def test_other_combinations_are_not_compared() -> None:
    assert same_terms({"a": 1.0, "b": 0.3}, {"a": 1.0, "b": 0.3 + 1e-9})
    assert not same_terms({"a": 1.0, "b": 0.3}, {"a": 1.0, "b": 0.31})
    assert not same_terms({"a": 1.0}, {"a": 1.0, "b": 0.3})
