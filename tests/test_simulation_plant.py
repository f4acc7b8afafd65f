"""The MuJoCo model against our own kernels, closed forms and energy."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from armid.errors import InputError, RobotError
from armid.kernels import dynamics, kinematics
from armid.parameters.inertial import from_centre_of_mass
from armid.robot import Drive, Link, Robot
from armid.robot.catalogue import catalogue_names
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from armid.robot.load import load_robot
from armid.simulation.dynamics import RigidModel
from armid.simulation.plant import build_plant
from support.chains import random_robot
from support.motions import pendulum

PAYLOAD = from_centre_of_mass(1.5, [0.02, -0.03, 0.1], np.diag([0.01, 0.012, 0.008]))


def without_dry_friction(robot: Robot) -> Robot:
    """Smooth drives: a differential equation an ordinary integrator can solve."""
    return replace(
        robot, joints=tuple(replace(j, drive=replace(j.drive, coulomb=0.0, offset=0.0)) for j in robot.joints)
    )


def accelerations(plant, q, qd, torque):
    data = mujoco.MjData(plant.model)
    data.qpos[:], data.qvel[:] = plant.at(q), plant.at(qd)
    data.qfrc_applied[:] = plant.motor_map.T @ torque
    mujoco.mj_forward(plant.model, data)
    return plant.link_map @ data.qacc


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("payload", [None, PAYLOAD])
def test_forward_dynamics_of_random_chains_equals_ours(coupled, payload):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        robot = without_dry_friction(random_robot(rng, 5, coupled))
        q, qd, torque = rng.normal(size=(3, 5))
        loaded = robot.inertial.copy()
        if payload is not None:
            loaded[-10:] += payload
        expected = dynamics.forward_dynamics(robot, q, qd, torque, inertial=loaded, drives=True)[0]
        ours = accelerations(build_plant(robot, payload=payload), q, qd, torque)
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-9)  # round-off of two different recursions


@pytest.mark.parametrize("name", catalogue_names())
def test_catalogue_inverse_dynamics_mass_matrix_and_tip_equal_ours(name):
    robot = load_robot(name)
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.normal(size=(3, 6, robot.n_joints))
    model = RigidModel(robot)
    torque = np.array([model.inverse(*row) for row in zip(q, qd, qdd, strict=True)])
    np.testing.assert_allclose(torque, dynamics.inverse_dynamics(robot, q, qd, qdd), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.gravities(q), dynamics.gravity(robot, q), rtol=1e-9, atol=1e-9)
    M = np.array([model.mass_matrix(row) for row in q])
    np.testing.assert_allclose(M, dynamics.mass_matrix(robot, q), rtol=1e-9, atol=1e-9)
    T = np.array([model.tip_pose(row) for row in q])
    np.testing.assert_allclose(T, kinematics.forward_kinematics(robot, q), atol=1e-12)


@pytest.mark.parametrize("name", catalogue_names())
def test_catalogue_free_motion_equals_an_integration_of_our_dynamics(name):
    robot = without_dry_friction(load_robot(name))
    n, end = robot.n_joints, 0.1
    rng = np.random.default_rng(2)
    q0, qd0 = 0.3 * rng.normal(size=n), 0.5 * rng.normal(size=n)
    torque = 0.2 * rng.normal(size=n)

    def slope(_, y):
        return np.concatenate([y[n:], dynamics.forward_dynamics(robot, y[:n], y[n:], torque, drives=True)[0]])

    expected = solve_ivp(slope, (0.0, end), np.concatenate([q0, qd0]), method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    plant = build_plant(robot, collisions=False)
    data = mujoco.MjData(plant.model)
    data.qpos[:], data.qvel[:] = plant.at(q0), plant.at(qd0)
    data.qfrc_applied[:] = plant.motor_map.T @ torque
    for _ in range(round(end / 1e-3)):
        mujoco.mj_step(plant.model, data)
    actual = np.concatenate([plant.link_map @ data.qpos, plant.link_map @ data.qvel])
    # Fourth order at 1 ms: the error is that of the integration, far below any sensor.
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


def test_energy_is_kept_without_friction():
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 4)
    robot = replace(robot, joints=tuple(replace(j, drive=Drive()) for j in robot.joints))
    plant = build_plant(robot)
    data = mujoco.MjData(plant.model)
    data.qpos[:], data.qvel[:] = rng.normal(size=4), rng.normal(size=4)

    def energy():
        q, qd = data.qpos[np.newaxis], data.qvel[np.newaxis]
        return float((dynamics.kinetic_energy(robot, q, qd) + dynamics.potential_energy(robot, q))[0])

    before = energy()
    for _ in range(500):
        mujoco.mj_step(plant.model, data)
    assert energy() == pytest.approx(before, rel=1e-5, abs=1e-5)


def test_elastic_joint_vibrates_at_the_frequency_of_two_inertias_and_a_spring():
    rotor, stiffness, link = 0.05, 400.0, 0.2
    robot = pendulum(Drive(rotor_inertia=rotor, stiffness=stiffness))
    plant = build_plant(robot, elastic=True, step=1e-4)
    data = mujoco.MjData(plant.model)
    # The relative motion: total momentum zero.
    data.qpos[:] = plant.at(np.zeros(1))
    data.qvel[:] = [1.0, -link / rotor]
    positions = []
    for _ in range(4000):
        mujoco.mj_step(plant.model, data)
        positions.append(float(data.qpos[0]))
    crossings = np.flatnonzero(np.diff(np.sign(positions)))
    measured = 0.5 / (np.mean(np.diff(crossings)) * 1e-4)
    expected = np.sqrt(stiffness * (1.0 / rotor + 1.0 / link)) / (2.0 * np.pi)
    assert measured == pytest.approx(expected, rel=2e-3)  # crossings are found to one step of 1e-4 s


def test_a_rod_and_a_point_are_bodies_too():
    rng = np.random.default_rng(4)
    robot = without_dry_friction(random_robot(rng, 3))
    point = from_centre_of_mass(1.0, [0.1, 0.2, 0.3], np.zeros((3, 3)))
    rod = from_centre_of_mass(1.0, [0.0, 0.0, 0.5], np.diag([0.1, 0.1, 0.0]))
    robot = robot.with_inertial(np.concatenate([robot.inertial[:10], rod, point]))
    q, qd, torque = rng.normal(size=(3, 3))
    expected = dynamics.forward_dynamics(robot, q, qd, torque, drives=True)[0]
    np.testing.assert_allclose(accelerations(build_plant(robot), q, qd, torque), expected, rtol=1e-9, atol=1e-9)


def test_an_arm_that_cannot_move_is_refused():
    robot = pendulum()
    with pytest.raises(RobotError, match=r"'arm'.*no inertial"):
        build_plant(replace(robot, links=(Link("arm"),)))
    three = tuple(replace(joint, name=name) for joint in robot.joints for name in ("a", "b", "c"))
    known = robot.links[0]
    for links, words in (
        ((Link("x"), known, Link("z")), r"links 'x', 'z': have no inertial parameters; 1 of the 3 .*rotor_ratio="),
        ((known, Link("y"), replace(known, name="z")), r"link 'y': has no inertial parameters; 2 of the 3"),
        ((Link("x"), Link("y"), Link("z")), r"links 'x', 'y', 'z': have no inertial .*no link .*--record tracker"),
    ):
        with pytest.raises(RobotError, match=words):
            build_plant(replace(robot, joints=three, links=links))
    with pytest.raises(RobotError, match=r"not positive definite.*arm"):
        build_plant(robot.with_inertial([2.0, 0, 0, 0, -0.5, 0, 0, 0.1, 0, 0.1]))
    with pytest.raises(RobotError, match="moves no mass"):
        build_plant(robot.with_inertial(np.zeros(10)))
    with pytest.raises(InputError, match=r"payload.*negative"):
        build_plant(robot, payload=[-1.0, *[0.0] * 9])
    with pytest.raises(InputError, match="ten standard parameters"):
        build_plant(robot, payload=[1.0])
    with pytest.raises(InputError, match="between 0 and 1"):
        build_plant(robot, sensed_friction=1.5)


def test_dry_friction_sticks_and_slides_with_exactly_the_coulomb_torque():
    robot = pendulum(Drive(rotor_inertia=0.1, coulomb=2.0))
    plant = build_plant(robot)
    data = mujoco.MjData(plant.model)
    data.qfrc_applied[0] = 1.9
    for _ in range(1000):
        mujoco.mj_step(plant.model, data)
    free = 0.5 * 1.9 / 0.3  # where it would be without friction [rad]
    assert abs(data.qpos[0]) < 1e-3 * free
    data.qfrc_applied[0] = 2.5
    for _ in range(100):
        mujoco.mj_step(plant.model, data)
    assert data.qfrc_constraint[0] == pytest.approx(-2.0, abs=1e-9)
    assert data.qacc[0] == pytest.approx(0.5 / 0.3, rel=1e-9)


def test_shapes_of_every_kind_reach_the_model(tmp_path):
    shapes = (
        Box((0.1, 0.2, 0.3)),
        Sphere(0.05),
        Cylinder(0.03, 0.2),
        Capsule(0.03, 0.2),
        Mesh(str(tmp_path / "none.dae")),
    )
    robot = pendulum(geometry=tuple(Geometry(shape) for shape in shapes))
    model = build_plant(robot).model
    assert model.ngeom == 4  # a mesh that cannot be read is left out
    np.testing.assert_allclose(model.geom_size[0], [0.05, 0.1, 0.15])
    np.testing.assert_allclose(model.geom_size[3][:2], [0.03, 0.1])
    np.testing.assert_allclose(model.body_mass[1], 2.0)  # shapes weigh nothing
    assert build_plant(robot, collisions=False).model.ngeom == 0


def test_mounting_turns_gravity():
    robot = load_robot("panda")
    tilt = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    wall = robot.mounted(tilt)
    q = 0.3 * np.ones((1, 7))
    np.testing.assert_allclose(RigidModel(wall).gravities(q), dynamics.gravity(wall, q), atol=1e-10)
    assert np.abs(RigidModel(wall).gravities(q) - RigidModel(robot).gravities(q)).max() > 1.0
