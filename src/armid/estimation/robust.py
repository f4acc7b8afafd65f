"""Least squares that does not follow outliers: iteratively reweighted, naming the rows it distrusts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, check_rows, information_of, weighted_information
from armid.identifiability.base import BaseParameters
from armid.information.solve import solve
from armid.information.status import Status
from armid.notes import Note, Severity

_MAD_TO_SIGMA = 1.482602218505602
"""Median absolute deviation of a normal distribution to its standard deviation."""
_DISTRUSTED = 0.5
"""A row whose weight fell below this is named."""


class Loss(Protocol):
    """A loss by its weight function."""

    @property
    def name(self) -> str: ...

    def weights(self, u: FloatArray) -> FloatArray:
        """psi(u) / u of residuals in units of their scale."""

    def slopes(self, u: FloatArray, weights: FloatArray) -> FloatArray:
        """psi'(u), given the weights of the same residuals."""


@dataclass(frozen=True, slots=True)
class Huber:
    """Quadratic up to the threshold, linear beyond; 95 % efficient on normal noise at 1.345."""

    threshold: float = 1.345
    name: str = "Huber"

    def weights(self, u: FloatArray) -> FloatArray:
        return self.threshold / np.maximum(np.abs(u), self.threshold)

    def slopes(self, u: FloatArray, weights: FloatArray) -> FloatArray:
        return (np.abs(u) < self.threshold).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Tukey:
    """Bisquare: rows beyond the threshold do not count at all; 95 % efficient at 4.685."""

    threshold: float = 4.685
    name: str = "Tukey"

    def weights(self, u: FloatArray) -> FloatArray:
        return np.maximum(1.0 - (u / self.threshold) ** 2, 0.0) ** 2

    def slopes(self, u: FloatArray, weights: FloatArray) -> FloatArray:
        """(1 - v)(1 - 5 v) with v = (u / threshold)^2 = 1 - sqrt(weight)."""
        v = 1.0 - np.sqrt(weights)
        return np.where(weights > 0.0, (1.0 - v) * (1.0 - 5.0 * v), 0.0)


@dataclass(frozen=True, eq=False)
class RobustFit:
    """A robust estimate and the rows it did not believe.

    Args:
        estimate: values; its covariance is that of the reweighted rows.
        weights: per run, final weight of every row in (0, 1], shape [n_samples, n_channels].
        loss: that gave them.
    """

    estimate: Estimate
    weights: tuple[FloatArray, ...]
    loss: Loss

    def distrusted(self, run: int, channel: int) -> tuple[tuple[int, int], ...]:
        """(start, stop) of stretches of samples whose weight fell below one half."""
        mask = np.concatenate([[False], self.weights[run][:, channel] < _DISTRUSTED, [False]])
        edges = np.flatnonzero(mask[1:] != mask[:-1])
        return tuple((int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True))


@dataclass(frozen=True, eq=False)
class RobustLeastSquares:
    """Iteratively reweighted least squares; every iteration is two streaming passes.

    Args:
        loss: Huber or Tukey (Tukey starts from a Huber fit: it is not convex).
        iterations: at most so many.
        tolerance: largest change of a value, in its standard deviations, that counts as settled.
    """

    loss: Loss = field(default_factory=Huber)
    iterations: int = 100
    tolerance: float = 1e-3

    def fit(self, runs: Sequence[Run], base: BaseParameters, units: tuple[str, ...] = ()) -> RobustFit:
        """Starts from weighted least squares."""
        check_rows(runs, len(base))
        start = WeightedLeastSquares().fit(information_of(runs), base, units)
        if isinstance(self.loss, Tukey):
            start = replace(self, loss=Huber()).fit(runs, base, units).estimate
        values, status, used = start.values, Status.NOT_CONVERGED, 0
        weights: list[FloatArray] = []
        for _ in range(self.iterations):
            used += 1
            residuals = [run.residuals(base.embedding @ values) for run in runs]
            sigma = _robust_sigmas(runs, residuals, len(base))
            scale = [np.array([sigma[name] for name in run.channels]) for run in runs]
            weights = [self.loss.weights(r / s) for r, s in zip(residuals, scale, strict=True)]
            roots = [np.sqrt(w) / s for w, s in zip(weights, scale, strict=True)]
            solution = solve(weighted_information(runs, roots), base)
            step = np.abs(solution.values - values) / np.sqrt(np.diag(solution.inverse))
            values = solution.values
            if step.max() < self.tolerance:
                status = Status.SOLVED
                break
        estimate = Estimate(
            base=base,
            units=start.units,
            values=values,
            covariance=solution.inverse,
            covariance_kind="per-channel",
            sigma=sigma,
            method=f"robust least squares ({self.loss.name})",
            status=status,
            iterations=used,
        )
        estimate = estimate if status is Status.SOLVED else estimate.with_notes(_unsettled(used, step, base))
        fit = RobustFit(estimate, tuple(weights), self.loss)
        return replace(fit, estimate=estimate.with_notes(*_distrust_notes(runs, fit)))


def _unsettled(used: int, step: FloatArray, base: BaseParameters) -> Note:
    """Says what kept moving, and what to do."""
    name, size = base.names[int(np.argmax(step))], float(step.max())
    text = (
        f"weights had not settled after {used} iterations: {name} still moved by {size:.2g} of its deviations; a longer log with "
        "more of that parameter's motion helps, and --method wls has no weights to settle"
    )
    return Note("not-converged", Severity.WARNING, text, name)


def _robust_sigmas(runs: Sequence[Run], residuals: Sequence[FloatArray], n_parameters: int) -> dict[str, float]:
    """Scale of each channel's residuals from their median absolute deviation, with a degrees-of-freedom correction."""
    names = dict.fromkeys(name for run in runs for name in run.channels)
    out = {}
    rows = sum(r.size for r in residuals)
    for name in names:
        pieces = [
            r[:, run.channels.index(name)] for run, r in zip(runs, residuals, strict=True) if name in run.channels
        ]
        both = np.abs(np.concatenate(pieces))
        size = _MAD_TO_SIGMA * float(np.median(both)) * np.sqrt(rows / max(rows - n_parameters, 1))
        out[name] = max(float(size), 1e-12 * float(np.max(both, initial=0.0)), 1e-300)
    return out


def _distrust_notes(runs: Sequence[Run], fit: RobustFit) -> tuple[Note, ...]:
    """One note per channel and run with distrusted rows: how many, and where the longest stretch is."""
    notes = []
    for k, run in enumerate(runs):
        for c, channel in enumerate(run.channels):
            stretches = fit.distrusted(k, c)
            if not stretches:
                continue
            count = sum(b - a for a, b in stretches)
            a, b = max(stretches, key=lambda s: s[1] - s[0])
            text = f"{run.name}: {count} of {len(run)} rows distrusted, the longest stretch at samples {a} to {b - 1}"
            notes.append(
                Note("distrusted-rows", Severity.WARNING if count > 0.05 * len(run) else Severity.INFO, text, channel)
            )
    return tuple(notes)
