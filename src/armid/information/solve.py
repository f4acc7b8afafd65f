"""The one small dense solve: from Information to values, their uncertainty, and what is left.

Everything linear in the rows ends here. The rows are those of the base parameters, every channel weighted by its own noise, and a
belief from elsewhere (an earlier result, nominal values, damping) is Information like any other: further rows `S b = S b0`.

    min_b  sum_c w_c^2 |A_c b - y_c|^2 + |S b - S b0|^2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import ShapeError
from armid.information.information import ChannelInformation, Information, triangular
from armid.information.status import EstimationError, Status

_SINGULAR = 1e-10
"""Smallest over largest singular value of the column-scaled factor below which values are round-off, not information."""
_MODERATE = 1e6
"""Condition number of the column-scaled factor up to which its inverse is as good as one by singular values."""

_BELIEF = "belief"
"""Channel of rows that were not measured."""


class ColumnSelection(Protocol):
    """Which columns to solve for; `BaseParameters` is one."""

    @property
    def parameters(self) -> tuple[str, ...]: ...

    @property
    def independent(self) -> npt.NDArray[np.intp]: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """Least-squares solution of weighted rows.

    Args:
        names: of the parameters.
        values: shape [r].
        root: T with T T^T = (A^T W A)^-1, shape [r, r]: the covariance when weights are one over the noise.
        energy: sum of squared weighted residuals, beliefs included.
        energies: sum of squared residuals per channel, unweighted; empty when only a factor was solved.
        scaled: triangular factor of the weighted rows, columns scaled to unit length, shape [r, r].
    """

    names: tuple[str, ...]
    values: FloatArray
    root: FloatArray
    energy: float
    scaled: FloatArray
    energies: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def condition_number(self) -> float:
        """Of the weighted rows as they are (SI units), 2-norm: that of the root, which is their inverse."""
        return float(np.linalg.cond(self.root))

    @cached_property
    def condition_number_scaled(self) -> float:
        """The same with columns scaled to unit length."""
        return float(np.linalg.cond(self.scaled))

    @cached_property
    def inverse(self) -> FloatArray:
        """(A^T W A)^-1, shape [r, r]."""
        return self.root @ self.root.T


def solve(
    information: Information,
    base: ColumnSelection | None = None,
    *,
    weights: Mapping[str, float] | None = None,
    prior: Information | None = None,
) -> Solution:
    """Values that fit the rows best.

    Args:
        information: over the standard parameters, or over exactly those to solve for when there is no base.
        base: which columns to solve for; the others are absorbed.
        weights: by which every channel's rows are multiplied (one over its noise); 1 by default.
        prior: further rows over the parameters solved for, in units of their own uncertainty; see `belief`.

    Raises:
        EstimationError: fewer rows than parameters, or a direction that the rows do not determine; names the parameters in it.
    """
    rows = information if base is None else reduced(information, base)
    factor = _with_belief(rows.weighted(weights or {}).stacked(), prior)
    solution = solve_factor(factor, rows.parameters)
    return Solution(
        names=solution.names,
        values=solution.values,
        root=solution.root,
        energy=solution.energy,
        energies=channel_energies(rows, solution.values),
        scaled=solution.scaled,
    )


def solve_factor(factor: FloatArray, names: tuple[str, ...]) -> Solution:
    """The same for one factor `[R z; 0 rho]` over the named parameters.

    Raises:
        EstimationError: a direction that the rows do not determine; names the parameters in it.
    """
    R, z = factor[:-1, :-1], factor[:-1, -1]
    norms = np.linalg.norm(R, axis=0)
    if np.any(norms == 0.0):
        lost = ", ".join(names[i] for i in np.flatnonzero(norms == 0.0))
        raise EstimationError(Status.RANK_DEFICIENT, f"the rows do not contain {lost}")
    scaled = R / norms
    root = _inverse(scaled, names) / norms[:, np.newaxis]
    values = root @ z
    error = R @ values - z
    return Solution(
        names=names,
        values=values,
        root=root,
        energy=float(error @ error) + float(factor[-1, -1] ** 2),
        scaled=scaled,
    )


def _inverse(R: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Of a triangle whose columns have unit length, directly where its condition number is surely moderate, else by SVD.

    Raises:
        EstimationError: a direction that the rows do not determine; names the parameters in it.
    """
    if np.all(np.diag(R) != 0.0):
        inverse: FloatArray = np.asarray(np.linalg.inv(R))
        # The condition number is at most the product of these.
        if np.linalg.norm(inverse) * np.linalg.norm(R) < _MODERATE:
            return inverse
    U, s, Vt = np.linalg.svd(R)
    if s[-1] <= _SINGULAR * s[0]:
        weak = np.abs(Vt[-1])
        blamed = ", ".join(names[i] for i in np.argsort(-weak)[:4] if weak[i] > 0.2 * weak.max())
        raise EstimationError(
            Status.RANK_DEFICIENT, f"{blamed} cannot be told apart (singular values {s[-1]:.1e} to {s[0]:.1e})"
        )
    return (Vt.T / s) @ U.T


