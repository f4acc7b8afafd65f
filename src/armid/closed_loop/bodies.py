"""Base values of bodies that can exist, nearest to given ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.consistent import Consistency
from armid.consistency.prior import Prior
from armid.consistency.regularisers import PullBack
from armid.identifiability.base import BaseParameters
from armid.information.status import EstimationError

_NEAR = 1e3
"""How many times more a base value counts than the pull towards the prior bodies, in units of the prior."""
_FAINT = (1e-6, 1e-3, 1.0)
"""Weights of the pull towards the prior bodies beside rows of unit noise: the first picks among equal fits and moves none; the
others only where rows are so scaled that the solver cannot see it."""


def nearest_bodies(base: BaseParameters, prior: Prior) -> Callable[[FloatArray], FloatArray]:
    """From base values to the standard parameters of possible bodies nearest to them, in units of the prior's base values."""
    P = np.asarray(base.projection)
    size = np.maximum(np.abs(P) @ np.abs(prior.values), 1e-3)

    def nearest(values: FloatArray) -> FloatArray:
        root = np.diag(_NEAR / size)
        solution, scale = Consistency(PullBack(1.0)).solve(root @ P, root @ values, prior, 0.0)
        return solution.v[: len(scale)] * scale

    return nearest


def fitting_bodies(base: BaseParameters, prior: Prior) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """From rows R b = z in units of their noise to base values of the possible bodies that fit them best."""
    P = np.asarray(base.projection)

    def fitting(R: FloatArray, z: FloatArray) -> FloatArray:
        for weight in _FAINT:
            try:
                solution, scale = Consistency(PullBack(weight)).solve(R @ P, z, prior, 0.0)
            except EstimationError:
                if weight == _FAINT[-1]:
                    raise
                continue
            break
        return P @ (solution.v[: len(scale)] * scale)

    return fitting
