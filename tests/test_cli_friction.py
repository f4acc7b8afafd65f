"""`armid identify --friction ...` end to end: an arm with exactly that friction, from its log to every place the result goes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.identification.metrics import nominal_standard
from armid.identification.result import load_result
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from support.elbow import coloured, fourier_motion
from support.elbow_logs import ROBOT, run, write_columns

RUNNER = CliRunner()
LINEAR = "viscous,coulomb,offset"
LEVELS = {
    "viscous": np.array([2.0, 1.5, 1.0]),
    "coulomb": np.array([2.0, 3.0, 1.5]),
    "offset": np.array([0.2, -0.1, 0.3]),
}
SCALES = np.array([0.15, 0.3, 0.2])
"""[rad/s]; speeds of the motion reach 2 rad/s."""
AMOUNTS = {
    "stribeck": np.array([2.0, 1.5, 1.0]),
    "asymmetric": np.array([0.5, -0.4, 0.3]),
    "load": np.array([0.0, 0.06, 0.08]),
}
QUANTITY = {"stribeck": "stribeck", "asymmetric": "viscous_asymmetry", "load": "coulomb_load"}


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
    q = inputs[:, :3] + rng.normal(size=(len(inputs), 3)) * 1e-6
    return write_columns(path, robot, {"time": np.arange(len(inputs))[:, None] / rate, "q": q, "tau": torque})


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
            "identify",
            place / "elbow.yaml",
            place / f"{shape}1.csv",
            "--validate",
            place / f"{shape}2.csv",
            "--friction",
            f"{LINEAR},{shape}",
            "--out",
            place / shape,
            "--json",
        )
        found[shape] = report, load_result(place / shape, traces=True)
    return found


@pytest.mark.parametrize("shape", ["stribeck", "smooth", "asymmetric", "load"])
def test_the_friction_of_the_arm_is_found_within_its_deviations(identified, shape):
    report, _ = identified[shape]
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


@pytest.mark.parametrize("shape", ["stribeck", "smooth", "asymmetric", "load"])
def test_it_pays_on_held_out_motion_and_is_predicted_again_from_the_folder(place, identified, shape):
    report, result = identified[shape]
    rows = {row["name"]: row for row in report["friction"]["held_out"]}
    assert all(row["pays"] and not row["harms"] for name, row in rows.items() if shape != "load" or name != "waist")
    assert report["relative_error_held_out"] < 0.5 * report["friction"]["relative_error_held_out_linear"]
    again = run("validate", place / shape, place / f"{shape}2.csv", "--json")
    assert again["verdict"] == "trusted"
    for joint, other in zip(again["joints"], report["joints"], strict=True):
        assert joint["rmse_held_out"] == pytest.approx(other["rmse_held_out"], rel=1e-9)
    stored = load_result(place / shape)
    assert stored.effects == result.effects
    assert stored.effects.shapes == (shape,)
    assert stored.shapes == result.shapes or stored.shapes.scales == result.shapes.scales


def test_friction_of_a_joint_that_two_drives_move_is_told_from_that_of_the_drives(place):
    coupled = ROBOT.replace("joints:", "coupling: [[1, 0, 0], [0, 1, 0], [0, -1, 1]]\njoints:", 1)
    (place / "coupled.yaml").write_text(coupled)
    robot = load_robot(place / "coupled.yaml")
    C, own = np.array([[1.0, 0, 0], [0, 1, 0], [0, -1, 1]]), {"coupled_viscous": 0.7, "coupled_coulomb": 1.2}
    for k in (1, 2):
        rng = np.random.default_rng(20 + k)
        x = fourier_motion(rng, 3, 6000, 200.0)
        rows = TorqueRows(robot, Effects())
        torque = evaluate_rows(rows, x) @ (1.1 * nominal_standard(robot, rows.columns))
        w = x[:, 3:6] @ C[2]
        torque = torque + friction("linear", x[:, 3:6], torque)
        torque += np.outer(own["coupled_viscous"] * w + own["coupled_coulomb"] * np.sign(w), C[2])
        torque += coloured(rng, torque.shape, 0.02, (1.0, -0.8))
        time = np.arange(len(x))[:, None] / 200.0
        write_columns(place / f"coupled{k}.csv", robot, {"time": time, "q": x[:, :3], "tau": torque})
    report = run(
        "identify",
        place / "coupled.yaml",
        place / "coupled1.csv",
        "--validate",
        place / "coupled2.csv",
        "--friction",
        f"{LINEAR},coupled",
        "--out",
        place / "coupled",
        "--json",
    )
    joints = {joint["name"]: joint for joint in report["friction"]["joints"]}
    assert report["verdict"] == "trusted"
    assert not {"coupled_viscous", "coupled_coulomb"} & (set(joints["waist"]) | set(joints["shoulder"]))
    truth = own | {"viscous": LEVELS["viscous"][2], "coulomb": LEVELS["coulomb"][2]}
    for quantity, value in truth.items():
        found = joints["elbow"][quantity]
        assert abs(found["value"] - value) < 4.0 * found["standard_deviation"]
        assert found["standard_deviation"] < 0.1


def faulty(place: Path, shape: str, column: str, change) -> list[Path]:
    """Both logs of a shape with one column changed."""
    paths = []
    for k in (1, 2):
        table = np.genfromtxt(place / f"{shape}{k}.csv", delimiter=",", names=True)
        table[column] = change(table["time"], table[column])
        paths.append(place / f"faulty{k}.csv")
        np.savetxt(paths[-1], np.array(table.tolist()), delimiter=",", header=",".join(table.dtype.names), comments="")
    return paths


def faults_beside(place: Path, shape: str, column: str, change, *words: str, code: int = 3) -> tuple[dict, dict]:
    """The answer to a log with a fault and these shapes of friction, and what was found by kind and joint."""
    first, second = faulty(place, shape, column, change)
    args = ("--friction", f"{LINEAR},{shape}", "--out", place / "faulty", "--json", *words)
    report = run("identify", place / "elbow.yaml", first, "--validate", second, *args, code=code)
    return report, {(f["fault"], f["subject"]): f for f in report["faults"] if f["answer"] == "found"}


@pytest.mark.parametrize("shape", ["load", "stribeck"])
def test_a_gain_is_found_beside_the_friction_asked_for(place, shape):
    report, found = faults_beside(place, shape, "tau_elbow", lambda t, x: 1.3 * x)
    assert set(found) == {("gain", "elbow")}
    assert abs(found["gain", "elbow"]["estimate"] - 0.3) < 0.01
    assert report["verdict"] == "untrusted"


def test_late_torque_is_undone_beside_the_friction_asked_for(place, identified):
    late = ("tau_elbow", lambda t, x: np.interp(t - 0.01, t, x))
    _, found = faults_beside(place, "load", *late)
    assert set(found) == {("delay", "elbow")}
    report, found = faults_beside(place, "load", *late, "--correct", code=0)
    assert found["delay", "elbow"]["corrected"]
    assert report["verdict"] == "trusted"
    clean = identified["load"][0]["friction"]["joints"]
    for joint in report["friction"]["joints"]:
        own = next(j for j in clean if j["name"] == joint["name"])
        assert abs(joint["coulomb_load"]["value"] - own["coulomb_load"]["value"]) < 0.002


def test_a_turned_joint_is_found_beside_the_friction_asked_for(place):
    _, found = faults_beside(place, "stribeck", "q_elbow", lambda t, x: -x)
    assert ("position-sign", "elbow") in found


def test_people_see_whether_it_pays(place, identified):
    args = ("identify", place / "elbow.yaml", place / "linear1.csv", "--validate", place / "linear2.csv")
    outcome = run(*args, "--friction", f"{LINEAR},stribeck", "--out", place / "needless")
    assert "linear" in outcome.stdout
    assert "no difference" in outcome.stdout or "harms" in outcome.stdout
    result = load_result(place / "needless")
    check = next(check for check in result.checks if check.code == "friction-shape-pays")
    assert not check.passed
    assert not check.decisive
    assert "leave out what does not pay" in check.message
    assert any(item.standard_deviation == float("inf") for item in result.friction.scales.values())


def test_report_comparison_and_files_carry_it(place, identified):
    run("report", place / "stribeck")
    page = (place / "stribeck" / "report.html").read_text()
    assert "friction_velocity" in page
    assert "viscous,coulomb,offset,stribeck" in page
    both = run("compare", place / "stribeck", place / "smooth", "--out", place / "comparison", "--json")
    names = [row["name"] for row in both["parameters"]]
    assert "joint2.stribeck" in names
    urdf = run("export", place / "stribeck", "--to", "urdf", "--out", place / "files", "--json")
    assert "Missing: friction beyond viscous and Coulomb (stribeck)" in Path(urdf["file"]).read_text()
    assert any("stribeck" in text for text in urdf["missing"])
    whole = run("export", place / "stribeck", "--to", "json", "--out", place / "files", "--json")
    text = json.loads(Path(whole["file"]).read_text())
    assert text["friction"]["scales"]["waist"]["value"] == pytest.approx(SCALES[0], rel=0.3)
    assert not any("stribeck" in item for item in whole["missing"])


def test_an_earlier_result_keeps_its_shape(place, identified):
    robot = load_robot(place / "elbow.yaml")
    write_log(place / "short.csv", robot, "stribeck", 5, seconds=8.0)
    args = ("identify", place / "elbow.yaml", place / "short.csv", "--out", place / "updated", "--json")
    run(*args, "--prior", place / "stribeck", "--friction", f"{LINEAR},stribeck")
    assert load_result(place / "updated").shapes.scales == load_result(place / "stribeck").shapes.scales
    outcome = RUNNER.invoke(application(), [str(a) for a in (*args, "--prior", place / "stribeck")])
    assert outcome.exit_code == 1
    assert "same robot and effects" in outcome.stderr


def test_verbs_that_cannot_use_it_say_so(place, identified):
    (place / "path.csv").write_text("waist,shoulder,elbow\n0,0,0\n0.5,0.4,0.3\n")
    for args in (("plan", place / "stribeck", place / "path.csv"), ("payload", place / "load", place / "load1.csv")):
        outcome = RUNNER.invoke(application(), [str(a) for a in args])
        assert outcome.exit_code == 1
        assert "viscous,coulomb,offset" in outcome.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("viscous,stribeck", "without coulomb"),
        ("coulomb,asymmetric", "without viscous and offset"),
        (f"{LINEAR},smooth,stribeck", "choose one"),
        (f"{LINEAR},coupled", "no joint that several drives move"),
        ("none,coulomb", "stands alone"),
        (f"{LINEAR},sticky", "sticky"),
    ],
)
def test_contradictory_lists_are_refused_in_one_line(place, words, message):
    args = [
        "identify",
        str(place / "elbow.yaml"),
        str(place / "linear1.csv"),
        "--friction",
        words,
        "--out",
        str(place / "no"),
    ]
    outcome = RUNNER.invoke(application(), args)
    assert outcome.exit_code == (2 if message in ("stands alone", "sticky") else 1)  # unknown words: usage
    assert message in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert not (place / "no").exists()
