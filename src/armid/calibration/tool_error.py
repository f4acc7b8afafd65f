"""How far the tool is from where the model says, per observation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.kinematics.measurement import IntArray, Measurements
from armid.rows.pose_residual import Residual, parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Of a set of error norms [m or rad]; NaN when there are none."""

    mean: float
    median: float
    rms: float
    p95: float
    max: float
    count: int

    def as_dict(self) -> dict[str, float]:
        return {
            "mean": self.mean,
            "median": self.median,
            "rms": self.rms,
            "p95": self.p95,
            "max": self.max,
            "count": self.count,
        }


def statistics(errors: FloatArray) -> Statistics:
    """Mean, median, root mean square, 95 % quantile and maximum of error norms."""
    if len(errors) == 0:
        none = float("nan")
        return Statistics(mean=none, median=none, rms=none, p95=none, max=none, count=0)
    return Statistics(
        mean=float(errors.mean()),
        median=float(np.median(errors)),
        rms=float(np.sqrt((errors**2).mean())),
        p95=float(np.quantile(errors, 0.95)),
        max=float(errors.max()),
        count=len(errors),
    )


@dataclass(frozen=True, eq=False)
class ErrorTable:
    """Lengths of residual vectors.

    Args:
        position: distances [m], shape [k]; includes planes and bars, whose error is one number.
        position_rows: configuration of each, shape [k].
        orientation: angles [rad], shape [l].
        orientation_rows: configuration of each, shape [l].
    """

    position: FloatArray
    position_rows: IntArray
    orientation: FloatArray
    orientation_rows: IntArray

    @property
    def main(self) -> tuple[FloatArray, IntArray]:
        """Positions, or orientations when no position was measured."""
        return (self.position, self.position_rows) if len(self.position) else (self.orientation, self.orientation_rows)


def error_table(residuals: Iterable[Residual], rows: IntArray | None = None) -> ErrorTable:
    """Error norms of every observation; `rows` renumbers configurations (for a subset)."""
    found: dict[str, list[FloatArray]] = {"position": [np.zeros(0)], "orientation": [np.zeros(0)]}
    places: dict[str, list[IntArray]] = {"position": [np.zeros(0, np.intp)], "orientation": [np.zeros(0, np.intp)]}
    for residual in residuals:
        o = residual.observations
        for part, channels in parts(o.quantity):
            kind = "orientation" if part == "orientation" else "position"
            found[kind].append(np.linalg.norm(residual.r[channels], axis=0))
            places[kind].append(o.rows if rows is None else rows[o.rows])
    return ErrorTable(
        np.concatenate(found["position"]),
        np.concatenate(places["position"]),
        np.concatenate(found["orientation"]),
        np.concatenate(places["orientation"]),
    )


def joined_tables(tables: Iterable[ErrorTable]) -> ErrorTable:
    """Several tables one after the other."""
    parts = list(tables)
    return ErrorTable(
        *(
            np.concatenate([getattr(t, name) for t in parts])
            for name in ("position", "position_rows", "orientation", "orientation_rows")
        )
    )


def by_group(errors: FloatArray, rows: IntArray, measurements: Measurements) -> FloatArray:
    """Mean error of every group of configurations that has one."""
    means = group_means(errors, rows, measurements)
    return means[np.isfinite(means)]


def group_means(errors: FloatArray, rows: IntArray, measurements: Measurements) -> FloatArray:
    """Mean error of every group of configurations, NaN where there is none, shape [n_groups]."""
    group, size = measurements.group[rows], int(measurements.group.max(initial=-1)) + 1
    total, count = np.bincount(group, weights=errors, minlength=size), np.bincount(group, minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
