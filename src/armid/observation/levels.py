"""How large an external torque must be to be believed: by speed, acceleration and the model's own doubt, for a stated rate of
false alarms.

The variance of the residual is a sum of squares with weights found on motion without contact; what stands out of it is counted in
blocks longer than its memory, and a tail through the largest of them, Gaussian or heavier, says how often a level is passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError

N_FEATURES = 5
"""Constant, speed, acceleration, the model's deviation, reversal."""

_TAIL = 0.3
"""Share of the block maxima that the tail is fitted to."""

_EVIDENCE = 2.0
"""By which the logarithm of the likelihood must favour a light tail: in doubt it is heavy, and alarms fewer than stated."""

_FEWEST_BLOCKS = 30
"""Below these a tail cannot be fitted."""

_SHORTEST_BLOCK = 0.2
"""[s]: contacts last longer than this."""


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

    def as_dict(self) -> dict[str, Any]:
        return {
            "weights": self.weights,
            "factor": self.factor,
            "per_hour": self.per_hour,
            "free_hours": self.hours,
            "largest": self.largest,
            "rate_hz": self.rate_hz,
        }


def alarm_levels(residual: FloatArray, features: Features, step: float, per_hour: float) -> AlarmLevels:
    """Levels from motion without contact.

    Args:
        residual: external torque found there, less what friction at rest explains, shape [n, n_joints].
        features: of the same samples.
        step: between samples [s].
        per_hour: false alarms of the whole arm that are accepted.

    Raises:
        InputError: too short a motion to say anything about rare events.
    """
    from scipy.optimize import nnls  # takes a second to load

    if not per_hour > 0.0:
        raise InputError("false alarms", f"{per_hour} per hour", "a positive rate")
    n = residual.shape[1]
    weights, factor, largest = np.zeros((n, N_FEATURES)), np.zeros(n), np.zeros(n)
    for j in range(n):
        A = features.squares(j)
        scale = np.sqrt(np.mean(A**2, axis=0)) + 1e-300
        found, _ = nnls(A / scale, residual[:, j] ** 2)
        found = found / scale
        # What no feature explains stays: a joint that never moved must not be silent about everything.
        found[0] = max(found[0], 1e-6 * float(np.mean(residual[:, j] ** 2)), 1e-18)
        weights[j] = found
        z = np.abs(residual[:, j]) / np.sqrt(A @ found)
        factor[j], largest[j] = _tail_level(z, step, per_hour / n)
    return AlarmLevels(
        weights=weights,
        factor=factor,
        per_hour=per_hour,
        hours=len(residual) * step / 3600.0,
        largest=largest,
        rate_hz=1.0 / step,
    )


def _tail_level(z: FloatArray, step: float, per_hour: float) -> tuple[float, float]:
    """The level that is passed so many times an hour, and the largest value seen."""
    length = max(int(np.ceil(max(5.0 * _memory(z, step), _SHORTEST_BLOCK) / step)), 1)
    count = len(z) // length
    if count < _FEWEST_BLOCKS:
        raise InputError(
            "free motion",
            f"{len(z) * step:.0f} s without contact make {count} independent blocks",
            f"{_FEWEST_BLOCKS * length * step:.0f} s or more are needed to set alarms",
        )
    maxima = np.sort(z[: count * length].reshape(count, length).max(axis=1))
    start = maxima[int((1.0 - _TAIL) * count)]
    above = maxima[maxima > start]
    if not len(above):
        return float(start), float(maxima[-1])
    rate = len(above) / (count * length * step) * 3600.0
    beyond = float(np.log(max(rate / per_hour, 1.0)))
    heavy, light = (_Tail.through(above, float(start), power) for power in (1, 2))
    tail = light if light.likelihood > heavy.likelihood + _EVIDENCE else heavy
    return tail.level(beyond), float(maxima[-1])


@dataclass(frozen=True)
class _Tail:
    """Values whose power exceeds that of a start by exponentially distributed amounts: 2 for Gaussian tails, 1 for heavier ones.

    Args:
        start: of the tail.
        power: 1 or 2.
        excess: mean of the power's excess.
        likelihood: logarithm of the density of the values.
    """

    start: float
    power: int
    excess: float
    likelihood: float

    @classmethod
    def through(cls, values: FloatArray, start: float, power: int) -> _Tail:
        excess = values**power - start**power
        mean = float(excess.mean())
        likelihood = float(np.sum(np.log(power * values ** (power - 1)) - np.log(mean) - excess / mean))
        return cls(start, power, mean, likelihood)

    def level(self, beyond: float) -> float:
        """What is passed exp(-beyond) times as often as the start."""
        return float((self.start**self.power + self.excess * beyond) ** (1.0 / self.power))


def _memory(z: FloatArray, step: float) -> float:
    """[s] after which the autocorrelation has fallen below 1/e."""
    x = z - z.mean()
    size = 1 << (2 * len(x) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(x, size)) ** 2
    correlation = np.fft.irfft(spectrum)[: len(x) // 2]
    if not correlation[0] > 0.0:
        return 0.0
    below = np.flatnonzero(correlation < correlation[0] / np.e)
    return float(below[0]) * step if len(below) else len(x) * step / 2.0
