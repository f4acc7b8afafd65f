"""Plain URDFs can be simulated: drives they do not describe are assumed, said, and overridden by flags."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.consistency.plausible import inertia_at_joints
from armid.errors import InputError
from armid.identification.same_arm import check_same_arm
from armid.parameters.inertial import from_centre_of_mass, inertial_problem, to_centre_of_mass
from armid.robot import Drive, Elementary, Move
from armid.robot.load import load_robot
from armid.simulation.assumed import AssumedDrives
from support.identified import URDF
from support.motions import sines

PLAIN = re.sub(r"\s*<dynamics[^>]*/>", "", URDF)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.urdf"
    path.write_text(PLAIN)
    return path


def test_a_plain_urdf_runs_and_says_what_was_assumed(plain: Path) -> None:
    arm = load_robot(plain)
    done = armid.simulate(plain, sines(arm, duration=0.3), sensors="perfect")
    codes = {note.code: note.message for note in done.notes}
    assert "--rotor-ratio" in codes["rotors-assumed"]
    assert "--friction-ratio" in codes["friction-assumed"]
    assert np.all(done.robot.drive("rotor_inertia") > 0.0)
    assert done.verdict == "trusted"


def test_assumed_drives_follow_what_the_joint_carries() -> None:
    arm = load_robot("iiwa14")
    bare = replace(arm, joints=tuple(replace(joint, drive=Drive()) for joint in arm.joints))
    made, _ = AssumedDrives(rotor_ratio=0.5, friction_ratio=0.1).apply(bare)
    carried = inertia_at_joints(bare)
    expected = 0.5 * np.maximum(carried, 0.01 * carried.max())
    assert made.drive("rotor_inertia") == pytest.approx(expected)
    assert np.all(made.drive("coulomb") == made.drive("viscous"))


def test_what_the_description_says_is_kept_and_nothing_is_assumed_when_not_wanted() -> None:
    arm = load_robot("iiwa14")
    same, notes = AssumedDrives().apply(arm)
    assert notes == ()
    assert np.array_equal(same.drive("rotor_inertia"), arm.drive("rotor_inertia"))
    bare = replace(arm, joints=tuple(replace(joint, drive=Drive()) for joint in arm.joints))
    none, notes = AssumedDrives(0.0, 0.0).apply(bare)
    assert notes == ()
    assert not none.drive("rotor_inertia").any()
    with pytest.raises(InputError, match="--rotor-ratio"):
        AssumedDrives(-1.0)


def test_a_robot_object_is_taken_as_it_is() -> None:
    arm = load_robot("iiwa14")
    bare = replace(arm, joints=tuple(replace(joint, drive=Drive(rotor_inertia=0.3)) for joint in arm.joints))
    done = armid.simulate(bare, sines(arm, duration=0.1), sensors="perfect")
    assert not done.robot.drive("coulomb").any()
    assert all("assumed" not in note.code for note in done.notes)


def test_a_link_without_values_is_carried_by_its_rotor(plain: Path, tmp_path: Path) -> None:
    start, end = PLAIN.index("<inertial>", PLAIN.index('<link name="fore">')), PLAIN.rindex("</inertial>")
    path = tmp_path / "light.urdf"
    path.write_text(PLAIN[:start] + PLAIN[end + len("</inertial>") :])
    done = armid.simulate(path, sines(load_robot(path), duration=0.1), sensors="perfect")
    assert any(note.code == "links-weightless" and "fore" in note.message for note in done.notes)


def test_two_arms_with_the_same_joint_names_are_not_compared() -> None:
    first = load_robot("iiwa14")
    longer = list(first.joints)
    longer[3] = replace(longer[3], transforms=(Elementary(motion=Move.TZ, value=0.1), *longer[3].transforms))
    other = replace(first, name="longer", joints=tuple(longer))
    check_same_arm("same", first, first)
    with pytest.raises(InputError, match=r"longer.*100 mm.*compare identifications of"):
        check_same_arm("other", first, other)
    nudged = list(first.joints)
    nudged[3] = replace(nudged[3], transforms=(Elementary(motion=Move.TZ, value=0.002), *nudged[3].transforms))
    check_same_arm("calibrated", first, replace(first, joints=tuple(nudged)))
    renamed = replace(first, joints=tuple(replace(j, name=f"x{i}") for i, j in enumerate(first.joints)))
    with pytest.raises(InputError, match="with joints x0"):
        check_same_arm("renamed", first, renamed)


def test_a_body_that_cannot_exist_is_simulated_as_the_nearest_that_can() -> None:
    arm = load_robot("iiwa14")
    impossible = np.array(arm.links[2].inertial)
    mass, centre, _ = to_centre_of_mass(impossible)
    impossible = from_centre_of_mass(mass, centre, np.diag([-0.3, -0.2, 0.1]))
    links = list(arm.links)
    links[2] = replace(links[2], inertial=impossible)
    made, notes = AssumedDrives().apply(replace(arm, links=tuple(links)))
    assert [note.code for note in notes] == ["bodies-assumed"]
    assert arm.links[2].name in notes[0].message
    assert inertial_problem(made.links[2].inertial) is None
    kept_mass, kept_centre, _ = to_centre_of_mass(made.links[2].inertial)
    assert kept_mass == pytest.approx(mass)
    assert kept_centre == pytest.approx(centre)
    others = [(a.inertial, b.inertial) for k, (a, b) in enumerate(zip(made.links, arm.links, strict=True)) if k != 2]
    assert all(np.array_equal(now, was) for now, was in others)


def test_moments_that_barely_break_the_triangle_barely_change() -> None:
    arm = load_robot("iiwa14")
    mass, centre, _ = to_centre_of_mass(arm.links[2].inertial)
    links = list(arm.links)
    links[2] = replace(links[2], inertial=from_centre_of_mass(mass, centre, np.diag([0.05, 0.1, 0.152])))
    made, _ = AssumedDrives().apply(replace(arm, links=tuple(links)))
    assert to_centre_of_mass(made.links[2].inertial)[2] == pytest.approx(np.diag([0.05, 0.1, 0.152]), abs=0.01)
