"""`armid sequential` from outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.documents import plain
from armid.errors import UnknownNameError
from armid.identifiability.structure import structural_base
from armid.kernels.dynamics import inverse_dynamics
from armid.logs.log import Channel, Log
from armid.logs.read import unchecked_log
from armid.motions.fourier import FourierTrajectory
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from armid.sequential.estimate import TipToBase
from armid.sequential.identify import identify_sequential
from armid.sequential.sequential import sequential_checks
from armid.sequential.stages import Staging, stages_of_log
from armid.simulation.scenario import Scenario, run_scenario
from support.khosla import START_3, TABLE_3, sinusoid, vector
from support.outcomes import answer_of, check_family, failing

RUNNER = CliRunner()


def run(*arguments: object, code: int = 0) -> dict[str, object]:
    done = RUNNER.invoke(application(), [*(str(a) for a in arguments), "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def stage_file(folder: Path, first: int) -> Path:
    """Three seconds of the direct-drive arm at 500 Hz with the joints before `first` on their brakes."""
    robot = load_robot("cmu-dd-arm2")
    t = np.arange(0.0, 3.0, 0.002)
    w = np.array([5.0, 7.0, 9.0])
    moves = np.arange(3) >= first
    q = np.where(moves, 0.7 * np.sin(np.outer(t, w)), 0.3)
    qd = np.where(moves, 0.7 * w * np.cos(np.outer(t, w)), 0.0)
    qdd = np.where(moves, -0.7 * w**2 * np.sin(np.outer(t, w)), 0.0)
    tau = inverse_dynamics(robot, q, qd, qdd)
    header = "time," + ",".join(f"{k}_{name}" for k in ("q", "tau") for name in robot.joint_names)
    path = folder / f"stage{first + 1}.csv"
    np.savetxt(path, np.column_stack([t, q, tau]), delimiter=",", header=header, comments="")
    return path


def test_stages_with_locked_joints(tmp_path: Path) -> None:
    files = [stage_file(tmp_path, k) for k in (0, 2, 1)]
    out = tmp_path / "out"
    result = run(
        "sequential", "cmu-dd-arm2", *files[1:], files[0], "--friction", "none", "--cutoff-hz", "40", "--out", out
    )
    assert result["base_parameters"] == 11
    assert [s["joint"] for s in result["stages"]][:2] == ["joint3", "joint3"]
    assert result["known_directions"] == 11
    robot = load_robot("cmu-dd-arm2")
    for p in result["parameters"]:
        truth = sum(c * robot.inertial[10 * (int(name[4]) - 1) + order(name)] for name, c in p["terms"].items())
        assert p["value"] == pytest.approx(truth, abs=2e-3), p["name"]
    assert (out / "sequential.json").exists()


def test_the_function_behind_the_verb(tmp_path: Path) -> None:
    """Paths or objects, words or objects; the command line prints what the function returns."""
    robot = load_robot("cmu-dd-arm2")
    path = stage_file(tmp_path, 0)
    printed = run("sequential", "cmu-dd-arm2", path, "--friction", "none", "--cutoff-hz", "40", "--from-nominal")
    found = identify_sequential(robot, unchecked_log(path, robot), effects=Effects(), cutoff_hz=40.0, start="nominal")
    assert answer_of(printed) == plain(found.as_dict())
    assert found.parameters["link3.mx"].standard_deviation > 0.0
    assert found.parameters.sorted_by("value")[0].value == min(p.value for p in found.parameters)
    assert not failing(found)
    check_family(found, tmp_path, figures=2)


def test_the_default_effects_are_those_of_every_verb(tmp_path: Path) -> None:
    result = run("sequential", "cmu-dd-arm2", stage_file(tmp_path, 0), "--cutoff-hz", "40")
    assert result["base_parameters"] == 11 + 9
    names = [p["name"] for p in result["parameters"]]
    assert {"joint1.viscous", "joint2.coulomb", "joint3.offset"} <= set(names)


def test_friction_that_drives_is_not_to_be_trusted(tmp_path: Path) -> None:
    """Torque with friction of the wrong sign: something pushed the arm."""
    robot = load_robot("cmu-dd-arm2")
    log = unchecked_log(stage_file(tmp_path, 0), robot)
    velocity = np.gradient(log[Channel.POSITION], log.time, axis=0)
    pushed = {Channel.LINK_TORQUE: log[Channel.LINK_TORQUE] - 2.0 * velocity}
    found = identify_sequential(robot, replace(log, channels=dict(log.channels) | pushed), cutoff_hz=40.0)
    assert "friction-opposes" in failing(found)
    assert found.verdict == "untrusted"
    assert "cannot drive" in found.reasons[0]


def test_round_off_of_exact_data_is_no_friction(tmp_path: Path) -> None:
    """Samples to seventeen digits: friction comes out as round-off of either sign, with deviations of round-off."""
    robot = load_robot("cmu-dd-arm2")
    file = sampled_file(tmp_path / "log.csv", robot, sinusoid(3, count=40), robot.inertial)
    found = identify_sequential(robot, file, as_recorded=True, friction="viscous")
    assert "friction-opposes" not in failing(found)
    values = {p.name: p.value for p in found.parameters}
    assert max(abs(values[f"joint{k}.viscous"]) for k in (1, 2, 3)) < 1e-9


def test_torque_of_something_else_is_said(tmp_path: Path) -> None:
    robot = load_robot("cmu-dd-arm2")
    log = unchecked_log(stage_file(tmp_path, 0), robot)
    noise = np.random.default_rng(0).normal(size=log[Channel.LINK_TORQUE].shape)
    found = identify_sequential(
        robot,
        replace(log, channels=dict(log.channels) | {Channel.LINK_TORQUE: noise}),
        cutoff_hz=40.0,
        accept=("gravity-compensated",),
    )
    assert "torque-explained" in failing(found)


def test_errors_without_bound_are_not_to_be_trusted(tmp_path: Path) -> None:
    robot = load_robot("cmu-dd-arm2")
    found = identify_sequential(robot, stage_file(tmp_path, 0), friction="none", cutoff_hz=40.0)
    covariance = np.array(found.estimate.covariance)
    covariance[0, 0] = np.inf
    wild = sequential_checks(found.estimate.with_covariance(covariance, "wild"), found.found, TorqueRows(robot).space)
    assert [check.code for check in wild if not check.passed] == ["errors-bounded"]


def test_words_that_do_not_exist_are_usage(tmp_path: Path) -> None:
    for option, word in (("--torques", "both"), ("--velocity", "guessed"), ("--friction", "stribeck")):
        done = RUNNER.invoke(application(), ["sequential", "cmu-dd-arm2", "missing.csv", option, word])
        assert done.exit_code == 2, done.output
    with pytest.raises(UnknownNameError, match="no torques named 'both'"):
        identify_sequential("cmu-dd-arm2", stage_file(tmp_path, 0), torques="both")


def order(name: str) -> int:
    return ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz").index(name.split(".")[1])


def test_a_stage_alone_is_not_to_be_trusted(tmp_path: Path) -> None:
    result = run(
        "sequential", "cmu-dd-arm2", stage_file(tmp_path, 2), "--friction", "none", "--cutoff-hz", "40", code=3
    )
    assert result["notes"][0]["code"] == "not-determined"
    assert result["stages"][0]["locked"] == ["joint1", "joint2"]


def sampled_file(path: Path, robot: Robot, x: np.ndarray, truth: np.ndarray) -> Path:
    """Twenty-five samples at 20 ms with velocity and acceleration, as [Khosla1985] simulates them."""
    tau = inverse_dynamics(robot, *np.split(x, 3, axis=1), inertial=truth)
    kinds = ("q", "qd", "qdd", "tau")
    header = "time," + ",".join(f"{k}_{name}" for k in kinds for name in robot.joint_names)
    t = 0.02 * np.arange(1, len(x) + 1)
    np.savetxt(path, np.column_stack([t, x, tau]), delimiter=",", header=header, comments="", fmt="%.17g")
    return path


def test_table_2_from_25_samples(tmp_path: Path) -> None:
    robot = load_robot("cylindrical")
    file = sampled_file(tmp_path / "log.csv", robot, sinusoid(3), robot.inertial)
    result = run("sequential", "cylindrical", file, "--as-recorded", "--friction", "none")
    assert [s["found"] for s in result["stages"]] == [3, 1, 1]
    assert [s["rows"] for s in result["stages"]] == [25, 25, 25]
    value = {p["name"]: p["value"] for p in result["parameters"]}
    printed = {"link3.mz": 1.25, "link3.mass": 2.5, "link2.mass": 5.0, "link1.Izz": 2.5}
    for name, expected in printed.items():
        assert value[name] == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("locked", [False, True])
def test_table_3_from_25_samples(tmp_path: Path, locked: bool) -> None:
    """The 11 combinations of table 3's true values, from its own starting values; fewer per stage with joints locked."""
    robot = load_robot("cmu-dd-arm2")
    source = TorqueRows(robot)
    truth = vector(source, TABLE_3)
    (tmp_path / "start.json").write_text(json.dumps(START_3))
    moving = [(2,), (1, 2), (0, 1, 2)] if locked else [(0, 1, 2)]
    files = [
        sampled_file(tmp_path / f"log{k}.csv", robot, sinusoid(3, moving=joints), truth)
        for k, joints in enumerate(moving)
    ]
    command = ["sequential", "cmu-dd-arm2", *map(str, files), "--as-recorded", "--start", str(tmp_path / "start.json")]
    command += ["--friction", "none"]
    done = RUNNER.invoke(application(), [*command, "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    found = {(s["joint"], len(s["locked"])): s["found"] for s in result["stages"]}
    whole = {("joint3", 0): 7, ("joint2", 0): 3, ("joint1", 0): 1}
    # The first stage of the locked plan leaves to the later ones what it cannot see.
    apart = {("joint3", 2): 3, ("joint3", 0): 4, ("joint2", 1): 1, ("joint2", 0): 2, ("joint1", 0): 1}
    assert found == (apart if locked else whole)
    for p in result["parameters"]:
        assert p["value"] == pytest.approx(sum(c * TABLE_3.get(n, 0.0) for n, c in p["terms"].items()), abs=5e-5)
    assert len(result["alone"]) == 6
    assert len(result["invisible_changes"]) == 6
    text = " ".join(done.stderr.split())
    assert "17 standard parameters show in the torque, but their columns are dependent: 11 combinations" in text
    assert "6 changes that no torque notices" in text
    # A change no torque notices has no part in what was found: those directions stay where they started.
    moved = np.array([result["standard"][n] - START_3.get(n, 0.0) for n in source.columns])
    for change in result["invisible_changes"]:
        assert abs(sum(moved[source.columns.index(n)] * c for n, c in change.items())) < 1e-7
    assert abs(result["standard"]["link1.Ixx"]) < 1e-12


def test_only_the_stage_of_each_joint_with_25_samples(tmp_path: Path) -> None:
    """The off-line procedure of [Khosla1985]: joint k's torque with the joints before it locked, 3 + 5 + 3 directions."""
    robot = load_robot("cmu-dd-arm2")
    source = TorqueRows(robot)
    truth = vector(source, TABLE_3)
    stages = []
    for k in (2, 1, 0):
        x = sinusoid(3, moving=tuple(range(k, 3)))
        log = unchecked_log(sampled_file(tmp_path / f"log{k}.csv", robot, x, truth), robot)
        stages.append(
            stages_of_log(log, robot, Staging(as_recorded=True, locked=robot.joint_names[:k]))[-1 if k == 0 else 0]
        )
    found = TipToBase().fit(source, stages)
    assert [(s.joint, s.found) for s in found.stages] == [("joint3", 3), ("joint2", 5), ("joint1", 3)]


def test_commanded_motion_is_the_output_error_structure(tmp_path: Path) -> None:
    """The measured position is spoilt, the commanded one is what the torque belongs to."""
    robot = load_robot("cmu-dd-arm2")
    table = np.genfromtxt(stage_file(tmp_path, 0), delimiter=",", names=True)
    names = robot.joint_names
    q = np.column_stack([table[f"q_{n}"] for n in names])
    tau = np.column_stack([table[f"tau_{n}"] for n in names])
    late = np.column_stack([np.interp(table["time"] - 0.02, table["time"], c) for c in q.T])
    header = "time," + ",".join(f"{k}_{n}" for k in ("q", "q_cmd", "tau") for n in names)
    path = tmp_path / "both.csv"
    np.savetxt(path, np.column_stack([table["time"], late, q, tau]), delimiter=",", header=header, comments="")
    options = ("--friction", "none", "--cutoff-hz", "40", "--accept", "torque-lag")
    truth = structural_base(TorqueRows(robot)).values(robot.inertial)
    worst = {}
    for option in ("--commanded", ""):
        result = run("sequential", "cmu-dd-arm2", path, *options, *([option] if option else []))
        worst[result["structure"]] = np.abs([p["value"] for p in result["parameters"]] - truth).max()
    assert worst["output-error"] < 5e-3
    assert worst["input-error"] > 20 * worst["output-error"]
    table_only = stage_file(tmp_path, 1)
    done = RUNNER.invoke(application(), ["sequential", "cmu-dd-arm2", str(table_only), "--commanded"])
    assert done.exit_code == 1
    assert "position.commanded" in done.stderr


def test_from_a_plan_to_its_parameters(tmp_path: Path) -> None:
    """design --sequential, simulate with brakes, sequential --plan: the 11 combinations within their intervals."""
    plan = tmp_path / "plan"
    run(
        "design",
        "cmu-dd-arm2",
        "--sequential",
        "--friction",
        "none",
        "--starts",
        "1",
        "--seconds",
        "3",
        "--workers",
        "1",
        "--period",
        "6",
        "--out",
        plan,
    )
    logs = []
    for k in (1, 2, 3):
        brakes = [w for name in ("joint1", "joint2")[: 3 - k] for w in ("--lock", name)]
        place = tmp_path / f"run{k}"
        run("simulate", "cmu-dd-arm2", plan / f"experiment{k}.json", *brakes, "--out", place, "--seed", k)
        logs.append(next(place.glob("*.csv")))
    options = ("--plan", plan, "--friction", "viscous,coulomb")
    result = run("sequential", "cmu-dd-arm2", *logs, *options)
    robot = load_robot("cmu-dd-arm2")
    assert [len(s["locked"]) for s in result["stages"]][:1] == [2]
    for p in result["parameters"]:
        if p["name"].startswith("link"):
            truth = sum(
                c * robot.inertial[10 * (int(n[4]) - 1) + order(n)] for n, c in p["terms"].items() if n[0] == "l"
            )
            assert abs(p["value"] - truth) < max(5.0 * p["standard_deviation"], 0.02 * abs(truth)), p["name"]
    # The same recordings in another order do not keep to the plan.
    done = RUNNER.invoke(application(), ["sequential", "cmu-dd-arm2", *map(str, reversed(logs)), *map(str, options)])
    assert done.exit_code == 1
    assert "'joint1' should be locked but moved" in done.stderr


@pytest.mark.parametrize(
    ("change", "options", "match"),
    [
        ({}, ("--locked", "joint1"), "'joint1' should be locked but moved by"),
        ({}, ("--locked", "joint9"), "joint9"),
        ({}, ("--as-recorded",), "velocity"),
        ({"q": lambda q: np.column_stack([0.3 + 0.005 * np.sin(q[:, 0]), q[:, 1:]])}, (), "too far for a locked joint"),
        ({"q": lambda q: 0.3 + 0.0 * q}, (), "no joint moves"),
        ({"q": np.degrees}, (), "degrees"),
        ({"tau": lambda tau: 0.0 * tau}, (), "torque-dead"),
        ({"tau": lambda tau: -tau}, (), "sign"),
    ],
)
def test_recordings_of_the_wrong_kind_are_refused(
    tmp_path: Path, change: dict[str, Callable[[np.ndarray], np.ndarray]], options: tuple[str, ...], match: str
) -> None:
    table = np.genfromtxt(stage_file(tmp_path, 0), delimiter=",", names=True)
    names = load_robot("cmu-dd-arm2").joint_names
    blocks = {kind: np.column_stack([table[f"{kind}_{n}"] for n in names]) for kind in ("q", "tau")}
    for kind, spoil in change.items():
        blocks[kind] = spoil(blocks[kind])
    header = "time," + ",".join(f"{k}_{n}" for k in blocks for n in names)
    path = tmp_path / "bad.csv"
    np.savetxt(path, np.column_stack([table["time"], *blocks.values()]), delimiter=",", header=header, comments="")
    done = RUNNER.invoke(application(), ["sequential", "cmu-dd-arm2", str(path), *options])
    assert done.exit_code == 1, done.output
    assert match in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("[1, 2]", "expected starting values"),
        ('{"link1.mass": "heavy"}', "not starting values"),
        ('{"link9.mass": 1}', "link9.mass"),
        ('{"link1.mass": NaN}', "link1.mass is nan"),
    ],
)
def test_starting_values_that_are_none(tmp_path: Path, content: str, match: str) -> None:
    (tmp_path / "start.json").write_text(content)
    command = ["sequential", "cmu-dd-arm2", str(stage_file(tmp_path, 0)), "--start", str(tmp_path / "start.json")]
    done = RUNNER.invoke(application(), command)
    assert done.exit_code == 1
    assert match in done.stderr


