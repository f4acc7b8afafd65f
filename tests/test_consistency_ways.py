"""Smooth refinement and [Halper2024]'s inequalities: derivatives, agreement with the convex program, bounds, other solvers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from armid.consistency.bodies import bodies_of
from armid.consistency.bounds import Bounds, CentreBox, CentreEllipsoid, CentreHull, Kind
from armid.consistency.consistent import Consistency
from armid.consistency.inequalities import ThesisInequalities, slender_axes
from armid.consistency.knowledge import ALONE, Knowledge, extras_of
from armid.consistency.physical import physical_curvature, physical_jacobian, to_physical, to_standard
from armid.consistency.places import support_of_ellipsoid
from armid.consistency.possible import PossibleBodies, Way
from armid.consistency.prior import Prior, nominal_prior
from armid.consistency.refine import LogCholeskyRefinement
from armid.consistency.regularisers import Entropic, Euclidean, PullBack
from armid.consistency.thesis import ThesisProblem
from armid.errors import InputError, UnknownNameError
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, information_of
from armid.information.information import ChannelInformation, Information, triangular
from armid.information.status import EstimationError, Status
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
from armid.parameters.inertial import from_centre_of_mass, from_log_cholesky, to_centre_of_mass, to_log_cholesky
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from support.elbow import case, elbow_arm, fourier_motion

BODIES = (
    from_centre_of_mass(6.0, [0.0, 0.02, -0.05], np.diag([0.05, 0.05, 0.04])),
    from_centre_of_mass(5.0, [0.05, 0.01, 0.2], np.diag([0.1, 0.1, 0.02])),
    from_centre_of_mass(3.0, [0.02, -0.02, 0.1], np.diag([0.03, 0.03, 0.01])),
)
"""Bodies that satisfy eq. 3.53, unlike random ones."""


@pytest.fixture(scope="module")
def arm():
    robot = elbow_arm(np.random.default_rng(1)).with_inertial(np.concatenate(BODIES))
    return case(4, count=600, robot=robot)


@pytest.fixture(scope="module")
def weighted(arm):
    run = arm.run(np.random.default_rng(2).normal(size=arm.clean.shape) * [3.0, 2.0, 1.0])
    information = information_of([run])
    sigma = WeightedLeastSquares().fit(information, arm.base).sigma
    return information.weighted({name: 1.0 / s for name, s in sigma.items()})


@pytest.fixture(scope="module")
def prior(arm):
    rng = np.random.default_rng(3)
    values = np.array(arm.standard)
    for body in bodies_of(arm.source.columns):
        theta = to_log_cholesky(body.of(values)) + rng.normal(size=10) * 0.15
        values[list(body.columns)] = from_log_cholesky(theta)
    return Prior(names=arm.source.columns, values=values, scale=np.ones(len(values)), origin={})


def found(way, arm, weighted, prior, regulariser=None, bounds=None):
    settings = PossibleBodies(regulariser or PullBack(1.0), bounds or Bounds(), way)
    return settings.fit(weighted, arm.source.space.units, prior)


def cost(estimate, regulariser, prior):
    return estimate.chi_square + regulariser.weight * regulariser.value(estimate.values, prior)


@pytest.mark.parametrize("regulariser", [PullBack(1.0), Entropic(1.0), Euclidean(1.0)], ids=lambda r: r.name)
def test_residuals_of_a_pull_are_its_root_with_exact_slope(regulariser, prior):
    x = np.array(prior.values)
    rng = np.random.default_rng(5)
    for body in prior.bodies:
        x[list(body.columns)] = from_log_cholesky(to_log_cholesky(body.of(x)) + 0.3 * rng.normal(size=10))
    for point in (x, np.array(prior.values) * (1.0 + 1e-9)):
        r, J = regulariser.residual(point, prior)
        assert r @ r == pytest.approx(regulariser.value(point, prior), rel=1e-9, abs=1e-12)
        h = 1e-7
        for k in range(0, len(x), 3):
            e = h * np.eye(len(x))[k]
            slope = (regulariser.residual(point + e, prior)[0] - regulariser.residual(point - e, prior)[0]) / (2 * h)
            assert np.allclose(J[:, k], slope, atol=1e-3 * max(1.0, np.abs(slope).max()))


@pytest.mark.parametrize("regulariser", [PullBack(1.0), Entropic(1.0), Euclidean(1.0)], ids=lambda r: r.name)
def test_without_extras_the_refinement_ends_where_the_convex_program_does(arm, weighted, prior, regulariser):
    convex = found(Way.LMI, arm, weighted, prior, regulariser)
    smooth = found(Way.LOG_CHOLESKY, arm, weighted, prior, regulariser)
    assert (convex.method, smooth.method) == ("lmi", "log-cholesky")
    assert smooth.status is Status.SOLVED
    assert cost(smooth, regulariser, prior) == pytest.approx(cost(convex, regulariser, prior), abs=2e-3)
    # From a far start too, in the same coordinates.
    far = replace(convex, values=np.array(prior.values))
    again = LogCholeskyRefinement(regulariser).fit(weighted, far)
    # The optimum lies on the edge of the cone, where logarithms are infinite: nearly there.
    assert cost(again, regulariser, prior) == pytest.approx(cost(convex, regulariser, prior), abs=0.3)


TETRAHEDRON = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3.0)
BOUNDS = {
    "mass": Bounds(mass={"link2": (5.5, 5.8)}, total_mass=(15.0, 15.0)),
    "box": Bounds(where={"link3": (CentreBox(np.array([0.0, -0.01, 0.05]), np.array([0.01, 0.01, 0.09])),)}),
    "hull": Bounds(where={"link3": (CentreHull(TETRAHEDRON, np.full(4, 0.05)),)}),
    "ellipsoid": Bounds(where={"link3": (CentreEllipsoid(np.array([0, 0, 0.05]), np.diag([20, 20, 25])),)}),
    "moments": Bounds(where={"link3": (support_of_ellipsoid(np.array([0, 0, 0.08]), np.eye(3) / 0.13),)}),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_convex_extras_under_bounds_end_at_the_optimum_of_one_convex_program(arm, weighted, prior, name):
    """Knowledge of a mass alone is convex: the same as one more row, which a single program takes."""
    bounds, pull = BOUNDS[name], PullBack(1.0)
    deviations = np.full(10, np.inf)
    deviations[0] = 0.1
    knowledge = (Knowledge("link3", np.array([2.5, *[0.0] * 9]), deviations),)
    told = found(Way.LMI, arm, weighted, prior, bounds=replace(bounds, knowledge=knowledge))
    row = np.zeros((1, len(prior.names) + 1))
    row[0, [prior.names.index("link3.mass"), -1]] = 10.0, 25.0
    factor = triangular(np.vstack([weighted.stacked(), row]))
    more = Information(
        prior.names, (ChannelInformation("all", np.arange(len(prior.names)), factor, weighted.count + 1.0),)
    )
    once = found(Way.LMI, arm, more, prior, bounds=bounds)
    assert told.method == "successive-lmi"
    assert told.status is Status.SOLVED
    assert not bounds.broken(told.names, told.bodies, told.values, np.ones(len(prior.names)))
    expected = cost(once, pull, prior)
    mass = told.values[prior.names.index("link3.mass")]
    assert cost(told, pull, prior) + ((mass - 2.5) / 0.1) ** 2 == pytest.approx(expected, rel=1e-5, abs=1e-2)
    with pytest.raises(InputError, match="no smooth coordinates"):
        found(Way.LOG_CHOLESKY, arm, weighted, prior, bounds=bounds)


def test_bodies_stay_above_the_margin_of_the_prior(arm, weighted, prior):
    margin = 0.3
    smooth = found(Way.LOG_CHOLESKY, arm, weighted, prior, bounds=Bounds(margin=margin))
    for body in smooth.bodies:
        above = body.of(smooth.values) - margin * body.of(prior.values)
        assert to_log_cholesky(above) is not None


def test_slopes_of_knowledge_about_a_centre_match_finite_differences():
    ten = BODIES[1]
    known = Knowledge("", to_physical(ten, ALONE) * 0.9, np.array([0.1, *[0.01] * 3, *[np.inf] * 3, 0.02, 0.02, 0.02]))
    r, J = known.residuals(ten)
    assert len(r) == 7
    h = 1e-6
    numeric = [(known.residuals(ten + h * e)[0] - known.residuals(ten - h * e)[0]) / (2 * h) for e in np.eye(10)]
    assert np.allclose(J, np.array(numeric).T, atol=1e-5 * np.abs(J).max())


def test_what_a_drawing_says_about_a_centre_of_mass_counts(arm, weighted, prior):
    """Inertia about the centre of mass of a link is not convex in standard parameters: only the refinement takes it."""
    mass, centre, I = to_centre_of_mass(BODIES[1])
    stated = np.array([mass, *centre, *I[np.triu_indices(3)]])
    plain = found(Way.LMI, arm, weighted, prior)
    bounds = Bounds(knowledge=(Knowledge("link2", stated, np.array([0.05, *[0.005] * 3, *[1e-3] * 6])),))
    told = found(Way.LMI, arm, weighted, prior, bounds=bounds)
    smooth = found(Way.LOG_CHOLESKY, arm, weighted, prior, bounds=bounds)
    assert (told.method, smooth.method) == ("successive-lmi", "log-cholesky")
    assert told.is_physical
    assert smooth.is_physical
    away = [np.abs(to_physical(e.values, e.bodies)[list(e.bodies[1].columns)] - stated) for e in (plain, told)]
    assert away[1][4:].max() < 0.5 * away[0][4:].max()
    extras = extras_of(bounds.knowledge, told.bodies, len(told.names))

    def total(x):
        R = weighted.stacked()
        pull = PullBack(1.0).value(x, prior)
        return float(np.sum((R[:, :-1] @ x - R[:, -1]) ** 2) + pull + np.sum(extras(x)[0] ** 2))

    # Two ways that share nothing but the problem end at the same place.
    assert total(smooth.values) == pytest.approx(total(told.values), abs=0.05)
    # A local optimum: no small feasible move is better.
    rng = np.random.default_rng(6)
    for size in (1e-2, 1e-3):
        for _ in range(40):
            theta = np.array(told.values)
            for body in told.bodies:
                c = list(body.columns)
                theta[c] = from_log_cholesky(to_log_cholesky(told.values[c]) + size * rng.normal(size=10))
            assert total(theta) > total(told.values) - 1e-3
    with pytest.raises(UnknownNameError, match="link9"):
        found(Way.LMI, arm, weighted, prior, bounds=Bounds(knowledge=(Knowledge("link9", stated, np.ones(10)),)))


def test_curvature_of_physical_parameters_matches_finite_differences():
    bodies = bodies_of([f"link1.{n}" for n in ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")])
    mu = to_physical(BODIES[2], bodies) + 0.01
    w = np.random.default_rng(0).normal(size=10)
    H = physical_curvature(mu, bodies, w)
    h = 1e-6
    for k in range(10):
        e = h * np.eye(10)[k]
        slope = (physical_jacobian(mu + e, bodies).T @ w - physical_jacobian(mu - e, bodies).T @ w) / (2 * h)
        assert np.allclose(H[:, k], slope, atol=1e-7)


SLENDER = ThesisInequalities(slender={"link2": 2}, slender_ratio=3.0)


def thesis_problem(arm, weighted, prior, bounds):
    """Cost, gradient and inequalities in mu, for another solver."""
    start = Consistency(PullBack(1.0), bounds).fit(weighted, arm.source.space.units, prior)
    factor = weighted.stacked()
    F = PullBack().root(prior)
    A = np.vstack([factor[:, :-1], F])
    b = np.concatenate([factor[:, -1], F @ prior.values])
    constraints = ThesisProblem(PullBack(1.0), bounds).constraints(start)
    return start, A, b, constraints


@pytest.mark.parametrize("name", ["seed", "slender", "around prior", "box", "mass"])
def test_halper_problem_is_solved_as_well_as_by_a_general_solver(arm, weighted, prior, name):
    bounds = {
        "seed": Bounds(),
        "slender": Bounds(inequalities=SLENDER),
        "around prior": Bounds(inequalities=ThesisInequalities(around_prior=3.0)),
        "box": BOUNDS["box"],
        "mass": BOUNDS["mass"],
    }[name]
    ours = found(Way.THESIS, arm, weighted, prior, bounds=bounds)
    assert ours.status is Status.SOLVED
    start, A, b, constraints = thesis_problem(arm, weighted, prior, bounds)
    bodies = start.bodies
    mu = to_physical(ours.values, bodies)
    assert all(c.slack(mu, np.ones(len(mu))) > -1e-6 for c in constraints)

    def objective(y):
        e = A @ to_standard(y, bodies) - b
        return float(e @ e), 2.0 * physical_jacobian(y, bodies).T @ (A.T @ e)

    linear = [
        LinearConstraint(c.G, -c.h, -c.h if c.kind is Kind.EQUAL else np.inf)
        for c in constraints
        if c.kind is not Kind.SECOND_ORDER
    ]
    # From our own answer the general solver must not find anything better nearby.
    other = minimize(
        objective, mu, jac=True, method="SLSQP", constraints=linear, options={"maxiter": 300, "ftol": 1e-10}
    )
    slack = min(float(np.min(c.A @ other.x - c.lb)) for c in linear)
    if slack > -1e-7:
        assert objective(mu)[0] <= other.fun * (1.0 + 1e-4) + 0.05
    assert objective(mu)[0] <= objective(to_physical(prior.values, bodies))[0] or name != "seed"


def test_halper_inequalities_hold_and_say_what_they_do_not_guarantee(arm, weighted, prior):
    ours = found(Way.THESIS, arm, weighted, prior, bounds=Bounds(inequalities=SLENDER))
    assert ours.method == "eq3.53"
    mu = to_physical(ours.values, ours.bodies)
    for body in ours.bodies:
        own = mu[list(body.columns)]
        I = np.array([[own[4], own[5], own[6]], [own[5], own[7], own[8]], [own[6], own[8], own[9]]])
        d = np.diag(I)
        assert own[0] > 0.0
        assert np.all(np.linalg.eigvalsh(I) > 0.0)  # (3.52d)
        assert d.sum() - 2 * d.max() > -1e-7  # (3.53a)
        assert 100 * d.min() >= d.max() - 1e-7  # (3.53b)
        assert 0.1 * d.min() >= np.abs(I[np.triu_indices(3, 1)]).max() - 1e-7  # (3.53c)
        assert d.min() >= 1e-4 - 1e-9  # (3.53d)
    two = mu[list(ours.bodies[1].columns)]
    assert min(two[4], two[7]) >= 3.0 * two[9] - 1e-7  # (3.53e)
    broken = {owner for owner, value in ours.smallest_eigenvalues.items() if value <= 0.0}
    assert {note.subject for note in ours.notes if note.code == "not-physical"} == broken
    # A spread of mass is not linear in mu: it is checked and told, not kept.
    tight = Bounds(where={"link3": (support_of_ellipsoid(np.zeros(3), np.eye(3) / 0.05),)})
    noted = found(Way.THESIS, arm, weighted, prior, bounds=tight)
    assert any(note.code == "bound-broken" and "link3" in note.message for note in noted.notes)


SEED_SET = {"link1": 2, "link3": 2, "link5": 2, "link2": 1, "link4": 1}
"""Eqs. 3.53e and f: links 1, 3 and 5 are long along z, links 2 and 4 along y."""


def test_the_seeds_own_arm_with_the_seeds_own_set():
    """KUKA LBR iiwa in the frames of [Halper2024], whose bodies along z and y are what eqs. 3.53e and f speak of."""
    robot = load_robot("iiwa14")
    source = TorqueRows(robot, Effects())
    x = fourier_motion(np.random.default_rng(0), 7, 600, 50.0)
    A = evaluate_rows(source, x)
    prior = nominal_prior(robot, source.columns)
    noise = np.random.default_rng(1).normal(size=(600, 7))
    information = information_of(
        [Run(name="m", source=source, inputs=x, y=A @ (1.1 * prior.values) + noise, rate=50.0)]
    )
    bounds = Bounds(inequalities=ThesisInequalities(slender=SEED_SET))
    found = PossibleBodies(PullBack(10.0), bounds, Way.THESIS).fit(information, source.space.units, prior)
    assert found.status is Status.SOLVED
    mu = to_physical(found.values, found.bodies)
    for body in found.bodies:
        own = mu[list(body.columns)]
        d = own[[4, 7, 9]]
        assert d.min() >= 1e-4 - 1e-7
        assert 0.1 * d.min() >= np.abs(own[[5, 6, 8]]).max() - 1e-6
        if body.owner in SEED_SET:
            axis = SEED_SET[body.owner]
            assert min(np.delete(d, axis)) >= 3.0 * d[axis] - 1e-6
    # It still explains the torque to the noise; the prior, a tenth too light, does not.
    assert found.chi_square == pytest.approx(noise.size, rel=0.05)
    assert np.sum((A @ (0.1 * prior.values)) ** 2) > 5.0 * noise.size


def test_the_links_of_the_seeds_arm_are_long_along_the_axes_of_its_set():
    assert slender_axes(load_robot("iiwa14")) == SEED_SET


def test_impossible_inequalities_are_refused_with_a_smallest_set(arm, weighted, prior):
    bounds = Bounds(inequalities=ThesisInequalities(slender={"link1": 0}, slender_ratio=200.0))
    with pytest.raises(EstimationError, match=r"eq\. 3\.53") as refused:
        found(Way.THESIS, arm, weighted, prior, bounds=bounds)
    said = str(refused.value)
    # A ratio of 200 along its length, at most 100 anywhere, inertias above zero: all three are needed, nothing else is.
    assert all(word in said for word in ("link1: (3.53b)", "link1: (3.53d)", "link1: (3.53e, f)"))
    assert not any(word in said for word in ("link2", "link3", "(3.53a)", "(3.53c)", "mass"))


def test_a_bound_that_the_inequalities_exclude_is_named(arm, weighted, prior):
    tight = ThesisInequalities(around_prior=0.5, smallest_inertia=10.0)
    with pytest.raises(EstimationError, match="exclude each other") as refused:
        found(Way.THESIS, arm, weighted, prior, bounds=Bounds(inequalities=tight))
    assert "(3.53d) diagonal inertias at least 10 kg m^2" in str(refused.value)
    assert "within 0.5 of its prior" in str(refused.value)


def test_an_unknown_slender_link_is_refused(arm, weighted, prior):
    with pytest.raises(UnknownNameError, match="link7"):
        found(Way.THESIS, arm, weighted, prior, bounds=Bounds(inequalities=ThesisInequalities(slender={"link7": 0})))


def test_parameters_alone_are_those_of_the_estimate(arm, weighted, prior):
    for bounds in (Bounds(), Bounds(mass={"link2": (0.0, 0.5)})):
        bodies = PossibleBodies(PullBack(0.1), bounds)
        fit = bodies.fit(weighted, ("",) * len(prior.names), prior)
        np.testing.assert_array_equal(bodies.values(weighted, fit.units, prior), fit.values)


def test_the_prior_of_an_arm_is_made_once(arm, prior):
    assert nominal_prior(arm.robot, prior.names) is nominal_prior(arm.robot, list(prior.names))
