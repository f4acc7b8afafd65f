"""Writing arms back: only what changed, and the same arm in other conventions."""

import difflib
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from armid.errors import RobotError
from armid.export.gate import reload_checks
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.kinematics import forward_kinematics
from armid.parameters.inertial import from_centre_of_mass
from armid.robot import Elementary, Limits, Move, Robot, catalogue_names, load_robot
from armid.robot.dh import Convention, row_of
from armid.robot.dh_table import in_dh_frames
from armid.robot.elementary import elementary_matrix, rotation_from_rpy, rpy
from armid.robot.urdf.arm import parse_urdf
from armid.robot.urdf.write import new_urdf, updated_urdf
from armid.robot.yaml_file import parse_yaml, to_yaml
from support.chains import random_inertial, random_robot
from support.robot_files import URDF, with_gripper

PLACE = 1e-12
"""[m] and direction cosines: what the conversions promise."""


def assert_same_arm(a: Robot, b: Robot, rng: np.random.Generator, *, torque: float = 1e-11) -> None:
    q, qd, qdd = rng.normal(size=(3, 4, a.n_joints))
    np.testing.assert_allclose(forward_kinematics(a, q), forward_kinematics(b, q), rtol=0, atol=PLACE)
    expected = inverse_dynamics(a, q, qd, qdd)
    np.testing.assert_allclose(inverse_dynamics(b, q, qd, qdd), expected, rtol=0, atol=torque * np.abs(expected).max())


def changed_lines(old: str, new: str) -> list[str]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    return [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]


# --- the same file


@pytest.mark.parametrize("text", [URDF, with_gripper(), URDF.replace("\n", "\r\n")])
def test_nothing_changed_is_the_same_text(text):
    assert updated_urdf(text, parse_urdf(text)) == text


def test_one_mass_changes_one_line():
    robot = parse_urdf(URDF)
    fore = robot.links[1]
    rest = '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>'
    heavier = fore.inertial.copy()
    heavier[0] += 1.0  # The centre of mass is the origin, so nothing else follows.
    new = updated_urdf(URDF, replace(robot, links=(robot.links[0], replace(fore, inertial=heavier))))
    assert changed_lines(URDF, new) == [
        f'-    <inertial><mass value="2"/>{rest}',
        f'+    <inertial><mass value="3.0"/>{rest}',
    ]


def test_friction_changes_only_dynamics():
    robot = parse_urdf(URDF)
    turn, slide = robot.joints
    drive = replace(turn.drive, coulomb=2.25)
    new = updated_urdf(URDF, replace(robot, joints=(replace(turn, drive=drive), replace(slide, drive=drive))))
    assert changed_lines(URDF, new) == [
        '-    <dynamics damping="1.5" friction="0.7"/>',
        '+    <dynamics damping="1.5" friction="2.25"/>',
        '+    <dynamics damping="1.5" friction="2.25"/>',
    ]
    assert parse_urdf(new).joints[1].drive.coulomb == 2.25


@pytest.mark.parametrize("text", [URDF, with_gripper()])
def test_merged_inertia_reads_back(text):
    rng = np.random.default_rng(0)
    robot = parse_urdf(text)
    target = robot.with_inertial([random_inertial(rng) * 5, random_inertial(rng) * 5])
    new = updated_urdf(text, target)
    np.testing.assert_allclose(parse_urdf(new).inertial, target.inertial, rtol=1e-12, atol=1e-13)
    bracket = ET.fromstring(new).find("link[@name='bracket']/inertial/mass")
    assert bracket.attrib["value"] == "0.5"
    assert "<!-- a small arm -->" in new


def test_a_body_lighter_than_its_bracket_leaves_it_a_share():
    robot = parse_urdf(URDF)
    light = robot.inertial.copy()
    light[:10] *= 0.05
    new = updated_urdf(URDF, robot.with_inertial(light))
    again = parse_urdf(new)
    np.testing.assert_allclose(again.inertial, light, rtol=1e-12, atol=1e-14)
    assert again.links[0].is_sound
    # The bracket keeps its shape and loses mass, by halves: a simulator refuses moving parts that weigh nothing.
    before, after = (
        float(ET.fromstring(text).find("link[@name='bracket']/inertial/mass").attrib["value"]) for text in (URDF, new)
    )
    assert 0.0 < after < 0.05 * float(robot.inertial[0])
    assert np.log2(before / after) == pytest.approx(round(np.log2(before / after)))


