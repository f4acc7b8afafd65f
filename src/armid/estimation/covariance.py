"""How uncertain an estimate is.

Residuals of sampled motion are correlated in time: filters, unmodelled friction and elasticity see to that. Formulas for
independent noise then give standard errors several times too small. All forms here are sandwiches

    C = B (A^T W Gamma W A) B,   B = (A^T W A)^-1,   W = diag(1 / sigma^2)

and differ only in the noise covariance Gamma they assume; sigma is that of the row's channel, or of its class near reversals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.autoregression import fit_autoregression, recursive_filter
from armid.estimation.estimate import NORMAL_95, Estimate
from armid.estimation.noise import NoiseModel, fitted_noise, response_length, stretches_of
from armid.estimation.noise_spectrum import noise_spectrum
from armid.estimation.quantiles import student_quantile
from armid.estimation.repeats import repeat_growth
from armid.estimation.reversals import classed_information, noise_along
from armid.estimation.run import Run, each_run, gathered
from armid.information.information import Information
from armid.information.solve import reduced, solve
from armid.information.status import EstimationError
from armid.kernels.evaluate import compiled_rows


@dataclass(frozen=True, eq=False)
class Earlier:
    """Rows of earlier experiments that belong to the estimate too, of which only the Information is left.

    Args:
        information: over the standard parameters.
        estimate: of these rows alone, with its honest covariance.
    """

    information: Information
    estimate: Estimate

    @cached_property
    def inflation(self) -> float:
        """How much wider honest deviations were than those for independent noise."""
        return row_inflation(self.information, self.estimate)

    def meat(self, estimate: Estimate) -> FloatArray:
        """A^T W Gamma W A of these rows, shape [r, r].

        With C = B (A^T W Gamma W A) B known it is (A^T W A) C (A^T W A); rows that did not determine all of the parameters
        are counted by what their samples told that was new.
        """
        rows = self.information.select(estimate.base.independent)
        G = in_noise_units(rows, estimate.sigma).gram()
        if np.array_equal(self.estimate.base.independent, estimate.base.independent):
            return G @ self.estimate.covariance @ G
        return self.inflation**2 * G


class Covariance(Protocol):
    """An assumption about the noise."""

    def apply(
        self,
        estimate: Estimate,
        runs: Sequence[Run],
        information: Information | None = None,
        *,
        earlier: Earlier | None = None,
    ) -> Estimate:
        """The same values with the covariance this assumption gives.

        Args:
            estimate: of the runs, and of earlier rows when there are some.
            runs: whose residuals show the noise.
            information: of the runs; spares a pass.
            earlier: rows besides the runs.
        """


def _all_rows(
    estimate: Estimate, runs: Sequence[Run], information: Information | None, earlier: Earlier | None
) -> tuple[Information, Information]:
    """Rows of the base parameters: of the runs, and of everything."""
    own = information if information is not None else classed_information(runs)
    every = own if earlier is None else own + earlier.information
    return own.select(estimate.base.independent), reduced(every, estimate.base)


def bread(rows: Information, sigma: Mapping[str, float]) -> FloatArray:
    """(A^T W A)^-1 over the base parameters."""
    return solve(in_noise_units(rows, sigma)).inverse


def in_noise_units(rows: Information, sigma: Mapping[str, float]) -> Information:
    """Every channel's rows over its noise; a class that has none of its own takes that of its measured channel."""
    return rows.weighted({c.name: 1.0 / sigma.get(c.name, sigma.get(c.whole, 1.0)) for c in rows.channels})


def row_inflation(information: Information, estimate: Estimate) -> float:
    """How much wider honest deviations are than those for independent noise, median over the parameters; at least 1."""
    try:
        naive = np.sqrt(np.diag(bread(reduced(information, estimate.base), estimate.sigma)))
    except EstimationError:
        # Rows that leave directions open, completed by a belief: nothing to compare with.
        return 1.0
    return max(1.0, float(np.median(estimate.standard_deviations / np.maximum(naive, 1e-300))))


