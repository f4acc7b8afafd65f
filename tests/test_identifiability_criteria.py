"""Figures of merit against their definitions, gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from armid.errors import ShapeError
from armid.identifiability.criteria import (
    Criterion,
    base_factor,
    evaluate,
    predicted_deviation,
    quality,
    standard_deviations,
)
from armid.identifiability.smooth import Merit, SmoothCriterion, gram_condition_number
from armid.identifiability.structure import random_inputs, structural_base
from armid.information.accumulate import accumulate
from armid.kernels.evaluate import evaluate_rows
from armid.rows.torque import TorqueRows
from support.arms import seed_iiwa


@pytest.mark.parametrize("criterion", list(Criterion))
def test_gradient_by_finite_differences(criterion: Criterion) -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(9, 4)) * [1.0, 3.0, 0.2, 1.0]
    dA = rng.normal(size=A.shape)
    step = 1e-6
    slope = (evaluate(criterion, A + step * dA, rows=9).value - evaluate(criterion, A - step * dA, rows=9).value) / (
        2 * step
    )
    G = evaluate(criterion, A, rows=9).G
    assert float((A @ G * dA).sum()) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("criterion", list(Criterion))
def test_the_factor_is_as_good_as_the_rows(criterion: Criterion) -> None:
    A = np.random.default_rng(1).normal(size=(50, 5))
    R = np.linalg.qr(A, mode="r")
    one, other = evaluate(criterion, A, rows=50), evaluate(criterion, R, rows=50)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    np.testing.assert_allclose(one.G, other.G, rtol=1e-9, atol=1e-12)


def test_definitions() -> None:
    s = np.array([5.0, 2.0, 0.5])
    U, V = (np.linalg.qr(np.random.default_rng(k).normal(size=(m, 3)))[0] for k, m in ((2, 8), (3, 3)))
    A = U * s @ V.T
    found = quality(A, rows=8)
    np.testing.assert_allclose(found.singular_values, s)
    assert found.condition_number == pytest.approx(10.0)
    assert found.condition_number_scaled == pytest.approx(np.linalg.cond(A / np.linalg.norm(A, axis=0)))
    assert found.log_det == pytest.approx(np.log(np.linalg.det(A.T @ A)))
    assert found.trace_inverse == pytest.approx(np.trace(np.linalg.inv(A.T @ A)))
    assert found.observability == pytest.approx(
        {"O1": 5 ** (1 / 3) / np.sqrt(8), "O2": 0.1, "O3": 0.5, "O4": 0.05, "O5": 1 / (1 / 5 + 1 / 2 + 2)}
    )
    assert evaluate(Criterion.E, A).value == pytest.approx(4.0)


def test_scaling_a_column_leaves_the_scaled_condition_number() -> None:
    A = np.random.default_rng(4).normal(size=(20, 4))
    B = A * [1e-3, 1.0, 1e4, 1.0]
    one, other = (evaluate(Criterion.CONDITION_SCALED, M).value for M in (A, B))
    assert one == pytest.approx(other, rel=1e-9)


def test_doubling_the_data_halves_the_variance() -> None:
    A = np.random.default_rng(5).normal(size=(20, 4))
    np.testing.assert_allclose(standard_deviations(np.vstack([A, A])), standard_deviations(A) / np.sqrt(2))
    np.testing.assert_allclose(standard_deviations(A, 0.3), 0.3 * np.sqrt(np.diag(np.linalg.inv(A.T @ A))))


def test_predicted_deviation_and_its_gradient() -> None:
    rng = np.random.default_rng(8)
    A, dA = rng.normal(size=(2, 15, 4))
    step = 1e-6
    for j in range(4):
        found = predicted_deviation(A, j, 0.7)
        assert found.value == pytest.approx(standard_deviations(A, 0.7)[j])
        slope = (
            predicted_deviation(A + step * dA, j, 0.7).value - predicted_deviation(A - step * dA, j, 0.7).value
        ) / (2 * step)
        assert float((A @ found.G * dA).sum()) == pytest.approx(slope, rel=1e-6)


def test_rank_deficient_rows() -> None:
    A = np.random.default_rng(6).normal(size=(20, 3))
    A[:, 2] = A[:, 0]
    assert evaluate(Criterion.CONDITION, A).value == np.inf
    assert quality(A).condition_number == np.inf
    assert np.isinf(standard_deviations(A)).all()
    with pytest.raises(ShapeError, match="m >= r"):
        evaluate(Criterion.D, np.ones((2, 3)))


def test_from_information() -> None:
    source = TorqueRows(seed_iiwa())
    base = structural_base(source)
    x = random_inputs(source, 60, np.random.default_rng(7))
    R = base_factor(accumulate(source, x, np.zeros((60, 7))), base)
    A = evaluate_rows(source, x)[..., base.independent].reshape(-1, len(base))
    assert quality(R).condition_number == pytest.approx(np.linalg.cond(A), rel=1e-9)


SMOOTH_LIMITS = [
    (SmoothCriterion.CONDITION, lambda A: np.log(evaluate(Criterion.CONDITION, A).value)),
    (SmoothCriterion.LOG_DET, lambda A: evaluate(Criterion.D, A).value / (2 * A.shape[1])),
    (SmoothCriterion.SMALLEST, lambda A: 0.5 * np.log(evaluate(Criterion.E, A).value)),
    (SmoothCriterion.WORST_DEVIATION, lambda A: np.log(standard_deviations(A).max())),
]


@pytest.mark.parametrize(("smooth", "exact"), SMOOTH_LIMITS)
def test_smooth_criteria_become_the_exact_ones(smooth: SmoothCriterion, exact) -> None:
    A = np.random.default_rng(9).normal(size=(30, 5))
    assert Merit(smooth, power=500.0)(A.T @ A)[0] == pytest.approx(exact(A), abs=0.01)
    assert gram_condition_number(A.T @ A) == pytest.approx(evaluate(Criterion.CONDITION, A).value)


@pytest.mark.parametrize("smooth", list(SmoothCriterion))
def test_gradients_of_smooth_criteria(smooth: SmoothCriterion) -> None:
    rng = np.random.default_rng(10)
    A, dA = rng.normal(size=(2, 12, 4))
    merit = Merit(smooth, scale=np.array([1.0, 2.0, 0.5, 1.0]))
    step = 1e-6
    ahead, behind = (merit((A + h * dA).T @ (A + h * dA))[0] for h in (step, -step))
    _, S = merit(A.T @ A)
    # d(A^T A) = A^T dA + dA^T A and S is symmetric: the cotangent of the rows is 2 A S.
    assert float((2.0 * A @ S * dA).sum()) == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)
