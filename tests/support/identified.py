"""A small arm, identified in a second or two: trusted and untrusted results for tests of what comes after."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.kernels.dynamics import inverse_dynamics
from armid.logs import Channel, Clock, Log
from armid.logs.check import check_log
from armid.outcome import Check
from armid.parameters.effects import Effects
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.simulation.variation import varied

URDF = """\
<?xml version="1.0"?>
<!-- Shop floor copy, do not delete. -->
<robot name="trio">
  <link name="base"/>
  <joint name="waist" type="revolute">
    <parent link="base"/><child link="column"/>   <!-- turns on the floor -->
    <origin xyz="0 0 0.3"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2.9" upper="2.9" velocity="3" effort="120"/>
    <dynamics damping="1.0" friction="1.5"/>
  </joint>
  <link name="column">
    <inertial>
      <origin xyz="0.02 0 0.1"/>
      <mass value="6.0"/>
      <inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.03"/>
    </inertial>
    <visual><geometry><mesh filename="package://trio/column.stl"/></geometry></visual>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="column"/><child link="upper"/>
    <origin xyz="0.1 0 0.25" rpy="-1.5707963267948966 0 0"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="3" effort="120"/>
    <dynamics damping="1.2" friction="1.8"/>
  </joint>
  <link name="upper">
    <inertial>
      <origin xyz="0.2 0.01 0.02"/>
      <mass value="4.0"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.06"/>
    </inertial>
  </link>
  <joint name="elbow" type="revolute">
    <parent link="upper"/><child link="fore"/>
    <origin xyz="0.4 0 0"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2.5" upper="2.5" velocity="3" effort="60"/>
    <dynamics damping="0.6" friction="0.9"/>
  </joint>
  <link name="fore">
    <inertial>
      <origin xyz="0.15 0 0.03"/>
      <mass value="2.0"/>
      <inertia ixx="0.004" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>
    </inertial>
  </link>
</robot>
"""

EFFECTS = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)
RATE = 100.0
NOISE = 0.05
"""Of the torque [N m]."""


@cache
def urdf_file() -> Path:
    """The description on disk, where its hash can be checked."""
    path = Path(mkdtemp()) / "trio.urdf"
    path.write_text(URDF)
    return path


def log(robot: Robot, truth: Robot, *, seed: int, seconds: float = 20.0, temperature: bool = False) -> Log:
    """A checked recording of a Fourier motion with noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    w = 2 * np.pi / 10.0 * np.arange(1, 6)
    n = robot.n_joints
    a, b = rng.normal(size=(2, n, 5)) * 0.35 / np.sqrt(np.arange(1, 6))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, qd = s @ a.T + c @ b.T, (c * w) @ a.T - (s * w) @ b.T
    tau = inverse_dynamics(truth, q, qd, -(s * w**2) @ a.T - (c * w**2) @ b.T, drives=True)
    channels = {
        Channel.POSITION: q + rng.normal(0, 2e-5, q.shape),
        Channel.LINK_TORQUE: tau + rng.normal(0, NOISE, q.shape),
    }
    if temperature:
        channels[Channel.TEMPERATURE] = 30.0 + 10.0 * (t[:, None] / t[-1]) * np.arange(1, n + 1)
    return check_log(
        Log(name=f"run{seed}", joints=robot.joint_names, time=t, channels=channels, named=True, clock=Clock.COLUMN),
        robot,
    )


@cache
def trusted() -> Result:
    """From a URDF file; the specimen differs from it by a fifth and has rotors and offsets of its own."""
    robot = load_robot(str(urdf_file()))
    rng = np.random.default_rng(1)
    drives = [
        replace(j, drive=replace(j.drive, rotor_inertia=0.2, offset=0.1 * (-1) ** i))
        for i, j in enumerate(robot.joints)
    ]
    truth = replace(varied(robot, 0.2, rng), joints=tuple(drives))
    logs = [log(robot, truth, seed=3), log(robot, truth, seed=5, temperature=True)]
    return run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS))


@cache
def without_rotors() -> Result:
    """Rotor inertias neither there nor looked for, though its description names one for every joint."""
    robot = load_robot(str(urdf_file()))
    truth = varied(robot, 0.2, np.random.default_rng(1))
    effects = replace(EFFECTS, rotor_inertia=False, offset=False)
    result = run_identification(
        robot, [log(robot, truth, seed=3)], [log(robot, truth, seed=5)], Identification(effects=effects)
    )
    joints = tuple(replace(j, drive=replace(j.drive, rotor_inertia=0.25 + i)) for i, j in enumerate(robot.joints))
    return replace(result, described=replace(result.described, joints=joints))


def untrusted() -> Result:
    """The same with a failed condition."""
    check = Check(
        code="held-out",
        passed=False,
        value=0.4,
        limit=0.15,
        message="held-out torque error 40 % of the torque (limit 15 %)",
    )
    return replace(trusted(), checks=(*trusted().checks, check))


def without_file() -> Result:
    """The same for an arm that did not come from a URDF file."""
    source = replace(trusted().described.source, path="catalogue:trio")
    return replace(trusted(), described=replace(trusted().described, source=source))
