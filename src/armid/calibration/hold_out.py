"""Does it help where it was not fitted? Errors on configurations kept aside, before and after, and the verdict on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit, refit
from armid.calibration.neighbours import is_motion
from armid.calibration.tool_error import ErrorTable, by_group, error_table, group_means, joined_tables
from armid.cluster.workers import InProcess, Workers, in_order
from armid.estimation.paired import paired_t, sure, trimmed
from armid.estimation.quantiles import student_quantile
from armid.kinematics.measurement import IntArray, Measurements
from armid.rows.pose_residual import residuals
from armid.threads import one_blas_thread

_LEAVE_ONE_OUT = 40
"""Groups of configurations up to which each is left out once."""
_MANY_FOLDS = 200
"""Groups up to which ten folds are used: with four fifths of seventy configurations an error model is fitted, and chosen, clearly
worse than with all of them, and the held-out error would be overstated."""
_K_FOLD = 2000
"""Groups up to which folds are used; above, one part is kept aside once."""
_FOLDS = 5
_ASIDE = 0.3
"""Fraction kept aside when there are many."""
WORTHWHILE = 0.05
"""Relative gain below which nobody should touch a controller."""


class Advice(StrEnum):
    """What to do with the result."""

    TRUSTED = "trusted"
    NO_GAIN = "no held-out gain"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOut:
    """Errors on configurations that no part of the fit has seen.

    Args:
        method: how they were kept aside, in words.
        before: nominal links, only sensor and tool frames fitted (on the other configurations).
        after: the full model, fitted on the other configurations.
        gain: relative reduction of the mean error, without the worst tenth of either.
        t: paired t statistic of the reduction over groups of configurations.
        groups: how many there were.
        deviation: standard deviation of the mean error after, as an estimate of the error at other configurations of the
            same kind [m or rad].
        refitted: frames that were fitted to held-out rows other than those scored, in words; empty when nothing was.
    """

    method: str
    before: ErrorTable
    after: ErrorTable
    gain: float
    t: float
    groups: int
    deviation: float
    refitted: tuple[str, ...] = ()

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean error after, at other configurations of the same kind [m or rad]."""
        mean, wide = float(self.after.main[0].mean()), student_quantile(0.975, max(1, self.groups - 1)) * self.deviation
        return max(0.0, mean - wide), mean + wide

    @property
    def told(self) -> str:
        """How the rows were kept aside, what was fitted to which of them, and how well the mean is known."""
        refitted = "; ".join(self.refitted) or "nothing"
        return f"{self.method}; refitted to held-out rows: {refitted}; {self.surely}"

    @property
    def surely(self) -> str:
        """The interval of the mean error after, in words."""
        low, high = (1e3 * x for x in self.interval)
        unit = "mm" if len(self.after.position) else "mrad"
        return f"mean at other configurations of this kind {low:.3g} to {high:.3g} {unit} (95 %)"

    @property
    def helps(self) -> bool:
        return self.t > sure(self.groups) and self.gain > WORTHWHILE


Mask = npt.NDArray[np.bool_]


_MOST_TOGETHER = 0.2
"""Share of the configurations that lengths may tie together and still be kept aside as one."""


def kept_together(measurements: Measurements) -> IntArray:
    """A number per configuration, equal for those that are kept aside together, shape [n].

    These are equal joint positions, and the two ends of a length: with one end alone no length can be tested. Lengths that tie
    a large part of the recording together (all from one pose) cannot be kept whole; those across parts are then not tested.
    """
    groups, group = np.unique(measurements.group, return_inverse=True)
    ends = [(o.rows, o.other_rows) for o in measurements.observations if o.other_rows is not None]
    if not ends:
        return measurements.group
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    a, b = (group[np.concatenate(side)] for side in zip(*ends, strict=True))
    ties = coo_array((np.ones(len(a)), (a, b)), shape=(len(groups), len(groups)))
    together = connected_components(ties, directed=False)[1]
    largest = np.bincount(together).max()
    return together[group].astype(np.intp) if largest <= max(2, _MOST_TOGETHER * len(groups)) else measurements.group


def folds_of(measurements: Measurements, rng: np.random.Generator, count: int | None = None) -> tuple[str, list[Mask]]:
    """Masks of configurations to keep aside, whole groups at a time, and how to call it.

    Of a motion, whose neighbours stand next to one another, consecutive ones are kept aside together (`is_motion`).
    """
    unit = kept_together(measurements)
    groups = np.unique(unit)
    n = len(groups)
    if count is None:
        if _is_motion(measurements, groups, unit):
            return _folds_of_motion(measurements, n)
        few = n if n <= _LEAVE_ONE_OUT else 2 * _FOLDS
        count = few if n <= _MANY_FOLDS else _FOLDS if n <= _K_FOLD else 1
    shuffled = rng.permutation(groups)
    if count == 1:
        aside = shuffled[: max(1, round(_ASIDE * n))]
        return f"{len(aside)} of {n} configurations kept aside", [np.isin(unit, aside)]
    count = min(count, n)
    how = f"leave-one-out over {n} configurations" if count == n else f"{count}-fold over {n} configurations"
    return how, [np.isin(unit, shuffled[k::count]) for k in range(count)]


