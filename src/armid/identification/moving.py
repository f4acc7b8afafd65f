"""Motion to learn from: without the stretches in which the whole arm stands still.

Friction at rest is anything up to Coulomb friction, so that such rows say what the drives hold to no better than that, and long
enough they outweigh the motion: least squares then makes bodies of the friction that happened to hold, and what is another after
the motion than during it passes for a drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.cluster.workers import Workers
from armid.estimation.run import Run, each_run
from armid.estimation.run_maker import Made, RunMaker
from armid.estimation.runs import changed_runs
from armid.identification.motion import Mask, at_rest, largest_speeds
from armid.identification.thresholds import MOVING_SECONDS
from armid.logs.recording import Recording


def made_to_learn(maker: RunMaker, recordings: Sequence[Sequence[Recording]], workers: Workers | None = None) -> Made:
    """Runs of recordings, those of the first part in motion only.

    Args:
        maker: of the runs.
        recordings: training and held-out.
        workers: see `RunMaker.made`.
    """
    made = maker.made(recordings, workers)
    return replace(made, runs=(in_motion(made.runs[0]), *made.runs[1:]))


def in_motion(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs without rows at which every joint stands still; as they are where there are none, or hardly anything else.

    Args:
        runs: of one or several recordings.
    """
    speeds = largest_speeds(runs)
    moving, still = np.sum(list(each_run(runs, partial(_seconds, speeds=speeds))), axis=0)
    if still == 0.0 or moving < MOVING_SECONDS.value:
        return runs
    return changed_runs(runs, partial(moving_rows, speeds=speeds))


def _seconds(run: Run, speeds: FloatArray) -> tuple[float, float]:
    """For which some joint moves, and for which every joint stands still [s]."""
    rows = int(np.sum(np.all(at_rest(run, speeds), axis=1)))
    return (len(run) - rows) / run.rate, rows / run.rate


def moving_rows(run: Run, speeds: FloatArray) -> Run:
    """The rows of a run at which some joint moves; of a run without any its first alone, which says next to nothing.

    Args:
        run: the motion.
        speeds: largest speed of every joint in the training motion [rad/s or m/s].
    """
    kept: Mask = ~np.all(at_rest(run, speeds), axis=1)
    if kept.all():
        return run
    kept[0] |= not kept.any()
    place = np.cumsum(kept) - 1
    return replace(
        run,
        inputs=run.inputs[kept],
        y=run.y[kept],
        y_raw=None if run.y_raw is None else run.y_raw[kept],
        segments=_stretches(kept, run.segments),
        continues=run.continues and bool(kept[0]),
        reversals=tuple(_moved(turns, kept, place) for turns in run.reversals),
    )


def _stretches(kept: Mask, segments: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Stretches of rows that followed one another and still do, by their new numbers."""
    out: list[tuple[int, int]] = []
    for start, stop in segments:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], kept[start:stop].astype(np.int8), [0]])))
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            begin = out[-1][1] if out else 0
            out.append((begin, begin + int(last - first)))
    return tuple(out)


def _moved(turns: FloatArray, kept: Mask, place: npt.NDArray[np.int64]) -> FloatArray:
    """Where a joint turned around, in new rows; without what happened at rest.

    Args:
        turns: in old rows and between them, ascending.
        kept, place: whether a row is left, and its new number.
    """
    row = np.clip(np.floor(turns), 0, len(kept) - 1).astype(np.int64)
    return np.asarray((place[row] + turns - row)[kept[row]], dtype=np.float64)
