"""The constant matrix below M(q): its identity, its proof by dense sampling, how tight it is, and when it is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.consistency.certificates import (
    certify,
    nearest_standard,
    proven_eigenvalue,
    smallest_mass_matrix_eigenvalue,
)
from armid.consistency.consistent import Consistency
from armid.consistency.mass_matrix_bound import (
    best_transfers,
    energy_form,
    joint_facts,
    mass_matrix_bound,
    spatial_inertia,
)
from armid.consistency.positivity import positivity_over
from armid.consistency.prior import nominal_prior
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import information_of
from armid.identifiability.structure import structural_base
from armid.kernels.dynamics import mass_matrix
from armid.parameters.effects import Effects
from armid.parameters.inertial import INERTIAL_NAMES, from_centre_of_mass, pseudo_inertia, to_centre_of_mass
from armid.robot import Elementary, Joint, JointKind, Link, Move, Robot
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from support.chains import random_robot
from support.elbow import case

CATALOGUE = ("iiwa14", "panda", "ur10e", "tx40", "cylindrical", "mabi-max100")


def bodies(robot):
    names = [f"link{i + 1}.{q}" for i in range(robot.n_joints) for q in INERTIAL_NAMES]
    return np.array(nominal_prior(robot, names).values)


def without_rotors(robot):
    return replace(robot, joints=tuple(replace(j, drive=replace(j.drive, rotor_inertia=0.0)) for j in robot.joints))


@pytest.mark.parametrize("seed", range(12))
def test_no_sampled_configuration_is_below_the_bound_of_random_arms(seed):
    rng = np.random.default_rng(seed)
    n = 2 + seed % 5
    robot = random_robot(rng, n, coupled=seed % 3 == 0)
    rotor = rng.uniform(0.0, 0.3, n)
    # Angles over whole turns and lengths far beyond any limit: the bound knows none.
    q = rng.uniform(-np.pi, np.pi, size=(4000, n))
    M = mass_matrix(robot, q) + np.diag(rotor)
    form = energy_form(robot, robot.inertial, rotor)
    zero = np.zeros(len(form.transfers))
    for y in (zero, best_transfers(form, form.proven(zero))):
        B = form.constant_bound(y)
        # The matrices themselves are ordered, not only their smallest eigenvalues.
        assert np.linalg.eigvalsh(M - B)[:, 0].min() > -1e-9 * np.linalg.norm(B, 2)
        assert form.proven(y) == pytest.approx(np.linalg.eigvalsh(B)[0], rel=1e-6)
    bound = mass_matrix_bound(robot, robot.inertial, rotor)
    assert form.proven(zero) <= bound <= np.linalg.eigvalsh(M)[:, 0].min()


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_bound_of_known_arms_is_close_to_the_worst_that_a_search_finds(name):
    robot = load_robot(name)
    ten = bodies(robot)
    bound = mass_matrix_bound(robot, ten, np.zeros(robot.n_joints))
    worst = positivity_over(without_rotors(robot.with_inertial(ten))).smallest
    assert 0.0 < bound <= worst
    # Joints that slide have a limit the bound does not know: there it is less tight.
    assert worst < (2.0 if name == "cylindrical" else 1.05) * bound


def test_a_flat_link_weakens_the_bound_hardly_because_its_neighbours_lend_it_mass():
    robot = load_robot("iiwa14")
    ten = bodies(robot)
    flat = np.array(ten)
    mass, centre, I = to_centre_of_mass(ten[20:30])
    values, axes = np.linalg.eigh(0.5 * np.trace(I) * np.eye(3) - I)
    Sigma = (axes * [1e-7, *values[1:]]) @ axes.T
    flat[20:30] = from_centre_of_mass(mass, centre, np.trace(Sigma) * np.eye(3) - Sigma)
    form = energy_form(robot, flat, np.zeros(7))
    bound = mass_matrix_bound(robot, flat, np.zeros(7))
    assert bound > 0.9 * positivity_over(without_rotors(robot.with_inertial(flat))).smallest
    assert form.proven(np.zeros(len(form.transfers))) <= bound


@pytest.mark.parametrize("seed", range(6))
def test_the_three_facts_hold_at_every_configuration(seed):
    """Rates, functionals that agree and inertia that may be counted with either link, against twists by finite differences."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 5)
    for q in rng.uniform(-3, 3, size=(3, 5)):
        J = twists(robot, q)
        for i, joint in enumerate(robot.joints):
            facts = joint_facts(joint)
            own, before = J[i], J[i - 1] if i else np.zeros((6, 5))
            assert i > 0 or np.allclose(own[:, 0], facts.own.screw, atol=1e-7)
            assert np.allclose(facts.own.rate @ own - facts.before.rate @ before, np.eye(5)[i], atol=1e-7)
            assert np.allclose(facts.own.equal @ own, facts.before.equal @ before, atol=1e-7)
            for mine, theirs in zip(facts.own.shared, facts.before.shared, strict=True):
                assert np.allclose(own.T @ mine @ own, before.T @ theirs @ before, atol=1e-6)


def test_twists_and_inertias_make_the_mass_matrix():
    robot = random_robot(np.random.default_rng(3), 5)
    q = np.random.default_rng(4).uniform(-3, 3, size=5)
    tens = robot.inertial.reshape(-1, 10)
    M = sum(V.T @ spatial_inertia(ten) @ V for V, ten in zip(twists(robot, q), tens, strict=True))
    assert np.allclose(M, mass_matrix(robot, q[np.newaxis])[0], atol=1e-6)


