"""Our own robot file."""

from dataclasses import replace
from math import inf, pi

import numpy as np
import pytest

from armid.errors import RobotError
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.kinematics import forward_kinematics
from armid.parameters.inertial import to_centre_of_mass
from armid.robot import Capsule, Elementary, JointKind, Move, catalogue_names, load_robot
from armid.robot.dh import Convention, Row, row_of, transforms
from armid.robot.yaml_file import parse_yaml, to_yaml
from support.chains import random_robot
from support.robot_files import YAML


def rotation(axis: str, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    T = np.eye(4)
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    T[i, i], T[i, j], T[j, i], T[j, j] = c, -s, s, c
    return T


def shift(x=0.0, y=0.0, z=0.0) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def test_every_field_arrives():
    robot = parse_yaml(YAML, "small.yaml")
    waist, lift, wrist = robot.joints
    assert robot.joint_names == ("waist", "lift", "wrist")
    assert robot.link_names == ("column", "link2", "link3")
    assert (waist.kind, lift.kind, wrist.kind) == (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.REVOLUTE)
    assert waist.limits.upper == pytest.approx(170 * pi / 180)
    assert waist.limits.lower == -waist.limits.upper
    assert (waist.limits.velocity, waist.limits.acceleration, waist.limits.jerk, waist.limits.torque) == (
        2,
        10,
        100,
        50,
    )
    assert wrist.limits.upper == inf
    assert (waist.drive.rotor_inertia, waist.drive.viscous, waist.drive.coulomb) == (0.1, 1.5, 2)
    assert (waist.drive.offset, waist.drive.gear_ratio) == (-0.1, 100)
    mass, centre, inertia = to_centre_of_mass(robot.links[0].inertial)
    assert mass == 4
    np.testing.assert_allclose(centre, [0, -0.1, 0.02], atol=1e-15)
    np.testing.assert_allclose(inertia, [[0.02, 0, 0], [0, 0.01, 0.001], [0, 0.001, 0.02]], atol=1e-15)
    assert robot.coupling[1, 0] == 0.5
    assert robot.tip.name == "tool"
    assert robot.frame("camera").link == 1


def test_forward_kinematics_is_the_product_of_the_rows():
    robot = parse_yaml(YAML)
    q = np.array([0.3, 0.2, -0.7])
    x, y, z = robot.coupling @ q
    expected = (
        rotation("z", x)
        @ shift(z=0.4)
        @ rotation("x", pi / 2)
        @ rotation("x", pi / 2)
        @ shift(x=0.3)
        @ shift(z=0.1 + y)
        @ shift(x=0.2)
        @ rotation("y", 0.3)
        @ rotation("x", pi / 2 - z)
        @ shift(z=0.3)
        @ shift(z=0.1)
        @ rotation("x", 0.2)
    )
    np.testing.assert_allclose(forward_kinematics(robot, q)[0], expected, atol=1e-14)


def test_a_capsule_by_its_ends_lies_between_them():
    geometry = parse_yaml(YAML).links[0].geometry[0]
    assert isinstance(geometry.shape, Capsule)
    half = np.array([0, 0, 0.5 * geometry.shape.length, 1.0])
    np.testing.assert_allclose((geometry.T_link_shape @ half)[:3], [0, 0, 0], atol=1e-15)
    half[2] *= -1
    np.testing.assert_allclose((geometry.T_link_shape @ half)[:3], [0, -0.3, 0], atol=1e-15)


def test_lengths_are_named_once_and_zeros_are_structure():
    robot = parse_yaml(YAML)
    symbols = [e.symbol for joint in robot.joints for e in joint.transforms]
    assert symbols == [None, "d1", None, None, None, "a2", None, None, "d3x", None, None, "a2"]


def test_an_automatic_name_never_means_two_lengths():
    text = YAML.replace("lengths: {d1: 0.4, a2: 0.3}", "lengths: {d1: 0.4, a2: 0.3, d3x: 9}")
    robot = parse_yaml(text)
    assert robot.joints[2].transforms[0].symbol == "d3x_2"


@pytest.mark.parametrize(
    ("line", "gravity"),
    [
        ("gravity: [1, 2, -3]", [1, 2, -3]),
        ("gravity: 9.8", [0, 0, -9.8]),
        ("mounting: upside-down", [0, 0, 9.81]),
        ("mounting: upright", [0, 0, -9.81]),
        ("mounting: {rpy_deg: [90, 0, 0]}", [0, -9.81, 0]),
        ("mounting: {rpy: [0, pi/2, 0]}", [9.81, 0, 0]),
    ],
)
def test_gravity_and_mounting(line, gravity):
    robot = parse_yaml(YAML.replace("gravity: [0, 0, -9.81]", line))
    np.testing.assert_allclose(robot.gravity, gravity, atol=1e-14)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: small", "name: small\nnaem: x", "unknown key 'naem'.*did you mean 'name'"),
        ("viscous: 1.5", "viscuous: 1.5", r"small.yaml: joints\[0\].drive: unknown key 'viscuous'.*'viscous'"),
        ("viscous: 1.5", "viscous: '1,5'", r"joints\[0\].drive.viscous: '1,5' is not a number.*1.5"),
        ("com: [0, -0.1, 0.02]", "com: [0, -0,1, 0.02]", "4 numbers .*decimal commas.*expected 3"),
        ("viscous: 1.5", "viscous: nan", "not a finite number"),
        ("viscous: 1.5", "viscous: .inf", "not a finite number"),
        ("viscous: 1.5", "viscous: -1", "viscous -1 is negative"),
        ("viscous: 1.5", "viscous: 1.5, viscous: 2", "key 'viscous' appears twice"),
        ("type: prismatic", "type: prysmatic", "did you mean 'prismatic'"),
        ("type: prismatic", "type: ball", "expected one of: revolute, continuous, prismatic"),
        ("lower: -0.2, upper: 0.5", "lower: 0.5, upper: -0.2", "lower limit 0.5 is not below upper limit -0.2"),
        ("lower: -0.2, upper: 0.5", "lower_deg: -2", "unknown key 'lower_deg'"),
        ("lower: -0.2, upper: 0.5", "position: [1, 2, 3]", r"limits.position: 3 numbers.*\[lower, upper\]"),
        ("lower: -0.2, upper: 0.5", "position: [-0.2, 0.5], lower: -1", "position together with lower"),
        ("velocity: 2", "velocity: -2", "velocity limit -2 is not positive"),
        ("velocity: 2", "velocity: 2, velocity_deg: 3", "both velocity and velocity_deg"),
        ("d: d1", "d: d9", "unknown name 'd9'"),
        ("alpha: pi/2", "alpha: pi/2, alpha_deg: 90", "both alpha and alpha_deg"),
        ("Rx(pi/2 - q)", "Rx(pi/2)", "0 elements hold the joint variable"),
        ("Rx(pi/2 - q)", "Rx(2*q)", "multiplied by 2"),
        ("Rx(pi/2 - q)", "Tx(q)", "a revolute joint whose variable is Tx"),
        ("Rx(pi/2 - q)", "Rw(q)", "not an elementary transform"),
        ("    dh:", "    chain: [Rz(q)]\n    dh:", "2 of the keys dh, mdh, chain"),
        ("mass: 4, ", "", "'mass' is missing"),
        ("from: [0, -0.3, 0], ", "", "give length, or from and to"),
        ("radius: 0.07", "radius: -1", "-1 is not positive"),
        ("coupling: [[1, 0, 0], ", "coupling: [", "2 rows.*expected 3"),
        ("coupling: [[1, 0, 0], [0.5, 1, 0], ", "coupling: [[0, 0, 0], [0.5, 1, 0], ", "invertible 3 x 3 matrix"),
        ("link: column, xyz", "link: colum, xyz", "did you mean 'column'"),
        ("format: armid-robot/1", "format: armid-robot/9", "did you mean 'armid-robot/1'"),
        ("format: armid-robot/1\n", "", "key 'format' is missing"),
        ("name: lift", "name: waist", "joint 'waist' appears twice"),
        ("name: small", "name: small\nbase: {name: link2}", "link 'link2' appears twice"),
        ("gravity: [0, 0, -9.81]", "gravity: [0, 0, -9.81]\nmounting: upright", "vector together with mounting"),
        ("name: small", "name: &a small", "anchors and aliases"),
        ("name: small", "name: !!python/name:os.system small", "tag .* is not read"),
        ("joints:", "joints: [", "not valid YAML"),
        ("lengths: {d1: 0.4", "lengths: {q: 0.4", "'q' cannot name a length"),
    ],
)
def test_each_mistake_is_named(old, new, message):
    assert old in YAML
    with pytest.raises(RobotError, match=message):
        parse_yaml(YAML.replace(old, new, 1), "small.yaml")


