"""How uncertain an estimate is.

Residuals of sampled motion are correlated in time: filters, unmodelled friction and elasticity see to that. Formulas for
independent noise then give standard errors several times too small. All forms here are sandwiches

    C = B (A^T W Gamma W A) B,   B = (A^T W A)^-1,   W = diag(1 / sigma_c^2)

and differ only in the noise covariance Gamma they assume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.autoregression import Autoregression, fit_autoregression
from armid.estimation.estimate import Estimate
from armid.estimation.factor import solve_factor
from armid.estimation.least_squares import reduced
from armid.estimation.run import Run, information_of
from armid.information.information import Information


class Covariance(Protocol):
    """An assumption about the noise."""

    def apply(self, estimate: Estimate, runs: Sequence[Run], information: Information | None = None) -> Estimate:
        """The same values with the covariance this assumption gives; `information` of the runs spares a pass."""


def bread(rows: Information, sigma: Mapping[str, float]) -> FloatArray:
    """(A^T W A)^-1 over the base parameters."""
    weighted = rows.weighted({name: 1.0 / value for name, value in sigma.items()})
    return solve_factor(weighted.stacked(), rows.parameters).inverse


@dataclass(frozen=True, slots=True)
class IndependentNoise:
    """One variance for all rows: sigma^2 (A^T A)^-1 for ordinary least squares. Almost never true; shown for comparison."""

    def apply(self, estimate: Estimate, runs: Sequence[Run], information: Information | None = None) -> Estimate:
        rows = reduced(information or information_of(runs), estimate.base)
        B = bread(rows, dict.fromkeys(estimate.sigma, 1.0))
        energy = sum(channel.error_energy(estimate.values) for channel in rows.channels)
        return estimate.with_covariance(energy / max(rows.count - len(estimate), 1.0) * B, "iid")


@dataclass(frozen=True, slots=True)
class PerChannelNoise:
    """Independent noise, one variance per channel: (A^T W A)^-1."""

    def apply(self, estimate: Estimate, runs: Sequence[Run], information: Information | None = None) -> Estimate:
        rows = reduced(information or information_of(runs), estimate.base)
        return estimate.with_covariance(bread(rows, estimate.sigma), "per-channel")


@dataclass(frozen=True, slots=True)
class AutocorrelatedNoise:
    """Noise with a memory: an autoregression per channel, innovations correlated between channels.

    A^T Gamma A is formed by filtering the columns of A with 1 / a(z), one streaming pass. Residuals hold less energy
    than the noise (the fit absorbed some), most of all at the low frequencies of the motion; the missing share follows
    from the same matrices, and the noise is scaled up by it.

    Args:
        max_order: highest order of the autoregressions.
        corrections: fixed-point iterations of the missing share.
    """

    max_order: int = 24
    corrections: int = 8

    def apply(self, estimate: Estimate, runs: Sequence[Run], information: Information | None = None) -> Estimate:
        """One pass for the residuals, one for the filtered rows."""
        residuals = [run.residuals(estimate.standard) for run in runs]
        channels = runs[0].channels
        models = [fit_channel(runs, residuals, c, self.max_order) for c in range(len(channels))]
        C = innovation_correlation(runs, residuals, models)
        rows = reduced(information or information_of(runs), estimate.base)
        B = bread(rows, estimate.sigma)
        own, meat = filtered_meats(estimate, runs, models, C)
        grow = self.growth(rows, estimate, B, own, models)
        # Growth of the channels enters the cross terms as the mean of the two.
        mean_growth = float(np.mean(grow))
        meat = meat * mean_growth + sum((g - mean_growth) * G for g, G in zip(grow, own, strict=True))
        return estimate.with_covariance(B @ meat @ B, "autocorrelation")

    def growth(
        self,
        rows: Information,
        estimate: Estimate,
        B: FloatArray,
        own: Sequence[FloatArray],
        models: Sequence[Autoregression],
    ) -> FloatArray:
        """How much larger each channel's noise variance is than its residuals', shape [channels].

        E[r_c^T r_c] = tr Gamma_c - 2 tr(B w_c^2 A_c^T Gamma_c A_c) + tr(B w_c^2 A_c^T A_c B meat).
        """
        growth = np.ones(len(models))
        for _ in range(self.corrections):
            meat = sum(g * G for g, G in zip(growth, own, strict=True))
            for c, (channel, model) in enumerate(zip(rows.channels, models, strict=True)):
                w2 = estimate.sigma[channel.name] ** -2
                noise = growth[c] * channel.count * model.variance()
                G = np.zeros((len(estimate), len(estimate)))
                G[np.ix_(channel.columns, channel.columns)] = channel.R.T @ channel.R
                lost = 2.0 * growth[c] * float(np.sum(B * own[c])) / w2 - float(np.sum((B @ G @ B) * np.asarray(meat)))
                left = max(1.0 - lost / max(noise, 1e-300), 0.05)
                growth[c] = growth[c] + 0.5 * (1.0 / left - growth[c])
        return growth


def fit_channel(runs: Sequence[Run], residuals: Sequence[FloatArray], channel: int, max_order: int) -> Autoregression:
    """The autoregression of one channel over all segments of all runs."""
    pieces = [r[start:stop, channel] for run, r in zip(runs, residuals, strict=True) for start, stop in run.segments]
    return fit_autoregression(pieces, max_order=max_order)


def innovation_correlation(
    runs: Sequence[Run], residuals: Sequence[FloatArray], models: Sequence[Autoregression]
) -> FloatArray:
    """Covariance of the innovations between channels, shape [channels, channels]."""
    from scipy.signal import lfilter

    total, count = np.zeros((len(models), len(models))), 0
    skip = max(model.order for model in models)
    for run, r in zip(runs, residuals, strict=True):
        for start, stop in run.segments:
            white = np.column_stack([lfilter(m.coefficients, [1.0], r[start:stop, c]) for c, m in enumerate(models)])[
                skip:
            ]
            total += white.T @ white
            count += len(white)
    deviation = np.sqrt(np.maximum(np.diag(total), 1e-300))
    correlation = total / np.outer(deviation, deviation) if count > len(models) else np.eye(len(models))
    innovations = np.array([model.innovation for model in models])
    return correlation * np.outer(innovations, innovations)


def filtered_meats(
    estimate: Estimate, runs: Sequence[Run], models: Sequence[Autoregression], C: FloatArray
) -> tuple[list[FloatArray], FloatArray]:
    """A_c^T W Gamma_c W A_c of each channel alone, and of all with their correlations; shape [r, r] each."""
    from scipy.signal import lfilter

    r, columns = len(estimate), estimate.base.independent
    own = [np.zeros((r, r)) for _ in models]
    full = np.zeros((r, r))
    root = np.linalg.cholesky(C + 1e-12 * np.diag(np.diag(C)) + 1e-300 * np.eye(len(C)))
    for run in runs:
        state: list[FloatArray] = []
        for _, starts, A in run.blocks():
            rows = A[:, :, columns] / np.array([estimate.sigma[name] for name in run.channels])[:, np.newaxis] ** 2
            if starts:
                state = [np.zeros((max(model.order, 1), r)) for model in models]
            for c, model in enumerate(models):
                if model.order:
                    rows[:, c], state[c] = lfilter([1.0], model.coefficients, rows[:, c], axis=0, zi=state[c])
                own[c] += C[c, c] * rows[:, c].T @ rows[:, c]
            mixed = np.einsum("cd,ncr->ndr", root, rows).reshape(-1, r)
            full += mixed.T @ mixed
    return own, full


@dataclass(frozen=True, slots=True)
class BlockNoise:
    """No model of the noise: sums of scores over overlapping blocks (Bartlett kernel), [Newey1987].

    Robust to anything that forgets within a block, but the estimate is noisy when the log holds few blocks.

    Args:
        seconds: block length; None takes ten times the correlation length of the slowest channel.
    """

    seconds: float | None = None

    def apply(self, estimate: Estimate, runs: Sequence[Run], information: Information | None = None) -> Estimate:
        rows = reduced(information or information_of(runs), estimate.base)
        B = bread(rows, estimate.sigma)
        meat = np.zeros_like(B)
        blocks = 0.0
        for run in runs:
            residuals = run.residuals(estimate.standard)
            length = self.block(run, residuals)
            for scores in segment_scores(estimate, run, residuals):
                meat += block_meat(scores, min(length, len(scores)))
                blocks += len(scores) / length
        # Few blocks leave few degrees of freedom; the usual small-sample inflation.
        meat *= blocks / max(blocks - 1.0, 1.0)
        return estimate.with_covariance(B @ meat @ B, "block")

    def block(self, run: Run, residuals: FloatArray) -> int:
        """Block length in samples."""
        if self.seconds is not None:
            return max(round(self.seconds * run.rate), 1)
        lengths = [fit_channel([run], [residuals], c, 24).correlation_length() for c in range(len(run.channels))]
        return int(np.clip(10.0 * max(lengths), 1, max(len(run) // 10, 1)))


def segment_scores(estimate: Estimate, run: Run, residuals: FloatArray) -> list[FloatArray]:
    """Per segment, sum over channels of A^T W r at every sample, shape [n, r]."""
    weight = np.array([estimate.sigma[name] ** -2 for name in run.channels])
    parts: list[list[FloatArray]] = []
    for part, starts, A in run.blocks():
        if starts:
            parts.append([])
        parts[-1].append(np.einsum("ncr,nc->nr", A[:, :, estimate.base.independent], residuals[part] * weight))
    return [np.vstack(part) for part in parts]


def block_meat(scores: FloatArray, length: int) -> FloatArray:
    """Sum over lags of (1 - |k| / L) s_t s_(t+k)^T, as overlapping block sums divided by L."""
    padded = np.vstack([np.zeros((length, scores.shape[1])), scores, np.zeros((length - 1, scores.shape[1]))])
    running = np.cumsum(padded, axis=0)
    sums = running[length:] - running[:-length]
    return sums.T @ sums / length


def with_sigma(estimate: Estimate, sigma: Mapping[str, float]) -> Estimate:
    """The same estimate with other channel noises, for sandwiches around unweighted fits."""
    return replace(estimate, sigma=sigma)
