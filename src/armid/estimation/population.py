"""Arms of one kind as a population: mean and spread of every base parameter, exact and linear-Gaussian on Information.

Arm i has base parameters b_i drawn from N(mu, S), S diagonal, and its recordings say `L_i b_i = l_i` with unit noise, that is a
precision matrix `P_i = L_i^T L_i` and a vector `h_i = L_i^T l_i`. Given S everything is Gaussian and in closed form,

    V_i = (P_i + S^-1)^-1                       each arm, given the mean
    C   = (sum_i S^-1 - S^-1 V_i S^-1)^-1       of the mean
    mu  = C sum_i S^-1 V_i h_i

and S maximises the restricted likelihood, found by expectation and maximisation: every step is
`s_k^2 = mean_i E[(b_i - mu)_k^2]`. An arm that determines little is pulled to the mean, one that determines much hardly at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.documents import read_json, restored, write_json
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.identifiability.base import BaseParameters
from armid.information.information import ChannelInformation, Information, triangular

POPULATION_FILE = "population.json"
"""In the folder of a fleet."""
_SCHEMA = "armid.population/1"
_WHAT = "the population of a fleet, as `armid fleet` writes it"
_STEPS = 400
_SETTLED = 1e-3
"""Relative change of the spreads at which the search ends: a hundredth of what 50 arms tell about a spread."""
_SMALLEST = 1e-9
"""Of a parameter's size: a spread below it is none, and its inverse would not be a number any more."""
FEWEST_ARMS = 3
"""With fewer a spread is a guess."""


@dataclass(frozen=True, eq=False)
class Told:
    """What one arm's recordings say about the base parameters.

    Args:
        precision: P, shape [r, r]; singular where they say nothing.
        vector: P times the values, shape [r].
    """

    precision: FloatArray
    vector: FloatArray

    def __add__(self, other: Told) -> Told:
        return Told(self.precision + other.precision, self.vector + other.vector)