def test_a_range_of_positions_is_its_two_ends():
    robot = parse_yaml(YAML.replace("lower: -0.2, upper: 0.5", "position: [-0.2, 0.5]"))
    assert (robot.joints[1].limits.lower, robot.joints[1].limits.upper) == (-0.2, 0.5)
    robot = parse_yaml(YAML.replace("position_deg: 170", "position_deg: [-90, 170]"))
    assert robot.joints[0].limits.lower == pytest.approx(-pi / 2)
    assert robot.joints[0].limits.upper == pytest.approx(170 * pi / 180)


def test_nesting_size_and_emptiness_are_refused():
    with pytest.raises(RobotError, match="nested too deeply"):
        parse_yaml("a: " + "[" * 500)
    with pytest.raises(RobotError, match="larger than"):
        parse_yaml("a: " + "x" * 3_000_000)
    with pytest.raises(RobotError, match="empty file"):
        parse_yaml("# nothing\n")
    with pytest.raises(RobotError, match="not a mapping"):
        parse_yaml("- 1\n- 2\n")


def test_impossible_inertia_loads_with_a_note():
    robot = parse_yaml(YAML.replace("standard: [2,", "standard: [-2,"))
    assert not robot.links[1].is_sound
    assert robot.links[0].is_sound
    codes = {note.subject: note.code for note in robot.notes}
    assert codes == {"link2": "inertial-impossible", "link3": "inertial-missing"}


