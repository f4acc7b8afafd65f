"""The fastest motion against closed forms, toppra, and a dense optimal-control solution by CasADi and IPOPT."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from armid.kernels.dynamics import inverse_dynamics
from armid.motions.fourier import FourierTrajectory
from armid.parameters.effects import Effects
from armid.planning.constraints import constraints_of, planning_limits
from armid.planning.model import model_of_robot
from armid.planning.path import Path, SplinePath, TrajectoryPath
from armid.planning.plan import PlanSettings, plan_motion
from armid.planning.reduced import reduced_dynamics
from armid.planning.timing import fastest
from armid.robot import Drive, Robot, load_robot
from armid.robot.robot import Limits
from support.motions import pendulum
from support.planar import planar_arm, planar_torque

WITHIN = 0.01
"""The issue's bound on the difference to a dense optimal-control solution."""


def one_joint(drive: Drive, **limits: float) -> Robot:
    """0.2 kg m^2 about a vertical-free hinge without gravity."""
    robot = pendulum(drive)
    return replace(robot, joints=(replace(robot.joints[0], limits=Limits(lower=-10.0, upper=10.0, **limits)),))


def line(robot: Robot, length: float) -> SplinePath:
    return SplinePath(robot.joint_names, np.array([[0.0], [length]]))


INERTIA = 0.2


def test_bang_bang_of_a_single_inertia() -> None:
    robot = one_joint(Drive(), velocity=100.0, torque=3.0)
    plan = plan_motion(line(robot, 2.0), model_of_robot(robot))
    assert plan.duration == pytest.approx(2.0 * np.sqrt(2.0 * INERTIA / 3.0), rel=1e-6)
    assert plan.usage.worst()["torque"] == pytest.approx(1.0, abs=1e-6)


def test_trapezoid_when_velocity_is_limited() -> None:
    robot = one_joint(Drive(), velocity=2.0, acceleration=5.0, torque=3.0)
    plan = plan_motion(line(robot, 2.0), model_of_robot(robot))
    assert plan.duration == pytest.approx(2.0 / 2.0 + 2.0 / 5.0, rel=1e-4)


def test_dry_friction_helps_braking_and_hinders_starting() -> None:
    robot = one_joint(Drive(coulomb=1.0), velocity=100.0, torque=3.0)
    plan = plan_motion(line(robot, 2.0), model_of_robot(robot))
    up, down = (3.0 - 1.0) / INERTIA, (3.0 + 1.0) / INERTIA
    peak = np.sqrt(2.0 * 2.0 * up * down / (up + down))
    assert plan.duration == pytest.approx(peak / up + peak / down, rel=1e-4)


def test_viscous_friction_against_quadrature() -> None:
    b, torque, length = 0.4, 3.0, 4.0
    robot = one_joint(Drive(viscous=b), velocity=100.0, torque=torque)
    plan = plan_motion(line(robot, length), model_of_robot(robot))

    def distance(peak: float) -> float:
        up = quad(lambda v: INERTIA * v / (torque - b * v), 0.0, peak)[0]
        return up + quad(lambda v: INERTIA * v / (torque + b * v), 0.0, peak)[0]

    peak = brentq(lambda v: distance(v) - length, 0.1, 0.999 * torque / b)
    up = quad(lambda v: INERTIA / (torque - b * v), 0.0, peak)[0]
    down = quad(lambda v: INERTIA / (torque + b * v), 0.0, peak)[0]
    # Both ends of an interval are constrained, and friction grows along it: a little slower than could be, never faster.
    assert up + down <= plan.duration < 1.003 * (up + down)
    finer = plan_motion(line(robot, length), model_of_robot(robot), PlanSettings(points=4000))
    assert finer.duration - (up + down) < 0.35 * (plan.duration - (up + down))


def test_seven_phases_of_a_jerk_limited_move() -> None:
    v, a, j, length = 2.0, 8.0, 80.0, 3.0
    robot = one_joint(Drive(), velocity=v, acceleration=a, jerk=j, torque=100.0)
    plan = plan_motion(line(robot, length), model_of_robot(robot))
    assert plan.duration == pytest.approx(length / v + v / a + a / j, rel=2e-3)
    assert max(plan.usage.worst().values()) <= 1.0 + 1e-8


