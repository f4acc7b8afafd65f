"""Random effects beside base parameters: which families of imperfections pay, how large each is, and what that does to the rest.

Rows of unit noise, thinned out by the length over which their residuals hold together, are kept as one triangular factor
`[R_bb R_bz z_b; 0 R_zz z_z; 0 0 rho]` per block of time. With base parameters b free and s ~ N(0, (factor tolerance)^2)
everything is then a small linear solve: s from R_zz, b from R_bb given s, and the error on a block left out from that block's
own factor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.eliminated import Eliminated
from armid.estimation.quantiles import student_quantile

FOLDS = 5
"""Blocks of time for cross-validation inside the training motion."""

FACTORS = (0.3, 1.0, 3.0)
"""Of the base tolerance: a family is stricter, ordinary or looser than usual; beyond three times it would be no tolerance."""

PAYS = 0.985
"""A family must lower the cross-validated squared error to this share; less is within the luck of the blocks."""

RESOLVED = 0.5
"""Share of its tolerance's variance that the rows must take away from an imperfection to say that they, not the tolerance, decide
it: half of it."""

AGREE = 1.0
"""Standard errors of the mean over blocks by which the error must fall: what one block alone gains is its luck."""

CONFIDENCE = 0.975
"""With which the logarithms of the errors of blocks must fall for all chosen families together. Errors of blocks differ by
orders of magnitude where a motion is poor: a block without which a parameter is hardly known decides their sum, and says
nothing of the others."""

PRESENT = 0.2
"""Of the families that a recording could show, the share to expect before looking: recordings of five arms show one in five."""


@dataclass(frozen=True, eq=False)
class Effect:
    """A set of random effects that is chosen or left as a whole.

    Args:
        family: its name; sets of one family stand in for one another.
        columns: its places among the imperfections.
        largest: factor it may have at most.
        rival: a set that does much the same to the rows and less to the bodies; this one must pay beside it.
    """

    family: str
    columns: npt.NDArray[np.intp]
    largest: float = FACTORS[-1]
    rival: Effect | None = None


class BlockFactors:
    """Rows as one triangular factor per block of time.

    Args:
        base: number of base parameters, the first columns.
        factors: `[A Z y]` of every block as a triangular factor, rows in units of their noise, counted by independent samples.
        tolerances: of the imperfections, shape [k].
    """

    def __init__(self, base: int, factors: Sequence[FloatArray], tolerances: FloatArray) -> None:
        self.base, self.tolerances = base, tolerances
        self.factors = tuple(factors)
        self.whole = Eliminated.of(base, factors)

    @cached_property
    def _left_out(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Per block: of the others without their base parameters `Z^T Z` and `Z^T y`, shapes [n_blocks, k, k] and [n_blocks, k];
        and Gram of `[Z y]` on the block once base parameters are predicted, shape [n_blocks, k + 1, k + 1].
        """
        out = []
        for k, factor in enumerate(self.factors):
            rest = Eliminated.of(self.base, [f for i, f in enumerate(self.factors) if i != k])
            E = factor[:, self.base :] - factor[:, : self.base] @ rest.base_given
            out.append((*rest.normal, E.T @ E))
        G, h, grams = (np.array(parts) for parts in zip(*out, strict=True))
        return G, h, grams

    def crossed(self, chosen: Sequence[tuple[Effect, float]]) -> FloatArray:
        """Squared error of every block predicted by the others, in units of the noise, shape [n_blocks]."""
        columns, deviations = self._used(chosen)
        G, h, grams = self._left_out
        own = (slice(None), columns[:, np.newaxis], columns)
        scaled = G[own] * np.outer(deviations, deviations) + np.eye(len(columns))
        sizes = np.linalg.solve(scaled, (h[:, columns] * deviations)[..., np.newaxis])[..., 0] * deviations
        seen = np.append(columns, len(self.tolerances))
        v = np.column_stack([-sizes, np.ones(len(sizes))])
        return np.asarray(np.einsum("bi,bij,bj->b", v, grams[:, seen[:, np.newaxis], seen], v))

    def evidence(self, chosen: Sequence[tuple[Effect, float]]) -> float:
        """Logarithm of how much likelier these families make all rows than none does, base parameters free."""
        return self.whole.evidence(*self._used(chosen))

    def _used(self, chosen: Sequence[tuple[Effect, float]]) -> tuple[npt.NDArray[np.intp], FloatArray]:
        columns = np.concatenate([np.empty(0, dtype=np.intp), *(effect.columns for effect, _ in chosen)])
        factors = np.concatenate([np.empty(0), *(np.full(len(e.columns), f) for e, f in chosen)])
        return columns, self.tolerances[columns] * factors

    def resolution(self, effect: Effect) -> float:
        """Share of the base tolerance's variance that the rows take away, median over the family, bodies free."""
        _, covariance = self.whole.solve(effect.columns, self.tolerances[effect.columns])
        left = np.diag(covariance) / self.tolerances[effect.columns] ** 2
        return float(1.0 - np.median(left))

    def choose(self, effects: Sequence[Effect]) -> tuple[tuple[Effect, float, float], ...]:
        """Families one after the other while they pay: (effect, factor, share of the error on blocks left out that remains).

        A family pays when the error on blocks left out falls, the blocks agree that it does, and all rows together are likelier
        with it. On a poor motion many families lower the first by luck, and bodies found beside them are wrong on another one.
        So all together must lower the errors of blocks, each counting alike, beyond chance; else none is there.
        """
        chosen = self._paying(effects)
        left = self.crossed([(effect, factor) for effect, factor, _ in chosen])
        return chosen if beyond_chance(self.crossed(()), left) else ()

    def _paying(self, effects: Sequence[Effect]) -> tuple[tuple[Effect, float, float], ...]:
        """Families one after the other while they pay."""
        chosen: list[tuple[Effect, float]] = []
        shares: list[float] = []
        errors = self.crossed(())
        while True:
            taken = {effect.family for effect, _ in chosen}
            trials = [
                (self.crossed([*chosen, (effect, factor)]), (effect, factor))
                for effect in effects
                if effect.family not in taken
                for factor in FACTORS
                if factor <= effect.largest
            ]
            paying = [(left, own) for left, own in trials if self._pays(errors, left, chosen, own)]
            if not paying:
                return tuple((e, f, share) for (e, f), share in zip(chosen, shares, strict=True))
            left, own = min(paying, key=lambda pair: float(pair[0].sum()))
            chosen.append(own)
            shares.append(float(left.sum() / errors.sum()))
            errors = left

    def _pays(
        self,
        errors: FloatArray,
        left: FloatArray,
        chosen: Sequence[tuple[Effect, float]],
        own: tuple[Effect, float],
    ) -> bool:
        """Whether a family pays beside those chosen and its rival, by the errors of the blocks without and with it."""
        if not falls(errors, left):
            return False
        if self.evidence([*chosen, own]) <= self.evidence(chosen):
            return False
        rival = own[0].rival
        if rival is None or rival.family in {effect.family for effect, _ in chosen}:
            return True
        beside = [*chosen, (rival, 1.0)]
        return self._pays(self.crossed(beside), self.crossed([*beside, own]), beside, own)

    def fit(self, chosen: Sequence[tuple[Effect, float]], centre: FloatArray | None = None) -> EffectFit:
        """Sizes of the chosen imperfections with base parameters free.

        Args:
            chosen: families with their factors.
            centre: mean of the belief about every imperfection, shape [k]; zero by default.
        """
        columns, deviations = self._used(chosen)
        mean = np.zeros(len(columns)) if centre is None else centre[columns]
        s, covariance = self.whole.solve(columns, deviations, mean)
        return EffectFit(
            columns=columns,
            values=s,
            covariance=covariance,
            deviations=deviations,
            base_shift=-self.whole.base_given[:, columns],
            marginal=self.whole.marginal(columns, deviations, mean),
        )

    def solution(self, chosen: Sequence[tuple[Effect, float]]) -> tuple[FloatArray, FloatArray]:
        """Base parameters, free, and the sizes of all imperfections, those not chosen at zero, shapes [r] and [k]."""
        columns, deviations = self._used(chosen)
        sizes = np.zeros(len(self.tolerances))
        sizes[columns], _ = self.whole.solve(columns, deviations)
        given = self.whole.base_given
        return given[:, -1] - given[:, :-1] @ sizes, sizes

    def hidden(
        self, effects: Sequence[Effect], chosen: Sequence[tuple[Effect, float]], linear: FloatArray, resolved: float
    ) -> FloatArray:
        """What families that were not chosen may do to the base parameters all the same, shape [r, r].

        Estimated without sizes s that are there, base parameters are off by (G + L) s, see `widening`. With the second moments M
        of what may be there, see `moments`, their covariance grows by

            (G + L) M (G + L)^T

        Args:
            effects: all families.
            chosen: those that were, with their factors.
            linear: L of every imperfection, shape [r, k].
            resolved: as for `moments`.
        """
        beside = self.whole.beside(*self._used(chosen))
        shift = beside.base_given[:, :-1] + linear
        return np.asarray(shift @ self.moments(effects, chosen, resolved) @ shift.T)

    def moments(self, effects: Sequence[Effect], chosen: Sequence[tuple[Effect, float]], resolved: float) -> FloatArray:
        """Second moments of imperfections of families that were not chosen, shape [k, k].

        Not to pay is no proof of absence. By the likelihood of the rows each family is there with some probability p (`PRESENT`
        beforehand, with any factor alike), and if it is there its sizes s are known to s' +- S beside those chosen:

            M = sum of p (S + s' s'^T)

        A family that the rows rule out adds nothing; directions of it that they cannot tell from bodies stay out, as they do for
        those chosen.

        Args:
            effects: all families.
            chosen: those that were, with their factors.
            resolved: information about a direction, in units of its tolerance, below which it stays out.
        """
        beside = self.whole.beside(*self._used(chosen))
        taken = {effect.family for effect, _ in chosen}
        out = np.zeros((len(self.tolerances), len(self.tolerances)))
        for effect in effects:
            if effect.family in taken:
                continue
            factors = [factor for factor in FACTORS if factor <= effect.largest]
            deviations = [self.tolerances[effect.columns] * factor for factor in factors]
            log_odds = np.array([beside.evidence(effect.columns, d) for d in deviations]) + log(
                PRESENT / (1.0 - PRESENT) / len(factors)
            )
            shares = np.exp(log_odds - np.logaddexp.reduce(np.append(log_odds, 0.0)))
            for share, d in zip(shares, deviations, strict=True):
                root = beside.second_moment(effect.columns, d, resolved)
                out[np.ix_(effect.columns, effect.columns)] += share * root @ root.T
        return out

    def alone(self, column: int) -> tuple[float, float, float]:
        """One imperfection without any belief: its size, its deviation, and the squared error it takes away."""
        return self.whole.alone(column)


