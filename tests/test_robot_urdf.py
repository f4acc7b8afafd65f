"""Reading URDF: choices, merging, and each mistake by name."""

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from armid.errors import RobotError, UnknownNameError
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.kinematics import forward_kinematics
from armid.notes import Severity
from armid.robot import Box, Cylinder, JointKind, Mesh, Move, Sphere, load_robot
from armid.robot.meshes import vertices
from armid.robot.urdf.arm import parse_urdf
from armid.robot.urdf.update import updated_urdf
from armid.robot.urdf.xml_tree import decoded
from support.robot_files import GRIPPER, URDF, with_gripper


def test_the_arm_and_its_fields():
    robot = parse_urdf(URDF, "small.urdf")
    assert robot.joint_names == ("turn", "slide")
    assert robot.link_names == ("upper", "fore")
    assert robot.base == "world"
    assert [frame.name for frame in robot.frames] == ["base", "bracket", "tool0"]
    assert robot.tip.name == "tool0"
    turn, slide = robot.joints
    assert (turn.kind, slide.kind) == (JointKind.REVOLUTE, JointKind.PRISMATIC)
    assert (turn.limits.lower, turn.limits.upper, turn.limits.velocity, turn.limits.torque) == (-2, 2.5, 3, 80)
    assert (turn.drive.viscous, turn.drive.coulomb) == (1.5, 0.7)
    assert [type(g.shape) for g in robot.links[0].geometry] == [Mesh, Cylinder]
    assert [g.collision for g in robot.links[0].geometry] == [False, True]
    assert [type(g.shape) for g in robot.links[1].geometry] == [Box, Sphere]
    assert robot.notes == ()


def test_coordinate_axes_need_one_element_and_right_angles_are_exact():
    turn, slide = parse_urdf(URDF).joints
    variable = turn.transforms[-1]
    assert (variable.motion, variable.sign) == (Move.RZ, -1)
    assert turn.transforms[-2].value == np.pi / 2
    assert [e.motion.value for e in slide.transforms if e.variable] == ["Tz"]
    np.testing.assert_allclose(slide.transform(0.5)[:3, :3], slide.transform(0.0)[:3, :3], atol=1e-15)


def test_constant_lengths_have_names():
    symbols = [e.symbol for joint in parse_urdf(URDF).joints for e in joint.transforms if e.symbol]
    assert symbols == ["d1z", "d1x", "d1z_2", "d2y", "d2z", "d2x"]


def compare_with_pinocchio(text, robot, rng, *, place=1e-12, torque=1e-12):
    """Forward kinematics of every frame and inverse dynamics against Pinocchio's own URDF reader."""
    model = pin.buildModelFromXML(text)
    model.gravity.linear = np.array(robot.gravity)
    data = model.createData()
    index = [model.joints[model.getJointId(name)].idx_v for name in robot.joint_names]
    width = [model.joints[model.getJointId(name)].nq for name in robot.joint_names]
    T_world_base = np.eye(4)
    for _ in range(5):
        q, qd, qdd = rng.normal(size=(3, robot.n_joints))
        full = pin.neutral(model)
        v, a = np.zeros(model.nv), np.zeros(model.nv)
        for k, name in enumerate(robot.joint_names):
            at = model.joints[model.getJointId(name)].idx_q
            full[at : at + width[k]] = q[k] if width[k] == 1 else (np.cos(q[k]), np.sin(q[k]))
        v[index], a[index] = qd, qdd
        pin.framesForwardKinematics(model, data, full)
        T_world_base = data.oMf[model.getFrameId(robot.base)].homogeneous
        for frame in (*(f.name for f in robot.frames), *robot.link_names):
            expected = np.linalg.inv(T_world_base) @ data.oMf[model.getFrameId(frame)].homogeneous
            np.testing.assert_allclose(forward_kinematics(robot, q, frame)[0], expected, rtol=0, atol=place)
        expected = pin.rnea(model, data, full, v, a)[index]
        ours = inverse_dynamics(robot, q, qd, qdd)[0]
        np.testing.assert_allclose(ours, expected, rtol=0, atol=torque * max(1.0, np.abs(expected).max()))


def test_small_arm_agrees_with_pinocchio():
    # Pinocchio keeps 1.57079632679 as written, 5e-12 away from the right angle.
    compare_with_pinocchio(URDF, parse_urdf(URDF), np.random.default_rng(0), place=1e-11, torque=1e-10)


