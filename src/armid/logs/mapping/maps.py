"""A mapping as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from armid.arrays import FloatArray
from armid.logs.log import Channel, Conditions
from armid.logs.readers.table import Layout

TORQUE_SIDES = {
    "link": Channel.LINK_TORQUE,
    "motor": Channel.MOTOR_TORQUE,
    "current": Channel.CURRENT,
    "commanded": Channel.COMMANDED_TORQUE,
    "external": Channel.EXTERNAL_TORQUE,
}

DEFAULT_UNITS = {
    Channel.POSITION: "rad",
    Channel.MOTOR_POSITION: "rad",
    Channel.COMMANDED_POSITION: "rad",
    Channel.VELOCITY: "rad/s",
    Channel.ACCELERATION: "rad/s^2",
    Channel.LINK_TORQUE: "Nm",
    Channel.MOTOR_TORQUE: "Nm",
    Channel.COMMANDED_TORQUE: "Nm",
    Channel.EXTERNAL_TORQUE: "Nm",
    Channel.CURRENT: "A",
    Channel.TEMPERATURE: "degC",
}


@dataclass(frozen=True, slots=True)
class FileMap:
    """One file of a recording and how it is laid out."""

    path: Path
    layout: Layout = field(default_factory=Layout)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockMap:
    """Where time comes from: a column with a unit, or a fixed step [s]; multiplied by a gain when it runs fast or slow."""

    column: str | None = None
    file: str = ""
    unit: str = "s"
    step: float | None = None
    nanoseconds: str | None = None
    """A second column with the nanoseconds within the second."""
    gain: float = 1.0


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ChannelMap:
    """Which columns make up a channel and how they become joint quantities in SI units.

    `values = matrix (sign gain unit raw / gear) + offset`, with `raw * gear` for torques, and the inverse of
    `inverse_matrix` in place of `matrix` when that is given.

    Args:
        channel: what it is.
        file: key of the file, empty when there is one only.
        columns: column names, a single one may be two-dimensional; empty for all columns of the file.
        unit: as written, of all columns.
        units: one per column where they differ (a sliding joint among turning ones); empty when they do not.
        sign, gain, gear_ratio, offset: one number or one per joint; offset in SI units.
        by_joint: of the same words, numbers for single joints by name; others have none.
        matrix, inverse_matrix: shape [n, columns] and [columns, n].
    """

    channel: Channel
    columns: tuple[str, ...]
    file: str = ""
    unit: str = ""
    units: tuple[str, ...] = ()
    sign: tuple[float, ...] = (1.0,)
    gain: tuple[float, ...] = (1.0,)
    gear_ratio: tuple[float, ...] = (1.0,)
    offset: tuple[float, ...] = (0.0,)
    by_joint: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    matrix: FloatArray | None = None
    inverse_matrix: FloatArray | None = None


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class LogMap:
    """A whole recording.

    Args:
        files: by key.
        channels: what is in them.
        clock: time.
        joints: name of each column of the channels; empty when unknown.
        rows: first and last row to use, counted from 1, both included; None for all.
        conditions: of the run.
        name: of the recording.
        preset: who filled it in.
        sensors: sensor file whose errors `identify` undoes; None for none.
    """

    files: Mapping[str, FileMap]
    channels: tuple[ChannelMap, ...]
    clock: ClockMap
    joints: tuple[str, ...] = ()
    rows: tuple[int, int | None] | None = None
    conditions: Conditions = field(default_factory=Conditions)
    name: str = ""
    preset: str = "mapping"
    sensors: Path | None = None
