"""Statements about where a body's mass or its centre is; all are linear or second-order in the ten parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.consistency.bodies import BASIS


@dataclass(frozen=True, eq=False)
class CentreBox:
    """The centre of mass lies in an axis-aligned box of the link frame [m], each corner shape [3]."""

    lower: FloatArray
    upper: FloatArray
    label: str = "in its box"

    def rows(self) -> FloatArray:
        return _half_space_rows(np.vstack([-np.eye(3), np.eye(3)]), np.concatenate([-self.lower, self.upper]))


@dataclass(frozen=True, eq=False)
class CentreHull:
    """The centre of mass lies within half-spaces n^T c <= d of the link frame; normals [k, 3], offsets [m], shape [k]."""

    normals: FloatArray
    offsets: FloatArray
    label: str = "within its shapes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "normals", read_only(self.normals))
        object.__setattr__(self, "offsets", read_only(self.offsets))

    def rows(self) -> FloatArray:
        return _half_space_rows(self.normals, self.offsets)


@dataclass(frozen=True, eq=False)
class CentreEllipsoid:
    """The centre of mass lies within |A (c - centre)| <= 1; A [1/m] shape [3, 3], centre [m] shape [3]."""

    centre: FloatArray
    A: FloatArray
    label: str = "in its ellipsoid"

    def rows(self) -> FloatArray:
        """(m, A (h - m centre)) as rows on the ten parameters: a second-order cone."""
        G = np.zeros((4, 10))
        G[0, 0] = 1.0
        G[1:, 1:4] = np.asarray(self.A)
        G[1:, 0] = -np.asarray(self.A) @ np.asarray(self.centre)
        return G


@dataclass(frozen=True, eq=False)
class Support:
    """The integral of (x, 1) Q (x, 1)^T over the mass is not negative: tr(Q P) >= 0.

    With Q = [[-S, S c], [c^T S, 1 - c^T S c]] all mass may lie within an ellipsoid [Wensing2018] eq. 22; with the product of
    two half-spaces, between two planes.
    """

    Q: FloatArray
    label: str = "spread no wider than its shapes"

    def rows(self) -> FloatArray:
        return np.einsum("kij,ij->k", BASIS, self.Q)[np.newaxis]


Where = CentreBox | CentreHull | CentreEllipsoid | Support


def _half_space_rows(normals: FloatArray, offsets: FloatArray) -> FloatArray:
    """The half-spaces d m - n^T h >= 0 as rows on the ten parameters, shape [k, 10]: m times the half-spaces of the centre."""
    G = np.zeros((len(offsets), 10))
    G[:, 0] = offsets
    G[:, 1:4] = -np.asarray(normals)
    return G


def support_of_ellipsoid(centre: FloatArray, A: FloatArray) -> Support:
    """All mass within |A (x - centre)| <= 1."""
    S = A.T @ A
    Q = np.empty((4, 4))
    Q[:3, :3] = -S
    Q[:3, 3] = Q[3, :3] = S @ centre
    Q[3, 3] = 1.0 - centre @ S @ centre
    return Support(Q)


def support_of_slab(normal: FloatArray, low: float, high: float) -> Support:
    """All mass within low <= n^T x <= high: the integral of (n^T x - low) (high - n^T x) is not negative."""
    Q = np.empty((4, 4))
    Q[:3, :3] = -np.outer(normal, normal)
    Q[:3, 3] = Q[3, :3] = 0.5 * (low + high) * normal
    Q[3, 3] = -low * high
    return Support(Q)


def support_of_box(lower: FloatArray, upper: FloatArray) -> Support:
    """The smallest ellipsoid around a box, as a support."""
    half = np.maximum((np.asarray(upper) - np.asarray(lower)) / 2.0, 1e-6)
    return support_of_ellipsoid((np.asarray(lower) + np.asarray(upper)) / 2.0, np.diag(1.0 / (np.sqrt(3.0) * half)))