def _is_motion(measurements: Measurements, groups: IntArray, unit: IntArray) -> bool:
    if len(groups) < 2 * _FOLDS:
        return False
    shuffled = np.random.default_rng(0).permutation(groups)
    scattered = [np.isin(unit, shuffled[k::_FOLDS]) for k in range(_FOLDS)]
    return is_motion(measurements, scattered, row_blocks(measurements, _FOLDS))


def _folds_of_motion(measurements: Measurements, count: int) -> tuple[str, list[Mask]]:
    """Blocks of consecutive configurations, and how to call it."""
    blocks = row_blocks(measurements, 2 * _FOLDS)
    along = f"over {count} configurations of a motion, neighbours kept aside together"
    if count <= _K_FOLD:
        return f"{len(blocks)}-fold {along}", blocks
    return f"3 parts of {len(blocks)} kept aside {along}", [np.logical_or.reduce(blocks[1::3])]


def row_blocks(measurements: Measurements, count: int) -> list[Mask]:
    """Masks of consecutive configurations, whole groups at a time: what is recorded together is kept aside together.

    Every sensor placement and target is parted by itself, so that none is kept aside as a whole: nothing would place it.
    """
    unit, seen_by = kept_together(measurements), _frames_of(measurements)
    out = [np.zeros(len(unit), dtype=bool) for _ in range(min(count, len(np.unique(unit))))]
    for frames in dict.fromkeys(seen_by):
        own = np.array([x == frames for x in seen_by])
        groups, first = np.unique(unit[own], return_index=True)
        for aside, part in zip(out, np.array_split(groups[np.argsort(first)], len(out)), strict=True):
            aside |= np.isin(unit, part) & own
    return out


def _frames_of(measurements: Measurements) -> list[tuple[tuple[str, str], ...]]:
    """Sensor placements and targets that observe each configuration, or one that is kept aside together with it."""
    unit = np.unique(kept_together(measurements), return_inverse=True)[1]
    seen: list[set[tuple[str, str]]] = [set() for _ in range(int(unit.max(initial=-1)) + 1)]
    for o in measurements.observations:
        for k in np.unique(unit[o.rows]):
            seen[k].add((o.setup, o.target))
    return [tuple(sorted(seen[k])) for k in unit]


_BLOCK_ROWS = 1000
"""Configurations that the blocked test looks at: ten fits to more would cost as much as everything else, and the mean of
a thousand is known to a few per cent."""


@dataclass(frozen=True, eq=False, slots=True)
class BlockedTest:
    """Errors of a model with consecutive configurations kept aside together, beside as many random ones.

    Args:
        blocked, scattered: with consecutive and with random configurations kept aside.
        t: paired t statistic of the difference over groups of configurations.
    """

    blocked: HeldOut
    scattered: HeldOut
    t: float

    @property
    def ratio(self) -> float:
        """Mean error with blocks over that with random parts."""
        a, b = (float(h.after.main[0].mean()) for h in (self.scattered, self.blocked))
        return b / a if a > 0.0 else 1.0


