"""`armid identify --friction ...` end to end: an arm with exactly that friction, from its log to every place the result goes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.estimation.result import load_result
from armid.experiments.torque import TorqueRows
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from armid.validation.metrics import nominal_standard
from elbow import coloured, fourier_motion

RUNNER = CliRunner()
LINEAR = "viscous,coulomb,offset"
LEVELS = {"viscous": np.array([2.0, 1.5, 1.0]), "coulomb": np.array([2.0, 3.0, 1.5]), "offset": np.array([0.2, -0.1, 0.3])}
SCALES = np.array([0.15, 0.3, 0.2])
"""[rad/s]; speeds of the motion reach 2 rad/s."""
AMOUNTS = {"stribeck": np.array([2.0, 1.5, 1.0]), "asymmetric": np.array([0.5, -0.4, 0.3]), "load": np.array([0.0, 0.06, 0.08])}
QUANTITY = {"stribeck": "stribeck", "asymmetric": "viscous_asymmetry", "load": "coulomb_load"}

ROBOT = """
format: armid-robot/1
name: elbow
joints:
  - name: waist
    link: l1
    mdh: {d: 0.3}
    inertial: {mass: 6, com: [0, 0.02, -0.05], inertia_at_com: [0.05, 0, 0, 0.05, 0, 0.04]}
  - name: shoulder
    link: l2
    mdh: {alpha: -pi/2, a: 0.1}
    inertial: {mass: 5, com: [0.2, 0.01, 0.05], inertia_at_com: [0.02, 0, 0, 0.1, 0, 0.1]}
  - name: elbow
    link: l3
    mdh: {a: 0.4}
    inertial: {mass: 3, com: [0.1, -0.02, 0.02], inertia_at_com: [0.01, 0, 0, 0.03, 0, 0.03]}
"""


def friction(shape: str, qd: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Written out from the definitions in docs/estimation.md, not taken from the library."""
    sign = np.sign(qd)
    linear = LEVELS["viscous"] * qd + LEVELS["offset"]
    match shape:
        case "stribeck":
            return linear + sign * (LEVELS["coulomb"] + AMOUNTS["stribeck"] * np.exp(-((qd / SCALES) ** 2)))
        case "smooth":
            return linear + LEVELS["coulomb"] * np.tanh(qd / SCALES)
        case "asymmetric":
            return linear + LEVELS["coulomb"] * sign + AMOUNTS["asymmetric"] * np.abs(qd)
        case "load":
            return linear + (LEVELS["coulomb"] + AMOUNTS["load"] * np.abs(load)) * sign
        case _:
            return linear + LEVELS["coulomb"] * sign


def write_log(path: Path, robot, shape: str, seed: int, *, seconds: float = 30.0, rate: float = 200.0) -> Path:
    rng = np.random.default_rng(seed)
    inputs = fourier_motion(rng, 3, int(seconds * rate), rate)
    rows = TorqueRows(robot, Effects())
    rigid = evaluate_rows(rows, inputs) @ (1.1 * nominal_standard(robot, rows.columns))
    torque = rigid + friction(shape, inputs[:, 3:6], rigid)
    torque = torque + coloured(rng, torque.shape, 0.02, (1.0, -0.8))
    header = ["time", *(f"q_{n}" for n in robot.joint_names), *(f"tau_{n}" for n in robot.joint_names)]
    q = inputs[:, :3] + rng.normal(size=(len(inputs), 3)) * 1e-6
    table = np.column_stack([np.arange(len(inputs)) / rate, q, torque])
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="", fmt="%.9g")
    return path


def run(*args, code=0):
    outcome = RUNNER.invoke(application(), [str(a) for a in args])
    assert outcome.exit_code == code, outcome.stderr + outcome.stdout
    return json.loads(outcome.stdout) if outcome.stdout.strip().startswith("{") else outcome


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("friction")
    (folder / "elbow.yaml").write_text(ROBOT)
    robot = load_robot(folder / "elbow.yaml")
    for shape in ("stribeck", "smooth", "asymmetric", "load", "linear"):
        for k in (1, 2):
            write_log(folder / f"{shape}{k}.csv", robot, shape, k)
    return folder


@pytest.fixture(scope="module")
def identified(place):
    """One result per shape, of an arm that has exactly that friction."""
    found = {}
    for shape in ("stribeck", "smooth", "asymmetric", "load"):
        report = run(
            "identify", place / "elbow.yaml", place / f"{shape}1.csv", "--validate", place / f"{shape}2.csv",
            "--friction", f"{LINEAR},{shape}", "--out", place / shape, "--json",
        )  # fmt: skip
        found[shape] = report, load_result(place / shape, traces=True)
    return found


@pytest.mark.parametrize("shape", ["stribeck", "smooth", "asymmetric", "load"])
def test_the_friction_of_the_arm_is_found_within_its_deviations(identified, shape):
    report, result = identified[shape]
    assert report["verdict"] == "trusted"
    assert report["friction"]["shapes"] == [shape]
    truth = dict(LEVELS) | ({QUANTITY[shape]: AMOUNTS[shape]} if shape in QUANTITY else {})
    off = []
    for k, joint in enumerate(report["friction"]["joints"]):
        for quantity, values in truth.items():
            found = joint[quantity]
            off.append((found["value"] - values[k]) / found["standard_deviation"])
        if shape in ("stribeck", "smooth"):
            found = joint["friction_velocity"]
            off.append((found["value"] - SCALES[k]) / found["standard_deviation"])
            assert found["standard_deviation"] < 0.3 * SCALES[k]
    assert np.abs(off).max() < 4.0
    assert np.sqrt(np.mean(np.square(off))) < 1.8