@pytest.mark.parametrize("axis", ["1 0 0", "0 -1 0", "0.6 0.8 0", "-0.36 0.48 0.8", "0 0.6 -0.8", "0.577 0.577 0.577"])
def test_any_joint_axis_agrees_with_pinocchio(axis):
    text = URDF.replace('<axis xyz="0 0 -1"/>', f'<axis xyz="{axis}"/>').replace("1.57079632679", "0.4")
    unit = np.array([float(x) for x in axis.split()])
    exact = " ".join(repr(float(x)) for x in unit / np.linalg.norm(unit))
    compare_with_pinocchio(text.replace(f'"{axis}"', f'"{exact}"'), parse_urdf(text), np.random.default_rng(1))


def test_a_gripper_is_lumped_and_said_so():
    robot = parse_urdf(with_gripper())
    assert robot.joint_names == ("turn", "slide")
    lumped = [note for note in robot.notes if note.code == "branch-lumped"]
    assert len(lumped) == 1
    assert lumped[0].severity is Severity.WARNING
    assert "finger1, finger2" in lumped[0].message
    bare = parse_urdf(URDF)
    assert robot.links[1].inertial[0] == pytest.approx(bare.links[1].inertial[0] + 0.2)
    compare_with_pinocchio(with_gripper(), robot, np.random.default_rng(2), place=1e-11, torque=1e-10)


def test_fingers_that_move_by_themselves_are_left_out_and_said_so():
    independent = re.sub(r"<mimic [^>]*/>", "", with_gripper())
    assert independent != with_gripper()
    robot = parse_urdf(independent)
    assert robot.joint_names == ("turn", "slide")
    assert robot.tip.name == "tool0"
    (note,) = [note for note in robot.notes if note.code == "gripper-joint"]
    assert "'finger1', 'finger2'" in note.message
    assert "--tip" in note.message


def test_a_thumb_that_is_longer_than_the_fingers_beside_it_is_no_part_of_the_arm():
    """Of two fingers one mimics the other; a thumb of two joints would otherwise end the longest chain."""
    thumb = (
        '<link name="pad"/><joint name="thumb1" type="revolute"><parent link="tool0"/><child link="pad"/><axis xyz="0 1 0"/>'
        '<limit lower="0" upper="1" velocity="1" effort="1"/></joint>'
        '<link name="nail"/><joint name="thumb2" type="revolute"><parent link="pad"/><child link="nail"/><axis xyz="0 1 0"/>'
        '<limit lower="0" upper="1" velocity="1" effort="1"/></joint></robot>'
    )
    robot = parse_urdf(with_gripper().replace("</robot>", thumb))
    assert robot.joint_names == ("turn", "slide")
    (note,) = [note for note in robot.notes if note.code == "gripper-joint"]
    assert "left out" in note.message
    assert "'thumb1', 'thumb2'" in note.message
    # Alone, it may be anything.
    assert parse_urdf(URDF.replace("</robot>", thumb)).joint_names == ("turn", "slide", "thumb1", "thumb2")


def test_the_joint_that_carries_a_gripper_is_the_arms():
    text = URDF.replace('"slide"', '"wrist_roll"').replace('"fore"', '"gripper_body"')
    one_jaw = (
        GRIPPER[: GRIPPER.index('  <joint name="finger2"')].replace('"finger1"', '"clamp"').replace('"left"', '"jaw"')
    )
    robot = parse_urdf(text.replace("</robot>\n", one_jaw + "</robot>\n"))
    (note,) = [note for note in robot.notes if note.code == "gripper-joint"]
    assert "'clamp'" in note.message
    assert "wrist_roll" not in note.message
    assert note.message.endswith("--tip tool0")
    assert not [note for note in parse_urdf(text).notes if note.code == "gripper-joint"]


def test_a_finger_can_be_the_tip_but_not_a_mimic():
    robot = parse_urdf(with_gripper(), tip="left")
    assert robot.joint_names == ("turn", "slide", "finger1")
    with pytest.raises(
        RobotError, match=r"'finger2'.*mimic joint .of 'finger1'. inside the arm.*choose a tip before it"
    ):
        parse_urdf(with_gripper(), tip="right")