def test_a_plan_that_is_none(tmp_path: Path) -> None:
    command = ["sequential", "cmu-dd-arm2", str(stage_file(tmp_path, 0)), "--plan", str(tmp_path)]
    done = RUNNER.invoke(application(), command)
    assert done.exit_code == 1
    assert "holds no experiment1.json" in done.stderr


def simulated_log(robot: Robot, seed: int, *, speed: float, period: float) -> Log:
    """Two periods of five harmonics at a share of the velocity limits, on the embedded robot with its typical sensors.

    Its torque commands are held for a tick.
    """
    rng = np.random.default_rng(seed)
    sine, cosine = rng.normal(size=(2, robot.n_joints, 5)) / np.arange(1.0, 6.0)
    low, high = robot.limit("lower"), robot.limit("upper")
    middle = 0.5 * (low + high)
    unit = FourierTrajectory(robot.joint_names, period, middle, sine, cosine)
    q, qd, _ = unit.sample(np.arange(0.0, period, 0.01))
    room = 0.4 * (high - low) / np.abs(q - middle).max(axis=0)
    scale = np.minimum(room, speed * robot.limit("velocity") / np.abs(qd).max(axis=0))[:, np.newaxis]
    motion = replace(unit, sine=sine * scale, cosine=cosine * scale, repetitions=2)
    return run_scenario(robot, motion, Scenario()).log


