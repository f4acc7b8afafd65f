"""`armid recover` from outside."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.estimation.controller_model import random_poses
from armid.parameters.inertial import from_centre_of_mass
from armid.robot.load import load_robot
from armid.simulation.controller_data import read_controller, write_controller_data

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


def test_untrusted_when_gravity_and_inertia_disagree(folder: Path, tmp_path: Path) -> None:
    with np.load(folder / "arm.npz") as data:
        np.savez(tmp_path / "wrong.npz", q=data["q"][:300], g=-data["g"][:300], M=data["M"][:300])
    done = RUNNER.invoke(application(), ["recover", "lwr4-dh", str(tmp_path / "wrong.npz"), "--json"])
    assert done.exit_code == 3
    assert "do not belong to one arm" in done.stderr.replace("\n", " ")


def test_known_failures_are_one_line(tmp_path: Path) -> None:
    done = RUNNER.invoke(application(), ["recover", "lwr4-dh", str(tmp_path / "missing.npz")])
    assert done.exit_code == 1
    assert "missing.npz" in done.stderr
