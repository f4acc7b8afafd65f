"""A sensor file named by a mapping: undone as `identify --sensors` undoes it, read from where data may be read, never twice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.errors import InputError
from armid.identification.provenance import check_apart, log_record
from armid.identification.result import Result
from armid.logs import Channel, Log, open_recording
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.simulation.variation import varied
from support.identified import EFFECTS, log, urdf_file

_GAIN = 0.2
"""Planted: the second joint's torque is recorded so much too large."""


_JOINTS = f"joints: [{', '.join(load_robot(str(urdf_file())).joint_names)}]"


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot(str(urdf_file()))


@pytest.fixture
def folder(tmp_path: Path, robot: Robot) -> Path:
    """Two recordings with the planted gain, a mapping of each that names the sensor file, and one that does not."""
    truth = varied(robot, 0.2, np.random.default_rng(1))
    for k in (1, 2):
        _write(tmp_path / f"run{k}.csv", log(robot, truth, seed=k, seconds=10.0))
        _mapping(tmp_path, f"named{k}", f"run{k}.csv", "sensors: sensors.yaml")
        _mapping(tmp_path, f"bare{k}", f"run{k}.csv")
    _sensors(tmp_path / "sensors.yaml", robot, _GAIN)
    return tmp_path


def _write(path: Path, recorded: Log) -> None:
    torque = recorded.channels[Channel.LINK_TORQUE] * np.where(np.arange(len(recorded.joints)) == 1, 1.0 + _GAIN, 1.0)
    n = len(recorded.joints)
    header = ["t", *(f"q{i + 1}" for i in range(n)), *(f"tau{i + 1}" for i in range(n))]
    table = np.column_stack([recorded.time, recorded.channels[Channel.POSITION], torque])
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="")


def _mapping(folder: Path, name: str, file: str, *more: str) -> None:
    channels = "channels:\n  position: {columns: 'q{i}'}\n  torque: {columns: 'tau{i}', side: link}"
    lines = ("schema: armid.log/1", f"file: {file}", "clock: {column: t}", _JOINTS, channels, *more)
    (folder / f"{name}.yaml").write_text("\n".join(lines) + "\n")


def _sensors(path: Path, robot: Robot, gain: float) -> None:
    path.write_text(f"schema: armid.sensors/1\njoints:\n  {robot.joint_names[1]}: {{gain: {gain}}}\n")


def _identified(folder: Path, robot: Robot, name: str, sensors: Path | None = None) -> Result:
    return armid.identify(
        robot,
        folder / f"{name}1.yaml",
        validate=folder / f"{name}2.yaml",
        sensors=sensors,
        effects=EFFECTS,
        imperfections="none",
        sensitivity=False,
    )


def test_a_gain_is_undone_by_the_mapping_as_by_the_option(folder: Path, robot: Robot) -> None:
    named = _identified(folder, robot, "named")
    given = _identified(folder, robot, "bare", folder / "sensors.yaml")
    plain = _identified(folder, robot, "bare")
    np.testing.assert_array_equal(named.standard, given.standard)
    assert named.joints == given.joints
    assert not np.allclose(named.standard, plain.standard, rtol=1e-2)
    assert named.relative_error["held_out"] < 0.5 * plain.relative_error["held_out"]
    assert named.imperfections is not None
    assert given.imperfections is not None
    assert named.imperfections.sentences() == given.imperfections.sentences()


def test_a_recording_says_that_its_mapping_names_sensors(folder: Path, robot: Robot) -> None:
    read = armid.read_log(folder / "named1.yaml", robot)
    assert "sensors-named" in {note.code for note in read.notes}
    assert Path(read.source.sensors) == (folder / "sensors.yaml").resolve()
    bare = armid.read_log(folder / "bare1.yaml", robot)
    np.testing.assert_array_equal(read.channels[Channel.LINK_TORQUE], bare.channels[Channel.LINK_TORQUE])


