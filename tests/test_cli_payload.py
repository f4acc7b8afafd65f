"""`armid payload` and `armid online` from outside, on the embedded arm with joint torque sensors."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.documents import plain
from armid.identification.result import load_result
from armid.logs.log import Channel
from armid.logs.read import unchecked_log
from armid.motions.trajectory import SampledTrajectory
from armid.outcome import Check
from armid.parameters.inertial import from_centre_of_mass, transformed
from armid.payload.identify import identify_payload
from armid.robot.load import load_robot
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import typical_sensors
from armid.simulation.writers import LogFormat, write_log
from support.outcomes import answer_of, check_family, failing
from support.realdata import ROOT, real_data

RUNNER = CliRunner()
ROBOT = load_robot("iiwa14")
TIP = np.asarray(ROBOT.tip.T_link_frame)
CENTRE = np.array([0.02, -0.01, 0.06])
"""[m] Of the load in the flange frame; 1 kg."""


def excitation(seed: int, seconds: float = 14.0) -> SampledTrajectory:
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 0.005)
    w, phase = rng.uniform(0.5, 2.0, (3, 7)), rng.uniform(0, 6, (3, 7))
    angle = t[:, np.newaxis, np.newaxis] * w + phase
    waves = (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle))
    return SampledTrajectory(ROBOT.joint_names, t, *(0.26 * x.sum(axis=1) for x in waves))


def recorded(
    path: Path,
    seed: int,
    load: np.ndarray | None,
    *,
    motion: SampledTrajectory | None = None,
    seconds: float = 14.0,
    sensed_friction: float = 1.0,
) -> Path:
    physics = Physics(collisions=False, payload=load, sensed_friction=sensed_friction)
    scenario = Scenario(physics=physics, sensors=typical_sensors(ROBOT.limit("torque")), seed=seed)
    log = run_scenario(ROBOT, motion or excitation(seed, seconds), scenario).log
    return write_log(replace(log, name=path.stem), path, LogFormat.CSV)


def visits(poses: np.ndarray, *, move: float = 1.5, hold: float = 0.7) -> SampledTrajectory:
    """From pose to pose, with a rest at each."""
    t = np.arange(0.0, len(poses) * (move + hold) - move, 0.005)
    k = np.minimum((t / (move + hold)).astype(int), len(poses) - 1)
    s = np.clip((t - k * (move + hold) - hold) / move, 0.0, 1.0)[:, np.newaxis]
    d = poses[np.minimum(k + 1, len(poses) - 1)] - poses[k]
    q = poses[k] + d * (10 * s**3 - 15 * s**4 + 6 * s**5)
    qd = d * (30 * s**2 - 60 * s**3 + 30 * s**4) / move
    return SampledTrajectory(ROBOT.joint_names, t, q, qd, d * (60 * s - 180 * s**2 + 120 * s**3) / move**2)


def identified(place: Path, name: str, *logs: str) -> Path:
    done = RUNNER.invoke(
        application(),
        [
            "identify",
            "iiwa14",
            str(place / logs[0]),
            *(("--validate", str(place / logs[1])) if logs[1:] else ()),
            "--out",
            str(place / name),
            "--json",
        ],
    )
    assert done.exit_code in (0, 3), done.output
    return place / name


def run(*arguments: object, code: int = 0, text: str | None = None) -> dict[str, object]:
    done = RUNNER.invoke(application(), [*(str(a) for a in arguments), "--json"], input=text)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


IN_LINK = transformed(from_centre_of_mass(1.0, CENTRE, 2e-3 * np.eye(3)), TIP)

LOADED = ("loaded.csv", "loaded2.csv", "loaded3.csv")
"""Different motions, noise and all; `bench/bench_payload.py` has twenty."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("payload")
    recorded(place / "empty.csv", 201, None, seconds=30.0)
    recorded(place / "check.csv", 1, None, seconds=8.0)
    for k, name in enumerate(LOADED):
        recorded(place / name, 100 + k, IN_LINK)
    identified(place, "result", "empty.csv", "check.csv")
    return place


