"""`armid recover` from outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.documents import plain
from armid.kernels.dynamics import gravity
from armid.logs.log import Channel
from armid.motions.trajectory import SampledTrajectory
from armid.parameters.inertial import from_centre_of_mass
from armid.recovery.plan import random_poses
from armid.recovery.recover import recover
from armid.robot.load import load_robot
from armid.simulation.controller_data import read_controller, write_controller_data
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from support.outcomes import answer_of, check_family

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recover")
    robot = load_robot("lwr4-dh")
    rng = np.random.default_rng(0)
    tip = from_centre_of_mass(0.25, [0.0, 0.0, 0.09], np.zeros((3, 3)))
    for name, count, load in (("arm", 1200, None), ("tool", 700, tip)):
        data = read_controller(robot, random_poses(robot, count, rng), payload=load)
        write_controller_data(data, place / f"{name}.npz")
    t = np.arange(0.0, 60.0, 0.12)
    q = np.stack([np.sin(2 * np.pi * (0.03 + 0.013 * j) * t + j) for j in range(7)], axis=1)
    data = read_controller(robot, q)
    np.savez(place / "along.npz", q=data.q, g=data.gravity, M=data.inertia, time=t)
    return place


def run(*arguments: object) -> dict[str, object]:
    done = RUNNER.invoke(application(), ["recover", *(str(a) for a in arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_contract_and_everything_behind_it(folder: Path, tmp_path: Path) -> None:
    result = run(
        "lwr4-dh", folder / "arm.npz", "--tool", folder / "tool.npz", "--along", folder / "along.npz", "--out", tmp_path
    )
    assert result["base_parameters"] == 43
    assert (result["gravity_coefficients"], result["inertia_coefficients"]) == (12, 39)
    assert (result["training_poses"], result["validation_poses"]) == (1000, 200)
    assert result["max_error_gravity"] < 1e-10
    assert result["max_error_inertia"] < 1e-10
    assert result["physically_consistent"] is True
    expressions = {term["expression"].replace(" ", "") for term in result["gravity"]}
    assert any("d1*(link3.mass+link4.mass" in e or "d3*(link3.mass+link4.mass" in e for e in expressions)
    assert result["tool"]["mass"] == pytest.approx(0.25, abs=1e-6)
    assert len(result["along"]["elements"]) == 35
    rows = np.genfromtxt(tmp_path / "elements.csv", delimiter=",", names=True)
    assert len(rows) == 500
    assert (tmp_path / "recovered.json").exists()
    assert result["verdict"] == "trusted"
    bodies = load_robot(str(tmp_path / "recovered.yaml"))
    q = random_poses(bodies, 20, np.random.default_rng(5))
    assert np.allclose(gravity(bodies, q), gravity(load_robot("lwr4-dh"), q), atol=1e-4)
    assert [row["joint"] for row in result["tables"]] == list(bodies.joint_names)
    assert result["tables"][1]["gravity_largest_motion"] < 1e-10
    assert result["tables"][1]["torque_largest"] is None
    figures = page_figures(tmp_path / "recovered.html")
    # Figures 5 and 6 of [Gaz2014]: the motion, and 35 panels of two lines each.
    assert len(figures["motion"]["data"]) == 7
    assert len(figures["elements"]["data"]) == 70
    assert len(figures["elements"]["layout"]["annotations"]) == 35
    dashed = [trace for trace in figures["elements"]["data"] if trace["name"] == "recovered"]
    assert {trace["yaxis"] for trace in dashed} == {"y", *(f"y{k}" for k in range(2, 36))}
    solid = [trace for trace in figures["elements"]["data"] if trace["name"] == "reported"]
    assert all(np.allclose(a["y"], b["y"], atol=1e-4) for a, b in zip(solid, dashed, strict=True))


def test_the_command_line_prints_what_the_function_returns(folder: Path, tmp_path: Path) -> None:
    names = {name: folder / f"{name}.npz" for name in ("tool", "along")}
    printed = run("lwr4-dh", folder / "arm.npz", "--tool", names["tool"], "--along", names["along"])
    found = recover("lwr4-dh", folder / "arm.npz", **names)
    assert answer_of(printed) == plain(found.as_dict())
    assert [file.role for file in found.provenance.inputs] == ["robot", "samples", "along", "tool"]
    assert all(file.sha256 for file in found.provenance.inputs[1:])
    check_family(found, tmp_path, figures=3)
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {
        "recovered.json",
        "recovered.html",
        "elements.csv",
        "recovered.yaml",
        "answer.json",
        "answer.npz",
        ".armid.json",
    }


def page_figures(path: Path) -> dict[str, dict[str, object]]:
    text = path.read_text(encoding="utf-8")
    start = text.index('id="figures">') + len('id="figures">')
    return json.loads(text[start : text.index("</script>", start)])


def test_torque_of_the_motion_of_the_paper(folder: Path, tmp_path: Path) -> None:
    """Eq. 33: all joints pi/2 cos(pi/7 t), zero-phase Butterworth of order 4 at 1 Hz; tables II-III with the torque test."""
    robot = load_robot("lwr4-dh")
    t, w = np.arange(0.0, 14.0, 0.005), np.pi / 7
    waves = (np.cos(w * t), -w * np.sin(w * t), -(w**2) * np.cos(w * t))
    motion = SampledTrajectory(robot.joint_names, t, *(np.tile(np.pi / 2 * x[:, np.newaxis], 7) for x in waves))
    run_of = {}
    for name, share in (("links", 0.0), ("friction", 1.0)):
        scenario = Scenario(physics=Physics(sensed_friction=share, collisions=False))
        log = run_scenario(robot, motion, scenario).log
        header = "time," + ",".join(f"{k}_{n}" for k in ("q", "tau") for n in robot.joint_names)
        table = np.column_stack([log.time, log[Channel.POSITION], log[Channel.LINK_TORQUE]])
        np.savetxt(tmp_path / f"{name}.csv", table, delimiter=",", header=header, comments="")
        run_of[name] = run(
            "lwr4-dh", folder / "arm.npz", "--motion", tmp_path / f"{name}.csv", "--out", tmp_path / name
        )
    for row, table_row in zip(run_of["links"]["torque"], run_of["links"]["tables"], strict=True):
        assert row["largest"] < 0.05
        assert row["mean_square"] < 5e-4
        assert table_row["torque_mean_square"] == row["mean_square"]
        assert table_row["gravity_mean_square_validation"] < 1e-20
    # What a torque sensor sees of friction is no part of the controller's model, and is told apart.
    for row in run_of["friction"]["torque"]:
        assert row["mean_square"] > 50 * row["mean_square_without_friction"]
    figures = page_figures(tmp_path / "links" / "recovered.html")
    assert len(figures["torque"]["data"]) == 21


def test_a_motion_that_stands_still_or_has_no_torque(folder: Path, tmp_path: Path) -> None:
    names = load_robot("lwr4-dh").joint_names
    t = np.arange(0.0, 14.0, 0.01)
    still = np.tile(0.3 * np.arange(1.0, 8.0), (len(t), 1))
    for kinds, match in ((("q", "tau"), "too-little-motion"), (("q",), "no-torque")):
        header = "time," + ",".join(f"{k}_{n}" for k in kinds for n in names)
        table = np.column_stack([t, *([still] * len(kinds))])
        np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=header, comments="")
        command = ["recover", "lwr4-dh", str(folder / "arm.npz"), "--motion", str(tmp_path / "log.csv")]
        done = RUNNER.invoke(application(), command)
        assert done.exit_code == 1
        assert match in done.stderr


def test_motor_torque_is_no_joint_torque(folder: Path, tmp_path: Path) -> None:
    robot = load_robot("lwr4-dh")
    t = np.arange(0.0, 14.0, 0.01)
    q = 0.5 * np.sin(np.outer(t, 0.5 + 0.3 * np.arange(7)) + np.arange(7))
    header = "time," + ",".join(f"{k}_{n}" for k in ("q", "tau_motor") for n in robot.joint_names)
    table = np.column_stack([t, q, gravity(robot, q)])
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=header, comments="")
    command = ["recover", "lwr4-dh", str(folder / "arm.npz"), "--motion", str(tmp_path / "log.csv")]
    done = RUNNER.invoke(application(), command)
    assert done.exit_code == 1
    assert "no joint torque" in done.stderr


def test_poses_to_read_at_and_the_embedded_controller(tmp_path: Path) -> None:
    """--plan, simulate --record controller-model, recover: what a user does without a robot."""
    plan = run("lwr4plus", "--plan", "120", "--out", tmp_path, "--seed", "3")
    place = tmp_path / "controller"
    command = ["simulate", "lwr4plus", str(plan["files"][0]), "--record", "controller-model", "--out", str(place)]
    assert RUNNER.invoke(application(), command).exit_code == 0
    result = run("lwr4plus", place / "controller.npz")
    assert (result["training_poses"], result["validation_poses"]) == (100, 20)
    assert result["base_parameters"] == 43
    assert result["max_error_gravity"] < 1e-10
    done = RUNNER.invoke(application(), ["recover", "lwr4plus"])
    assert done.exit_code == 1
    assert "--plan N" in done.stderr


def test_another_mounting_is_given_or_refused(folder: Path, tmp_path: Path) -> None:
    robot = load_robot("lwr4-dh").with_gravity(np.array([0.0, 9.81, 0.0]))
    data = read_controller(robot, random_poses(robot, 240, np.random.default_rng(1)))
    write_controller_data(data, tmp_path / "wall.npz")
    command = ["recover", "lwr4-dh", str(tmp_path / "wall.npz")]
    done = RUNNER.invoke(application(), command)
    assert done.exit_code == 3
    assert "mounted otherwise than described, 90 degrees off" in " ".join(done.stdout.split())
    assert run("lwr4-dh", tmp_path / "wall.npz", "--gravity", "0,9.81,0")["verdict"] == "trusted"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: d | {"q": np.degrees(d["q"])}, "convert from degrees"),
        (lambda d: d | {"M": d["M"] + np.triu(np.ones((7, 7)), 1)}, "expected inertia matrices"),
        (lambda d: d | {"M": d["M"][:, :6, :6]}, "inertia has shape"),
        (lambda d: d | {"g": np.full_like(d["g"], np.nan)}, "not finite"),
        (lambda d: {"q": d["q"]}, "expected q and g or M"),
        (lambda d: {k: v[:1] for k, v in d.items()}, "1 poses cannot be split"),
    ],
)
def test_wrong_samples_are_refused_in_one_line(
    folder: Path, tmp_path: Path, change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]], match: str
) -> None:
    with np.load(folder / "arm.npz") as content:
        good = {name: content[name][:60] for name in ("q", "g", "M")}
    np.savez(tmp_path / "bad.npz", **change(good))
    done = RUNNER.invoke(application(), ["recover", "lwr4-dh", str(tmp_path / "bad.npz")])
    assert done.exit_code == 1
    assert match in done.stderr
    assert done.stderr.count("\n") == 1


def test_untrusted_when_gravity_and_inertia_disagree(folder: Path, tmp_path: Path) -> None:
    with np.load(folder / "arm.npz") as data:
        loaded = read_controller(
            load_robot("lwr4-dh"), data["q"][:300], payload=from_centre_of_mass(2.0, [0.0, 0.0, 0.09], np.zeros((3, 3)))
        )
        np.savez(tmp_path / "wrong.npz", q=data["q"][:300], g=loaded.gravity, M=data["M"][:300])
    done = RUNNER.invoke(application(), ["recover", "lwr4-dh", str(tmp_path / "wrong.npz"), "--json"])
    assert done.exit_code == 3
    assert "do not belong to one arm" in done.stderr.replace("\n", " ")


def test_known_failures_are_one_line(tmp_path: Path) -> None:
    done = RUNNER.invoke(application(), ["recover", "lwr4-dh", str(tmp_path / "missing.npz")])
    assert done.exit_code == 1
    assert "missing.npz" in done.stderr
