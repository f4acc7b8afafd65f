"""Three convex pulls towards a prior body, [Lee2020]: Euclidean, constant pull-back metric, entropic divergence.

The last two do not depend on units or on where the link frame stands: they compare the body with the prior body
through its pseudo-inertia, P0^-1 P.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.bodies import BASIS, Body
from armid.consistency.prior import Prior
from armid.consistency.program import ConicProgram, svec
from armid.parameters.inertial import pseudo_inertia


def _whitener(prior: FloatArray) -> FloatArray:
    """L^-1 with L L^T = P0, so that L^-1 P0 L^-T is the identity, shape [4, 4]."""
    return np.linalg.inv(np.linalg.cholesky(pseudo_inertia(prior)))


def relative_basis(prior: FloatArray) -> FloatArray:
    """BASIS seen from the prior body: L^-1 BASIS_k L^-T, shape [10, 4, 4]."""
    W = _whitener(prior)
    return W @ BASIS @ W.T


class Regulariser(Protocol):
    """A convex pull towards the prior."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> float: ...

    def add_to(self, program: ConicProgram, prior: Prior, scale: FloatArray) -> None:
        """Adds weight times the divergence to the objective; variables are parameters divided by `scale`."""

    def value(self, x: FloatArray, prior: Prior) -> float:
        """The divergence of parameters x from the prior, without the weight."""

    def residual(self, x: FloatArray, prior: Prior) -> tuple[FloatArray, FloatArray]:
        """Residuals whose sum of squares is the divergence, smooth where bodies are, and their Jacobian by x."""

    def curvature(self, prior: Prior) -> FloatArray:
        """Half its second derivative at the prior, shape [p, p]: the inverse covariance of an equally strong Gaussian."""


@dataclass(frozen=True, slots=True)
class Euclidean:
    """Sum of squared differences in SI units."""

    weight: float = 1e-3
    name: str = "euclidean"

    def root(self, prior: Prior) -> FloatArray:
        return np.eye(len(prior.names))

    def add_to(self, program: ConicProgram, prior: Prior, scale: FloatArray) -> None:
        program.add_squares(self.root(prior) * scale, self.root(prior) @ prior.values, self.weight)

    def value(self, x: FloatArray, prior: Prior) -> float:
        return float(np.sum((x - prior.values) ** 2))

    def residual(self, x: FloatArray, prior: Prior) -> tuple[FloatArray, FloatArray]:
        return x - prior.values, self.root(prior)

    def curvature(self, prior: Prior) -> FloatArray:
        return np.eye(len(prior.names))


@dataclass(frozen=True, slots=True)
class PullBack:
    """1/2 ||P0^-1/2 (P - P0) P0^-1/2||^2 per body: the Riemannian metric at the prior, held constant; [Lee2020] eq. 24.

    Other parameters are pulled by squared differences in units of the prior's scale.
    """

    weight: float = 1e-3
    name: str = "pull-back"

    def root(self, prior: Prior) -> FloatArray:
        """F with divergence = ||F (x - x0)||^2."""
        F = np.diag(1.0 / prior.scale)
        for body in prior.bodies:
            columns = list(body.columns)
            F[np.ix_(columns, columns)] = svec(relative_basis(body.of(prior.values))).T / np.sqrt(2.0)
        return F

    def add_to(self, program: ConicProgram, prior: Prior, scale: FloatArray) -> None:
        F = self.root(prior)
        program.add_squares(F * scale, F @ prior.values, self.weight)

    def value(self, x: FloatArray, prior: Prior) -> float:
        return float(np.sum((self.root(prior) @ (x - prior.values)) ** 2))

    def residual(self, x: FloatArray, prior: Prior) -> tuple[FloatArray, FloatArray]:
        F = self.root(prior)
        return F @ (x - prior.values), F

    def curvature(self, prior: Prior) -> FloatArray:
        F = self.root(prior)
        return F.T @ F