def test_base_and_tip_cut_the_arm():
    robot = parse_urdf(URDF, base="base", tip="bracket")
    assert robot.joint_names == ("turn",)
    assert robot.base == "base"
    assert "branch-lumped" in [note.code for note in robot.notes]
    np.testing.assert_allclose(robot.joints[0].transform()[:3, 3], [0.1, 0, 0.2])
    with pytest.raises(UnknownNameError, match=r"no link named 'nowhere'; there are: world, base"):
        parse_urdf(URDF, tip="nowhere")
    with pytest.raises(RobotError, match=r"tip 'world' does not hang from base 'fore'"):
        parse_urdf(URDF, base="fore", tip="world")
    with pytest.raises(RobotError, match=r"no moving joint between 'world' and 'base'"):
        parse_urdf(URDF, tip="base")


def second_arm() -> str:
    extra = """
  <joint name="turn2" type="revolute"><parent link="base"/><child link="upper2"/><limit lower="-1" upper="1"/></joint>
  <link name="upper2"/>
  <joint name="turn3" type="continuous"><parent link="upper2"/><child link="hand2"/></joint>
  <link name="hand2"/>
</robot>"""
    return URDF.replace("</robot>", extra)


def test_two_arms_need_a_tip():
    with pytest.raises(RobotError, match=r"2 chains of 2 moving joints.*one of: .*hand2"):
        parse_urdf(second_arm())
    assert parse_urdf(second_arm(), tip="hand2").joint_names == ("turn2", "turn3")
    assert parse_urdf(second_arm(), tip="tool0").joint_names == ("turn", "slide")


def test_frames_on_the_last_link_are_chosen_by_name():
    text = URDF.replace(
        "</robot>",
        '<joint name="c" type="fixed"><parent link="fore"/><child link="camera"/></joint><link name="camera"/></robot>',
    )
    robot = parse_urdf(text)
    assert robot.tip.name == "tool0"
    assert [(note.code, note.severity) for note in robot.notes] == [("tip-chosen", Severity.INFO)]


@pytest.mark.parametrize(
    ("old", "new", "subject"),
    [
        ('<mass value="3"/>', '<mass value="-3"/>', "upper"),
        ('ixx="0.03"', 'ixx="0.3"', "upper"),
        ('<mass value="0.5"/>', '<mass value="-0.5"/>', "bracket"),
    ],
)
def test_impossible_inertia_loads_with_a_note(old, new, subject):
    robot = parse_urdf(URDF.replace(old, new))
    notes = [note for note in robot.notes if note.code == "inertial-impossible"]
    assert [note.subject for note in notes] == [subject]
    assert notes[0].severity is Severity.WARNING
    assert not robot.links[0].is_sound
    assert robot.links[1].is_sound


def test_huge_limits_are_none():
    text = URDF.replace('lower="-2" upper="2.5"', 'lower="-1e16" upper="1e16"').replace('effort="80"', 'effort="1e16"')
    limits = parse_urdf(text).joints[0].limits
    assert (limits.lower, limits.upper, limits.torque) == (-np.inf, np.inf, np.inf)


