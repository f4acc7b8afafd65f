"""Arms of one kind: mean and spread by restricted likelihood, and how an arm is pulled towards them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from armid.errors import InputError
from armid.estimation.population import Population, Told, fit_population, load_population, shrunk

R = 4
MEAN = np.array([3.0, -1.0, 0.2, 40.0])
SPREAD = np.array([0.6, 0.1, 0.05, 6.0])
NAMES = tuple(f"p{k}" for k in range(R))


def arms_of(rng, count, noise=0.3, rows=12):
    """Arms with their truth, each seen through rows of its own in units of its noise."""
    truth = MEAN + SPREAD * rng.normal(size=(count, R))
    told = []
    for b in truth:
        A = rng.normal(size=(rows, R)) / (noise * SPREAD)
        y = A @ b + rng.normal(size=rows)
        told.append(Told(A.T @ A, A.T @ y))
    return truth, told


def test_mean_and_spread_are_found():
    _, told = arms_of(np.random.default_rng(0), 200)
    found = fit_population(told, NAMES)
    np.testing.assert_allclose(found.spread, SPREAD, rtol=0.2)
    assert np.all(np.abs(found.mean - MEAN) < 4.0 * found.deviations)
    np.testing.assert_allclose(found.deviations, SPREAD / np.sqrt(200), rtol=0.4)


def test_spreads_of_few_arms_are_not_biased_by_their_own_mean():
    spreads = [fit_population(arms_of(np.random.default_rng(s), 5)[1], NAMES).spread ** 2 for s in range(60)]
    np.testing.assert_allclose(np.mean(spreads, axis=0), SPREAD**2, rtol=0.35)


def test_units_do_not_matter():
    _, told = arms_of(np.random.default_rng(1), 12)
    unit = np.array([1e3, 1.0, 1e-4, 7.0])
    other = [Told(t.precision / np.outer(unit, unit), t.vector / unit) for t in told]
    a, b = fit_population(told, NAMES), fit_population(other, NAMES)
    np.testing.assert_allclose(b.mean, a.mean * unit, rtol=1e-6)
    np.testing.assert_allclose(b.spread, a.spread * unit, rtol=1e-6)


def test_an_arm_that_tells_much_keeps_its_own_values_and_one_that_tells_nothing_gets_the_mean():
    _, told = arms_of(np.random.default_rng(2), 20)
    population = fit_population(told, NAMES)
    sure = Told(1e9 * np.eye(R), 1e9 * np.arange(R, dtype=float))
    np.testing.assert_allclose(shrunk(sure, population).values, np.arange(R), rtol=1e-6, atol=1e-5)
    silent = shrunk(Told(np.zeros((R, R)), np.zeros(R)), population)
    np.testing.assert_allclose(silent.values, population.mean, rtol=1e-9)
    wide = np.sqrt(population.spread**2 + population.doubt + population.deviations**2)  # one deviation more, of 20 arms
    np.testing.assert_allclose(np.sqrt(np.diag(silent.covariance)), wide, rtol=1e-9)


def test_shrunk_arms_are_nearer_to_the_truth_and_their_intervals_cover_it():
    rng = np.random.default_rng(3)
    population = fit_population(arms_of(rng, 50)[1], NAMES)
    truth, told = arms_of(rng, 200, noise=2.0)
    own = np.array([np.linalg.solve(t.precision, t.vector) for t in told])
    both = [shrunk(t, population) for t in told]
    values = np.array([one.values for one in both])
    assert np.all(np.mean((values - truth) ** 2, axis=0) < 0.8 * np.mean((own - truth) ** 2, axis=0))
    inside = np.abs(values - truth) < 1.96 * np.array([np.sqrt(np.diag(one.covariance)) for one in both])
    assert 0.92 < inside.mean() < 0.98


@pytest.mark.parametrize("count", [4, 10])
@pytest.mark.parametrize("noise", [0.7, 3.0])
def test_a_few_arms_do_not_overrule_the_recordings_of_another(count, noise):
    """With four arms the likeliest spread is half the true one as often as not: intervals must not rest on it alone."""
    inside, mine, own = [], [], []
    for seed in range(25):
        rng = np.random.default_rng(100 + seed)
        population = fit_population(arms_of(rng, count, noise=noise)[1], NAMES)
        truth, told = arms_of(rng, 10, noise=noise)
        for b, one in zip(truth, told, strict=True):
            both, alone = shrunk(one, population), np.linalg.solve(one.precision, one.vector)
            inside.append(np.abs(both.values - b) < 1.96 * np.sqrt(np.diag(both.covariance)))
            mine.append(((both.values - b) / SPREAD) ** 2)
            own.append(((alone - b) / SPREAD) ** 2)
    assert np.mean(inside) > 0.9
    assert np.mean(mine) < 1.05 * np.mean(own)


@pytest.mark.parametrize("count", [4, 20])
def test_the_interval_of_a_spread_covers_it(count):
    inside = []
    for seed in range(40):
        low, high = fit_population(arms_of(np.random.default_rng(200 + seed), count)[1], NAMES).spread_interval()
        inside.append((low < SPREAD) & (high > SPREAD))
    assert 0.9 < np.mean(inside) < 0.99


def test_singular_arms_count_for_what_they_say():
    rng = np.random.default_rng(4)
    _, told = arms_of(rng, 30)
    half = np.diag([1.0, 1.0, 0.0, 0.0])
    blind = [Told(half @ t.precision @ half, half @ t.vector) for t in arms_of(rng, 5)[1]]
    found = fit_population([*told, *blind], NAMES)
    np.testing.assert_allclose(found.spread, SPREAD, rtol=0.5)


def test_stored_and_read_back(tmp_path):
    population = fit_population(arms_of(np.random.default_rng(5), 6)[1], NAMES, ("kg",) * R, robot="arm")
    population.save(tmp_path)
    again = load_population(tmp_path)
    np.testing.assert_array_equal(again.covariance, population.covariance)
    assert (again.names, again.units, again.arms, again.robot) == (NAMES, ("kg",) * R, 6, "arm")
    np.testing.assert_array_equal(again.doubt, population.doubt)
    older = json.loads((tmp_path / "population.json").read_text())
    del older["doubt"]
    (tmp_path / "population.json").write_text(json.dumps(older))
    without = load_population(tmp_path)
    assert not np.any(without.doubt)
    low, high = without.spread_interval()
    assert np.all((low < without.spread) & (without.spread < high))
    (tmp_path / "population.json").write_text('{"schema": "armid.population/1", "names": []}')
    with pytest.raises(InputError, match="field 'units' is missing"):
        load_population(tmp_path)


def test_too_few_arms_and_foreign_parameters_are_refused():
    _, told = arms_of(np.random.default_rng(6), 4)
    with pytest.raises(InputError, match="2 arms"):
        fit_population(told[:2], NAMES)
    population: Population = fit_population(told, NAMES)
    with pytest.raises(InputError, match="other base parameters"):
        population.check((*NAMES[:3], "else"))