def with_coulomb(name: str, amount: float) -> Robot:
    robot = load_robot(name)
    drives = [replace(joint.drive, viscous=1.0, coulomb=amount) for joint in robot.joints]
    return replace(robot, joints=tuple(replace(j, drive=d) for j, d in zip(robot.joints, drives, strict=True)))


@pytest.mark.parametrize(
    ("name", "speed", "period", "torques"),
    [("cmu-dd-arm2", 0.9, 3.0, "motor"), ("cmu-dd-arm2", 0.5, 4.0, "link"), ("panda", 0.5, 5.0, "motor")],
)
def test_torque_is_paired_with_its_motion_by_default(name: str, speed: float, period: float, torques: str) -> None:
    """Planted Coulomb friction of 0.5 N m comes back; half a tick is measured and taken out."""
    robot = with_coulomb(name, 0.5)
    log = simulated_log(robot, 3, speed=speed, period=period)
    found = identify_sequential(robot, log, torques=torques, friction="viscous,coulomb")
    coulomb = [p.value for p in found.parameters if p.name.endswith("coulomb")]
    assert len(coulomb) == robot.n_joints
    assert coulomb == pytest.approx([0.5] * len(coulomb), abs=0.01)
    assert found.verdict == "trusted", found.reasons
    (paired,) = (check for check in found.checks if check.code == "torque-paired")
    assert paired.value == pytest.approx(-0.0005, abs=1e-4)


