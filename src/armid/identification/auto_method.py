"""Weighted or robust least squares, chosen on the training motion: `--method auto`.

The training motion is cut into blocks of time and each is predicted by the others. What counts is the median of the absolute
error, which a burst in the block itself does not move: it tells how far bursts in the *other* blocks have moved the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.reversals import classed_information
from armid.estimation.robust import Huber, RobustLeastSquares
from armid.estimation.run import Run
from armid.estimation.runs import Runs, lengths_of
from armid.identifiability.base import BaseParameters
from armid.identification.settings import Method
from armid.identification.thresholds import ROBUST_CHANCE, ROBUST_PAYS
from armid.information.information import Information, total
from armid.information.status import EstimationError
from armid.notes import Note, Severity

BLOCKS = 5
"""Of time, over all training recordings together; each needs enough motion to show the parameters, and there must be several."""


@dataclass(frozen=True, eq=False)
class MethodChoice:
    """Which of the two, and why.

    Args:
        method: weighted or Huber.
        note: the reason in words.
    """

    method: Method
    note: Note


def choose_method(runs: Sequence[Run], freed: Sequence[Run], base: BaseParameters) -> MethodChoice:
    """Huber where it predicts blocks of the training motion better beyond chance, else weighted least squares.

    Args:
        runs: training motion as robust least squares would have it.
        freed: the same freed from imperfections, as weighted least squares has it.
        base: parameters that the motion determines.
    """
    try:
        ratios = _error_ratios(_blocks(runs), _blocks(freed), base)
    except EstimationError as error:
        return _chosen(Method.WEIGHTED, f"a part of the training motion does not determine the parameters ({error})")
    gain = float(ratios.mean())
    chance = float(ratios.std(ddof=1) / np.sqrt(len(ratios)))
    change = f"changes the median error of training blocks predicted by the others by {100 * np.expm1(gain):+.1f} %"
    limit = f"{100 * (1 - ROBUST_PAYS.value):.0f} % and chance"
    if gain < np.log(ROBUST_PAYS.value) and gain < -ROBUST_CHANCE.value * chance:
        return _chosen(Method.HUBER, f"not following outliers {change}; imperfections are not estimated beside it")
    return _chosen(Method.WEIGHTED, f"not following outliers {change}: no gain beyond {limit}")


def _chosen(method: Method, why: str) -> MethodChoice:
    return MethodChoice(method, Note("method-chosen", Severity.INFO, f"--method auto took {method.value}: {why}"))


def _blocks(runs: Sequence[Run]) -> tuple[Runs, ...]:
    """Equal shares of the time of all runs together, none of it held in memory."""
    lengths = lengths_of(runs)
    ends = np.cumsum(lengths)
    edges = np.linspace(0, ends[-1], BLOCKS + 1).astype(int)
    out = []
    for first, last in pairwise(edges):
        parts = [
            (k, start, stop)
            for k, (end, length) in enumerate(zip(ends, lengths, strict=True))
            for start, stop in [(max(first - end + length, 0), min(last - end + length, length))]
            if stop > start
        ]
        out.append(_windows(runs, parts))
    return tuple(out)


def _windows(runs: Sequence[Run], parts: Sequence[tuple[int, int, int]]) -> Runs:
    """Stretches (run, start, stop) as runs of their own."""

    def load(i: int) -> Run:
        k, start, stop = parts[i]
        return runs[k].window(int(start), int(stop))

    return Runs(load, [stop - start for _, start, stop in parts])


def _joined(blocks: Sequence[Runs]) -> Runs:
    """Runs of several blocks as one sequence."""
    places = [(block, i) for block in blocks for i in range(len(block))]
    return Runs(lambda k: places[k][0][places[k][1]], [n for block in blocks for n in block.lengths])


def _error_ratios(robust: Sequence[Runs], weighted: Sequence[Runs], base: BaseParameters) -> FloatArray:
    """Logarithm of the robust over the weighted median error of every block left out, mean over channels, shape [blocks]."""
    informations: list[Information] = [classed_information(block) for block in weighted]
    out = []
    for k in range(len(robust)):
        others = total(information for i, information in enumerate(informations) if i != k)
        plain = WeightedLeastSquares().fit(others, base)
        huber = RobustLeastSquares(Huber()).fit(_joined([b for i, b in enumerate(robust) if i != k]), base).estimate
        ratio = _median_errors(robust[k], huber.standard) / _median_errors(weighted[k], plain.standard)
        out.append(float(np.mean(np.log(ratio))))
    return np.array(out)


def _median_errors(runs: Sequence[Run], standard: FloatArray) -> FloatArray:
    """Median of the absolute error of every channel, shape [n_channels]; never quite zero."""
    errors = np.abs(np.vstack([run.residuals(standard) for run in runs]))
    return np.maximum(np.median(errors, axis=0), 1e-12 * np.maximum(errors.max(axis=0), 1e-300))