@pytest.mark.parametrize("log", LOADED)
def test_one_kilogram(folder: Path, log: str) -> None:
    """Mass within 0.5 %, centre within 2 mm, the truth within four deviations."""
    result = run("payload", folder / "result", folder / log, "--out", folder / "out")
    assert result["mass"] == pytest.approx(1.0, abs=0.005)
    error = np.array(result["centre_of_mass"]) - CENTRE
    assert np.linalg.norm(error) < 2e-3
    deviation = result["standard_deviations"]
    assert set(deviation) == {"mass", "centre_of_mass", "inertia"}
    assert abs(result["mass"] - 1.0) < 4.0 * deviation["mass"] < 0.02
    assert (np.abs(error) < 4.0 * np.array(deviation["centre_of_mass"])).all()
    assert np.linalg.eigvalsh(np.array(result["inertia"]))[0] > 0.0
    assert result["kuka"].startswith("{M ")
    assert (folder / "out" / "payload.json").exists()


def test_a_torque_sensor_that_reads_too_much_while_the_load_is_weighed_is_named(folder: Path, tmp_path: Path) -> None:
    """One of seven: what arm and load leave of all torque is too little to be noticed by itself."""
    log = unchecked_log(folder / LOADED[0], ROBOT)
    torque = np.array(log[Channel.LINK_TORQUE])
    torque[:, 3] *= 1.25
    write_log(
        replace(log, channels={**log.channels, Channel.LINK_TORQUE: torque}), tmp_path / "wrong.csv", LogFormat.CSV
    )
    result = run("payload", folder / "result", tmp_path / "wrong.csv", code=3)
    (found,) = (fault for fault in result["faults"] if fault["answer"] == "found" and fault["fault"] == "gain")
    assert found["subject"] == "joint4"
    assert found["low"] < 0.25 < found["high"]
    assert [check["code"] for check in result["checks"] if not check["passed"] and check["decisive"]] == ["fault"]


def test_the_function_behind_the_verb(folder: Path, tmp_path: Path) -> None:
    """Paths or objects, words or objects; the command line prints what the function returns."""
    options = ("--gripper", "0.4,0.02,-0.01,0.06")
    printed = run("payload", folder / "result", folder / LOADED[0], *options)
    result = load_result(folder / "result")
    log = unchecked_log(folder / LOADED[0], ROBOT)
    found = identify_payload(result, log, subtract=[0.4, 0.02, -0.01, 0.06])
    assert answer_of(printed) == plain(found.as_dict())
    assert [file.role for file in found.provenance.inputs] == ["robot", "loaded"]
    check_family(found, tmp_path, figures=2)
    failed = Check(code="made-up", passed=False, value=1.0, limit=0.0, message="made up")
    doubtful = identify_payload(replace(result, checks=(*result.checks, failed)), log)
    assert failing(doubtful) == {"arm-trusted"}
    assert "made up" in doubtful.reasons[0]


@pytest.mark.parametrize("log", LOADED[:2])
def test_sample_by_sample(folder: Path, log: str) -> None:
    """As good as off-line: derivatives from the past cost nothing but their delay."""
    result = run("payload", folder / "result", folder / log, "--online")
    assert result["mass"] == pytest.approx(1.0, abs=0.005)
    assert np.linalg.norm(np.array(result["centre_of_mass"]) - CENTRE) < 2e-3
    assert abs(result["mass"] - 1.0) < 4.0 * result["standard_deviations"]["mass"]


def test_stamps_that_run_fast_are_not_trusted(folder: Path, tmp_path: Path) -> None:
    head, *rows = (folder / "loaded.csv").read_text(encoding="utf-8").splitlines()
    late = [f"{1.05 * float(time):.9g},{rest}" for time, rest in (row.split(",", 1) for row in rows)]
    (tmp_path / "late.csv").write_text("\n".join([head, *late]), encoding="utf-8")
    result = run("payload", folder / "result", tmp_path / "late.csv", code=3)
    assert any("clock: {gain: 0.952" in reason for reason in result["reasons"])


