"""Intervals that mean what they say: coverage over many runs with coloured noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from armid.estimation.autoregression import fit_autoregression
from armid.estimation.covariance import (
    AutocorrelatedNoise,
    BlockNoise,
    IndependentNoise,
    PerChannelNoise,
    block_meat,
)
from armid.estimation.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from armid.estimation.run import Run, information_of
from armid.information.information import ChannelInformation, Information
from elbow import case, coloured

SIGMA = np.array([0.5, 0.3, 0.1])
RUNS = {"first-order": 1000, "resonant": 500}
NOISES = {"first-order": (1.0, -0.9), "resonant": tuple(np.poly([0.93 * np.exp(0.2j), 0.93 * np.exp(-0.2j)]).real)}


class Stored(Run):
    """A run whose rows were evaluated and factored once: the Monte Carlo draws noise, not motion."""

    def attach(self, rows, factors):
        object.__setattr__(self, "stored", rows)
        object.__setattr__(self, "factors", factors)
        return self

    def blocks(self):
        yield slice(0, len(self)), True, np.array(self.stored)

    def predicted(self, standard):
        return self.stored @ standard

    def information(self):
        channels = []
        for c, (columns, Q, R) in enumerate(self.factors):
            z = Q.T @ self.y[:, c]
            rho = np.sqrt(max(self.y[:, c] @ self.y[:, c] - z @ z, 0.0))
            factor = np.block([[R, z[:, None]], [np.zeros((1, len(columns))), np.array([[rho]])]])
            channels.append(ChannelInformation(self.channels[c], columns, factor, float(len(self))))
        return Information(self.source.columns, tuple(channels))


@pytest.fixture(scope="module")
def arm():
    return case(count=800, rate=40.0)


@pytest.fixture(scope="module")
def draw(arm):
    factors = []
    for c in range(3):
        columns = np.flatnonzero(np.any(arm.rows[:, c] != 0.0, axis=0))
        factors.append((columns, *np.linalg.qr(arm.rows[:, c][:, columns])))

    def make(rng, noise):
        y = arm.clean + coloured(rng, arm.clean.shape, SIGMA, noise)
        return Stored("draw", arm.source, arm.inputs, y, rate=arm.rate).attach(arm.rows, factors)

    return make


@pytest.mark.parametrize("noise", NOISES)
def test_autocorrelation_aware_intervals_cover_and_independent_ones_do_not(arm, draw, noise):
    rng = np.random.default_rng(11)
    hits = {"autocorrelation": np.zeros(len(arm.base)), "per-channel": np.zeros(len(arm.base))}
    for _ in range(RUNS[noise]):
        run = draw(rng, NOISES[noise])
        information = run.information()
        naive = WeightedLeastSquares().fit(information, arm.base)
        for estimate in (naive, AutocorrelatedNoise().apply(naive, [run], information)):
            low, high = estimate.interval()
            hits[estimate.covariance_kind] += (low < arm.truth) & (arm.truth < high)
    aware, naive = (hits[kind] / RUNS[noise] for kind in ("autocorrelation", "per-channel"))
    assert 0.93 <= aware.mean() <= 0.97
    assert aware.min() >= 0.90
    assert naive.mean() < 0.85


def test_all_forms_agree_on_white_noise(arm):
    run = arm.run(np.random.default_rng(1).normal(size=arm.clean.shape) * SIGMA.mean())
    estimate = WeightedLeastSquares().fit(information_of([run]), arm.base)
    reference = estimate.standard_deviations
    for covariance in (IndependentNoise(), PerChannelNoise(), AutocorrelatedNoise()):
        assert np.allclose(covariance.apply(estimate, [run]).standard_deviations, reference, rtol=0.15)
    blocks = BlockNoise(seconds=0.2).apply(estimate, [run]).standard_deviations
    assert np.median(np.abs(blocks / reference - 1.0)) < 0.15


def test_per_channel_form_is_the_textbook_one(arm):
    run = arm.run(np.random.default_rng(1).normal(size=arm.clean.shape) * SIGMA)
    estimate = OrdinaryLeastSquares().fit(information_of([run]), arm.base)
    A = arm.rows[:, :, arm.base.independent].reshape(-1, len(arm.base))
    w = np.tile(1.0 / np.array(list(estimate.sigma.values())), len(run))
    expected = np.linalg.inv((A * w[:, None]).T @ (A * w[:, None]))
    assert np.allclose(PerChannelNoise().apply(estimate, [run]).covariance, expected, rtol=1e-6)


def test_block_sums_are_the_bartlett_kernel():
    s = np.random.default_rng(2).normal(size=(60, 2))
    L = 7
    expected = s.T @ s
    for k in range(1, L):
        G = s[:-k].T @ s[k:]
        expected = expected + (1.0 - k / L) * (G + G.T)
    assert np.allclose(block_meat(s, L), expected)


@pytest.mark.parametrize("a", [(1.0, -0.8), (1.0, -1.2, 0.5)])
def test_autoregression_finds_its_coefficients_across_segments(a):
    e = lfilter([1.0], a, np.random.default_rng(3).normal(size=20000) * 0.3)
    model = fit_autoregression([e[:7000], e[7000:15000], e[15000:]], max_order=12)
    assert model.order >= len(a) - 1
    assert model.coefficients[: len(a)] == pytest.approx(a, abs=0.04)
    assert model.innovation == pytest.approx(0.3, rel=0.02)
    assert model.variance() == pytest.approx(e.var(), rel=0.05)