def test_short_jerk_limited_move_never_reaches_the_other_limits() -> None:
    j, length = 50.0, 0.1
    robot = one_joint(Drive(), velocity=10.0, acceleration=100.0, jerk=j, torque=100.0)
    plan = plan_motion(line(robot, length), model_of_robot(robot))
    assert plan.duration == pytest.approx(4.0 * np.cbrt(length / (2.0 * j)), rel=2e-3)


def test_agrees_with_toppra_where_it_can_do_the_same() -> None:
    ta = pytest.importorskip("toppra")
    robot = load_robot("panda")
    limits = planning_limits(robot)[0]
    limits = limits.but(jerk=np.inf, torque=limits.torque * np.array([0.5, 0.8, 0.5, 0.5, 1.0, 1.0, 1.0]))
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    rng = np.random.default_rng(3)
    path = SplinePath(robot.joint_names, middle + half * rng.uniform(-0.4, 0.4, (5, 7)))
    model = model_of_robot(robot, effects=Effects(rotor_inertia=True))
    theta = np.linspace(0.0, path.length, 300)
    profile = fastest(constraints_of(reduced_dynamics(path, model, theta), limits, 0.0))

    class Curve(ta.interpolator.AbstractGeometricPath):  # type: ignore[misc]
        dof, path_interval, waypoints = 7, np.array([0.0, path.length]), None

        def __call__(self, s: Any, order: int = 0) -> Any:
            values = path.derivatives(np.atleast_1d(s))[order]
            return values[0] if np.isscalar(s) else values

    def pair(x: np.ndarray) -> np.ndarray:
        return np.stack([-x, x], axis=1)

    scheme = ta.constraint.DiscretizationType.Interpolation
    torque = ta.constraint.JointTorqueConstraint(
        lambda q, qd, qdd: model.torque(q, qd, qdd)[0], pair(limits.torque), np.zeros(7), discretization_scheme=scheme
    )
    others = [
        ta.constraint.JointVelocityConstraint(pair(limits.velocity)),
        ta.constraint.JointAccelerationConstraint(pair(limits.acceleration), discretization_scheme=scheme),
    ]
    method = ta.algorithm.TOPPRA([*others, torque], Curve(), gridpoints=theta, solver_wrapper="seidel")
    _, speed, _ = method.compute_parameterization(0.0, 0.0)
    assert np.sqrt(profile.x) == pytest.approx(speed, abs=2e-4 * speed.max())


def casadi_duration(
    robot: Robot, path: Path, symbolic: Any, signs: tuple[float, float], *, intervals: int, jerk: bool
) -> float:
    """Direct transcription in time: constant path acceleration (or jerk) on equal intervals, free duration, IPOPT."""
    ca = pytest.importorskip("casadi")
    limits = planning_limits(robot)[0]
    n, order = intervals, 3 if jerk else 2
    problem = ca.Opti()
    T, X, U = problem.variable(), problem.variable(order, n + 1), problem.variable(n)
    h = T / n
    s = ca.SX.sym("s")
    phi = symbolic(ca, s)
    slopes = [phi]
    for _ in range(3):
        slopes.append(ca.jacobian(slopes[-1], s))
    Phi = ca.Function("Phi", [s], slopes)
    problem.minimize(T)
    problem.subject_to(X[0, 0] == 0.0)
    problem.subject_to(X[0, n] == path.length)
    for row in range(1, order):
        problem.subject_to(X[row, [0, n]] == 0.0)
    for k in range(n):
        if jerk:
            problem.subject_to(X[0, k + 1] == X[0, k] + h * X[1, k] + h**2 / 2 * X[2, k] + h**3 / 6 * U[k])
            problem.subject_to(X[1, k + 1] == X[1, k] + h * X[2, k] + h**2 / 2 * U[k])
            problem.subject_to(X[2, k + 1] == X[2, k] + h * U[k])
        else:
            problem.subject_to(X[0, k + 1] == X[0, k] + h * X[1, k] + h**2 / 2 * U[k])
            problem.subject_to(X[1, k + 1] == X[1, k] + h * U[k])
        for node in (k, k + 1):
            p, d1, d2, d3 = Phi(X[0, node])
            v, a = X[1, node], X[2, node] if jerk else U[k]
            qd, qdd = d1 * v, d2 * v**2 + d1 * a
            tau = ca.vertcat(
                *planar_torque([p[0], p[1]], [qd[0], qd[1]], [qdd[0], qdd[1]], signs, cos=ca.cos, sin=ca.sin)
            )
            problem.subject_to(problem.bounded(-limits.torque, tau, limits.torque))
            problem.subject_to(problem.bounded(-limits.velocity, qd, limits.velocity))
            if jerk:
                jerks = d3 * v**3 + 3 * d2 * v * a + d1 * U[k]
                problem.subject_to(problem.bounded(-limits.jerk, jerks, limits.jerk))
    problem.subject_to(X[1, :] >= 0.0)
    problem.subject_to(T >= 0.05)
    share = np.linspace(0.0, 1.0, n + 1)
    problem.set_initial(T, 2.0)
    problem.set_initial(X[0, :], path.length * share**2 * (3 - 2 * share))
    problem.set_initial(X[1, :], path.length * 6 * share * (1 - share) / 2.0)
    problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "max_iter": 500})
    return float(problem.solve().value(T))


