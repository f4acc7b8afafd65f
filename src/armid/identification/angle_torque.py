"""Rows without torque of the joints' angles: what is left to tell a mistake of the recording from a cable or ripple of a gear.

Torque that goes with the angle of its joint and that no body makes is the arm's own. Of a light wrist it may be most of what
there is, and beside bodies that can exist another geometry explains it: a joint that turns the other way, an encoder off by a
quarter turn. A cable that runs through several joints pulls by the angles of all of them. What is wrong with a recording
explains it better with such torque free, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.recording import torque_source
from armid.estimation.run import Run
from armid.information.information import ChannelInformation, Information, total, triangular


def beside_own_angle(runs: Sequence[Run]) -> Information:
    """Rows of the runs, every channel without what sine and cosine of its own joint's angle explain of it."""
    return total(_projected(run, lambda q, c: q[:, c : c + 1]) for run in runs)


def beside_angles(runs: Sequence[Run]) -> Information:
    """Rows of the runs, every channel without what sines and cosines of all joints' angles explain of it."""
    return total(_projected(run, lambda q, _: q) for run in runs)


def _projected(run: Run, seen: Callable[[FloatArray, int], FloatArray]) -> Information:
    """Rows of one run without what the angles seen by each channel explain."""
    n, p = torque_source([run]).robot.n_joints, len(run.source.columns)
    waves = [2 * seen(run.inputs[:1, :n], c).shape[1] for c in range(len(run.channels))]
    factors = [np.zeros((m + p + 1, m + p + 1)) for m in waves]
    for part, _, A in run.blocks():
        for c, factor in enumerate(factors):
            q = seen(run.inputs[part, :n], c)
            rows = np.column_stack([np.sin(q), np.cos(q), A[:, c], run.y[part, c]])
            factors[c] = triangular(np.vstack([factor, rows]))
    channels = tuple(
        ChannelInformation(name, np.arange(p), factor[m:, m:], float(len(run)))
        for name, m, factor in zip(run.channels, waves, factors, strict=True)
    )
    return Information(tuple(run.source.columns), channels, "beside angles")