@dataclass(frozen=True, eq=False, kw_only=True)
class Population:
    """Mean and spread of the base parameters of arms of one kind.

    Args:
        names, units: of the base parameters.
        mean: shape [r].
        covariance: of the mean, shape [r, r].
        spread: standard deviation from arm to arm, shape [r].
        doubt: standard deviation of the squared spread, which few arms hardly tell, shape [r].
        arms: how many it was learned from.
        robot: name of the description.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    mean: FloatArray
    covariance: FloatArray
    spread: FloatArray
    doubt: FloatArray
    arms: int
    robot: str = ""

    def __post_init__(self) -> None:
        for name in ("mean", "covariance", "spread", "doubt"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def deviations(self) -> FloatArray:
        """Standard deviation of the mean, shape [r]."""
        return np.sqrt(np.diag(self.covariance))

    def spread_interval(self) -> tuple[FloatArray, FloatArray]:
        """Of every spread, 95 %: lower and upper end, shape [r] each; from zero where the arms may be all alike."""
        from scipy.stats import chi2

        # Of the variance v of what arms differ by and what their recordings leave open, which f squares tell: its deviation is
        # v sqrt(2 / f), and f times the one found over the true one is chi-squared. It is never less than the spread itself, also
        # where a file of an earlier version does not say the doubt.
        freedom = self.arms - 1.0
        whole = np.maximum(self.doubt * np.sqrt(freedom / 2.0), self.spread**2)
        noise = whole - self.spread**2
        low, high = (whole * freedom / chi2.ppf(share, freedom) - noise for share in (0.975, 0.025))
        return np.sqrt(np.maximum(low, 0.0)), np.sqrt(np.maximum(high, 0.0))

    def told(self) -> Told:
        """What the population says about an arm that it has not seen: its mean, with spread and doubt of both.

        The squared spread is taken larger than is likeliest. One taken too large leaves a little of what the others could tell;
        one taken too small, as that of a few arms is half of the time, overrules an arm's own recordings.
        """
        squared = self.spread**2 + _deviations_added(self.arms) * self.doubt
        precision = np.linalg.inv(np.diag(squared) + self.covariance)
        precision = 0.5 * (precision + precision.T)
        return Told(precision, precision @ self.mean)

    def rows(self, base: BaseParameters) -> Information:
        """The same as rows of unit noise over the standard parameters.

        Raises:
            InputError: about other parameters.
        """
        self.check(base.names)
        root = np.linalg.cholesky(self.told().precision).T
        factor = triangular(np.column_stack([root @ base.projection, root @ self.mean]))
        every = np.arange(len(base.parameters))
        channel = ChannelInformation("population", every, factor, float(len(self.names)))
        return Information(base.parameters, (channel,), "population")

    def check(self, names: Sequence[str]) -> None:
        """Refuses parameters of another arm or model.

        Raises:
            InputError: says how many differ.
        """
        other = sorted(set(names) ^ set(self.names))
        if tuple(names) != self.names:
            raise InputError(
                "--prior",
                f"the fleet of {self.arms} arms {self.robot} has other base parameters ({len(other)} differ: "
                f"{', '.join(other[:3])})",
                "use the same description and effects as the fleet",
            )

    def without(self, told: Told, arms: Sequence[Told]) -> Population:
        """The population learned from all arms but one, for a test on that one; spreads are kept."""
        rest = [one for one in arms if one is not told]
        mean, covariance = _mean_given(rest, self.spread)
        return replace(self, mean=mean, covariance=covariance, arms=len(rest))

    def save(self, folder: str | Path) -> Path:
        """Writes `population.json`."""
        return write_json(Path(folder) / POPULATION_FILE, self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """As stored."""
        return {
            "schema": _SCHEMA,
            "robot": self.robot,
            "arms": self.arms,
            "names": list(self.names),
            "units": list(self.units),
            "mean": self.mean.tolist(),
            "spread": self.spread.tolist(),
            "doubt": self.doubt.tolist(),
            "covariance": self.covariance.tolist(),
        }


def is_population(path: str | Path) -> bool:
    """Whether a path is the folder of a fleet, or its file of the population."""
    path = Path(path)
    return path.name == POPULATION_FILE or (path / POPULATION_FILE).is_file()


def load_population(path: str | Path) -> Population:
    """Reads what `Population.save` wrote.

    Raises:
        InputError: missing, damaged, or something else.
    """
    path = Path(path)
    path = path / POPULATION_FILE if path.is_dir() else path
    found: Population = restored(path, read_json(path, _WHAT, schema=_SCHEMA), _decoded, _WHAT)
    r = len(found.names)
    if not (
        found.mean.shape == found.spread.shape == found.doubt.shape == (r,)
        and found.covariance.shape == (r, r)
        and len(found.units) == r
        and all(np.isfinite(part).all() for part in (found.mean, found.spread, found.doubt, found.covariance))
        and (found.spread > 0.0).all()
        and (found.doubt >= 0.0).all()
    ):
        raise InputError(path, "arrays that do not fit together", f"expected {_WHAT}")
    return found


def _decoded(value: Mapping[str, Any]) -> Population:
    return Population(
        names=tuple(map(str, value["names"])),
        units=tuple(map(str, value["units"])),
        mean=np.array(value["mean"], dtype=float),
        covariance=np.array(value["covariance"], dtype=float),
        spread=np.array(value["spread"], dtype=float),
        # Files of earlier versions do not say it.
        doubt=np.array(value.get("doubt", [0.0] * len(value["spread"])), dtype=float),
        arms=int(value["arms"]),
        robot=str(value["robot"]),
    )


def told_by(values: FloatArray, covariance: FloatArray) -> Told:
    """What estimated values say, shape [r], by their covariance, shape [r, r]."""
    C = covariance
    size = np.sqrt(np.maximum(np.diag(C), 1e-300))
    precision = np.linalg.inv(C / np.outer(size, size) + 1e-12 * np.eye(len(C))) / np.outer(size, size)
    precision = 0.5 * (precision + precision.T)
    return Told(precision, precision @ values)


def told_by_rows(rows: Information, base: BaseParameters) -> Told:
    """What rows of unit noise say about base parameters, whether they determine them or not."""
    factor = rows.select(base.independent).stacked()
    R, z = factor[:, :-1], factor[:, -1]
    return Told(R.T @ R, R.T @ z)


def fit_population(
    arms: Sequence[Told], names: Sequence[str], units: Sequence[str] = (), *, robot: str = ""
) -> Population:
    """Mean and spread of a population by restricted maximum likelihood.

    Args:
        arms: what is told about each.
        names, units: of the base parameters.
        robot: name of the description.

    Raises:
        InputError: fewer arms than a spread can be told from, or a parameter that no arm determines.
    """
    if len(arms) < FEWEST_ARMS:
        raise InputError("fleet", f"{len(arms)} arms", f"a spread needs at least {FEWEST_ARMS}")
    size = _sizes(arms, names)
    scaled = [Told(one.precision * np.outer(size, size), one.vector * size) for one in arms]
    spread = np.ones(len(size))
    for _ in range(_STEPS):
        fresh = np.maximum(_next_spread(scaled, spread), _SMALLEST)
        change = float(np.max(np.abs(fresh - spread) / np.maximum(spread, 1e-3)))
        spread = fresh
        if change < _SETTLED:
            break
    mean, covariance = _mean_given(scaled, spread)
    doubt = _doubt(scaled, spread)
    return Population(
        names=tuple(names),
        units=tuple(units) or ("",) * len(size),
        mean=mean * size,
        covariance=covariance * np.outer(size, size),
        spread=spread * size,
        doubt=doubt * size**2,
        arms=len(arms),
        robot=robot,
    )


def _sizes(arms: Sequence[Told], names: Sequence[str]) -> FloatArray:
    """Unit of every parameter: how much the arms' own values differ, and at least what one of them leaves open."""
    values, deviations = [], []
    for one in arms:
        d = np.sqrt(np.maximum(np.diag(one.precision), 1e-300))
        inverse = np.linalg.pinv(one.precision / np.outer(d, d), rcond=1e-12, hermitian=True) / np.outer(d, d)
        values.append(inverse @ one.vector)
        deviations.append(np.sqrt(np.maximum(np.diag(inverse), 0.0)))
    size = np.std(values, axis=0) + np.median(deviations, axis=0)
    never = [name for name, s in zip(names, size, strict=True) if not (np.isfinite(s) and 0.0 < s < 1e100)]
    if never:
        raise InputError("fleet", f"no arm determines {', '.join(never[:3])}", "record more exciting motion")
    return size


