"""Possible bodies: the conic program against truth, its own limits, and its certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.consistency.bodies import bodies_of
from armid.consistency.bounds import Bounds, CentreBox, CentreEllipsoid
from armid.consistency.certificates import certify
from armid.consistency.consistent import Consistency, honest_information
from armid.consistency.feasibility import distance_to_physical
from armid.consistency.geometry_bounds import GeometryBounds
from armid.consistency.inequalities import ThesisInequalities
from armid.consistency.physical import physical_jacobian, to_physical, to_standard
from armid.consistency.places import support_of_box
from armid.consistency.prior import Prior, nominal_prior, scaled_to_data, stand_in_body, usable_as_prior
from armid.consistency.refine import LogCholeskyRefinement, log_cholesky_jacobian
from armid.consistency.regularisers import Entropic, Euclidean, PullBack
from armid.consistency.thesis import ThesisProblem
from armid.errors import InputError, UnknownNameError
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import information_of
from armid.information.status import EstimationError, Status
from armid.parameters.inertial import (
    from_log_cholesky,
    inertial_problem,
    pseudo_inertia,
    to_centre_of_mass,
    to_log_cholesky,
)
from armid.robot import Link
from armid.robot.geometry import Box, Geometry
from support.elbow import case

SIGMA = np.array([0.5, 0.2, 0.05])


@pytest.fixture(scope="module")
def arm():
    return case(5, count=800)


@pytest.fixture(scope="module")
def noisy(arm):
    run = arm.run(np.random.default_rng(1).normal(size=arm.clean.shape) * SIGMA)
    information = information_of([run])
    estimate = WeightedLeastSquares().fit(information, arm.base)
    return information.weighted({name: 1.0 / s for name, s in estimate.sigma.items()}), estimate


@pytest.fixture(scope="module")
def prior(arm):
    rng = np.random.default_rng(2)
    values = np.array(arm.standard)
    for body in bodies_of(arm.source.columns):
        theta = to_log_cholesky(body.of(values)) + rng.normal(size=10) * 0.1
        values[list(body.columns)] = from_log_cholesky(theta)
    return Prior(names=arm.source.columns, values=values, scale=np.ones(len(values)), origin={})


def fit(noisy, prior, arm, regulariser=None, **bounds):
    return Consistency(regulariser or PullBack(1e-3), Bounds(**bounds)).fit(noisy[0], arm.source.space.units, prior)


@pytest.mark.parametrize("regulariser", [PullBack(1e-2), Entropic(1e-2), Euclidean(1e-2)])
def test_consistent_parameters_explain_the_data_and_belong_to_possible_bodies(arm, noisy, prior, regulariser):
    estimate = fit(noisy, prior, arm, regulariser)
    assert estimate.status is Status.SOLVED
    assert estimate.is_physical
    assert all(inertial_problem(body.of(estimate.values)) is None for body in estimate.bodies)
    shift = (arm.base.values(estimate.values) - arm.truth) / noisy[1].standard_deviations
    assert np.sqrt(np.mean(shift**2)) < 1.3
    assert estimate.chi_square < 1.02 * estimate.chi_square_free + 20.0


def test_unphysical_data_are_projected_and_the_distance_says_so(arm, noisy, prior):
    values = np.array(arm.standard)
    for name in ("link3.Ixx", "link3.Iyy", "link3.Izz"):
        values[arm.source.columns.index(name)] *= -1.0
    run = arm.run().with_measured(arm.rows @ values + np.random.default_rng(3).normal(size=arm.clean.shape) * SIGMA)
    information = information_of([run])
    free = WeightedLeastSquares().fit(information, arm.base)
    weighted = information.weighted({name: 1.0 / s for name, s in free.sigma.items()})
    estimate = Consistency(PullBack(1e-3)).fit(weighted, arm.source.space.units, prior)
    assert estimate.is_physical
    certificates = certify(arm.robot, estimate, free, {})
    assert not certificates.free_estimate_is_physical
    assert certificates.proven
    assert certificates.mass_matrix > 0.0
    assert distance_to_physical(noisy[1], prior) < certificates.distance_limit < certificates.distance


def test_what_the_data_see_does_not_depend_on_the_prior_and_the_rest_does(arm, noisy, prior):
    estimate = fit(noisy, prior, arm, PullBack(1e-4))
    other = Prior(
        names=prior.names,
        values=np.where([".mass" in n for n in prior.names], 2.0, 1.0) * prior.values,
        scale=prior.scale,
        origin={},
    )
    moved = fit(noisy, other, arm, PullBack(1e-4))
    by = dict(zip(estimate.names, estimate.determined_by, strict=True))
    assert by["joint1.viscous"] == by["joint3.coulomb"] == "data"
    assert by["link1.mass"] == "prior"
    assert {name for name, category in arm.base.categories.items() if category == "not at all"} <= {
        name for name, source in by.items() if source != "data"
    }
    # What rows contain only together with other parameters is never the data's alone.
    assert {name for name, source in by.items() if source == "data"} <= {
        name for name, category in arm.base.categories.items() if category == "alone"
    }
    seen = np.array(estimate.determined_by) == "data"
    change = np.abs(estimate.values - moved.values) / estimate.standard_deviations
    assert change[seen].max() < 1.0
    assert abs(moved.values[0] / estimate.values[0] - 1.0) > 0.3


def test_bounds_hold(arm, noisy, prior):
    low, high = np.array([-0.02, -0.02, -0.02]), np.array([0.02, 0.02, 0.02])
    estimate = fit(
        noisy,
        prior,
        arm,
        mass={"link2": (3.0, 3.5)},
        total_mass=(8.0, 8.5),
        where={"link3": (CentreBox(low, high),), "link1": (CentreEllipsoid(np.zeros(3), np.eye(3) / 0.05),)},
    )
    bodies = {body.owner: to_centre_of_mass(body.of(estimate.values)) for body in estimate.bodies}
    assert 3.0 - 1e-6 <= bodies["link2"][0] <= 3.5 + 1e-6
    assert 8.0 - 1e-6 <= sum(mass for mass, *_ in bodies.values()) <= 8.5 + 1e-6
    assert np.all(np.abs(bodies["link3"][1]) <= 0.02 + 1e-6)
    assert np.linalg.norm(bodies["link1"][1]) <= 0.05 + 1e-6
    assert all(estimate.values[i] >= -1e-8 for i, n in enumerate(estimate.names) if n.endswith(("viscous", "coulomb")))


def test_mass_stays_inside_the_collision_geometry(arm, noisy, prior):
    T = np.eye(4)
    T[:3, 3] = [0.0, 0.0, 0.1]
    links = tuple(Link(link.name, link.inertial, (Geometry(Box((0.2, 0.2, 0.3)), T),)) for link in arm.robot.links)
    bounds = GeometryBounds(margin=0.0).apply(replace(arm.robot, links=links))
    estimate = Consistency(PullBack(1e-3), bounds).fit(noisy[0], arm.source.space.units, prior)
    Q = support_of_box(np.array([-0.1, -0.1, -0.05]), np.array([0.1, 0.1, 0.25])).Q
    for body in estimate.bodies:
        _, centre, _ = to_centre_of_mass(body.of(estimate.values))
        assert np.all(centre >= [-0.1 - 1e-6, -0.1 - 1e-6, -0.05 - 1e-6])
        assert np.all(centre <= [0.1 + 1e-6, 0.1 + 1e-6, 0.25 + 1e-6])
        assert np.trace(Q @ pseudo_inertia(body.of(estimate.values))) > -1e-6


def test_contradictory_and_unknown_bounds_are_refused_by_name(arm, noisy, prior):
    # Any two links and the total contradict each other; all three would not be a smallest set.
    smallest = "mass of link2 at least 10 kg; mass of link3 at least 10 kg; total mass of the links at most 15 kg:"
    with pytest.raises(EstimationError, match=f"exclude each other: {smallest}") as caught:
        fit(noisy, prior, arm, mass={f"link{i}": (10.0, 20.0) for i in (1, 2, 3)}, total_mass=(1.0, 15.0))
    assert caught.value.status is Status.INFEASIBLE
    with pytest.raises(UnknownNameError, match="link9"):
        fit(noisy, prior, arm, mass={"link9": (0.0, 1.0)})
    with pytest.raises(InputError, match="lower bound"):
        Bounds(mass={"link1": (2.0, 1.0)})


def test_log_cholesky_jacobian_matches_finite_differences():
    theta = np.random.default_rng(4).normal(size=10) * 0.4
    J = log_cholesky_jacobian(theta)
    h = 1e-6
    numeric = np.column_stack(
        [(from_log_cholesky(theta + h * e) - from_log_cholesky(theta - h * e)) / (2 * h) for e in np.eye(10)]
    )
    assert np.allclose(J, numeric, atol=1e-8 * np.abs(J).max())


def test_smooth_refinement_reaches_the_convex_optimum_and_takes_extras(arm, noisy, prior):
    convex = fit(noisy, prior, arm, PullBack(1e-1), margin=0.0)
    smooth = LogCholeskyRefinement(PullBack(1e-1), margin=0.0).fit(
        noisy[0], fit(noisy, prior, arm, PullBack(10.0), margin=0.0)
    )
    cost = [e.chi_square + 0.1 * PullBack().value(e.values, prior) for e in (convex, smooth)]
    assert cost[1] == pytest.approx(cost[0], rel=1e-4)

    def symmetric(x):
        i, j = (arm.source.columns.index(f"link3.{n}") for n in ("Ixx", "Iyy"))
        slope = np.zeros((1, len(x)))
        slope[0, [i, j]] = 1e4, -1e4
        return slope @ x, slope

    tied = LogCholeskyRefinement(PullBack(1e-1), margin=0.0).fit(noisy[0], convex, symmetric)
    assert symmetric(tied.values)[0] == pytest.approx(0.0, abs=5.0)
    assert tied.is_physical
    assert abs(symmetric(convex.values)[0]) > 10.0 * abs(symmetric(tied.values)[0])


def test_thesis_inequalities_hold_and_their_jacobian_is_exact(arm, noisy, prior):
    start = fit(noisy, prior, arm, PullBack(1e-2))
    inequalities = ThesisInequalities(slender={"link2": 2})
    found = ThesisProblem(PullBack(1e-2), Bounds(inequalities=inequalities)).fit(noisy[0], start)
    mu = to_physical(found.values, found.bodies)
    for body in found.bodies:
        for said, (G, h) in inequalities.groups(body.owner).items():
            assert np.all(G @ mu[list(body.columns)] + h > -1e-7), said
    two = mu[list(found.bodies[1].columns)]
    assert min(two[4], two[7]) >= 3.0 * two[9] - 1e-7
    assert np.allclose(to_standard(mu, found.bodies), found.values, atol=1e-10)
    J = physical_jacobian(mu, found.bodies)
    h = 1e-6
    numeric = np.column_stack(
        [
            (to_standard(mu + h * e, found.bodies) - to_standard(mu - h * e, found.bodies)) / (2 * h)
            for e in np.eye(len(mu))
        ]
    )
    assert np.allclose(J, numeric, atol=1e-7)
    # Fewer bodies are allowed, so the fit cannot be better than that of the cone alone by more than the pull explains.
    assert found.chi_square > start.chi_square_free


def test_stand_ins_are_bodies_scaled_to_the_torque(arm, noisy):
    bare = replace(arm.robot, links=tuple(Link(link.name) for link in arm.robot.links))
    prior = nominal_prior(bare, arm.source.columns)
    assert set(prior.origin.values()) == {"geometry"}
    assert prior.notes[0].code == "prior-from-geometry"
    assert all(usable_as_prior(stand_in_body(bare, i)) for i in range(3))
    scaled = scaled_to_data(prior, noisy[0])
    factor = scaled.values[0] / prior.values[0]
    true_mass = sum(float(link.inertial[0]) for link in arm.robot.links[1:])
    assert 0.2 * true_mass < 2 * factor < 5.0 * true_mass
    estimate = Consistency(PullBack(0.1)).fit(noisy[0], arm.source.space.units, scaled)
    assert estimate.is_physical
    shift = (arm.base.values(estimate.values) - arm.truth) / noisy[1].standard_deviations
    assert np.sqrt(np.mean(shift**2)) < 2.0


def test_honest_information_is_the_estimate(arm, noisy):
    factor = honest_information(noisy[1]).select(arm.base.independent).stacked()
    values = np.linalg.lstsq(factor[:-1, :-1], factor[:-1, -1], rcond=None)[0]
    assert np.allclose(values, noisy[1].values, rtol=1e-6, atol=1e-8)
    inverse = np.linalg.inv(factor[:-1, :-1].T @ factor[:-1, :-1])
    assert np.allclose(np.diag(inverse), np.diag(noisy[1].covariance), rtol=1e-5)


def test_a_variance_lost_to_rounding_is_no_certainty(noisy):
    covariance = np.array(noisy[1].covariance)
    covariance[0] = covariance[:, 0] = 0.0
    covariance[0, 0] = -1e14
    lost = replace(noisy[1], covariance=covariance)
    assert np.isfinite(honest_information(lost).stacked()).all()


def test_points_and_rods_are_no_metric():
    assert not usable_as_prior(None)
    assert not usable_as_prior(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    assert usable_as_prior(np.array([1.0, 0.0, 0.0, 0.0, 0.02, 0.0, 0.0, 0.02, 0.0, 0.02]))
