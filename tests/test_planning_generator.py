"""The motion generator: closed forms of the pendulum, energy, friction, and a passive joint in the full dynamics."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ellipk

from armid.errors import InputError
from armid.kernels.dynamics import inverse_dynamics, kinetic_energy, potential_energy
from armid.parameters.effects import Effects
from armid.planning.generator import MotionGenerator, SingularGeneratorError
from armid.planning.model import model_of_robot
from armid.planning.path import SplinePath
from armid.planning.reduced import ScalarDynamics, reduced_dynamics
from armid.robot import load_robot
from support.motions import pendulum

GRAVITY = 9.81


def swing(viscous: float = 0.0, coulomb: float = 0.0) -> MotionGenerator:
    theta = np.linspace(-3.0, 3.0, 401)
    one = np.ones_like(theta)
    return MotionGenerator(
        ScalarDynamics(theta, one, 0.0 * one, GRAVITY * np.sin(theta), viscous * one, coulomb * one, 0.0 * one)
    )


@pytest.mark.parametrize("amplitude", [0.1, 1.0, 2.5])
def test_period_of_a_pendulum(amplitude: float) -> None:
    found = swing().periodic(-amplitude)
    assert found.period == pytest.approx(4.0 / np.sqrt(GRAVITY) * ellipk(np.sin(amplitude / 2) ** 2), rel=1e-8)
    assert found.high == pytest.approx(amplitude, rel=1e-10)
    assert found.centre == pytest.approx(0.0, abs=1e-12)


def test_integration_agrees_with_the_level_curve_and_returns_after_a_period() -> None:
    generator = swing()
    period = generator.periodic(-1.0).period
    motion = generator.integrate(-1.0, 0.0, period)
    assert motion.ended == "time"
    assert motion.theta[-1] == pytest.approx(-1.0, abs=1e-7)
    assert np.allclose(motion.speed**2, generator.squared_speed(-1.0, 0.0)(motion.theta), atol=1e-7)


def test_equilibria_of_a_pendulum_over_the_top() -> None:
    theta = np.linspace(-1.0, 4.0, 501)
    one = np.ones_like(theta)
    generator = MotionGenerator(ScalarDynamics(theta, one, 0 * one, GRAVITY * np.sin(theta), 0 * one, 0 * one, 0 * one))
    (centre, stable), (saddle, unstable) = generator.equilibria()
    assert (centre, saddle) == (pytest.approx(0.0, abs=1e-9), pytest.approx(np.pi, abs=1e-6))
    assert stable
    assert not unstable
    assert generator.small_period(centre) == pytest.approx(2 * np.pi / np.sqrt(GRAVITY), rel=1e-6)


def test_dry_friction_takes_the_same_from_every_swing_and_finally_holds() -> None:
    theta = np.linspace(-2.0, 2.0, 201)
    one = np.ones_like(theta)
    generator = MotionGenerator(ScalarDynamics(theta, one, 0 * one, 10.0 * theta, 0 * one, 0.5 * one, 0 * one))
    motion = generator.integrate(-1.0, 0.0, 30.0)
    assert motion.ended == "held by friction"
    turns = motion.theta[np.flatnonzero(np.abs(motion.speed) < 1e-9)]
    # Each half swing loses 2 F / k = 0.1: -1, 0.9, -0.8, ...
    assert np.allclose(np.abs(turns[:9]), 1.0 - 0.1 * np.arange(9), atol=1e-6)
    assert abs(motion.theta[-1]) <= 0.5 / 10.0 + 1e-6


def test_viscous_friction_decays_as_in_closed_form() -> None:
    theta = np.linspace(-2.0, 2.0, 201)
    one = np.ones_like(theta)
    generator = MotionGenerator(ScalarDynamics(theta, one, 0 * one, 10.0 * theta, 0.4 * one, 0 * one, 0 * one))
    motion = generator.integrate(1.0, 0.0, 4.0)
    w = np.sqrt(10.0 - 0.04)
    expected = np.exp(-0.2 * motion.time) * (np.cos(w * motion.time) + 0.2 / w * np.sin(w * motion.time))
    assert np.allclose(motion.theta, expected, atol=1e-7)


def test_energy_along_the_path_is_conserved_without_input() -> None:
    robot = load_robot("panda")
    rng = np.random.default_rng(0)
    path = SplinePath(robot.joint_names, rng.uniform(-0.8, 0.8, (4, 7)))
    theta = np.linspace(0.0, path.length, 400)
    reduced = reduced_dynamics(path, model_of_robot(robot, effects=Effects()), theta)
    motion = MotionGenerator(reduced.projected()).integrate(0.5 * path.length, 0.0, 0.6)
    q, first, _, _ = path.derivatives(motion.theta)
    energy = kinetic_energy(robot, q, first * motion.speed[:, None]) + potential_energy(robot, q)
    assert np.ptp(energy) < 1e-5 * np.ptp(potential_energy(robot, path.derivatives(theta)[0]))
    assert np.ptp(motion.theta) > 0.01


def test_a_passive_joint_needs_no_torque_on_the_generated_motion() -> None:
    robot = load_robot("cmu-dd-arm2")
    path = SplinePath(robot.joint_names, np.array([[0.0, 0.2, -1.0], [0.3, 0.1, 1.0]]))
    theta = np.linspace(0.0, path.length, 300)
    name = robot.joint_names[2]
    reduced = reduced_dynamics(path, model_of_robot(robot, effects=Effects()), theta)
    generator = MotionGenerator(reduced.passive(name))
    motion = generator.integrate(0.3 * path.length, 0.0, 0.5)
    a = np.array([generator.acceleration(x, v, 0.0, 0.0) for x, v in zip(motion.theta, motion.speed, strict=True)])
    q, first, second, _ = path.derivatives(motion.theta)
    qd, qdd = first * motion.speed[:, None], second * motion.speed[:, None] ** 2 + first * a[:, None]
    torque = inverse_dynamics(robot, q, qd, qdd)
    assert np.abs(torque[:, 2]).max() < 1e-5 * np.abs(torque).max()


def test_a_robot_of_one_joint_is_a_pendulum() -> None:
    robot = pendulum(gravity=GRAVITY)
    # Hangs down at pi: mass 2 kg at 0.3 m, 0.2 kg m^2 about the hinge.
    path = SplinePath(robot.joint_names, np.array([[np.pi - 2.0], [np.pi + 2.0]]))
    theta = np.linspace(0.0, path.length, 301)
    generator = MotionGenerator(reduced_dynamics(path, model_of_robot(robot, effects=Effects()), theta).projected())
    found = generator.periodic(1.0)
    frequency = np.sqrt(2.0 * GRAVITY * 0.3 / 0.2)
    assert found.period == pytest.approx(4.0 / frequency * ellipk(np.sin(0.5) ** 2), rel=1e-7)


def test_leaving_the_path_ends_the_motion() -> None:
    motion = swing().integrate(0.0, 20.0, 10.0)
    assert motion.ended == "end of path"
    assert motion.theta[-1] == pytest.approx(3.0, abs=1e-6)


def test_bad_input() -> None:
    theta = np.linspace(0.0, 1.0, 11)
    one = np.ones_like(theta)
    with pytest.raises(SingularGeneratorError, match=r"alpha vanishes at theta = 0\.[345]"):
        MotionGenerator(ScalarDynamics(theta, theta - 0.45, one, one, 0 * one, 0 * one, 0 * one))
    with pytest.raises(InputError, match="the path goes from"):
        swing().integrate(5.0, 0.0, 1.0)
    with pytest.raises(InputError, match="no centre"):
        swing().periodic(1.0)
    # From -0.6 the swing would reach 0.6, where there is no path any more.
    spring = ScalarDynamics(theta - 0.7, one, 0 * one, theta - 0.7, 0 * one, 0 * one, 0 * one)
    with pytest.raises(InputError, match="does not turn back"):
        MotionGenerator(spring).periodic(-0.6)
    with pytest.raises(InputError, match="does not turn back"):
        MotionGenerator(spring).periodic(-0.2, centre=0.25)


def test_portrait_curves_are_level_curves() -> None:
    for theta, speed in swing().portrait(curves=4, points=60):
        energy = 0.5 * speed**2 - GRAVITY * np.cos(theta)
        assert np.nanmax(energy) - np.nanmin(energy) < 1e-6
