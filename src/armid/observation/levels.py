"""How large an external torque must be to be believed: by speed, acceleration and the model's own doubt, for a stated rate of
false alarms.

The variance of the residual is a sum of squares with weights found on motion without contact. How far residuals stand out of it
is asked of motion that the weights were not found on, part by part, and a tail through the largest of them says how often a
level is passed (`armid.observation.tails`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.observation.tails import Peaks, block_peaks, crowding, rare_level
from armid.observation.thresholds import REACH

N_FEATURES = 5
"""Constant, speed, acceleration, the model's deviation, reversal."""

_PARTS = 5
"""Into which motion without contact is cut: each is held against weights found on the others."""

_FEWEST_BLOCKS = 10
"""Below these nothing can be said about rare events."""

_ROUNDS = 4
"""Of weighing squares by the variance they have themselves: large residuals scatter more, and would decide alone."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Features:
    """What a residual's spread depends on, each of shape [n, n_joints].

    Args:
        speed, acceleration: of the joint.
        deviation: of the model's torque, by the covariance of its parameters.
        reversal: Coulomb friction that turned around a short while ago.
    """

    speed: FloatArray
    acceleration: FloatArray
    deviation: FloatArray
    reversal: FloatArray

    @classmethod
    def joined(cls, parts: Sequence[Features]) -> Features:
        """Several motions one after the other."""
        return cls(
            speed=np.vstack([f.speed for f in parts]),
            acceleration=np.vstack([f.acceleration for f in parts]),
            deviation=np.vstack([f.deviation for f in parts]),
            reversal=np.vstack([f.reversal for f in parts]),
        )

    def squares(self, joint: int) -> FloatArray:
        """Columns whose weighted sum is the variance, shape [n, 5]."""
        n = len(self.speed)
        return np.column_stack(
            [
                np.ones(n),
                self.speed[:, joint] ** 2,
                self.acceleration[:, joint] ** 2,
                self.deviation[:, joint] ** 2,
                self.reversal[:, joint] ** 2,
            ]
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class AlarmLevels:
    """Per joint: the variance of the residual, and how many deviations raise an alarm.

    Args:
        weights: of constant, speed^2, acceleration^2, the model's variance and reversal^2, shape [n_joints, 5].
        factor: deviations, shape [n_joints].
        per_hour: stated rate of false alarms of the whole arm.
        hours: of free motion they rest on.
        largest: that the free motion reached, in deviations, shape [n_joints].
        rate_hz: of its samples.
    """

    weights: FloatArray
    factor: FloatArray
    per_hour: float
    hours: float
    largest: FloatArray
    rate_hz: float

    def deviation(self, features: Features) -> FloatArray:
        """[N m or N], shape [n, n_joints]."""
        return np.column_stack([np.sqrt(features.squares(j) @ weights) for j, weights in enumerate(self.weights)])

    def level(self, features: Features) -> FloatArray:
        """What an external torque must pass [N m or N], shape [n, n_joints]."""
        return self.factor * self.deviation(features)

    @property
    def shown(self) -> bool:
        """Whether the free motion is long enough to state the rate: else it is a guess."""
        return self.hours * self.per_hour * REACH.value >= 1.0

    @property
    def accepted(self) -> str:
        """The rate, in words."""
        doubt = "" if self.shown else f", more than {60.0 * self.hours:.1f} minutes of free motion can show"
        return f"{self.per_hour:g} false alarms an hour accepted{doubt}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "weights": self.weights,
            "factor": self.factor,
            "per_hour": self.per_hour,
            "free_hours": self.hours,
            "rate_shown": self.shown,
            "largest": self.largest,
            "rate_hz": self.rate_hz,
        }


def alarm_levels(
    residual: FloatArray, features: Features, step: float, per_hour: float, *, lengths: Sequence[int] = ()
) -> AlarmLevels:
    """Levels from motion without contact.

    Args:
        residual: external torque found there, less what friction at rest explains, shape [n, n_joints].
        features: of the same samples.
        step: between samples [s].
        per_hour: false alarms of the whole arm that are accepted.
        lengths: samples of every motion, where there are several one after the other.

    Raises:
        InputError: too short a motion to say anything about rare events.
    """
    if not per_hour > 0.0:
        raise InputError("false alarms", f"{per_hour} per hour", "a positive rate")
    n = residual.shape[1]
    parts = _parts(lengths or (len(residual),))
    squares = [features.squares(j) for j in range(n)]
    weights = np.array([_weights(A, residual[:, j]) for j, A in enumerate(squares)])
    apart = [_held_out(A, residual[:, j], parts) for j, A in enumerate(squares)]
    peaks = [_peaks(np.abs(z), [part.stop for part in parts], step) for z in apart]
    # What an arm does in one part of its motion and not in others is seen by all joints together better than by each.
    crowded = float(np.median([crowding(found) for found in peaks]))
    return AlarmLevels(
        weights=weights,
        factor=np.array([rare_level(found, per_hour / n, crowded) for found in peaks]),
        per_hour=per_hour,
        hours=len(residual) * step / 3600.0,
        largest=np.array([found.values.max() for found in peaks]),
        rate_hz=1.0 / step,
    )


def _parts(lengths: Sequence[int]) -> list[slice]:
    """Stretches of motions one after the other, about equally long, none of which spans two motions."""
    out, begin = [], 0
    for length in lengths:
        pieces = max(round(_PARTS * length / sum(lengths)), 1)
        ends = begin + np.linspace(0, length, pieces + 1).astype(int)
        out += [slice(int(a), int(b)) for a, b in pairwise(ends)]
        begin += length
    return out


def _weights(squares: FloatArray, residual: FloatArray) -> FloatArray:
    """Weights of the squares whose sum is the variance, none negative, by their likelihood as for normal residuals."""
    from scipy.optimize import nnls  # takes a second to load

    scale = np.sqrt(np.mean(squares**2, axis=0)) + 1e-300
    A, y = squares / scale, residual**2
    # What no feature explains stays: a joint that never moved must not be silent about everything.
    least = max(1e-6 * float(np.mean(y)), 1e-18)
    variance = np.full(len(y), float(np.mean(y)) + least)
    found = np.zeros(A.shape[1])
    for _ in range(_ROUNDS):
        found, _ = nnls(A / variance[:, np.newaxis], y / variance)
        found[0] = max(found[0], least * scale[0])
        variance = A @ found
    return np.asarray(found / scale)


def _held_out(squares: FloatArray, residual: FloatArray, parts: Sequence[slice]) -> FloatArray:
    """Residuals in deviations, of every part by the weights of the others; of a single one by its own."""
    out = np.empty_like(residual)
    for part in parts:
        others = np.ones(len(residual), dtype=np.bool_)
        others[part] = len(parts) == 1
        out[part] = residual[part] / np.sqrt(squares[part] @ _weights(squares[others], residual[others]))
    return out


def _peaks(z: FloatArray, ends: Sequence[int], step: float) -> Peaks:
    """Largest values of blocks.

    Raises:
        InputError: too few blocks.
    """
    found = block_peaks(z, ends, step)
    if len(found.values) < _FEWEST_BLOCKS:
        raise InputError(
            "free motion",
            f"{len(z) * step:.0f} s without contact make {len(found.values)} independent blocks",
            f"{np.ceil(_FEWEST_BLOCKS * found.seconds):.0f} s or more are needed to set alarms",
        )
    return found