def left_over(factor: FloatArray, values: FloatArray, sizes: FloatArray) -> FloatArray:
    """What base parameters and sizes of all imperfections leave of the rows of a factor."""
    b = len(values)
    return np.asarray(factor[:, -1] - factor[:, :b] @ values - factor[:, b:-1] @ sizes)


def falls(errors: FloatArray, left: FloatArray) -> bool:
    """Whether squared errors of blocks fall by enough to pay, and blocks agree that they do.

    Args:
        errors, left: without and with something, shape [n_blocks].
    """
    fall = errors - left
    agree = AGREE * float(np.std(fall, ddof=1)) / np.sqrt(len(fall)) if len(fall) > 1 else 0.0
    return bool(left.sum() <= PAYS * errors.sum() and fall.mean() > agree)


def beyond_chance(errors: FloatArray, left: FloatArray) -> bool:
    """Whether the logarithms of squared errors of blocks fall beyond chance, by Student's distribution over the blocks.

    Args:
        errors, left: without and with something, shape [n_blocks].
    """
    fall = np.log(np.maximum(errors, 1e-300) / np.maximum(left, 1e-300))
    if len(fall) < 2:
        return True
    chance = student_quantile(CONFIDENCE, len(fall) - 1.0) * float(np.std(fall, ddof=1)) / np.sqrt(len(fall))
    return bool(fall.mean() > chance)


