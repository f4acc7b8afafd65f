"""Essential parameters: backward elimination by a stated test, by hand, or both, with the cost of every removal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from math import erfc, log, sqrt

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.estimation.estimate import Estimate
from armid.information.information import Information
from armid.information.solve import channel_energies, reduced, solve
from armid.notes import Note, Severity


class Rule(StrEnum):
    """When a parameter may go."""

    SIGNIFICANCE = "significance"
    """Its F statistic is not significant at the stated level."""
    BIC = "bic"
    """The Bayesian information criterion falls without it: F below the logarithm of the number of independent rows."""
    HAND = "hand"
    """Only what is named to be dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One step of the elimination.

    Args:
        name: base parameter taken out.
        statistic: its F statistic (squared t) against the noise, autocorrelation included.
        p_value: of that statistic.
        bic_change: of the Bayesian information criterion by the removal; negative is an improvement.
        held_out_error: weighted root mean square error on the held-out motion after the removal, 1 = before any.
    """

    name: str
    statistic: float
    p_value: float
    bic_change: float
    held_out_error: float


@dataclass(frozen=True, eq=False)
class EssentialParameters:
    """What is left after the elimination.

    Args:
        estimate: same base parameters; those eliminated are exactly zero, with zero covariance.
        kept: indices into the base parameters.
        removals: in order.
        stopped: why it ended.
    """

    estimate: Estimate
    kept: npt.NDArray[np.intp]
    removals: tuple[Removal, ...]
    stopped: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.estimate.names[i] for i in self.kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardElimination:
    """Removes the base parameter with the smallest F statistic while the rule says so and held-out error stays.

    The statistic uses the estimate's covariance relative to its independent-noise one, so correlated residuals do not
    make everything look significant.

    Args:
        level: a parameter stays when its p value is below this, under the rule of significance.
        largest_cost: stop when held-out error would exceed this multiple of the full model's.
        rule: when a parameter may go.
        keep: base parameters that stay whatever the rule says, by name or pattern (`joint*.offset`).
        drop: base parameters that go first whatever the rule says, in this order; each is priced like the others.
    """

    level: float = 0.05
    largest_cost: float = 1.02
    rule: Rule = Rule.SIGNIFICANCE
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def fit(
        self, information: Information, estimate: Estimate, held_out: Information | None = None
    ) -> EssentialParameters:
        """Args:
        information: the rows the estimate was fitted to.
        estimate: with an honest covariance.
        held_out: another motion, to price the removals; the training rows price themselves when none is given.
        """
        weights = {name: 1.0 / sigma for name, sigma in estimate.sigma.items()}
        rows = reduced(information, estimate.base)
        weighted = rows.weighted(weights)
        test = reduced(held_out, estimate.base).weighted(weights) if held_out is not None else weighted
        inflation = _covariance_inflation(estimate, solve(weighted).inverse)
        independent = log(max(rows.count / float(np.median(inflation)) ** 2, 2.0))
        full = error(test, estimate.values)
        kept, removals, stopped = list(range(len(estimate))), [], "nothing left to remove"
        values, inverse = estimate.values, estimate.covariance
        stay, go = _named(self.keep, estimate.names), _named(self.drop, estimate.names)
        if set(stay) & set(go):
            both = estimate.names[next(k for k in go if k in stay)]
            raise InputError("essential parameters", f"{both} is to be kept and to be dropped", "name it once")
        while len(kept) > 1:
            F = values[kept] ** 2 / (np.diag(inverse))
            free = [i for i, k in enumerate(kept) if k not in stay]
            if not (go or free):
                stopped = "everything left is to be kept"
                break
            asked = bool(go)
            weakest = kept.index(go.pop(0)) if asked else min(free, key=lambda i: F[i])
            statistic = float(F[weakest])
            p = erfc(sqrt(0.5 * statistic))
            if not asked and not self.may_go(p, statistic - independent):
                stopped = self.reason(statistic, independent)
                break
            trial = [k for i, k in enumerate(kept) if i != weakest]
            solution = solve(weighted.select(trial))
            fresh = np.zeros(len(estimate))
            fresh[trial] = solution.values
            cost = error(test, fresh) / full
            if not asked and cost > self.largest_cost:
                stopped = f"without {estimate.names[kept[weakest]]} the held-out error would be {cost:.3f} times the full model's"
                break
            removals.append(
                Removal(
                    name=estimate.names[kept[weakest]],
                    statistic=statistic,
                    p_value=p,
                    bic_change=statistic - independent,
                    held_out_error=cost,
                )
            )
            kept, values = trial, fresh
            inverse = solution.inverse * np.outer(inflation[trial], inflation[trial])
        return self.finished(estimate, rows, kept, values, inverse, tuple(removals), stopped)

    def may_go(self, p: float, bic_change: float) -> bool:
        """Whether the rule lets a parameter go."""
        if self.rule is Rule.HAND:
            return False
        return bic_change < 0.0 if self.rule is Rule.BIC else p >= self.level

    def reason(self, statistic: float, independent: float) -> str:
        """Why the rule kept the weakest that is left."""
        if self.rule is Rule.HAND:
            return "the others were chosen by hand"
        if self.rule is Rule.BIC:
            return f"the information criterion rises without any of the rest (smallest F {statistic:.2f} of {independent:.2f})"
        return f"every remaining parameter is significant at {self.level:g} (smallest F {statistic:.2f})"

    def finished(
        self,
        estimate: Estimate,
        rows: Information,
        kept: list[int],
        values: FloatArray,
        inverse: FloatArray,
        removals: tuple[Removal, ...],
        stopped: str,
    ) -> EssentialParameters:
        """The estimate over all base parameters with zeros where they were removed."""
        covariance = np.zeros((len(estimate), len(estimate)))
        covariance[np.ix_(kept, kept)] = inverse
        energies = channel_energies(rows, values)
        sigma: Mapping[str, float] = {
            c.name: float(np.sqrt(energies[c.name] / max(c.count - 1.0, 1.0))) for c in rows.channels
        }
        note = Note(
            "essential", Severity.INFO, f"{len(kept)} of {len(estimate)} base parameters are essential: {stopped}"
        )
        result = replace(
            estimate,
            values=values,
            covariance=covariance,
            sigma=sigma,
            method=f"{estimate.method}, essential parameters",
            notes=(*estimate.notes, note),
        )
        return EssentialParameters(result, np.array(kept, dtype=np.intp), removals, stopped)


def _named(patterns: Sequence[str], names: Sequence[str]) -> list[int]:
    """Places of the names that patterns stand for, in the order of the patterns.

    Raises:
        UnknownNameError: a pattern that stands for none.
    """
    found: dict[int, None] = {}
    for pattern in patterns:
        places = [k for k, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not places:
            raise UnknownNameError("base parameter", pattern, names)
        found |= dict.fromkeys(places)
    return list(found)


def _covariance_inflation(estimate: Estimate, independent: FloatArray) -> FloatArray:
    """Standard deviations of the estimate over those of independent noise, shape [r]."""
    return np.sqrt(np.maximum(np.diag(estimate.covariance), 1e-300) / np.maximum(np.diag(independent), 1e-300))


def error(information: Information, values: FloatArray) -> float:
    """Root mean square of weighted residuals."""
    return float(np.sqrt(sum(c.error_energy(values) for c in information.channels) / max(information.count, 1.0)))
