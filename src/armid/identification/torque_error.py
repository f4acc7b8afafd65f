"""How well parameters predict torque: one line per joint, in the terms of the command contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
            **{f"rmse_{part}": getattr(self, part).rmse for part in _PARTS},
            **{f"relative_error_{part}": getattr(self, part).relative for part in _PARTS},
            **{f"rmse_raw_{part}": getattr(self, part).rmse_raw for part in _PARTS},
            **{f"normalised_error_{part}": getattr(self, part).normalised for part in _PARTS},
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> JointErrors:
        """The inverse of `as_dict`; null reads as NaN."""
        parts = {part: TorqueErrors(*(number_or_nan(values.get(f"{key}_{part}")) for key in _KEYS)) for part in _PARTS}
        return JointErrors(values["name"], parts["train"], parts["held_out"])


_PARTS = ("train", "held_out")
_KEYS = ("rmse", "rmse_raw", "relative_error", "normalised_error")
"""In the order of the fields of `TorqueErrors`."""


def number_or_nan(value: Any) -> float:
    """A float; NaN for null."""
    return nan if value is None else float(value)


class ErrorSums:
    """Errors of one parameter vector, run by run.

    Args:
        channels: names.
    """

    def __init__(self, channels: Sequence[str]) -> None:
        n = len(channels)
        self.channels = tuple(channels)
        self.count, self.raw_count = 0, 0
        self.error, self.size, self.raw = np.zeros(n), np.zeros(n), np.zeros(n)
        self.low, self.high = np.full(n, np.inf), np.full(n, -np.inf)

    def add(self, run: Run, residual: FloatArray) -> None:
        """One more run with its residuals, shape [n_samples, n_channels]."""
        y = run.as_recorded(run.y)
        self.error += np.sum(run.as_recorded(residual) ** 2, axis=0)
        self.size += np.sum(y**2, axis=0)
        self.count += len(run)
        self.low, self.high = np.minimum(self.low, y.min(axis=0)), np.maximum(self.high, y.max(axis=0))
        if run.y_raw is not None:
            self.raw += np.sum(run.as_recorded(run.y_raw - run.y + residual) ** 2, axis=0)
            self.raw_count += len(run)

    def merge(self, other: ErrorSums) -> None:
        """Those of further runs."""
        self.error, self.size, self.raw = self.error + other.error, self.size + other.size, self.raw + other.raw
        self.count, self.raw_count = self.count + other.count, self.raw_count + other.raw_count
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)

    def errors(self) -> dict[str, TorqueErrors]:
        """Of every channel."""
        with np.errstate(divide="ignore", invalid="ignore"):
            rmse, relative = np.sqrt(self.error / max(self.count, 1)), np.sqrt(self.error / self.size)
            rmse_raw = np.sqrt(self.raw / self.raw_count) if self.raw_count else np.full(len(self.error), nan)
            normalised = np.where(self.high > self.low, rmse / (self.high - self.low), nan)
        columns = (rmse, rmse_raw, relative, normalised)
        return {name: TorqueErrors(*(float(column[k]) for column in columns)) for k, name in enumerate(self.channels)}

    def stacked_relative(self) -> float:
        """Norm of the error over the norm of the torque, all channels stacked."""
        size = float(self.size.sum())
        return float(np.sqrt(self.error.sum() / size)) if size > 0.0 else nan


def _error_sums(runs: Sequence[Run], models: Mapping[str, FloatArray]) -> dict[str, ErrorSums]:
    """Errors of several full standard parameter vectors in one pass over the runs."""
    channels = runs[0].channels if len(runs) else ()
    sums = {name: ErrorSums(channels) for name in models}
    for run in runs:
        for name, standard in models.items():
            sums[name].add(run, run.residuals(standard))
    return sums


def torque_errors(runs: Sequence[Run], standard: FloatArray) -> dict[str, TorqueErrors]:
    """Errors per channel of full standard parameters; one streaming pass."""
    return _error_sums(runs, {"": standard})[""].errors()


def stacked_relative_error(runs: Sequence[Run], standard: FloatArray) -> float:
    """Norm of the error over the norm of the torque, all channels stacked."""
    return _error_sums(runs, {"": standard})[""].stacked_relative()


def joint_errors(train: Sequence[Run], held_out: Sequence[Run], standard: FloatArray) -> tuple[JointErrors, ...]:
    """Training and held-out errors of every channel."""
    return paired(torque_errors(train, standard), torque_errors(held_out, standard))


def paired(train: Mapping[str, TorqueErrors], held_out: Mapping[str, TorqueErrors]) -> tuple[JointErrors, ...]:
    """Training and held-out errors side by side."""
    return tuple(JointErrors(name, errors, held_out.get(name, TorqueErrors())) for name, errors in train.items())
