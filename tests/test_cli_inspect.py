"""`armid inspect` as a person and a program use it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.documents import plain
from armid.motions.fourier import FourierTrajectory
from armid.motions.trajectory_files import save_trajectory
from armid.robot.load import load_robot


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(application(), ["inspect", *arguments])
    return result.exit_code, result.stdout, result.stderr


def as_json(*arguments: str) -> dict:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_the_contract() -> None:
    found = as_json("iiwa14", "--friction", "viscous,coulomb")
    assert found["standard_parameters"] == 84
    assert found["base_parameters"] == 57 == len(found["base"])
    assert "link1.mass" in found["unidentifiable"]
    assert found["per_channel"] == [40, 44, 37, 30, 23, 16, 9]
    entry = next(b for b in found["base"] if b["name"] == "link3.Iyz")
    assert entry["expression"] == "link3.Iyz + d4*link4.mz"
    assert entry["terms"] == pytest.approx({"link3.Iyz": 1.0, "link4.mz": 0.2155})
    assert found["categories"]["link2.mx"] == "alone"
    assert found["categories"]["link2.my"] == "in combination"
    assert found["categories"]["link1.mx"] == "not at all"
    assert found["rank"]["gap"] > 1e9


@pytest.mark.parametrize(
    ("arguments", "standard", "base"),
    [
        (("lwr4plus", "--friction", "viscous,coulomb,offset", "--torques", "both", "--payload", "both"), 136, 102),
        (("lwr4plus", "--friction", "viscous,coulomb,offset", "--torques", "both", "--payload", "loaded"), 136, 92),
        (("lwr4-dh", "--quantity", "gravity"), 70, 12),
        (("lwr4-dh", "--quantity", "inertia-matrix"), 70, 39),
        (("lwr4-dh", "--quantity", "gravity,inertia-matrix"), 70, 43),
        (("mabi-max100", "--quantity", "axis-inertia"), 66, 32),
        (("mabi-max100", "--quantity", "pose"), 42, 30),
        (("mabi-max100", "--quantity", "pose", "--measure", "points"), 42, 27),
        (("mabi-max100", "--quantity", "pose", "--measure", "points", "--points", "2"), 42, 29),
        (("lwr4plus", "--quantity", "pose"), 48, 34),
        (("lwr4plus", "--quantity", "pose", "--errors", "described"), 36, 32),
        (("lwr4plus", "--quantity", "pose", "--errors", "described", "--frame", "led_fixture"), 36, 33),
        (("cylindrical", "--friction", "none"), 30, 5),
        (("cmu-dd-arm2", "--friction", "none"), 30, 11),
        (("iiwa14",), 91, 64),
        (("panda", "--torques", "difference", "--friction", "viscous"), 14, 14),
    ],
)
def test_counts(arguments: tuple[str, ...], standard: int, base: int) -> None:
    found = as_json(*arguments)
    assert (found["standard_parameters"], found["base_parameters"]) == (standard, base)


def test_people_get_a_table_on_stdout() -> None:
    code, out, err = run("cylindrical", "--friction", "none")
    assert code == 0
    assert err == ""
    assert "5 base parameters out of 30" in out
    assert "not at all" in out
    assert "Izz₁" in out


def test_the_answer_of_the_library_is_what_the_command_prints() -> None:
    found = armid.inspect("cylindrical", friction="viscous", rotor_inertia=True)
    assert as_json("cylindrical", "--friction", "viscous", "--rotor-inertia") == {**plain(found.as_dict()), "files": []}
    assert run("cylindrical", "--friction", "viscous", "--rotor-inertia")[1] == found.summary(notes=False) + "\n"


def test_a_rank_that_only_the_tolerance_decides_is_not_trusted() -> None:
    code, out, _ = run("iiwa14", "--tolerance", "0.15")
    assert code == 3
    assert "another tolerance gives another number" in out


def test_latex_and_files(tmp_path: Path) -> None:
    code, out, _ = run("iiwa14", "--friction", "none", "--latex", "--out", str(tmp_path), "--closed-form", "gravity")
    assert code == 0
    assert out.startswith(r"\begin{align*}")
    assert {p.name for p in tmp_path.iterdir()} == {
        "answer.json",
        "answer.npz",
        "inspect.json",
        "base_parameters.tex",
        "gravity.tex",
        "gravity.py",
        "gravity.sympy",
        ".armid.json",
    }
    assert json.loads((tmp_path / "inspect.json").read_text())["base_parameters"] == 43


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("iiwa14", "--tolerance", "2"), "outside (0, 1)"),
        (("iiwa14", "--quantity", "pose,torque"), "inspected apart"),
        (("iiwa14", "--closed-form", "gravity"), "--out"),
        (("iiwa14", "--tip", "hand"), "no frame named 'hand'"),
        (("iiwa14", "--base", "floor"), "its own base"),
        (("cylindrical", "--out", "/dev/null/folder"), "/dev/null is a file"),
        (("no-such-robot",), "no-such-robot"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run(*arguments)
    assert code == 1
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "word", "known"),
    [
        ("--friction", "sticky", "viscous"),
        ("--quantity", "current", "gravity"),
        ("--quantity", "none", "gravity"),
        ("--torques", "left", "difference"),
        ("--payload", "maybe", "loaded"),
        ("--closed-form", "gravity,weight", "coriolis"),
        ("--measure", "colour", "distance"),
        ("--errors", "all", "complete"),
    ],
)
def test_unknown_words_are_refused_before_the_robot_is_read(option: str, word: str, known: str) -> None:
    code, out, err = run("no-such-robot", option, word)
    assert code == 2
    assert out == ""
    assert known in err
    assert "no-such-robot" not in err


def test_a_robot_without_a_moving_joint(tmp_path: Path) -> None:
    path = tmp_path / "stiff.urdf"
    path.write_text("<robot name='stiff'><link name='base'/></robot>")
    code, _, err = run(str(path))
    assert code == 1
    assert "joint" in err


def test_a_quantity_that_identifies_nothing(tmp_path: Path) -> None:
    path = tmp_path / "flat.urdf"
    path.write_text(
        "<robot name='flat'><link name='base'/><link name='arm'/>"
        "<joint name='j' type='continuous'><parent link='base'/><child link='arm'/><axis xyz='0 0 1'/></joint></robot>"
    )
    code, _, err = run(str(path), "--quantity", "gravity")
    assert code == 1
    assert "gravity identifies nothing" in err


TWO_ARMS = (
    "<robot name='torso'><link name='base'/>"
    + "".join(
        f"<link name='{side}1'/><link name='{side}2'>{inertial}</link>"
        f"<joint name='{side}_a' type='continuous'><parent link='base'/><child link='{side}1'/><axis xyz='0 0 1'/></joint>"
        f"<joint name='{side}_b' type='continuous'><parent link='{side}1'/><child link='{side}2'/><axis xyz='1 0 0'/></joint>"
        for side, inertial in (
            (
                "left",
                "<inertial><mass value='-1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>",
            ),
            ("right", ""),
        )
    )
    + "</robot>"
)


def test_base_and_tip_of_a_branched_urdf(tmp_path: Path) -> None:
    path = tmp_path / "torso.urdf"
    path.write_text(TWO_ARMS)
    code, _, err = run(str(path))
    assert code == 1
    assert "left2, right2" in err
    assert as_json(str(path), "--tip", "left2", "--friction", "none")["standard_parameters"] == 20
    assert as_json(str(path), "--base", "right1", "--tip", "right2", "--friction", "none")["standard_parameters"] == 10


def test_impossible_inertia_is_said(tmp_path: Path) -> None:
    path = tmp_path / "torso.urdf"
    path.write_text(TWO_ARMS)
    (note,) = as_json(str(path), "--tip", "left2")["notes"]
    assert (note["code"], note["subject"]) == ("inertial-impossible", "left2")


def test_what_a_planned_motion_excites(tmp_path: Path) -> None:
    robot = load_robot("iiwa14")
    rng = np.random.default_rng(0)
    sine, cosine = 0.1 * rng.normal(size=(2, 7, 5))
    rich = FourierTrajectory(robot.joint_names, 10.0, np.zeros(7), sine, cosine)
    path = save_trajectory(rich, tmp_path / "rich.json")
    found = as_json("iiwa14", "--friction", "none", "--trajectory", str(path))["excitation"]
    assert found["persistent"]
    assert 0.0 < found["alpha"] < 1.0 < found["beta"]
    assert len(found["parameters"]) == 43
    # Joint 7 standing still leaves its own inertia unseen, and nothing else about the weight of link 7.
    sine[6] = cosine[6] = 0.0
    still = FourierTrajectory(robot.joint_names, 10.0, np.zeros(7), sine, cosine)
    path = save_trajectory(still, tmp_path / "still.json")
    found = as_json("iiwa14", "--friction", "viscous", "--trajectory", str(path))["excitation"]
    assert not found["persistent"]
    assert "joint7.viscous" in found["not_excited"]
    entry = next(p for p in found["parameters"] if p["name"] == "joint7.viscous")
    assert entry["standard_deviation"] is None  # infinite
    code, out, _ = run("iiwa14", "--friction", "viscous", "--trajectory", str(path))
    assert code == 0
    assert "not excited" in out
    assert "joint7.viscous" in out


def test_what_a_recorded_motion_excites(tmp_path: Path) -> None:
    robot = load_robot("cmu-dd-arm2")
    t = np.arange(0.0, 6.0, 0.005)
    q = 0.4 * np.sin(2 * np.pi * t[:, np.newaxis] * np.array([0.5, 0.7, 1.1]))
    table = np.column_stack([t, q, np.cos(q)])
    header = ",".join(["time", *(f"q_{n}" for n in robot.joint_names), *(f"tau_{n}" for n in robot.joint_names)])
    path = tmp_path / "log.csv"
    np.savetxt(path, table, delimiter=",", header=header, comments="")
    rigid = ("cmu-dd-arm2", "--friction", "none")
    found = as_json(*rigid, "--log", str(path))["excitation"]
    assert [p["name"] for p in found["parameters"]] == [b["name"] for b in as_json(*rigid)["base"]]
    assert found["persistent"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--log", "none.csv"), "none.csv"),
        (("--trajectory", "none.json"), "none.json"),
        (("--log", "a.csv", "--trajectory", "b.json"), "one motion at a time"),
    ],
)
def test_motions_that_cannot_be_read(arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run("cylindrical", *arguments)
    assert code == 1
    assert message in err
    assert err.count("\n") == 1


def test_minimal_models_of_the_axes_are_printed(tmp_path: Path) -> None:
    code, out, err = run(
        "mabi-max100", "--quantity", "axis-inertia", "--closed-form", "axis-inertia", "--out", str(tmp_path)
    )
    assert code == 0
    fifth = out.partition("axis 5: 3 base functions")[2].partition("axis 6")[0]
    for function in ("cos(q6)^2", "sin(q6)*cos(q6)", "1"):
        assert f"\n{function} " in fifth
    assert "axis_inertia_minimal.txt" in err.replace("\n", "")
