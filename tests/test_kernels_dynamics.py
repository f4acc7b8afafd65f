"""Every batch function against Pinocchio, on random chains."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import armid
from armid.kernels import dynamics, kinematics
from armid.parameters.inertial import from_centre_of_mass, from_pinocchio, to_pinocchio
from armid.robot import Robot
from support.chains import pinocchio_model, random_robot

TOLERANCE = 1e-10


def state(rng: np.random.Generator, robot: Robot, count: int = 3) -> tuple[np.ndarray, ...]:
    return tuple(rng.normal(size=(count, robot.n_joints)) for _ in range(3))


def assert_close(actual: np.ndarray, expected: np.ndarray) -> None:
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max()))
    assert np.abs(actual - expected).max() <= TOLERANCE * scale


@pytest.mark.parametrize("seed", range(200))
def test_random_chain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 1 + seed % 10)
    model = pinocchio_model(robot)
    data = model.createData()
    q, qd, qdd = state(rng, robot)
    tau = dynamics.inverse_dynamics(robot, q, qd, qdd)
    Y = dynamics.regressor(robot, q, qd, qdd)
    M = dynamics.mass_matrix(robot, q)
    C = dynamics.coriolis(robot, q, qd)
    g = dynamics.gravity(robot, q)
    kinetic, potential = dynamics.kinetic_energy(robot, q, qd), dynamics.potential_energy(robot, q)
    T = kinematics.forward_kinematics(robot, q)
    J = kinematics.jacobian(robot, q)
    tip = model.getFrameId("tip")
    for s in range(len(q)):
        expected = pin.rnea(model, data, q[s], qd[s], qdd[s])
        assert_close(tau[s], expected)
        assert_close(Y[s] @ robot.inertial, expected)
        assert_close(g[s], pin.computeGeneralizedGravity(model, data, q[s]))
        mass = pin.crba(model, data, q[s])
        assert_close(M[s], np.triu(mass) + np.triu(mass, 1).T)
        assert_close(C[s], pin.computeCoriolisMatrix(model, data, q[s], qd[s]))
        assert_close(kinetic[s], pin.computeKineticEnergy(model, data, q[s], qd[s]))
        assert_close(potential[s], pin.computePotentialEnergy(model, data, q[s]))
        pin.framesForwardKinematics(model, data, q[s])
        assert_close(T[s], data.oMf[tip].homogeneous)
        expected_J = pin.computeFrameJacobian(model, data, q[s], tip, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        assert_close(J[s], np.asarray(expected_J).reshape(6, -1))
    assert_close(dynamics.forward_dynamics(robot, q, qd, tau), qdd)


def test_pinocchio_lists_the_same_ten_in_another_order() -> None:
    pin.seed(3)
    body = pin.Inertia.Random()
    ours = from_centre_of_mass(body.mass, body.lever, body.inertia)
    np.testing.assert_allclose(from_pinocchio(body.toDynamicParameters()), ours, atol=1e-12)
    np.testing.assert_allclose(to_pinocchio(ours), body.toDynamicParameters(), atol=1e-12)


@pytest.mark.parametrize("name", ["iiwa14", "cylindrical", "tx40"])
@pytest.mark.parametrize("count", [None, 3, 500])
def test_the_rigid_body_functions_satisfy_their_identities(name: str, count: int | None) -> None:
    """As their docstrings say, for one sample, a few and a compiled batch, with slides and coupled drives."""
    robot = armid.load_robot(name)
    rng = np.random.default_rng(0)
    shape = (robot.n_joints,) if count is None else (count, robot.n_joints)
    q, qd, qdd, h = rng.normal(size=(4, *shape))
    still = np.zeros_like(q)
    tau = armid.inverse_dynamics(robot, q, qd, qdd)
    M, C, g = armid.mass_matrix(robot, q), armid.coriolis(robot, q, qd), armid.gravity(robot, q)
    assert tau.shape == g.shape == shape
    assert M.shape == C.shape == (*shape, robot.n_joints)
    assert_close(tau, np.einsum("...ij,...j->...i", M, qdd) + np.einsum("...ij,...j->...i", C, qd) + g)
    assert_close(tau, armid.regressor(robot, q, qd, qdd) @ robot.inertial)
    assert_close(g, armid.inverse_dynamics(robot, q, still, still))
    assert_close(armid.forward_dynamics(robot, q, qd, tau), qdd)
    energy = 0.5 * np.einsum("...i,...ij,...j->...", qd, M, qd)
    assert_close(dynamics.kinetic_energy(robot, q, qd), np.atleast_1d(energy))
    # The Jacobian is the derivative of the pose along a direction h; central differences of step e leave e^2.
    e = 1e-6
    moved = (
        armid.forward_kinematics(robot, q + e * h)[..., :3, 3] - armid.forward_kinematics(robot, q - e * h)[..., :3, 3]
    ) / (2 * e)
    along = np.einsum("...ij,...j->...i", armid.jacobian(robot, q)[..., :3, :], h)
    np.testing.assert_allclose(moved, along, atol=1e-8 * max(1.0, np.abs(along).max()))
