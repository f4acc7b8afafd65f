"""How well any motion could excite an arm, whatever its shape: the best weights of admissible states, and a bound by duality.

A motion visits states x = (q, qd, qdd), each with rows A(x); its Gram matrix is a sum M = sum_i w_i A_i^T A_i. Continuity
forgotten, any weights on any admissible states may be had: the smallest condition number over these is below that of every
motion, whatever its period, harmonics or splines. It is a convex problem. For symmetric P, Q >= 0 the largest eigenvalue of M is
at least tr(M P) / tr P and the smallest at most tr(M Q) / tr Q, hence for all weights

    cond(A)^2 = lambda_max(M) / lambda_min(M) >= (tr Q / tr P) min_x tr(G(x) P) / tr(G(x) Q),   G = A^T A,

with the minimum over the states that may be visited. At the optimum both sides are equal. Over states that were sampled the bound
is exact for these; over all of them it holds as far as the search for the smallest ratio found it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class StateBound:
    """The best weights of some states.

    Args:
        weights: of the states, sum 1, shape [n_states].
        condition_number: of the rows with these weights.
        bound: no weights on these states have a smaller condition number.
        P, Q: that prove it, trace 1, shape [r, r].
    """

    weights: FloatArray
    condition_number: float
    bound: float
    P: FloatArray
    Q: FloatArray


def best_weights(
    rows: FloatArray, *, start: FloatArray | None = None, steps: int = 200, power: float = 20.0
) -> StateBound:
    """Weights of states by mirror descent on the smooth condition number, with the best bound met on the way.

    Args:
        rows: of every state, shape [n_states, channels, r].
        start: weights, shape [n_states]; equal ones when left out.
        steps: of the descent.
        power: how closely the smooth condition number follows the largest and the smallest eigenvalue.
    """
    w = np.full(len(rows), 1.0 / len(rows)) if start is None else start / start.sum()
    best, bound, proof = (w, np.inf), 0.0, (np.eye(rows.shape[2]), np.eye(rows.shape[2]))
    for k in range(steps):
        number, P, Q = _eigenvalue_shares(_gram(rows, w), power)
        p, q = traces(rows, P), traces(rows, Q)
        if number < best[1]:
            best = (w, number)
        if (found := float(np.sqrt((p / np.maximum(q, 1e-300)).min()))) > bound:
            bound, proof = found, (P, Q)
        slope = p / (w @ p) - q / (w @ q)
        w = w * np.exp(-slope / (np.sqrt(1.0 + k / 50.0) * max(float(np.abs(slope).max()), 1e-300)))
        w = w / w.sum()
    return StateBound(weights=best[0], condition_number=best[1], bound=bound, P=proof[0], Q=proof[1])


def proven_bound(rows: FloatArray, P: FloatArray, Q: FloatArray) -> float:
    """The condition number that no weights on these states go below, by matrices P, Q >= 0 of trace 1."""
    return float(np.sqrt((traces(rows, P) / np.maximum(traces(rows, Q), 1e-300)).min()))


def traces(rows: FloatArray, S: FloatArray) -> FloatArray:
    """tr(G S) of every state, shape [n_states]."""
    flat = rows.reshape(-1, rows.shape[2])
    return np.asarray(np.einsum("ij,ij->i", flat @ S, flat).reshape(len(rows), -1).sum(axis=1))


def _gram(rows: FloatArray, weights: FloatArray) -> FloatArray:
    flat = (rows * np.sqrt(weights)[:, np.newaxis, np.newaxis]).reshape(-1, rows.shape[2])
    return np.asarray(flat.T @ flat)


def _eigenvalue_shares(M: FloatArray, power: float) -> tuple[float, FloatArray, FloatArray]:
    """Condition number of the rows behind M, and matrices of trace 1 on its largest and its smallest eigenvalues."""
    values, V = np.linalg.eigh(M)
    values = np.maximum(values, 1e-14 * values[-1])
    large, small = (values / values[-1]) ** (power - 1.0), (values[0] / values) ** (power + 1.0)
    P, Q = ((V * (share / share.sum())) @ V.T for share in (large, small))
    return float(np.sqrt(values[-1] / values[0])), P, Q
