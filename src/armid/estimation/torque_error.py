"""How well parameters predict torque: one line per joint, in the terms of the command contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run


@dataclass(frozen=True, slots=True)
class TorqueErrors:
    """Errors of one channel over several runs.

    Args:
        rmse: root mean square error against the conditioned torque [N m, N or A].
        rmse_raw: against the torque before low-pass filtering; NaN when that is not known.
        relative: norm of the error over the norm of the measured (conditioned) torque, a fraction.
        normalised: root mean square error over the range (largest minus smallest) of the measured torque, a fraction.
    """

    rmse: float = nan
    rmse_raw: float = nan
    relative: float = nan
    normalised: float = nan


@dataclass(frozen=True, slots=True)
class JointErrors:
    """Errors of one channel on the motion it was fitted to and on motion it never saw."""

    name: str
    train: TorqueErrors
    held_out: TorqueErrors

    def as_dict(self) -> dict[str, Any]:
        """Keys of the command contract."""
        return {
            "name": self.name,
            **{f"rmse_{part}": getattr(self, part).rmse for part in PARTS},
            **{f"relative_error_{part}": getattr(self, part).relative for part in PARTS},
            **{f"rmse_raw_{part}": getattr(self, part).rmse_raw for part in PARTS},
            **{f"normalised_error_{part}": getattr(self, part).normalised for part in PARTS},
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> JointErrors:
        """The inverse of `as_dict`; null reads as NaN."""
        parts = {part: TorqueErrors(*(number(values.get(f"{key}_{part}")) for key in KEYS)) for part in PARTS}
        return JointErrors(values["name"], parts["train"], parts["held_out"])


PARTS = ("train", "held_out")
KEYS = ("rmse", "rmse_raw", "relative_error", "normalised_error")
"""In the order of the fields of `TorqueErrors`."""


def number(value: Any) -> float:
    """A float; NaN for null."""
    return nan if value is None else float(value)


def torque_errors(runs: Sequence[Run], standard: FloatArray) -> dict[str, TorqueErrors]:
    """Errors per channel of full standard parameters; one streaming pass."""
    channels = runs[0].channels if runs else ()
    n = len(channels)
    count, error, size, raw, raw_count = 0, np.zeros(n), np.zeros(n), np.zeros(n), 0
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    for run in runs:
        predicted = run.predicted(standard)
        error += np.sum((run.y - predicted) ** 2, axis=0)
        size += np.sum(run.y**2, axis=0)
        count += len(run)
        low, high = np.minimum(low, run.y.min(axis=0)), np.maximum(high, run.y.max(axis=0))
        if run.y_raw is not None:
            raw += np.sum((run.y_raw - predicted) ** 2, axis=0)
            raw_count += len(run)
    with np.errstate(divide="ignore", invalid="ignore"):
        rmse, relative = np.sqrt(error / max(count, 1)), np.sqrt(error / size)
        rmse_raw = np.sqrt(raw / raw_count) if raw_count else np.full(n, nan)
        normalised = np.where(high > low, rmse / (high - low), nan)
    columns = (rmse, rmse_raw, relative, normalised)
    return {name: TorqueErrors(*(float(column[k]) for column in columns)) for k, name in enumerate(channels)}


def stacked_relative_error(runs: Sequence[Run], standard: FloatArray) -> float:
    """Norm of the error over the norm of the torque, all channels stacked."""
    error = sum(float(np.sum(run.residuals(standard) ** 2)) for run in runs)
    size = sum(float(np.sum(run.y**2)) for run in runs)
    return float(np.sqrt(error / size)) if size > 0.0 else nan


def joint_errors(train: Sequence[Run], held_out: Sequence[Run], standard: FloatArray) -> tuple[JointErrors, ...]:
    """Training and held-out errors of every channel."""
    a = torque_errors(train, standard)
    b = torque_errors(held_out, standard) if held_out else {}
    return tuple(JointErrors(name, a[name], b.get(name, TorqueErrors())) for name in a)
