"""How good a set of rows is, from its triangular factor: condition number, optimality criteria, observability indices.

Every criterion is a function of the singular values of the base rows A (m x r), so it costs nothing in m, and its
gradient has one form. With A^T A = V diag(sigma^2) V^T and df/dsigma_k known,

    df = <A G, dA>,   G = V diag((df/dsigma) / sigma) V^T,

so the cotangent of each sample's rows is those rows times the small symmetric matrix G: it streams, and it is shared by
trajectories (rows of torque) and pose sets (rows of kinematic errors).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, finite, read_only
from armid.errors import ShapeError
from armid.identifiability.base import BaseParameters
from armid.information.information import Information


class Criterion(StrEnum):
    """What is to be small. Each is written so that smaller is better."""

    CONDITION = "condition"
    """sigma_max / sigma_min."""
    CONDITION_SCALED = "condition-scaled"
    """The same after scaling columns to unit length; does not change with units."""
    D = "d"
    """-log det(A^T A): volume of the confidence ellipsoid."""
    A = "a"
    """trace (A^T A)^-1: sum of variances for unit noise."""
    E = "e"
    """1 / sigma_min^2: worst variance for unit noise."""
    O1 = "o1"
    """Minus the geometric mean of singular values over sqrt(number of rows) [Borm1991]."""
    O2 = "o2"
    """-sigma_min / sigma_max [Driels1990]."""
    O3 = "o3"
    """-sigma_min [Nahvi1994]."""
    O4 = "o4"
    """-sigma_min^2 / sigma_max [Nahvi1996], the noise amplification index."""
    O5 = "o5"
    """-1 / sum(1 / sigma) [Sun2008]."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A criterion and its gradient.

    Args:
        value: of the criterion; infinite when A has not full rank.
        G: symmetric, shape [r, r]: the cotangent of rows A is `A @ G`. Where singular values meet and the criterion is
            not smooth it is one of its subgradients.
    """

    value: float
    G: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Quality:
    """All figures of merit of one set of base rows.

    Args:
        singular_values: of the unscaled rows, descending.
        condition_number: 2-norm, SI units, unscaled.
        condition_number_scaled: columns scaled to unit norm.
        log_det: log det(A^T A).
        trace_inverse: trace (A^T A)^-1.
        smallest: sigma_min.
        observability: O1..O5 as published, larger is better.
    """

    singular_values: FloatArray
    condition_number: float
    condition_number_scaled: float
    log_det: float
    trace_inverse: float
    smallest: float
    observability: dict[str, float]


def base_factor(information: Information, base: BaseParameters | None = None) -> FloatArray:
    """R of the base columns over all channels, shape [r, r]; of all columns without a base."""
    chosen = information if base is None else information.select(base.independent)
    return chosen.stacked()[:-1, :-1]


def condition_numbers(information: Information, base: BaseParameters) -> tuple[float, float]:
    """2-norm condition number of the stacked base columns: unscaled, and with columns of unit norm."""
    R = base_factor(information, base)
    norms = np.linalg.norm(R, axis=0)
    return float(np.linalg.cond(R)), float(np.linalg.cond(R / np.where(norms > 0.0, norms, 1.0)))


def evaluate(criterion: Criterion, R: npt.ArrayLike, *, rows: float = 1.0) -> Evaluation:
    """A criterion and its gradient from any R (or A) with the same A^T A.

    Args:
        criterion: which.
        R: triangular factor or rows of the base columns, shape [m, r].
        rows: number of rows (or poses) R stands for; only O1 uses it.
    """
    factor = _checked_factor(R)
    if criterion is Criterion.CONDITION_SCALED:
        return _scaled_condition(factor)
    _, sigma, Vt = np.linalg.svd(factor, full_matrices=False)
    if sigma[-1] <= np.finfo(float).eps * sigma[0]:
        return Evaluation(float("inf"), np.zeros((factor.shape[1],) * 2))
    value, slope = _SPECTRAL[criterion](sigma, rows)
    return Evaluation(value, read_only((Vt.T * (slope / sigma)) @ Vt))


def quality(R: npt.ArrayLike, *, rows: float = 1.0) -> Quality:
    """All figures of merit at once; arguments as in `evaluate`."""
    factor = _checked_factor(R)
    sigma = np.linalg.svd(factor, compute_uv=False)
    full = bool(sigma[-1] > np.finfo(float).eps * sigma[0])
    indices = {f"O{k}": -evaluate(Criterion(f"o{k}"), factor, rows=rows).value if full else 0.0 for k in range(1, 6)}
    return Quality(
        singular_values=read_only(sigma),
        condition_number=float(sigma[0] / sigma[-1]) if full else float("inf"),
        condition_number_scaled=evaluate(Criterion.CONDITION_SCALED, factor).value,
        log_det=float(2.0 * np.log(sigma).sum()) if full else -float("inf"),
        trace_inverse=float((sigma**-2.0).sum()) if full else float("inf"),
        smallest=float(sigma[-1]),
        observability=indices,
    )


def standard_deviations(R: npt.ArrayLike, noise: float = 1.0) -> FloatArray:
    """Predicted standard deviation of each parameter for white noise, shape [r]; infinite without full rank.

    Args:
        R: factor of rows already divided by their own noise, or of raw rows with one common `noise`.
        noise: standard deviation of the measurement.
    """
    factor = _checked_factor(R)
    # Scaling columns first keeps the inverse accurate whatever the units.
    norms = np.linalg.norm(factor, axis=0)
    if not norms.all():
        return np.where(norms > 0.0, _standard_deviations_of(factor, norms), np.inf) * noise
    return _standard_deviations_of(factor, norms) * noise


def _standard_deviations_of(factor: FloatArray, norms: FloatArray) -> FloatArray:
    """The same for unit noise, over the columns that are not zero."""
    out = np.full(len(norms), np.inf)
    live = np.flatnonzero(norms)
    _, sigma, Vt = np.linalg.svd(factor[:, live] / norms[live], full_matrices=False)
    if len(sigma) == len(live) and sigma[-1] > np.finfo(float).eps * sigma[0]:
        out[live] = np.sqrt(((Vt / sigma[:, np.newaxis]) ** 2).sum(axis=0)) / norms[live]
    return out


def predicted_deviation(R: npt.ArrayLike, which: int, noise: float = 1.0) -> Evaluation:
    """The predicted standard deviation of one parameter and its gradient.

    s = noise sqrt(C_jj), C = (A^T A)^-1, so ds = <A G, dA> with G = -noise^2 c_j c_j^T / s.

    Args:
        R: factor or rows of the base columns, shape [m, r].
        which: index of the parameter.
        noise: standard deviation of the measurement.
    """
    factor = _checked_factor(R)
    _, sigma, Vt = np.linalg.svd(factor, full_matrices=False)
    if sigma[-1] <= np.finfo(float).eps * sigma[0]:
        return Evaluation(float("inf"), np.zeros((factor.shape[1],) * 2))
    column = (Vt.T / sigma**2) @ Vt[:, which]
    value = noise * float(np.sqrt(column[which]))
    return Evaluation(value, read_only(-(noise**2) * np.outer(column, column) / value))


def _checked_factor(R: npt.ArrayLike) -> FloatArray:
    """A finite matrix with at least as many rows as columns."""
    factor = finite("R", np.asarray(R, dtype=np.float64))
    if factor.ndim != 2 or factor.shape[1] == 0 or factor.shape[0] < factor.shape[1]:
        raise ShapeError("R", factor.shape, "[m, r] with m >= r >= 1")
    return factor


def _scaled_condition(factor: FloatArray) -> Evaluation:
    """Condition number of A with columns of unit length, and its gradient with respect to A itself.

    With B = A D^-1, D the column lengths: dB = (dA - B dD) D^-1 and dD_j = b_j . da_j, so
    G = D^-1 H D^-1 - D^-2 diag(B^T B H), H the gradient matrix of the condition number of B.
    """
    norms = np.linalg.norm(factor, axis=0)
    if not norms.all():
        return Evaluation(float("inf"), np.zeros((factor.shape[1],) * 2))
    B = factor / norms
    inner = evaluate(Criterion.CONDITION, B)
    G = inner.G / np.outer(norms, norms) - np.diag(np.einsum("ij,ji->i", B.T @ B, inner.G) / norms**2)
    return Evaluation(inner.value, read_only(G))


def _condition(s: FloatArray, rows: float) -> tuple[float, FloatArray]:
    slope = np.zeros_like(s)
    slope[0] += 1.0 / s[-1]
    slope[-1] -= s[0] / s[-1] ** 2
    return float(s[0] / s[-1]), slope


def _d(s: FloatArray, rows: float) -> tuple[float, FloatArray]:
    return float(-2.0 * np.log(s).sum()), -2.0 / s


def _a(s: FloatArray, rows: float) -> tuple[float, FloatArray]:
    return float((s**-2.0).sum()), -2.0 * s**-3.0


def _e(s: FloatArray, rows: float) -> tuple[float, FloatArray]:
    slope = np.zeros_like(s)
    slope[-1] = -2.0 * s[-1] ** -3.0
    return float(s[-1] ** -2.0), slope


def _o1(s: FloatArray, rows: float) -> tuple[float, FloatArray]:
    value = float(np.exp(np.log(s).mean()) / np.sqrt(rows))
    return -value, -value / (len(s) * s)


def _o2(s: FloatArray, rows: float) -> tuple[float, FloatArray]:
    slope = np.zeros_like(s)
    slope[0] += s[-1] / s[0] ** 2
    slope[-1] -= 1.0 / s[0]
    return float(-s[-1] / s[0]), slope


def _o3(s: FloatArray, rows: float) -> tuple[float, FloatArray]:
    slope = np.zeros_like(s)
    slope[-1] = -1.0
    return float(-s[-1]), slope


def _o4(s: FloatArray, rows: float) -> tuple[float, FloatArray]:
    slope = np.zeros_like(s)
    slope[0] += s[-1] ** 2 / s[0] ** 2
    slope[-1] -= 2.0 * s[-1] / s[0]
    return float(-(s[-1] ** 2) / s[0]), slope


def _o5(s: FloatArray, rows: float) -> tuple[float, FloatArray]:
    total = float((1.0 / s).sum())
    return -1.0 / total, -1.0 / (total**2 * s**2)


_SPECTRAL: dict[Criterion, Callable[[FloatArray, float], tuple[float, FloatArray]]] = {
    Criterion.CONDITION: _condition,
    Criterion.D: _d,
    Criterion.A: _a,
    Criterion.E: _e,
    Criterion.O1: _o1,
    Criterion.O2: _o2,
    Criterion.O3: _o3,
    Criterion.O4: _o4,
    Criterion.O5: _o5,
}
