"""How many deviations of torque to keep free so that all limits hold at once with a given probability."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.motions.limits import MotionLimits
from armid.motions.trajectory import Trajectory
from armid.planning.model import TorqueModel
from armid.planning.usage import torque_deviation

_INSTANTS = 150
DRAWS = 3000
"""Parameter vectors drawn: the quantile at 99 % then rests on 30 of them."""


def checked_confidence(confidence: float) -> float:
    """A probability between one half and less than one."""
    if not 0.5 <= confidence < 1.0:
        raise InputError("confidence", f"{confidence}", "a probability from 0.5 to below 1")
    return confidence


def _draws_along(
    trajectory: Trajectory, model: TorqueModel, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Expected torque, deviation [n, n_joints], and errors of torque for drawn parameters [n, n_joints, DRAWS]."""
    # Strictly inside: at rest dry friction has no sign.
    inside = (np.arange(_INSTANTS) + 0.5) / _INSTANTS
    q, qd, qdd = trajectory.sample(inside * trajectory.duration)
    rows = np.ascontiguousarray(model.rows(q, qd, qdd))
    drawn = model.covariance_factor @ rng.standard_normal((len(model.values), DRAWS))
    # One large product instead of many small ones.
    errors = (rows.reshape(-1, rows.shape[2]) @ drawn).reshape(*rows.shape[:2], DRAWS)
    return np.asarray(rows @ model.values), torque_deviation(model, rows), errors


def simultaneous_factor(
    trajectory: Trajectory, model: TorqueModel, confidence: float, rng: np.random.Generator
) -> float:
    """The kappa such that, with this probability, no torque of the motion errs by more than kappa of its deviations.

    The parameters are taken as normal. A band that holds at every instant and joint at once is wider than the one of a
    single normal variable and far narrower than the ellipsoid of all parameters.
    """
    _, deviation, errors = _draws_along(trajectory, model, rng)
    known = deviation > 1e-12 * max(float(deviation.max()), 1e-300)
    if not known.any() or not deviation.max() > 0.0:
        return 0.0
    ratio = np.abs(errors[known]) / deviation[known][:, np.newaxis]
    return float(np.quantile(ratio.max(axis=0), confidence))


def probability_held(
    trajectory: Trajectory, model: TorqueModel, limits: MotionLimits, rng: np.random.Generator
) -> float:
    """Share of drawn parameter vectors with which every torque of the motion stays within its limit."""
    expected, _, errors = _draws_along(trajectory, model, rng)
    over = np.abs(expected[..., np.newaxis] + errors) > limits.torque[:, np.newaxis] * (1.0 + 1e-9)
    return float(1.0 - over.any(axis=(0, 1)).mean())
