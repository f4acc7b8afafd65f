"""Small robot files for tests."""

from __future__ import annotations

YAML = """\
format: armid-robot/1
name: small
lengths: {d1: 0.4, a2: 0.3}
gravity: [0, 0, -9.81]
joints:
  - name: waist
    link: column
    dh: {alpha: pi/2, a: 0, d: d1, theta: 0}
    limits: {position_deg: 170, velocity: 2, acceleration: 10, jerk: 100, torque: 50}
    drive: {rotor_inertia: 0.1, viscous: 1.5, coulomb: 2, offset: -0.1, gear_ratio: 100}
    inertial: {mass: 4, com: [0, -0.1, 0.02], inertia_at_com: [0.02, 0, 0, 0.01, 0.001, 0.02]}
    geometry:
      - capsule: {from: [0, -0.3, 0], to: [0, 0, 0], radius: 0.07}
  - name: lift
    type: prismatic
    mdh: {alpha_deg: 90, a: a2, d: 0.1}
    limits: {lower: -0.2, upper: 0.5}
    inertial: {standard: [2, 0.1, 0, 0.2, 0.1, 0, 0, 0.11, 0, 0.05]}
  - name: wrist
    type: continuous
    chain: [Tx(0.2), Ry(0.3), Rx(pi/2 - q), Tz(a2)]
frames:
  - {name: camera, link: column, xyz: [0, 0.1, 0], rpy_deg: [0, 90, 0]}
  - {name: tool, chain: [Tz(0.1), Rx(0.2)]}
coupling: [[1, 0, 0], [0.5, 1, 0], [0, 0, 1]]
"""

URDF = """\
<?xml version="1.0"?>
<!-- a small arm -->
<robot name="small">
  <link name="world"/>
  <joint name="stand" type="fixed">
    <parent link="world"/><child link="base"/>
    <origin xyz="0 0 0.5"/>
  </joint>
  <link name="base">
    <inertial><mass value="10"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  </link>
  <joint name="turn" type="revolute">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0.1 0 0.2" rpy="1.57079632679 0 0"/>
    <axis xyz="0 0 -1"/>
    <limit lower="-2" upper="2.5" velocity="3" effort="80"/>
    <dynamics damping="1.5" friction="0.7"/>
  </joint>
  <link name="upper">
    <inertial>
      <origin xyz="0.05 0 0.1" rpy="0 0 0.3"/>
      <mass value="3"/>
      <inertia ixx="0.03" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.01"/>
    </inertial>
    <visual><geometry><mesh filename="package://small/upper.stl"/></geometry></visual>
    <collision><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.05" length="0.2"/></geometry></collision>
  </link>
  <joint name="bracket_joint" type="fixed">
    <parent link="upper"/><child link="bracket"/>
    <origin xyz="0 0.1 0.3" rpy="0.1 0.2 0.3"/>
  </joint>
  <link name="bracket">
    <inertial><origin xyz="0.01 0 0"/><mass value="0.5"/>
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial>
  </link>
  <joint name="slide" type="prismatic">
    <parent link="bracket"/><child link="fore"/>
    <origin xyz="0.2 0 0"/>
    <axis xyz="0.6 0 0.8"/>
    <limit lower="0" upper="0.4" velocity="1" effort="100"/>
  </joint>
  <link name="fore">
    <inertial><mass value="2"/><inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>
    <collision><geometry><box size="0.1 0.1 0.2"/></geometry></collision>
    <collision><geometry><sphere radius="0.1"/></geometry></collision>
  </link>
  <joint name="tool_joint" type="fixed"><parent link="fore"/><child link="tool0"/><origin xyz="0 0 0.1"/></joint>
  <link name="tool0"/>
</robot>
"""

GRIPPER = """\
  <joint name="finger1" type="prismatic">
    <parent link="tool0"/><child link="left"/><origin xyz="0 0.02 0"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.04" velocity="1" effort="10"/>
  </joint>
  <link name="left">
    <inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>
  </link>
  <joint name="finger2" type="prismatic">
    <parent link="tool0"/><child link="right"/><origin xyz="0 -0.02 0"/><axis xyz="0 -1 0"/>
    <limit lower="0" upper="0.04" velocity="1" effort="10"/>
    <mimic joint="finger1"/>
  </joint>
  <link name="right">
    <inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>
  </link>
</robot>
"""


def with_gripper() -> str:
    return URDF.replace("</robot>\n", GRIPPER)
