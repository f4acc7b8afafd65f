"""The criteria of `criteria.py` that are searched over, smoothed, as functions of the Gram matrix of the rows.

All are written so that smaller is better. With G = A^T A / N and its eigenvalues w (squared singular values):

    condition          log of the condition number of A, as a Schatten norm product ||A||_p ||A^+||_p
    log-det            -1/(2 r) log det G, the criterion D
    smallest           -log of the smallest singular value, the criterion E, likewise smoothed
    worst-deviation    log of the largest relative standard deviation of a parameter, likewise smoothed
    deviations         mean log of the standard deviations of the parameters: their geometric mean, whatever their units

Plain largest and smallest eigenvalues have kinks wherever two of them meet, which is where an optimiser drives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray


class SmoothCriterion(StrEnum):
    """Which quality of the rows is improved."""

    CONDITION = "condition"
    LOG_DET = "log-det"
    SMALLEST = "smallest"
    WORST_DEVIATION = "worst-deviation"
    DEVIATIONS = "deviations"


FLOOR = 1e-13
"""Eigenvalues below this fraction of the largest are round-off of the Gram matrix; the criterion flattens out there."""


@dataclass(frozen=True, eq=False)
class Merit:
    """A smooth criterion with its settings: a function of the Gram matrix, with its gradient.

    Args:
        criterion: which one.
        power: p of the smoothing; 2-norm condition number in the limit of large p.
        scale: magnitude of each parameter, for relative deviations, shape [r].
        known: what is known already, in the units of G, shape [r, r]; None for nothing.
    """

    criterion: SmoothCriterion = SmoothCriterion.CONDITION
    power: float = 8.0
    scale: FloatArray | None = None
    known: FloatArray | None = None

    def __call__(self, G: FloatArray) -> tuple[float, FloatArray]:
        """Value and derivative by G (symmetric), shape [r, r]."""
        w, V = np.linalg.eigh(G if self.known is None else G + self.known)
        w = np.maximum(w, FLOOR * w[-1])
        match self.criterion:
            case SmoothCriterion.CONDITION:
                value, slope = _smooth_condition(w, self.power)
            case SmoothCriterion.SMALLEST:
                value, slope = _smooth_reciprocal(w, self.power)
            case SmoothCriterion.LOG_DET:
                value, slope = -0.5 * float(np.log(w).mean()), -0.5 / (len(w) * w)
            case SmoothCriterion.WORST_DEVIATION:
                return _worst_deviation(w, V, self.power, self.scale)
            case SmoothCriterion.DEVIATIONS:
                return _mean_log_deviation(w, V)
        return value, (V * slope) @ V.T

    def values(self, G: FloatArray) -> FloatArray:
        """Values alone of many matrices at once, shape [k, r, r] -> [k]; for trying exchanges."""
        if self.known is not None or self.criterion in (SmoothCriterion.WORST_DEVIATION, SmoothCriterion.DEVIATIONS):
            return np.array([self(one)[0] for one in G])
        w = np.linalg.eigvalsh(G)
        w = np.maximum(w, FLOOR * w[:, -1:])
        if self.criterion is SmoothCriterion.LOG_DET:
            return np.asarray(-0.5 * np.log(w).mean(axis=1))
        half = self.power / 2
        value = np.log(((w[:, :1] / w) ** half).sum(axis=1)) / self.power - 0.5 * np.log(w[:, 0])
        if self.criterion is SmoothCriterion.CONDITION:
            value += np.log(((w / w[:, -1:]) ** half).sum(axis=1)) / self.power + 0.5 * np.log(w[:, -1])
        return np.asarray(value)


def _smooth_condition(w: FloatArray, power: float) -> tuple[float, FloatArray]:
    """log(||A||_p ||A^+||_p) from ascending squared singular values, and its derivative by each."""
    half = power / 2
    large = (w / w[-1]) ** half
    value, slope = _smooth_reciprocal(w, power)
    return value + 0.5 * float(np.log(w[-1])) + float(np.log(large.sum())) / power, slope + 0.5 * large / (
        w * large.sum()
    )


def _smooth_reciprocal(w: FloatArray, power: float) -> tuple[float, FloatArray]:
    """Log ||A^+||_p from ascending squared singular values, and its derivative by each."""
    small = (w[0] / w) ** (power / 2)
    return float(np.log(small.sum())) / power - 0.5 * float(np.log(w[0])), -0.5 * small / (w * small.sum())


def _worst_deviation(w: FloatArray, V: FloatArray, power: float, scale: FloatArray | None) -> tuple[float, FloatArray]:
    """Log of the p-norm of relative standard deviations sqrt((G^-1)_ii) / scale_i, and its derivative by G."""
    inverse = (V / w) @ V.T
    relative = np.diag(inverse) / (np.ones(len(w)) if scale is None else scale**2)
    peak = relative.max()
    shares = (relative / peak) ** (power / 2)
    value = 0.5 * float(np.log(peak)) + float(np.log(shares.sum())) / power
    by_relative = 0.5 * shares / (relative * shares.sum())
    by_diagonal = by_relative / (np.ones(len(w)) if scale is None else scale**2)
    return value, -(inverse * by_diagonal) @ inverse


def _mean_log_deviation(w: FloatArray, V: FloatArray) -> tuple[float, FloatArray]:
    """Mean of log sqrt((G^-1)_ii), and its derivative by G. Units, and the size of a parameter, only add a constant."""
    inverse = (V / w) @ V.T
    variance = np.diag(inverse)
    return 0.5 * float(np.log(variance).mean()), -(inverse / variance) @ inverse / (2 * len(w))


def gram_condition_number(G: FloatArray) -> float:
    """2-norm condition number of A from A^T A; infinite when G is singular to working precision."""
    w = np.linalg.eigvalsh(G)
    return float(np.sqrt(w[-1] / w[0])) if w[0] > FLOOR * w[-1] else float("inf")
