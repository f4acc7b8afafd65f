"""Models 1, 2 and 3 of [Kolyubin2017] from outside: identify, validate, report, export, and pairs that do not belong together."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.parameters.inertial import from_centre_of_mass
from armid.robot.load import load_robot
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import Sensors, TorqueSensor
from armid.simulation.writers import LogFormat, write_log
from test_logs_torque_pair import Waves

RUNNER = CliRunner()
LOAD = from_centre_of_mass(1.5, [0.0, 0.02, 0.12], 4e-3 * np.eye(3))
FRICTION_ON_LINKS = 0.4
"""Share of friction on the links' side of the torque sensor."""


def run(*arguments: object, code: int = 0) -> dict[str, object]:
    done = RUNNER.invoke(application(), [*(str(a) for a in arguments), "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Motions without and with 1.5 kg; mappings say which, and leave the columns to speak for themselves."""
    place = tmp_path_factory.mktemp("torques")
    robot = load_robot("lwr4plus")
    recordings = (("empty", None, 0.0), ("loaded", LOAD, 1.5), ("other", LOAD, 1.5))
    for k, (name, load, mass) in enumerate(recordings, start=1):
        sensors = Sensors(torque=TorqueSensor(noise=0.02), motor=TorqueSensor(noise=0.05))
        physics = Physics(sensed_friction=FRICTION_ON_LINKS, payload=load, collisions=False)
        log = run_scenario(robot, Longer(k), Scenario(physics=physics, sensors=sensors, seed=k)).log
        log = log.selected(slice(0, None, 2))
        write_log(log, place / f"{name}.csv", LogFormat.CSV)
        text = f"schema: armid.log/1\nname: {name}\nfile: {name}.csv\nconditions: {{payload: {mass}}}\n"
        (place / f"{name}.yaml").write_text(text)
    return place


class Longer(Waves):
    duration = 14.0


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, dict[str, object]]:
    logs = (folder / "empty.yaml", folder / "loaded.yaml")
    out = {}
    for side in ("both", "difference"):
        more = ("--essential",) if side == "both" else ()
        result = run(
            "identify", "lwr4plus", *logs, "--torques", side, "--payload", "both", "--out", folder / side, *more
        )
        stored = json.loads((folder / side / "result.json").read_text())
        out[side] = result | {"stored": stored}
    return out


def values(result: dict[str, object]) -> dict[str, tuple[float, float]]:
    """Base parameter -> value and standard deviation."""
    parameters = result["stored"]["estimate"]["parameters"]
    return {p["name"]: (p["value"], p["standard_deviation"]) for p in parameters}


def test_counts_and_verdicts(results: dict[str, dict[str, object]]) -> None:
    """136 -> 102 for both sides with loaded and unloaded runs; 28 for the drives alone."""
    assert {side: r["base_parameters"] for side, r in results.items()} == {"both": 102, "difference": 28}
    assert {r["verdict"] for r in results.values()} == {"trusted"}
    assert len(results["both"]["joints"]) == 14


def test_truth(results: dict[str, dict[str, object]]) -> None:
    """Rotor inertia and motor-side friction from models 2 and 3, the payload from model 2."""
    robot = load_robot("lwr4plus")
    for side in ("both", "difference"):
        found = values(results[side])
        for i in range(7):
            drive = robot.joints[i].drive
            expected = {
                "rotor_inertia": drive.rotor_inertia,
                "motor_viscous": (1.0 - FRICTION_ON_LINKS) * drive.viscous,
                "motor_coulomb": (1.0 - FRICTION_ON_LINKS) * drive.coulomb,
            }
            for name, truth in expected.items():
                value, deviation = found[f"joint{i + 1}.{name}"]
                assert abs(value - truth) < max(4.0 * deviation, 0.03 * abs(truth)), (side, i, name)
    mass, deviation = values(results["both"])["payload.mass"]
    assert abs(mass - 1.5) < max(4.0 * deviation, 0.01)


def test_models_agree_where_they_overlap(results: dict[str, dict[str, object]]) -> None:
    both, drives = values(results["both"]), values(results["difference"])
    assert set(drives) <= set(both)
    apart = [abs(drives[n][0] - both[n][0]) / np.hypot(drives[n][1], both[n][1]) for n in drives]
    assert max(apart) < 4.0


def test_essential_parameters(results: dict[str, dict[str, object]]) -> None:
    text = json.dumps(results["both"]["stored"])
    assert "essential" in text


@pytest.mark.parametrize("side", ["both", "difference"])
def test_results_validate_report_and_export(results: dict[str, dict[str, object]], folder: Path, side: str) -> None:
    again = run("validate", folder / side, folder / "other.yaml")
    assert again["verdict"] == "trusted"
    assert "learned from it" in run("validate", folder / side, folder / "loaded.yaml", code=3)["reasons"][0]
    done = RUNNER.invoke(application(), ["report", str(folder / side)])
    assert done.exit_code == 0, done.output
    assert (folder / side / "report.html").exists()
    for target in ("urdf", "mjcf", "json"):
        exported = run("export", folder / side, "--to", target, "--out", folder / f"{side}-export")
        assert exported["verdict"] == "trusted"
        text = Path(exported["file"]).read_text()
        if side == "difference" and target != "json":
            assert "says nothing of them" in text


def rewritten(folder: Path, place: Path, change: dict[str, int | None]) -> Path:
    """The loaded recording with columns shifted in time, or left out."""
    table = np.genfromtxt(folder / "loaded.csv", delimiter=",", names=True)
    names = [n for n in table.dtype.names if not any(n.startswith(p) and s is None for p, s in change.items())]
    cut = max((s or 0) for s in change.values())
    columns = []
    for name in names:
        shift = next((s for p, s in change.items() if s and name.startswith(p)), 0)
        columns.append(table[name][cut - shift : len(table) - shift])
    path = place / "log.csv"
    np.savetxt(path, np.column_stack(columns), delimiter=",", header=",".join(names), comments="", fmt="%.12g")
    return path


@pytest.mark.parametrize("side", ["both", "difference"])
def test_a_pair_out_of_step_is_refused(folder: Path, tmp_path: Path, side: str) -> None:
    late = rewritten(folder, tmp_path, {"tau_motor": 12})
    done = RUNNER.invoke(
        application(), ["identify", "lwr4plus", str(late), "--torques", side, "--out", str(tmp_path / "r")]
    )
    assert done.exit_code == 1, done.output
    assert "not synchronised" in done.stderr
    assert not (tmp_path / "r").exists()


def test_one_torque_is_no_pair(folder: Path, tmp_path: Path) -> None:
    alone = rewritten(folder, tmp_path, {"tau_motor": None})
    command = ["identify", "lwr4plus", str(alone), "--torques", "both", "--out", str(tmp_path / "r")]
    done = RUNNER.invoke(application(), command)
    assert done.exit_code == 1
    assert "link and motor torque" in done.stderr


@pytest.mark.parametrize(
    ("names", "payload", "match"),
    [
        (("empty.csv", "loaded.csv"), "both", "no recording says it carried one"),
        (("loaded.yaml",), "both", "every recording says it carried a payload"),
        (("empty.yaml", "loaded.yaml"), "loaded", "empty (first part) says it carried nothing"),
    ],
)
def test_which_run_was_loaded_must_be_said(
    folder: Path, tmp_path: Path, names: tuple[str, ...], payload: str, match: str
) -> None:
    logs = [str(folder / name) for name in names]
    command = ["identify", "lwr4plus", *logs, "--torques", "both", "--payload", payload, "--out", str(tmp_path / "r")]
    done = RUNNER.invoke(application(), command)
    assert done.exit_code == 1, done.output
    assert match in done.stderr
