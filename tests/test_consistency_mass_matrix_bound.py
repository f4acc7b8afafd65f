"""The constant matrix below M(q): its identity, its proof by dense sampling, how tight it is, and when it is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.estimation.consistency.certificates import certify, proven_eigenvalue, smallest_mass_matrix_eigenvalue
from armid.estimation.consistency.consistent import Consistency
from armid.estimation.consistency.mass_matrix_bound import (
    constant_lower_bound,
    left_inverse,
    mass_matrix_bound,
    spatial_inertia,
)
from armid.estimation.consistency.prior import nominal_prior
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import information_of
from armid.kernels.dynamics import mass_matrix
from armid.parameters.inertial import INERTIAL_NAMES, from_centre_of_mass
from armid.robot import Elementary, Joint, JointKind, Link, Motion, Robot
from armid.robot.load import load_robot
from armid.validation.positivity import positivity_over
from chains import random_robot
from elbow import case

CATALOGUE = ("iiwa14", "panda", "ur10e", "tx40", "cylindrical", "mabi-max100")


def bodies(robot):
    names = [f"link{i + 1}.{q}" for i in range(robot.n_joints) for q in INERTIAL_NAMES]
    return np.array(nominal_prior(robot, names).values)


def without_rotors(robot):
    return replace(robot, joints=tuple(replace(j, drive=replace(j.drive, rotor_inertia=0.0)) for j in robot.joints))


@pytest.mark.parametrize("seed", range(12))
def test_no_sampled_configuration_is_below_the_bound_of_random_arms(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 2 + seed % 5, coupled=seed % 3 == 0)
    B = constant_lower_bound(robot, robot.inertial)
    # Angles over whole turns and lengths far beyond any limit: the bound knows none.
    q = rng.uniform(-np.pi, np.pi, size=(4000, robot.n_joints))
    M = mass_matrix(robot, q)
    # The matrices themselves are ordered, not only their smallest eigenvalues.
    C = np.eye(robot.n_joints) if robot.coupling is None else robot.coupling
    assert np.linalg.eigvalsh(M - C.T @ B @ C)[:, 0].min() > -1e-9 * np.linalg.norm(B, 2)
    rotor = rng.uniform(0.0, 0.3, robot.n_joints)
    bound = mass_matrix_bound(robot, robot.inertial, rotor)
    assert 0.0 < bound <= np.linalg.eigvalsh(M + np.diag(rotor))[:, 0].min()


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_bound_of_known_arms_is_close_to_the_worst_that_a_search_finds(name):
    robot = load_robot(name)
    ten = bodies(robot)
    bound = mass_matrix_bound(robot, ten, np.zeros(robot.n_joints))
    worst = positivity_over(without_rotors(robot.with_inertial(ten))).smallest
    assert 0.0 < bound <= worst < 3.0 * bound


def test_joint_velocities_are_the_same_function_of_link_motions_at_every_configuration():
    """Equation (1) against the whitened Jacobian, whose square is the mass matrix: W A(q) = 1."""
    robot = random_robot(np.random.default_rng(3), 5, coupled=True)
    roots = [np.linalg.cholesky(spatial_inertia(ten)) for ten in robot.inertial.reshape(-1, 10)]
    W, free = left_inverse(robot, roots)
    for q in np.random.default_rng(4).uniform(-3, 3, size=(5, 5)):
        A = whitened_jacobian(robot, q, roots)
        C = np.eye(5) if robot.coupling is None else robot.coupling
        assert np.allclose(C.T @ A.T @ A @ C, mass_matrix(robot, (np.linalg.inv(C) @ q)[np.newaxis])[0], atol=1e-7)
        assert np.allclose(W @ A, np.eye(5), atol=1e-7)
        assert all(np.allclose(more @ A, 0.0, atol=1e-7) for more in free)


def whitened_jacobian(robot, q, roots):
    """L_i^T times the body Jacobian of every link, by finite differences of link poses; geometric coordinates."""
    n, h = robot.n_joints, 1e-6

    def poses(x):
        out, T = [], np.eye(4)
        for joint, value in zip(robot.joints, x, strict=True):
            T = T @ joint.transform(value)
            out.append(T)
        return out

    A = np.zeros((6 * n, n))
    here = poses(q)
    for j in range(n):
        e = h * np.eye(n)[j]
        for i, (T, up, down) in enumerate(zip(here, poses(q + e), poses(q - e), strict=True)):
            D = np.linalg.inv(T) @ (up - down) / (2 * h)
            twist = np.array([D[2, 1], D[0, 2], D[1, 0], *D[:3, 3]])
            A[6 * i : 6 * i + 6, j] = roots[i].T @ twist
    return A


def test_one_joint_meets_its_bound_exactly():
    ten = from_centre_of_mass(2.0, [0.3, 0.1, 0.2], np.diag([0.02, 0.03, 0.04]))
    turn = Joint("j", JointKind.REVOLUTE, (Elementary(Motion.RZ, 0.0, variable=True),))
    slide = Joint("j", JointKind.PRISMATIC, (Elementary(Motion.TX, 0.0, variable=True),))
    for joint, inertia in ((turn, 0.04 + 2.0 * (0.09 + 0.01)), (slide, 2.0)):
        robot = Robot("one", (joint,), (Link("l", ten),))
        assert mass_matrix_bound(robot, ten, np.zeros(1)) <= inertia
        assert mass_matrix_bound(robot, ten, np.array([0.5])) > 0.5
    # A sliding body has no motion but along its axis once couples are free: the bound is its mass.
    assert mass_matrix_bound(Robot("one", (slide,), (Link("l", ten),)), ten, np.zeros(1)) == pytest.approx(
        2.0, rel=1e-6
    )


def test_a_point_mass_gives_no_proof():
    ten = from_centre_of_mass(2.0, [0.3, 0.1, 0.2], np.zeros((3, 3)))
    joint = Joint("j", JointKind.REVOLUTE, (Elementary(Motion.RZ, 0.0, variable=True),))
    assert mass_matrix_bound(Robot("one", (joint,), (Link("l", ten),)), ten, np.zeros(1)) == 0.0


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