def test_half_a_tick_matters() -> None:
    """The same without pairing: friction of a fast arm is far from what was planted."""
    robot = with_coulomb("cmu-dd-arm2", 0.5)
    log = simulated_log(robot, 3, speed=0.9, period=3.0)
    found = identify_sequential(robot, log, torques="motor", friction="viscous,coulomb", torque_delay=0.0)
    assert max(abs(p.value - 0.5) for p in found.parameters if p.name.endswith("coulomb")) > 0.1


def test_two_clocks_are_not_to_be_trusted() -> None:
    """Torque four milliseconds late at 1 kHz is no matter of stamps; told, and settled by saying so."""
    robot = with_coulomb("cmu-dd-arm2", 0.5)
    log = simulated_log(robot, 3, speed=0.5, period=4.0)
    late = {c: np.roll(v, 4, axis=0) for c, v in log.channels.items() if c.is_torque}
    moved = replace(log, channels=dict(log.channels) | late)
    found = identify_sequential(robot, moved, torques="motor", friction="viscous,coulomb")
    assert "torque-paired" in failing(found)
    assert "--torque-delay-ms 3.5" in next(reason for reason in found.reasons if "stamped" in reason)
    told = identify_sequential(robot, moved, torques="motor", friction="viscous,coulomb", torque_delay=0.0035)
    assert told.verdict == "trusted", told.reasons