@dataclass(frozen=True, eq=False, kw_only=True)
class EffectFit:
    """Imperfections of chosen families.

    Args:
        columns: their places, shape [m].
        values: sizes, shape [m].
        covariance: marginal over the base parameters, shape [m, m].
        deviations: tolerance times factor, shape [m].
        base_shift: d(base parameters)/d(size) at the optimum, shape [r, m].
        marginal: `[R z]` over the base parameters, imperfections integrated out, shape [r + m, r + 1].
    """

    columns: npt.NDArray[np.intp]
    values: FloatArray
    covariance: FloatArray
    deviations: FloatArray
    base_shift: FloatArray
    marginal: FloatArray


def widening(shift: FloatArray, linear: FloatArray, covariance: FloatArray, sizes: FloatArray) -> FloatArray:
    """What imperfections add to the covariance of the base parameters, shape [r, r].

    A shape of friction enters without the linear friction in it, so that with true sizes s the rows are A (b + L s) + Z s. The
    estimate beside estimated sizes s' is b' = g - G s', and its error

        b' - b = (G + L) (s - s') + L s'

    The first part is chance. The second is not: linear friction keeps its share of the shape, because without the shape it
    predicts best so. Its square is counted as variance, shape by shape: shapes stand in for one another, and what two of opposite
    sign seem to cancel the truth need not.

    Args:
        shift: G, shape [r, m].
        linear: L, shape [r, m].
        covariance: of the sizes, shape [m, m].
        sizes: s', shape [m].
    """
    chance, kept = shift + linear, linear * sizes
    return np.asarray(chance @ covariance @ chance.T + kept @ kept.T)