@dataclass(frozen=True, slots=True)
class IndependentNoise:
    """One variance for all rows: sigma^2 (A^T A)^-1 for ordinary least squares. Almost never true; shown for comparison."""

    def apply(
        self,
        estimate: Estimate,
        runs: Sequence[Run],
        information: Information | None = None,
        *,
        earlier: Earlier | None = None,
    ) -> Estimate:
        _, rows = _all_rows(estimate, runs, information, earlier)
        B = bread(rows, dict.fromkeys(estimate.sigma, 1.0))
        energy = sum(channel.error_energy(estimate.values) for channel in rows.channels)
        return estimate.with_covariance(energy / max(rows.count - len(estimate), 1.0) * B, "iid")


def textbook_deviations(information: Information, estimate: Estimate) -> FloatArray:
    """Standard deviations by the formula of the textbooks, shape [r]: of sigma^2 (A^T A)^-1, every row counted as a new one.

    [Halper2024] eqs. 2.43-2.47. Several times too small on filtered logs; for comparison with published tables alone. Not a
    number where the rows alone do not determine the parameters.
    """
    try:
        return IndependentNoise().apply(estimate, (), information).standard_deviations
    except EstimationError:
        return np.full(len(estimate), np.nan)


@dataclass(frozen=True, slots=True)
class PerChannelNoise:
    """Independent noise, one variance per channel: (A^T W A)^-1."""

    def apply(
        self,
        estimate: Estimate,
        runs: Sequence[Run],
        information: Information | None = None,
        *,
        earlier: Earlier | None = None,
    ) -> Estimate:
        _, rows = _all_rows(estimate, runs, information, earlier)
        return estimate.with_covariance(bread(rows, estimate.sigma), "per-channel")


@dataclass(frozen=True, slots=True)
class AutocorrelatedNoise:
    """Noise with a memory: an autoregression per channel, innovations correlated between channels, of changing size.

    With e = H u, H the response of 1 / a(z) and u the innovations, A^T Gamma A = (H^T A)^T var(u) (H^T A): one streaming pass
    from the end to the start filters the columns of A, weighted by the size of the innovations at each sample (noise of friction
    comes and goes with speed). Residuals hold less
    energy than the noise (the fit absorbed some), most of all at the low frequencies of the motion; `noise_spectrum` gives it
    back. A log that holds few independent samples knows its own noise
    badly: deviations are widened so that 1.96 of them are the 95 % quantile of Student's distribution. What residuals do alike in
    every period of a motion that repeats itself counts once.

    Args:
        max_order: highest order of the autoregressions.
    """

    max_order: int = 24

    def apply(
        self,
        estimate: Estimate,
        runs: Sequence[Run],
        information: Information | None = None,
        *,
        earlier: Earlier | None = None,
    ) -> Estimate:
        """One pass for the residuals, one for the filtered rows."""
        stretches = stretches_of(runs, estimate.standard, estimate.sigma)
        rows, every = _all_rows(estimate, runs, information, earlier)
        B = bread(every, estimate.sigma)
        repeated = repeat_growth(stretches)
        spectrum = noise_spectrum(stretches, runs, estimate, B, repeated=repeated)
        noise = fitted_noise(stretches, spectrum.models(self.max_order))
        own, meat = _filtered_meats(estimate, runs, noise)
        # Growth of the channels enters the cross terms as the mean of the two.
        mean_growth = float(np.mean(repeated))
        meat = meat * mean_growth + sum((g - mean_growth) * G for g, G in zip(repeated, own, strict=True))
        whole = in_noise_units(rows, estimate.sigma).pooled()
        freedom = [
            c.count / max(model.squared_correlation(), 1.0) / m
            for c, model, m in zip(whole.channels, noise.models, repeated, strict=True)
        ]
        parts = [g * G for g, G in zip(repeated, own, strict=True)]
        if earlier is not None:
            parts.append(earlier.meat(estimate))
            meat = meat + parts[-1]
            freedom.append(earlier.information.count / earlier.inflation**2)
        widen = _student_factors(B, parts, np.array(freedom))
        return estimate.with_covariance(B @ meat @ B * np.outer(widen, widen), "autocorrelation")


