"""Logs to files, in the formats people's recorders write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.documents import new_file
from armid.errors import InputError, MissingDependencyError, UnknownNameError
from armid.folders import new_files
from armid.logs.log import Channel, Log
from armid.notes import Note, Severity


class LogFormat(StrEnum):
    """A kind of log file."""

    CSV = "csv"
    NPZ = "npz"
    PARQUET = "parquet"
    LIBFRANKA = "libfranka"
    """CSV as libfranka's `logToCSV` writes it; time in ms, joint torque."""
    RTDE = "rtde"
    """Space-separated, as Universal Robots' recorder writes it; motor current when there is one."""
    MCAP = "mcap"
    """A ROS 2 bag of sensor_msgs/JointState."""


_COLUMNS: Mapping[Channel, str] = {
    Channel.POSITION: "q",
    Channel.VELOCITY: "qd",
    Channel.MOTOR_POSITION: "q_motor",
    Channel.LINK_TORQUE: "tau",
    Channel.MOTOR_TORQUE: "tau_motor",
    Channel.CURRENT: "current",
    Channel.TEMPERATURE: "temperature",
}
"""Prefixes of plain tables: `q_<joint>`, ..."""


_NEEDS: Mapping[LogFormat, tuple[str, str, str]] = {
    LogFormat.PARQUET: ("pyarrow", "writing Parquet", "io"),
    LogFormat.MCAP: ("rosbags", "writing a ROS 2 bag", "ros"),
}
"""Library, what it is needed for, and the extra it comes with; the other formats need nothing more."""


def _missing_library(kind: LogFormat) -> MissingDependencyError | None:
    """The error that writing this format would meet on this machine; None when it can be written."""
    if kind not in _NEEDS or find_spec(_NEEDS[kind][0]) is not None:
        return None
    return MissingDependencyError(*_NEEDS[kind])


ALL = "all"
"""The word for every format this machine can write."""


def formats_of(names: str | Sequence[str | LogFormat]) -> tuple[LogFormat, ...]:
    """Formats from their names, each once; `all` means those this machine can write.

    Raises:
        UnknownNameError: no such format.
        MissingDependencyError: one asked for by name needs a library that is not installed.
    """
    words = [str(name).strip() for name in (names.split(",") if isinstance(names, str) else names)]
    if ALL in words:
        return tuple(kind for kind in LogFormat if _missing_library(kind) is None)
    for word in words:
        if word not in {kind.value for kind in LogFormat}:
            raise UnknownNameError("log format", word, (*(kind.value for kind in LogFormat), ALL))
    kinds = tuple(dict.fromkeys(LogFormat(word) for word in words))
    for missing in filter(None, map(_missing_library, kinds)):
        raise missing
    return kinds


def left_out(formats: tuple[LogFormat, ...]) -> tuple[Note, ...]:
    """One warning for each format that `all` could not mean on this machine."""
    return tuple(
        Note("format-left-out", Severity.WARNING, f"not written: {missing}", kind.value)
        for kind in LogFormat
        if kind not in formats and (missing := _missing_library(kind)) is not None
    )


def write_log(log: Log, path: Path, kind: LogFormat) -> Path:
    """Writes a log.

    Args:
        log: what to write.
        path: file to write; for MCAP the directory of the bag.
        kind: in which format.

    Returns:
        The file written.

    Raises:
        MissingDependencyError: the format needs a library that is not installed.
        InputError: the file cannot be written, or the log lacks a channel of this format.
    """
    missing = _missing_library(kind)
    if missing is not None:
        raise missing
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _WRITERS[kind](log, path)
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror or error}") from None


def _plain_columns(log: Log) -> dict[str, FloatArray]:
    """`time` and one column per channel and joint."""
    columns = {"time": log.time}
    for channel, prefix in _COLUMNS.items():
        if channel in log:
            columns |= {f"{prefix}_{name}": log[channel][:, i] for i, name in enumerate(log.joints)}
    return columns


def _write_table(path: Path, header: list[str], columns: list[FloatArray], delimiter: str) -> Path:
    """Text with a header; numbers with all the digits that matter."""
    with new_file(path) as file:
        table = np.column_stack(columns)
        np.savetxt(file, table, fmt="%.12g", delimiter=delimiter, header=delimiter.join(header), comments="")
    return path


def _write_csv(log: Log, path: Path) -> Path:
    columns = _plain_columns(log)
    return _write_table(path, list(columns), list(columns.values()), ",")


