"""Rows near a joint's own reversal as classes of their own noise.

Where a joint turns around its friction does too, within milliseconds and a few thousandths of a radian, in a way that no linear
law has and no low-passed velocity shows. The torque predicted there is wrong by far more than the noise, always in the same way,
and a fit that believes it there is biased everywhere.
Each class of time to the nearest reversal is therefore a channel of its own in the Information, and weighted least squares finds
its noise like that of any channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.run import Run, summed
from armid.information.accumulate import accumulate, accumulate_apart
from armid.information.information import ChannelInformation, Information, merged, total

EDGES = (1.0, 2.0, 4.0)
"""Periods of the cut-off from a reversal up to which rows belong to the first, second and third class: the response of the
zero-phase low-pass decays tenfold per period."""

LONGEST = 0.025
"""[s]; a longer period counts as this. Controllers turn the torque around within some ten milliseconds, whatever a low-pass does
to the log afterwards. With a slow one, classes as long as its periods would hold most of the motion, and the friction in it."""


def class_names(channel: str) -> tuple[str, ...]:
    """Of the channels a measured one is told apart into: far from reversals it keeps its name, then from the nearest on."""
    return (channel, *(f"{channel} near reversals {k + 1}" for k in range(len(EDGES))))


def reversal_times(qd: FloatArray, start: int = 0) -> FloatArray:
    """Where a velocity changes its sign, in samples counted from `start`, between the samples by linear interpolation.

    Args:
        qd: velocity at even steps, shape [n].
        start: number of the first sample.
    """
    k = np.flatnonzero((qd[1:] > 0.0) != (qd[:-1] > 0.0))
    return start + k + qd[k] / (qd[k] - qd[k + 1])


def with_reversals(run: Run, qd: FloatArray, smear: float) -> Run:
    """The run with the reversals of every channel's own joint.

    Args:
        run: of as many samples as `qd`.
        qd: velocity of the joints' own drives [rad/s or m/s], shape [n_samples, n_joints].
        smear: period of the low-pass's cut-off [s]; zero without one.
    """
    n = qd.shape[1]
    found = [
        np.concatenate([reversal_times(qd[a:b, j], a) for a, b in run.segments] or [np.empty(0)]) for j in range(n)
    ]
    return replace(run, smear=smear, reversals=tuple(found[c % n] for c in range(len(run.channels))))


def row_classes(run: Run) -> npt.NDArray[np.intp] | None:
    """Class of every row, shape [n_samples, n_channels]: 0 far from reversals, 1 nearest; None when all are far."""
    if not run.reversals or run.smear <= 0.0:
        return None
    edges = np.array(EDGES) * min(run.smear, LONGEST) * run.rate
    samples = np.arange(len(run), dtype=np.float64)
    out = np.zeros((len(run), len(run.channels)), dtype=np.intp)
    for c, times in enumerate(run.reversals):
        if len(times):
            after = np.searchsorted(times, samples)
            before, next_one = times[np.maximum(after - 1, 0)], times[np.minimum(after, len(times) - 1)]
            away = np.minimum(np.abs(samples - before), np.abs(next_one - samples))
            near = np.searchsorted(edges, away)
            out[:, c] = np.where(near < len(EDGES), near + 1, 0)
    return out if np.any(out) else None


def classed_information(runs: Sequence[Run]) -> Information:
    """Information with a channel for every class of every measured channel; that of the runs where there are no classes.

    A joint that stands still turns around all the time, by its noise: all its rows are near reversals, and they stay one channel.
    """
    return classed_in_parts([runs])


def classed_in_parts(parts: Iterable[Sequence[Run]]) -> Information:
    """The same of runs that come a few at a time, and may go when they have been looked at."""
    return with_whole_channels(total(map(classes_of, parts)))


def classes_of(runs: Sequence[Run]) -> Information:
    """A summand of `classed_information`: what `with_whole_channels` makes of the sum of all is that."""
    return summed(runs, _classed)


def with_whole_channels(information: Information) -> Information:
    """Classes of channels that have no rows far from reversals, as the channel they were measured on."""
    far = {c.name for c in information.channels if not c.measured}
    parts: dict[str, ChannelInformation] = {}
    for channel in information.channels:
        if channel.measured and channel.measured not in far:
            channel = replace(channel, name=channel.measured, measured="")
        parts[channel.name] = merged(parts[channel.name], channel) if channel.name in parts else channel
    return replace(information, channels=tuple(parts.values()))


def _classed(run: Run) -> Information:
    """Of one run: rows far from every reversal as one, the others by channel and class."""
    classes = row_classes(run)
    if classes is None:
        return run.information()
    near = np.any(classes > 0, axis=1)
    inputs, y = np.asfortranarray(run.inputs[near]), np.asfortranarray(run.y[near])
    parts: dict[str, ChannelInformation] = {}
    if not np.all(near):
        far = accumulate(run.source, np.asfortranarray(run.inputs[~near]), np.asfortranarray(run.y[~near]))
        parts = {channel.name: channel for channel in far.channels}
    for (c, k), channel in accumulate_apart(run.source, inputs, y, classes[near]).items():
        name = class_names(run.channels[c])[k]
        part = replace(channel, name=name, measured=run.channels[c] if k else "")
        parts[name] = merged(parts[name], part) if name in parts else part
    order = [name for channel in run.channels for name in class_names(channel) if name in parts]
    return Information(tuple(run.source.columns), tuple(parts[name] for name in order), "classes")


def noise_along(run: Run, sigma: Mapping[str, float]) -> FloatArray:
    """Standard deviation of every row, shape [n_samples, n_channels]: that of its class, or of its channel where it has none."""
    whole = np.array([sigma[name] for name in run.channels])
    classes = row_classes(run)
    if classes is None:
        return np.broadcast_to(whole, (len(run), len(whole)))
    table = np.array([[sigma.get(name, sigma[c]) for name in class_names(c)] for c in run.channels])
    return np.take_along_axis(table.T, classes, axis=0)
