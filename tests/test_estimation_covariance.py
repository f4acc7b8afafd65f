"""Intervals that mean what they say: coverage over many runs with coloured noise."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

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
from armid.estimation.noise import ResidualStretch, joint_positions, own_speeds
from armid.estimation.quantiles import (
    chi_square_quantile,
    chi_square_tail,
    normal_quantile,
    student_quantile,
)
from armid.estimation.repeats import period_of, repeat_growth
from armid.estimation.run import Run, information_of
from armid.information.information import ChannelInformation, Information
from support.elbow import case, coloured

SIGMA = np.array([0.5, 0.3, 0.1])
RUNS = 1000
NOISES = {"first-order": (1.0, -0.9), "resonant": tuple(np.poly([0.93 * np.exp(0.2j), 0.93 * np.exp(-0.2j)]).real)}


class Stored(Run):
    """A run whose rows were evaluated and factored once: the Monte Carlo draws noise, not motion."""

    def attach(self, rows, factors):
        object.__setattr__(self, "stored", rows)
        object.__setattr__(self, "factors", factors)
        return self

    def blocks(self, *, backward=False):
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
    return case(count=600, rate=30.0)


@pytest.fixture(scope="module")
def draw(arm):
    factors = []
    for c in range(3):
        columns = np.flatnonzero(np.any(arm.rows[:, c] != 0.0, axis=0))
        factors.append((columns, *np.linalg.qr(arm.rows[:, c][:, columns])))

    def make(rng, noise):
        y = arm.clean + coloured(rng, arm.clean.shape, SIGMA, noise)
        return Stored(name="draw", source=arm.source, inputs=arm.inputs, y=y, rate=arm.rate).attach(arm.rows, factors)

    return make


@pytest.mark.parametrize("noise", NOISES)
def test_autocorrelation_aware_intervals_cover_and_independent_ones_do_not(arm, draw, noise):
    rng = np.random.default_rng(11)
    hits = {"autocorrelation": np.zeros(len(arm.base)), "per-channel": np.zeros(len(arm.base))}
    for _ in range(RUNS):
        run = draw(rng, NOISES[noise])
        information = run.information()
        naive = WeightedLeastSquares().fit(information, arm.base)
        for estimate in (naive, AutocorrelatedNoise().apply(naive, [run], information)):
            low, high = estimate.interval()
            hits[estimate.covariance_kind] += (low < arm.truth) & (arm.truth < high)
    aware, naive = (hits[kind] / RUNS for kind in ("autocorrelation", "per-channel"))
    assert 0.93 <= aware.mean() <= 0.97
    assert aware.min() >= 0.90
    assert naive.mean() < 0.85


def test_noise_that_grows_with_speed_is_covered_too(arm, draw):
    rng = np.random.default_rng(12)
    size = 0.3 + np.abs(arm.inputs[:, 3:6]) / np.abs(arm.inputs[:, 3:6]).mean(axis=0)
    viscous = [k for k, name in enumerate(arm.base.names) if name.endswith("viscous")]
    hits, runs = np.zeros(len(arm.base)), 200
    for _ in range(runs):
        run = draw(rng, NOISES["first-order"])
        run = Stored(
            name="draw", source=run.source, inputs=run.inputs, y=arm.clean + size * (run.y - arm.clean), rate=run.rate
        ).attach(run.stored, run.factors)
        information = run.information()
        estimate = AutocorrelatedNoise().apply(WeightedLeastSquares().fit(information, arm.base), [run], information)
        low, high = estimate.interval()
        hits += (low < arm.truth) & (arm.truth < high)
    assert 0.92 <= hits.mean() / runs <= 0.97
    # With the same noise at every speed viscous friction would be covered 75 to 80 % of the time.
    assert hits[viscous].min() / runs >= 0.83


def stretch(run, noise):
    return ResidualStretch(
        residuals=noise, speeds=own_speeds(run), positions=joint_positions(run), rate=run.rate, alone=True
    )


@pytest.mark.parametrize("freedom", [1.0, 3.0, 4.7, 30.0, 1234.5, 1e6])
@pytest.mark.parametrize("p", [0.025, 0.6, 0.975, 0.9999])
def test_quantiles_of_student_are_those_of_a_library(p, freedom):
    scipy_stats = pytest.importorskip("scipy.stats")
    assert student_quantile(p, freedom) == pytest.approx(float(scipy_stats.t.ppf(p, freedom)), rel=1e-9)
    assert normal_quantile(p) == pytest.approx(float(scipy_stats.norm.ppf(p)), rel=1e-12)
    quantile = float(scipy_stats.chi2.ppf(p, min(freedom, 1234.5)))
    assert chi_square_quantile(p, min(freedom, 1234.5)) == pytest.approx(quantile, rel=1e-9)
    assert chi_square_tail(quantile, min(freedom, 1234.5)) == pytest.approx(1.0 - p, rel=1e-9)


def cut(run, pieces):
    """The same motion as runs that continue one another."""
    edges = np.linspace(0, len(run), pieces + 1).astype(int)
    return [
        replace(run, inputs=run.inputs[a:b], y=run.y[a:b], segments=((0, b - a),), continues=k > 0)
        for k, (a, b) in enumerate(pairwise(edges))
    ]


def test_a_motion_cut_for_memory_has_the_covariance_of_the_whole(arm):
    rng = np.random.default_rng(3)
    run = arm.run(coloured(rng, arm.clean.shape, SIGMA))
    information = information_of([run])
    estimate = WeightedLeastSquares().fit(information, arm.base)
    whole, parts = (AutocorrelatedNoise().apply(estimate, runs, information) for runs in ([run], cut(run, 5)))
    np.testing.assert_allclose(parts.covariance, whole.covariance, rtol=1e-8, atol=1e-12 * whole.covariance.max())


def test_what_repeats_with_the_motion_counts_once():
    period, rng = 500, np.random.default_rng(13)
    periodic = case(count=4 * period, rate=75.0)
    shared = np.tile(coloured(rng, (period, 3), SIGMA), (4, 1))
    fresh = coloured(rng, periodic.clean.shape, SIGMA)
    assert period_of(stretch(periodic.run(), shared)) == period
    short = case(count=600, rate=75.0)
    assert period_of(stretch(short.run(), 0.0 * short.clean)) is None
    same, other = (repeat_growth([stretch(periodic.run(), noise)]) for noise in (shared, fresh))
    assert same == pytest.approx([4.0] * 3, rel=0.05)
    assert np.all(other < 1.5)
    run = periodic.run(np.sqrt(0.7) * shared + np.sqrt(0.3) * fresh)
    estimate = WeightedLeastSquares().fit(information_of([run]), periodic.base)
    aware = AutocorrelatedNoise().apply(estimate, [run])
    once = replace(run, inputs=run.inputs[:period], y=run.y[:period], segments=((0, period),))
    # Of its own fit: residuals are given back what the fit to the same rows took.
    single = AutocorrelatedNoise().apply(WeightedLeastSquares().fit(information_of([once]), periodic.base), [once])
    # Seventy per cent of the noise repeats: four periods are hardly better than one.
    assert np.median(aware.standard_deviations / single.standard_deviations) > 0.75


def test_all_forms_agree_on_white_noise(arm):
    # The mean of six draws: in one of them chance looks like a recursion of two terms now and then.
    forms = (IndependentNoise(), PerChannelNoise(), AutocorrelatedNoise(), BlockNoise(seconds=0.2))
    ratios = np.zeros((len(forms), len(arm.base)))
    for seed in range(6):
        run = arm.run(np.random.default_rng(seed).normal(size=arm.clean.shape) * SIGMA.mean())
        estimate = WeightedLeastSquares().fit(information_of([run]), arm.base)
        own = [form.apply(estimate, [run]).standard_deviations for form in forms]
        ratios += np.array(own) / estimate.standard_deviations / 6.0
    np.testing.assert_allclose(ratios[:3], 1.0, atol=0.1)
    assert np.median(np.abs(ratios[3] - 1.0)) < 0.15


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
