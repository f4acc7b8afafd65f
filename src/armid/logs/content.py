"""Columns without names, told apart by what the numbers do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.groups import Group
from armid.logs.log import Channel
from armid.logs.mapping import ClockMap
from armid.logs.readers.table import TableFile
from armid.robot.robot import Robot


def unnamed_groups(
    path: Path, table: TableFile, head: Mapping[str, FloatArray], robot: Robot | None
) -> tuple[list[Group], ClockMap]:
    """Channels of a file without column names, told apart by what the numbers do.

    Columns come in groups of one per joint: positions first, the velocity is the group that the change of position follows,
    the acceleration the one that the change of velocity follows, torque the first of the rest.
    """
    hint = "write a mapping file that says which columns are which (docs/logs.md)"
    if robot is None:
        raise InputError(path, "columns without names", hint)
    n, count = robot.n_joints, len(table.names)
    values = np.column_stack([head[name] for name in table.names])
    timed = (count - 1) % n == 0 and count > n and _increasing(values[:, 0])
    first = 1 if timed else 0
    if (count - first) % n or count - first < n:
        raise InputError(path, f"{count} columns without names do not split into groups of {n} joints", hint)
    blocks = [values[:, first + k * n : first + (k + 1) * n] for k in range((count - first) // n)]
    kinds = _block_kinds(blocks)
    groups = [Group(channel, tuple(table.names[first + k * n : first + (k + 1) * n])) for channel, k in kinds.items()]
    return groups, ClockMap(column=table.names[0], unit="") if timed else ClockMap()


_FOLLOWS = 0.8
"""Correlation above which one group is taken for the derivative of another: noise lowers it, a wrong group is near zero."""

_STEPS = 5
"""Samples over which a change is taken."""
_FEWEST = 10
"""Changes a correlation needs to mean anything."""


def _block_kinds(blocks: list[FloatArray]) -> dict[Channel, int]:
    """Which block is which; the first is the position."""
    kinds = {Channel.POSITION: 0}
    rest = list(range(1, len(blocks)))
    for source, target in ((Channel.POSITION, Channel.VELOCITY), (Channel.VELOCITY, Channel.ACCELERATION)):
        if source in kinds and len(rest) > 1:
            score = {k: _derivative_correlation(blocks[kinds[source]], blocks[k]) for k in rest}
            best = max(score, key=lambda k: score[k])
            if score[best] > _FOLLOWS:
                kinds[target] = best
                rest.remove(best)
    if rest:
        kinds[Channel.LINK_TORQUE] = rest[0]
    return kinds


def _derivative_correlation(x: FloatArray, v: FloatArray) -> float:
    """Correlation between the change of x and v at mid-step, over all joints together, so that those that move decide."""
    with np.errstate(all="ignore"):
        return _pooled_correlation(x, v)


def _pooled_correlation(x: FloatArray, v: FloatArray) -> float:
    """The same; absurd numbers, and too few of them, give zero."""
    if len(x) < _STEPS + _FEWEST:
        return 0.0
    # Over some samples, so that repeated rows and quantisation do not hide it.
    change = x[_STEPS:] - x[:-_STEPS]
    kernel = np.ones(_STEPS + 1) / (_STEPS + 1)
    mid = np.column_stack([np.convolve(column, kernel, mode="valid") for column in v.T])
    good = np.isfinite(change).all(axis=1) & np.isfinite(mid).all(axis=1)
    if good.sum() < _FEWEST:
        return 0.0
    a, b = change[good] - change[good].mean(axis=0), mid[good] - mid[good].mean(axis=0)
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    score = float((a * b).sum()) / size if size > 0.0 else 0.0
    return score if np.isfinite(score) else 0.0


def _increasing(time: FloatArray) -> bool:
    """Whether a column may be a clock: it rises almost always and never by much less than usual."""
    step = np.diff(time[np.isfinite(time)])
    return len(step) > 0 and bool(np.mean(step > 0.0) > 0.9) and bool(np.median(step) > 0.0)
