"""A certified motion within seconds, and what a design says about the description it rests on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.design.candidate import Work, Workshop
from armid.design.design import design_motion
from armid.design.room import easiest_centres, easiest_pose
from armid.design.search import Budget, SearchState
from armid.design.statement import DesignSettings, excitation_problem, families_of
from armid.errors import InputError
from armid.identifiability.smooth import SmoothCriterion
from armid.kernels.evaluate import evaluate_rows
from armid.motions.limits import InfeasibleError, motion_limits
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.nominal_torque import NominalTorque
from armid.studies.arms import package_arms


def changed(arm: Robot, link: int, inertial: np.ndarray) -> Robot:
    links = list(arm.links)
    links[link] = replace(links[link], inertial=inertial)
    return replace(arm, links=tuple(links))


def test_the_first_piece_of_work_is_a_certified_motion_worth_running():
    arm, settings = load_robot("iiwa14"), DesignSettings()
    workshop = Workshop(excitation_problem(arm, settings, None)[0], families_of(arm, settings), 0)
    plan = SearchState(budget=Budget(60.0), families=1)
    task = plan.task()
    assert task is not None
    assert task.work is Work.SKETCH
    sketch = workshop.do(task)
    assert sketch.feasible
    plan.record(task, sketch)
    assert plan.best is sketch
    assert plan.progress().best == sketch.condition_number < 1000.0
    assert plan.counts == (0, 0)
    # It is asked for once, is never taken for a start that was explored, and gives way to what is better.
    following = plan.task()
    assert following is not None
    assert (following.work, following.start) == (Work.EXPLORE, 0)
    plan.polished.append(replace(sketch, start=3, objective=sketch.objective - 1.0))
    assert plan.best is plan.polished[0]


def test_a_search_counted_in_starts_makes_no_sketch():
    plan = SearchState(budget=Budget(None, starts=2), families=1)
    tasks = [plan.task(), plan.task()]
    assert [task.work for task in tasks if task is not None] == [Work.EXPLORE, Work.EXPLORE]


def test_a_second_is_enough_for_a_design():
    found = design_motion("panda", seconds=1.0, workers=1)
    assert found.certificate.feasible
    assert found.search.history
    assert found.search.best in found.search.pool


def test_nothing_is_certified_with_a_negative_mass():
    arm = load_robot("panda")
    body = np.array(arm.links[3].inertial)
    body[0] = -2.0
    with pytest.raises(InputError, match="has a mass of -2 kg: torque limits cannot be checked"):
        design_motion(changed(arm, 3, body), seconds=1.0, workers=1)


def test_impossible_bodies_are_said_where_torque_is_checked_with_them():
    arm = load_robot("panda")
    wrong = np.array(arm.links[2].inertial)
    wrong[4:] *= -1.0
    notes = excitation_problem(changed(arm, 2, wrong), DesignSettings(), None)[2]
    (note,) = [note for note in notes if note.code == "torque-partly-checked"]
    assert note.message.startswith(f"no body has the inertial values of {arm.links[2].name}: torque limits")
    assert not [n for n in excitation_problem(arm, DesignSettings(), None)[2] if n.code == "torque-partly-checked"]


def test_drives_without_friction_and_rotors_are_said_where_torque_is_checked_without_them():
    arm = load_robot("panda")
    one, *others = arm.joints
    bare = replace(one, drive=replace(one.drive, viscous=0.0, coulomb=0.0, rotor_inertia=0.0))
    notes = excitation_problem(replace(arm, joints=(bare, *others)), DesignSettings(), None)[2]
    (note,) = [note for note in notes if note.code == "drives-bare"]
    assert note.message.startswith(f"no friction and no rotor inertia described for {one.name}: torque limits")
    assert not [n for n in excitation_problem(arm, DesignSettings(), None)[2] if n.code == "drives-bare"]


@pytest.mark.parametrize("free", [1, 7])
def test_joints_without_torque_limit_are_named(free: int):
    arm = load_robot("panda")
    joints = tuple(
        replace(joint, limits=replace(joint.limits, torque=np.inf)) if k < free else joint
        for k, joint in enumerate(arm.joints)
    )
    notes = excitation_problem(replace(arm, joints=joints), DesignSettings(), None)[2]
    (note,) = [note for note in notes if note.code == "torque-unlimited"]
    assert all((joint.name in note.message) == (k < free) for k, joint in enumerate(arm.joints))
    assert "--max-torque" in note.message


def test_what_is_odd_about_a_description_is_said_with_the_design(tmp_path):
    """Limits in degrees are no limits: whoever runs the motion must know."""
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="a"><link name="b"/><link name="l"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>'
        '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="revolute"><parent link="b"/><child link="l"/><axis xyz="0 1 0"/>'
        '<limit lower="-170" upper="170" velocity="2" effort="9"/></joint></robot>'
    )
    notes = excitation_problem(load_robot(path), DesignSettings(), None)[2]
    assert "limits-degrees" in [note.code for note in notes]


def test_a_joint_held_by_its_limits_is_named(tmp_path):
    path = tmp_path / "arm.urdf"
    text = (
        '<robot name="a"><link name="b"/><link name="l"/><joint name="elbow" type="revolute"><parent link="b"/>'
        '<child link="l"/><axis xyz="0 1 0"/><limit lower="LOW" upper="0.5" velocity="2" effort="9"/></joint></robot>'
    )
    path.write_text(text.replace("LOW", "0.5"))
    with pytest.raises(
        InfeasibleError, match=r"'elbow' has both position limits at 0.5 and cannot move.*--limits-file"
    ):
        motion_limits(load_robot(path))
    path.write_text(text.replace("LOW", "0").replace('"0.5"', '"0"'))
    limits, notes = motion_limits(load_robot(path))
    assert limits.upper[0] == pytest.approx(2.0 * np.pi)
    assert {note.subject for note in notes} >= {"lower", "upper"}


def test_a_body_that_cannot_be_meant_is_named_where_torque_does_not_suffice():
    arm = load_robot("ur10e")
    heavy = arm.links[2].inertial
    assert heavy is not None
    with pytest.raises(
        InfeasibleError, match=rf"correct the torque limits.*link {arm.links[2].name!r} is no plausible body"
    ):
        design_motion(changed(arm, 2, 10000.0 * heavy), seconds=1.0, workers=1)


def test_of_certified_motions_the_asked_condition_number_itself_is_compared():
    arm = load_robot("panda")
    for criterion, compared in ((SmoothCriterion.CONDITION, True), (SmoothCriterion.DEVIATIONS, False)):
        settings = DesignSettings(criterion=criterion)
        workshop = Workshop(excitation_problem(arm, settings, None)[0], families_of(arm, settings), 0)
        task = SearchState(budget=Budget(60.0), families=1).task()
        assert task is not None
        found = workshop.do(task)
        assert bool(np.isclose(found.objective, np.log(found.condition_number), rtol=1e-12)) is compared


class NarrowScene:
    """A pair of neighbours that never parts by more than a centimetre, by a hair more the further the second joint leans."""

    def __len__(self) -> int:
        return 1

    def clearances(self, poses: np.ndarray) -> np.ndarray:
        return 0.01 + 1e-4 * np.abs(poses[:, 1:2])


def test_a_hair_of_clearance_does_not_outweigh_the_torque_of_a_pose():
    problem = excitation_problem(load_robot("panda"), DesignSettings(), None)[0]
    upright, leaning = np.array(problem.limits.middle), np.array(problem.limits.middle)
    upright[1], leaning[1] = 0.0, 1.5
    # The limit leaves a fifth of the torque in the leaning pose.
    problem = replace(problem, scene=NarrowScene())  # type: ignore[arg-type]
    x = np.hstack([leaning, np.zeros(14)])[None]
    held = np.abs(evaluate_rows(NominalTorque(problem.robot), x)[0, :, 0])
    torque = np.where(np.arange(7) == 1, held / 0.8, 1e3)
    problem = replace(problem, limits=replace(problem.limits, torque=torque))
    own, _ = easiest_centres(problem, np.array([leaning, upright]))
    assert np.array_equal(own, upright)
    assert np.array_equal(easiest_pose(problem, np.array([leaning, upright])), leaning)  # by metres alone
    # A motion without any easy pose of its own is given one.
    own, other = easiest_centres(problem, np.array([leaning]))
    assert np.array_equal(own, leaning)
    assert abs(other[1]) < 1.0


@pytest.mark.parametrize("name", ["talos_left_arm.urdf", "pr2.urdf"])
def test_the_first_sketch_fits_an_arm_that_is_weak_and_narrow(name: str):
    try:
        (file,) = [file for file in package_arms(name) if file.path.name == name]
    except InputError:
        pytest.skip("example-robot-data is not installed")
    arm, settings = file.robot, DesignSettings()
    assert arm is not None
    workshop = Workshop(excitation_problem(arm, settings, None)[0], families_of(arm, settings), 0)
    task = SearchState(budget=Budget(60.0), families=1).task()
    assert task is not None
    found = workshop.do(task)
    assert found.feasible
    assert found.start == task.start
