"""Compiled kernels of random chains directly against Pinocchio: mixed joints, random placements, couplings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from armid.kernels import dynamics, evaluate, functions, kinematics
from armid.parameters.inertial import from_pinocchio
from armid.robot import Robot
from armid.robot.elementary import product
from support.chains import pinocchio_model, random_robot

TOLERANCE = 1e-10
SAMPLES = 3


@pytest.fixture(autouse=True)
def only_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch runs compiled code; the NumPy path would raise."""

    def refused(*_: Any) -> Any:
        raise AssertionError("not compiled")

    monkeypatch.setattr(evaluate, "SMALL", 0)
    monkeypatch.setattr(functions, "SMALL", 0)
    monkeypatch.setattr(functions, "ARRAYS", None)
    monkeypatch.setattr(evaluate, "reference_rows", refused)


def assert_close(actual: np.ndarray, expected: Any) -> None:
    expected = np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= TOLERANCE * max(1.0, float(np.abs(expected).max()))


def link_to_joint(T_joint_link: np.ndarray) -> np.ndarray:
    """The linear map from our ten about the link frame to Pinocchio's ten about its joint frame, by Pinocchio alone.

    Twelve random bodies, given in both, determine it.
    """
    bodies = [pin.Inertia.Random() for _ in range(12)]
    placement = pin.SE3(T_joint_link)
    ours = np.array([from_pinocchio(body.toDynamicParameters()) for body in bodies])
    theirs = np.array([placement.act(body).toDynamicParameters() for body in bodies])
    return np.asarray(np.linalg.lstsq(ours, theirs, rcond=None)[0].T)


def in_link_frames(robot: Robot, Y: np.ndarray) -> np.ndarray:
    """Pinocchio's regressor over our standard parameters."""
    out = np.empty_like(Y)
    for i, joint in enumerate(robot.joints):
        after = product(joint.transforms[joint.variable_index + 1 :])
        out[:, 10 * i : 10 * i + 10] = Y[:, 10 * i : 10 * i + 10] @ link_to_joint(after)
    return out


@pytest.mark.parametrize("seed", range(24))
def test_random_chain(seed: int) -> None:
    pin.seed(seed)
    rng = np.random.default_rng(1000 + seed)
    robot = random_robot(rng, 1 + seed % 10, coupled=seed % 3 == 0)
    n = robot.n_joints
    C = np.eye(n) if robot.coupling is None else np.array(robot.coupling)
    model = pinocchio_model(robot)
    data, tip = model.createData(), model.getFrameId("tip")
    q, qd, qdd = rng.normal(size=(3, SAMPLES, n))
    tau = dynamics.inverse_dynamics(robot, q, qd, qdd)
    Y = dynamics.regressor(robot, q, qd, qdd)
    M = dynamics.mass_matrix(robot, q)
    cor = dynamics.coriolis(robot, q, qd)
    g = dynamics.gravity(robot, q)
    kinetic, potential = dynamics.kinetic_energy(robot, q, qd), dynamics.potential_energy(robot, q)
    T, J = kinematics.forward_kinematics(robot, q), kinematics.jacobian(robot, q)
    for s in range(SAMPLES):
        x, v, a = C @ q[s], C @ qd[s], C @ qdd[s]
        assert_close(tau[s], C.T @ pin.rnea(model, data, x, v, a))
        full = np.asarray(pin.computeJointTorqueRegressor(model, data, x, v, a)).reshape(n, 10 * n)
        assert_close(Y[s], C.T @ in_link_frames(robot, full))
        mass = pin.crba(model, data, x)
        assert_close(M[s], C.T @ (np.triu(mass) + np.triu(mass, 1).T) @ C)
        assert_close(cor[s], C.T @ pin.computeCoriolisMatrix(model, data, x, v) @ C)
        assert_close(g[s], C.T @ pin.computeGeneralizedGravity(model, data, x))
        assert_close(kinetic[s], pin.computeKineticEnergy(model, data, x, v))
        assert_close(potential[s], pin.computePotentialEnergy(model, data, x))
        pin.framesForwardKinematics(model, data, x)
        assert_close(T[s], data.oMf[tip].homogeneous)
        frame = pin.computeFrameJacobian(model, data, x, tip, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        assert_close(J[s], np.asarray(frame).reshape(6, n) @ C)
