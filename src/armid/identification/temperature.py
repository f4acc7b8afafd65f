"""Drive temperatures at the instants of conditioned runs, for looking at residuals against them."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from armid.arrays import FloatArray
from armid.logs.log import Channel, Log, matched
from armid.logs.samples import Samples
from armid.robot.robot import Robot


def run_temperatures(log: Log, robot: Robot, samples: Samples) -> tuple[FloatArray | None, ...]:
    """One array [degrees Celsius], shape [n_samples, n_joints], per run of the samples; None where nothing was recorded.

    Args:
        log: as read.
        robot: for the joint order.
        samples: the log after conditioning; a run is a stretch of segments of one rate, as the estimators see it.
    """
    groups = [list(group) for _, group in groupby(samples.segments, key=lambda s: (s.log, s.rate))]
    if Channel.TEMPERATURE not in log:
        return (None,) * len(groups)
    ordered = matched(log, robot)
    usable = np.isfinite(ordered.time) & np.all(np.isfinite(ordered[Channel.TEMPERATURE]), axis=1)
    if not usable.any():
        return (None,) * len(groups)
    order = np.argsort(ordered.time[usable], kind="stable")
    time, values = ordered.time[usable][order], ordered[Channel.TEMPERATURE][usable][order]
    return tuple(at(samples.time[group[0].start : group[-1].stop], time, values) for group in groups)


def at(instants: FloatArray, time: FloatArray, values: FloatArray) -> FloatArray:
    """Columns interpolated linearly: temperatures change slowly."""
    return np.column_stack([np.interp(instants, time, column) for column in values.T])
