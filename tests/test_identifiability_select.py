"""Columns kept one after the other, and rows that are already numbers folded into Information."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from armid.estimation.paired import SURE, sure
from armid.estimation.quantiles import chi_square_above, chi_square_tail, fisher_above
from armid.identifiability.base import base_parameters
from armid.identifiability.select import choose_columns
from armid.information import blocks
from armid.information.blocks import fold_rows, known_values
from armid.information.solve import solve_factor


def dependent_columns(rng):
    """Five columns of rank three: the fourth is the sum of the first two, the fifth is zero."""
    A = rng.normal(size=(30, 3))
    return np.column_stack([A[:, 0], A[:, 1], A[:, 2], A[:, 0] + A[:, 1], np.zeros(30)])


def test_the_order_decides_which_of_dependent_columns_stay():
    A = dependent_columns(np.random.default_rng(0))
    assert choose_columns(A, range(5), dependent=1e-9).kept == (0, 1, 2)
    backwards = choose_columns(A, [4, 3, 2, 1, 0], dependent=1e-9)
    assert backwards.kept == (3, 2, 1)
    assert list(backwards.dependent) == [True, False, False, False, True]
    assert tuple(base_parameters(A).independent) == choose_columns(A, range(5), dependent=1e-9).kept


def test_short_distances_and_a_full_house_keep_columns_out():
    A = dependent_columns(np.random.default_rng(1))
    weak = choose_columns(A, range(5), dependent=1e-9, worth=1e3)
    assert weak.kept == ()
    assert not weak.dependent[0]
    assert choose_columns(A, range(5), dependent=1e-9, most=2).kept == (0, 1)
    assert choose_columns(A, [2], dependent=1e-9).kept == (2,)


@pytest.mark.parametrize("many", [10, 10_000])
def test_folded_rows_solve_the_stacked_problem(monkeypatch, many):
    """By products of columns as by QR, in one block or several, with what is known beforehand as further rows."""
    monkeypatch.setattr(blocks, "MANY", many)
    rng = np.random.default_rng(2)
    A, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    parts = [("a", A[:25].T, y[:25]), ("b", A[25:40].T, y[25:40]), ("a", A[40:].T, y[40:])]
    found = fold_rows("xyz", iter(parts))
    assert [(c.name, c.count) for c in found.channels] == [("a", 45.0), ("b", 15.0)]
    assert found.method == ("gram" if many == 10 else "qr")
    solution = solve_factor(found.stacked(), found.parameters)
    np.testing.assert_allclose(solution.values, np.linalg.lstsq(A, y, rcond=None)[0], rtol=1e-10)
    weights, values = np.array([3.0, 0.1, 20.0]), np.array([1.0, -2.0, 0.5])
    known = found + known_values("prior", found.parameters, values, weights)
    rows, right = np.vstack([A, np.diag(weights)]), np.concatenate([y, weights * values])
    together = solve_factor(known.stacked(), known.parameters)
    np.testing.assert_allclose(together.values, np.linalg.lstsq(rows, right, rcond=None)[0], rtol=1e-10)
    np.testing.assert_allclose(together.inverse, np.linalg.inv(rows.T @ rows), rtol=1e-9)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 39])
def test_sums_of_squares_are_distributed_as_scipy_says(freedom):
    for probability in (0.4, 0.05, 0.0062, 1e-5):
        assert chi_square_above(probability, freedom) == pytest.approx(stats.chi2.isf(probability, freedom), rel=1e-9)
    for x in (0.3, 2.0, 11.0):
        assert chi_square_tail(x, freedom) == pytest.approx(stats.chi2.sf(x, freedom), rel=1e-9)
    assert chi_square_tail(-1.0, freedom) == 1.0
    assert chi_square_above(0.0, freedom) == float("inf")


@pytest.mark.parametrize("above", [1, 6, 40])
@pytest.mark.parametrize("below", [3, 24, 5000])
def test_ratios_of_mean_squares_are_distributed_as_scipy_says(above, below):
    for probability in (0.4, 0.05, 0.01 / below, 1e-8):
        assert fisher_above(probability, above, below) == pytest.approx(
            stats.f.isf(probability, above, below), rel=1e-8
        )


@pytest.mark.parametrize("count", [2, 8, 40, 1495, 11911])
def test_a_gain_over_few_pairs_must_be_larger(count):
    assert sure(count) == pytest.approx(stats.t.isf(stats.norm.sf(SURE), count - 1), rel=1e-9)