def blocked_test(
    fit: KinematicFit, measurements: Measurements, *, seed: int, workers: Workers | None = None
) -> BlockedTest | None:
    """The test of a model; None when there are too few configurations to part."""
    groups, first = np.unique(measurements.group, return_index=True)
    if len(groups) < 2 * _FOLDS:
        return None
    if len(groups) > _BLOCK_ROWS:
        kept = groups[np.argsort(first)][:: -(-len(groups) // _BLOCK_ROWS)]
        measurements = measurements.subset(np.isin(measurements.group, kept))
    how = f"{_FOLDS} blocks of consecutive configurations", f"{_FOLDS} random parts"
    parts = row_blocks(measurements, _FOLDS), folds_of(measurements, np.random.default_rng(seed), _FOLDS)[1]
    blocked, scattered = (
        cross_validate([fit], _the_only_one, measurements, part, name, workers=workers)[0]
        for part, name in zip(parts, how, strict=True)
    )
    a, b = (group_means(*h.after.main, measurements) for h in (blocked, scattered))
    both = np.isfinite(a) & np.isfinite(b)
    return BlockedTest(blocked, scattered, paired_t(a[both], b[both]))


Choice = Callable[[Sequence[KinematicFit], Measurements], int]


def _the_only_one(fits: Sequence[KinematicFit], measurements: Measurements) -> int:
    """The choice where there is none."""
    return 0


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class FoldTask:
    """One part kept aside, for whoever does the work.

    Args:
        fits: candidates, where to start from; without what a start does not need.
        choose: among them, from a training set.
        measurements: all of them.
        aside: mask of the configurations kept aside, shape [n].
    """

    fits: tuple[KinematicFit, ...]
    choose: Choice
    measurements: Measurements
    aside: Mask


_Errors = list[tuple[ErrorTable, ErrorTable]]
"""Before and after: of the candidate chosen in the training set, then of every candidate."""


@one_blas_thread
def fold_errors(task: FoldTask) -> _Errors:
    """Every candidate fitted again without one part, and looked at there."""
    aside, rows = task.aside, np.flatnonzero(task.aside)
    train, test = task.measurements.subset(~aside), task.measurements.subset(aside)
    again: list[KinematicFit] = []
    for f in task.fits:
        again.append(refit(f, train, before=again[0] if again else None))
    seen = (again[task.choose(again, train)], *again)
    return [(table_of(f, f.before.values, test, rows), table_of(f, f.after.values, test, rows)) for f in seen]


def cross_validate(
    fits: Sequence[KinematicFit],
    choose: Choice,
    measurements: Measurements,
    parts: Sequence[Mask],
    method: str,
    *,
    workers: Workers | None = None,
) -> tuple[HeldOut, list[HeldOut]]:
    """Refit every candidate without each part, choose among them there, and look at that part.

    Args:
        fits: candidates, fitted to everything.
        choose: among them, from a training set.
        measurements: all of them.
        parts: masks of the configurations to keep aside in turn, shape [n] each.
        method: how they were parted, in words.
        workers: who does it; this process by default.

    Returns:
        The errors of the candidate chosen in each training set, and those of every candidate.
    """
    starts = tuple(start_of(f) for f in fits)
    tasks = [FoldTask(fits=starts, choose=choose, measurements=measurements, aside=aside) for aside in parts]
    tables = in_order(workers or InProcess(), fold_errors, tasks, "held-out parts")
    trained, free = _groups_seen(measurements, parts), _free_share(fits[0], measurements)
    found = [
        compared(
            method,
            joined_tables(a for a, _ in pairs),
            joined_tables(b for _, b in pairs),
            measurements,
            trained=trained,
            free=free,
        )
        for pairs in zip(*tables, strict=True)
    ]
    return found[0], found[1:]


def _groups_seen(measurements: Measurements, parts: Sequence[Mask]) -> float:
    """Groups of configurations that a fit without one of the parts has, on average."""
    return float(np.mean([len(np.unique(measurements.group[~aside])) for aside in parts]))


_LEAST_FREE = 0.25
"""Smallest share of the equations that counts as free: no more than three quarters become parameters."""


def _free_share(fit: KinematicFit, measurements: Measurements) -> float:
    """Share of the equations that a fit leaves over."""
    return max(_LEAST_FREE, 1.0 - float(fit.after.selection.kept.sum()) / max(measurements.n_distinct_equations, 1))


def start_of(fit: KinematicFit) -> KinematicFit:
    """The fit without its residuals: what travels to a worker is small."""
    return replace(fit, before=replace(fit.before, residuals=()), after=replace(fit.after, residuals=()))


def table_of(
    fit: KinematicFit, values: FloatArray, test: Measurements, rows: npt.NDArray[np.intp] | None = None
) -> ErrorTable:
    """Errors of given parameters on given measurements."""
    none = np.zeros(len(values), dtype=bool)
    return error_table(residuals(fit.model, values, test, wanted=none), rows)


def compared(
    method: str,
    before: ErrorTable,
    after: ErrorTable,
    measurements: Measurements,
    *,
    trained: float = np.inf,
    free: float = 1.0,
) -> HeldOut:
    """The paired comparison, group by group.

    Args:
        method: how rows were kept aside, in words.
        before, after: errors there.
        measurements: that the rows of the tables count in.
        trained: groups of configurations that each tested fit has seen; infinite when the fit that is tested is the one whose
            error is asked for.
        free: share of the equations that the fit to all of them leaves over. Errors of configurations left out in turn lie in the
            space of its residuals: of n of them only `free n` are independent.
    """
    a, b = by_group(*before.main, measurements), by_group(*after.main, measurements)
    typical = [float(np.sort(x)[: len(x) - trimmed(len(x))].mean()) for x in (a, b)]
    gain = 1.0 - typical[1] / typical[0] if typical[0] > 0.0 else 0.0
    deviation = mean_deviation(b) * np.sqrt(1.0 / free + len(b) / trained)
    return HeldOut(
        method=method,
        before=before,
        after=after,
        gain=gain,
        t=paired_t(a, b),
        groups=len(b),
        deviation=float(deviation),
    )


_BATCHES = 10
"""Consecutive batches whose means show whether neighbours err alike: nine degrees of freedom for their spread."""


def mean_deviation(errors: FloatArray) -> float:
    """Standard deviation of the mean of errors that may be alike among neighbours: the wider of single ones and of batches.

    Errors of parts kept aside in turn are not independent, since their fits share most rows. With n errors and fits to n_t groups
    the variance of their mean is about `s^2 (1/n + 1/n_t)` ([Nadeau2003]), of n the share that is free: `compared` applies it.

    Args:
        errors: in the order of the recording [m or rad], shape [n].
    """
    n = len(errors)
    if n < 2:
        return float("inf")
    single = float(errors.std(ddof=1)) / np.sqrt(n)
    if n < 2 * _BATCHES:
        return single
    means = np.array([part.mean() for part in np.array_split(errors, _BATCHES)])
    return max(single, float(means.std(ddof=1)) / np.sqrt(_BATCHES))
