"""Coefficients of g(q) and M(q) in the form of [Gaz2014]."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.kernels.dynamics import gravity, mass_matrix
from armid.recovery.coefficients import coefficient_counts
from armid.recovery.recovery import Recovery

EQ29 = (
    9.5457e-4,
    -2.9826e-4,
    8.3524e-4,
    0.0286,
    -0.0407,
    -6.5637e-4,
    1.334,
    -0.0035,
    -4.7258e-4,
    0.0014,
    9.4532e-4,
    3.4568,
)
"""[kg m] The work's values of its twelve gravity coefficients."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Recovery:
    """An arm whose M_67 is zero, as the work's controller has it: Ixz and Iyz of link 7 about its frame vanish."""
    robot = armid.load_robot("lwr4-dh")
    inertial = robot.inertial.copy()
    inertial[60 + 6], inertial[60 + 8] = 0.0, 0.0
    robot = robot.with_inertial(inertial)
    q = np.random.default_rng(0).uniform(-2.0, 2.0, size=(80, 7))
    path = tmp_path_factory.mktemp("c") / "c.npz"
    np.savez(path, q=q, gravity=gravity(robot, q), inertia=mass_matrix(robot, q))
    return armid.recover(robot, path, bodies=False, coefficients=True)


def test_the_twelve_of_gravity_are_those_of_eq_28_with_the_values_of_eq_29(found: Recovery) -> None:
    own = [one for one in found.coefficients if one.quantity == "gravity"]
    assert len(own) == 12
    assert "link4.mz + link5.my + d2*(link5.mass + link6.mass + link7.mass)" in [one.expression for one in own]
    assert np.allclose(sorted(one.value for one in own), sorted(EQ29), atol=1e-6)


def test_the_inertia_matrix_has_81_with_53_in_its_first_element(found: Recovery) -> None:
    """The work has 74 and 52; which products are collected is a matter of how sums are simplified."""
    assert coefficient_counts(found.coefficients)["inertia"] == 81
    assert coefficient_counts(found.coefficients)["M_1_1"] == 53


def test_all_but_37_of_them_are_multiples_of_others(found: Recovery) -> None:
    """As many families as there are base parameters, each led by the first of its own."""
    own = [one for one in found.coefficients if one.quantity == "inertia"]
    assert coefficient_counts(found.coefficients)["inertia, but for a factor"] == 37
    assert all(own[one.family].family == one.family <= k for k, one in enumerate(own))


def test_they_are_written_with_their_elements(found: Recovery, tmp_path: Path) -> None:
    files = replace(found, consistent=None).save(tmp_path)
    table = next(path for path in files if path.name == "coefficients.csv").read_text().splitlines()
    assert len(table) == 1 + 12 + 81
    assert table[0] == "quantity,value,family,elements,expression"
    assert "81" in str(found.summary())