def test_odd_but_readable_things_are_noted():
    text = URDF.replace("1.57079632679", "1.5708").replace('effort="80"', 'effort="0"')
    text = text.replace('<origin xyz="0.2 0 0"/>', '<origin xyz="0.2 0 0"/><origin xyz="9 9 9"/>')
    text = text.replace('<limit lower="0" upper="0.4" velocity="1" effort="100"/>', "")
    robot = parse_urdf(text)
    codes = sorted(note.code for note in robot.notes)
    assert codes == ["angle-rounded", "element-twice", "limits-empty", "limits-missing"]
    assert robot.joints[0].transforms[-2].value == 1.5708
    assert robot.joints[1].limits.upper == np.inf
    assert robot.joints[0].limits.torque == np.inf


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<robot name", "robot name", "line 3: not well-formed XML"),
        ("</robot>", "", "not well-formed XML: no element found"),
        ('<?xml version="1.0"?>\n', '<!DOCTYPE robot [<!ENTITY a "b">]>\n', "document type declaration 'robot'"),
        ("<robot", "<mujoco", "mismatched tag|outermost element"),
        ('<link name="fore">', '<link name="four">', "<joint name='slide'>: child link 'fore' does not exist"),
        ('<link name="fore">', '<link name="upper">', "link 'upper' appears twice.*rename"),
        ('<joint name="slide"', '<joint name="turn"', "joint 'turn' appears twice"),
        ('<link name="fore">', "<link>", "no usable name"),
        ('<parent link="bracket"/>', "", "<joint name='slide'>: no <parent link=...>"),
        ('<child link="fore"/>', '<child link="upper"/>', "child of 'turn' too: a closed loop"),
        ('<parent link="world"/>', '<parent link="fore"/>', "part of a closed loop"),
        ('<axis xyz="0 0 -1"/>', '<axis xyz="0 0 0"/>', "<joint name='turn'>: axis is 0 0 0"),
        ('<axis xyz="0 0 -1"/>', '<axis xyz="0 0 2"/>', "axis has length 2.*make it a unit vector: 0 0 1"),
        ('<axis xyz="0 0 -1"/>', '<axis xyz="0 0"/>', "expected three numbers"),
        ('xyz="0.1 0 0.2"', 'xyz="nan 0 0.2"', "'nan', which is not a finite number"),
        ('xyz="0.1 0 0.2"', 'xyz="0.1 inf 0.2"', "'inf', which is not a finite number"),
        ('xyz="0.1 0 0.2"', 'xyz="1e999 0 0.2"', "not a finite number"),
        ('xyz="0.1 0 0.2"', 'xyz="1e15 0 0.2"', "'1e15', more than 1e.12.*SI units"),
        ('xyz="0.1 0 0.2"', 'xyz="0,1 0 0.2"', "'0,1'.*write a decimal point: 0.1"),
        ('xyz="0.1 0 0.2"', 'xyz="0.1, 0, 0.2"', "'0.1,'.*not a finite number.*spaces, without commas"),
        ("</robot>", "<xacro:gripper/></robot>", "<xacro:gripper>: this is xacro, not URDF"),
        ('xyz="0.1 0 0.2"', 'xyz="${x} 0 0.2"', "this is xacro: expand it first"),
        ('type="revolute"', 'type="revolut"', "unknown joint type 'revolut'.*did you mean 'revolute'"),
        ('lower="-2" upper="2.5"', 'lower="2.5" upper="-2"', "lower limit 2.5 is above upper limit -2.*swap"),
        ('velocity="3"', 'velocity="-3"', "velocity limit -3 is negative"),
        ('damping="1.5"', 'damping="-1.5"', "damping -1.5 or friction 0.7 is negative"),
        ('<mass value="3"/>', "", "no <mass>"),
        ('<mass value="3"/>', "<mass/>", "no attribute 'value'"),
        ("</robot>", '<link name="island"/></robot>', "2 links without parent: 'world', 'island'"),
    ],
)
def test_each_mistake_is_named(old, new, message):
    assert old in URDF
    with pytest.raises(RobotError, match=message) as caught:
        parse_urdf(URDF.replace(old, new, 1), "small.urdf")
    assert "small.urdf" in str(caught.value)


def test_a_finger_that_mimics_nothing_is_noted_and_the_arm_is_read():
    robot = parse_urdf(with_gripper().replace('mimic joint="finger1"', 'mimic joint="thumb"'))
    (note,) = [note for note in robot.notes if note.code == "mimic-unknown"]
    assert "mimics 'thumb', which does not exist" in note.message
    with pytest.raises(RobotError, match=r"a mimic joint \(of 'thumb'\) inside the arm|no moving joint"):
        parse_urdf(URDF.replace('<axis xyz="0 0 -1"/>', '<axis xyz="0 0 -1"/><mimic joint="thumb"/>'))


@pytest.mark.parametrize("kind", ["floating", "planar"])
def test_an_arm_on_something_free_to_move_begins_behind_it(kind):
    cart = '<link name="map"/><joint name="drive" type="KIND"><parent link="map"/><child link="world"/></joint></robot>'
    free = URDF.replace("</robot>", cart.replace("KIND", kind))
    robot, own = parse_urdf(free), parse_urdf(URDF)
    assert robot.joint_names == own.joint_names
    assert robot.base == own.base
    (note,) = [note for note in robot.notes if note.code == "base-after-free-joint"]
    assert f"{kind} joint 'drive'" in note.message
    with pytest.raises(RobotError, match=f"a {kind} joint inside the arm"):
        parse_urdf(free, base="map")
    second = URDF.replace('type="prismatic"', f'type="{kind}"', 1)
    with pytest.raises(RobotError, match=f"a {kind} joint inside the arm|no moving joint|chains"):
        parse_urdf(second, tip=own.tip.name)


