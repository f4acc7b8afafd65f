"""Headers as recorders of controllers write them; the files are made with NumPy alone."""

from __future__ import annotations

import numpy as np
import pytest

from armid.logs import Channel, Clock, Log, check_log, unchecked_log
from armid.logs.vocabulary import clock_name, meaning, taken_apart
from armid.robot.load import load_robot
from support.recordings import motion

T, _, _, _ = motion(1.0, 100.0)
RNG = np.random.default_rng(5)
WAVES = np.cumsum(RNG.normal(size=(len(T), 40)), axis=0)
Q, QD, TAU = 0.02 * WAVES[:, :7], WAVES[:, 7:14], WAVES[:, 14:21]


def written(path, header: list[str], columns: list[np.ndarray], delimiter: str = ",", prefix: str = ""):
    table = np.column_stack(columns)
    assert len(header) == table.shape[1]
    np.savetxt(path, table, fmt="%.17g", delimiter=delimiter, header=prefix + delimiter.join(header), comments="")
    return path


def numbered(pattern: str, n: int = 7, first: int = 0) -> list[str]:
    return [pattern.replace("#", str(i + first)) for i in range(n)]


def close(log: Log, **channels: np.ndarray) -> None:
    names = {"q": Channel.POSITION, "qd": Channel.VELOCITY, "tau": Channel.LINK_TORQUE, "ext": Channel.EXTERNAL_TORQUE}
    assert log.clock is Clock.COLUMN
    np.testing.assert_allclose(log.time - log.time[0], T, atol=1e-6)
    for name, values in channels.items():
        channel = names[name] if name in names else Channel(name.replace("_", "."))
        np.testing.assert_allclose(log[channel], values, rtol=1e-12, atol=1e-12)