def curve(robot: Robot) -> tuple[TrajectoryPath, Any]:
    """A quarter of a slow oscillation in which both joints keep their direction: one up, one down."""
    offset, sine, cosine = np.array([-0.4, 0.3]), np.array([[1.0], [-1.2]]), np.array([[-0.5], [0.3]])
    whole = FourierTrajectory(robot.joint_names, 8.0, offset, sine, cosine)

    class Part:
        """Its first 1.2 s."""

        joint_names, duration = whole.joint_names, 1.2
        sample, jerk = whole.sample, whole.jerk

    def symbolic(ca: Any, s: Any) -> Any:
        w = 2 * np.pi / 8.0
        return ca.vertcat(*(offset[i] + sine[i, 0] * ca.sin(w * s) + cosine[i, 0] * ca.cos(w * s) for i in range(2)))

    return TrajectoryPath(Part()), symbolic


def test_hand_written_equations_are_those_of_the_robot() -> None:
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 20, 2))
    expected = planar_torque(q.T, qd.T, qdd.T, np.sign(qd.T), cos=np.cos, sin=np.sin)
    assert np.allclose(inverse_dynamics(planar_arm(), q, qd, qdd, drives=True), np.array(expected).T, atol=1e-12)


def test_torque_limits_with_friction_against_optimal_control() -> None:
    robot = planar_arm(torque=(60.0, 18.0), velocity=3.0)
    path, symbolic = curve(robot)
    plan = plan_motion(path, model_of_robot(robot))
    reference = casadi_duration(robot, path, symbolic, (1.0, -1.0), intervals=150, jerk=False)
    assert plan.duration == pytest.approx(reference, rel=WITHIN)
    assert plan.usage.worst()["torque"] == pytest.approx(1.0, abs=1e-3)


def test_jerk_limits_against_optimal_control() -> None:
    robot = planar_arm(torque=(60.0, 18.0), velocity=3.0, jerk=250.0)
    path, symbolic = curve(robot)
    plan = plan_motion(path, model_of_robot(robot))
    reference = casadi_duration(robot, path, symbolic, (1.0, -1.0), intervals=150, jerk=True)
    assert plan.duration == pytest.approx(reference, rel=WITHIN)
    worst = plan.usage.worst()
    assert worst["jerk"] <= 1.0 + 1e-8
    assert worst["torque"] <= 1.0 + 1e-8
    assert plan.duration > plan.profile.duration


def test_a_finer_grid_changes_little() -> None:
    robot = planar_arm(torque=(60.0, 18.0), velocity=3.0, jerk=250.0)
    path, _ = curve(robot)
    coarse = plan_motion(path, model_of_robot(robot), PlanSettings(points=300, jerk_points=120))
    fine = plan_motion(path, model_of_robot(robot), PlanSettings(points=2000, jerk_points=700))
    assert coarse.duration == pytest.approx(fine.duration, rel=5e-3)
    assert coarse.profile.duration == pytest.approx(fine.profile.duration, rel=5e-3)
