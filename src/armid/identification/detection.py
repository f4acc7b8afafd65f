"""Which imperfection is wrong, and by how much: one at a time, without any belief, bodies free, rivals beside it.

The one that explains most is undone exactly, by Gauss-Newton, and the others are looked at again, until nothing significant
above its tolerance is left. Found is what leaves less on the held-out motion too, and what that motion, looked at by itself,
does not deny.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite, nan

import numpy as np

from armid.consistency.possible import PossibleBodies
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, each_run, information_of
from armid.identifiability.base import BaseParameters
from armid.identification.candidates import (
    CHANGES,
    DRIFTS,
    MIXED,
    SUSPECTED,
    Seen,
    against,
    possible_size,
    share_of_channels,
    significant,
    simplest,
    tied,
    together,
    within_chance,
    worth_undoing,
)
from armid.identification.described_bodies import scale_faults
from armid.identification.fault_answers import FaultAnswers
from armid.identification.faults import Fault
from armid.identification.freed_runs import Squares
from armid.identification.imperfection_rows import RowNoise, reference_of
from armid.identification.possible_errors import PossibleErrors
from armid.identification.scan import LOOKED_AT, FreedRuns, Scanner, usual_rivals
from armid.identification.sensors import Imperfections, Sized, corrected_runs
from armid.identification.thresholds import FAR_APART, FAULT_PHASE, FAULT_REPEATED, FAULT_SHARE, ROBUST_CHANCE
from armid.identification.wandering import beyond_choice, by_own_rows, of_position, wanders
from armid.information.status import EstimationError
from armid.robot.robot import Robot
from armid.rows.imperfections import ColumnReference, Family, Imperfection, imperfections

_LIKE_MIXED = (Family.GAIN, Family.LOAD, Family.ASYMMETRIC, Family.SPRING)
"""What a sensor that reads by direction may be taken for, beside torque of the position: where torque is mostly friction it is
friction that differs by direction, where a cable pulls it is the cable."""

_UNEVEN = (Family.DIRECTION_GAIN, Family.TURNING_GAIN, Family.LOAD_GAIN)
"""Gains of a sensor that are not one number; a gain that is one fits most of each of them."""

_MOST_FAULTS = 4
"""That are looked for one after the other."""

_REFINED = 3
"""Of the best candidates that are undone exactly before they are compared: far from zero columns rank only roughly."""

_MOST_ALIKE = 6
"""The same where they explain as much up to chance: which of them it is a short or poor recording cannot tell."""

_STEPS = 5
"""Of Gauss-Newton at most."""

_SETTLED = 0.002
"""Share of its size by which a last step may move a fault: below what its interval tells."""

_WITHIN = 0.2
"""Deviations by which a fault may still move once its joint's own rows count by the noise they have without it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Detection:
    """What was found.

    Args:
        faults: every candidate with its answer.
        undone: those found that can be undone, as a record that frees runs from them; empty when there are none.
    """

    faults: tuple[Fault, ...]
    undone: Imperfections | None


