"""The best weights of states against problems whose answer is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from armid.studies.state_bound import best_weights, proven_bound


def line(half: float, count: int = 41) -> np.ndarray:
    """Rows [1, x] for x between -half and half."""
    x = np.linspace(-half, half, count)
    return np.stack([np.ones_like(x), x], axis=1)[:, np.newaxis, :]


@pytest.mark.parametrize("half", [0.2, 0.5])
def test_a_line_through_an_interval(half: float) -> None:
    """Both ends weigh alike: M = diag(1, half^2), condition number 1 / half, and no weights do better."""
    found = best_weights(line(half), gap=1e-3)
    assert found.condition_number == pytest.approx(1.0 / half, rel=1e-3)
    assert found.bound == pytest.approx(1.0 / half, rel=1e-3)
    assert found.bound <= found.condition_number
    assert found.weights[[0, -1]].sum() > 0.95


def test_the_bound_holds_for_every_choice_of_weights_and_falls_with_more_states() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2, 5)) * [1.0, 0.3, 2.0, 0.1, 1.0]
    found = best_weights(rows)
    for _ in range(50):
        w = rng.dirichlet(np.full(60, 0.3))
        assert np.linalg.cond((rows * np.sqrt(w)[:, None, None]).reshape(-1, 5)) >= found.bound
    more = np.concatenate([rows, 3.0 * rng.normal(size=(60, 2, 5))])
    assert proven_bound(more, found.P, found.Q) <= proven_bound(rows, found.P, found.Q) == pytest.approx(found.bound)


def test_weights_keep_a_balance_that_is_asked_and_the_bound_is_sharper_for_it() -> None:
    """Rows [1, x] with the mean of x^2 asked to be b: the condition number is 1 / sqrt(b), whatever larger x there are."""
    rows, b = line(0.5), 0.09
    found = best_weights(rows, balance=rows[:, 0, 1:] ** 2 - b, gap=1e-3)
    assert found.weights @ rows[:, 0, 1] ** 2 == pytest.approx(b, rel=1e-4)
    assert found.condition_number == pytest.approx(b**-0.5, rel=1e-3)
    assert found.bound == pytest.approx(b**-0.5, rel=2e-3)
    assert found.bound > 1.5 * best_weights(rows).bound
