"""Several objectives at once by goal attainment: minimise the worst relative miss of all goals.

[Kolyubin2017] eq. 24: min gamma subject to F - gamma |Lambda| <= Lambda, with F the condition number and the mean
torque reserves `mean(tau_max - |tau|)` of weakly loaded joints, Lambda the goals. Equivalently min max (F - Lambda)/|Lambda|,
smoothed here by a log-sum-exp.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from armid.arrays import FloatArray

_SHARPNESS = 250.0
"""Of the smooth maximum: misses closer together than 1/250 = 0.4 % are traded against each other. A reserve near 0.9 of the
limit changes by a few per cent only, however hard the joint works, so coarser would not see it."""

_SOFTENING = 1e-3
"""Fraction of the torque limit over which |tau| is rounded off at zero."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Goals:
    """Goals and the weights of missing them.

    Args:
        condition_number: to reach.
        joints: whose torque reserve counts, 0-based.
        torque_limits: of those joints [N m or N], shape [k].
        reserve: mean reserve to reach, as a fraction of the limit: 0.9 asks for a mean torque of 0.1 of it; shape [k].
        weights: of the misses, condition number first, shape [1 + k]; the goals themselves in the paper.
    """

    condition_number: float
    joints: tuple[int, ...]
    torque_limits: FloatArray
    reserve: FloatArray
    weights: FloatArray | None = field(default=None)

    @property
    def goals(self) -> FloatArray:
        """Lambda, shape [1 + k]."""
        return np.concatenate([[self.condition_number], self.reserve * self.torque_limits])

    def misses(self, condition_number: float, torque: FloatArray) -> FloatArray:
        """(F - Lambda) / weight for torques of shape [n_joints, N]; none is positive when all goals are attained."""
        own = np.abs(torque[list(self.joints)]).mean(axis=1)
        reached = np.concatenate([[condition_number], self.torque_limits - own])
        return (reached - self.goals) / self._weights

    @property
    def _weights(self) -> FloatArray:
        return np.abs(self.goals) if self.weights is None else self.weights

    def combined(self, log_condition: float, S: FloatArray, torque: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Smooth worst miss, its derivative by the Gram matrix and by the torques.

        Args:
            log_condition: logarithm of the smooth condition number.
            S: its derivative by the Gram matrix.
            torque: shape [n_joints, N].
        """
        rows = list(self.joints)
        rounding = _SOFTENING * self.torque_limits[:, np.newaxis]
        size = np.sqrt(torque[rows] ** 2 + rounding**2)
        kappa = float(np.exp(min(log_condition, 50.0)))
        reached = np.concatenate([[kappa], self.torque_limits - size.mean(axis=1)])
        misses = (reached - self.goals) / self._weights
        shares = np.exp(_SHARPNESS * (misses - misses.max()))
        value = float(misses.max() + np.log(shares.sum()) / _SHARPNESS)
        shares /= shares.sum()
        by_torque = np.zeros_like(torque)
        by_torque[rows] = -(shares[1:] / self._weights[1:])[:, np.newaxis] * torque[rows] / size / torque.shape[1]
        return value, S * (shares[0] * kappa / self._weights[0]), by_torque
