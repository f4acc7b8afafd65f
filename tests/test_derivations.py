"""Equations of docs/derivations.md, each checked with numbers by a way that it does not use itself."""

from __future__ import annotations

import numpy as np
import pytest

from armid.kernels.dynamics import inverse_dynamics, regressor
from armid.kernels.kinematics import forward_kinematics, jacobian
from armid.parameters.inertial import six, tensor
from armid.robot.load import load_robot
from armid.robot.robot import Robot


def lagrangian(robot: Robot, q: np.ndarray, qd: np.ndarray) -> float:
    """T - U of all links by the page's formulas, in the axes of each link."""
    out = 0.0
    for link in robot.links:
        T, J = forward_kinematics(robot, q, link.name)[0], jacobian(robot, q, link.name)[0]
        R, p = T[:3, :3], T[:3, 3]
        v, w = R.T @ J[:3] @ qd, R.T @ J[3:] @ qd
        m, h, I = link.inertial[0], link.inertial[1:4], tensor(link.inertial[4:])
        out += 0.5 * m * v @ v + v @ np.cross(w, h) + 0.5 * w @ I @ w + robot.gravity @ (m * p + R @ h)
    return out


@pytest.mark.parametrize("name", ["cmu-dd-arm2", "cylindrical"])
def test_lagrange_equations_of_the_energies_give_the_torque_of_the_recursion(name: str) -> None:
    """tau = d/dt dL/dqd - dL/dq by differences, on turning and on sliding joints."""
    robot = load_robot(name)
    q, qd, qdd = np.random.default_rng(3).uniform(-1.0, 1.0, (3, robot.n_joints))
    step, E = 1e-3, 1e-3 * np.eye(robot.n_joints)

    def momentum(t: float) -> np.ndarray:
        at, rate = q + t * qd + 0.5 * t**2 * qdd, qd + t * qdd
        return np.array([lagrangian(robot, at, rate + e) - lagrangian(robot, at, rate - e) for e in E]) / (2.0 * step)

    force = np.array([lagrangian(robot, q + e, qd) - lagrangian(robot, q - e, qd) for e in E]) / (2.0 * step)
    tau = (momentum(step) - momentum(-step)) / (2.0 * step) - force
    assert tau == pytest.approx(inverse_dynamics(robot, q, qd, qdd)[0], abs=1e-4)


def test_three_bodies_on_an_axis_move_to_the_link_before_unnoticed() -> None:
    """m, mz and Ixx + Iyy of a link against what the page adds to the link before it, whatever the motion."""
    robot = load_robot("lwr4plus")
    q, qd, qdd = np.random.default_rng(5).uniform(-2.0, 2.0, (3, 20, robot.n_joints))
    Y = regressor(robot, q, qd, qdd)
    zero = np.zeros(robot.n_joints)
    poses = [forward_kinematics(robot, zero, link.name)[0] for link in robot.links]
    for i in range(1, robot.n_joints):
        T = np.linalg.inv(poses[i - 1]) @ poses[i]
        p, n, one = T[:3, 3], T[:3, 2], np.eye(3)
        bodies = (
            (np.eye(10)[3], (0.0, n, 2.0 * (p @ n) * one - np.outer(p, n) - np.outer(n, p))),
            (np.eye(10)[0], (1.0, p, (p @ p) * one - np.outer(p, p))),
            (np.concatenate([np.zeros(4), six(np.diag([1.0, 1.0, 0.0]))]), (0.0, 0.0 * n, one - np.outer(n, n))),
        )
        for own, (mass, first, inertia) in bodies:
            change = np.zeros((robot.n_joints, 10))
            change[i], change[i - 1] = own, -np.concatenate([[mass], first, six(inertia)])
            assert np.abs(Y @ change.ravel()).max() < 1e-10


def test_inertia_and_friction_from_a_frequency_response() -> None:
    """Eqs. 9-11 of [RWTH2021] and the complex quotient, and what a late torque does to the latter to first order."""
    J, mu, w, late = 3.0, 7.0, 11.0, 1e-5
    ratio = 1.0 / (1j * w * J + mu)
    psi = np.angle(ratio)
    assert abs(ratio) == pytest.approx((mu**2 + w**2 * J**2) ** -0.5)
    found = 1.0 / abs(ratio) / (w * np.sqrt(1.0 + 1.0 / np.tan(psi) ** 2))
    assert found == pytest.approx(J)
    assert -w * found / np.tan(psi) == pytest.approx(mu)
    shifted = np.exp(-1j * w * late) / ratio
    assert shifted.real - mu == pytest.approx(w**2 * J * late, rel=1e-3)
    assert shifted.imag / w - J == pytest.approx(-mu * late, rel=1e-3)


def test_the_cylindrical_robot_of_khosla_as_derived() -> None:
    """docs/works/khosla1985.md: where eqs. 18-23 of the work disagree, these are the columns that the recursion has."""
    robot = load_robot("cylindrical")
    q, qd, qdd = np.random.default_rng(7).uniform(-1.0, 1.0, (3, 30, 3))
    (_, _, d3), (w1, _, v3), (a1, a2, a3) = q.T, qd.T, qdd.T
    link1, link2, link3 = (link.inertial for link in robot.links)
    m2, m3, mz3 = link2[0], link3[0], link3[3]
    inertia = link1[9] + link2[7] + link3[7]
    g = float(np.linalg.norm(robot.gravity))
    tau3 = m3 * (a3 - d3 * w1**2) - mz3 * w1**2
    tau2 = (m2 + m3) * (a2 + g)
    tau1 = (inertia + 2.0 * mz3 * d3 + m3 * d3**2) * a1 + 2.0 * (mz3 + m3 * d3) * v3 * w1
    assert np.column_stack([tau1, tau2, tau3]) == pytest.approx(inverse_dynamics(robot, q, qd, qdd), abs=1e-9)
