"""Friction that takes a little travel to turn around.

After a reversal the parts in contact deform before they slip: Coulomb friction swings from one side to the other over a
distance x0 of a few milliradians, not at the instant the velocity changes sign. [Dahl1968]:

    dz/dq = (1 - sign(qd) z) / x0,   friction = coulomb * z

Between reversals this is an exponential in the travelled distance. Linear in the Coulomb parameter for given x0; x0 is
found joint by joint on the training motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray

CANDIDATES = (0.0005, 0.001, 0.002, 0.004, 0.008)
"""[rad or m]; harmonic drives and bearings turn around within 0.5 to 8 mrad."""
WIDTHS = (0.0025, 0.005, 0.01)
"""Of the 90 % quantile of a joint's speed, over which its friction may turn around. Wider ones are another friction than
Coulomb's, and would take up what a wrong gain of the torque leaves."""
WIDTH_WORTHWHILE = 0.95
"""Ratio of residual noise below which a joint gets a width. Where friction does turn around so, 0.83 to 0.93; a tenth of wrong
gain alone leaves 0.954."""
DISTANCE_WORTHWHILE = 0.97
"""Ratio of residual noise below which a joint gets a presliding distance; less gain is within the luck of the draw."""
SUBSTEPS = 9
"""Points per sampling interval at which friction is followed: a reversal, a turn-around or a hump near standstill may lie within
one. Odd, so that the middle one is the sample itself."""


def contact_state(q: FloatArray, qd: FloatArray, rate: float, distance: float) -> FloatArray:
    """State z of one joint at points around each sample, shape [n_samples, SUBSTEPS]; between -1 and 1.

    Args:
        q, qd: position and velocity, shape [n_samples].
        rate: [Hz].
        distance: x0 [rad or m], positive.
    """
    count = len(q)
    if count < 2:
        return np.tile(np.sign(qd)[:, np.newaxis], SUBSTEPS)
    return followed(_path_between(q, qd, rate).ravel(), distance).reshape(count, SUBSTEPS)


def contact_along(velocity: FloatArray, rate: float, distance: float) -> FloatArray:
    """State z of one joint where its velocity is known at all points around each sample, shape like the velocity.

    Args:
        velocity: shape [n_samples, SUBSTEPS].
        rate: of the samples [Hz].
        distance: x0 [rad or m], positive.
    """
    v = velocity.ravel()
    path = np.concatenate([[0.0], np.cumsum(0.5 * (v[1:] + v[:-1]))]) / (rate * velocity.shape[1])
    return followed(path, distance).reshape(velocity.shape)


def _path_between(q: FloatArray, qd: FloatArray, rate: float) -> FloatArray:
    """Position at `SUBSTEPS` points around each sample by the cubic with the samples' positions and velocities.

    From half an interval before the first sample to half an interval after the last, where the outer cubics go on.

    Args:
        q, qd: shape [n_samples], at least two.
        rate: [Hz].

    Returns:
        Shape [n_samples, SUBSTEPS].
    """
    offset = (np.arange(SUBSTEPS) + 0.5) / SUBSTEPS - 0.5
    place = np.arange(len(q))[:, np.newaxis] + offset
    left = np.clip(np.floor(place).astype(np.intp), 0, len(q) - 2)
    s = place - left
    h = 1.0 / rate
    ahead = s * s * (3.0 - 2.0 * s)
    bend = s * (1.0 - s)
    slopes = h * bend * ((1.0 - s) * qd[left] - s * qd[left + 1])
    return np.asarray((1.0 - ahead) * q[left] + ahead * q[left + 1] + slopes)


def followed(path: FloatArray, distance: float) -> FloatArray:
    """State z along a path, slipping fully in the first direction at the start."""
    steps = np.diff(path)
    moving = np.flatnonzero(steps != 0.0)
    if len(moving) == 0:
        return np.zeros(len(path))
    direction = np.sign(steps)
    # Standing still keeps the direction of the last movement.
    last = np.maximum.accumulate(np.where(direction != 0.0, np.arange(len(steps)), moving[0]))
    direction = direction[last]
    turns = np.concatenate([[0], np.flatnonzero(direction[1:] != direction[:-1]) + 1, [len(steps)]])
    z = np.empty(len(path))
    state = z[0] = float(direction[0])
    for a, b in pairwise(turns):
        s = float(direction[a])
        z[a + 1 : b + 1] = s - (s - state) * np.exp(-np.abs(path[a + 1 : b + 1] - path[a]) / distance)
        state = float(z[b])
    return z


def chosen_options(sigma: FloatArray, worthwhile: Sequence[float] | None = None) -> npt.NDArray[np.intp]:
    """The option of every joint that leaves least noise, shape [n_joints]; the first where no other pays.

    Args:
        sigma: residual noise, one row per option, shape [n_options, n_joints].
        worthwhile: for every option but the first, the ratio of noise below which it pays; that of a distance by default.
    """
    limits = np.array([1.0, *(worthwhile or (DISTANCE_WORTHWHILE,) * (len(sigma) - 1))])[:, np.newaxis]
    ratio = sigma / sigma[0]
    pays = np.where(ratio < limits, ratio, np.inf)
    return np.where(np.isfinite(pays.min(axis=0)), np.argmin(pays, axis=0), 0)