@pytest.mark.parametrize("name", catalogue_names())
def test_the_written_file_is_the_same_arm(name):
    robot = load_robot(name)
    again = parse_yaml(to_yaml(robot))
    assert to_yaml(again) == to_yaml(robot)
    assert [j.transforms for j in again.joints] == [j.transforms for j in robot.joints]
    assert [j.limits for j in again.joints] == [j.limits for j in robot.joints]
    assert [j.drive for j in again.joints] == [j.drive for j in robot.joints]
    np.testing.assert_array_equal(again.inertial, robot.inertial)
    np.testing.assert_array_equal(again.gravity, robot.gravity)
    for a, b in zip(again.links, robot.links, strict=True):
        for g, h in zip(a.geometry, b.geometry, strict=True):
            np.testing.assert_allclose(g.T_link_shape, h.T_link_shape, atol=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_random_chains_survive_the_file(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 1 + seed % 7, coupled=seed % 2 == 0)
    again = parse_yaml(to_yaml(robot))
    q = rng.normal(size=(4, robot.n_joints))
    np.testing.assert_array_equal(forward_kinematics(again, q), forward_kinematics(robot, q))
    np.testing.assert_array_equal(
        inverse_dynamics(again, q, q, q, drives=True), inverse_dynamics(robot, q, q, q, drives=True)
    )


def test_names_with_odd_characters_survive_the_file():
    robot = parse_yaml(YAML)
    odd = replace(robot, name='a: "b" # c', links=(replace(robot.links[0], name="l, {1} é"), *robot.links[1:]))
    again = parse_yaml(to_yaml(odd))
    assert (again.name, again.link_names[0]) == (odd.name, odd.link_names[0])


def test_a_suspect_link_stays_suspect_in_the_file():
    robot = load_robot("panda")
    marked = replace(robot, links=(replace(robot.links[0], suspect=True), *robot.links[1:]))
    again = parse_yaml(to_yaml(marked))
    assert [link.is_sound for link in again.links] == [False, *[True] * 6]
    assert again.with_inertial(again.inertial).links[0].is_sound


@pytest.mark.parametrize("convention", list(Convention))
@pytest.mark.parametrize("kind", [JointKind.REVOLUTE, JointKind.PRISMATIC, None])
def test_rows_and_chains_are_inverse(convention, kind):
    row = Row(
        alpha=0.1,
        a=0.2,
        d=0.3,
        theta=0.4,
        a_symbol="a",
        d_symbol=None if kind is JointKind.PRISMATIC else "d",
        sign=1 if kind is None else -1,
    )
    assert row_of(transforms(row, convention, kind)) == (convention, row)


def test_a_chain_of_another_form_is_no_row():
    assert row_of((Elementary(motion=Move.RZ, variable=True),)) is None