def smallest_solution(A: FloatArray, y: FloatArray, *, rcond: float | None = None) -> FloatArray:
    """Least-squares solution of A x = y with columns scaled to unit length, of smallest norm where it is not unique.

    Args:
        A: shape [m, n].
        y: shape [m] or [m, k].
        rcond: relative singular value below which a direction counts as not determined; None: round-off.
    """
    norms = np.linalg.norm(A, axis=0)
    norms[norms == 0.0] = 1.0
    scaled = np.linalg.lstsq(A / norms, y, rcond=rcond)[0]
    return np.asarray(scaled / (norms if scaled.ndim == 1 else norms[:, np.newaxis]), dtype=np.float64)


def reduced(information: Information, base: ColumnSelection) -> Information:
    """The rows of the base parameters: dependent columns are absorbed.

    Raises:
        EstimationError: fewer rows than parameters.
    """
    if information.parameters != base.parameters:
        raise ShapeError(
            "base", (len(base.parameters),), f"the {information.n_parameters} parameters of the information"
        )
    if information.count < len(base.independent):
        raise EstimationError(
            Status.TOO_FEW_ROWS, f"{information.count:.0f} rows for {len(base.independent)} parameters"
        )
    return information.select(base.independent)


def belief(names: tuple[str, ...], values: FloatArray, root: FloatArray) -> Information:
    """What is believed about parameters as Information: rows S b = S b0 of unit noise.

    Args:
        names: of the parameters.
        values: b0, shape [r].
        root: S with S^T S the inverse of the covariance, shape [k, r]; a direction it does not see is not believed anything of.
    """
    factor = triangular(np.column_stack([root, root @ values]))
    return Information(names, (ChannelInformation(_BELIEF, np.arange(len(names)), factor, float(len(root))),), "belief")


def _with_belief(factor: FloatArray, prior: Information | None) -> FloatArray:
    """The factor after adding the rows of a belief about the same parameters."""
    return factor if prior is None else triangular(np.vstack([factor, prior.stacked()]))


def channel_energies(information: Information, values: FloatArray) -> dict[str, float]:
    """Sum of squared residuals per channel."""
    return {channel.name: channel.error_energy(values) for channel in information.channels}


def _channel_leverages(information: Information, inverse: FloatArray, weights: Mapping[str, float]) -> dict[str, float]:
    """How many of the parameters each channel pays for: tr((A^T W A)^-1 w_c^2 A_c^T A_c); they add up to r."""
    out = {}
    for channel in information.channels:
        block = inverse[np.ix_(channel.columns, channel.columns)]
        weight = weights.get(channel.name, 1.0)
        out[channel.name] = float(weight**2 * np.sum((channel.R @ block) * channel.R))
    return out


def channel_sigmas(
    information: Information,
    values: FloatArray,
    inverse: FloatArray,
    weights: Mapping[str, float],
    groups: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Unbiased residual standard deviation per channel under independent noise: energy / (rows - leverage).

    Args:
        information: rows.
        values, inverse: of their solution.
        weights: that it was found with.
        groups: by channel, the name of those that share one noise; each its own by default.
    """
    energies = channel_energies(information, values)
    leverages = _channel_leverages(information, inverse, weights)
    group = {channel.name: channel.name for channel in information.channels} if groups is None else groups
    energy, freedom = dict.fromkeys(group.values(), 0.0), dict.fromkeys(group.values(), 0.0)
    for channel in information.channels:
        energy[group[channel.name]] += energies[channel.name]
        freedom[group[channel.name]] += channel.count - leverages[channel.name]
    return {name: float(np.sqrt(energy[g] / max(freedom[g], 1.0))) for name, g in group.items()}
