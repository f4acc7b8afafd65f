"""How far configurations that are kept aside stand from those that are not.

A held-out error is that of other configurations only where those kept aside are as far from the others as new ones would be.
Along a slow motion they are not: with every tenth configuration kept aside both its neighbours are fitted, and what the model
leaves out is nearly the same there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.thresholds import MOTION, REPEATED
from armid.kinematics.measurement import Measurements, joined
from armid.notes import Note, Severity

Mask = npt.NDArray[np.bool_]

_LEAST_SPREAD = 0.05
"""[rad or m] Spread of a joint below which it counts as hardly moved: its jitter keeps no configurations apart."""
_LOOKED_AT = 100
"""Configurations per part that are looked at: a median of five hundred is known to a few per cent."""


def distance_aside(q: FloatArray, parts: Sequence[Mask]) -> float:
    """Median distance of configurations kept aside to the nearest that is not, in standard deviations of every joint.

    Args:
        q: joint positions [rad or m], shape [n, n_joints].
        parts: masks of those kept aside in turn, shape [n] each.
    """
    scaled = q / np.maximum(q.std(axis=0), _LEAST_SPREAD)
    found = []
    for aside in parts:
        if aside.any() and not aside.all():
            looked_at, others = scaled[aside][:: -(-int(aside.sum()) // _LOOKED_AT)], scaled[~aside]
            squares = (looked_at**2).sum(axis=1)[:, np.newaxis] + (others**2).sum(axis=1) - 2.0 * looked_at @ others.T
            found.append(np.sqrt(np.maximum(squares.min(axis=1), 0.0)))
    return float(np.median(np.concatenate(found))) if found else 0.0


def is_motion(measurements: Measurements, scattered: Sequence[Mask], blocked: Sequence[Mask]) -> bool:
    """Whether consecutive configurations are so near one another that random parts kept aside test no other configurations.

    Args:
        measurements: all of them.
        scattered, blocked: as many parts of random and of consecutive configurations.
    """
    near, far = (distance_aside(measurements.q, parts) for parts in (scattered, blocked))
    return near < MOTION.value * far


def repeat_notes(train: Measurements, held_out: Measurements) -> list[Note]:
    """Whether held-out rows stand where the fit has seen the arm already."""
    group = joined([train, held_out]).group
    known, tested = np.unique(group[: len(train.q)]), np.unique(group[len(train.q) :])
    again = int(np.isin(tested, known).sum())
    if again <= REPEATED.value * len(tested):
        return []
    text = (
        f"{again} of {len(tested)} held-out configurations were fitted, too: what the model leaves out is the same there, and "
        "errors at other configurations are larger; hold out poses of their own"
    )
    return [Note("repeated-configurations", Severity.WARNING, text)]
