"""Was least squares physical at all? The distance of an unconstrained estimate to possible bodies, and what noise makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.bodies import non_negative_columns
from armid.consistency.bounds import Bounds
from armid.consistency.consistent import Consistency, honest_information, parameter_scale
from armid.consistency.prior import Prior
from armid.consistency.regularisers import PullBack, relative_basis
from armid.estimation.estimate import Estimate
from armid.estimation.quantiles import chi_square_quantile, chi_square_tail
from armid.information.status import EstimationError

_LEVEL = 0.95
_NO_PULL = 1e-6
"""Weight that only picks one of the equally near bodies; a millionth of a standard deviation does not move the answer."""
_ON_THE_EDGE = 1e-3
"""Eigenvalue relative to the prior body below which the nearest body counts as flat there. Too many flat directions make the
test more careful, never less."""
_DEPENDENT = 1e-8
"""Relative singular value below which directions count as dependent."""
_SAME_DIRECTION = 0.999
"""Cosine of the angle from which on a normal counts as one of the base parameters' directions."""


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Squared Mahalanobis distance of the free base estimate to the set of possible bodies.

    The nearest possible bodies are no farther than the true ones, so chi-square with as many degrees of freedom as there are base
    parameters bounds the distance under noise whatever the truth is: a limit that is safe and blunt. Sharper: what noise takes
    out of a convex set comes back along a normal of the face where the nearest point lies, so given that face the squared
    distance is about chi-square with as many degrees of freedom as there are normals ([CoxShi2023], for polyhedra). The
    cone is curved; this p-value is good while noise is small against the bodies themselves.

    Args:
        distance: infinite when the solver failed.
        freedom: normals at the nearest possible bodies, seen by the base parameters; zero when the estimate is possible.
        parameters: how many base parameters there are.
    """

    distance: float
    freedom: int
    parameters: int

    @property
    def limit(self) -> float:
        """95 % quantile of what the distance can be under noise alone, whatever the true bodies are."""
        return chi_square_quantile(_LEVEL, self.parameters)

    @property
    def p_value(self) -> float:
        """About how often noise alone takes the estimate of a physical robot this far, given the constraints that bind."""
        return chi_square_tail(self.distance, self.freedom) if self.freedom else 1.0


def feasibility(free: Estimate, prior: Prior) -> Feasibility:
    """Minimises (b - P pi)^T C^-1 (b - P pi) over possible bodies pi."""
    factor = honest_information(free).stacked()
    R, z = factor[:-1, :-1], factor[:-1, -1]
    try:
        solution, units = Consistency(PullBack(_NO_PULL), Bounds(margin=0.0)).solve(R, z, prior, 0.0)
    except EstimationError:
        return Feasibility(inf, len(free), len(free))
    x = solution.v[: len(units)] * units
    miss = R @ x - z
    return Feasibility(float(miss @ miss), _seen_normals(free.base.projection, x, prior), len(free))


def distance_to_physical(free: Estimate, prior: Prior) -> float:
    """The squared distance alone."""
    return feasibility(free, prior).distance


def _seen_normals(P: FloatArray, x: FloatArray, prior: Prior) -> int:
    """How many independent normals of the possible bodies at x are combinations of base parameters b = P x.

    By the angles between the two spans: solvers place flat directions to a few digits only.
    """
    scale = parameter_scale(prior)
    normals, base = directions(_edge_normals(x, prior) * scale), directions(P * scale)
    return int(np.sum(np.linalg.svd(normals @ base.T, compute_uv=False) > _SAME_DIRECTION))


def _edge_normals(x: FloatArray, prior: Prior) -> FloatArray:
    """Functionals of the parameters that cannot get smaller at x: flat directions of bodies, drives at zero; shape [k, p]."""
    rows = [np.empty((0, len(x)))]
    for body in prior.bodies:
        basis = relative_basis(body.of(prior.values))
        values, V = np.linalg.eigh(np.einsum("k,kij->ij", body.of(x), basis))
        flat = V[:, values < _ON_THE_EDGE]
        i, j = np.triu_indices(flat.shape[1])
        own = np.einsum("kab,am,bm->mk", basis, flat[:, i], flat[:, j])
        row = np.zeros((len(own), len(x)))
        row[:, list(body.columns)] = own
        rows.append(row)
    drives = non_negative_columns(prior.names)
    rows.append(np.eye(len(x))[drives[x[drives] < _ON_THE_EDGE * prior.scale[drives]]])
    return np.vstack(rows)


def directions(A: FloatArray) -> FloatArray:
    """An orthonormal basis of the rows, each counted by its direction, shape [rank, columns]."""
    unit = A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-300)
    _, singular, Vt = np.linalg.svd(unit, full_matrices=False)
    return np.asarray(Vt[singular > _DEPENDENT * np.max(singular, initial=1e-300)], dtype=np.float64)
