"""The density of noise by frequency, freed from what a fit took out of the residuals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from armid.estimation.autoregression import autoregression_of
from armid.estimation.covariance import AutocorrelatedNoise, bread
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.noise import stretches_of
from armid.estimation.noise_spectrum import noise_spectrum, pooled
from armid.estimation.run import information_of
from support.elbow import case, coloured

ONCE = np.ones(3)


def test_what_the_fit_has_emptied_takes_the_density_of_its_neighbours_above():
    # The two lowest are emptied, the peak keeps its own density, and the emptied top joins the last pool.
    power, left = np.array([0.0, 0.2, 3.2, 9.0, 1.0, 0.0]), np.array([0.0, 0.1, 1.6, 1.0, 1.0, 0.2])
    np.testing.assert_allclose(pooled(power, left, np.full(6, 1.0)), [2, 2, 2, 9, 1 / 1.2, 1 / 1.2])
    np.testing.assert_allclose(pooled(power, 0.1 * left, np.full(6, 1.0)), np.full(6, 13.4 / 0.39))


def test_a_recursion_is_found_again_from_its_covariances():
    lags = 0.8 ** np.arange(9) * 2.0
    found = autoregression_of(lags, 1000)
    np.testing.assert_allclose(found.coefficients, [1.0, -0.8], atol=1e-12)
    assert found.variance() == pytest.approx(2.0, rel=1e-6)


def test_the_fit_takes_as_many_samples_as_it_has_parameters():
    arm = case(count=600, rate=75.0)
    run = arm.run(coloured(np.random.default_rng(1), arm.clean.shape, 0.3))
    estimate = WeightedLeastSquares().fit(information_of([run]), arm.base)
    B = bread(information_of([run]).select(arm.base.independent), estimate.sigma)
    stretches = stretches_of([run], estimate.standard, estimate.sigma)
    spectrum = noise_spectrum(stretches, [run], estimate, B, repeated=ONCE)
    # Both halves of the circle of frequencies; where hardly anything is left nothing counts.
    taken = spectrum.count - spectrum.left
    around = 2.0 * taken.sum() - taken[:, [0, -1]].sum()
    assert around / 2048 == pytest.approx(len(arm.base), rel=0.02)


def test_intervals_of_a_short_slow_motion_cover():
    # Four seconds of a motion of a few harmonics, noise filtered at 6 Hz: residuals are emptied where the motion is.
    arm = case(count=600, rate=150.0)
    rng = np.random.default_rng(5)
    low = butter(4, 6.0, fs=150.0, output="sos")
    hits, runs = np.zeros(len(arm.base)), 40
    for _ in range(runs):
        noise = sosfiltfilt(low, rng.normal(size=(800, 3)), axis=0)[100:700]
        run = arm.run(0.3 * noise)
        estimate = AutocorrelatedNoise().apply(WeightedLeastSquares().fit(information_of([run]), arm.base), [run])
        inside, outside = estimate.interval()
        hits += (inside < arm.truth) & (arm.truth < outside)
    assert 0.9 <= hits.mean() / runs <= 0.99


def test_a_fit_that_takes_everything_is_not_taken_for_quiet():
    arm = case(count=600, rate=75.0)
    run = arm.run(coloured(np.random.default_rng(1), arm.clean.shape, 0.3))
    estimate = WeightedLeastSquares().fit(information_of([run]), arm.base)
    B = bread(information_of([run]).select(arm.base.independent), estimate.sigma)
    stretches = stretches_of([run], estimate.standard, estimate.sigma)
    spectrum = noise_spectrum(stretches, [run], estimate, 1e9 * B, repeated=ONCE)
    models = noise_spectrum(stretches, [run], estimate, B, repeated=ONCE).models(24)
    for loud, usual in zip(spectrum.models(24), models, strict=True):
        assert loud.variance() > 10.0 * usual.variance()
