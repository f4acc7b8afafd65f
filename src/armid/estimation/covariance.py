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
from armid.estimation.autoregression import Autoregression, fit_autoregression, impulse_response
from armid.estimation.estimate import NORMAL_95, Estimate
from armid.estimation.repeats import repeat_growth
from armid.estimation.run import Run, information_of
from armid.information.information import Information
from armid.information.solve import reduced, solve


class Covariance(Protocol):
    """An assumption about the noise."""

    def apply(self, estimate: Estimate, runs: Sequence[Run], information: Information | None = None) -> Estimate:
        """The same values with the covariance this assumption gives; `information` of the runs spares a pass."""


def bread(rows: Information, sigma: Mapping[str, float]) -> FloatArray:
    """(A^T W A)^-1 over the base parameters."""
    return solve(rows, weights={name: 1.0 / value for name, value in sigma.items()}).inverse


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


FEWEST_FREEDOM = 3.0
"""Degrees of freedom a log is given at least: with fewer the quantile says nothing but that nothing is known."""
FORGOTTEN = 1e-3
"""Of the largest response: what is smaller no longer counts."""
LONGEST_MEMORY = 4096
"""Samples; noise that remembers longer is a drift, and no log of an arm shows its size."""
MOST_LAGS = 200
"""At which the correlation of innovations is looked at."""
SMALLEST_SHARE = 0.05
"""Of the mean variance: what noise is left at standstill at least."""