def twists(robot, q):
    """Body Jacobian (angular, linear) of every link by finite differences of its pose, shape [n, 6, n]."""
    n, h = robot.n_joints, 1e-6

    def poses(x):
        out, T = [], np.eye(4)
        for joint, value in zip(robot.joints, x, strict=True):
            T = T @ joint.transform(value)
            out.append(T)
        return out

    J = np.zeros((n, 6, n))
    here = poses(q)
    for j in range(n):
        e = h * np.eye(n)[j]
        for i, (T, up, down) in enumerate(zip(here, poses(q + e), poses(q - e), strict=True)):
            D = np.linalg.inv(T) @ (up - down) / (2 * h)
            J[i, :, j] = [D[2, 1], D[0, 2], D[1, 0], *D[:3, 3]]
    return J


def test_one_joint_meets_its_bound_exactly():
    ten = from_centre_of_mass(2.0, [0.3, 0.1, 0.2], np.diag([0.02, 0.03, 0.04]))
    turn = Joint(name="j", kind=JointKind.REVOLUTE, transforms=(Elementary(motion=Move.RZ, value=0.0, variable=True),))
    slide = Joint(
        name="j", kind=JointKind.PRISMATIC, transforms=(Elementary(motion=Move.TX, value=0.0, variable=True),)
    )
    for joint, inertia in ((turn, 0.04 + 2.0 * (0.09 + 0.01)), (slide, 2.0)):
        robot = Robot(name="one", joints=(joint,), links=(Link("l", ten),))
        for rotor in (0.0, 0.5):
            assert mass_matrix_bound(robot, ten, np.array([rotor])) == pytest.approx(inertia + rotor, rel=0.02)
            assert mass_matrix_bound(robot, ten, np.array([rotor])) <= inertia + rotor


def test_a_point_mass_has_a_proof_off_the_axis_and_none_on_it():
    """A single link turns about its axis and does nothing else; on the axis M(q) is zero and nothing helps."""
    joint = Joint(name="j", kind=JointKind.REVOLUTE, transforms=(Elementary(motion=Move.RZ, value=0.0, variable=True),))
    for centre, inertia in (([0.3, 0.1, 0.2], 2.0 * (0.09 + 0.01)), ([0.0, 0.0, 0.2], 0.0)):
        ten = from_centre_of_mass(2.0, centre, np.zeros((3, 3)))
        bound = mass_matrix_bound(Robot(name="one", joints=(joint,), links=(Link("l", ten),)), ten, np.zeros(1))
        assert 0.97 * inertia <= bound <= inertia


@pytest.mark.parametrize("seed", range(6))
def test_parameters_of_no_possible_body_are_proven_when_they_move_like_possible_ones(seed):
    """Base parameters alone, all others zero: no body has them, and M(q) is that of the true bodies."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 4)
    base = structural_base(TorqueRows(robot, Effects()))
    strange = base.embedding @ base.values(robot.inertial)
    assert any(np.linalg.eigvalsh(pseudo_inertia(ten))[0] < -1e-6 for ten in strange.reshape(-1, 10))
    bound, plain = (mass_matrix_bound(robot, x, np.zeros(4)) for x in (strange, robot.inertial))
    assert bound == pytest.approx(plain, rel=0.05)
    wrong = strange - np.tile([0.0, *[0.0] * 3, 1.0, 0, 0, 1.0, 0, 1.0], 4) * 20.0
    assert mass_matrix_bound(robot, wrong, np.zeros(4)) == 0.0


def test_certificates_carry_the_bound_and_the_test_of_the_free_estimate():
    arm = case(5, count=800)
    run = arm.run(np.random.default_rng(1).normal(size=arm.clean.shape) * 0.1)
    information = information_of([run])
    free = WeightedLeastSquares().fit(information, arm.base)
    weighted = information.weighted({name: 1.0 / s for name, s in free.sigma.items()})
    prior = nominal_prior(arm.robot, arm.source.columns)
    estimate = Consistency().fit(weighted, arm.source.space.units, prior)
    certificates = certify(arm.robot, estimate, free, {})
    assert certificates.proven
    assert 0.0 < certificates.mass_matrix_bound <= certificates.mass_matrix
    assert certificates.mass_matrix_bound == proven_eigenvalue(arm.robot, estimate.names, estimate.values)
    dense = smallest_mass_matrix_eigenvalue(arm.robot, estimate.names, estimate.values, seed=7, count=20000)
    assert certificates.mass_matrix_bound <= dense
    assert certificates.free_estimate_is_physical
    assert certificates.p_value > 0.05


@pytest.mark.parametrize("noise", [0.1, 20.0, 200.0])
def test_the_free_estimate_gets_a_proof_where_there_is_one_and_never_a_wrong_one(noise):
    arm = case(5, count=400)
    run = arm.run(np.random.default_rng(1).normal(size=arm.clean.shape) * noise)
    information = information_of([run])
    free = WeightedLeastSquares().fit(information, arm.base)
    weighted = information.weighted({name: 1.0 / s for name, s in free.sigma.items()})
    prior = nominal_prior(arm.robot, arm.source.columns)
    estimate = Consistency().fit(weighted, arm.source.space.units, prior)
    near = nearest_standard(free, estimate)
    assert np.allclose(arm.base.values(near), free.values, atol=1e-8 * np.abs(free.values).max())
    bound = certify(arm.robot, estimate, free, {}).free_mass_matrix_bound
    found = smallest_mass_matrix_eigenvalue(arm.robot, estimate.names, free.standard, seed=3, count=20000)
    assert bound <= max(found, 0.0)
    if noise < 1.0:
        assert bound > 0.9 * found > 0.0
