"""How well any motion could excite an arm, whatever its shape: the best weights of admissible states, and a bound by duality.

A motion visits states x = (q, qd, qdd), each with rows A(x); its Gram matrix is a sum M = sum_i w_i A_i^T A_i. Continuity
forgotten, any weights on any admissible states may be had: the smallest condition number over these is below that of every
motion, whatever its period, harmonics or splines. It is a convex problem. For symmetric P, Q >= 0 the largest eigenvalue of M is
at least tr(M P) / tr P and the smallest at most tr(M Q) / tr Q, hence for all weights

    cond(A)^2 = lambda_max(M) / lambda_min(M) >= (tr Q / tr P) min_x tr(G(x) P) / tr(G(x) Q),   G = A^T A,

with the minimum over the states that may be visited. At the optimum both sides are equal. Over states that were sampled the bound
is exact for these; over all of them it holds as far as the search for the smallest ratio found it.

A motion is more than its states: whatever c(x) vanishes in the mean over every motion, sum_i w_i c(x_i) = 0 may be asked of the
weights, and tr(G P) + y c(x) with any y may stand for tr(G P).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse.csgraph import connected_components

from armid.arrays import FloatArray

_STEPS = 80
"""Of the interior-point method; it needs 20 to 40."""

_NEAR = 0.95
"""Share of the way to the nearest inequality that a step may go."""

_BALANCED = 1e-6
"""Of the root mean square: a smaller mean counts as none."""

_RIDGE = 1e-13
"""Round-off added to a scaled Hessian."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StateBound:
    """The best weights of some states.

    Args:
        weights: of the states, sum 1, shape [n_states].
        condition_number: of the rows with these weights.
        bound: no weights on these states have a smaller condition number.
        P, Q: that prove it, trace 1, shape [r, r].
        y: of what vanishes in the mean, the same, shape [k].
    """

    weights: FloatArray
    condition_number: float
    bound: float
    P: FloatArray
    Q: FloatArray
    y: FloatArray


