"""Time between torque and motion that comes and goes: stamps of a bus that waits, buffers that fill and empty.

A delay that is one number has a column of its own. One of any other course d(t) leaves

    r = d(t) dtau/dt + noise,    so that    E[r^2] = noise^2 + s^2 (dtau/dt)^2,

with s the root mean square of d: residuals grow with the rate at which torque changes. Where it changes fastest everything else
that is left over can only add to them, so s is at most the residual over that rate there; at least it is what they grow by.
Both are of held-out motion: what bodies of the training motion have taken up is not left over in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

_LOOKED_AT = 40_000
"""Samples spread over the motion."""


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
    return tuple(_fault(name, *own) for name, own in zip(names, squares, strict=True) if np.any(own[0]))


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


def _fault(name: str, rates: FloatArray, residuals: FloatArray) -> Fault:
    fast = rates >= np.quantile(rates, 1.0 - _FAST)
    block = np.arange(len(rates)) * _BLOCKS // len(rates)
    sums = np.array(
        [np.bincount(block[part], x[part], minlength=_BLOCKS) for part in (fast, ~fast) for x in (rates, residuals)]
    )
    counts = np.array([np.bincount(block[part], minlength=_BLOCKS) for part in (fast, ~fast)])
    most, grown = _variances(sums.sum(axis=1), counts.sum(axis=1))
    without = np.array([_variances(sums.sum(axis=1) - s, counts.sum(axis=1) - c) for s, c in zip(sums.T, counts.T)])
    spread = np.sqrt((_BLOCKS - 1) / _BLOCKS * np.sum((without - without.mean(axis=0)) ** 2, axis=0))
    high = float(np.sqrt(most + NORMAL_95 * spread[0]))
    low = min(float(np.sqrt(max(grown - NORMAL_95 * spread[1], 0.0))), high)
    tolerance = KINDS[Family.DELAY].tolerance
    open_ = high > FAULT_EXCLUDED.value * tolerance
    return Fault(
        kind=KIND,
        joint=name,
        estimate=min(float(np.sqrt(max(grown, 0.0))), high),
        standard_deviation=(high - low) / (2.0 * NORMAL_95),
        low=low,
        high=high,
        unit="s",
        tolerance=tolerance,
        answer=Answer.UNDECIDABLE if open_ else Answer.EXCLUDED,
        experiment=_EXPERIMENT if open_ else "",
    )


def _variances(sums: FloatArray, counts: FloatArray) -> tuple[float, float]:
    """Largest mean square of the delay [s^2], and what residuals grow by where torque changes faster.

    Args:
        sums: of squared rates and residuals, of fast samples and then of the others.
        counts: of samples, likewise.
    """
    fast_rate, fast_left, rate, left = sums / np.repeat(np.maximum(counts, 1), 2)
    return fast_left / max(fast_rate, 1e-300), (fast_left - left) / max(fast_rate - rate, 1e-300)