def block_spreads(base: int, factors: Sequence[FloatArray], belief: FloatArray) -> FloatArray:
    """Deviation of every imperfection alone, from what leaving out each block of time changes (the jackknife), shape [k].

    Formulas take the model for true and its noise for the same everywhere. Where the model lacks something, its error changes
    from one stretch of the motion to the next, and so does the imperfection that would make up for it.

    Args:
        base: number of columns before the imperfections.
        factors: `[A Z y]` of every block as a triangular factor.
        belief: rows `[A Z y]` of what is believed, kept with every block left out.
    """
    grams = [factor.T @ factor for factor in factors]
    known = belief.T @ belief
    total = sum(grams, known)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(total), 1e-300))
    sizes = np.array([_sizes_alone(base, (total - gram) * np.outer(scale, scale)) for gram in grams])
    count = len(grams)
    spread = np.sqrt((count - 1) / count * np.sum((sizes - sizes.mean(axis=0)) ** 2, axis=0))
    return np.asarray(spread * scale[base:-1] / scale[-1])


def _sizes_alone(base: int, gram: FloatArray) -> FloatArray:
    """Size of every imperfection alone from a Gram matrix of scaled columns `[A Z y]`; zero where it is not seen."""
    A = gram[:base, :base] + 1e-12 * np.eye(base)
    L = np.linalg.cholesky(A)
    W = np.linalg.solve(L, gram[:base, base:])
    own = np.diag(gram)[base:-1] - np.sum(W[:, :-1] ** 2, axis=0)
    with_y = gram[base:-1, -1] - W[:, :-1].T @ W[:, -1]
    seen = own > 1e-9
    return np.where(seen, with_y / np.where(seen, own, 1.0), 0.0)


def correlation_length(residuals: FloatArray, most: int = 200) -> float:
    """1 + 2 sum of the autocorrelation up to its first zero: how many samples tell as much as one independent one."""
    r = residuals - residuals.mean()
    energy = float(r @ r)
    if energy <= 0.0 or len(r) < 8:
        return 1.0
    rho = np.array([float(r[k:] @ r[: len(r) - k]) / energy for k in range(min(most, len(r) // 4))])
    below = np.flatnonzero(rho < 0.0)
    end = int(below[0]) if len(below) else len(rho)
    return float(1.0 + 2.0 * rho[1:end].sum())


def median_length(found: Sequence[tuple[Sequence[float], int]]) -> float:
    """Median over channels of the correlation length, each the mean over runs weighted by their samples.

    Args:
        found: of every run, correlation lengths by channel and samples.
    """
    return float(np.median(channel_lengths(found)))


def channel_lengths(found: Sequence[tuple[Sequence[float], int]]) -> FloatArray:
    """Correlation length of every channel: the mean over runs weighted by their samples, shape [n_channels].

    Args:
        found: as for `median_length`.
    """
    lengths, weights = np.array([own for own, _ in found]), np.array([count for _, count in found], dtype=np.float64)
    return np.asarray(np.average(lengths, axis=0, weights=weights))


def median_correlation(residuals: Sequence[FloatArray], names: Mapping[int, str] | None = None) -> float:
    """The same of residuals, by run."""
    return median_length([([correlation_length(column) for column in run.T], len(run)) for run in residuals])
