"""Ordinary and weighted least squares, ridge and Gaussian prior, torque-error model: all on the Information alone.

Each is a frozen setting whose `fit` takes Information over the standard parameters and the base parameters to estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.estimation.reversals import class_names
from armid.identifiability.base import BaseParameters
from armid.information.information import ChannelInformation, Information
from armid.information.solve import Solution, belief, channel_sigmas, reduced, solve, solve_factor
from armid.information.status import Status
from armid.information.weighing import ChannelResiduals, Weighing
from armid.notes import Note, Severity

_SAMPLES_PER_PERIOD = 10.0
"""Conditioned torque keeps about ten samples per period of the cut-off, of which one is independent of its neighbours."""
_TINY_SIGMA = 1e-9
"""Relative to the measured size: a channel fitted better than this (noise-free simulation) must not get infinite weight."""


@dataclass(frozen=True, eq=False)
class GaussianPrior:
    """A belief about base parameters before the data.

    Args:
        values: centre, shape [r].
        root: upper-triangular S with S^T S = inverse covariance, shape [r, r].
        origin: where it comes from, for the record.
    """

    values: FloatArray
    root: FloatArray
    origin: str = ""

    @staticmethod
    def independent(values: FloatArray, standard_deviations: FloatArray, origin: str = "") -> GaussianPrior:
        """Independent beliefs; an infinite deviation means none."""
        return GaussianPrior(np.asarray(values), np.diag(1.0 / np.asarray(standard_deviations)), origin)

    @staticmethod
    def from_estimate(estimate: Estimate, *, inflation: float = 1.0) -> GaussianPrior:
        """An earlier estimate as a prior; `inflation` widens its standard deviations (wear, temperature, another day)."""
        root = np.linalg.cholesky(np.linalg.inv(estimate.covariance)).T / inflation
        return GaussianPrior(estimate.values, root, f"earlier estimate ({estimate.method})")

    def information(self, names: tuple[str, ...]) -> Information:
        """The belief as rows over the named parameters."""
        return belief(names, self.values, self.root)


@dataclass(frozen=True, slots=True)
class OrdinaryLeastSquares:
    """Every row counts the same: values minimise ||A b - y||^2; covariance sigma^2 (A^T A)^-1."""

    def fit(self, information: Information, base: BaseParameters, units: tuple[str, ...] = ()) -> Estimate:
        """The estimate with iid covariance; see `covariance` for honest ones."""
        rows = reduced(information, base)
        solution = solve(rows)
        sigma2 = solution.energy / max(rows.count - len(base), 1.0)
        sigmas = channel_sigmas(rows, solution.values, solution.inverse, {})
        return Estimate(
            base=base,
            units=units or ("",) * len(base),
            values=solution.values,
            covariance=sigma2 * solution.inverse,
            covariance_kind="iid",
            sigma=sigmas,
            method="ordinary least squares",
        )


@dataclass(frozen=True, slots=True)
class WeightedLeastSquares:
    """Every channel counts by its own noise, estimated from its residuals and iterated; [Gautier1997].

    A channel told apart into classes near its joint's reversals (`reversals`) has a noise per class, where that pays.

    Args:
        iterations: at most so many. Convergence is linear, and slow where two channels share parameters that neither sees well:
            real logs take up to thirty.
        tolerance: largest relative change of a channel's noise that counts as settled.
    """

    iterations: int = 200
    tolerance: float = 1e-4

    def fit(
        self,
        information: Information,
        base: BaseParameters,
        units: tuple[str, ...] = (),
        *,
        prior: GaussianPrior | None = None,
    ) -> Estimate:
        """The estimate with per-channel covariance."""
        rows = reduced(information, base)
        scale = _NoiseScale(rows, Weighing(rows, None if prior is None else prior.information(base.names)))
        apart = {channel.name: channel.name for channel in rows.channels}
        classes = any(channel.measured for channel in rows.channels)
        found = self._settled(scale, apart, last=not classes)
        if classes:
            found = self._settled(scale, _paying_classes(rows, found.values), found.sigmas)
        assert found.solution is not None
        notes = (
            () if found.status is Status.SOLVED else (Note("not-converged", Severity.WARNING, found.status.message),)
        )
        method = "weighted least squares" + (f" with prior: {prior.origin}" if prior else "")
        return Estimate(
            base=base,
            units=units or ("",) * len(base),
            values=found.solution.values,
            covariance=found.solution.inverse,
            covariance_kind="per-channel",
            sigma=found.sigmas,
            method=method,
            status=found.status,
            iterations=found.iterations,
            notes=notes,
        )

    def quick(self, information: Information, base: BaseParameters) -> tuple[FloatArray, dict[str, float]]:
        """Values and noise alone, as `fit` has them up to round-off: no covariance is formed, and no row is looked at again."""
        rows = reduced(information, base)
        apart = {channel.name: channel.name for channel in rows.channels}
        found = self._settled(_NoiseScale(rows, Weighing(rows)), apart, last=False)
        return found.values, found.sigmas

    def _settled(
        self,
        scale: _NoiseScale,
        groups: Mapping[str, str],
        start: Mapping[str, float] | None = None,
        *,
        last: bool = True,
    ) -> _Settled:
        """Values and noise that agree with each other.

        Args:
            scale: the rows, and how noise follows from them.
            groups: by channel, the name of those that share one noise.
            start: noise to start from, which means something beside a prior; every row alike by default, without it.
            last: whether the solution itself is wanted, from the rows; Gram matrices are enough for another start.
        """
        group = scale.groups(groups)
        sigmas = np.ones(len(scale.names)) if start is None else np.array([start[name] for name in scale.names])
        sigmas, done = self._weighed(scale, group, sigmas, trusted=start is not None)
        status, solution = Status.NOT_CONVERGED, None
        left: ChannelResiduals | None = None
        for used in range(done + 1, max(self.iterations, done + 1) + 1):
            believing = used > 1 or start is not None
            left = None if last else scale.weighing.residuals(1.0 / sigmas, believing=believing)
            if left is None:
                solution = solve_factor(scale.weighing.factor(1.0 / sigmas, believing=believing), scale.rows.parameters)
                left = scale.weighing.left(solution.values, solution.inverse, 1.0 / sigmas)
            fresh = scale.noise(left, group)
            change = float(np.max(np.abs(fresh / sigmas - 1.0)))
            sigmas = fresh
            if change < self.tolerance and used > 1:
                status = Status.SOLVED
                break
        assert left is not None
        named = dict(zip(scale.names, sigmas.tolist(), strict=True))
        return _Settled(values=left.values, solution=solution, sigmas=named, status=status, iterations=used)

    def _weighed(
        self, scale: _NoiseScale, group: npt.NDArray[np.intp], start: FloatArray, *, trusted: bool
    ) -> tuple[FloatArray, int]:
        """Noise that has settled as far as Gram matrices tell, and the iterations that took; the last one is left to the rows.

        Args:
            scale: the rows, and how noise follows from them.
            group: number of those that share one noise, by channel.
            start: noise to start from.
            trusted: whether the noise to start from means something beside a prior.
        """
        sigmas, done = start, 0
        while done < self.iterations - 1:
            left = scale.weighing.residuals(1.0 / sigmas, believing=trusted or done > 0)
            if left is None:
                break
            done += 1
            fresh = scale.noise(left, group)
            change = float(np.max(np.abs(fresh / sigmas - 1.0)))
            sigmas = fresh
            if change < self.tolerance:
                break
        return sigmas, done


class _NoiseScale:
    """Rows of the base parameters, and the noise of their channels that follows from what a solution leaves.

    Args:
        rows: see there.
        weighing: of them, with further rows of a prior.
    """

    def __init__(self, rows: Information, weighing: Weighing) -> None:
        self.rows, self.weighing = rows, weighing
        self.names = [channel.name for channel in rows.channels]
        self._counts = np.array([channel.count for channel in rows.channels])
        floor = noise_floor(rows)
        self._least = np.array([floor[name] for name in self.names])
        place = {name: k for k, name in enumerate(self.names)}
        self._far = np.array([place.get(channel.whole, k) for k, channel in enumerate(rows.channels)], dtype=np.intp)

    def groups(self, named: Mapping[str, str]) -> npt.NDArray[np.intp]:
        """Number of those that share one noise, by channel."""
        first = {group: k for k, group in enumerate(dict.fromkeys(named[name] for name in self.names))}
        return np.array([first[named[name]] for name in self.names], dtype=np.intp)

    def noise(self, left: ChannelResiduals, group: npt.NDArray[np.intp]) -> FloatArray:
        """Unbiased residual standard deviation of every channel, not below its floor: energy / (rows - leverage).

        Near its reversals a channel is never quieter than far from them. A few rows there that the parameters happen to fit
        would weigh more and more with every iteration, until they alone were fitted.
        """
        energy = np.bincount(group, left.energies)
        freedom = np.maximum(np.bincount(group, self._counts - left.leverages), 1.0)
        sigmas = np.maximum(np.sqrt(energy / freedom)[group], self._least)
        return np.maximum(sigmas, sigmas[self._far])


@dataclass(frozen=True, eq=False, kw_only=True)
class _Settled:
    """Where the iteration of weights ended; without a solution where only another start was wanted."""

    values: FloatArray
    solution: Solution | None
    sigmas: dict[str, float]
    status: Status
    iterations: int


def _paying_classes(rows: Information, values: FloatArray) -> dict[str, str]:
    """Which classes of a channel share one noise, by name of the channel: those whose own one explains the residuals no better.

    Neighbouring classes of every measured channel are joined, the least different first, until what each further joint would cost
    exceeds what one more number is worth (Bayesian information criterion over independent samples). Nearer to a reversal noise is
    never smaller: such classes are joined whatever it costs.
    """
    by_channel: dict[str, list[ChannelInformation]] = {}
    for channel in rows.channels:
        by_channel.setdefault(channel.whole, []).append(channel)
    groups: dict[str, str] = {}
    for classes in by_channel.values():
        far, *near = class_names(classes[0].whole)
        own = {c.name: c for c in classes}
        piles = [
            _Pile((name,), own[name].error_energy(values), own[name].count / _SAMPLES_PER_PERIOD)
            for name in (*near, far)
            if name in own
        ]
        for pile in _joined(piles):
            groups |= dict.fromkeys(pile.names, pile.names[-1])
    return groups


@dataclass(frozen=True, slots=True)
class _Pile:
    """Classes that share one noise: names, sum of squared residuals per sample, independent samples."""

    names: tuple[str, ...]
    energy: float
    count: float

    def __add__(self, other: _Pile) -> _Pile:
        return _Pile((*self.names, *other.names), self.energy + other.energy, self.count + other.count)

    @property
    def variance(self) -> float:
        return max(self.energy / max(self.count, 1e-300), 1e-300)

    @property
    def deviance(self) -> float:
        """Twice the negative logarithm of the likelihood, up to a constant."""
        return self.count * float(np.log(self.variance))


def _joined(piles: list[_Pile]) -> list[_Pile]:
    """Neighbours joined until every one left pays."""
    total = sum(pile.count for pile in piles)
    worth = float(np.log(max(total, np.e)))
    while len(piles) > 1:
        pairs = list(pairwise(piles))
        costs = [(a + b).deviance - a.deviance - b.deviance if a.variance > b.variance else 0.0 for a, b in pairs]
        k = int(np.argmin(costs))
        if costs[k] > worth:
            break
        piles = [*piles[:k], piles[k] + piles[k + 1], *piles[k + 2 :]]
    return piles


def noise_floor(rows: Information) -> dict[str, float]:
    """The smallest noise a channel may be given: a fraction of its measured root mean square."""
    out = {}
    for channel in rows.channels:
        energy = float(np.sum(channel.factor[:, -1] ** 2)) / max(channel.count, 1.0)
        out[channel.name] = max(_TINY_SIGMA * float(np.sqrt(energy)), 1e-300)
    return out


@dataclass(frozen=True, slots=True)
class Ridge:
    """Least squares with strength * ||(b - b0) / scale||^2 added; a Gaussian prior of deviation scale / sqrt(strength).

    Args:
        strength: dimensionless, against rows of unit noise.
    """

    strength: float = 1.0

    def fit(
        self,
        information: Information,
        base: BaseParameters,
        nominal: FloatArray,
        scale: FloatArray,
        units: tuple[str, ...] = (),
    ) -> Estimate:
        """Values pulled towards nominal ones, shape [r]; `scale` is one unit of doubt for each."""
        prior = GaussianPrior.independent(
            nominal, np.asarray(scale) / np.sqrt(self.strength), f"nominal values, strength {self.strength:g}"
        )
        return WeightedLeastSquares().fit(information, base, units, prior=prior)


@dataclass(frozen=True, slots=True)
class TorqueError:
    """The nominal torque-error model of [Khosla1985]: corrections to nominal values from the error of the nominal torque.

    y - A b0 = A (b - b0). Without a prior it equals least squares on the torque itself; with one on the corrections it is
    the natural place to say how far a robot may be from its data sheet.

    Args:
        relative_deviation: prior standard deviation of a correction relative to its nominal value; None for no prior.
        smallest: standard deviation given to corrections of parameters whose nominal value is zero [SI].
    """

    relative_deviation: float | None = None
    smallest: float = 1e-2

    def fit(
        self, information: Information, base: BaseParameters, nominal: FloatArray, units: tuple[str, ...] = ()
    ) -> Estimate:
        """Base values: nominal plus the estimated corrections; `nominal` are base values, shape [r]."""
        errors = shifted(information, base.embedding @ nominal)
        prior = None
        if self.relative_deviation is not None:
            doubt = np.maximum(self.relative_deviation * np.abs(nominal), self.smallest)
            prior = GaussianPrior.independent(
                np.zeros(len(base)), doubt, f"corrections of {self.relative_deviation:.0%}"
            )
        corrections = WeightedLeastSquares().fit(errors, base, units, prior=prior)
        return Estimate(
            base=base,
            units=corrections.units,
            values=nominal + corrections.values,
            covariance=corrections.covariance,
            covariance_kind=corrections.covariance_kind,
            sigma=corrections.sigma,
            method=f"torque-error model, {corrections.method}",
            status=corrections.status,
            iterations=corrections.iterations,
            notes=corrections.notes,
        )


def shifted(information: Information, offset: FloatArray) -> Information:
    """Information of y - A offset: the last column of every factor moves, nothing else."""
    channels = []
    for channel in information.channels:
        factor = np.array(channel.factor)
        factor[:, -1] -= factor[:, :-1] @ offset[channel.columns]
        channels.append(replace(channel, factor=factor))
    return Information(information.parameters, tuple(channels))