def test_limits_of_many_turns_are_asked_about():
    codes = [note.code for note in parse_urdf(URDF.replace('lower="-2" upper="2.5"', 'lower="-170" upper="170"')).notes]
    assert "limits-degrees" in codes
    assert "limits-degrees" not in [note.code for note in parse_urdf(URDF).notes]
    none = URDF.replace('lower="-2" upper="2.5"', 'lower="-1e16" upper="1e16"')
    assert "limits-degrees" not in [note.code for note in parse_urdf(none).notes]


@pytest.mark.parametrize(
    ("names", "tip"),
    [
        (("camera_link", "tool_frame"), "tool_frame"),
        (("camera_depth_frame", "plate"), "plate"),
        (("plate", "left_end_effector"), "left_end_effector"),
        (("tool_camera", "hand_tcp", "tool_frame"), "hand_tcp"),
        (("plate", "cover"), "plate"),
    ],
)
def test_of_frames_on_the_last_link_the_tool_is_the_tip_and_never_a_camera(names, tip):
    branch = '<link name="{0}"/><joint name="j_{0}" type="fixed"><parent link="tool0"/><child link="{0}"/></joint>'
    robot = parse_urdf(URDF.replace("</robot>", "".join(branch.format(name) for name in names) + "</robot>"))
    assert robot.tip.name == tip


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_limits_that_no_unit_explains_are_none(kind):
    none = URDF.replace('lower="-2" upper="2.5"', 'lower="-999999" upper="999999"').replace(
        'type="revolute"', f'type="{kind}"'
    )
    robot = parse_urdf(none)
    assert np.isinf(robot.joints[0].limits.upper)
    assert robot.joints[0].limits.velocity == parse_urdf(URDF).joints[0].limits.velocity
    codes = [note.code for note in robot.notes if note.subject == robot.joints[0].name]
    assert "limits-placeholder" in codes
    assert "limits-degrees" not in codes


def test_limits_of_joints_off_the_arm_are_nobody_s_concern():
    wild = 'velocity="1" effort="10"'
    assert wild in GRIPPER
    robot = parse_urdf(with_gripper().replace(wild, 'velocity="1000" effort="0"'))
    assert not [note for note in robot.notes if note.code.startswith("limits-")]


def test_a_torque_that_no_arm_has_is_none():
    robot = parse_urdf(URDF.replace('effort="80"', 'effort="100000"').replace('effort="100"', 'effort="100000"'))
    assert np.isinf(robot.joints[0].limits.torque)
    assert robot.joints[1].limits.torque == 100000, "a slide may push with ten tonnes"
    (note,) = [note for note in robot.notes if note.code == "limits-placeholder"]
    assert "effort limit 100000" in note.message


def test_a_velocity_that_no_arm_has_is_none():
    robot = parse_urdf(URDF.replace('velocity="3"', 'velocity="1000"'))
    assert np.isinf(robot.joints[0].limits.velocity)
    assert robot.joints[0].limits.torque == 80
    (note,) = [note for note in robot.notes if note.code == "limits-placeholder"]
    assert "velocity limit 1000" in note.message
    assert parse_urdf(URDF.replace('velocity="3"', 'velocity="53"')).joints[0].limits.velocity == 53


def test_the_world_needs_no_link_of_its_own():
    """As in Drake's descriptions; the file we write has it, since other programs do not know it."""
    drake = URDF.replace('<link name="world"/>', "", 1)
    assert drake != URDF
    robot, own = parse_urdf(drake), parse_urdf(URDF)
    assert (robot.base, robot.joint_names) == (own.base, own.joint_names)
    heavier = robot.with_inertial(1.1 * robot.inertial)
    assert parse_urdf(updated_urdf(drake, heavier)).joint_names == own.joint_names
    assert '<link name="world"/>' in updated_urdf(drake, heavier)
    with pytest.raises(RobotError, match="parent link 'earth' does not exist"):
        parse_urdf(drake.replace('"world"', '"earth"'))


