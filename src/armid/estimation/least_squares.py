"""Ordinary and weighted least squares, ridge and Gaussian prior, torque-error model: all on the Information alone.

Each is a frozen setting whose `fit` takes Information over the standard parameters and the base parameters to estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.identifiability.base import BaseParameters
from armid.information.information import Information
from armid.information.solve import belief, channel_sigmas, reduced, solve
from armid.information.status import Status
from armid.notes import Note, Severity

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
        floor = noise_floor(rows)
        believed = None if prior is None else prior.information(base.names)
        sigmas = {name: 1.0 for name in floor}
        solution, status, used = None, Status.NOT_CONVERGED, 0
        for used in range(1, self.iterations + 1):
            weights = {name: 1.0 / sigma for name, sigma in sigmas.items()}
            solution = solve(rows, weights=weights, prior=believed if used > 1 else None)
            fresh = channel_sigmas(rows, solution.values, solution.inverse, weights)
            fresh = {name: max(sigma, floor[name]) for name, sigma in fresh.items()}
            change = max(abs(fresh[name] / sigmas[name] - 1.0) for name in fresh)
            sigmas = fresh
            if change < self.tolerance and used > 1:
                status = Status.SOLVED
                break
        assert solution is not None
        notes = () if status is Status.SOLVED else (Note("not-converged", Severity.WARNING, status.message),)
        method = "weighted least squares" + (f" with prior: {prior.origin}" if prior else "")
        return Estimate(
            base=base,
            units=units or ("",) * len(base),
            values=solution.values,
            covariance=solution.inverse,
            covariance_kind="per-channel",
            sigma=sigmas,
            method=method,
            status=status,
            iterations=used,
            notes=notes,
        )


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
