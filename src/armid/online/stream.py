"""Identification of a live stream: positions and torques in, base parameters out, with derivatives from the past only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.recursive.estimator import ChangeDetection, RecursiveEstimator
from armid.estimation.recursive.forgetting import Forgetting
from armid.identifiability.structure import structural_base
from armid.notes import Note, Severity
from armid.parameters.effects import Effects, TorqueSide
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from armid.signals.causal import CausalDifferentiator, LocalPolynomial

GAP = 1.5
"""Sampling periods: a longer step is a gap, and the window of the differentiator starts anew."""

SMOOTHING = 0.03
"""[s] Half window of the differentiator: passes the motion of an arm up to about 10 Hz."""


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


class OnlineIdentifier:
    """An arm identified while it moves.

    Args:
        robot: geometry.
        effects: what the model holds.
        rate: samples per second [Hz].
        sigma: torque noise per channel; one for all by default.
        forgetting, detection: see `RecursiveEstimator`.
        half_window: samples on either side of the differentiator's middle; 30 ms by default.
    """

    def __init__(
        self,
        robot: Robot,
        effects: Effects,
        *,
        rate: float,
        sigma: Mapping[str, float] | None = None,
        forgetting: Forgetting | None = None,
        detection: ChangeDetection | None = None,
        half_window: int | None = None,
    ) -> None:
        source = TorqueRows(robot, effects)
        self.robot, self.rate = robot, rate
        self.estimator = RecursiveEstimator(
            source,
            structural_base(source),
            sigma or dict.fromkeys(source.channels, 1.0),
            rate=rate,
            forgetting=forgetting,
            detection=detection,
        )
        width = half_window or max(3, round(SMOOTHING * rate))
        self.differentiator = CausalDifferentiator(LocalPolynomial(rate, width), robot.n_joints, len(source.channels))
        self._coulomb, self._sensors = effects.coulomb, len(source.channels) // robot.n_joints
        self.gaps = 0
        self.events: list[Note] = []
        self._last: float | None = None

    @property
    def delay(self) -> float:
        """How old the state is that the newest update refers to [s]."""
        return self.differentiator.polynomial.delay

    def _counted(self) -> npt.NDArray[np.bool_] | None:
        """Channels of joints that kept their direction; all when there is no Coulomb friction to jump."""
        if not self._coulomb:
            return None
        one_way = self.differentiator.one_way
        return np.tile(one_way, self._sensors)

    def push(self, sample: StreamSample) -> bool:
        """One sample. Returns whether the estimate moved (not while the differentiator's window fills)."""
        if self._last is not None:
            step = sample.time - self._last
            if step <= 0.0:
                return False
            if step > GAP / self.rate:
                self.gaps += 1
                self.differentiator.reset()
        self._last = sample.time
        state = self.differentiator.push(sample.q, sample.torque)
        if state is None:
            return False
        if self.estimator.update(*state, self._counted()):
            largest = max(self.estimator.innovations.items(), key=lambda item: abs(item[1]))
            text = f"at {sample.time - self.delay:.3f} s the arm changed: {largest[0]} is {largest[1]:+.3g} off"
            self.events.append(Note("arm-changed", Severity.WARNING, text, largest[0]))
        return True


def parsed_samples(lines: Iterable[str], robot: Robot, side: TorqueSide) -> Iterator[StreamSample]:
    """Samples of JSON lines: `{"time": 0.001, "position": [...], "torque": [...]}`.

    Lists are in the robot's joint order; objects `{joint: value}` are taken by name. With both torques `torque` is that of
    the joint sensors and `motor_torque` that of the motors.

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
        torque = np.concatenate([joint_values(content, name, robot, where) for name in names])
        yield StreamSample(float(time), joint_values(content, "position", robot, where), torque)


def joint_values(content: Mapping[str, Any], field: str, robot: Robot, where: str) -> FloatArray:
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
