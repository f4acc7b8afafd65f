"""Held out by whole motion: k-fold over motions, and what leaving out one file does to the parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.reversals import classed_information
from armid.estimation.run import Run, each_run
from armid.identifiability.base import BaseParameters
from armid.information.information import Information, total
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
    return _dealt_out(((run.name, classed_information([run])) for run in runs), estimate, count)


def left_out_logs(runs: Sequence[Run], estimate: Estimate) -> CrossValidation | None:
    """Every log predicted by the others, a long one whole; None when there is one only. Many logs are dealt out."""
    names = dict.fromkeys(each_run(runs, _name_of))
    if len(names) < 2:
        return None
    return _dealt_out(_joined(_named_parts(runs)), estimate, len(names) if len(names) <= _MOST_LOGS else _MOST_FOLDS)


def left_out_motions(runs: Sequence[Run], estimate: Estimate) -> CrossValidation | None:
    """Every motion between rests predicted by the others; None when there is one only."""
    count = sum(each_run(runs, _count_of_motions))
    return None if count < 2 else _dealt_out(_joined(_motion_parts(runs)), estimate, _MOST_FOLDS)


Part = tuple[str, bool, Information]
"""Name of a motion, whether this goes on where the part before ended, and what it tells."""


def _count_of_motions(run: Run) -> int:
    """That begin in a run."""
    return len(_motions_of(run)) - int(run.continues)


def _name_of(run: Run) -> str:
    return run.name


def _named_parts(runs: Sequence[Run]) -> Iterator[Part]:
    before = ""
    for name, information in each_run(runs, _named_information):
        yield name, name == before, information
        before = name


def _named_information(run: Run) -> tuple[str, Information]:
    return run.name, classed_information([run])


def _motion_parts(runs: Sequence[Run]) -> Iterator[Part]:
    for parts in each_run(runs, _motions_informations):
        yield from parts


def _motions_informations(run: Run) -> list[Part]:
    return [
        (part.name, run.continues and k == 0, classed_information([part])) for k, part in enumerate(_motions_of(run))
    ]


def _joined(parts: Iterable[Part]) -> Iterator[tuple[str, Information]]:
    """Parts of one motion as one."""
    name, held = "", None
    for part_name, continues, information in parts:
        if held is not None and continues:
            held = held + information
            continue
        if held is not None:
            yield name, held
        name, held = part_name, information
    if held is not None:
        yield name, held


def _dealt_out(motions: Iterable[tuple[str, Information]], estimate: Estimate, count: int) -> CrossValidation:
    """Motions dealt out to at most `count` folds, each predicted by the others.

    Args:
        motions: name and Information of each, one at a time: only the sums of the folds are kept.
        estimate: of all of them together.
        count: of folds.
    """
    piles: list[tuple[list[str], Information]] = []
    seen = 0
    for i, (name, information) in enumerate(motions):
        # Dealt out like cards: neighbours in time, which resemble each other, go to different folds.
        if i < count:
            piles.append(([name], information))
        else:
            names, held = piles[i % count]
            piles[i % count] = ([*names, name], held + information)
        seen += 1
    if len(piles) < 2:
        return CrossValidation((), {}, seen)
    deviations = np.maximum(estimate.standard_deviations, 1e-300)
    folds, energy, size = [], dict[str, float](), dict[str, float]()
    for k, (names, tested) in enumerate(piles):
        others = total(information for i, (_, information) in enumerate(piles) if i != k)
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
