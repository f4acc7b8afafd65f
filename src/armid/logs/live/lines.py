"""A live stream as text: JSON lines with positions and torques."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class StreamSample:
    """One sample of a stream.

    Args:
        time: [s].
        q: positions [rad or m], shape [n_joints].
        torque: in the order of the torque rows' channels, shape [n_channels].
    """

    time: float
    q: FloatArray
    torque: FloatArray


def read_stream(
    lines: Iterable[str], robot: Robot, side: TorqueSide, gains: FloatArray | None = None
) -> Iterator[StreamSample]:
    """Samples of JSON lines: `{"time": 0.001, "position": [...], "torque": [...]}`.

    Lists are in the robot's joint order; objects `{joint: value}` are taken by name. With both torques `torque` is that of
    the joint sensors and `motor_torque` that of the motors. Where drive gains are known, `current` may stand instead of `torque`.

    Args:
        lines: of text; empty ones are skipped.
        robot: names and number of joints.
        side: which torques a line holds.
        gains: torque per ampere, shape [n_joints].

    Raises:
        InputError: a line that is not such a sample; names the line and the field.
    """
    names = ("torque", "motor_torque") if side is TorqueSide.BOTH else ("torque",)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            content = json.loads(line)
        except ValueError:
            raise InputError(where, f"{line.strip()[:40]!r}", "expected one JSON object per line") from None
        if not isinstance(content, dict):
            raise InputError(where, f"{line.strip()[:40]!r}", "expected one JSON object per line")
        time = content.get("time")
        if not isinstance(time, int | float) or not isfinite(time):
            raise InputError(where, f"time is {time!r}", "seconds, a number")
        if gains is not None and "current" in content and "torque" not in content:
            torque = gains * _joint_values(content, "current", robot, where)
        else:
            torque = np.concatenate([_joint_values(content, name, robot, where) for name in names])
        yield StreamSample(float(time), _joint_values(content, "position", robot, where), torque)


def _joint_values(content: Mapping[str, Any], field: str, robot: Robot, where: str) -> FloatArray:
    """One number per joint from a list or an object."""
    value = content.get(field)
    if isinstance(value, dict):
        missing = [name for name in robot.joint_names if name not in value]
        if missing:
            raise InputError(where, f"{field} has no joint {missing[0]!r}", f"expected {', '.join(robot.joint_names)}")
        value = [value[name] for name in robot.joint_names]
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (robot.n_joints,) or not np.isfinite(array).all():
        raise InputError(where, f"{field} is {str(value)[:40]}", f"expected {robot.n_joints} finite numbers")
    return array
