"""MJCF text, loaded by MuJoCo itself: the same torques, the same numbers."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from armid.export.losses import not_in_mjcf
from armid.export.mjcf import mjcf_text
from armid.export.mjcf_drives import mjcf_drives
from armid.kernels import dynamics
from armid.kernels.kinematics import jacobian
from armid.robot import Frame, Robot
from armid.robot.catalogue import catalogue_names
from armid.robot.elementary import rotation_from_rpy
from armid.robot.geometry import Box, Geometry, Sphere
from armid.robot.load import load_robot
from armid.robot.quaternion import quaternion_from_matrix
from armid.simulation.arm_spec import arm_spec, compiled
from support.chains import random_robot


def torque(model: mujoco.MjModel, robot: Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Inverse dynamics with rotors and viscous friction, in drive coordinates."""
    data = mujoco.MjData(model)
    C = np.eye(robot.n_joints) if robot.coupling is None else robot.coupling
    data.qpos[:], data.qvel[:], data.qacc[:] = C @ q, C @ qd, C @ qdd
    mujoco.mj_inverse(model, data)
    return C.T @ data.qfrc_inverse


def without_dry_friction(robot: Robot, *, offset: float = 0.0) -> Robot:
    # MuJoCo treats friction loss as a constraint; what it does at rest is not a function of velocity alone.
    drives = [replace(j.drive, coulomb=0.0, offset=offset * (1.5 - k)) for k, j in enumerate(robot.joints)]
    joints = tuple(replace(j, drive=drive) for j, drive in zip(robot.joints, drives, strict=True))
    return replace(robot, joints=joints, geometry=(), links=tuple(replace(link, geometry=()) for link in robot.links))


@pytest.mark.parametrize("name", [*catalogue_names(), "random"])
def test_mujoco_computes_our_torque(name: str) -> None:
    rng = np.random.default_rng(0)
    robot = without_dry_friction(
        random_robot(rng, 5, coupled=True) if name == "random" else load_robot(name), offset=0.2
    )
    robot = replace(robot, joints=tuple(replace(j, limits=replace(j.limits, lower=-np.inf)) for j in robot.joints))
    model = mujoco.MjModel.from_xml_string(mjcf_text(robot))
    for _ in range(5):
        q, qd, qdd = rng.uniform(-1, 1, size=(3, robot.n_joints))
        expected = dynamics.inverse_dynamics(robot, q, qd, qdd, drives=True)[0]
        # An offset is a spring at 1e7 rad: it changes by 1e-7 of itself per radian.
        assert np.abs(torque(model, robot, q, qd, qdd) - expected).max() < 3e-7 * max(1.0, np.abs(expected).max())


def test_friction_and_limits_arrive() -> None:
    robot = load_robot("panda")
    model = mujoco.MjModel.from_xml_string(mjcf_text(robot, comments=["from -- a test"]))
    assert np.allclose(model.dof_frictionloss, robot.drive("coulomb"))
    assert np.allclose(model.dof_damping[:], robot.drive("viscous"))
    assert np.allclose(model.dof_armature, robot.drive("rotor_inertia"))
    assert np.allclose(model.jnt_range[:, 0], robot.limit("lower"))


def test_says_what_it_cannot_hold() -> None:
    robot = load_robot("panda")
    elastic = replace(robot, joints=tuple(replace(j, drive=replace(j.drive, stiffness=1e4)) for j in robot.joints))
    assert any("elasticity" in line for line in not_in_mjcf(elastic))
    offset = replace(robot, joints=tuple(replace(j, drive=replace(j.drive, offset=0.1)) for j in robot.joints))
    assert not any("offset" in line for line in not_in_mjcf(offset))


@pytest.mark.parametrize("coupled", [False, True])
def test_offsets_are_read_back_and_accelerate_the_arm(*, coupled: bool) -> None:
    robot = without_dry_friction(random_robot(np.random.default_rng(1), 4, coupled=coupled), offset=0.2)
    text = mjcf_text(robot)
    read = mjcf_drives(robot, text)
    np.testing.assert_allclose([read[j.name].offset for j in robot.joints], robot.drive("offset"), rtol=1e-12)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    pulled = np.array(data.qfrc_passive)
    C = np.eye(4) if robot.coupling is None else robot.coupling
    np.testing.assert_allclose(C.T @ pulled, -robot.drive("offset"), rtol=1e-6)


@pytest.mark.parametrize("angles", [(0, 0, 0), (np.pi, 0, 0), (0, np.pi, 0), (0, 0, np.pi), (1.0, -0.4, 2.0)])
def test_quaternion(angles: tuple[float, float, float]) -> None:
    R = rotation_from_rpy(*angles)
    back = np.zeros(9)
    mujoco.mju_quat2Mat(back, quaternion_from_matrix(R))
    assert np.abs(back.reshape(3, 3) - R).max() < 1e-14


@pytest.mark.parametrize("name", catalogue_names())
def test_mujoco_has_our_jacobian_and_energies(name: str) -> None:
    rng = np.random.default_rng(1)
    robot = replace(without_dry_friction(load_robot(name)), coupling=None)
    joints = tuple(replace(j, drive=replace(j.drive, rotor_inertia=0.0)) for j in robot.joints)
    robot = replace(robot, joints=joints, frames=(Frame("probe", robot.n_joints),))
    model = mujoco.MjModel.from_xml_string(mjcf_text(robot))
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    data = mujoco.MjData(model)
    q, qd = rng.uniform(-1, 1, size=(2, robot.n_joints))
    data.qpos[:], data.qvel[:] = q, qd
    mujoco.mj_forward(model, data)
    J = np.zeros((6, robot.n_joints))
    mujoco.mj_jacSite(model, data, J[:3], J[3:], 0)
    assert np.abs(jacobian(robot, q)[0] - J).max() < 1e-12
    assert dynamics.potential_energy(robot, q)[0] == pytest.approx(data.energy[0], rel=1e-9, abs=1e-9)
    assert dynamics.kinetic_energy(robot, q, qd)[0] == pytest.approx(data.energy[1], rel=1e-9)


def test_shapes_without_thickness_are_written_so_that_mujoco_reads_them() -> None:
    arm = load_robot("iiwa14")
    flat = tuple(Geometry(shape, np.eye(4)) for shape in (Box((0.0, 0.0, 0.0)), Box((0.1, 0.2, 0.0)), Sphere(0.0)))
    arm = replace(arm, links=(*arm.links[:-1], replace(arm.links[-1], geometry=flat)))
    assert mujoco.MjModel.from_xml_string(mjcf_text(arm)).ngeom >= len(flat)
    engine = compiled(arm_spec(arm, None, np.zeros(arm.n_joints, dtype=bool), collisions=True), arm)
    assert engine.ngeom >= len(flat)
