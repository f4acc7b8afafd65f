"""Torque of the drives at the configurations of a model, for terms that give way under it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.dynamics import gravity
from armid.kinematics.measurement import Measurements
from armid.kinematics.model import KinematicModel, TermBasis

_TORQUES: WeakKeyDictionary[KinematicModel, tuple[FloatArray, FloatArray]] = WeakKeyDictionary()
"""Gravity torque of the last set of configurations: it does not change while a model is fitted to them."""


def gravity_torque(model: KinematicModel, q: FloatArray) -> FloatArray | None:
    """Nominal gravity torque at the drives' positions, when some term of the model needs it."""
    if not any(term.basis is TermBasis.TORQUE for term in model.terms):
        return None
    known = _TORQUES.get(model)
    if known is None or known[0] is not q:
        known = (q, gravity(model.robot, q))
        _TORQUES[model] = known
    return known[1]


def holding_torque(model: KinematicModel, measurements: Measurements) -> FloatArray | None:
    """What the drives held at every configuration: as measured, and the nominal gravity torque where nothing was."""
    torque = gravity_torque(model, measurements.q)
    if torque is None or measurements.torque is None:
        return torque
    return np.where(np.isfinite(measurements.torque), measurements.torque, torque)