def test_a_link_without_inertia_gets_one():
    text = URDF.replace('<link name="tool0"/>', '<link name="tool0"/>\n  <link name="hand"/>').replace(
        "</robot>",
        '<joint name="roll" type="continuous"><parent link="tool0"/><child link="hand"/></joint>\n</robot>',
    )
    robot = parse_urdf(text)
    assert robot.links[2].inertial is None
    body = random_inertial(np.random.default_rng(1))
    links = (*robot.links[:2], replace(robot.links[2], inertial=body))
    again = parse_urdf(updated_urdf(text, replace(robot, links=links)))
    np.testing.assert_allclose(again.links[2].inertial, body, rtol=1e-12)


def moved(robot: Robot, rng: np.random.Generator, *, off_axis: bool) -> Robot:
    """Every constant a little different, as a calibration leaves it."""
    tail = (Elementary(motion=Move.TX, value=2e-3), Elementary(motion=Move.RX, value=3e-3)) if off_axis else ()

    def jitter(elements):
        return tuple(e if e.variable else replace(e, value=e.value + 1e-3 * float(rng.normal())) for e in elements)

    joints = tuple(
        replace(j, transforms=(Elementary(motion=Move.RY, value=2e-3), *jitter(j.transforms), *tail))
        for j in robot.joints
    )
    frames = tuple(
        replace(f, transforms=(*jitter(f.transforms), Elementary(motion=Move.TY, value=1e-3))) for f in robot.frames
    )
    return replace(robot, joints=joints, frames=frames)


@pytest.mark.parametrize("off_axis", [False, True])
@pytest.mark.parametrize("text", [URDF, with_gripper()])
def test_calibrated_geometry_reads_back(text, off_axis):
    rng = np.random.default_rng(3)
    target = moved(parse_urdf(text), rng, off_axis=off_axis)
    again = parse_urdf(updated_urdf(text, target), tip="tool0")
    assert_same_arm(target, again, rng)
    q = rng.normal(size=2)
    for name in ("base", "bracket", "tool0"):
        np.testing.assert_allclose(
            forward_kinematics(again, q, name), forward_kinematics(target, q, name), rtol=0, atol=PLACE
        )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<limit lower="-2" upper="2.5" velocity="3" effort="80"/>', ""),
        ('<limit lower="0" upper="0.4" velocity="1" effort="100"/>', ""),
        (' velocity="3" effort="80"', ""),
    ],
)
def test_limits_that_other_readers_demand_are_written_and_say_none(old, new):
    text = URDF.replace(old, new)
    assert text != URDF
    robot = parse_urdf(text)
    written = updated_urdf(text, robot.with_inertial(1.1 * robot.inertial))
    assert pin.buildModelFromXML(written).nv == 2
    assert [joint.limits for joint in parse_urdf(written).joints] == [joint.limits for joint in robot.joints]
    fresh = new_urdf(replace(robot, joints=tuple(replace(joint, limits=Limits()) for joint in robot.joints)))
    assert pin.buildModelFromXML(fresh).nv == 2
    assert {joint.limits for joint in parse_urdf(fresh).joints} == {Limits()}


def test_an_arm_that_ends_off_its_last_axis_gets_a_tip():
    text = URDF.replace('<joint name="tool_joint" type="fixed">', "<!--").replace('<link name="tool0"/>', "-->")
    text = text.replace('<joint name="slide" type="prismatic">', '<joint name="slide" type="revolute">')
    text = text.replace("\n", "\r\n") + "<!-- </robot> -->\r\n"
    robot = parse_urdf(text)
    assert robot.tip.name == "fore"
    rng = np.random.default_rng(4)
    target = moved(replace(robot, frames=()), rng, off_axis=True)
    new = updated_urdf(text, target)
    assert new.count("\n") == new.count("\r\n")
    assert_same_arm(target, parse_urdf(new, tip="fore_tip"), rng)


def test_another_robot_is_refused():
    robot = parse_urdf(URDF)
    other = replace(robot, joints=(replace(robot.joints[0], name="x"), robot.joints[1]))
    with pytest.raises(RobotError, match="has the joints turn, slide, not"):
        updated_urdf(URDF, other)