def _write_npz(log: Log, path: Path) -> Path:
    """Arrays `time`, `q`, `qd`, `tau`, ... and the joints' names."""
    arrays: dict[str, Any] = {prefix: log[channel] for channel, prefix in _COLUMNS.items() if channel in log}
    with new_file(path) as file:
        np.savez(file, time=log.time, joint_names=np.array(log.joints), **arrays)
    return path


def _write_parquet(log: Log, path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: pa.array(np.ascontiguousarray(x)) for name, x in _plain_columns(log).items()})
    with new_file(path) as file:
        pq.write_table(table, file)
    return path


def _required(log: Log, channels: tuple[Channel, ...], kind: str) -> list[FloatArray]:
    missing = [channel.value for channel in channels if channel not in log]
    if missing:
        raise InputError(log.name, f"no {missing[0]} to write", f"a {kind} log needs it; switch that sensor on")
    return [log[channel] for channel in channels]


def _write_libfranka(log: Log, path: Path) -> Path:
    """Columns of a RobotState: time [ms], q, q_d, dq, dq_d, tau_J, tau_ext_hat_filtered."""
    n = len(log.joints)
    q, qd, tau = _required(log, (Channel.POSITION, Channel.VELOCITY, Channel.LINK_TORQUE), "libfranka")
    command = log.channels.get(Channel.COMMANDED_POSITION, q)
    zero = np.zeros_like(q)
    groups = {
        "q": q,
        "q_d": command,
        "dq": qd,
        "dq_d": np.gradient(command, log.time, axis=0),
        "tau_J": tau,
        "tau_ext_hat_filtered": zero,
    }
    header = ["time", "success_rate", *(f"state.{name}[{i}]" for name in groups for i in range(n))]
    return _write_table(path, header, [np.round(log.time * 1e3, 3), np.ones(len(log)), *groups.values()], ",")


def _write_rtde(log: Log, path: Path) -> Path:
    """Columns `timestamp`, `target_q_i`, `actual_q_i`, `actual_qd_i`, `actual_current_i`, `target_moment_i`."""
    n = len(log.joints)
    q, qd = _required(log, (Channel.POSITION, Channel.VELOCITY), "rtde")
    groups = {"actual_q": q, "actual_qd": qd}
    optional = {
        "target_q": Channel.COMMANDED_POSITION,
        "actual_current": Channel.CURRENT,
        "target_moment": Channel.COMMANDED_TORQUE,
    }
    groups |= {name: log[channel] for name, channel in optional.items() if channel in log}
    header = ["timestamp", *(f"{name}_{i}" for name in groups for i in range(n))]
    return _write_table(path, header, [log.time, *groups.values()], " ")


_TOPIC = "/joint_states"


def _write_mcap(log: Log, path: Path) -> Path:
    """A bag directory holding one MCAP file and its metadata; effort is joint torque, or motor torque without it."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    kinds = store.types
    JointState, Header, Time = (
        kinds[name] for name in ("sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
    )
    (q,) = _required(log, (Channel.POSITION,), "ROS 2")
    empty = np.zeros((len(log), 0))
    qd = log.channels.get(Channel.VELOCITY, empty)
    effort = log[log.torques[0]] if log.torques else empty
    names = list(log.joints)
    with new_files(path) as room, Writer(room, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection(_TOPIC, JointState.__msgtype__, typestore=store)
        for stamp, *row in zip(np.round(log.time * 1e9).astype(np.int64), q, qd, effort, strict=True):
            seconds, rest = divmod(int(stamp), 10**9)
            position, velocity, torque = (np.array(x) for x in row)
            message = JointState(Header(Time(seconds, rest), ""), names, position, velocity, torque)
            writer.write(connection, int(stamp), store.serialize_cdr(message, JointState.__msgtype__))
    return path / f"{path.name}.mcap"


_WRITERS: Mapping[LogFormat, Callable[[Log, Path], Path]] = {
    LogFormat.CSV: _write_csv,
    LogFormat.NPZ: _write_npz,
    LogFormat.PARQUET: _write_parquet,
    LogFormat.LIBFRANKA: _write_libfranka,
    LogFormat.RTDE: _write_rtde,
    LogFormat.MCAP: _write_mcap,
}

SUFFIXES: Mapping[LogFormat, str] = {
    LogFormat.CSV: ".csv",
    LogFormat.NPZ: ".npz",
    LogFormat.PARQUET: ".parquet",
    LogFormat.LIBFRANKA: ".libfranka.csv",
    LogFormat.RTDE: ".rtde.csv",
    LogFormat.MCAP: "_bag",
}