def _mean_given(arms: Sequence[Told], spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of the population and its covariance for given spreads."""
    w = spread**-2
    total, vector = np.zeros((len(w), len(w))), np.zeros(len(w))
    for one in arms:
        V = np.linalg.inv(one.precision + np.diag(w))
        total += np.diag(w) - w[:, np.newaxis] * V * w
        vector += w * (V @ one.vector)
    covariance = np.linalg.inv(0.5 * (total + total.T))
    return covariance @ vector, 0.5 * (covariance + covariance.T)


def _next_spread(arms: Sequence[Told], spread: FloatArray) -> FloatArray:
    """One step of expectation and maximisation."""
    w = spread**-2
    mean, covariance = _mean_given(arms, spread)
    energy = np.zeros(len(w))
    for one in arms:
        V = np.linalg.inv(one.precision + np.diag(w))
        apart = V @ (one.vector + w * mean) - mean
        lever = V * w - np.eye(len(w))
        energy += apart**2 + np.diag(V) + np.einsum("ij,jk,ik->i", lever, covariance, lever)
    return np.sqrt(np.maximum(energy / len(arms), 0.0))


def _deviations_added(arms: int) -> float:
    """By how many deviations the squared spread is taken larger for an arm that is not among those it was learned from.

    A variance v that is told by f squares has the deviation v sqrt(2 / f), and one over it is f / (f - 2) times too large in
    the mean: an arm is pulled by as much as is right in the mean (as of James and Stein) with sqrt(2 f) / (f - 2) deviations
    more. That is less than one from seven arms on; one is kept, so that intervals hold.
    """
    freedom = arms - 1.0
    return max(1.0, float(np.sqrt(2.0 * freedom)) / max(freedom - 2.0, 0.5))


def _doubt(arms: Sequence[Told], spread: FloatArray) -> FloatArray:
    """Standard deviation of every squared spread by its Fisher information, `sum_i (W_i)_kk^2 / 2`, less what the mean takes.

    W_i is the precision of arm i about the mean, its recordings and the spread together: `(P_i^-1 + S)^-1`.
    """
    known = np.zeros(len(spread))
    for one in arms:
        V = np.linalg.inv(one.precision + np.diag(spread**-2))
        W = one.precision - one.precision @ V @ one.precision
        known += 0.5 * np.maximum(np.diag(W), 0.0) ** 2
    return np.asarray((known * (len(arms) - 1) / len(arms)) ** -0.5)


@dataclass(frozen=True, eq=False)
class Shrunk:
    """An arm as the population and its own recordings together have it: values [r] and covariance [r, r]."""

    values: FloatArray
    covariance: FloatArray


def shrunk(told: Told, population: Population) -> Shrunk:
    """An arm's own recordings and the population together; exact for Gaussian noise and spread."""
    both = told + population.told()
    size = 1.0 / np.sqrt(np.diag(both.precision))
    covariance = np.linalg.inv(both.precision * np.outer(size, size)) * np.outer(size, size)
    return Shrunk(covariance @ both.vector, 0.5 * (covariance + covariance.T))


def informed(
    estimate: Estimate, rows: Information, base: BaseParameters, units: tuple[str, ...], population: Population
) -> Estimate:
    """An estimate of all base parameters from rows and a population.

    Args:
        estimate: of the rows alone, perhaps of fewer parameters.
        rows: of unit noise, over the standard parameters.
        base: every parameter that a perfect motion would determine.
        units: of them.
        population: of the same parameters.
    """
    population.check(base.names)
    found = shrunk(told_by_rows(rows, base), population)
    method = f"{estimate.method}, with the population of {population.arms} arms"
    return replace(estimate, base=base, units=units, values=found.values, covariance=found.covariance, method=method)
