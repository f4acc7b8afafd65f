"""Limits of a file or of words: read, narrowed, refused when wider; the same for design, plan and simulate."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest

import armid
from armid.errors import ArmidError, InputError
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import DEFAULT_MARGIN, motion_limits
from armid.motions.limits_file import with_limits
from armid.robot.load import load_robot
from armid.simulation.motions import CommandError
from support.identified import trusted

TEXT = """
format: armid-limits/1
all: {acceleration: 4.0}
joints:
  joint2: {lower: -0.5, upper: 0.6, torque: 100.0}
  joint3: {acceleration: 3.0}
"""


def test_a_file_narrows_what_it_names_and_words_come_before_it(tmp_path):
    path = tmp_path / "limits.yaml"
    path.write_text(TEXT)
    arm = load_robot("iiwa14")
    own = with_limits(arm, path, max_jerk="50")
    assert own.limit("acceleration").tolist() == [4.0, 4.0, 3.0, 4.0, 4.0, 4.0, 4.0]
    assert (own.limit("lower")[1], own.limit("upper")[1], own.limit("torque")[1]) == (-0.5, 0.6, 100.0)
    assert (own.limit("jerk") == 50.0).all()
    assert (own.limit("velocity") == arm.limit("velocity")).all()
    each = with_limits(arm, path, max_acceleration=np.arange(1.0, 8.0))
    assert each.limit("acceleration").tolist() == list(range(1, 8))
    assert with_limits(arm) is arm


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("format: armid-limits/2", "armid-limits/1"),
        ("all: {torque: 3.0}", "write `format: armid-limits/1` as the first line"),
        ("format: armid-limits/1\njoints: {elbow: {torque: 1}}", "elbow"),
        ("format: armid-limits/1\nall: {speed: 1}", "speed"),
        ("format: armid-limits/1\njoints: {joint1: {upper: 9}}", "wider than those of the description"),
        ("format: armid-limits/1\nall: {acceleration: -1}", "must be positive"),
    ],
)
def test_bad_files_are_named(tmp_path, text, match):
    path = tmp_path / "limits.yaml"
    path.write_text(text)
    with pytest.raises(ArmidError, match=match):
        with_limits(load_robot("iiwa14"), path)


def test_a_wrong_number_of_values_is_named():
    with pytest.raises(InputError, match="max torque"):
        with_limits(load_robot("iiwa14"), max_torque=[1.0, 2.0])


def test_designed_motions_keep_them():
    quick = {"period": 6.0, "harmonics": 3, "seconds": None, "starts": 1, "workers": 1}
    design = armid.design_motion("cylindrical", max_acceleration="0.7", **quick)
    assert np.abs(design.excitation.sample(np.linspace(0, 6, 500))[2]).max() <= 0.7 * (1 - DEFAULT_MARGIN) + 1e-9
    assert not any(note.subject == "acceleration" for note in design.notes)


def test_simulated_commands_keep_them():
    arm = load_robot("cylindrical")
    middle = motion_limits(arm)[0].middle
    motion = FourierTrajectory(arm.joint_names, 2.0, middle, np.full((3, 1), 0.05), np.zeros((3, 1)))
    with pytest.raises(CommandError, match="acceleration"):
        armid.simulate(arm, motion, max_acceleration=0.01)


def test_plans_assume_what_designs_assume():
    result = trusted()
    path = np.array([[0.0, 0.0, 0.0], [0.5, 0.4, 0.3], [0.8, 0.2, -0.2]])
    plan = armid.plan_motion(result, path, force=True, collisions=False)
    assumed = motion_limits(result.robot)[0].acceleration
    t = np.linspace(0.0, plan.trajectory.duration, 400)
    assert (np.abs(plan.trajectory.sample(t)[2]) <= assumed * 1.001).all()
    assert any(note.subject == "acceleration" for note in plan.notes)
    slower = armid.plan_motion(result, path, force=True, collisions=False, max_acceleration="1.0")
    assert slower.trajectory.duration > plan.trajectory.duration
    assert signature(armid.plan_motion).parameters["margin"].default == DEFAULT_MARGIN
