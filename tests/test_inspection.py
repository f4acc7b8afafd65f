"""`armid.inspect`: what can be identified, as one answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.documents import plain
from armid.errors import InputError, UnknownNameError
from armid.identifiability.base import Category
from armid.motions.fourier import FourierTrajectory
from armid.motions.trajectory_files import save_trajectory
from armid.outcome import Verdict
from armid.parameters.effects import Effects
from armid.robot.catalogue import catalogue_names
from armid.rows.quantity import Quantity
from support.arms import seed_iiwa


def motion(robot: armid.Robot, *, still: int | None = None) -> FourierTrajectory:
    """A rich motion; one joint may stand still."""
    n = robot.n_joints
    sine, cosine = 0.1 * np.random.default_rng(0).normal(size=(2, n, 5))
    if still is not None:
        sine[still] = cosine[still] = 0.0
    return FourierTrajectory(robot.joint_names, 10.0, np.zeros(n), sine, cosine)


@pytest.fixture(scope="module")
def found() -> armid.Inspection:
    return armid.inspect("iiwa14", friction="viscous,coulomb")


def test_fifty_seven_of_eighty_four(found: armid.Inspection) -> None:
    assert (found.standard_parameters, found.base_parameters) == (84, 57)
    assert "57 base parameters out of 84" in str(found)
    assert "my₂ + mz₃ + d₃ m₃" in str(found)
    assert found.unidentifiable[0] == "link1.mass"
    assert found.verdict is Verdict.TRUSTED


def test_parameters_are_rows_a_person_can_sort(found: armid.Inspection) -> None:
    row = found.parameters["link3.Iyz"]
    assert (row.unit, row.identifiable, row.expression) == ("kg m^2", Category.COMBINED, "link3.Iyz + d4*link4.mz")
    assert found.parameters["link1.mass"].identifiable is Category.NOT_AT_ALL
    assert found.parameters["link4.mz"].enters == "link3.my, link3.Iyz"
    assert len(found.parameters) == 84


def test_a_path_a_name_and_an_arm_give_the_same(tmp_path: Path) -> None:
    robot = armid.load_robot("panda")
    path = tmp_path / "copy.yaml"
    path.write_text(armid.robot.to_yaml(robot))
    texts = [json.dumps(plain(armid.inspect(arm, friction="none").as_dict()["base"])) for arm in ("panda", path, robot)]
    assert texts[0] == texts[1] == texts[2]


def test_words_and_objects_give_the_same() -> None:
    words = armid.inspect("cylindrical", friction="viscous", quantity="gravity,inertia-matrix")
    objects = armid.inspect(
        "cylindrical", effects=Effects(viscous=True), quantity=[Quantity.GRAVITY, Quantity.INERTIA_MATRIX]
    )
    assert words.as_dict() == objects.as_dict()


def test_friction_is_that_of_every_verb_by_default() -> None:
    assert armid.inspect("iiwa14").effects == armid.Effects(viscous=True, coulomb=True, offset=True)


def test_the_answer_is_one_of_the_family(found: armid.Inspection, tmp_path: Path) -> None:
    assert repr(found) == "<Inspection iiwa14, torque: 57 base parameters out of 84 standard ones, trusted>"
    assert found._repr_html_().count("<table>") == 3
    assert found.figures() == ("singular-values", "channels")
    assert len(found.plot("channels").data[0].y) == 7
    assert "what can be identified" in found.report(tmp_path / "page.html").read_text()
    assert found.provenance.inputs[0].path == "catalogue:iiwa14"


def test_saved_files_hold_the_answer_and_its_closed_forms(tmp_path: Path) -> None:
    answer = armid.inspect("cylindrical", closed_forms="gravity,axis-inertia")
    files = answer.save(tmp_path / "new" / "folder")
    assert {file.name for file in files} == {
        "answer.json",
        "answer.npz",
        "inspect.json",
        "base_parameters.tex",
        *(f"{name}.{kind}" for name in ("gravity", "axis_inertia") for kind in ("tex", "py", "sympy")),
        "axis_inertia_minimal.tex",
        "axis_inertia_minimal.txt",
    }
    assert json.loads(files[0].read_text()) == plain(answer.as_dict())
    assert "axis 1: " in str(answer)


@pytest.mark.parametrize("name", catalogue_names())
def test_the_rank_of_every_arm_of_the_catalogue_is_clear(name: str) -> None:
    (check,) = armid.inspect(name).checks
    assert check.passed, check.message


def test_a_rank_decided_by_the_tolerance_is_not_to_be_trusted() -> None:
    answer = armid.inspect("iiwa14", tolerance=0.15)
    assert answer.verdict is Verdict.UNTRUSTED
    assert answer.checks[0].code == "rank-gap"


def test_a_motion_that_leaves_a_joint_still_is_warned_of(tmp_path: Path) -> None:
    robot = armid.load_robot("iiwa14")
    moved = armid.inspect(robot, trajectory=motion(robot))
    assert [check.passed for check in moved.checks] == [True, True]
    path = save_trajectory(motion(robot, still=6), tmp_path / "still.json")
    still = armid.inspect(robot, trajectory=path, noise="0.1")
    assert still.verdict is Verdict.TRUSTED
    assert not still.checks[1].passed
    assert "joint7.viscous" in still.checks[1].message
    assert still.figures()[-1] == "excitation"
    assert [file.role for file in still.provenance.inputs] == ["robot", "trajectory"]


def test_torque_that_drowns_in_noise_is_warned_of() -> None:
    from armid.logs.log import Channel, Log

    robot = armid.load_robot("cmu-dd-arm2")
    t = np.arange(0.0, 6.0, 0.005)
    q = 0.4 * np.sin(2 * np.pi * t[:, np.newaxis] * np.array([0.5, 0.7, 1.1]))
    log = Log(
        name="made", joints=robot.joint_names, time=t, channels={Channel.POSITION: q, Channel.LINK_TORQUE: np.cos(q)}
    )
    quiet = armid.inspect(robot, friction="none", log=log, noise=1e-6)
    assert quiet.checks[2].passed
    loud = armid.inspect(robot, friction="none", log=log, noise=2.0)
    assert not loud.checks[2].passed
    assert "lost in it" in loud.checks[2].message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": 0.1}, "without a motion"),
        ({"noise": "much", "trajectory": "any.json"}, "not a list of numbers"),
        ({"log": "a.csv", "trajectory": "b.json"}, "one motion at a time"),
        ({"quantity": "gravity", "log": "a.csv"}, "torque alone"),
        ({"quantity": "pose", "closed_forms": "gravity"}, "kinematic"),
    ],
)
def test_contradictions_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        armid.inspect("cylindrical", **options)


@pytest.mark.parametrize("option", ["friction", "quantity", "torques", "payload", "measure", "errors", "closed_forms"])
def test_unknown_words_name_those_that_exist(option: str) -> None:
    with pytest.raises(UnknownNameError, match="sticky"):
        armid.inspect("cylindrical", **{option: "sticky"})


def test_a_trajectory_of_another_arm_is_refused() -> None:
    with pytest.raises(InputError, match="moves"):
        armid.inspect("cylindrical", trajectory=motion(armid.load_robot("iiwa14")))


def test_points_may_be_given_where_they_are() -> None:
    one = armid.inspect("mabi-max100", quantity="pose", measure="points", points=[(0.1, 0.05, 0.02)])
    assert (one.standard_parameters, one.base_parameters) == (42, 27)
    assert one.base.names[0] in str(one)


def test_an_arm_in_memory_with_symbols() -> None:
    assert armid.inspect(seed_iiwa(), friction="none").base_parameters == 43