@dataclass(frozen=True, slots=True)
class Entropic:
    """log det P0 / det P + tr(P0^-1 P) - 4 per body: the Bregman divergence of -log det; [Lee2020] eq. 21.

    It is its own barrier: no body can become degenerate.
    """

    weight: float = 1e-3
    name: str = "entropic"

    def add_to(self, program: ConicProgram, prior: Prior, scale: FloatArray) -> None:
        taken = np.zeros(len(prior.names), dtype=bool)
        for body in prior.bodies:
            taken[list(body.columns)] = True
            self.add_body(program, body, prior, scale)
        others = np.flatnonzero(~taken)
        F = np.zeros((len(others), len(prior.names)))
        F[np.arange(len(others)), others] = 1.0 / prior.scale[others]
        program.add_squares(F * scale, F @ prior.values, self.weight)

    def add_body(self, program: ConicProgram, body: Body, prior: Prior, scale: FloatArray) -> None:
        """-log det by the triangular embedding [P Z; Z^T diag Z] >= 0, t_i <= log Z_ii, on the whitened body."""
        basis = relative_basis(body.of(prior.values)) * scale[list(body.columns), np.newaxis, np.newaxis]
        program.f[list(body.columns)] += self.weight * np.trace(basis, axis1=1, axis2=2)
        lower = [(i, j) for j in range(4) for i in range(j, 4)]
        first = program.append_variables(len(lower) + 4)
        F = np.zeros((program.n, 8, 8))
        F[list(body.columns), :4, :4] = basis
        for k, (i, j) in enumerate(lower):
            F[first + k, i, 4 + j] = F[first + k, 4 + j, i] = 1.0
            if i == j:
                F[first + k, 4 + i, 4 + i] = 1.0
        program.semidefinite(F, np.zeros((8, 8)))
        for i in range(4):
            t, diagonal = first + len(lower) + i, first + lower.index((i, i))
            G = np.zeros((3, program.n))
            G[0, t] = G[2, diagonal] = 1.0
            program.exponential(G, np.array([0.0, 1.0, 0.0]))
            program.f[t] -= self.weight

    def value(self, x: FloatArray, prior: Prior) -> float:
        total = 0.0
        rest = (x - prior.values) / prior.scale
        for body in prior.bodies:
            W = _whitener(body.of(prior.values))
            P = W @ pseudo_inertia(body.of(x)) @ W.T
            total += float(np.trace(P) - np.linalg.slogdet(P)[1]) - 4.0
            rest[list(body.columns)] = 0.0
        return total + float(rest @ rest)

    def residual(self, x: FloatArray, prior: Prior) -> tuple[FloatArray, FloatArray]:
        """Per body s(L^-1 P L^-T) with s(u)^2 = u - 1 - log u on the eigenvalues: smooth, unlike the root of their sum."""
        r, J = (x - prior.values) / prior.scale, np.diag(1.0 / prior.scale)
        for body in prior.bodies:
            columns = list(body.columns)
            basis = relative_basis(body.of(prior.values))
            u, V = np.linalg.eigh(np.einsum("k,kij->ij", body.of(x), basis))
            s, slope = _entropic_root(u)
            r[columns] = svec((V * s) @ V.T)
            J[np.ix_(columns, columns)] = svec(V @ (_divided_differences(u, s, slope) * (V.T @ basis @ V)) @ V.T).T
        return r, J

    def curvature(self, prior: Prior) -> FloatArray:
        # Second-order expansion of the divergence at the prior is exactly the pull-back form.
        return PullBack().curvature(prior)


def _entropic_root(u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The increasing function s with s(u)^2 = u - 1 - log u, and its slope; u positive."""
    t = np.maximum(u, 1e-300) - 1.0
    small = np.abs(t) < 1e-3
    safe = np.where(small, 1.0, t)
    # s = t q(t); near zero q^2 = 1/2 - t/3 + t^2/4 - t^3/5, where the difference would cancel.
    square = np.where(small, 0.5 - t / 3.0 + t**2 / 4.0 - t**3 / 5.0, (safe - np.log1p(safe)) / safe**2)
    q = np.sqrt(square)
    return t * q, 1.0 / ((1.0 + t) * 2.0 * q)


def _divided_differences(u: FloatArray, s: FloatArray, slope: FloatArray) -> FloatArray:
    """(s_i - s_j) / (u_i - u_j), the slope where they meet: derivative of a function of eigenvalues [Bhatia1997]."""
    gap = np.subtract.outer(u, u)
    close = np.abs(gap) < 1e-7 * np.maximum(1.0, np.abs(u))
    mean = 0.5 * np.add.outer(slope, slope)
    return np.where(close, mean, np.subtract.outer(s, s) / np.where(close, 1.0, gap))
