"""Time between torque and motion that comes and goes: stamps of a bus that waits, buffers that fill and empty.

A delay that is one number has a column of its own. One of any other course d(t) leaves

    r = d(t) dtau/dt + noise,    so that    E[r^2] = noise^2 + s^2 (dtau/dt)^2,

with s the root mean square of d. Where torque changes fastest everything else that is left over can only add to the residuals, so
s is at most the residual over that rate there. There is no lower bound: friction, cables and ripple of the gears grow with the
rate of torque too. All of it is of held-out motion: what bodies of the training motion have taken up is not left over in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import NORMAL_95
from armid.estimation.run import Run, each_run
from armid.estimation.runs import lengths_of
from armid.identification.faults import Answer, Fault
from armid.identification.thresholds import FAULT_EXCLUDED
from armid.parameters.space import named_parameters
from armid.rows.imperfections import KINDS, Family

KIND = "jitter"

_EXPERIMENT = (
    "record torque and motion with the stamps of one clock, and compare their steps; or record a faster motion"
)

_FAST = 0.25
"""Of the samples, those at which a torque changes fastest: few enough to be fast, enough to know their mean square."""

_BLOCKS = 20
"""Stretches of motion that are left out in turn, to see what that changes."""

_LEAST = 1e-300
"""Squared rate that may be divided by."""

_LOOKED_AT = 40_000
"""Samples spread over the motion."""

_LONGEST = 1.0
"""Bound that says something [s]; with a low-pass, one period of its cut-off, over which a torque may do anything meanwhile."""


def jitter_faults(runs: Sequence[Run], standard: FloatArray) -> tuple[Fault, ...]:
    """One answer for every torque that changes; none without motion.

    Args:
        runs: held-out motion as the model predicts it.
        standard: consistent parameters.
    """
    samples = sum(lengths_of(runs)) if len(runs) else 0
    if samples < _BLOCKS:
        return ()
    look = _Changing(standard, max(1, samples // _LOOKED_AT))
    squares = np.concatenate(list(each_run(runs, look)), axis=2)
    names = runs[0].channels
    longest = min((run.smear for run in runs if run.smear > 0.0), default=_LONGEST)
    bounds = {name: _bound(*own) for name, own in zip(names, squares, strict=True) if np.any(own[0])}
    return tuple(_fault(name, high if high < min(longest, _LONGEST) else inf) for name, high in bounds.items())


@dataclass(frozen=True, eq=False)
class _Changing:
    """Squares of the rate at which every torque of the links changes, and of its residual, shape [n_channels, 2, n].

    Near reversals friction jumps, and what is left there says nothing about time.
    """

    standard: FloatArray
    stride: int

    def __call__(self, run: Run) -> FloatArray:
        residual = run.residuals(self.standard)
        links = np.array([not one.of_joint for one in named_parameters(tuple(run.source.columns))])
        smooth, rate = run.y - run.residuals(np.where(links, self.standard, 0.0)), np.zeros_like(residual)
        for start, stop in run.segments:
            if stop - start > 1:
                rate[start:stop] = np.gradient(smooth[start:stop], 1.0 / run.rate, axis=0)
        return np.stack([rate[:: self.stride].T ** 2, residual[:: self.stride].T ** 2], axis=1)


def _bound(rates: FloatArray, residuals: FloatArray) -> float:
    """Upper end of the 95 % interval of the root mean square of the delay [s].

    Args:
        rates, residuals: squared, of one torque, shape [n].
    """
    fast = rates >= np.quantile(rates, 1.0 - _FAST)
    block = (np.arange(len(rates)) * _BLOCKS // len(rates))[fast]
    left, rate = (np.bincount(block, x[fast], minlength=_BLOCKS) for x in (residuals, rates))
    without = (left.sum() - left) / np.maximum(rate.sum() - rate, _LEAST)
    spread = np.sqrt((_BLOCKS - 1) / _BLOCKS * np.sum((without - without.mean()) ** 2))
    return float(np.sqrt(left.sum() / max(rate.sum(), _LEAST) + NORMAL_95 * spread))


def _fault(name: str, high: float) -> Fault:
    """As a row of what could be wrong: up to a bound, or without one."""
    tolerance = KINDS[Family.DELAY].tolerance
    open_ = high > FAULT_EXCLUDED.value * tolerance
    return Fault(
        kind=KIND,
        joint=name,
        low=0.0,
        high=high,
        unit="s",
        tolerance=tolerance,
        answer=Answer.UNDECIDABLE if open_ else Answer.EXCLUDED,
        experiment=_EXPERIMENT if open_ else "",
    )
