"""Trials of faults: one undone exactly, sized by the noise of sound rows, and held against other motion and possible bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan

import numpy as np

from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import each_run, information_of
from armid.identification.candidates import (
    SUSPECTED,
    Seen,
    against,
    possible_size,
    same_to_torque,
    tied,
    together,
    within_chance,
)
from armid.identification.described_bodies import scale_faults
from armid.identification.fault_answers import FaultAnswers
from armid.identification.faults import Fault
from armid.identification.freed_runs import Squares
from armid.identification.imperfection_rows import RowNoise
from armid.identification.possible_errors import PossibleErrors
from armid.identification.scan import Scanner
from armid.identification.sensors import DELAYS, Imperfections, Sized, corrected_runs
from armid.identification.thresholds import FAR_APART, FAULT_REPEATED, ROBUST_CHANCE
from armid.information.status import EstimationError
from armid.robot.robot import Robot
from armid.rows.imperfections import Imperfection

_STEPS = 5
"""Of Gauss-Newton at most."""

_MODEL_STEPS = 30
"""The same of what takes the model to undo: where half of the weight is missing, every step finds half of what is left."""

_SETTLED = 0.002
"""Share of its size by which a last step may move a fault: below what its interval tells."""

_WITHIN = 0.2
"""Deviations by which a fault may still move once its joint's own rows count by the noise they have without it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Trials:
    """Trials on one recording.

    Args:
        robot: as the runs have it.
        train, held_out: candidates beside the rows of either motion.
        answers: what is said of a candidate.
        possible: what possible bodies say of a trial.
        gains_known: whether a weighed payload has set the scale of the torque.
        in_newtons: whether torques are in units of torque, as currents are not.
    """

    robot: Robot
    train: Scanner
    held_out: Scanner
    answers: FaultAnswers
    possible: PossibleErrors
    gains_known: bool
    in_newtons: bool

    def refined(
        self, record: Imperfections, drifts: Sequence[Sized], noise: RowNoise, seen: Seen
    ) -> tuple[Imperfections, float] | None:
        """The record with this candidate undone exactly, and the squared error that is left.

        None where the rows no longer determine the parameters once it is undone: no fault of a recording that does.
        """
        size, item = seen.size, seen.item
        energy, trial = inf, record
        by_model = replace(record, sizes=(Sized(item, size, nan),)).needs_model and item.family not in DELAYS
        settled = _SETTLED / _MODEL_STEPS if by_model else _SETTLED
        for _ in range(_MODEL_STEPS if by_model else _STEPS):
            with_it = (*record.sizes, Sized(item, possible_size(item, size), nan))
            try:
                trial, _ = self.train.fitted(replace(trial, sizes=with_it), drifts)
            except EstimationError:
                return None
            scaled = _in_units_of(trial, record, noise)
            (again,), energy = self.train.scan(trial, drifts, (item,), scaled, spreads=False)
            if not isfinite(again.deviation) or abs(again.size) < settled * max(abs(size), item.tolerance):
                break
            size = together(item, possible_size(item, size), again.size)
        return trial, energy

    def likeliest(
        self, energy: float, drifts: Sequence[Sized], refined: Sequence[tuple[Imperfections, float]]
    ) -> tuple[Imperfections, list[Sized]]:
        """Of candidates undone, with what each leaves, the one to believe in, and those that explain as much."""
        costs = [(trial, rest + against(trial.sizes[-1])) for trial, rest in refined]
        least = min(cost for _, cost in costs)
        near = [trial for trial, cost in costs if tied(energy, least, cost) or within_chance(least, cost)]
        kept = self._beside_sound_rows(near, drifts)
        trial, *_ = self._described(kept, drifts)
        return trial, [other.sizes[-1] for other in kept if other is not trial]

    def _beside_sound_rows(self, near: Sequence[Imperfections], drifts: Sequence[Sized]) -> list[Imperfections]:
        """Of trials that explain as much beside the noise of the recording, those that do beside that of sound rows.

        A fault makes the residuals of its joint large, and beside these nearly anything explains as much. So what each leaves
        counts in units of the smallest noise that any of them leaves to a joint; where that is less than what even the best
        leaves, what the best leaves counts as noise.
        """
        if len(near) == 1:
            return list(near)
        noises = [self.train.freed(trial, drifts).noise for trial in near]
        sound = np.min([n.sigma * (1.0 + t.gains) for n, t in zip(noises, near, strict=True)], axis=0)

        def cost(trial: Imperfections) -> float:
            """What a trial leaves, its last size as these units have it where that is possible, and what speaks against it."""
            sized = trial.sizes[-1]
            noise = replace(noises[0], sigma=sound / (1.0 + trial.gains))
            (last,), rest = self.train.scan(trial, drifts, (sized.item,), noise, spreads=False)
            size = together(sized.item, sized.value, last.size)
            return against(sized) + rest - (last.taken if possible_size(sized.item, size) == size else 0.0)

        costs = [cost(trial) for trial in near]
        louder = max(min(costs) / self.train.independent_rows(noises[0]), 1.0)
        costs = [left / louder for left in costs]
        best = near[int(np.argmin(costs))]
        recorded = best.reference.recorded_velocity

        def stays(trial: Imperfections, left: float) -> bool:
            items = trial.sizes[-1].item, best.sizes[-1].item
            return within_chance(min(costs), left) or same_to_torque(*items, recorded_velocity=recorded)

        return [trial for trial, left in zip(near, costs, strict=True) if stays(trial, left)]

    def settled(
        self, trial: Imperfections, drifts: Sequence[Sized], rivals: Sequence[Imperfection] = ()
    ) -> tuple[Imperfections, RowNoise, Seen]:
        """The trial with its last size as rows weighed by the noise of sound ones have it, that noise, and what is left of it.

        With the noise that the fault made its own joint hardly counted, and the others said how large it is.
        """
        item = trial.sizes[-1].item
        for _ in range(_STEPS):
            trial, noise = self.train.fitted(trial, drifts)
            (left,), _ = self.train.scan(trial, drifts, (item,), noise, rivals, spreads=False)
            size = trial.sizes[-1].value
            if not isfinite(left.deviation) or abs(left.size) < _WITHIN * left.deviation:
                break
            better = possible_size(item, together(item, size, left.size))
            trial = replace(trial, sizes=(*trial.sizes[:-1], Sized(item, better, nan)))
        return trial, noise, left

    def together(self, trial: Imperfections, drifts: Sequence[Sized]) -> Imperfections:
        """The trial with all of its sizes settled beside each other: what was found first was found beside the others' errors."""
        if len(trial.sizes) < 2:
            return trial
        items = [sized.item for sized in trial.sizes]
        for _ in range(_MODEL_STEPS):
            trial, noise = self.train.fitted(trial, drifts)
            left, _ = self.train.scan(trial, drifts, items, noise, spreads=False)
            off = [abs(s.size) / s.deviation if 0.0 < s.deviation < inf else 0.0 for s in left]
            k = int(np.argmax(off))
            if off[k] < _WITHIN:
                break
            size = possible_size(items[k], together(items[k], trial.sizes[k].value, left[k].size))
            trial = replace(trial, sizes=(*trial.sizes[:k], Sized(items[k], size, nan), *trial.sizes[k + 1 :]))
        return trial

    def contradicted(self, trial: Imperfections, seen: Seen, rivals: Sequence[Imperfection] = ()) -> bool:
        """Whether the held-out motion denies the last size of a trial, or possible bodies do not bear out a decisive one."""
        return self._denied(trial, rivals) or (self.answers.beyond(seen) and not self.possible.bear_out(trial))

    def large(self, trial: Imperfections, seen: Seen, rivals: Sequence[Imperfection] = ()) -> bool:
        """Whether the last size of a trial is decisive: beyond what the model undoes, and no chance.

        The largest of many candidates may be large by chance, the more so the fewer blocks say what chance is. Then other
        motion, which did not choose it, decides: looked at by itself it must say the same, with its own interval.
        """
        if self.answers.large(seen) or not self.answers.beyond(seen):
            return self.answers.large(seen)
        there = self._there(trial, rivals, spreads=True)
        return there is not None and there.size * seen.size > 0.0 and self.answers.beyond(there)

    def held_out_error(self, record: Imperfections) -> float:
        """Logarithm of the error on held-out motion in recorded units, mean over channels, bodies free; nan without any.

        The likelihood when no channel's noise is known beforehand. In units of the noise that a fault has made, undoing the
        fault would change little, the less the larger it is.
        """
        if not len(self.held_out.runs):
            return nan
        train = information_of(corrected_runs(self.train.runs, record))
        fit = WeightedLeastSquares().fit(train, self.train.base)
        squares = each_run(corrected_runs(self.held_out.runs, record), Squares(fit.standard))
        total, count = (sum(parts) for parts in zip(*squares, strict=True))
        return 0.5 * float(np.mean(np.log(np.maximum(total, 1e-300) / count)))

    def scale(self, record: Imperfections, drifts: Sequence[Sized]) -> tuple[Fault, ...]:
        """What no recording of the arm alone can tell from other bodies, held against the description."""
        freed = self.train.freed(record, drifts)
        return scale_faults(
            self.robot,
            freed.estimate,
            rows_per_sample=freed.noise.rows_per_sample,
            gains_known=self.gains_known,
            in_newtons=self.in_newtons,
        )

    def _described(self, tied: Sequence[Imperfections], drifts: Sequence[Sized]) -> list[Imperfections]:
        """Trials that are as good as each other, those that the described weight speaks against left out, the simplest first.

        What is beyond its tolerance comes before what is ordinary: a doubt about a recording is said.

        Without velocities a clock that runs fast and weight that is missing are the same to the torque; but undone as the wrong
        one of the two, all bodies come out too light or too heavy alike.
        """

        def simple(trial: Imperfections) -> tuple[bool, int]:
            last = trial.sizes[-1]
            return abs(last.value) <= last.item.tolerance, SUSPECTED.index(last.item.family)

        order = sorted(tied, key=simple)
        if len(order) == 1 or self.gains_known:
            return order
        scales = [self.scale(trial, drifts)[0] for trial in order]
        kept = [
            trial
            for trial, scale in zip(order, scales, strict=True)
            if abs(scale.estimate) < FAR_APART.value * scale.standard_deviation
        ]
        return kept or order

    def _denied(self, trial: Imperfections, rivals: Sequence[Imperfection] = ()) -> bool:
        """Whether the held-out motion, looked at by itself, rules out half of the last size of a trial.

        A sensor is as wrong there as in the training motion. What a model lacks is not: undone as a fault of a sensor it may
        leave less on both motions, yet each asks for a size of its own.
        """
        there, size = self._there(trial, rivals), trial.sizes[-1].value
        if there is None:
            return False
        short = (FAULT_REPEATED.value * size - there.size) * np.sign(size)
        return bool(isfinite(there.deviation) and short > ROBUST_CHANCE.value * there.deviation)

    def _there(self, trial: Imperfections, rivals: Sequence[Imperfection], *, spreads: bool = False) -> Seen | None:
        """The last size of a trial as the held-out motion has it by itself; None where that does not determine the parameters."""
        if not len(self.held_out.runs):
            return None
        item, size = trial.sizes[-1].item, trial.sizes[-1].value
        try:
            noise = self.held_out.freed(trial).noise
        except EstimationError:
            return None
        (left,), _ = self.held_out.scan(trial, (), (item,), noise, rivals, spreads=spreads)
        return replace(left.whole(size), size=together(item, size, left.size))


def _in_units_of(trial: Imperfections, record: Imperfections, noise: RowNoise) -> RowNoise:
    """Noise of a record's rows for those of a trial, in which torques have other gains: errors of both compare."""
    ratio = (1.0 + record.gains) / (1.0 + trial.gains)
    return replace(noise, sigma=noise.sigma * ratio)
