"""Rows of base parameters and imperfections as one triangular factor, base parameters solved for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.information.information import triangular

_WEAK_BELIEF = 1e-6
"""Relative to the size of its column: keeps directions of base parameters that a block left out took away from running off."""


@dataclass(frozen=True, eq=False)
class Eliminated:
    """A factor seen from the imperfections: base parameters solved for.

    Args:
        factor: triangular `[R_bb R_bz z_b; 0 R_zz z_z; 0 0 rho]`.
        base: number of base parameters.
    """

    factor: FloatArray
    base: int

    @staticmethod
    def of(base: int, factors: Sequence[FloatArray]) -> Eliminated:
        """All rows of these factors together."""
        stack = np.vstack(list(factors))
        norms = np.linalg.norm(stack[:, :base], axis=0)
        belief = np.zeros((base, stack.shape[1]))
        belief[:, :base] = np.diag(_WEAK_BELIEF * np.maximum(norms, 1e-300))
        return Eliminated(triangular(np.vstack([stack, belief])), base)

    @cached_property
    def base_given(self) -> FloatArray:
        """R_bb^-1 [R_bz z_b]: base parameters are its last column minus the others times the imperfections, shape [r, k + 1]."""
        b = self.base
        scale = np.linalg.norm(self.factor[:b, :b], axis=0)
        scale[scale == 0.0] = 1.0
        return np.asarray(np.linalg.solve(self.factor[:b, :b] / scale, self.factor[:b, b:]) / scale[:, np.newaxis])

    @cached_property
    def normal(self) -> tuple[FloatArray, FloatArray]:
        """R_zz^T R_zz and R_zz^T z_z."""
        R, z = self.factor[self.base : -1, self.base : -1], self.factor[self.base : -1, -1]
        return R.T @ R, R.T @ z

    def solve(
        self, columns: npt.NDArray[np.intp], deviations: FloatArray, mean: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Sizes and their covariance under a belief of these deviations around `mean`, in units of which it is solved."""
        G, h = self.normal
        scaled = G[np.ix_(columns, columns)] * np.outer(deviations, deviations) + np.eye(len(columns))
        right = h[columns] * deviations
        if mean is not None:
            right = right + mean / deviations
        inverse = np.linalg.inv(scaled)
        return (inverse @ right) * deviations, inverse * np.outer(deviations, deviations)

    def evidence(self, columns: npt.NDArray[np.intp], deviations: FloatArray) -> float:
        """Logarithm of the likelihood of the rows with imperfections of these deviations over that with none."""
        G, h = self.normal
        scaled = G[np.ix_(columns, columns)] * np.outer(deviations, deviations) + np.eye(len(columns))
        right = h[columns] * deviations
        return float(0.5 * right @ np.linalg.solve(scaled, right) - 0.5 * np.linalg.slogdet(scaled)[1])

    def beside(self, columns: npt.NDArray[np.intp], deviations: FloatArray) -> Eliminated:
        """The same rows with these imperfections integrated out; their columns are empty."""
        m = len(columns)
        own = self.base + columns
        rows = np.zeros((len(self.factor) + m, m + self.factor.shape[1]))
        rows[: len(self.factor), :m] = self.factor[:, own]
        rows[: len(self.factor), m:] = self.factor
        rows[: len(self.factor), m + own] = 0.0
        rows[len(self.factor) :, :m] = np.diag(1.0 / deviations)
        return Eliminated(triangular(rows)[m:, m:], self.base)

    def together(self, columns: npt.NDArray[np.intp]) -> tuple[FloatArray, float]:
        """Several imperfections without any belief: sizes, zero for those not seen, and the squared error they take away."""
        G, h = self.normal
        own = G[np.ix_(columns, columns)]
        norms = np.sqrt(np.maximum(np.diag(own), 1e-300))
        scaled = np.linalg.lstsq(own / np.outer(norms, norms), h[columns] / norms, rcond=1e-10)[0]
        return scaled / norms, max(float(scaled @ (h[columns] / norms)), 0.0)

    def second_moment(self, columns: npt.NDArray[np.intp], deviations: FloatArray, resolved: float) -> FloatArray:
        """A root of S + s' s'^T of sizes under a belief of these deviations, in the directions that the rows resolve.

        Args:
            columns, deviations: of the imperfections and of the belief about them.
            resolved: information about a direction, in units of its deviation, below which it is left out.
        """
        G, h = self.normal
        information, V = np.linalg.eigh(G[np.ix_(columns, columns)] * np.outer(deviations, deviations))
        seen = information >= resolved
        information, V = information[seen], V[:, seen]
        mean = V @ ((V.T @ (h[columns] * deviations)) / (information + 1.0))
        return np.asarray(deviations[:, np.newaxis] * np.column_stack([V / np.sqrt(information + 1.0), mean]))

    def marginal(self, columns: npt.NDArray[np.intp], deviations: FloatArray, mean: FloatArray) -> FloatArray:
        """`[R z]` over the base parameters with the imperfections integrated out."""
        b, m = self.base, len(columns)
        rows = np.zeros((b + self.factor.shape[1] - b + m, m + b + 1))
        rows[: len(self.factor), :m] = self.factor[:, self.base + columns]
        rows[: len(self.factor), m : m + b] = self.factor[:, :b]
        rows[: len(self.factor), -1] = self.factor[:, -1]
        rows[len(self.factor) :, :m] = np.diag(1.0 / deviations)
        rows[len(self.factor) :, -1] = mean / deviations
        return triangular(rows)[m:-1, m:]

    def alone(self, column: int) -> tuple[float, float, float]:
        """Size, deviation and squared error taken away of one imperfection without a belief; infinite deviation if unseen."""
        G, h = self.normal
        seen = float(np.linalg.norm(self.factor[:, self.base + column]))
        if G[column, column] <= (1e-6 * max(seen, 1e-300)) ** 2:
            return 0.0, float("inf"), 0.0
        size = float(h[column] / G[column, column])
        return size, float(G[column, column] ** -0.5), float(h[column] ** 2 / G[column, column])