def best_weights(
    rows: FloatArray, *, balance: FloatArray | None = None, start: FloatArray | None = None, gap: float = 0.02
) -> StateBound:
    """Weights of states by a primal-dual interior-point method, with the matrices that prove them best.

    Asks for the smallest lambda with 1 <= M(w) <= lambda, w >= 0. Directions are those of Nesterov and Todd.

    Args:
        rows: of every state, shape [n_states, channels, r].
        balance: what the weights shall have a mean of zero of, shape [n_states, k]; nothing when left out.
        start: weights, shape [n_states]; equal ones when left out.
        gap: of the squared condition number, between the weights found and what is proven, at which to stop.
    """
    w = np.full(len(rows), 1.0 / len(rows)) if start is None else start / start.sum()
    B = np.zeros((len(rows), 0)) if balance is None else balance
    size = np.sqrt((B**2).mean(axis=0))
    point = _first_point(rows, w, B.shape[1])
    for _ in range(_STEPS):
        if point.gap < gap and point.imbalance(B / size) < _BALANCED:
            break
        point = _step(rows, B / size, point)
    share = np.trace(point.X[1])
    P, Q, y = point.X[1] / share, point.X[0] / np.trace(point.X[0]), point.y / size / share
    values = np.linalg.eigvalsh(_gram(rows, point.w))
    return StateBound(
        weights=point.w / point.w.sum(),
        condition_number=float(np.sqrt(values[-1] / values[0])),
        bound=float(np.sqrt(max(0.0, ratios(rows, P, Q, B @ y).min()))),
        P=P,
        Q=Q,
        y=y,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Point:
    """Where the method is: w and lambda, slacks M - 1 and lambda - M, and their multipliers.

    Args:
        w: weights, unscaled, shape [n_states].
        level: lambda.
        v: multipliers of the weights, shape [n_states].
        y: multipliers of the balance, shape [k].
        S, X: slacks and multipliers of the two matrix inequalities.
        taken: share of the last step that the inequalities allowed.
    """

    w: FloatArray
    level: float
    v: FloatArray
    y: FloatArray
    S: tuple[FloatArray, FloatArray]
    X: tuple[FloatArray, FloatArray]
    taken: float

    @property
    def complementarity(self) -> float:
        """Mean product of slack and multiplier."""
        total = float(self.w @ self.v) + sum(float(np.sum(S * X)) for S, X in zip(self.S, self.X, strict=True))
        return total / (len(self.w) + 2 * len(self.S[0]))

    @property
    def gap(self) -> float:
        """Relative distance of lambda from what is proven, once multipliers fit."""
        return self.complementarity * (len(self.w) + 2 * len(self.S[0])) / self.level

    def imbalance(self, balance: FloatArray) -> float:
        """Largest mean, under the weights, of what shall have none."""
        return float(np.abs(self.w @ balance).max(initial=0.0) / self.w.sum())


def _first_point(rows: FloatArray, w: FloatArray, balances: int) -> _Point:
    """Inside all inequalities, multipliers as on the central path; balance is reached on the way."""
    w = 2.0 * w / np.linalg.eigvalsh(_gram(rows, w))[0]
    M = _gram(rows, w)
    level = 1.5 * float(np.linalg.eigvalsh(M)[-1])
    S = (M - np.eye(len(M)), level * np.eye(len(M)) - M)
    mu = level / (len(w) + 2 * len(M))
    X = (mu * _inverse(S[0]), mu * _inverse(S[1]))
    return _Point(w=w, level=level, v=mu / w, y=np.zeros(balances), S=S, X=X, taken=0.3)


def _step(rows: FloatArray, balance: FloatArray, at: _Point) -> _Point:
    """One step towards the centre and down; the farther the last one went, the less centring."""
    r, m = rows.shape[2], len(at.w)
    aim = at.complementarity * min(0.9, max(0.08, (1.0 - at.taken) ** 2))
    scaling = [_scaling(S, X) for S, X in zip(at.S, at.X, strict=True)]
    inverses = [_inverse(S) for S in at.S]
    F = _columns(rows, scaling)
    H = F @ F.T
    H[np.arange(m), np.arange(m)] += at.v / at.w
    slope = np.empty(m + 1)
    slope[:m] = -aim * (traces(rows, inverses[0]) - traces(rows, inverses[1]) + 1.0 / at.w)
    slope[m] = 1.0 - aim * float(np.trace(inverses[1]))
    scale = 1.0 / np.sqrt(np.diag(H))
    H = H * scale[:, np.newaxis] * scale
    H[np.arange(m + 1), np.arange(m + 1)] += _RIDGE
    d, y = _newton(H, scale, slope, balance, at.w @ balance)
    dM = _gram(rows, d[:m])
    dS = (dM, d[m] * np.eye(r) - dM)
    dX = tuple(
        aim * inverse - X - W @ D @ W for inverse, X, W, D in zip(inverses, at.X, _squares(scaling), dS, strict=True)
    )
    dv = aim / at.w - at.v - at.v / at.w * d[:m]
    primal = min(1.0, _NEAR * min(*map(_room, at.S, dS), _line_room(at.w, d[:m])))
    dual = min(1.0, _NEAR * min(*map(_room, at.X, dX), _line_room(at.v, dv)))
    w, level = at.w + primal * d[:m], at.level + primal * float(d[m])
    M = _gram(rows, w)
    return _Point(
        w=w,
        level=level,
        v=at.v + dual * dv,
        y=at.y + dual * (y - at.y),
        S=(M - np.eye(r), level * np.eye(r) - M),
        X=(at.X[0] + dual * dX[0], at.X[1] + dual * dX[1]),
        taken=min(primal, dual),
    )


def _newton(
    H: FloatArray, scale: FloatArray, slope: FloatArray, balance: FloatArray, off: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Step d with H d + slope + B y = 0 and B^T d = -off, and its multipliers y.

    Args:
        H: scaled Hessian, positive definite.
        scale: of the unknowns: weights, and lambda as the last.
        slope: gradient.
        balance: B of the weights, shape [n_states, k].
        off: by which the balance is missed, shape [k].
    """
    B = scale[:, np.newaxis] * np.vstack([balance, np.zeros((1, balance.shape[1]))])
    both = cho_solve(cho_factor(H), np.column_stack([scale * slope, B]))
    y = np.linalg.lstsq(B.T @ both[:, 1:], off - B.T @ both[:, 0], rcond=_RIDGE)[0]
    return -scale * (both[:, 0] + both[:, 1:] @ y), y


def _inverse(S: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.inv(S), dtype=np.float64)


def _scaling(S: FloatArray, X: FloatArray) -> FloatArray:
    """R with R R^T = W and W S W = X; block-diagonal where both are."""
    L, K = np.linalg.cholesky(S), np.linalg.cholesky(0.5 * (X + X.T))
    U, D, _ = np.linalg.svd(K.T @ L)
    return np.asarray(K @ ((U / np.sqrt(D)) @ U.T))


def _squares(factors: list[FloatArray]) -> list[FloatArray]:
    return [R @ R.T for R in factors]


def _columns(rows: FloatArray, scaling: list[FloatArray]) -> FloatArray:
    """Scaled Gram matrices of all states and of lambda as vectors, shape [n_states + 1, 2 entries].

    Entries between parameters that never share a row, nor others that do, stay zero and are left out.
    """
    m, _, r = rows.shape
    flat = np.abs(rows).reshape(-1, r)
    group = connected_components(flat.T @ flat > 0.0)[1]
    i, j = np.triu_indices(r)
    shared = group[i] == group[j]
    i, j = i[shared], j[shared]
    double = np.where(i == j, 1.0, np.sqrt(2.0))
    F = np.zeros((m + 1, 2 * len(i)))
    for k, (R, sign) in enumerate(zip(scaling, (1.0, -1.0), strict=True)):
        part = slice(k * len(i), (k + 1) * len(i))
        B = rows @ R
        for state in range(m):
            F[state, part] = sign * (B[state].T @ B[state])[i, j] * double
    F[m, len(i) :] = (scaling[1].T @ scaling[1])[i, j] * double
    return F


def _room(S: FloatArray, step: FloatArray) -> float:
    """How many steps a positive definite matrix allows until it is singular."""
    L = np.linalg.cholesky(0.5 * (S + S.T))
    T = solve_triangular(L, solve_triangular(L, step, lower=True).T, lower=True)
    least = float(np.linalg.eigvalsh(0.5 * (T + T.T))[0])
    return np.inf if least >= 0.0 else -1.0 / least


def _line_room(x: FloatArray, step: FloatArray) -> float:
    """How many steps positive numbers allow until one is zero."""
    least = float((step / x).min())
    return np.inf if least >= 0.0 else -1.0 / least


def proven_bound(rows: FloatArray, P: FloatArray, Q: FloatArray) -> float:
    """The condition number that no weights on these states go below, by matrices P, Q >= 0 of trace 1."""
    return float(np.sqrt(ratios(rows, P, Q).min()))


def ratios(rows: FloatArray, P: FloatArray, Q: FloatArray, more: FloatArray | float = 0.0) -> FloatArray:
    """(tr(G P) + more) / tr(G Q) of every state, shape [n_states]."""
    return np.asarray((traces(rows, P) + more) / np.maximum(traces(rows, Q), 1e-300))


def traces(rows: FloatArray, S: FloatArray) -> FloatArray:
    """tr(G S) of every state, shape [n_states]."""
    flat = rows.reshape(-1, rows.shape[2])
    return np.asarray(np.einsum("ij,ij->i", flat @ S, flat).reshape(len(rows), -1).sum(axis=1))


def _gram(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Sum of weights, of either sign, times Gram matrices."""
    flat = rows.reshape(-1, rows.shape[2])
    return np.asarray((flat.T * np.repeat(weights, rows.shape[1])) @ flat)