@pytest.mark.parametrize("before", ["\n", "  \n\n", "<!-- made by hand -->\n"])
def test_what_stands_before_the_declaration_goes_behind_it(tmp_path, before):
    text = f'{before}<?xml version="1.0" encoding="utf-8"?>\n{URDF.removeprefix(URDF[: URDF.index("<robot")])}'
    (tmp_path / "a.urdf").write_text(text)
    assert load_robot(tmp_path / "a.urdf").joint_names == parse_urdf(URDF).joint_names
    (tmp_path / "b.urdf").write_text(text.replace("</robot>", "<link></robot>"))
    with pytest.raises(RobotError, match=f"line {text[: text.index('</robot>')].count(chr(10)) + 1}: not well-formed"):
        load_robot(tmp_path / "b.urdf")


def test_an_arm_of_mimics_or_floating_joints_is_refused_by_name():
    pair = URDF.replace('<axis xyz="0 0 -1"/>', '<axis xyz="0 0 -1"/><mimic joint="slide"/>')
    with pytest.raises(RobotError, match=r"no moving joint.*'turn' mimics or is mimicked, 'slide' mimics"):
        parse_urdf(pair)
    floating = URDF.replace('type="revolute"', 'type="floating"').replace('type="prismatic"', 'type="planar"')
    with pytest.raises(RobotError, match=r"no moving joint.*'turn' is floating, 'slide' is planar"):
        parse_urdf(floating)


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_file_is_called_empty(text):
    with pytest.raises(RobotError, match=r"^small.urdf: empty file$"):
        parse_urdf(text, "small.urdf")


def test_size_depth_and_count_are_bounded():
    with pytest.raises(RobotError, match=r"nested too deeply"):
        parse_urdf("<robot>" + "<a>" * 200 + "</a>" * 200 + "</robot>")
    with pytest.raises(RobotError, match=r"too many elements"):
        parse_urdf("<robot>" + "<a/>" * 200_001 + "</robot>")
    with pytest.raises(RobotError, match=r"larger than"):
        parse_urdf("<robot>" + " " * 20_000_001 + "</robot>")
    with pytest.raises(RobotError, match=r"more than 2000 <link>"):
        parse_urdf("<robot>" + "".join(f'<link name="l{i}"/>' for i in range(2001)) + "</robot>")


def test_a_long_fixed_tail_does_not_exhaust_the_stack():
    tail = "".join(
        f'<link name="t{i}"/><joint name="f{i}" type="fixed"><parent link="{"fore" if i == 0 else f"t{i - 1}"}"/>'
        f'<child link="t{i}"/><origin xyz="0 0 0.001"/></joint>'
        for i in range(1500)
    )
    robot = parse_urdf(URDF.replace("</robot>", tail + "</robot>"), tip="t1499")
    T = np.linalg.inv(forward_kinematics(robot, np.zeros(2), "fore")[0]) @ forward_kinematics(robot, np.zeros(2))[0]
    np.testing.assert_allclose(T[:3, 3], [0, 0, 1.5], atol=1e-12)


def test_files_are_found_by_path_and_catalogue_names_listed(tmp_path):
    path = tmp_path / "small.urdf"
    path.write_text(URDF)
    robot = load_robot(path, gravity=[0, 0, 0])
    assert robot.source.path == str(path)
    assert len(robot.source.sha256) == 64
    assert not robot.gravity.any()
    with pytest.raises(UnknownNameError, match=r"'pandaa'; there are: .*panda"):
        load_robot("pandaa")
    with pytest.raises(RobotError, match=r"no such file.*catalogue name"):
        load_robot(tmp_path / "missing.urdf")
    with pytest.raises(RobotError, match=r"not a file"):
        load_robot(tmp_path)


def test_encodings():
    text = URDF.replace("a small arm", "ein kleiner Arm für Müller")
    assert decoded(text.encode(), "x") == text
    assert decoded(b"\xef\xbb\xbf" + text.encode(), "x") == text
    latin = text.replace('version="1.0"', 'version="1.0" encoding="iso-8859-1"')
    assert parse_urdf(decoded(latin.encode("latin-1"), "x")).n_joints == 2
    with pytest.raises(RobotError, match=r"not utf-8 text"):
        decoded(text.encode("latin-1"), "x")
    with pytest.raises(RobotError, match=r"zero bytes"):
        decoded(b"a\x00b", "x")
    with pytest.raises(RobotError, match=r"zero bytes"):
        decoded(bytes(range(256)), "a.png")
    with pytest.raises(RobotError, match=r"encoding 'utf-16' is not read"):
        decoded(b'<?xml version="1.0" encoding="UTF-16"?>', "x")