def split_clock(offset: int = 1357000000) -> tuple[np.ndarray, np.ndarray]:
    nanoseconds = np.round(T * 1e9).astype(np.int64)
    return (nanoseconds // 10**9 + offset).astype(float), (nanoseconds % 10**9).astype(float)


@pytest.mark.parametrize("prefix", ["state.", ""])
def test_libfranka_log_with_all_its_columns(tmp_path, prefix):
    command = "cmd." if prefix else ""
    state = ("q", "q_d", "dq", "dq_d", "tau_J", "tau_ext_hat_filtered")
    header = ["time", *(f" {name}" for name in ["success_rate"])]
    for name in state:
        header += numbered(f" {prefix}{name}[#]")
    header += numbered(f" {command}q_d[#]") + numbered(f" {command}dq_d[#]") + numbered(f" {command}O_T_EE_d[#]", 16)
    header += numbered(f" {command}O_dP_EE_d[#]", 6) + numbered(f" {command}tau_J_d[#]")
    zero = np.zeros_like(Q)
    columns = [T * 1e3, np.ones_like(T), Q, Q + 1.0, QD, QD + 1.0, TAU, 0.1 * TAU, zero, zero]
    columns += [np.zeros((len(T), 16)), np.zeros((len(T), 6)), zero]
    log = unchecked_log(written(tmp_path / "log.csv", header, columns), load_robot("panda"))
    close(log, q=Q, qd=QD, tau=TAU, ext=0.1 * TAU, position_commanded=Q + 1.0)
    assert log.source.reader == "libfranka"


@pytest.mark.parametrize("delimiter", [" ", ",", ";"])
def test_rtde_record_with_everything_the_controller_offers(tmp_path, delimiter):
    n = 6
    q, qd, tau = Q[:, :n], QD[:, :n], TAU[:, :n]
    ones, columns = np.ones_like(q), [T + 798.0]
    header = ["timestamp"]
    for name, values in (
        ("target_q", q + 1.0),
        ("target_qd", qd + 1.0),
        ("target_qdd", qd),
        ("target_current", tau + 9.0),
        ("target_moment", tau),
        ("actual_q", q),
        ("actual_qd", qd),
        ("actual_current", tau / 10.0),
        ("joint_control_output", ones),
        ("actual_TCP_pose", ones),
        ("actual_TCP_speed", ones),
        ("actual_TCP_force", ones),
        ("joint_temperatures", 30.0 * ones),
        ("joint_mode", 253.0 * ones),
        ("actual_joint_voltage", 48.0 * ones),
    ):
        header += numbered(f"{name}_#", n)
        columns.append(values)
    header += ["actual_robot_current", "speed_scaling", "actual_execution_time"]
    columns += [np.full_like(T, 1.3), np.ones_like(T), np.full_like(T, 0.3)]
    log = unchecked_log(written(tmp_path / "log.csv", header, columns, delimiter), load_robot("ur10e"))
    close(log, q=q, qd=qd, torque_current=tau / 10.0, torque_commanded=tau, position_commanded=q + 1.0)
    np.testing.assert_allclose(log[Channel.TEMPERATURE], 30.0)
    assert log.source.reader == "rtde"


@pytest.mark.parametrize("unit", ["deg", "rad"])
@pytest.mark.parametrize(("device", "index"), [("LBR_iiwa_14_R820_1", "[#]"), ("LBR_Med_7_R800_1", "_#")])
def test_sunrise_data_recorder(tmp_path, unit, device, index):
    """Header behind a percent sign, white space, time in two columns, the device in every name, the unit of angles nowhere."""
    seconds, nanoseconds = split_clock()
    scale = 180.0 / np.pi if unit == "deg" else 1.0
    header = ["ZeitInSec", "ZeitInNanoSec", *numbered(f"axisTauMsr_{device}{index}")]
    header += [*numbered(f"axisTauExtMsr_{device}{index}"), "cartForce1_X", "cartForce1_Y", "cartForce1_Z"]
    header += numbered(f"axisQCmdT1m_{device}{index}") + numbered(f"axisQMsr_{device}{index}") + ["cartPosMsr1_X"]
    wrench = np.ones((len(T), 3))
    columns = [seconds, nanoseconds, TAU, 0.1 * TAU, wrench, (Q + 0.5) * scale, Q * scale, wrench[:, 0]]
    log = unchecked_log(written(tmp_path / "DataRecorder.log", header, columns, " ", "% "), load_robot("iiwa14"))
    close(log, q=Q, tau=TAU, ext=0.1 * TAU, position_commanded=Q + 0.5)
    assert log.time[0] == pytest.approx(1357000000.0, abs=1e-6)
    assert log.source.reader == "sunrise"
    assert any(f"[{unit}]" in note.message for note in log.notes if note.code == "mapping-guess")


@pytest.mark.parametrize(
    ("position", "torque", "external"),
    [
        ("msrJntPos[#]", "msrJntTrq[#]", "estExtJntTrq[#]"),
        ("measured_joint_position_#", "measured_torque_#", "external_torque_#"),
        ("joint_position_measured[#]", "joint_torque_measured[#]", "joint_torque_external[#]"),
        ("/lbr/state/measured_joint_position[#]", "/lbr/state/measured_torque[#]", "/lbr/state/external_torque[#]"),
    ],
)
@pytest.mark.parametrize(
    "clock", [("time_stamp_sec", "time_stamp_nano_sec"), ("TimestampSec", "TimestampNanoSec"), ("utime",), ("__time",)]
)
def test_fri_clients(tmp_path, position, torque, external, clock):
    stamps = {2: list(split_clock()), 1: [T * 1e6 if clock == ("utime",) else T]}[len(clock)]
    header = [*clock, "sample_time", *numbered(position), *numbered(torque), *numbered(external)]
    columns = [*stamps, np.full_like(T, 0.01), Q, TAU, 0.1 * TAU]
    log = unchecked_log(written(tmp_path / "fri.txt", header, columns, "\t"), load_robot("iiwa14"))
    close(log, q=Q, tau=TAU, ext=0.1 * TAU)
    assert log.source.reader == "fri"


@pytest.mark.parametrize(
    ("position", "torque", "channel", "clock", "scale"),
    [
        ("$AXIS_ACT.A#", "$TORQUE_AXIS_ACT[#]", Channel.MOTOR_TORQUE, "Time", 1.0),
        ("$AXIS_ACT_MEAS[#]", "$TORQUE_AXIS_ACT[#]", Channel.MOTOR_TORQUE, "Zeit [s]", 1.0),
        ("AIPos.A#", "MACur.A#", Channel.CURRENT, "IPOC", 1e3),
        ("AXIS_ACT A#", "CURR_ACT A#", Channel.CURRENT, "t [ms]", 1e3),
    ],
)
def test_variables_of_krl_and_rsi_are_in_degrees(tmp_path, position, torque, channel, clock, scale):
    q, tau = Q[:, :6], TAU[:, :6]
    header = [clock, *numbered(position, 6, 1), *numbered(torque, 6, 1)]
    log = unchecked_log(
        written(tmp_path / "trace.csv", header, [T * scale, np.degrees(q), tau], ";"), load_robot("mabi-max100")
    )
    close(log, q=q)
    np.testing.assert_allclose(log[channel], tau, rtol=1e-12)
    assert log.source.reader == "krl"


def test_joint_names_inside_topics(tmp_path):
    """As exported by a plotting tool from JointState messages, joints in another order than the robot's."""
    robot = load_robot("panda")
    order = RNG.permutation(7)
    header = ["__time"]
    columns = [T]
    for field, values in (("position", Q), ("velocity", QD), ("effort", TAU)):
        header += [f"/joint_states/{robot.joint_names[j]}/{field}" for j in order]
        columns.append(values[:, order])
    close(unchecked_log(written(tmp_path / "plot.csv", header, columns), robot), q=Q, qd=QD, tau=TAU)


@pytest.mark.parametrize(
    ("name", "channel"),
    [
        ("joint_position_measured_1", Channel.POSITION),
        ("current_joint_position[0]", Channel.POSITION),
        ("motorCurrent3", Channel.CURRENT),
        ("tau_ext_hat_filtered[2]", Channel.EXTERNAL_TORQUE),
        ("desired_torque_2", Channel.COMMANDED_TORQUE),
        ("axisTauExtMsr_LBR_iiwa_7_R800_1[6]", Channel.EXTERNAL_TORQUE),
        ("rec.act_pos_mot_deg", Channel.MOTOR_POSITION),
        ("actual_TCP_pose_0", None),
        ("target_current_0", None),
        ("actual_joint_voltage_1", None),
        ("cartPosMsr1_X", None),
        ("state.dq_d[1]", None),
        ("dtau_J[1]", None),
        ("freq1", None),
        ("q" * 200, None),
    ],
)
def test_meaning_of_names(name, channel):
    assert meaning(taken_apart(name)) is channel


@pytest.mark.parametrize(
    ("name", "is_clock"),
    [
        ("timestamp", True),
        ("header.stamp.sec", True),
        ("ZeitInNanoSec", True),
        ("rec.time_cont", True),
        ("t [ms]", True),
        ("sample_time", False),
        ("actual_execution_time", False),
        ("time_1", False),
        ("in", False),
        ("header", False),
    ],
)
def test_clocks_by_name(name, is_clock):
    assert (clock_name(taken_apart(name)) is not None) is is_clock


def test_degrees_in_a_file_that_never_says_so_are_still_found(tmp_path):
    robot = load_robot("panda")
    q = np.degrees(Q + np.array([0, -0.5, 0, -1.8, 0, 1.6, 0.5]))
    path = written(tmp_path / "log.csv", ["t", *numbered("q#"), *numbered("tau#")], [T, q, TAU])
    codes = {note.code for note in check_log(unchecked_log(path, robot), robot).notes}
    assert "degrees" in codes
