"""What data do not determine stays near a plausible prior: unknown rotors, shapes of links, weight against offset."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from armid.consistency.link_shapes import link_shapes, relative_spreads
from armid.consistency.plausible import absurd_bodies, inertia_at_joints
from armid.consistency.prior import nominal_prior, stand_in_body
from armid.identification.pipeline import run_identification
from armid.identification.plausibility import plausibility_checks
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.kernels.dynamics import mass_matrix
from armid.parameters.effects import Effects
from armid.parameters.inertial import from_centre_of_mass, to_centre_of_mass
from armid.robot import Link, Robot
from armid.robot.load import load_robot
from armid.robot.robot import Limits
from armid.rows.torque import TorqueRows
from support.arms import scara
from support.plausible_arms import drives, recorded, scaled_bodies

EFFECTS = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)


@cache
def heavy_rotors() -> tuple[Robot, Robot, Result]:
    """A described arm without rotors, its specimen with large ones, and what was identified of it."""
    robot = drives(load_robot("iiwa14"), rotor=0.0)
    truth = drives(scaled_bodies(robot, seed=1, spread=0.15), rotor=1.5)
    logs = [recorded(robot, truth, seed=seed) for seed in (3, 5)]
    settings = Identification(effects=EFFECTS, sensitivity=False)
    return robot, truth, run_identification(robot, logs[:1], logs[1:], settings)


def test_an_unknown_rotor_takes_what_links_cannot_explain():
    robot, truth, result = heavy_rotors()
    found = dict(zip(result.consistent.names, result.consistent.values.tolist(), strict=True))
    for i, joint in enumerate(truth.joints):
        assert found[f"joint{i + 1}.rotor_inertia"] == pytest.approx(joint.drive.rotor_inertia, rel=0.15)
    for i, link in enumerate(robot.links):
        assert found[f"link{i + 1}.mass"] == pytest.approx(float(link.inertial[0]), rel=1.0)


def test_a_described_rotor_is_kept_where_the_data_are_silent():
    robot = drives(load_robot("iiwa14"), rotor=0.5)
    names = TorqueRows(robot, EFFECTS).columns
    prior = nominal_prior(robot, names)
    column = names.index("joint1.rotor_inertia")
    assert prior.values[column] == robot.joints[0].drive.rotor_inertia
    bare = nominal_prior(drives(robot, rotor=0.0), names)
    assert bare.values[column] == 0.0
    assert bare.scale[column] > 20.0 * prior.scale[column]


def test_the_inertia_at_a_joint_is_the_median_of_the_mass_matrix():
    robot = load_robot("iiwa14")
    q = np.random.default_rng(1).uniform(robot.limit("lower"), robot.limit("upper"), size=(400, 7))
    M = np.median(np.diagonal(mass_matrix(robot, q), axis1=1, axis2=2), axis=0)
    # Sixty-four poses against four hundred others.
    assert np.allclose(inertia_at_joints(robot), M, rtol=0.35)


def test_a_stand_in_fills_the_shapes_of_its_link():
    robot = load_robot("iiwa14")
    for i, shape in enumerate(link_shapes(robot)):
        body = stand_in_body(robot, i)
        assert body[0] == pytest.approx(1.0)
        assert np.allclose(body[1:4], shape.centre)
        assert shape.drawn
        assert 0.2 < shape.spread(body) / shape.radius < 1.0


def test_links_without_shapes_are_as_large_as_their_joints_are_apart():
    robot = load_robot("iiwa14")
    bare = replace(robot, links=tuple(Link(link.name, link.inertial) for link in robot.links))
    for drawn, guessed in zip(link_shapes(robot), link_shapes(bare), strict=True):
        assert not guessed.drawn
        assert 0.4 < guessed.radius / drawn.radius < 6.0
    assert np.all(relative_spreads(bare, [link.inertial for link in bare.links]) < 1.5)


def test_a_description_with_absurd_bodies_is_said_to_have_them():
    robot = load_robot("iiwa14")
    assert absurd_bodies(robot) == ()
    wide = np.array(robot.links[5].inertial)
    wide[[4, 7, 9]] += 0.3
    heavy = np.array(robot.links[2].inertial) * 60.0
    links = list(robot.links)
    links[5], links[2] = replace(links[5], inertial=wide), replace(links[2], inertial=heavy)
    notes = absurd_bodies(replace(robot, links=tuple(links)))
    assert [note.subject for note in notes] == [links[2].name, links[5].name]
    assert "kg per m^3" in notes[0].message
    assert "as far out" in notes[1].message


def vertical_slide() -> Robot:
    """A SCARA whose slide carries 2 kg."""
    robot = scara()
    bodies = [(8.0, 0.2, 0.08), (5.0, 0.15, 0.04), (0.5, 0.0, 0.002), (2.0, 0.0, 0.01)]
    links = tuple(
        replace(link, inertial=from_centre_of_mass(m, np.array([x, 0.0, 0.0]), i * np.eye(3)))
        for link, (m, x, i) in zip(robot.links, bodies, strict=True)
    )
    room = (2.0, 2.0, 2.0, 0.15)
    joints = tuple(
        replace(joint, limits=Limits(lower=-r, upper=r, velocity=3.0, torque=100.0))
        for joint, r in zip(robot.joints, room, strict=True)
    )
    return replace(robot, links=links, joints=joints)


def test_the_weight_keeps_what_an_offset_could_take_and_the_alias_is_named():
    robot = vertical_slide()
    truth = drives(scaled_bodies(robot, seed=2, spread=0.0, factor=1.5), rotor=1.0)
    logs = [recorded(robot, truth, seed=seed) for seed in (3, 5)]
    result = run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS, sensitivity=False))
    found = dict(zip(result.consistent.names, result.consistent.values.tolist(), strict=True))
    assert found["link4.mass"] == pytest.approx(3.0, rel=0.05)
    assert abs(found["joint4.offset"]) < 1.0
    note = next(note for note in result.notes if note.code == "offset-is-weight")
    assert note.subject == "joint4.offset"
    assert "link4.mass" in note.message


def test_an_unreadable_mesh_leaves_the_joints(tmp_path: Path):
    file = tmp_path / "arm.urdf"
    file.write_text(
        '<robot name="a"><link name="b"/><link name="l"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>'
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>'
        '<visual><geometry><mesh filename="gone.stl"/></geometry></visual></link>'
        '<joint name="j" type="revolute"><parent link="b"/><child link="l"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>'
    )
    assert [shape.drawn for shape in link_shapes(load_robot(file))] == [False]


def failing(result: Result, robot: Robot, *, link: int, change: np.ndarray) -> dict[str, str]:
    """Codes and messages of the conditions that fail when one link of a sound result is changed by hand."""
    values = np.array(result.consistent.values)
    values[list(result.consistent.bodies[link].columns)] += change
    changed = replace(result.consistent, values=values)
    return {check.code: check.message for check in plausibility_checks(robot, changed) if not check.passed}


def test_the_gate_names_the_body_that_does_not_fit_its_link():
    robot, _, result = heavy_rotors()
    assert {"plausible-mass", "plausible-total-mass", "plausible-extent"} <= {check.code for check in result.checks}
    assert failing(result, robot, link=0, change=np.zeros(10)) == {}
    wide = failing(result, robot, link=5, change=np.array([0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0, 0.0, 2.0]))
    assert list(wide) == ["plausible-extent"]
    assert robot.links[5].name in wide["plausible-extent"]
    # A first link whose mass no torque shows, at twelve times what was expected.
    heavy = failing(result, robot, link=0, change=11.0 * np.array(robot.links[0].inertial))
    assert list(heavy) == ["plausible-mass"]
    assert "the data do not determine it" in heavy["plausible-mass"]


def test_all_links_together_are_held_against_all_shapes():
    robot, _, result = heavy_rotors()
    values = np.array(result.consistent.values)
    for body in result.consistent.bodies:
        values[list(body.columns)] *= 12.0
    failed = [c for c in plausibility_checks(robot, replace(result.consistent, values=values)) if not c.passed]
    assert "plausible-total-mass" in {check.code for check in failed}


def test_what_the_description_has_wrong_is_not_held_against_the_result():
    robot, _, result = heavy_rotors()
    links = list(robot.links)
    wide = np.array(links[5].inertial)
    wide[[4, 7, 9]] += 2.0
    links[5] = replace(links[5], inertial=wide)
    same = failing(
        result, replace(robot, links=tuple(links)), link=5, change=np.array([0.0, 0, 0, 0, 2.0, 0, 0, 2.0, 0, 2.0])
    )
    assert same == {}


def test_an_arm_as_light_as_its_description_is_not_held_against_the_result():
    """Shapes drawn large: a torso whose hull is mostly air makes the described arm itself lighter than foam."""
    robot, _, result = heavy_rotors()

    def failed(share: float, described: float) -> set[str]:
        bodies = [replace(link, inertial=described * np.array(link.inertial)) for link in robot.links]
        light = replace(result.consistent, values=share * np.array(result.consistent.values))
        arm = replace(robot, links=tuple(bodies))
        return {check.code for check in plausibility_checks(arm, light) if not check.passed}

    assert "plausible-total-mass" in failed(0.02, 1.0)
    assert "plausible-total-mass" not in failed(0.02, 0.02)
    assert "plausible-total-mass" in failed(0.01, 0.02)


def test_a_stated_mass_is_expected_though_no_body_has_the_inertia_beside_it():
    robot = load_robot("iiwa14")
    names = TorqueRows(robot, Effects()).columns
    mass, centre, _ = to_centre_of_mass(robot.links[2].inertial)

    def expected(stated: float) -> float:
        impossible = from_centre_of_mass(stated, centre, np.diag([-0.3, -0.2, 0.1]))
        links = list(robot.links)
        links[2] = replace(links[2], inertial=impossible)
        prior = nominal_prior(replace(robot, links=tuple(links)), names)
        return float(prior.values[list(names).index("link3.mass")])

    assert expected(1.4 * mass) == pytest.approx(1.4 * mass)
    # A thousand times what fits into its shapes says nothing.
    assert expected(1000.0 * mass) < 10.0 * mass
