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

BESIDE = 3
"""Samples on either side of a reversal that are left out: Coulomb friction jumps there, and a low-pass blurs it."""

SURE = 5.0
"""Standard deviations a lag must be away from zero to be worth a word."""

CERTAIN = 10.0
"""Standard deviations from which on all joints agree: two clocks, not friction that is not as modelled."""


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
        parts = [moving_part(run, standard, j) for run in runs]
        slope, left = (np.concatenate(side) for side in zip(*parts, strict=True))
        energy = float(slope @ slope)
        if len(slope) > 4 * BESIDE and energy > 0.0:
            lag = -float(slope @ left) / energy
            noise = float(np.mean((left + lag * slope) ** 2))
            found.append(lag)
            weights.append(energy / max(noise, 1e-300))
    if not found:
        return 0.0, np.inf
    mean = float(np.average(found, weights=weights))
    spread = np.sqrt(np.average((np.array(found) - mean) ** 2, weights=weights) / max(len(found) - 1, 1))
    return mean, float(spread)


def moving_part(run: Run, standard: FloatArray, channel: int) -> tuple[FloatArray, FloatArray]:
    """Slope of the modelled torque and what it leaves, where the joint keeps its direction, each of shape [k]."""
    left = run.residuals(standard)[:, channel]
    model = run.y[:, channel] - left
    joints = len(run.inputs[0]) // 3
    sign = np.sign(run.inputs[:, joints + channel % joints])
    keep = np.ones(len(sign), dtype=np.bool_)
    for k in range(1, BESIDE + 1):
        keep[k:] &= sign[k:] == sign[:-k]
        keep[:-k] &= sign[k:] == sign[:-k]
    slope = np.zeros_like(model)
    for start, stop in run.segments:
        if stop - start > 2 * BESIDE:
            slope[start:stop] = np.gradient(model[start:stop]) * run.rate
            keep[start : start + BESIDE] = keep[stop - BESIDE : stop] = False
        else:
            keep[start:stop] = False
    return slope[keep], left[keep]


def synchronisation_notes(runs: Sequence[Run], standard: FloatArray) -> list[Note]:
    """A word when torque and position are out of step.

    Raises:
        InputError: so far that the answer would be wrong.
    """
    lag, spread = torque_lag(runs, standard)
    if abs(lag) < LATE or abs(lag) < SURE * spread:
        return []
    text = f"torque is {1e3 * abs(lag):.0f} ms {'late' if lag > 0 else 'early'} against position"
    if abs(lag) > CERTAIN * spread:
        raise InputError(runs[0].name, text, "record both with one clock, or state the delay in a mapping file")
    return [Note("unsynchronised", Severity.WARNING, f"{text}, or friction is not as modelled", runs[0].name)]
