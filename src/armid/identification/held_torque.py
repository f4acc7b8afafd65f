"""What it does to base parameters that the recorded torque may be held since the last tick of its controller.

A controller that sets its torque at every tick holds it until the next one: on average the arm feels it half a tick later than it
was written down. A torque sensor has no such lag. A log does not say which of the two it holds, nor how long the tick was, only
that it was no longer than the time between two samples. The move that half a tick makes is therefore counted as variance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.estimation.reversals import noise_along
from armid.estimation.run import Run
from armid.identification.gains import DriveGains
from armid.identification.prepare import Data, choice_runs
from armid.identification.settings import Identification
from armid.kernels.evaluate import evaluate_rows
from armid.robot.robot import Robot
from armid.rows.imperfections import Family

LONGEST_TICK = 0.002
"""[s]; drives set their torque at 500 Hz or faster, and a slower log leaves ticks out."""


def held_move(
    robot: Robot, settings: Identification, data: Data, estimate: Estimate, gains: DriveGains | None
) -> FloatArray | None:
    """Move of the base parameters by half a tick of held torque, shape [r].

    None where it is known already how late the torque is (a delay given, or estimated as an imperfection), with an earlier
    result, whose torque had the same lag, and in a simulated loop, which holds its torque itself.
    """
    if settings.prior is not None or settings.method.in_loop or data.conditioning.torque_delay or _delay_known(data):
        return None
    return _moved(choice_runs(robot, data.choice, settings.effects, data.shapes, gains), estimate, half_tick(data))


def _delay_known(data: Data) -> bool:
    """Whether the runs were freed from delays that were found in them, or in other recordings by the same sensors."""
    found = data.imperfections
    while found is not None:
        if any(sized.item.family is Family.DELAY for sized in found.sizes):
            return True
        found = found.before
    return False


def half_tick(data: Data) -> float:
    """Half the time between two recorded samples of the slowest recording, or of the longest tick of a drive [s]."""
    steps = [recording.duration / max(len(recording) - 1, 1) for recording in data.recordings[0]]
    return 0.5 * min(max(steps), LONGEST_TICK)


def widened_by_tick(estimate: Estimate, move: FloatArray | None) -> Estimate:
    """The estimate with the move counted as variance: C + d d^T."""
    if move is None:
        return estimate
    return estimate.with_covariance(estimate.covariance + np.outer(move, move), estimate.covariance_kind)


def _moved(runs: Sequence[Run], estimate: Estimate, late: float) -> FloatArray:
    """(A^T W A)^-1 A^T W d with d the change of the predicted torque over this time, shape [r]."""
    r = len(estimate)
    gram, product = np.zeros((r, r)), np.zeros(r)
    for run in runs:
        noise = noise_along(run, estimate.sigma)
        torque = run.predicted(estimate.standard)
        A = evaluate_rows(run.source, run.inputs)[:, :, estimate.base.independent] / noise[:, :, np.newaxis]
        for start, stop in run.segments:
            if stop - start > 1:
                change = np.gradient(torque[start:stop], axis=0) * (late * run.rate) / noise[start:stop]
                rows = A[start:stop].reshape(-1, r)
                gram += rows.T @ rows
                product += rows.T @ change.reshape(-1)
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    return np.asarray(np.linalg.lstsq(gram / np.outer(scale, scale), product / scale, rcond=1e-13)[0]) / scale
