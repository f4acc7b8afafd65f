"""Small dense solves on triangular factors, shared by the least-squares family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.status import EstimationError, Status
from armid.information.information import Information

SINGULAR = 1e-10
"""Smallest over largest singular value of the column-scaled factor below which values are round-off, not information."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorSolution:
    """Least-squares solution of R b = z.

    Args:
        values: shape [r].
        inverse: (R^T R)^-1, shape [r, r].
        energy: sum of squared residuals.
        condition_number: of R as it is (SI units), 2-norm.
        condition_number_scaled: with columns scaled to unit length.
    """

    values: FloatArray
    inverse: FloatArray
    energy: float
    condition_number: float
    condition_number_scaled: float


def solve_factor(factor: FloatArray, names: tuple[str, ...]) -> FactorSolution:
    """Solves `[R z; 0 rho]` by SVD of the column-scaled R.

    Raises:
        EstimationError: a direction that the rows do not determine; names the parameters in it.
    """
    R, z = factor[:-1, :-1], factor[:-1, -1]
    norms = np.linalg.norm(R, axis=0)
    if np.any(norms == 0.0):
        lost = ", ".join(names[i] for i in np.flatnonzero(norms == 0.0))
        raise EstimationError(Status.RANK_DEFICIENT, f"the rows do not contain {lost}")
    U, s, Vt = np.linalg.svd(R / norms)
    if s[-1] <= SINGULAR * s[0]:
        weak = np.abs(Vt[-1])
        blamed = ", ".join(names[i] for i in np.argsort(-weak)[:4] if weak[i] > 0.2 * weak.max())
        raise EstimationError(
            Status.RANK_DEFICIENT, f"{blamed} cannot be told apart (singular values {s[-1]:.1e} to {s[0]:.1e})"
        )
    values = (Vt.T @ ((U.T @ z) / s)) / norms
    root = Vt.T / s / norms[:, np.newaxis]
    error = R @ values - z
    unscaled = np.linalg.svd(R, compute_uv=False)
    return FactorSolution(
        values=values,
        inverse=root @ root.T,
        energy=float(error @ error) + float(factor[-1, -1] ** 2),
        condition_number=float(unscaled[0] / unscaled[-1]),
        condition_number_scaled=float(s[0] / s[-1]),
    )


def channel_energies(information: Information, values: FloatArray) -> dict[str, float]:
    """Sum of squared residuals per channel."""
    return {channel.name: channel.error_energy(values) for channel in information.channels}


def channel_leverages(information: Information, inverse: FloatArray, weights: Mapping[str, float]) -> dict[str, float]:
    """How many of the parameters each channel pays for: tr((A^T W A)^-1 w_c^2 A_c^T A_c); they add up to r."""
    out = {}
    for channel in information.channels:
        block = inverse[np.ix_(channel.columns, channel.columns)]
        weight = weights.get(channel.name, 1.0)
        out[channel.name] = float(weight**2 * np.sum((channel.R @ block) * channel.R))
    return out


def channel_sigmas(
    information: Information, values: FloatArray, inverse: FloatArray, weights: Mapping[str, float]
) -> dict[str, float]:
    """Unbiased residual standard deviation per channel under independent noise: energy / (rows - leverage)."""
    energies = channel_energies(information, values)
    leverages = channel_leverages(information, inverse, weights)
    return {
        channel.name: float(np.sqrt(energies[channel.name] / max(channel.count - leverages[channel.name], 1.0)))
        for channel in information.channels
    }