@dataclass(frozen=True, slots=True)
class AutocorrelatedNoise:
    """Noise with a memory: an autoregression per channel, innovations correlated between channels, of changing size.

    With e = H u, H the response of 1 / a(z) and u the innovations, A^T Gamma A = (H^T A)^T var(u) (H^T A): one streaming pass
    from the end to the start filters the columns of A, weighted by the size of the innovations at each sample (noise of friction
    comes and goes with speed). Residuals hold less
    energy than the noise (the fit absorbed some), most of all at the low frequencies of the motion; the missing share follows
    from the same matrices, and the noise is scaled up by it. A log that holds few independent samples knows its own noise
    badly: deviations are widened so that 1.96 of them are the 95 % quantile of Student's distribution. What residuals do alike in
    every period of a motion that repeats itself counts once.

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
        correlation, sizes = innovations(runs, residuals, models)
        rows = reduced(information or information_of(runs), estimate.base)
        B = bread(rows, estimate.sigma)
        own, meat = filtered_meats(estimate, runs, models, correlation, sizes)
        repeated = repeat_growth(runs, residuals)
        # What repeats has fewer independent samples: the fit absorbs more of it, and its size is known less well.
        grow = repeated * (1.0 + repeated * (self.growth(rows, estimate, B, own, models) - 1.0))
        # Growth of the channels enters the cross terms as the mean of the two.
        mean_growth = float(np.mean(grow))
        meat = meat * mean_growth + sum((g - mean_growth) * G for g, G in zip(grow, own, strict=True))
        freedom = [
            c.count / max(model.squared_correlation(), 1.0) / m
            for c, model, m in zip(rows.channels, models, repeated, strict=True)
        ]
        widen = student_factors(B, [g * G for g, G in zip(grow, own, strict=True)], np.array(freedom))
        return estimate.with_covariance(B @ meat @ B * np.outer(widen, widen), "autocorrelation")

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
        weights = np.array([estimate.sigma[channel.name] ** -2 for channel in rows.channels])
        noise = np.array([c.count * m.variance() for c, m in zip(rows.channels, models, strict=True)])
        taken = 2.0 * np.array([float(np.sum(B * G)) for G in own]) / weights
        given = np.empty((len(models), len(models)))
        for c, channel in enumerate(rows.channels):
            side = channel.R @ B[channel.columns]
            given[c] = [float(np.sum((side @ G) * side)) for G in own]
        growth = np.ones(len(models))
        for _ in range(self.corrections):
            lost = growth * taken - given @ growth
            left = np.maximum(1.0 - lost / np.maximum(growth * noise, 1e-300), 0.05)
            growth = growth + 0.5 * (1.0 / left - growth)
        return growth


def fit_channel(runs: Sequence[Run], residuals: Sequence[FloatArray], channel: int, max_order: int) -> Autoregression:
    """The autoregression of one channel over all segments of all runs."""
    pieces = [r[start:stop, channel] for run, r in zip(runs, residuals, strict=True) for start, stop in run.segments]
    return fit_autoregression(pieces, max_order=max_order)


def innovations(
    runs: Sequence[Run], residuals: Sequence[FloatArray], models: Sequence[Autoregression]
) -> tuple[FloatArray, list[FloatArray]]:
    """Correlation of the innovations between channels, shape [channels, channels], and their size per run, shape of y.

    The variance is a constant plus a multiple of the channel's own speed, as far as the squared innovations show it; its mean
    is the innovation variance of the model.
    """
    from scipy.signal import lfilter

    white = []
    for run, r in zip(runs, residuals, strict=True):
        u = np.zeros(r.shape)
        for start, stop in run.segments:
            for c, m in enumerate(models):
                # The filter starts from nothing; its first outputs are residuals, not innovations.
                u[start + m.order : stop, c] = lfilter(m.coefficients, [1.0], r[start:stop, c])[m.order :]
        white.append(u)
    products = np.sum([u.T @ u for u in white], axis=0)
    deviation = np.sqrt(np.maximum(np.diag(products), 1e-300))
    variances = [np.empty(u.shape) for u in white]
    for c, m in enumerate(models):
        drives = [driving(run, c) for run in runs]
        fitted = variance_along(np.concatenate([u[:, c] for u in white]), np.concatenate(drives))
        fitted *= m.innovation**2 / max(float(fitted.mean()), 1e-300)
        for variance, piece in zip(variances, np.split(fitted, np.cumsum([len(u) for u in white])[:-1]), strict=True):
            variance[:, c] = piece
    return products / np.outer(deviation, deviation), [np.sqrt(variance) for variance in variances]


def driving(run: Run, channel: int) -> FloatArray:
    """What the size of a channel's noise may depend on: a constant and its own speed; shape [n_samples, 1 or 2]."""
    names = {name: k for k, name in enumerate(run.source.inputs)}
    n = sum(name.startswith("qdd") for name in names)
    one = np.ones((len(run), 1))
    if n == 0 or f"qd{channel % n + 1}" not in names:
        return one
    return np.hstack([one, np.abs(run.inputs[:, [names[f"qd{channel % n + 1}"]]])])


def variance_along(u: FloatArray, drives: FloatArray) -> FloatArray:
    """Variance of innovations u along a motion, shape [n_samples].

    Non-negative multiples of the drives that explain the squares best, when they do so beyond chance (Bayesian information
    criterion over independent squares); else the same everywhere.
    """
    from scipy.optimize import nnls

    squares = u**2 / max(float(np.mean(u**2)), 1e-300)
    if drives.shape[1] == 1 or not np.any(u):
        return np.ones(len(u))
    X = drives / np.maximum(drives.mean(axis=0), 1e-300)
    factor: FloatArray = np.asarray(np.linalg.qr(np.column_stack([X, squares]), mode="r"))
    weights, left = nnls(factor[:, :-1], factor[:, -1])
    independent = len(u) / max(squared_correlation_of(u), 1.0)
    gain = independent * np.log(float(np.sum((squares - 1.0) ** 2)) / max(float(left) ** 2, 1e-300))
    if gain < (X.shape[1] - 1) * np.log(max(independent, 2.0)):
        return np.ones(len(u))
    return np.maximum(X @ weights, SMALLEST_SHARE)


