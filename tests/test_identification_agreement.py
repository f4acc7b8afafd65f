"""Do results agree, and do intervals hold what the choice of a cut-off does?"""

from __future__ import annotations

import numpy as np
import pytest

from armid.estimation.estimate import Estimate
from armid.identifiability.base import BaseParameters, RankDecision
from armid.identification.compare import ALL, parameter_class, scores
from armid.identification.sensitivity import CutoffMove, cutoff_check, widened_by_cutoff
from armid.parameters.space import named_parameter, named_parameters

NAMES = ("link1.mass", "link2.mx", "joint1.viscous")


def estimate() -> Estimate:
    decision = RankDecision(rank=3, tolerance=1e-9, singular_values=np.ones(3), gap=np.inf, reason="planted")
    base = BaseParameters(
        parameters=NAMES,
        independent=np.arange(3),
        dependent=np.empty(0, dtype=np.intp),
        K=np.empty((3, 0)),
        decision=decision,
    )
    return Estimate(
        base=base,
        units=("kg", "kg m", "N m s/rad"),
        values=np.array([1.0, 2.0, 3.0]),
        covariance=np.diag([0.01, 0.04, 0.09]),
        covariance_kind="planted",
        sigma={"joint1": 1.0},
        method="planted",
    )


def test_parameters_have_a_class() -> None:
    assert [parameter_class(parameter) for parameter in named_parameters(NAMES)] == ["mass", "first moment", "viscous"]
    assert parameter_class(named_parameter("link3.Ixy")) == "inertia"
    assert parameter_class(named_parameter("joint2.motor_coulomb")) == "coulomb"
    assert parameter_class(named_parameter("joint2.rotor_inertia")) == "rotor inertia"


def test_scores_count_what_lies_beyond_chance() -> None:
    rng = np.random.default_rng(0)
    z = {f"link{k + 1}.mx": float(rng.normal()) for k in range(2000)}
    (own, every) = scores({**z, "link1.mass": float("nan")})
    assert (own.kind, every.kind, every.count) == ("first moment", ALL, 2000)
    # Of 2000 draws 5 %, give or take three deviations of 0.5 %.
    assert every.beyond == pytest.approx(0.05, abs=0.015)
    assert every.root_mean_square == pytest.approx(1.0, abs=0.05)
    assert scores({"link1.mass": float("inf")}) == ()


def test_a_move_beyond_chance_widens_the_interval_by_itself() -> None:
    moves = (CutoffMove(5.0, np.array([0.5, 0.0, 0.0]), np.array([0.3, 0.1, 0.1])), CutoffMove(20.0))
    wide = widened_by_cutoff(estimate(), moves)
    assert np.diag(wide.covariance) == pytest.approx([0.01 + 0.25 - 0.09, 0.04, 0.09])
    assert np.linalg.eigvalsh(wide.covariance)[0] > 0.0


def test_a_move_within_chance_widens_nothing() -> None:
    moves = (CutoffMove(5.0, np.array([0.1, -0.1, 0.1]), np.array([0.1, 0.1, 0.1])),)
    assert widened_by_cutoff(estimate(), moves).covariance == pytest.approx(estimate().covariance)


@pytest.mark.parametrize(("size", "passed"), [(0.05, True), (2.0, False)])
def test_a_cutoff_that_decides_is_told(size: float, passed: bool) -> None:
    (check,) = cutoff_check(estimate(), (CutoffMove(5.0, np.full(3, size), np.zeros(3)),))
    assert check.passed is passed
    assert not check.decisive