def detect(
    robot: Robot,
    train: Sequence[Run],
    held_out: Sequence[Run],
    base: BaseParameters,
    *,
    recorded_velocity: bool,
    gains_known: bool = False,
    clock_known: bool = False,
    in_newtons: bool = True,
    cutoff_hz: float | None = None,
    bodies: PossibleBodies | None = None,
) -> Detection:
    """Answers for every candidate.

    Args:
        robot: as the runs have it.
        train: where faults are looked for.
        held_out: where undoing them must help too.
        base: parameters that the training motion determines.
        recorded_velocity: whether velocities were recorded and not derived.
        gains_known: whether a weighed payload has set the scale of the torque.
        clock_known: whether recorded velocities have told the clock, and it is undone.
        in_newtons: whether torques are in units of torque, as currents are not.
        cutoff_hz: of the low-pass on torque; None for no filter.
        bodies: how possible bodies are found, which must bear out what is decisive.
    """
    as_it_is = FreedRuns(train, base)
    reference = reference_of(train, as_it_is.estimate.standard, recorded_velocity=recorded_velocity)
    settled = {Family.GAIN: gains_known, Family.CLOCK: clock_known}
    # The shape of a slow drift is found by itself, and what changes with time beside it; what mixes torques comes last.
    apart = (Family.SLOW_DRIFT, *CHANGES, *MIXED)
    families = [f for f in SUSPECTED if f not in apart and not settled.get(f, False)]
    effects = torque_source(train).effects
    candidates = imperfections(robot, effects, reference, families)
    rivals = usual_rivals(robot, train, reference)
    search = _Search(
        robot=robot,
        train=Scanner(runs=train, base=base, rivals=rivals, kept={((), (), None): as_it_is}),
        held_out=Scanner(runs=held_out, base=base, rivals=rivals),
        reference=reference,
        answers=FaultAnswers(
            robot=robot,
            channels=train[0].channels,
            delay=0.0 if cutoff_hz is None or not isfinite(cutoff_hz) else FAULT_PHASE.value / cutoff_hz,
            looked_at=len(candidates) + len(imperfections(robot, effects, reference, apart)),
        ),
        possible=PossibleErrors(
            robot=robot, base=base, bodies=bodies or PossibleBodies(), train=train, held_out=held_out
        ),
        gains_known=gains_known,
        in_newtons=in_newtons,
    )
    return search.run(candidates)


@dataclass(eq=False, kw_only=True)
class _Course:
    """How far a search has come.

    Args:
        candidates: looked at.
        record, drifts: what the runs are freed from by now.
        noise: of their rows.
        held_out_error: logarithm of the error on held-out motion.
        seen, energy: every candidate beside what is left, and the squared error of that.
        found: with what is said of it.
        unnamed: sizes of what was undone although it is ordinary, or not certain once everything is looked at again.
        refused: what was tried since the last that was undone, and is not to be.
        steady: joints whose torque seemed to change with time before another's was undone.
        rivals: what explains as much as something found.
        doubtful: found, beside such rivals.
    """

    candidates: Sequence[Imperfection]
    record: Imperfections
    noise: RowNoise
    held_out_error: float
    drifts: tuple[Sized, ...] = ()
    seen: Sequence[Seen] = ()
    energy: float = 0.0
    found: dict[Imperfection, Fault] = field(default_factory=dict)
    unnamed: dict[Imperfection, float] = field(default_factory=dict)
    refused: set[Imperfection] = field(default_factory=set)
    steady: set[int | None] = field(default_factory=set)
    rivals: dict[Imperfection, Fault] = field(default_factory=dict)
    doubtful: set[Imperfection] = field(default_factory=set)

    @property
    def open(self) -> list[Seen]:
        """Candidates that may be next."""
        done = {*self.found, *self.refused, *self.unnamed}
        return [
            seen
            for seen in self.seen
            if seen.item not in done and (seen.item.family not in DRIFTS or seen.item.joint not in self.steady)
        ]

    @property
    def left_alone(self) -> set[Imperfection]:
        """What was undone to look on, and is not to be undone in the result."""
        return {*self.doubtful, *self.unnamed}


