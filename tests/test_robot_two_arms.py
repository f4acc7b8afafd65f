"""A torso with two arms: `--base` and `--tip` choose one, and everything after keeps to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.identification.result import load_result
from armid.kernels.dynamics import gravity, inverse_dynamics
from armid.robot.load import load_robot
from support.elbow import fourier_motion

RUNNER = CliRunner()

ARM = """\
  <joint name="{side}_mount" type="fixed">
    <parent link="torso"/><child link="{side}_base"/><origin xyz="0 {y} 0.9" rpy="{roll} 0.4 0.3"/>
  </joint>
  <link name="{side}_base"/>
  <joint name="{side}_shoulder" type="revolute">
    <parent link="{side}_base"/><child link="{side}_upper"/><origin xyz="0 0 0.1"/>
    <axis xyz="0 0 1"/><limit lower="-2.5" upper="2.5" velocity="3" effort="80"/><dynamics damping="0.5" friction="0.4"/>
  </joint>
  <link name="{side}_upper"><inertial>
    <origin xyz="0.1 0.02 0.05"/><mass value="3.0"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.025"/>
  </inertial></link>
  <joint name="{side}_elbow" type="revolute">
    <parent link="{side}_upper"/><child link="{side}_fore"/><origin xyz="0.3 0 0" rpy="-1.5707963267948966 0 0"/>
    <axis xyz="0 0 1"/><limit lower="-2.5" upper="2.5" velocity="3" effort="60"/><dynamics damping="0.4" friction="0.3"/>
  </joint>
  <link name="{side}_fore"><inertial>
    <origin xyz="0.15 -0.01 0.02"/><mass value="2.0"/>
    <inertia ixx="0.005" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>
  </inertial></link>
  <joint name="{side}_flange" type="fixed">
    <parent link="{side}_fore"/><child link="{side}_tool"/><origin xyz="0.3 0 0"/>
  </joint>
  <link name="{side}_tool"/>
"""

URDF = f"""\
<robot name="pair">
  <link name="floor"/>
  <joint name="lift" type="prismatic">
    <parent link="floor"/><child link="torso"/><origin xyz="0 0 0.2" rpy="0 0 0.5"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="0.3" velocity="0.2" effort="2000"/>
  </joint>
  <link name="torso"><inertial><mass value="30"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
{ARM.format(side="left", y=0.2, roll=-0.8)}{ARM.format(side="right", y=-0.2, roll=0.8)}</robot>
"""

RIGHT = ("--base", "right_base", "--tip", "right_tool")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The description, a motion, and two recordings of the right arm with a tenth more mass than described."""
    folder = tmp_path_factory.mktemp("pair")
    (folder / "pair.urdf").write_text(URDF)
    robot = load_robot(folder / "pair.urdf", base="right_base", tip="right_tool")
    heavier = robot.with_inertial(1.1 * robot.inertial)
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        x = fourier_motion(rng, 2, 2000, 100.0)
        tau = inverse_dynamics(heavier, x[:, :2], x[:, 2:4], x[:, 4:], drives=True)
        table = np.column_stack([np.arange(2000) / 100.0, x[:, :2], tau + rng.normal(0.0, 0.03, tau.shape)])
        names = [f"{kind}_{name}" for kind in ("q", "tau") for name in robot.joint_names]
        header = ",".join(["time", *names])
        np.savetxt(folder / f"log{seed}.csv", table, delimiter=",", header=header, comments="", fmt="%.9g")
    (folder / "poses.csv").write_text("right_shoulder,right_elbow\n" + "0.1,0.2\n-0.4,0.9\n" * 4)
    return folder


def run(*words: Any, code: int = 0) -> dict[str, Any]:
    outcome = RUNNER.invoke(application(), [*map(str, words), "--json"])
    assert outcome.exit_code == code, outcome.output
    return dict(json.loads(outcome.stdout))


@pytest.mark.parametrize("side", ["left", "right"])
def test_gravity_of_a_tilted_base_is_pinocchio_s(side: str, tmp_path: Path) -> None:
    """The arm cut out at its tilted base needs the torque it needs on the whole robot, other joints at zero."""
    path = tmp_path / "pair.urdf"
    path.write_text(URDF)
    model = pin.buildModelFromUrdf(str(path))
    robot = load_robot(path, base=f"{side}_base", tip=f"{side}_tool")
    q = np.random.default_rng(3).uniform(-2, 2, (20, 2))
    columns = [model.joints[model.getJointId(name)].idx_q for name in robot.joint_names]
    for row, torque in zip(q, gravity(robot, q), strict=True):
        whole = np.zeros(model.nq)
        whole[columns] = row
        expected = pin.computeGeneralizedGravity(model, model.createData(), whole)[columns]
        np.testing.assert_allclose(torque, expected, atol=1e-10)
    codes = {note.code for note in robot.notes}
    assert {"base-held", "base-turned"} <= codes


def test_without_a_tip_both_arms_are_named(place: Path) -> None:
    outcome = RUNNER.invoke(application(), ["check", str(place / "pair.urdf"), str(place / "log1.csv")])
    assert outcome.exit_code == 1
    assert "left_tool, right_tool" in outcome.stderr
    assert "--tip" in outcome.stderr


def test_an_identified_arm_keeps_its_chain_to_the_export(place: Path) -> None:
    """Check, identify, validate, export: only the chosen arm's values change in the file, the other keeps its bytes."""
    robot, out = place / "pair.urdf", place / "identified"
    assert run("check", robot, place / "log1.csv", *RIGHT)["ok"]
    done = run("identify", robot, place / "log1.csv", "--validate", place / "log2.csv", *RIGHT, "--out", out)
    assert done["verdict"] == "trusted"
    stored = load_result(out)
    assert stored.robot.joint_names == ("right_shoulder", "right_elbow")
    assert (stored.robot.base, stored.robot.tip.name) == ("right_base", "right_tool")
    assert run("validate", out, place / "log2.csv")["verdict"] == "trusted"
    text = Path(run("export", out, "--to", "urdf")["file"]).read_text()
    left, right = URDF.index('<joint name="left_mount"'), URDF.index('<joint name="right_mount"')
    assert URDF[left:right] in text
    found = load_robot(place / "identified" / "pair.urdf", base="right_base", tip="right_tool")
    np.testing.assert_allclose(found.inertial, stored.robot.inertial, rtol=1e-9, atol=1e-12)


def test_verbs_that_plan_take_the_chain(place: Path) -> None:
    robot = place / "pair.urdf"
    assert run("inspect", robot, *RIGHT)["channels"] == ["right_shoulder", "right_elbow"]
    motion = place / "motion"
    done = run(
        "design",
        robot,
        *RIGHT,
        "--starts",
        1,
        "--seconds",
        0,
        "--workers",
        1,
        "--period",
        5,
        "--harmonics",
        3,
        "--out",
        motion,
    )
    assert done["feasible"]
    simulated = run("simulate", robot, motion / "trajectory.json", *RIGHT, "--out", place / "run")
    assert simulated["files"]


def test_an_unknown_base_lists_the_links(place: Path) -> None:
    outcome = RUNNER.invoke(application(), ["identify", str(place / "pair.urdf"), "x.csv", "--base", "middle"])
    assert outcome.exit_code == 1
    assert "right_base" in outcome.stderr
