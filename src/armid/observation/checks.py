"""What an observation is held against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.observation.levels import AlarmLevels
from armid.observation.residuals import ObservedMotion
from armid.observation.thresholds import FASTER, LOST, REACH, SAME_RATE
from armid.outcome import Check
from armid.robot.robot import Robot


def fastest(quiet: Sequence[ObservedMotion]) -> FloatArray:
    """Speed that the free motion reached, shape [n_joints]."""
    return np.asarray(np.max([np.abs(each.qd).max(axis=0) for each in quiet], axis=0))


def speed_check(robot: Robot, known: FloatArray, reached: FloatArray) -> Check:
    """Whether the free motion was as fast as the one that is watched."""
    ratio = reached / np.maximum(known, 1e-9)
    worst = int(ratio.argmax())
    beyond = ": levels are extrapolated, record free motion at this speed"
    return Check(
        code="speed-range",
        passed=bool(ratio[worst] <= FASTER.value),
        value=float(ratio[worst]),
        limit=FASTER.value,
        message=(
            f"{robot.joint_names[worst]} moves {ratio[worst]:.2f} times as fast as in the motion without contact"
            + (beyond if ratio[worst] > FASTER.value else "")
        ),
        subject=robot.joint_names[worst],
    )


def rate_check(levels: AlarmLevels, rate_hz: float) -> Check:
    """Whether the watched motion is sampled as the free one was."""
    ratio = max(rate_hz / levels.rate_hz, levels.rate_hz / rate_hz)
    words = f"watched at {rate_hz:.0f} Hz, motion without contact recorded at {levels.rate_hz:.0f} Hz"
    return Check(
        code="same-rate",
        passed=ratio <= SAME_RATE.value,
        value=ratio,
        limit=SAME_RATE.value,
        message=words + ("" if ratio <= SAME_RATE.value else ": levels are those of another noise, record both alike"),
    )


def tail_check(levels: AlarmLevels) -> Check:
    """How far the stated rate lies beyond what the free motion can show by itself."""
    reach = 1.0 / max(levels.hours * levels.per_hour, 1e-12)
    return Check(
        code="free-motion",
        passed=reach <= REACH.value,
        value=reach,
        limit=REACH.value,
        message=(
            f"{60 * levels.hours:.1f} minutes without contact for {levels.per_hour:g} false alarms an hour: "
            + (
                "the tail is extrapolated"
                if reach <= REACH.value
                else f"too short to state such a rate, record {60.0 / (REACH.value * levels.per_hour):.1f} minutes or more"
            )
        ),
        decisive=False,
    )


def lost_check(received: int, lost: int) -> Check:
    """Whether a live stream came whole."""
    share = lost / max(received + lost, 1)
    return Check(
        code="stream-whole",
        passed=share <= LOST.value,
        value=share,
        limit=LOST.value,
        message=f"{lost} of {received + lost} samples missing" + (": the observer was blind at each" if lost else ""),
    )