# --- other conventions


@pytest.mark.parametrize("name", catalogue_names())
def test_catalogue_arms_survive_every_conversion(name):
    rng = np.random.default_rng(5)
    robot = replace(load_robot(name), coupling=None)
    urdf = parse_urdf(new_urdf(robot), tip=robot.tip.name).with_gravity(robot.gravity)
    assert_same_arm(robot, urdf, rng)
    for convention in Convention:
        table = in_dh_frames(urdf, convention)
        assert all(row_of(joint.transforms) for joint in table.joints[1:])
        assert_same_arm(robot, parse_yaml(to_yaml(table)), rng)
        assert_same_arm(robot, parse_urdf(new_urdf(table), tip=robot.tip.name).with_gravity(robot.gravity), rng)


@pytest.mark.parametrize("seed", range(30))
def test_random_chains_survive_every_conversion(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 1 + seed % 7)
    urdf = parse_urdf(new_urdf(robot), tip="tool").with_gravity(robot.gravity)
    assert_same_arm(robot, urdf, rng)
    for convention in Convention:
        assert_same_arm(robot, in_dh_frames(robot, convention), rng, torque=1e-10)


def test_link_frames_off_the_axis_are_marked():
    robot = load_robot("ur10e")
    urdf = parse_urdf(new_urdf(robot), tip="tool0")
    q = np.linspace(-1, 1, 6)
    for name in robot.link_names[:-1]:
        expected = forward_kinematics(robot, q, name)
        np.testing.assert_allclose(forward_kinematics(urdf, q, f"{name}_frame"), expected, rtol=0, atol=PLACE)


def test_panda_in_modified_frames_has_its_published_table():
    table = in_dh_frames(load_robot("panda"), Convention.MODIFIED)
    rows = [row_of(joint.transforms)[1] for joint in table.joints[1:]]
    assert [abs(row.a) for row in rows] == pytest.approx([0, 0, 0.0825, 0.0825, 0, 0.088], abs=1e-12)
    assert [abs(row.d) for row in rows] == pytest.approx([0, 0.316, 0, 0.384, 0, 0], abs=1e-12)
    assert [abs(row.alpha) for row in rows] == pytest.approx([np.pi / 2] * 6)


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-7, np.pi / 2 - 1e-11, 0.3, 3.0])
def test_roll_pitch_yaw_is_exact_near_its_singularity(pitch):
    rng = np.random.default_rng(6)
    for roll, yaw in rng.uniform(-3, 3, (50, 2)):
        R = (elementary_matrix(Move.RZ, yaw) @ elementary_matrix(Move.RY, pitch) @ elementary_matrix(Move.RX, roll))[
            :3, :3
        ]
        # Within 1e-12 of the singularity roll is set to zero by convention, which costs as much.
        np.testing.assert_allclose(rotation_from_rpy(*rpy(R)), R, atol=2e-12)


def test_what_is_left_of_a_thin_rod_beside_its_fixed_tip_is_a_body_that_every_reader_takes() -> None:
    tip = (
        '<link name="knob"><inertial><mass value="0.01"/><inertia ixx="1e-7" ixy="0" ixz="0" iyy="1e-7" iyz="0" izz="1e-7"/>'
        '</inertial></link><joint name="k" type="fixed"><parent link="fore"/><child link="knob"/><origin xyz="0 0 0.2"/>'
        "</joint></robot>"
    )
    text = URDF.replace("</robot>", tip)
    robot = parse_urdf(text)
    # A rod so thin that the two smaller moments are a hair more than the largest.
    rod = from_centre_of_mass(0.2, np.array([0.0, 0.0, 0.1]), np.diag([1e-3, 1e-3 - 2e-7, 2e-7 + 1e-10]))
    robot = replace(robot, links=(*robot.links[:-1], replace(robot.links[-1], inertial=rod)))
    written = updated_urdf(text, robot)
    assert parse_urdf(written).links[-1].inertial == pytest.approx(rod, rel=1e-9, abs=1e-15)
    assert {check.program for check in reload_checks(robot, written, mjcf=False)} >= {"MuJoCo", "armid"}
