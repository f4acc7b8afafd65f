"""Base parameters of constructed matrices with known answers, and what must not change them."""

from __future__ import annotations

import numpy as np
import pytest

from armid.identifiability.base import Category, base_parameters
from armid.identifiability.errors import NothingIdentifiableError, ToleranceError
from armid.identifiability.structure import random_inputs, structural_base, structural_rows, structure
from armid.information.accumulate import accumulate
from armid.parameters.effects import Effects
from armid.rows.torque import TorqueRows
from support.arms import seed_iiwa

NAMES = ("a", "b", "c", "d", "e")


def planted(rng: np.random.Generator) -> np.ndarray:
    """Columns: a and c free, b = 2 a, d = a - 0.42 c, e = 0."""
    a, c = rng.normal(size=(2, 30))
    return np.column_stack([a, 2 * a, c, a - 0.42 * c, 1e-17 * rng.normal(size=30)])


def test_planted_dependencies_come_out() -> None:
    base = base_parameters(planted(np.random.default_rng(0)), parameters=NAMES)
    assert base.names == ("a", "c")
    assert base.terms("a") == {"a": 1.0, "b": 2.0, "d": 1.0}
    assert base.terms("c") == {"c": 1.0, "d": -0.42}
    assert base.unidentifiable == ("e",)
    assert base.categories == {
        "a": Category.COMBINED,
        "b": Category.COMBINED,
        "c": Category.COMBINED,
        "d": Category.COMBINED,
        "e": Category.NOT_AT_ALL,
    }
    assert base.decision.rank == 2
    assert base.decision.gap > 1e12


def test_maps_back_and_forth() -> None:
    A = planted(np.random.default_rng(1))
    base = base_parameters(A, parameters=NAMES)
    pi = np.random.default_rng(2).normal(size=5)
    np.testing.assert_allclose(A[:, base.independent] @ base.values(pi), A @ pi, atol=1e-12)
    np.testing.assert_array_equal(base.projection @ base.embedding, np.eye(2))
    np.testing.assert_array_equal(base.projection @ base.null_space, np.zeros((2, 3)))
    np.testing.assert_allclose(A @ base.null_space, 0.0, atol=1e-12)


def test_an_independent_parameter_stands_alone() -> None:
    A = np.random.default_rng(3).normal(size=(20, 3))
    base = base_parameters(A)
    assert set(base.categories.values()) == {Category.ALONE}
    assert base.unidentifiable == ()


def test_round_off_columns_are_not_scaled_into_existence() -> None:
    rng = np.random.default_rng(4)
    A = np.column_stack([rng.normal(size=40) * 1e3, rng.normal(size=40) * 1e-12, rng.normal(size=40)])
    assert base_parameters(A).names == ("parameter1", "parameter3")


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_of_a_column_do_not_matter(factor: float) -> None:
    A = planted(np.random.default_rng(5))
    A[:, 2] *= factor
    base = base_parameters(A, parameters=NAMES)
    assert base.names == ("a", "c")
    assert base.terms("c")["d"] == pytest.approx(-0.42 / factor, rel=1e-9)


def test_order_of_rows_and_repeated_rows_do_not_matter() -> None:
    rng = np.random.default_rng(6)
    A = planted(rng)
    shuffled = np.vstack([A[rng.permutation(len(A))], A[:7]])
    one, other = (base_parameters(M, parameters=NAMES) for M in (A, shuffled))
    assert one.names == other.names
    np.testing.assert_allclose(one.K, other.K, atol=1e-12)


def test_weak_direction_is_named() -> None:
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(2, 50))
    base = base_parameters(np.column_stack([a, b, a + 1e-5 * rng.normal(size=50)]))
    assert len(base) == 3
    assert len(base.weak) == 1
    assert {name for name, _ in base.weak[0].combination} == {"parameter1", "parameter3"}
    assert base.weak[0].ratio < 1e-4


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -0.1, float("nan")])
def test_tolerance_outside_the_unit_interval(tolerance: float) -> None:
    with pytest.raises(ToleranceError, match="outside"):
        base_parameters(np.eye(3), tolerance=tolerance)


def test_nothing_identifiable() -> None:
    with pytest.raises(NothingIdentifiableError, match="identifies nothing"):
        base_parameters(np.zeros((4, 2)))


def test_rank_follows_a_tolerance_tied_to_noise() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(2, 100))
    A = np.column_stack([a, b, a + b + 1e-4 * rng.normal(size=100)])
    assert len(base_parameters(A)) == 3
    assert base_parameters(A, tolerance=1e-2).names == ("parameter1", "parameter2")


def test_information_gives_the_same_answer_as_rows() -> None:
    source = TorqueRows(seed_iiwa(), Effects(viscous=True, coulomb=True))
    x = random_inputs(source, 150, np.random.default_rng(9))
    information = accumulate(source, x, np.zeros((150, 7)))
    from_information = base_parameters(information)
    from_rows = structural_base(source)
    assert from_information.names == from_rows.names
    np.testing.assert_allclose(from_information.K, from_rows.K, atol=1e-9)


def test_removed_set_of_halper_eq_3_33() -> None:
    base = structural_base(TorqueRows(seed_iiwa(), Effects(viscous=True, coulomb=True)))
    removed = {base.parameters[i] for i in base.dependent}
    first = {f"link1.{name}" for name in ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz")}
    others = {f"link{i}.{name}" for i in range(2, 8) for name in ("mass", "mz", "Iyy")}
    assert removed == first | others
    assert len(base.parameters) == 84
    assert len(base) == 57


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_seed_of_the_samples_does_not_matter(seed: int) -> None:
    source = TorqueRows(seed_iiwa())
    one, other = structural_base(source), structural_base(source, seed=seed)
    assert one.names == other.names
    np.testing.assert_array_equal(one.K, other.K)  # cleaned coefficients are the same short numbers


def test_moving_the_base_frame_along_gravity_changes_nothing() -> None:
    robot = seed_iiwa()
    turned = robot.with_gravity([0, 0, -9.81])
    assert structural_base(TorqueRows(robot)).names == structural_base(TorqueRows(turned)).names


def test_tilted_gravity_frees_the_first_link() -> None:
    base = structural_base(TorqueRows(seed_iiwa().with_gravity([3.0, 0.0, -9.0])))
    # link1.mx and link1.my now make a moment about axis 1.
    assert {"link1.mx", "link1.my"} <= set(base.names)


def test_per_channel_ranks_ignore_round_off() -> None:
    from armid.rows.gravity import GravityRows

    ranks = structure(GravityRows(seed_iiwa())).per_channel
    assert list(ranks.values()) == [0, 12, 10, 8, 6, 4, 2]


def test_structural_rows_are_repeatable() -> None:
    source = TorqueRows(seed_iiwa())
    np.testing.assert_array_equal(structural_rows(source), structural_rows(source))
