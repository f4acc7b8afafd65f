"""Held out by whole motion: k-fold over motions, and what leaving out one file does to the parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.reversals import classed_information
from armid.estimation.run import Run, each_run, gathered, names_of
from armid.estimation.runs import before
from armid.identifiability.base import BaseParameters
from armid.information.information import Information, added
from armid.information.solve import reduced

_MOST_FOLDS = 10
"""Up to so many motions each is left out alone; more are dealt out to this many folds."""
_MOST_LOGS = 20
"""Up to so many logs each is left out alone; more are dealt out like motions."""
_MOST_NAMES = 12
"""Of motions left out together that are listed."""
_STILL = 0.02
"""Of the 90 % quantile of a joint's speed: slower than this it stands."""
_REST = 0.3
"""[s]; all joints standing this long separate two motions. Reversals of single joints do not, nor do all at once by chance."""
_SHORTEST = 1.0
"""[s]; a shorter piece is no motion of its own and stays with the one before."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Some motions left out.

    Args:
        motions: their names.
        values: base parameters from all the others, shape [r].
        shift: change against all together, in standard deviations, shape [r].
        relative_error: norm of the torque error over the norm of the torque on the motions left out, per channel.
    """

    motions: tuple[str, ...]
    values: FloatArray
    shift: FloatArray
    relative_error: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "shift", read_only(self.shift))

    @property
    def name(self) -> str:
        return ", ".join(self.motions)


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Every motion predicted by others.

    Args:
        folds: one per group of motions left out.
        relative_error: over all folds together, per channel: every sample predicted by parameters that never saw its motion.
        motions: that were dealt out.
    """

    folds: tuple[Fold, ...]
    relative_error: Mapping[str, float]
    motions: int = 0

    @property
    def k(self) -> int:
        return len(self.folds)


def motions(runs: Sequence[Run]) -> tuple[Run, ...]:
    """One run per motion: logs are cut where sampling was interrupted and where all joints rested."""
    return tuple(part for run in runs for part in _motions_of(run))


def _motions_of(run: Run) -> tuple[Run, ...]:
    """The motions of one run, in order; the run itself when it is a single one."""
    ranges = [(a, b) for start, stop in run.segments for a, b in _moving_ranges(run, start, stop)]
    if len(ranges) < 2:
        return (run,)
    return tuple(replace(run.window(a, b), name=f"{run.name} [{a}:{b}]") for a, b in ranges)


def _moving_ranges(run: Run, start: int, stop: int) -> list[tuple[int, int]]:
    """A stretch of uniform sampling cut in the middle of every rest."""
    n = torque_source([run]).robot.n_joints
    speed = np.abs(run.inputs[start:stop, n : 2 * n])
    still = np.all(speed < _STILL * np.quantile(speed, 0.9, axis=0), axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], still, [False]]).astype(int)))
    rests = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= _REST * run.rate]
    cuts = [start]
    for a, b in rests:
        middle = start + int(a + b) // 2
        if middle - cuts[-1] >= _SHORTEST * run.rate:
            cuts.append(middle)
    if len(cuts) > 1 and stop - cuts[-1] < _SHORTEST * run.rate:
        cuts.pop()
    return list(zip(cuts, [*cuts[1:], stop], strict=True))


def leave_one_out(runs: Sequence[Run], estimate: Estimate) -> tuple[Fold, ...]:
    """Every run predicted by the others.

    Args:
        runs: at least two.
        estimate: of all of them together, with the covariance that shifts are measured in.
    """
    return k_fold(runs, estimate, k=len(runs)).folds


def k_fold(runs: Sequence[Run], estimate: Estimate, *, k: int | None = None) -> CrossValidation:
    """Motions dealt out to k folds, each predicted by the others. Information adds up, so no row is evaluated twice.

    Args:
        runs: the motions, at least two.
        estimate: of all of them together, with the covariance that shifts are measured in.
        k: number of folds; None: one per motion, at most `_MOST_FOLDS`.
    """
    if len(runs) < 2:
        raise InputError("runs", "leaving one out needs at least two motions")
    count = min(len(runs), _MOST_FOLDS) if k is None else min(k, len(runs))
    found = gathered(runs, _log_part, added_by_fold, [i % count for i in range(len(runs))])
    return _predicted_by_others(_piles([run.name for run in runs], found, count), estimate)


def left_out_logs(runs: Sequence[Run], estimate: Estimate) -> CrossValidation | None:
    """Every log predicted by the others, a long one whole; None when there is one only. Many logs are dealt out."""
    own = names_of(runs)
    names = list(dict.fromkeys(own))
    if len(names) < 2:
        return None
    count = len(names) if len(names) <= _MOST_LOGS else _MOST_FOLDS
    number = {name: k for k, name in enumerate(names)}
    found = gathered(runs, _log_part, added_by_fold, [number[name] % count for name in own])
    return _predicted_by_others(_piles(names, found, count), estimate)


def left_out_motions(
    runs: Sequence[Run], estimate: Estimate, logs: CrossValidation | None = None
) -> CrossValidation | None:
    """Every motion between rests predicted by the others; None when there is one only.

    Args:
        runs, estimate: as everywhere here.
        logs: the same for whole logs; where each of them is one motion, and as many are left out, that is the answer.
    """
    own = list(each_run(runs, _motion_names))
    names = [name for part in own for name in part]
    if len(names) < 2:
        return None
    count = min(len(names), _MOST_FOLDS)
    if logs is not None and (logs.motions, logs.k) == (len(names), count):
        return logs
    found = gathered(runs, _MotionParts(count), added_by_fold, before([len(part) for part in own]))
    return _predicted_by_others(_piles(names, found, count), estimate)


def _motion_names(run: Run) -> list[str]:
    """Of the motions that begin in a run."""
    return [part.name for part in _motions_of(run)[int(run.continues) :]]


def _log_part(run: Run, fold: int) -> dict[int, Information]:
    """What a run tells, by the fold of its log."""
    return {fold: classed_information([run])}


@dataclass(frozen=True)
class _MotionParts:
    """What a run tells by fold of its motions, before which so many began; the first may go on with the last of those."""

    count: int

    def __call__(self, run: Run, first: int) -> dict[int, Information]:
        out: dict[int, Information] = {}
        for k, part in enumerate(_motions_of(run), start=first - int(run.continues)):
            out = added_by_fold([out, {k % self.count: classed_information([part])}])
        return out


def added_by_fold(parts: Sequence[Mapping[int, Information]]) -> dict[int, Information]:
    """The sum of a few, fold by fold."""
    folds = sorted({k for part in parts for k in part})
    same = {k: [part[k] for part in parts if k in part] for k in folds}
    return {k: own[0] if len(own) == 1 else added(own) for k, own in same.items()}


def _piles(names: Sequence[str], found: Mapping[int, Information], count: int) -> list[Pile]:
    """Dealt out like cards: neighbours in time, which resemble each other, go to different folds."""
    return [(names[k::count], found[k]) for k in range(count)]


Pile = tuple[Sequence[str], Information]
"""Names of motions, and what they tell together."""


def _predicted_by_others(piles: Sequence[Pile], estimate: Estimate) -> CrossValidation:
    """Every pile of motions predicted by the others.

    Args:
        piles: of one fold each.
        estimate: of all of them together.
    """
    seen = sum(len(names) for names, _ in piles)
    if len(piles) < 2:
        return CrossValidation((), {}, seen)
    deviations = np.maximum(estimate.standard_deviations, 1e-300)
    folds, energy, size = [], dict[str, float](), dict[str, float]()
    for (names, tested), others in zip(piles, _others([information for _, information in piles]), strict=True):
        fit = WeightedLeastSquares().fit(others, estimate.base)
        shift = (fit.values - estimate.values) / deviations
        folds.append(Fold(shown(names), fit.values, shift, _relative_errors(tested, estimate.base, fit.values)))
        for channel in reduced(tested.pooled(), estimate.base).channels:
            energy[channel.name] = energy.get(channel.name, 0.0) + channel.error_energy(fit.values)
            size[channel.name] = size.get(channel.name, 0.0) + float(np.sum(channel.factor[:, -1] ** 2))
    relative = {
        name: float(np.sqrt(energy[name] / size[name])) if size[name] > 0.0 else float("inf") for name in energy
    }
    return CrossValidation(tuple(folds), relative, seen)


def _others(parts: Sequence[Information]) -> list[Information]:
    """For each of at least two the sum of all others: that of those before it, and that of those after."""
    earlier, later = (list(accumulate(own, lambda a, b: a + b)) for own in (parts[:-1], parts[:0:-1]))
    return [later[-1], *(a + b for a, b in zip(earlier, later[-2::-1], strict=False)), earlier[-1]]


def shown(names: Sequence[str]) -> tuple[str, ...]:
    """Names of the motions of a fold; of very many the first few."""
    return tuple(names) if len(names) <= _MOST_NAMES else (*names[:_MOST_NAMES], f"{len(names) - _MOST_NAMES} more")


def _relative_errors(information: Information, base: BaseParameters, values: FloatArray) -> dict[str, float]:
    """Norm of the error over the norm of the measured values, per channel."""
    out = {}
    for channel in reduced(information.pooled(), base).channels:
        size = float(np.sum(channel.factor[:, -1] ** 2))
        out[channel.name] = float(np.sqrt(channel.error_energy(values) / size)) if size > 0.0 else float("inf")
    return out
