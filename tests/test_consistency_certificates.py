"""What the data decided and what the prior did, where it is known by hand; and the test of whether least squares was physical."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from armid.consistency.bodies import BASIS, bodies_of
from armid.consistency.certificates import certify
from armid.consistency.consistent import Consistency, shares
from armid.consistency.feasibility import distance_to_physical, feasibility
from armid.consistency.prior import Prior, nominal_prior
from armid.consistency.regularisers import Entropic, Euclidean, PullBack
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, information_of
from armid.identifiability.structure import structural_base
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
from armid.parameters.inertial import INERTIAL_NAMES, from_centre_of_mass, to_centre_of_mass
from armid.robot import Elementary, Joint, JointKind, Link, Move, Robot
from armid.rows.torque import TorqueRows
from support.elbow import case, elbow_arm, fourier_motion

NAMES = tuple(f"link1.{name}" for name in INERTIAL_NAMES)
BODY = from_centre_of_mass(2.0, [0.2, 0.05, 0.1], np.diag([0.02, 0.03, 0.04]))


def pendulum(axis=Move.RZ, gravity=(0.0, -9.81, 0.0)):
    joint = Joint(name="j", kind=JointKind.REVOLUTE, transforms=(Elementary(motion=axis, value=0.0, variable=True),))
    return Robot(name="pendulum", joints=(joint,), links=(Link("l", BODY),), gravity=np.array(gravity))


def pendulum_information(robot, noise=0.01):
    source = TorqueRows(robot, Effects())
    x = fourier_motion(np.random.default_rng(0), 1, 400, 50.0)
    A = evaluate_rows(source, x)
    y = A @ BODY + np.random.default_rng(1).normal(size=(400, 1)) * noise
    return information_of([Run(name="m", source=source, inputs=x, y=y, rate=50.0)]).weighted({"j": 1.0 / noise}), A[
        :, 0
    ] / noise


@pytest.mark.parametrize(
    ("gravity", "seen"),
    [((0.0, -9.81, 0.0), {"mx", "my", "Izz"}), ((0.0, 0.0, -9.81), {"Izz"}), ((-9.81, 0.0, 0.0), {"mx", "my", "Izz"})],
)
@pytest.mark.parametrize("regulariser", [PullBack(0.1), Entropic(0.1), Euclidean(0.1)], ids=lambda r: r.name)
def test_a_pendulum_shows_its_inertia_and_where_gravity_acts_its_moment_and_nothing_else(gravity, seen, regulariser):
    """tau = Izz qdd + g-terms in mx and my: the other seven parameters enter no torque."""
    information, _ = pendulum_information(pendulum(gravity=gravity))
    prior = Prior(names=NAMES, values=BODY * 1.2, scale=np.ones(10), origin={"link1": "nominal"})
    estimate = Consistency(regulariser).fit(information, ("",) * 10, prior)
    by = dict(zip(INERTIAL_NAMES, estimate.determined_by, strict=True))
    assert {name for name, who in by.items() if who == "data"} == seen
    assert all(who == "prior" for name, who in by.items() if name not in seen)
    share = dict(zip(INERTIAL_NAMES, estimate.data_share, strict=True))
    assert all(share[name] > 0.99 for name in seen)
    assert all(share[name] < 1e-12 for name in INERTIAL_NAMES if name not in seen)


def test_shares_of_one_row_are_those_of_its_coefficients():
    """One precise row of Izz1 + l^2 m2 and a prior of equal doubt: each parameter gets its coefficient squared over the sum."""
    names = tuple(f"link{i}.{n}" for i in (1, 2) for n in INERTIAL_NAMES)
    prior = Prior(names=names, values=np.concatenate([BODY, BODY]), scale=np.ones(20), origin={})
    l, w, precision = 0.4, 0.1, 1e4
    R = np.zeros((1, 20))
    R[0, names.index("link1.Izz")], R[0, names.index("link2.mass")] = precision, precision * l**2
    share, alone, deviations = shares(R, Euclidean(w), prior)
    total = 1.0 + l**4 + w / precision**2
    expected = np.zeros(20)
    expected[names.index("link1.Izz")], expected[names.index("link2.mass")] = 1.0 / total, l**4 / total
    assert np.allclose(share, expected, atol=1e-9)
    assert share.sum() == pytest.approx(1.0, abs=1e-6), (
        "one row decides one direction, however many parameters share it"
    )
    # Nearly all of the row is Izz, and yet it is only as well known as the mass that the prior holds.
    assert alone[[names.index("link1.Izz"), names.index("link2.mass")]].max() < 1e-3
    # Posterior deviations by the same hand: prior 1/w each, less what the row explains.
    j = names.index("link2.mass")
    assert deviations[j] ** 2 == pytest.approx((1.0 - l**4 / total) / w, rel=1e-6)
    assert deviations[names.index("link1.mx")] ** 2 == pytest.approx(1.0 / w)


@pytest.fixture(scope="module")
def arm():
    return case(5, count=500)


def fitted(arm, noise, seed):
    information = information_of([arm.run(np.random.default_rng(seed).normal(size=arm.clean.shape) * noise)])
    return information, WeightedLeastSquares().fit(information, arm.base)


def test_a_share_is_how_much_of_a_change_of_the_truth_the_estimate_follows(arm):
    """Move one true parameter a little, measure again without noise, and see how far its estimate moves."""
    prior = nominal_prior(arm.robot, arm.source.columns)
    sigma = {name: 2.0 for name in arm.source.channels}

    def estimate(standard):
        run = arm.run().with_measured(arm.rows @ standard)
        information = information_of([run]).weighted({name: 1.0 / s for name, s in sigma.items()})
        return Consistency(PullBack(0.1)).fit(information, arm.source.space.units, prior)

    here = estimate(arm.standard)
    assert here.is_physical
    for name in ("link1.Izz", "link2.mx", "link2.mass", "link3.Ixx", "link3.mz", "joint2.viscous", "link1.mass"):
        k = arm.source.columns.index(name)
        moved = np.array(arm.standard)
        step = 1e-2 * max(abs(moved[k]), 0.1)
        moved[k] += step
        followed = (estimate(moved).values[k] - here.values[k]) / step
        assert followed == pytest.approx(here.data_share[k], abs=2e-3), name


def test_with_precise_data_the_shares_add_up_to_the_number_of_base_parameters(arm):
    information, free = fitted(arm, np.array([1e-4, 1e-4, 1e-4]), 1)
    weighted = information.weighted({name: 1.0 / s for name, s in free.sigma.items()})
    estimate = Consistency(PullBack(1e-4)).fit(
        weighted, arm.source.space.units, nominal_prior(arm.robot, arm.source.columns)
    )
    assert estimate.data_share.sum() == pytest.approx(len(arm.base), abs=1e-3)


@pytest.mark.parametrize("edge", [False, True])
def test_noise_alone_does_not_make_least_squares_look_impossible(edge):
    """A physical robot fails the test at 5 % in no more than 5 % of the runs, also one whose bodies are flat already."""
    robot = elbow_arm(np.random.default_rng(2))
    if edge:
        tens = []
        for ten in robot.inertial.reshape(-1, 10):
            mass, centre, I = to_centre_of_mass(ten)
            values, axes = np.linalg.eigh(0.5 * np.trace(I) * np.eye(3) - I)
            Sigma = (axes * (values * [1e-6, 1.0, 1.0])) @ axes.T
            tens.append(from_centre_of_mass(mass, centre, np.trace(Sigma) * np.eye(3) - Sigma))
        robot = robot.with_inertial(np.concatenate(tens))
    arm = case(2, count=300, robot=robot)
    prior = nominal_prior(elbow_arm(np.random.default_rng(2)), arm.source.columns)
    tests = [feasibility(fitted(arm, np.array([80.0, 40.0, 20.0]), seed)[1], prior) for seed in range(120)]
    rejected = np.mean([test.p_value < 0.05 for test in tests])
    assert rejected <= 0.05 + 0.03, "within what 120 runs can tell"
    assert all(test.distance < test.limit for test in tests), "the limit that is safe whatever the truth is"
    assert all(test.freedom > 0 for test in tests if test.distance > 1e-3)
    assert min(test.p_value for test in tests) < 0.5, "and noise does take some of them out of the possible"


def test_impossible_torques_are_told_by_the_p_value_and_the_torque_cost(arm):
    standard = np.array(arm.standard)
    for name in ("link3.Ixx", "link3.Iyy", "link3.Izz"):
        standard[arm.source.columns.index(name)] *= -1.0
    noise = np.random.default_rng(3).normal(size=arm.clean.shape) * [0.5, 0.2, 0.05]
    information = information_of([arm.run().with_measured(arm.rows @ standard + noise)])
    free = WeightedLeastSquares().fit(information, arm.base)
    weighted = information.weighted({name: 1.0 / s for name, s in free.sigma.items()})
    prior = nominal_prior(arm.robot, arm.source.columns)
    estimate = Consistency(PullBack(0.1)).fit(weighted, arm.source.space.units, prior)
    certificates = certify(arm.robot, estimate, free, {"j1": 0.5})
    assert certificates.p_value < 1e-12
    assert not certificates.free_estimate_is_physical
    assert certificates.proven
    assert certificates.torque_cost == {"j1": 0.5}


def test_the_distance_is_that_of_another_modeller(arm):
    _, free = fitted(arm, np.array([80.0, 40.0, 20.0]), 7)
    prior = nominal_prior(arm.robot, arm.source.columns)
    ours = distance_to_physical(free, prior)
    p = len(arm.source.columns)
    scale = np.maximum(np.abs(prior.values), 0.1)
    x = cp.Variable(p)
    root = np.linalg.inv(np.linalg.cholesky(free.covariance))
    constraints = []
    for body in bodies_of(arm.source.columns):
        constraints.append(sum(scale[c] * x[c] * BASIS[k] for k, c in enumerate(body.columns)) >> 0)
    constraints += [x[i] >= 0 for i, n in enumerate(arm.source.columns) if n.endswith(("viscous", "coulomb"))]
    error = root @ (arm.base.projection * scale) @ x - root @ free.values
    problem = cp.Problem(cp.Minimize(cp.sum_squares(error)), constraints)
    problem.solve(solver=cp.CLARABEL)
    assert ours == pytest.approx(problem.value, abs=1e-2)
    assert ours > 0.1, "this estimate is not physical by itself"
    # And the same for an estimate that is: no distance at all.
    _, near = fitted(arm, np.array([1e-3, 1e-3, 1e-3]), 7)
    assert distance_to_physical(near, prior) < 1e-2
    assert structural_base(arm.source).names == arm.base.names
