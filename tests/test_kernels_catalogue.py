"""Every batch function on compiled code, for every catalogue robot, against Pinocchio; parametric Jacobians by differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from armid.kernels import dynamics, kinematics
from armid.kernels.evaluate import SMALL
from armid.recursion.kinematics import elements_to
from armid.robot import Elementary, Move, Robot
from armid.robot.catalogue import catalogue_names
from armid.robot.load import load_robot
from support.chains import pinocchio_model, random_robot

TOLERANCE = 1e-10


def close(actual: np.ndarray, expected: np.ndarray) -> bool:
    expected = np.asarray(expected)
    return bool(np.abs(actual - expected).max() <= TOLERANCE * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", catalogue_names())
def test_catalogue_robot_against_pinocchio(name: str) -> None:
    robot = load_robot(name)
    rng = np.random.default_rng(0)
    model = pinocchio_model(robot)
    data = model.createData()
    n = robot.n_joints
    q, qd, qdd = rng.uniform(-2, 2, size=(3, SMALL + 3, n))
    C = np.eye(n) if robot.coupling is None else robot.coupling
    results = {
        "tau": dynamics.inverse_dynamics(robot, q, qd, qdd),
        "Y": dynamics.regressor(robot, q, qd, qdd) @ robot.inertial,
        "g": dynamics.gravity(robot, q),
        "M": dynamics.mass_matrix(robot, q),
        "C": dynamics.coriolis(robot, q, qd),
        "kinetic": dynamics.kinetic_energy(robot, q, qd),
        "potential": dynamics.potential_energy(robot, q),
        "T": kinematics.forward_kinematics(robot, q),
        "J": kinematics.jacobian(robot, q),
    }
    tip = model.getFrameId("tip")
    for s in range(0, len(q), 101):
        x, v, a = C @ q[s], C @ qd[s], C @ qdd[s]
        tau = C.T @ pin.rnea(model, data, x, v, a)
        mass = pin.crba(model, data, x)
        mass = np.triu(mass) + np.triu(mass, 1).T
        pin.framesForwardKinematics(model, data, x)
        expected = {
            "tau": tau,
            "Y": tau,
            "g": C.T @ pin.computeGeneralizedGravity(model, data, x),
            "M": C.T @ mass @ C,
            "C": C.T @ pin.computeCoriolisMatrix(model, data, x, v) @ C,
            "kinetic": pin.computeKineticEnergy(model, data, x, v),
            "potential": pin.computePotentialEnergy(model, data, x),
            "T": data.oMf[tip].homogeneous.copy(),
            "J": pin.computeFrameJacobian(model, data, x, tip, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED).reshape(6, n)
            @ C,
        }
        wrong = [key for key, value in expected.items() if not close(results[key][s], value)]
        assert not wrong
    assert close(dynamics.forward_dynamics(robot, q, qd, results["tau"]), qdd)


def moved(elements: list[tuple[Elementary, int | None]], k: int, step: float) -> list[tuple[Elementary, int | None]]:
    element, joint = elements[k]
    return [*elements[:k], (replace(element, value=element.value + step), joint), *elements[k + 1 :]]


@pytest.mark.parametrize("seed", range(6))
def test_parametric_jacobian_by_differences(seed: int) -> None:
    """Base frame, every number of the chain, an inserted error transform and the tool frame."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 3 + seed % 4, coupled=seed % 2 == 1)
    base = [(Elementary(motion=Move.TX, value=0.1), None), (Elementary(motion=Move.RZ, value=0.2), None)]
    inserted = [(Elementary(motion=motion), None) for motion in Move]
    elements = [*base, *inserted, *elements_to(robot, robot.tip)]
    q = rng.normal(size=(4, robot.n_joints))
    T, J = kinematics.parametric_jacobian(robot, q, elements)
    step = 1e-6
    for k in range(len(elements)):
        ahead, _ = kinematics.parametric_jacobian(robot, q, moved(elements, k, step))
        behind, _ = kinematics.parametric_jacobian(robot, q, moved(elements, k, -step))
        rate = (ahead - behind) / (2 * step)
        omega = rate[:, :3, :3] @ T[:, :3, :3].transpose(0, 2, 1)
        twist = np.column_stack([rate[:, :3, 3], omega[:, 2, 1], omega[:, 0, 2], omega[:, 1, 0]])
        # Lengths of a few metres: truncation and cancellation of the difference are below 1e-8.
        assert np.abs(J[:, :, k] - twist).max() < 1e-7


def test_chosen_elements_are_those_of_all() -> None:
    robot = random_robot(np.random.default_rng(3), 4)
    elements = elements_to(robot, robot.tip)
    q = np.random.default_rng(1).normal(size=(5, 4))
    _, J = kinematics.parametric_jacobian(robot, q, elements)
    _, part = kinematics.parametric_jacobian(robot, q, elements, wanted=[4, 1])
    assert np.array_equal(part, J[:, :, [4, 1]])


def test_forward_kinematics_of_every_frame() -> None:
    robot: Robot = load_robot("iiwa14")
    q = np.random.default_rng(0).uniform(-2, 2, size=(3, 7))
    expected = np.broadcast_to(np.eye(4), (3, 4, 4))
    assert np.array_equal(kinematics.forward_kinematics(robot, q, robot.base), expected)
    for i, joint in enumerate(robot.joints):
        expected = expected @ np.array([joint.transform(value) for value in q[:, i]])
        assert np.abs(kinematics.forward_kinematics(robot, q, robot.links[i].name) - expected).max() < 1e-14


@pytest.mark.parametrize("seed", range(6))
def test_parametric_jacobian_of_joint_placements_equals_pinocchios(seed: int) -> None:
    """Six error transforms where each joint is placed, against `computeFrameKinematicRegressor`."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 1 + seed)
    model = pinocchio_model(robot)
    data = model.createData()
    elements: list[tuple[Elementary, int | None]] = []
    wanted: list[int] = []
    for element, joint in elements_to(robot, robot.tip):
        if joint is not None:
            # Pinocchio's placement ends after the constant next to the variable.
            elements.append((Elementary(motion=element.motion, value=element.value), None))
            wanted += range(len(elements), len(elements) + 6)
            elements += [(Elementary(motion=motion), None) for motion in Move]
            element = replace(element, value=0.0)
        elements.append((element, joint))
    q = rng.normal(size=(3, robot.n_joints))
    _, J = kinematics.parametric_jacobian(robot, q, elements, wanted=wanted)
    for s in range(len(q)):
        pin.framesForwardKinematics(model, data, q[s])
        frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        assert close(J[s], pin.computeFrameKinematicRegressor(model, data, model.getFrameId("tip"), frame))
