"""How far this arm is from its description, learned from the measurements themselves.

Tolerances say what makers may have left; most arms are better. Parameters of one family (lengths, axis angles, zeros, ...) are
taken as draws from one normal distribution around nominal, whose width the data choose by marginal likelihood ([MacKay1992]):
`s^2 = sum z^2 / gamma` with `z` the found values in tolerances and `gamma = sum (1 - variance / prior variance)` the number of
them that the data determine. With many poses nothing changes; with few it keeps noise from becoming geometry.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kinematics.model import KinematicModel
from armid.parameters.space import OwnerKind

_WIDTH = 0.1
"""Share of the tolerance that arms usually use up: 0.5 mm, 0.5 mrad, 2 mrad, the middle of what calibrations publish (0.1 to
2 mm, 0.1 to 2 mrad, up to 10 mrad) on a logarithmic scale."""
_BELIEF = 2.0
"""How many parameters that belief counts as."""
_NARROWEST = 0.02
"""Share of the tolerance below which no family is taken to be: 0.1 mm, 0.1 mrad."""


def believed_prior(model: KinematicModel) -> FloatArray:
    """Standard deviations around nominal before anything was measured, shape [p]."""
    out = np.array(model.tolerances)
    out[model.owned(OwnerKind.LINK, OwnerKind.JOINT)] *= _WIDTH
    return out


def learned_prior(
    model: KinematicModel, values: FloatArray, fitted: npt.NDArray[np.bool_], prior: FloatArray, variance: FloatArray
) -> FloatArray:
    """Standard deviations around nominal, never wider than the tolerances, shape [p].

    Args:
        model: for families and tolerances.
        values: found, shape [p].
        fitted: mask of those that were fitted, shape [p].
        prior: standard deviations they were fitted with, shape [p].
        variance: of the found values, shape [p].
    """
    out = np.array(model.tolerances)
    for family in _families(model):
        own = family & fitted
        if not own.any():
            continue
        tolerance = model.tolerances[own]
        known = np.clip(1.0 - variance[own] / prior[own] ** 2, 0.0, 1.0).sum()
        squares = np.sum((values[own] / tolerance) ** 2)
        width = np.sqrt((squares + _BELIEF * _WIDTH**2) / (known + _BELIEF))
        out[family] *= np.clip(width, _NARROWEST, 1.0)
    return out


def _families(model: KinematicModel) -> list[npt.NDArray[np.bool_]]:
    """Masks of parameters of the arm that are alike: same unit, same tolerance."""
    arm = model.owned(OwnerKind.LINK, OwnerKind.JOINT)
    kinds = [(p.unit, p.tolerance) for p in model.parameters]
    return [
        arm & np.array([kind == wanted for kind in kinds])
        for wanted in dict.fromkeys(k for k, a in zip(kinds, arm, strict=True) if a)
    ]