def test_another_frame_of_a_catalogue_arm_can_be_the_tip():
    robot = load_robot("lwr4plus", tip="led_fixture")
    assert robot.tip.name == "led_fixture"
    assert robot.tip.T_link_frame[0, 3] == 0.0015
    with pytest.raises(RobotError, match=r"starts at its own base"):
        load_robot("panda", base="link3")


def test_merging_is_the_sum_of_the_bodies():
    robot = parse_urdf(URDF)
    model = pin.buildModelFromXML(URDF)
    joint = model.getJointId("turn")
    expected = model.inertias[joint]
    assert robot.links[0].inertial[0] == pytest.approx(expected.mass)
    np.testing.assert_allclose(robot.links[0].inertial[1:4], expected.mass * expected.lever, atol=1e-14)
    assert replace(robot, gravity=np.zeros(3)).links[0].is_sound


def test_meshes_beside_the_file_are_found(tmp_path):
    meshes = tmp_path / "small" / "meshes"
    meshes.mkdir(parents=True)
    (tmp_path / "small" / "upper.stl").write_bytes(b"solid")
    path = tmp_path / "small" / "urdf" / "small.urdf"
    path.parent.mkdir()
    path.write_text(URDF)
    assert load_robot(path).links[0].geometry[0].shape.path == str(tmp_path / "small" / "upper.stl")
    path.write_text(URDF.replace("package://small/", "../"))
    assert load_robot(path).links[0].geometry[0].shape.path.endswith("upper.stl")
    for nowhere in ("package://other/upper.stl", "x" * 5000, ""):
        path.write_text(URDF.replace("package://small/upper.stl", nowhere))
        assert load_robot(path).links[0].geometry[0].shape.path == nowhere


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_meshes_a_hundred_times_the_arm_are_millimetres(tmp_path, unit):
    """The arm is a metre long; nothing in the file says in which unit its mesh is, and other meshes have a scale."""
    points = [f"v {unit * x} {unit * y} {unit * z}" for x in (0, 0.1) for y in (0, 0.2) for z in (0, 0.05)]
    (tmp_path / "upper.obj").write_text("\n".join(points))
    mesh = '<visual><geometry><mesh filename="upper.obj"{}/></geometry></visual>'
    both = mesh.format("") + mesh.format(' scale="0.5 0.5 0.5"')
    (tmp_path / "arm.urdf").write_text(URDF.replace('<link name="fore">', f'<link name="fore">{both}'))
    robot = load_robot(tmp_path / "arm.urdf")
    bare, scaled = (vertices(g.shape) for g in robot.links[1].geometry[:2])
    np.testing.assert_allclose(np.ptp(bare, axis=0), [0.1, 0.2, 0.05])
    np.testing.assert_allclose(np.ptp(scaled, axis=0), [0.05 * unit, 0.1 * unit, 0.025 * unit])
    said = [note.message for note in robot.notes if note.code == "mesh-millimetres"]
    assert bool(said) == (unit > 1.0)


def test_meshes_of_a_package_that_was_renamed_are_found(tmp_path):
    mesh = tmp_path / "small_v2" / "meshes" / "visual" / "upper.stl"
    mesh.parent.mkdir(parents=True)
    mesh.write_bytes(b"solid")
    path = tmp_path / "small_v2" / "urdf" / "small.urdf"
    path.parent.mkdir()
    for name in ("package://small_support/meshes/visual/upper.stl", "meshes/visual/upper.stl"):
        path.write_text(URDF.replace("package://small/upper.stl", name))
        assert load_robot(path).links[0].geometry[0].shape.path == str(mesh)


def test_of_many_links_those_with_like_names_are_offered():
    many = "".join(
        f'<link name="sensor{i}"/><joint name="s{i}" type="fixed"><parent link="upper"/>'
        f'<child link="sensor{i}"/></joint>'
        for i in range(100)
    )
    with pytest.raises(UnknownNameError) as caught:
        parse_urdf(URDF.replace("</robot>", many + "</robot>"), tip="for")
    assert "fore" in str(caught.value)
    assert len(str(caught.value)) < 200
