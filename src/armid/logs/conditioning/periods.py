"""Motions that were repeated: the mean of the repetitions, and how far they scatter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.conditioning.repetitions import repetition
from armid.logs.log import Channel, Log


@dataclass(frozen=True, eq=False)
class Averaged:
    """Mean over repetitions and variance of that mean, shape [samples per period, n]."""

    mean: FloatArray
    variance: FloatArray
    repetitions: int


def averaged(values: FloatArray, per_period: int) -> Averaged:
    """The mean of whole repetitions; the variance of the mean is the scatter over K (K - 1).

    Args:
        values: uniform samples, shape [n_samples, n].
        per_period: samples per period.
    """
    count = len(values) // per_period
    if count < 1:
        raise InputError("period", f"{per_period} samples long, but only {len(values)} samples are there")
    folded = values[: count * per_period].reshape(count, per_period, -1)
    mean = folded.mean(axis=0)
    if count == 1:
        return Averaged(mean, np.zeros_like(mean), 1)
    return Averaged(mean, folded.var(axis=0, ddof=1) / count, count)


def detected_period(log: Log) -> float | None:
    """The shortest time after which the motion repeats itself [s]; None when it does not, or only once fits in the log."""
    found = repetition(log.time, log[Channel.POSITION])
    return None if found is None else found.period
