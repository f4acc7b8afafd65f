"""Calibrated kinematics and the real direction of gravity in the identification."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import calibrated_robot
from armid.kinematics.correction import FORMAT
from armid.kinematics.model import ErrorModel
from armid.kinematics.rotations import rotation_exp
from armid.robot.load import load_robot
from armid.simulation.variation import varied
from armid.simulation.writers import LogFormat, write_log
from support import identified


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """An arm with deviating kinematics on a base tilted by 1.4 degrees, identified with its correction file."""
    folder = tmp_path_factory.mktemp("hand_over")
    robot = load_robot(str(identified.urdf_file()))
    rng = np.random.default_rng(1)
    model = kinematic_model(robot, ErrorModel(), setups={}, targets={})
    values = 0.5 * model.tolerances * rng.normal(size=len(model.parameters))
    tilt = rotation_exp(np.array([[0.02, -0.015, 0.0]]))[0]
    truth = varied(calibrated_robot(model, values), 0.2, rng).with_gravity(tilt @ robot.gravity)
    logs = [write_log(identified.log(robot, truth, seed=s), folder / f"run{s}.csv", LogFormat.CSV) for s in (3, 5)]
    correction = {
        "format": FORMAT,
        "robot": {"name": robot.name, "joints": list(robot.joint_names), "sha256": ""},
        "geometry": "complete",
        "terms": ["offset"],
        "couplings": [],
        "setups": {},
        "targets": {},
        "parameters": {n: {"value": float(v)} for n, v in zip(model.names, values, strict=True)},
    }
    (folder / "correction.json").write_text(json.dumps(correction))
    arguments = [
        "identify",
        identified.urdf_file(),
        logs[0],
        "--validate",
        logs[1],
        "--rotor-inertia",
        "--correction",
        folder / "correction.json",
        "--find-gravity",
        # Zeros of encoders would stand in for the geometry that is known or not.
        "--imperfections",
        "none",
        "--out",
        folder / "out",
        "--json",
    ]
    result = CliRunner().invoke(application(), list(map(str, arguments)))
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout), truth


def test_held_out_torque_improves_with_every_thing_known(answer):
    data, truth = answer
    nominal, calibrated, levelled = (r["relative_error_held_out"] for r in data["hand_over"]["results"])
    assert levelled < calibrated < nominal
    assert levelled < 0.4 * nominal
    assert data["relative_error_held_out"] == pytest.approx(levelled)
    found = np.array(data["hand_over"]["results"][-1]["gravity"])
    assert np.linalg.norm(np.cross(found, truth.gravity)) / 9.81**2 < np.radians(0.1)


def test_the_page_shows_torque_and_parameters_side_by_side(answer):
    data, _ = answer
    page = next(Path(f) for f in data["files"] if f.endswith("hand_over.html")).read_text()
    assert all(word in page for word in ("nominal kinematics", "calibrated, gravity levelled", "link2.mx", "changes"))
    moved = {p["name"]: p for p in data["hand_over"]["parameters"]}
    assert len(moved) == 25  # the nominal arm's combinations, though the calibrated one has more
    assert abs(moved["link2.mx"]["relative_differences"][-1]) < 0.05