def _filtered_meats(estimate: Estimate, runs: Sequence[Run], noise: NoiseModel) -> tuple[list[FloatArray], FloatArray]:
    """A_c^T W Gamma_c W A_c of each channel alone, and of all with their correlations; shape [r, r] each.

    Runs that continue one another are filtered as one motion.

    Args:
        estimate: for its noise and base parameters.
        runs: whose rows are filtered, from the last to the first.
        noise: of the channels.
    """
    if not any(each_run(runs, _continues)):
        own, full = gathered(runs, _Meats(estimate, noise), _added)
        return list(own), full
    backwards = _Backwards(estimate, noise)
    for run in reversed(runs):
        backwards.add(run)
    return backwards.own, backwards.full


def _continues(run: Run) -> bool:
    return run.continues


@dataclass(frozen=True, eq=False)
class _Meats:
    """Of one run that stands alone."""

    estimate: Estimate
    noise: NoiseModel

    def __call__(self, run: Run) -> tuple[FloatArray, FloatArray]:
        backwards = _Backwards(self.estimate, self.noise)
        backwards.add(run)
        return np.array(backwards.own), backwards.full


def _added(parts: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    own, full = (np.sum(values, axis=0) for values in zip(*parts, strict=True))
    return own, full


class _Backwards:
    """Sums of products of rows that are filtered from the last sample of the last run to the first of the first.

    Each channel's rows are kept over the columns it sees. Those of all channels stand side by side: one product of them holds
    what the channels have alone and what they have in common.
    """

    def __init__(self, estimate: Estimate, noise: NoiseModel) -> None:
        self._estimate, self._noise = estimate, noise
        self._products = np.zeros((len(noise.models), len(estimate)) * 2)
        self._longest = max(response_length(model) for model in noise.models)
        self._state: list[FloatArray | None] = []
        self._continued = False

    def add(self, run: Run) -> None:
        """The run before those that were added."""
        size = self._noise.sizes(run)
        along = noise_along(run, self._estimate.sigma)
        columns = self._estimate.base.independent
        seen = [np.flatnonzero(np.isin(columns, own)) for own in compiled_rows(run.source).channel_columns]
        starts_at = {start for start, _ in run.segments} - ({0} if run.continues else set())
        for part, ends, A in run.blocks(backward=True):
            if ends and not (self._continued and part.stop == len(run)):
                self._state = [None] * len(self._noise.models)
            rows = [A[::-1, c, columns[own]] / along[part][::-1, c, np.newaxis] for c, own in enumerate(seen)]
            self._filter(seen, rows, size[part][::-1])
            if part.start in starts_at:
                # Innovations from before the recording still sound in its first samples.
                ringing = [np.zeros((self._longest, len(own))) for own in seen]
                self._filter(seen, ringing, np.repeat(size[part][:1], self._longest, axis=0))
        self._continued = run.continues

    def _filter(self, seen: list[npt.NDArray[np.intp]], rows: list[FloatArray], size: FloatArray) -> None:
        """Filters the rows of every channel, from the last sample to the first, and adds their products.

        Args:
            seen: by channel, the base parameters its rows are over.
            rows: by channel, shape [n_samples, len(seen)].
            size: of the innovations, shape [n_samples, n_channels].
        """
        wide = np.empty((sum(map(len, seen)), len(size)))
        start = 0
        for c, (model, own) in enumerate(zip(self._noise.models, rows, strict=True)):
            if model.order:
                own, self._state[c] = recursive_filter(model.coefficients, own, self._state[c])
            np.multiply(own.T, size[:, c], out=wide[start : start + own.shape[1]])
            start += own.shape[1]
        channel = np.repeat(np.arange(len(seen)), [len(own) for own in seen])
        column = np.concatenate(seen)
        self._products[channel[:, np.newaxis], column[:, np.newaxis], channel, column] += wide @ wide.T

    @property
    def own(self) -> list[FloatArray]:
        """Of every channel alone, shape [r, r] each."""
        return [self._products[c, :, c] for c in range(len(self._noise.models))]

    @property
    def full(self) -> FloatArray:
        """Of all channels with their correlations, shape [r, r]."""
        weights = self._noise.correlation + 1e-9 * np.eye(len(self._noise.models))
        return np.asarray(np.einsum("cd,cidj->ij", weights, self._products), dtype=np.float64)


def _student_factors(B: FloatArray, own: Sequence[FloatArray], freedom: FloatArray) -> FloatArray:
    """By how much to widen each deviation, shape [r]: Student's 95 % quantile over the normal one.

    Where several channels carry a parameter their degrees of freedom combine by Satterthwaite's rule.

    Args:
        B: bread.
        own: meat of every channel.
        freedom: of every channel: n gamma_0^2 / sum gamma_k^2 independent squares, from which its variance is known.
    """
    shares = np.array([np.einsum("ij,jk,ik->i", B, G, B) for G in own])
    together = shares.sum(axis=0) ** 2 / np.maximum((shares**2 / freedom[:, np.newaxis]).sum(axis=0), 1e-300)
    return np.array([student_quantile(0.975, float(f)) for f in np.clip(together, _FEWEST_FREEDOM, 1e9)]) / NORMAL_95


_FEWEST_FREEDOM = 3.0
"""Degrees of freedom a log is given at least: with fewer the quantile says nothing but that nothing is known."""


@dataclass(frozen=True, slots=True)
class BlockNoise:
    """No model of the noise: sums of scores over overlapping blocks (Bartlett kernel), [Newey1987].

    Robust to anything that forgets within a block, but the estimate is noisy when the log holds few blocks.

    Args:
        seconds: block length; None takes ten times the correlation length of the slowest channel.
    """

    seconds: float | None = None

    def apply(
        self,
        estimate: Estimate,
        runs: Sequence[Run],
        information: Information | None = None,
        *,
        earlier: Earlier | None = None,
    ) -> Estimate:
        _, rows = _all_rows(estimate, runs, information, earlier)
        B = bread(rows, estimate.sigma)
        meat = np.zeros_like(B)
        blocks = 0.0
        for run in runs:
            residuals = run.residuals(estimate.standard)
            length = self.block(run, residuals)
            for scores in _segment_scores(estimate, run, residuals):
                meat += block_meat(scores, min(length, len(scores)))
                blocks += len(scores) / length
        # Few blocks leave few degrees of freedom; the usual small-sample inflation.
        meat *= blocks / max(blocks - 1.0, 1.0)
        meat += 0.0 if earlier is None else earlier.meat(estimate)
        return estimate.with_covariance(B @ meat @ B, "block")

    def block(self, run: Run, residuals: FloatArray) -> int:
        """Block length in samples."""
        if self.seconds is not None:
            return max(round(self.seconds * run.rate), 1)
        pieces = [[residuals[start:stop, c] for start, stop in run.segments] for c in range(len(run.channels))]
        lengths = [fit_autoregression(piece, max_order=24).correlation_length() for piece in pieces]
        return int(np.clip(10.0 * max(lengths), 1, max(len(run) // 10, 1)))


def _segment_scores(estimate: Estimate, run: Run, residuals: FloatArray) -> list[FloatArray]:
    """Per segment, sum over channels of A^T W r at every sample, shape [n, r]."""
    weight = noise_along(run, estimate.sigma) ** -2
    parts: list[list[FloatArray]] = []
    for part, starts, A in run.blocks():
        if starts:
            parts.append([])
        parts[-1].append(np.einsum("ncr,nc->nr", A[:, :, estimate.base.independent], residuals[part] * weight[part]))
    return [np.vstack(part) for part in parts]


def block_meat(scores: FloatArray, length: int) -> FloatArray:
    """Sum over lags of (1 - |k| / L) s_t s_(t+k)^T, as overlapping block sums divided by L."""
    padded = np.vstack([np.zeros((length, scores.shape[1])), scores, np.zeros((length - 1, scores.shape[1]))])
    running = np.cumsum(padded, axis=0)
    sums = running[length:] - running[:-length]
    return sums.T @ sums / length