def test_both_given_is_refused(folder: Path, robot: Robot) -> None:
    with pytest.raises(InputError, match="named by the mapping"):
        _identified(folder, robot, "named", folder / "sensors.yaml")


def test_mappings_must_agree(folder: Path, robot: Robot) -> None:
    _mapping(folder, "named2", "run2.csv")
    with pytest.raises(InputError, match="names no sensor file"):
        _identified(folder, robot, "named")
    _sensors(folder / "other.yaml", robot, 0.1)
    _mapping(folder, "named2", "run2.csv", "sensors: other.yaml")
    with pytest.raises(InputError, match="differ"):
        _identified(folder, robot, "named")


def test_a_copy_of_the_file_is_the_same_file(folder: Path, robot: Robot) -> None:
    (folder / "copy.yaml").write_bytes((folder / "sensors.yaml").read_bytes())
    _mapping(folder, "named2", "run2.csv", "sensors: copy.yaml")
    assert _identified(folder, robot, "named").imperfections


@pytest.mark.parametrize(
    ("sensors", "why"),
    [("../sensors.yaml", "outside"), ("nowhere.yaml", "does not exist"), ("[1]", "sensors"), ("link.yaml", "outside")],
)
def test_a_sensor_file_is_read_only_from_where_data_is(folder: Path, robot: Robot, sensors: str, why: str) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "run1.csv").write_bytes((folder / "run1.csv").read_bytes())
    (inner / "link.yaml").symlink_to(folder / "sensors.yaml")
    _mapping(inner, "one", "run1.csv", f"sensors: {sensors}")
    with pytest.raises(InputError, match=why):
        armid.read_log(inner / "one.yaml", robot)


def test_a_data_root_lets_the_sensor_file_lie_there(folder: Path, robot: Robot) -> None:
    inner = folder / "inner"
    inner.mkdir()
    _mapping(inner, "one", "run1.csv", "sensors: ../sensors.yaml")
    read = armid.read_log(inner / "one.yaml", robot, data_root=folder)
    assert Path(read.source.sensors) == (folder / "sensors.yaml").resolve()


def test_an_earlier_result_undoes_its_sensors_once(folder: Path, robot: Robot, tmp_path: Path) -> None:
    _identified(folder, robot, "named").save(tmp_path / "first")
    first = armid.load_result(tmp_path / "first")
    truth = varied(robot, 0.2, np.random.default_rng(1))
    _write(folder / "run3.csv", log(robot, truth, seed=3, seconds=10.0))
    _mapping(folder, "named3", "run3.csv", "sensors: sensors.yaml")
    words = {"prior": first, "effects": EFFECTS, "imperfections": "none", "sensitivity": False}
    both = armid.identify(robot, folder / "named3.yaml", **words)
    assert both.relative_error["held_out"] < 2.0 * first.relative_error["held_out"]
    assert both.imperfections is not None
    assert first.imperfections is not None
    assert both.imperfections.sentences() == first.imperfections.sentences()
    _mapping(folder, "written3", "run3.csv", "sensors: first/sensors.yaml")
    again = armid.identify(robot, folder / "written3.yaml", **words)
    np.testing.assert_array_equal(again.standard, both.standard)
    _sensors(folder / "sensors.yaml", robot, 0.1)
    with pytest.raises(InputError, match="--prior"):
        armid.identify(robot, folder / "named3.yaml", **words)