def squared_correlation_of(u: FloatArray) -> float:
    """Sum over lags of the squared autocorrelation of a sequence, beyond what white noise of its length shows."""
    size = 1 << (2 * len(u) - 1).bit_length()
    covariance = np.fft.irfft(np.abs(np.fft.rfft(u, size)) ** 2, size)[: min(len(u), MOST_LAGS)]
    rho = covariance / max(float(covariance[0]), 1e-300)
    return 1.0 + 2.0 * float(np.sum(np.maximum(rho[1:] ** 2 - 2.0 / len(u), 0.0)))


def filtered_meats(
    estimate: Estimate,
    runs: Sequence[Run],
    models: Sequence[Autoregression],
    correlation: FloatArray,
    sizes: Sequence[FloatArray],
) -> tuple[list[FloatArray], FloatArray]:
    """A_c^T W Gamma_c W A_c of each channel alone, and of all with their correlations; shape [r, r] each.

    Args:
        estimate: for its noise and base parameters.
        runs: whose rows are filtered.
        models: of the channels.
        correlation: of the innovations between channels.
        sizes: of the innovations at every sample, per run.
    """
    from scipy.signal import lfilter

    r, columns = len(estimate), estimate.base.independent
    own = [np.zeros((r, r)) for _ in models]
    full = np.zeros((r, r))
    root = np.linalg.cholesky(correlation + 1e-9 * np.eye(len(correlation)))
    ringing = np.zeros((max(response_length(model) for model in models), len(models), r))

    def add(rows: FloatArray, state: list[FloatArray], size: FloatArray) -> None:
        """Filters rows in place, from the last sample to the first, and adds their products."""
        nonlocal full
        for c, model in enumerate(models):
            if model.order:
                rows[:, c], state[c] = lfilter([1.0], model.coefficients, rows[:, c], axis=0, zi=state[c])
            rows[:, c] *= size[:, c, np.newaxis]
            own[c] += rows[:, c].T @ rows[:, c]
        mixed = np.einsum("cd,ncr->ndr", root, rows).reshape(-1, r)
        full += mixed.T @ mixed

    for run, size in zip(runs, sizes, strict=True):
        starts_at = {start for start, _ in run.segments}
        state: list[FloatArray] = []
        for part, ends, A in run.blocks(backward=True):
            if ends:
                state = [np.zeros((max(model.order, 1), r)) for model in models]
            weighted = (
                A[::-1, :, columns] / np.array([estimate.sigma[name] for name in run.channels])[:, np.newaxis] ** 2
            )
            add(weighted, state, size[part][::-1])
            if part.start in starts_at:
                # Innovations from before the recording still sound in its first samples.
                add(np.array(ringing), state, np.repeat(size[part][:1], len(ringing), axis=0))
    return own, full


def response_length(model: Autoregression) -> int:
    """Samples after which the noise has forgotten an innovation."""
    h = np.abs(impulse_response(model.coefficients))
    return min(int(np.flatnonzero(h > FORGOTTEN * h.max())[-1]) + 1, LONGEST_MEMORY)


def student_factors(B: FloatArray, own: Sequence[FloatArray], freedom: FloatArray) -> FloatArray:
    """By how much to widen each deviation, shape [r]: Student's 95 % quantile over the normal one.

    Where several channels carry a parameter their degrees of freedom combine by Satterthwaite's rule.

    Args:
        B: bread.
        own: meat of every channel.
        freedom: of every channel: n gamma_0^2 / sum gamma_k^2 independent squares, from which its variance is known.
    """
    from scipy.stats import t

    shares = np.array([np.einsum("ij,jk,ik->i", B, G, B) for G in own])
    together = shares.sum(axis=0) ** 2 / np.maximum((shares**2 / freedom[:, np.newaxis]).sum(axis=0), 1e-300)
    return np.asarray(t.ppf(0.975, np.clip(together, FEWEST_FREEDOM, 1e9)) / NORMAL_95)


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