@dataclass(frozen=True, eq=False, kw_only=True)
class _Search:
    """One search.

    Args:
        robot, gains_known, in_newtons: as for `detect`.
        train, held_out: candidates beside the rows of either motion.
        reference: of the recording as it is.
        answers: what is said of a candidate.
        possible: what possible bodies say of a trial.
    """

    robot: Robot
    train: Scanner
    held_out: Scanner
    reference: ColumnReference
    answers: FaultAnswers
    possible: PossibleErrors
    gains_known: bool
    in_newtons: bool

    def run(self, candidates: Sequence[Imperfection]) -> Detection:
        """Faults one after the other, and what is left then."""
        course = self._begun(candidates)
        while len(course.found) + len(course.unnamed) < _MOST_FAULTS:
            best = self._best(course.open, course.energy)
            if not best:
                break
            take = self._take_drift if best[0].item.family in DRIFTS else self._take
            take(course, best)
        return self._ended(course)

    def _begun(self, candidates: Sequence[Imperfection]) -> _Course:
        record = Imperfections(
            joints=tuple(self.answers.channels),
            names=tuple(self.train.runs[0].source.columns),
            reference=self.reference,
            moves=True,
        )
        course = _Course(
            candidates=candidates,
            record=record,
            noise=self.train.freed(record).noise,
            held_out_error=self._held_out_error(record),
        )
        self._look_again(course)
        return course

    def _take_drift(self, course: _Course, best: Sequence[Seen]) -> None:
        """Undo what changes with time at the joint of the best, if that is certain."""
        seen = self._likeliest_drift(course, best)
        steady, quiet, own = self._steadied(course, seen)
        if not own.certain:
            course.refused.add(own.item)
            return
        course.found[own.item] = self.answers.found(own, explains=seen.taken / course.energy)
        course.record, course.noise = steady, quiet
        course.drifts = (*course.drifts, Sized(own.item, own.size, nan))
        for other in self._needless(course):
            del course.found[other.item]
            course.steady.add(other.item.joint)
            course.drifts = tuple(drift for drift in course.drifts if drift is not other)
        self._look_again(course)

    def _take(self, course: _Course, best: Sequence[Seen]) -> None:
        """Undo the likeliest of these, if that is certain, pays on the held-out motion and nothing contradicts it."""
        tried = [seen for seen in best if seen.item.family not in DRIFTS]
        refined = [self._refined(course, seen) for seen in (*tried, *self._uneven(course, tried))]
        trial, as_good = self._likeliest(course, refined)
        trial, quiet, own = self._settled(trial, course.drifts)
        item, size = trial.sizes[-1].item, trial.sizes[-1].value
        after = self._held_out_error(trial)
        change = float(np.exp(after - course.held_out_error)) - 1.0
        explains = 1.0 - min(rest for _, rest in refined) / course.energy
        pays = explains >= self._share * FAULT_SHARE.value and not change >= 0.0
        if not (pays and own.whole(size).certain) or self._contradicted(trial, own.whole(size)):
            course.refused.add(item)
            return
        course.record, course.noise, course.held_out_error = trial, quiet, after
        if item not in course.candidates:
            course.candidates = (*course.candidates, item)
        self._look_again(course)
        own = next(seen for seen in course.seen if seen.item == item).whole(size)
        if abs(size) <= item.tolerance or not own.certain:
            course.unnamed[item] = size
            return
        fault = self.answers.found(own, explains=explains, change=change)
        course.found[item] = self.answers.unless(fault, as_good)
        course.rivals |= {other.item: self.answers.rival(other, fault) for other in as_good}
        if as_good:
            course.doubtful.add(item)

    def _uneven(self, course: _Course, tried: Sequence[Seen]) -> list[Seen]:
        """Beside every gain among these, gains of its joint that are not one number, where they explain more beyond chance.

        Of a joint whose torque has one sign a gain by that sign is the gain.
        """
        alone = {seen.item.joint: seen for seen in tried if seen.item.family is Family.GAIN}
        if not alone:
            return []
        effects = torque_source(self.train.runs).effects
        every = imperfections(self.robot, effects, course.record.reference, _UNEVEN)
        known = {*course.candidates, *course.refused}
        open_ = [item for item in every if item.joint in alone and item not in known]
        if not open_:
            return []
        seen, _ = self.train.scan(course.record, course.drifts, open_, course.noise, spreads=False)
        return [s for s in seen if not within_chance(-s.taken, -alone[s.item.joint].taken)]

    def _ended(self, course: _Course) -> Detection:
        """Answers for everything, that was found or not."""
        left = [seen for seen in course.seen if seen.item not in course.found]
        told = [seen.whole(course.unnamed[seen.item]) if seen.item in course.unnamed else seen for seen in left]
        bound = [by_own_rows(seen, course.noise) if seen.item.family in CHANGES else seen for seen in told]
        rest = [course.rivals.get(seen.item) or self.answers.unfound(seen, course.energy) for seen in bound]
        # A length is undone in the description, and beside one that is wrong sensors are not what they seem.
        another = any(item.family is Family.LENGTH for item in course.found)
        certain = () if another else tuple(s for s in course.record.sizes if s.item not in course.left_alone)
        return Detection(
            faults=(*course.found.values(), *rest, *self._mixed(course), *self._scale(course.record, course.drifts)),
            undone=replace(course.record, sizes=certain) if certain else None,
        )

    @cached_property
    def _share(self) -> float:
        """Of the shares that a fault must explain: each channel is weighed by its noise, so that one of many holds little."""
        return share_of_channels(len(self.answers.channels))

    def _look_again(self, course: _Course) -> None:
        """Every candidate alone, slow drifts of joints without a drift that was found among them; what was refused is open."""
        course.seen, course.energy = self._looked(course)
        course.refused.clear()

    def _looked(self, course: _Course) -> tuple[list[Seen], float]:
        record, drifts, noise = course.record, course.drifts, course.noise
        seen, energy = self.train.scan(record, drifts, course.candidates, noise)
        slow = wanders(
            self.robot,
            self.train.freed(record, drifts).runs,
            self.train.base,
            record.reference,
            noise,
            found_on=LOOKED_AT,
            beside=(*(drift.item for drift in drifts), *of_position(self.robot, record.reference)),
            energy=energy,
        )
        known = {drift.item.joint for drift in drifts if drift.item.family not in CHANGES}
        return [*seen, *(s for s in slow if s.item.family in CHANGES or s.item.joint not in known)], energy

    def _mixed(self, course: _Course) -> tuple[Fault, ...]:
        """Sensors that read by direction or load, or what another joint carries, once all else is undone.

        Gains, friction that grows with the load and torque of the position look alike, and stand beside them; rows of a joint
        count by how long its own residuals hold together. Found is what explains most, where its interval leaves what is
        ordinary and it does so on other motion too.
        """
        reference, drifts = course.record.reference, course.drifts
        effects = torque_source(self.train.runs).effects
        alike = imperfections(self.robot, effects, reference, _LIKE_MIXED)
        every = imperfections(self.robot, effects, reference, MIXED)
        candidates = [item for item in every if item not in course.candidates]
        record, noise, before = course.record, course.noise, course.held_out_error
        found: dict[Imperfection, Fault] = {}
        refused: set[Imperfection] = set()
        seen, energy = self.train.scan(record, drifts, candidates, noise, alike)
        while len(found) + len(refused) < _REFINED:
            worth = [s for s in seen if s.item not in {*found, *refused} and significant(s, energy, self._share)]
            if not worth:
                break
            best = max(worth, key=lambda s: s.taken)
            trial, quiet, own = self._mixing(course, record, best, alike)
            after = self._held_out_error(trial)
            change = float(np.exp(after - before)) - 1.0
            beyond = own.certain and abs(own.size) - own.half > own.item.tolerance
            if not beyond or change >= 0.0 or self._contradicted(trial, own, alike):
                refused.add(best.item)
                continue
            found[best.item] = self.answers.found(own, explains=best.taken / energy, change=change)
            record, noise, before = trial, quiet, after
            seen, energy = self.train.scan(record, drifts, candidates, noise, alike)
        rest: dict[tuple[Family, int | None, str], Fault] = {}
        for other in sorted(seen, key=lambda s: -s.taken):
            item = other.item
            # Of crosstalk the one that explains most of a joint.
            part = "" if item.family is Family.CROSSTALK else item.part
            if item not in found:
                unfound = self.answers.unfound(by_own_rows(other, noise), energy)
                rest.setdefault((item.family, item.joint, part), unfound)
        return (*found.values(), *rest.values())

    def _mixing(
        self, course: _Course, record: Imperfections, seen: Seen, alike: Sequence[Imperfection]
    ) -> tuple[Imperfections, RowNoise, Seen]:
        """A record with one of these undone too, the noise of its rows, and what it is then."""
        with_it = replace(record, sizes=(*record.sizes, Sized(seen.item, seen.size, nan)))
        trial, quiet, _ = self._settled(with_it, course.drifts, alike)
        (left,), _ = self.train.scan(trial, course.drifts, (seen.item,), quiet, alike)
        return trial, quiet, by_own_rows(left.whole(trial.sizes[-1].value), quiet)

    def _likeliest_drift(self, course: _Course, best: Sequence[Seen]) -> Seen:
        """Of those that change with time at the joint of the best, the one that leaves least once it is undone."""
        same = [s for s in best if s.item.family in DRIFTS and s.item.joint == best[0].item.joint]
        if len(same) == 1:
            return same[0]

        def left(seen: Seen) -> float:
            with_it = (*course.drifts, Sized(seen.item, seen.size, nan))
            steady, _ = self.train.fitted(course.record, with_it)
            return self.train.scan(steady, with_it, (seen.item,), course.noise, spreads=False)[1]

        return min(same, key=left)

    def _steadied(self, course: _Course, seen: Seen) -> tuple[Imperfections, RowNoise, Seen]:
        """The record with the model that fits runs without this drift too, their noise, and the drift as that shows it."""
        with_it = (*course.drifts, Sized(seen.item, seen.size, nan))
        steady, quiet = self.train.fitted(course.record, with_it)
        beside = self._beside_drift(seen.item, course.record.reference)
        (left,), _ = self.train.scan(steady, with_it, (seen.item,), quiet, beside)
        own = replace(left, size=seen.size + left.size)
        if seen.item.family is Family.SLOW_DRIFT:
            return steady, quiet, beyond_choice(replace(own, spread=seen.spread, freedom=seen.freedom), quiet)
        return steady, quiet, by_own_rows(own, quiet) if own.item.family in CHANGES else own

    def _beside_drift(self, item: Imperfection, reference: ColumnReference) -> tuple[Imperfection, ...]:
        """Beside a gain that changes, friction of that joint that does: an arm that warms up is no sensor."""
        if item.family is not Family.GAIN_DRIFT:
            return ()
        effects = torque_source(self.train.runs).effects
        rubbing = imperfections(self.robot, effects, reference, (Family.FRICTION_DRIFT,))
        return tuple(other for other in rubbing if other.joint == item.joint)

    def _needless(self, course: _Course) -> list[Sized]:
        """Drifts found earlier that the last one explains: a joint whose torque wanders bends the model of the others."""
        out = []
        for drift in course.drifts[:-1]:
            others = [d for d in course.drifts if d is not drift]
            steady, quiet = self.train.fitted(course.record, others)
            (seen,), energy = self.train.scan(steady, others, (drift.item,), quiet, spreads=False)
            if not significant(seen, energy, self._share):
                out.append(drift)
        return out

    def _best(self, seen: Sequence[Seen], energy: float) -> list[Seen]:
        """Those worth undoing, by what they take away; none where all are ordinary.

        Something ordinary may explain more than anything beyond its tolerance: a zero of a degree makes the zero of its neighbour
        seem to be off by more. It is undone first, and said to be ordinary.
        """
        beyond = simplest([s for s in seen if significant(s, energy, self._share)])
        if not beyond:
            return []
        ordinary = [s for s in seen if s.item.family not in DRIFTS and worth_undoing(s, energy, self._share)]
        worth = {s.item: s for s in (*beyond, *ordinary)}
        order = sorted(worth.values(), key=lambda s: -s.taken)
        alike = [s for s in order[_REFINED:_MOST_ALIKE] if within_chance(s.taken, order[0].taken)]
        return [*order[:_REFINED], *alike]

    def _scale(self, record: Imperfections, drifts: Sequence[Sized]) -> tuple[Fault, ...]:
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
        scales = [self._scale(trial, drifts)[0] for trial in order]
        kept = [
            trial
            for trial, scale in zip(order, scales, strict=True)
            if abs(scale.estimate) < FAR_APART.value * scale.standard_deviation
        ]
        return kept or order

    def _refined(self, course: _Course, seen: Seen) -> tuple[Imperfections, float]:
        """The record with this candidate undone exactly, and the squared error that is left."""
        size, item = seen.size, seen.item
        energy, trial = inf, course.record
        for _ in range(_STEPS):
            with_it = (*course.record.sizes, Sized(item, possible_size(item, size), nan))
            trial, _ = self.train.fitted(replace(trial, sizes=with_it), course.drifts)
            scaled = _in_units_of(trial, course.record, course.noise)
            (again,), energy = self.train.scan(trial, course.drifts, (item,), scaled, spreads=False)
            if not isfinite(again.deviation) or abs(again.size) < _SETTLED * max(abs(size), item.tolerance):
                break
            size = together(item, possible_size(item, size), again.size)
        return trial, energy

    def _likeliest(
        self, course: _Course, refined: Sequence[tuple[Imperfections, float]]
    ) -> tuple[Imperfections, list[Sized]]:
        """Of candidates undone, with what each leaves, the one to believe in, and those that explain as much."""
        costs = [(trial, rest + against(trial.sizes[-1])) for trial, rest in refined]
        least = min(cost for _, cost in costs)
        equal = [trial for trial, cost in costs if tied(course.energy, least, cost)]
        trial, *as_good = self._described(equal, course.drifts)
        as_good += [other for other, cost in costs if within_chance(least, cost) and other not in (trial, *as_good)]
        return trial, [other.sizes[-1] for other in as_good]

    def _settled(
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

    def _contradicted(self, trial: Imperfections, seen: Seen, rivals: Sequence[Imperfection] = ()) -> bool:
        """Whether the held-out motion denies the last size of a trial, or possible bodies do not bear out a decisive one."""
        return self._denied(trial, rivals) or (self.answers.large(seen) and not self.possible.bear_out(trial))

    def _denied(self, trial: Imperfections, rivals: Sequence[Imperfection] = ()) -> bool:
        """Whether the held-out motion, looked at by itself, rules out half of the last size of a trial.

        A sensor is as wrong there as in the training motion. What a model lacks is not: undone as a fault of a sensor it may
        leave less on both motions, yet each asks for a size of its own.
        """
        if not len(self.held_out.runs):
            return False
        item, size = trial.sizes[-1].item, trial.sizes[-1].value
        try:
            noise = self.held_out.freed(trial).noise
        except EstimationError:
            return False  # a motion that does not determine the parameters denies nothing
        (left,), _ = self.held_out.scan(trial, (), (item,), noise, rivals, spreads=False)
        there = together(item, size, left.size)
        short = (FAULT_REPEATED.value * size - there) * np.sign(size)
        return bool(isfinite(left.deviation) and short > ROBUST_CHANCE.value * left.deviation)

    def _held_out_error(self, record: Imperfections) -> float:
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


def _in_units_of(trial: Imperfections, record: Imperfections, noise: RowNoise) -> RowNoise:
    """Noise of a record's rows for those of a trial, in which torques have other gains: errors of both compare."""
    ratio = (1.0 + record.gains) / (1.0 + trial.gains)
    return replace(noise, sigma=noise.sigma * ratio)
