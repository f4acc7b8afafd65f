"""Every format is read back, by an independent library and by our own reader."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from armid.errors import InputError
from armid.logs.log import Channel
from armid.logs.read import unchecked_log
from armid.robot.load import load_robot
from armid.simulation.measure import measure
from armid.simulation.run import run_motion
from armid.simulation.sensors import CurrentSensor, RecordedVelocity, Sensors, VelocitySensor
from armid.simulation.writers import SUFFIXES, LogFormat, write_log
from support.motions import sines

SIX_DIGITS = 1e-6


@pytest.fixture(scope="module")
def robot():
    return load_robot("panda")


@pytest.fixture(scope="module")
def log(robot):
    run = run_motion(robot, sines(robot, 0.3))
    return measure(run, Sensors(current=CurrentSensor(torque_constant=8.0)))


@pytest.mark.parametrize("kind", list(LogFormat))
def test_our_reader_reads_what_was_written(robot, log, tmp_path, kind):
    path = write_log(log, tmp_path / f"log{SUFFIXES[kind]}", kind)
    back = unchecked_log(path.parent if kind is LogFormat.MCAP else path, robot)
    np.testing.assert_allclose(back.time - back.time[0], log.time - log.time[0], atol=1e-6)
    wanted = {Channel.POSITION, Channel.VELOCITY} | (
        {Channel.CURRENT} if kind is LogFormat.RTDE else {Channel.LINK_TORQUE}
    )
    for channel in wanted:
        np.testing.assert_allclose(back[channel], log[channel], atol=SIX_DIGITS)
    assert back.joints == robot.joint_names


def table(path, delimiter):
    with path.open(newline="") as file:
        rows = list(csv.reader(file, delimiter=delimiter))
    return rows[0], np.array(rows[1:], dtype=float)


def test_csv_columns(log, tmp_path):
    header, values = table(write_log(log, tmp_path / "log.csv", LogFormat.CSV), ",")
    assert header[:3] == ["time", "q_joint1", "q_joint2"]
    assert {"qd_joint7", "tau_joint1", "tau_motor_joint1", "current_joint3"} <= set(header)
    np.testing.assert_allclose(values[:, header.index("tau_joint4")], log[Channel.LINK_TORQUE][:, 3], atol=1e-9)


def test_npz_and_parquet(log, tmp_path):
    with np.load(write_log(log, tmp_path / "log.npz", LogFormat.NPZ), allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["q"], log[Channel.POSITION])
        assert arrays["joint_names"].tolist() == list(log.joints)
    columns = pq.read_table(write_log(log, tmp_path / "log.parquet", LogFormat.PARQUET))
    np.testing.assert_array_equal(columns["tau_motor_joint2"].to_numpy(), log[Channel.MOTOR_TORQUE][:, 1])


def test_libfranka_has_milliseconds_and_its_own_names(log, tmp_path):
    header, values = table(write_log(log, tmp_path / "franka.csv", LogFormat.LIBFRANKA), ",")
    np.testing.assert_allclose(values[:, 0], 1e3 * log.time, atol=1e-3)
    np.testing.assert_allclose(values[:, header.index("state.tau_J[6]")], log[Channel.LINK_TORQUE][:, 6], atol=1e-9)


def test_rtde_is_separated_by_spaces(log, tmp_path):
    header, values = table(write_log(log, tmp_path / "rtde.csv", LogFormat.RTDE), " ")
    assert header[0] == "timestamp"
    np.testing.assert_allclose(values[:, header.index("actual_current_2")], log[Channel.CURRENT][:, 2], atol=1e-9)
    np.testing.assert_allclose(
        values[:, header.index("target_moment_0")], log[Channel.COMMANDED_TORQUE][:, 0], atol=1e-9
    )


def test_mcap_is_a_bag_of_joint_states(log, tmp_path):
    for _ in range(2):  # an older bag is replaced
        path = write_log(log, tmp_path / "bag", LogFormat.MCAP)
    store = get_typestore(Stores.ROS2_JAZZY)
    with Reader(path.parent) as reader:
        messages = [store.deserialize_cdr(raw, c.msgtype) for c, _, raw in reader.messages()]
    assert len(messages) == len(log)
    assert messages[5].name == list(log.joints)
    np.testing.assert_array_equal(messages[5].effort, log[Channel.LINK_TORQUE][5])
    assert messages[250].header.stamp.nanosec == 250_000_000


def test_what_a_format_needs_and_where_it_cannot_go(robot, tmp_path, log):
    blind = measure(
        run_motion(robot, sines(robot, 0.05)), Sensors(velocity=VelocitySensor(RecordedVelocity.NONE), torque=None)
    )
    with pytest.raises(InputError, match=r"velocity.*libfranka"):
        write_log(blind, tmp_path / "x.csv", LogFormat.LIBFRANKA)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_log(log, tmp_path / "file" / "log.csv", LogFormat.CSV)