@pytest.mark.parametrize("named", [True, False])
def test_factors_of_single_joints_go_by_their_names(folder: Path, robot: Robot, named: bool) -> None:
    """Names of the mapping in any order, or those of the arm; what is not named stays as it is."""
    bare, factors = (folder / f"{name}.yaml" for name in ("bare1", "factors"))
    second, third = robot.joint_names[1], robot.joint_names[2]
    text = bare.read_text()
    if not named:  # without names a pattern cannot be spelled out
        text = text.replace(f"{_JOINTS}\n", "")
        for word in ("q", "tau"):
            text = text.replace(f"'{word}{{i}}'", str([f"{word}{k + 1}" for k in range(robot.n_joints)]))
    text = text.replace("side: link", f"side: link, gain: {{{second}: 0.5}}, sign: {{{third}: -1}}")
    factors.write_text(text.replace("position: {", f"position: {{offset: {{{second}: 0.25}}, "))
    plain, changed = (armid.read_log(path, robot) for path in (bare, factors))
    torque, position = ([log.channels[c] for log in (plain, changed)] for c in (Channel.LINK_TORQUE, Channel.POSITION))
    factor = np.ones(robot.n_joints)
    factor[1:3] = 0.5, -1.0
    np.testing.assert_allclose(torque[1], factor * torque[0])
    np.testing.assert_allclose(
        position[1] - position[0], [[0.25 * (k == 1) for k in range(robot.n_joints)]] * len(plain.time)
    )


@pytest.mark.parametrize(
    ("factor", "problem"),
    [
        ("gain: {nobody: 2}", "nobody"),
        ("gain: {}", "names no joint"),
        ("sign: {NAME: 2}", "expected 1 or -1"),
        ("gain: {NAME: much}", "finite number"),
        ("gain: {NAME: 2}, matrix: [[1, 0, 0], [0, 1, 0], [0, 0, 1]]", "whose columns are no joints"),
    ],
)
def test_a_factor_of_a_joint_that_cannot_be_meant_is_refused(
    folder: Path, robot: Robot, factor: str, problem: str
) -> None:
    path = folder / "bare1.yaml"
    path.write_text(
        path.read_text().replace("side: link", f"side: link, {factor}".replace("NAME", robot.joint_names[1]))
    )
    with pytest.raises(armid.ArmidError, match=problem):
        armid.read_log(path, robot)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_clock_of_a_sensor_file_is_taken_out_of_derived_velocities_alone(
    robot: Robot, tmp_path: Path, recorded: bool
) -> None:
    """Stamped 5 % too long: recorded velocities know nothing of it, and acceleration holds it once."""
    truth = varied(robot, 0.2, np.random.default_rng(1))
    logs = [log(robot, truth, seed=k, seconds=10.0) for k in (1, 2)]
    if recorded:
        speeds = [np.gradient(one.channels[Channel.POSITION], one.time, axis=0) for one in logs]
        logs = [replace(o, channels={**o.channels, Channel.VELOCITY: v}) for o, v in zip(logs, speeds, strict=True)]
    stamped = [replace(one, time=1.05 * one.time) for one in logs]
    (tmp_path / "sensors.yaml").write_text("schema: armid.sensors/1\nclock: {value: 0.05}\n")
    velocity = "measured" if recorded else "position"
    options = {"effects": EFFECTS, "imperfections": "none", "sensitivity": False, "velocity": velocity}
    true = armid.identify(robot, logs[0], validate=logs[1], **options)
    undone = armid.identify(robot, stamped[0], validate=stamped[1], sensors=tmp_path / "sensors.yaml", **options)
    viscous = [k for k, name in enumerate(true.information.parameters) if name.endswith("viscous")]
    np.testing.assert_allclose(undone.standard[viscous], true.standard[viscous], rtol=0.01)


def test_rows_of_a_file_without_stamps_keep_their_place_in_it(folder: Path, robot: Robot) -> None:
    """Two windows of one file are two motions where they do not overlap, and none is a test of the other where they do."""
    text = (folder / "bare1.yaml").read_text().replace("clock: {column: t}", "clock: {step: 0.01}")
    for name, rows in (("first", [1, 500]), ("second", [501, 1000]), ("both", [400, 900])):
        (folder / f"{name}.yaml").write_text(f"{text}rows: {rows}\n")
    first, second, both = (
        log_record(open_recording(folder / f"{name}.yaml", robot)) for name in ("first", "second", "both")
    )
    assert [first.start_s, second.start_s] == pytest.approx([0.0, 5.0])
    check_apart([first], [second])
    with pytest.raises(InputError, match="same rows"):
        check_apart([both], [second])
