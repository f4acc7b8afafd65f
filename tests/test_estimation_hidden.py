"""Families of imperfections that are not in the model: how far base parameters may be off because of them."""

from __future__ import annotations

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.estimation.imperfections import FACTORS, PRESENT, BlockFactors, Effect
from armid.information.information import triangular

ROWS, BASE, SIZES, DRAWS = 40, 3, 4, 3000
EFFECT = Effect("hidden", np.arange(2))
CHOSEN = (Effect("chosen", np.arange(2, SIZES)), 1.0)
TOLERANCES = np.array([0.4, 0.3, 0.5, 0.2])


def specimen() -> tuple[FloatArray, FloatArray]:
    """Columns of base parameters and of imperfections that resemble them."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((ROWS, BASE))
    return A, 0.3 * rng.standard_normal((ROWS, SIZES)) + A @ rng.standard_normal((BASE, SIZES))


def of(A: FloatArray, Z: FloatArray, y: FloatArray) -> BlockFactors:
    return BlockFactors(BASE, [triangular(np.column_stack([A, Z, y]))], TOLERANCES)


def test_squared_errors_are_on_average_what_is_stated() -> None:
    """Truths drawn from the belief: there now and then, in a factor drawn at random; estimated as if it were not there."""
    A, Z = specimen()
    L = np.random.default_rng(5).standard_normal((BASE, SIZES)) * 0.1
    L[:, CHOSEN[0].columns] = 0.0
    rng = np.random.default_rng(6)
    errors, stated = np.zeros(BASE), np.zeros(BASE)
    for _ in range(DRAWS):
        s = TOLERANCES * rng.standard_normal(SIZES)
        s[EFFECT.columns] *= rng.choice(FACTORS) * (rng.random() < PRESENT)
        y = Z @ s + A @ (L @ s) + rng.standard_normal(ROWS)
        blocks = of(A, Z, y)
        marginal = blocks.fit([CHOSEN]).marginal
        b = np.linalg.lstsq(marginal[:, :-1], marginal[:, -1], rcond=None)[0]
        noise = np.linalg.inv(marginal[:, :-1].T @ marginal[:, :-1])
        errors += b**2
        stated += np.diag(noise + blocks.hidden([EFFECT, CHOSEN[0]], [CHOSEN], L, 0.0))
    np.testing.assert_allclose(errors, stated, rtol=0.15)


def test_what_the_rows_rule_out_adds_nothing() -> None:
    A, Z = specimen()
    many = 1000.0
    blocks = of(many * A, many * Z, np.random.default_rng(7).standard_normal(ROWS))
    ordinary = of(A, Z, np.random.default_rng(7).standard_normal(ROWS))
    L = np.zeros((BASE, SIZES))
    ratio = np.trace(blocks.hidden([EFFECT], [], L, 0.1)) / np.trace(ordinary.hidden([EFFECT], [], L, 0.1))
    assert ratio < 1.0 / many**2


@pytest.mark.parametrize("resolved", [0.0, 0.1])
def test_what_bodies_can_stand_in_for_stays_out(resolved: float) -> None:
    A, Z = specimen()
    Z[:, 0] = A @ np.ones(BASE)
    blocks = of(A, Z, np.random.default_rng(8).standard_normal(ROWS))
    spread = np.trace(blocks.hidden([Effect("alias", np.arange(1))], [], np.zeros((BASE, SIZES)), resolved))
    assert spread == 0.0 if resolved else spread > 0.2 * TOLERANCES[0] ** 2