@pytest.fixture(scope="module")
def resting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Torque sensors behind the gears, as joint torque sensors are: friction is not theirs to feel."""
    place = tmp_path_factory.mktemp("static")
    poses = np.random.default_rng(5).uniform(-0.55, 0.55, size=(8, 7))
    recorded(place / "empty.csv", 31, None, seconds=16.0, sensed_friction=0.0)
    recorded(place / "poses.csv", 7, IN_LINK, motion=visits(poses), sensed_friction=0.0)
    identified(place, "result", "empty.csv")
    return place


def test_a_few_poses_at_rest(resting: Path) -> None:
    """Eight rests of 0.7 s: mass and centre within four deviations, which are small."""
    result = run("payload", resting / "result", resting / "poses.csv", "--static")
    deviation = result["standard_deviations"]
    assert abs(result["mass"] - 1.0) < 4.0 * deviation["mass"] < 0.05
    error = np.abs(np.array(result["centre_of_mass"]) - CENTRE)
    assert (error < 4.0 * np.array(deviation["centre_of_mass"]) + 2e-4).all()
    assert result["mass"] == pytest.approx(1.0, abs=0.01)
    assert error.max() < 3e-3
    assert result["inertia_separated"] is False
    assert [n["code"] for n in result["notes"]] == ["inertia-not-measured"]
    assert result["kuka"].count("A 0.00,B 0.00,C 0.00") == 1


def test_at_rest_with_a_gripper_subtracted(resting: Path) -> None:
    """0.4 kg of the kilogram is a known gripper: 0.6 kg is left, where the rest of the first moments puts it."""
    gripper = np.array([0.02, -0.01, 0.04])
    result = run("payload", resting / "result", resting / "poses.csv", "--static", "--gripper", "0.4,0.02,-0.01,0.04")
    assert result["mass"] == pytest.approx(0.6, abs=0.01)
    assert np.array(result["centre_of_mass"]) == pytest.approx((CENTRE - 0.4 * gripper) / 0.6, abs=4e-3)


def test_torque_out_of_step_is_refused(folder: Path) -> None:
    """Ten milliseconds late, from another clock: the mass would be six per cent off."""
    log = unchecked_log(folder / LOADED[0], ROBOT)
    channels = {
        c: (np.vstack([np.repeat(v[:1], 10, axis=0), v[:-10]]) if c.is_torque else v) for c, v in log.channels.items()
    }
    late = write_log(replace(log, name="late", channels=channels), folder / "late.csv", LogFormat.CSV)
    done = RUNNER.invoke(application(), ["payload", str(folder / "result"), str(late)])
    assert done.exit_code == 1
    assert re.search(r"torque is (9|10|11) ms late against position", done.stderr.replace("\n", " "))


@pytest.mark.parametrize("extra", [(), ("--static",), ("--online",)])
def test_signals_of_the_wrong_kind_are_refused(folder: Path, extra: tuple[str, ...]) -> None:
    """Currents without drive gains, or no torque at all."""
    log = unchecked_log(folder / LOADED[0], ROBOT)
    q = {Channel.POSITION: log[Channel.POSITION]}
    for name, channels, message in (
        ("bare", q, "torque"),
        ("current", q | {Channel.CURRENT: log[Channel.LINK_TORQUE]}, "no drive gains"),
    ):
        path = write_log(replace(log, name=name, channels=channels), folder / f"{name}.npz", LogFormat.NPZ)
        done = RUNNER.invoke(application(), ["payload", str(folder / "result"), str(path), *extra])
        assert done.exit_code == 1, done.output
        assert message in done.stderr.replace("\n", " ")


def test_with_a_known_gripper(folder: Path) -> None:
    result = run("payload", folder / "result", folder / "loaded.csv", "--gripper", "0.4,0.02,-0.01,0.06")
    assert result["mass"] == pytest.approx(0.6, abs=0.005)
    assert np.array(result["centre_of_mass"]) == pytest.approx(CENTRE, abs=3e-3)


@pytest.mark.parametrize(
    ("extra", "message"),
    [(("--static",), "at rest"), (("--static", "--online"), "one of them"), (("--gripper", "1,2"), "4 numbers")],
)
def test_known_failures_are_one_line(folder: Path, extra: tuple[str, ...], message: str) -> None:
    done = RUNNER.invoke(application(), ["payload", str(folder / "result"), str(folder / "loaded.csv"), *extra])
    assert done.exit_code == 1
    assert message in done.stderr.replace("\n", " ")


def test_on_line_identification_of_a_stream(folder: Path) -> None:
    log = unchecked_log(folder / "empty.csv", ROBOT)
    step = 5
    lines = "\n".join(
        json.dumps({"time": float(t), "position": q.tolist(), "torque": tau.tolist()})
        for t, q, tau in zip(
            log.time[::step], log[Channel.POSITION][::step], log[Channel.LINK_TORQUE][::step], strict=True
        )
    )
    result = run("online", "iiwa14", "--rate-hz", "200", "--out", folder / "online", text=lines)
    assert result["base_parameters"] == 64
    assert result["verdict"] == "trusted"
    assert json.loads((folder / "online" / "online.json").read_text())["samples"] == result["samples"]
    assert result["frozen"] == []
    assert result["gaps"] == 0
    followed = RUNNER.invoke(application(), ["online", "iiwa14", "--rate-hz", "200", "--follow"], input=lines)
    assert followed.exit_code == 0, followed.exception
    assert len(followed.stdout.splitlines()) >= 13
    some = "\n".join(lines.splitlines()[:200])
    going_on = run("online", folder / "result", "--rate-hz", "200", text=some)
    assert going_on["frozen"] == []
    assert "start-trusted" in [check["code"] for check in going_on["checks"]]
    still = "\n".join(lines.splitlines()[:14])
    frozen = run("online", "iiwa14", "--rate-hz", "200", code=3, text=still)
    assert len(frozen["frozen"]) > 0
    assert "nothing has excited" in frozen["reasons"][0]
    assert RUNNER.invoke(application(), ["online", "iiwa14", "--rate-hz", "200", "--friction", "x"]).exit_code == 2
    bad = RUNNER.invoke(application(), ["online", "iiwa14", "--rate-hz", "200"], input="not json\n")
    assert bad.exit_code == 1
    assert "line 1" in bad.stderr


def test_a_grasp_in_a_stream_is_an_event(folder: Path) -> None:
    """A kilogram is picked up on the way, with forgetting on: one event, at the time it happened, and the new arm afterwards."""
    parts = [unchecked_log(folder / name, ROBOT) for name in ("empty.csv", LOADED[0])]
    lines, start = [], 0.0
    for log in parts:
        for t, q, tau in zip(
            log.time[:12000:5], log[Channel.POSITION][:12000:5], log[Channel.LINK_TORQUE][:12000:5], strict=True
        ):
            lines.append(json.dumps({"time": start + float(t), "position": q.tolist(), "torque": tau.tolist()}))
        start += float(log.time[:12000][-1]) + 0.005
    result = run("online", "iiwa14", "--rate-hz", "200", "--forget-s", "20", text="\n".join(lines))
    assert [event["code"] for event in result["events"]][-1] == "arm-changed"
    seconds = float(re.search(r"at ([\d.]+) s", result["events"][-1]["message"]).group(1))
    assert 12.0 < seconds < 13.0


def test_a_real_arm_from_the_command_line(tmp_path: Path) -> None:
    """UR10e by motor current: arm and gains from one pair of recordings, 2.805 kg in another, three weeks earlier."""
    folder = real_data("dynamics", "ur10e")
    mappings = ROOT / "docs" / "mappings"
    arguments = [
        "identify",
        folder / "ur10e.urdf",
        mappings / "ur10e-14harm50sec.yaml",
        mappings / "ur10e-14harm50sec-load.yaml",
        "--payload",
        "both",
        "--torques",
        "motor",
        "--rotor-inertia",
        "--data-root",
        real_data(),
        "--out",
        tmp_path / "arm",
    ]
    done = RUNNER.invoke(application(), [str(a) for a in arguments])
    assert done.exit_code in (0, 3), done.output
    text = (
        (mappings / "ur10e-14harm50sec-load.yaml")
        .read_text()
        .replace("ur-20_02_19_14harm50secLoad", "ur-20_01_31-load")
    )
    (tmp_path / "other.yaml").write_text("\n".join(x for x in text.splitlines() if not x.startswith("rows:")))
    # Possible bodies do not fit this arm's wrist; what is weighed with it is no more to be trusted than the arm.
    result = run("payload", tmp_path / "arm", tmp_path / "other.yaml", "--data-root", real_data(), code=done.exit_code)
    assert result["mass"] == pytest.approx(2.805, rel=0.03)
    assert abs(result["mass"] - 2.805) < 3.0 * result["standard_deviations"]["mass"]
    assert not result["inertia_separated"]
