"""Whether a recording with a load is one the arm's model can be compared with: torque and position in step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.run import Run
from armid.notes import Note, Severity

LATE = 0.004
"""[s] Torque this late (or early) passes for viscous friction and for inertia of the load: on a fast arm for several per cent of
its mass."""

_BESIDE = 3
"""Samples on either side of a reversal that are left out: Coulomb friction jumps there, and a low-pass blurs it."""

_SURE = 5.0
"""Standard deviations a lag must be away from zero."""

_MATTERS = 3.0
"""Standard deviations of the mass by which it may change when the lag is taken out. Drives whose currents always come a little
late, in the runs that identified the arm as well, stay below this."""


def torque_lag(runs: Sequence[Run], standard: FloatArray) -> tuple[float, float]:
    """By how much torque is stamped late, from what the model leaves: y(t) - f(t) = -lag f'(t) for small lags.

    Joints are averaged with weights; each says how large its own residuals are.

    Args:
        runs: recordings.
        standard: parameters of arm and load together.

    Returns:
        Lag [s], and its standard deviation from the spread between joints.
    """
    found, weights = [], []
    n = len(runs[0].channels)
    for j in range(n):
        parts = [_moving_part(run, standard, j) for run in runs]
        slope, left = (np.concatenate(side) for side in zip(*parts, strict=True))
        energy = float(slope @ slope)
        if len(slope) > 4 * _BESIDE and energy > 0.0:
            lag = -float(slope @ left) / energy
            noise = float(np.mean((left + lag * slope) ** 2))
            found.append(lag)
            weights.append(energy / max(noise, 1e-300))
    if not found:
        return 0.0, np.inf
    mean = float(np.average(found, weights=weights))
    spread = np.sqrt(np.average((np.array(found) - mean) ** 2, weights=weights) / max(len(found) - 1, 1))
    return mean, float(spread)


def _moving_part(run: Run, standard: FloatArray, channel: int) -> tuple[FloatArray, FloatArray]:
    """Slope of the modelled torque and what it leaves, where the joint keeps its direction, each of shape [k]."""
    left = run.residuals(standard)[:, channel]
    model = run.y[:, channel] - left
    joints = len(run.inputs[0]) // 3
    sign = np.sign(run.inputs[:, joints + channel % joints])
    keep = np.ones(len(sign), dtype=np.bool_)
    for k in range(1, _BESIDE + 1):
        keep[k:] &= sign[k:] == sign[:-k]
        keep[:-k] &= sign[k:] == sign[:-k]
    slope = np.zeros_like(model)
    for start, stop in run.segments:
        if stop - start > 2 * _BESIDE:
            slope[start:stop] = np.gradient(model[start:stop]) * run.rate
            keep[start : start + _BESIDE] = keep[stop - _BESIDE : stop] = False
        else:
            keep[start:stop] = False
    return slope[keep], left[keep]


def out_of_step(runs: Sequence[Run], standard: FloatArray) -> float:
    """Lag of torque behind position where there is one for certain [s]; zero otherwise."""
    lag, spread = torque_lag(runs, standard)
    return lag if abs(lag) >= LATE and abs(lag) >= _SURE * spread else 0.0


def in_step(run: Run, lag: float) -> Run:
    """The run with its torque taken `lag` seconds later, segment by segment."""
    y = run.y.copy()
    for start, stop in run.segments:
        t = np.arange(stop - start) / run.rate
        for c in range(y.shape[1]):
            y[start:stop, c] = np.interp(t + lag, t, run.y[start:stop, c])
    return run.with_measured(y)


def synchronisation_note(name: str, lag: float, change: float, spread: float) -> Note:
    """A word on torque that is out of step.

    Args:
        name: of the recording.
        lag: [s].
        change: of the mass when the lag is taken out [kg].
        spread: standard deviation of the mass [kg].

    Raises:
        InputError: the answer depends on it.
    """
    text = f"torque is {1e3 * abs(lag):.0f} ms {'late' if lag > 0 else 'early'} against position"
    if abs(change) > _MATTERS * spread:
        raise InputError(
            name,
            f"{text}, which makes {change:+.2g} kg",
            "record both with one clock, or state the delay in a mapping file",
        )
    return Note("unsynchronised", Severity.WARNING, f"{text}; the mass changes by {change:+.2g} kg without it", name)
