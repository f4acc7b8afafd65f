"""Least squares with values that must not be negative, against its own conditions of optimality and SciPy's solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from armid.estimation.bounded import bounded_least_squares


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    A = rng.normal(size=(n + int(rng.integers(0, 30)), n)) @ (np.eye(n) + 0.6 * rng.normal(size=(n, n)) / np.sqrt(n))
    return A / np.linalg.norm(A, axis=0), rng.normal(size=len(A)), rng.random(n) < 0.6


@pytest.mark.parametrize("seed", range(20))
def test_the_slope_vanishes_where_free_and_points_outside_where_held(seed: int) -> None:
    A, y, bounded = problem(seed)
    x = bounded_least_squares(A, y, bounded)
    slope = A.T @ (y - A @ x)
    held = bounded & (x == 0.0)
    assert np.all(x[bounded] >= 0.0)
    assert np.abs(slope[~held]).max(initial=0.0) < 1e-10
    assert slope[held].max(initial=-1.0) < 1e-10


@pytest.mark.parametrize("seed", range(20))
def test_as_good_as_scipy(seed: int) -> None:
    A, y, bounded = problem(seed)
    x = bounded_least_squares(A, y, bounded)
    other = lsq_linear(A, y, bounds=(np.where(bounded, 0.0, -np.inf), np.inf), method="bvls", tol=1e-14).x
    assert np.linalg.norm(A @ x - y) <= np.linalg.norm(A @ other - y) + 1e-10


def test_without_bounds_it_is_least_squares() -> None:
    A, y, bounded = problem(3)
    np.testing.assert_allclose(
        bounded_least_squares(A, y, np.zeros_like(bounded)), np.linalg.lstsq(A, y, rcond=None)[0], atol=1e-10
    )
