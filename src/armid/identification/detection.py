"""Which imperfection is wrong, and by how much: one at a time, without any belief, bodies free, rivals beside it.

The one that explains most is undone exactly, by Gauss-Newton, and the others are looked at again, until nothing significant
above its tolerance is left. Found is what leaves less on the held-out motion too, and what that motion, looked at by itself,
does not deny.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite, log, nan

import numpy as np

from armid.consistency.possible import PossibleBodies
from armid.estimation.recording import torque_source
from armid.estimation.run import Run
from armid.identifiability.base import BaseParameters
from armid.identification.candidates import (
    CHANGES,
    DRIFTS,
    MIXED,
    SUSPECTED,
    Seen,
    share_of_channels,
    significant,
    simplest,
    within_chance,
    worth_undoing,
)
from armid.identification.changes import Changes, possible_change
from armid.identification.described_bodies import COMMON_GAIN
from armid.identification.elapsed import several_recordings
from armid.identification.fault_answers import FaultAnswers, with_deviations
from armid.identification.faults import Answer, Fault
from armid.identification.imperfection_rows import RowNoise, reference_of
from armid.identification.metrics import has_masses
from armid.identification.mixed_sensors import mixed_faults
from armid.identification.possible_errors import PossibleErrors
from armid.identification.scan import FreedRuns, Scanner, usual_rivals
from armid.identification.sensors import Imperfections, Sized
from armid.identification.thresholds import FAULT_PHASE, FAULT_SHARE
from armid.identification.tolerances import DEFAULT, ImperfectionTolerances
from armid.identification.trials import Trials
from armid.identification.wandering import anew, by_own_rows
from armid.parameters.effects import Effects
from armid.robot.robot import Robot
from armid.rows.imperfections import (
    AS_DESCRIBED,
    WITH_VELOCITIES,
    ColumnReference,
    Family,
    Imperfection,
    imperfections,
)

_UNEVEN = (Family.DIRECTION_GAIN, Family.TURNING_GAIN, Family.LOAD_GAIN, Family.POSITION_GAIN)
"""Gains of a sensor that are not one number; a gain that is one fits most of each of them."""

_APART = (Family.SLOW_DRIFT, *CHANGES, *MIXED)
"""The shape of a slow drift is found by itself, and what changes with time beside it; what mixes torques comes last."""

_MOST_FAULTS = 4
"""That are looked for one after the other."""

_REFINED = 3
"""Of the best candidates that are undone exactly before they are compared: far from zero columns rank only roughly."""

_MOST_ALIKE = 6
"""The same where they explain as much up to chance: which of them it is a short or poor recording cannot tell."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Detection:
    """What was found.

    Args:
        faults: every candidate with its answer.
        undone: those found that can be undone, as a record that frees runs from them; None when there are none.
        named: the same with those beside which something else explains as much.
    """

    faults: tuple[Fault, ...]
    undone: Imperfections | None
    named: Imperfections | None


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
    tolerances: ImperfectionTolerances = DEFAULT,
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
        tolerances: up to which sizes are ordinary.
    """
    as_it_is = FreedRuns(train, base)
    reference = reference_of(train, as_it_is.estimate.standard, recorded_velocity=recorded_velocity)
    settled = {Family.GAIN: gains_known, Family.CLOCK: clock_known}
    effects = torque_source(train).effects
    several = several_recordings(train)
    families = [f for f in SUSPECTED if f not in _APART and not settled.get(f, False)]
    candidates = _candidates(robot, effects, reference, families, tolerances)
    every = (*candidates, *imperfections(robot, effects, reference, _APART))
    if several:
        candidates, every = (*candidates, *anew(candidates)), (*every, *anew(every))
    rivals = usual_rivals(robot, train, reference)
    trials = Trials(
        robot=robot,
        train=Scanner(runs=train, base=base, rivals=rivals, kept={((), (), None): as_it_is}),
        held_out=Scanner(runs=held_out, base=base, rivals=rivals),
        answers=FaultAnswers(
            robot=robot,
            channels=train[0].channels,
            delay=0.0 if cutoff_hz is None or not isfinite(cutoff_hz) else FAULT_PHASE.value / cutoff_hz,
            looked_at=len(every),
        ),
        possible=PossibleErrors(
            robot=robot, base=base, bodies=bodies or PossibleBodies(), train=train, held_out=held_out
        ),
        gains_known=gains_known,
        in_newtons=in_newtons,
    )
    return _Search(trials=trials, reference=reference, several=several).run(candidates)


def _candidates(
    robot: Robot,
    effects: Effects,
    reference: ColumnReference,
    families: Sequence[Family],
    tolerances: ImperfectionTolerances,
) -> tuple[Imperfection, ...]:
    """What is looked at one by one, with clocks that are in the velocities too and weight that the description has."""
    own = tuple(map(tolerances.applied, imperfections(robot, effects, reference, families)))
    if reference.recorded_velocity:
        # Velocities that agree with the stamps exclude no clock: a recorder may have made them from positions and these stamps.
        own += tuple(replace(item, part=WITH_VELOCITIES) for item in own if item.family is Family.CLOCK)
    if has_masses(robot):
        own += tuple(replace(item, part=AS_DESCRIBED) for item in own if item.family is Family.WEIGHT)
    return own


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


@dataclass(frozen=True, eq=False, kw_only=True)
class _Search:
    """One search.

    Args:
        trials: on the recording.
        reference: of the recording as it is.
        several: whether there is more than one, so that something may change in each of them alike.
    """

    trials: Trials
    reference: ColumnReference
    several: bool

    def run(self, candidates: Sequence[Imperfection]) -> Detection:
        """Faults one after the other, and what is left then."""
        course = self._begun(candidates)
        while len(course.found) + len(course.unnamed) < _MOST_FAULTS:
            best: Sequence[Seen] = self._best(course.open, course.energy)
            if not best:
                break
            best = self._constant_first(course, best)
            take = self._take_drift if best[0].item.family in DRIFTS else self._take
            take(course, best)
        return self._ended(course)

    def _begun(self, candidates: Sequence[Imperfection]) -> _Course:
        record = Imperfections(
            joints=tuple(self.trials.answers.channels),
            names=tuple(self.trials.train.runs[0].source.columns),
            reference=self.reference,
            moves=True,
        )
        course = _Course(
            candidates=candidates,
            record=record,
            noise=self.trials.train.freed(record).noise,
            held_out_error=self.trials.held_out_error(record),
        )
        self._look_again(course)
        return course

    def _constant_first(self, course: _Course, best: Sequence[Seen]) -> Sequence[Seen]:
        """The best, or what is constant about its joint where the best is a step and that, undone exactly, leaves no more.

        A step early or late in a motion is nearly constant, and a large fault is not what its derivative promises.
        """
        step = best[0]
        if step.item.stretch is None:
            return best
        own = [s for s in course.open if s.item.joint == step.item.joint and s.item.family not in DRIFTS]
        constant = [s for s in own if significant(s, course.energy, self._share)]
        order = sorted(constant, key=lambda s: -s.taken)[:_REFINED]
        undone = [self.trials.refined(course.record, course.drifts, course.noise, seen) for seen in order]
        rests = [one[1] for one in undone if one is not None]
        left = self._changes.cost(course.record, course.drifts, course.noise, step, course.energy)
        return order if rests and min(rests) + log(max(course.energy, 1.0)) <= left else best

    def _take_drift(self, course: _Course, best: Sequence[Seen]) -> None:
        """Undo what changes with time at the joint of the best, if that is certain."""
        seen = self._changes.likeliest(course.record, course.drifts, course.noise, best, course.energy)
        steady, quiet, own = self._changes.steadied(course.record, course.drifts, seen)
        if not own.certain or not possible_change(own):
            course.refused.add(own.item)
            return
        large = self.trials.answers.large(own)
        course.found[own.item] = self.trials.answers.found(own, explains=seen.taken / course.energy, large=large)
        course.record, course.noise = steady, quiet
        course.drifts = (*course.drifts, Sized(own.item, own.size, nan))
        for other in self._changes.needless(course.record, course.drifts):
            del course.found[other.item]
            course.steady.add(other.item.joint)
            course.drifts = tuple(drift for drift in course.drifts if drift is not other)
        self._look_again(course)

    def _take(self, course: _Course, best: Sequence[Seen]) -> None:
        """Undo the likeliest of these, if that is certain, pays on the held-out motion and nothing contradicts it."""
        tried = [seen for seen in best if seen.item.family not in DRIFTS]
        undone = [
            self.trials.refined(course.record, course.drifts, course.noise, seen)
            for seen in (*tried, *self._uneven(course, tried))
        ]
        refined = [one for one in undone if one is not None]
        if not refined:
            course.refused.update(seen.item for seen in tried)
            return
        trial, as_good = self.trials.likeliest(course.energy, course.drifts, refined)
        trial, _, own = self.trials.settled(trial, course.drifts)
        item, size = trial.sizes[-1].item, trial.sizes[-1].value
        after = self.trials.held_out_error(trial)
        change = float(np.exp(after - course.held_out_error)) - 1.0
        explains = 1.0 - min(rest for _, rest in refined) / course.energy
        pays = explains >= self._share * FAULT_SHARE.value and not change >= 0.0
        if not (pays and own.whole(size).certain) or self.trials.contradicted(trial, own.whole(size)):
            course.refused.add(item)
            return
        course.record, course.noise = self.trials.train.fitted(
            self.trials.together(trial, course.drifts), course.drifts
        )
        course.held_out_error = self.trials.held_out_error(course.record)
        size = course.record.sizes[-1].value
        if item not in course.candidates:
            course.candidates = (*course.candidates, item)
        self._look_again(course)
        own = next(seen for seen in course.seen if seen.item == item).whole(size)
        if abs(size) <= item.tolerance or not own.certain:
            course.unnamed[item] = size
            return
        large = self.trials.large(trial, own)
        fault = self.trials.answers.found(own, explains=explains, change=change, large=large)
        course.found[item] = self.trials.answers.unless(fault, as_good)
        course.rivals |= {other.item: self.trials.answers.rival(other, fault) for other in as_good}
        if as_good:
            course.doubtful.add(item)

    def _uneven(self, course: _Course, tried: Sequence[Seen]) -> list[Seen]:
        """Beside every gain among these, gains of its joint that are not one number, where they explain more beyond chance.

        Of a joint whose torque has one sign a gain by that sign is the gain.
        """
        alone = {seen.item.joint: seen for seen in tried if seen.item.family is Family.GAIN}
        if not alone:
            return []
        effects = torque_source(self.trials.train.runs).effects
        every = imperfections(self.trials.robot, effects, course.record.reference, _UNEVEN)
        known = {*course.candidates, *course.refused}
        open_ = [item for item in every if item.joint in alone and item not in known]
        if not open_:
            return []
        seen, _ = self.trials.train.scan(course.record, course.drifts, open_, course.noise, spreads=False)
        return [s for s in seen if not within_chance(-s.taken, -alone[s.item.joint].taken)]

    def _said_again(self, course: _Course) -> None:
        """What was found first with its size beside what was found later; what is ordinary then is not named."""
        for sized in course.record.sizes[:-1]:
            fault = course.found.get(sized.item)
            if fault is None:
                continue
            own = next(seen for seen in course.seen if seen.item == sized.item).whole(sized.value)
            if abs(sized.value) <= sized.item.tolerance or not own.certain:
                del course.found[sized.item]
                course.unnamed[sized.item] = sized.value
                continue
            again = self.trials.answers.found(
                own,
                explains=fault.explains,
                change=fault.held_out_change,
                large=self.trials.answers.large(own) or (fault.large and self.trials.answers.beyond(own)),
            )
            doubted = again.large and (fault.large or not fault.rivals)
            course.found[sized.item] = replace(again, rivals=fault.rivals, large=doubted)

    def _ended(self, course: _Course) -> Detection:
        """Answers for everything, that was found or not."""
        self._said_again(course)
        left = [seen for seen in course.seen if seen.item not in course.found]
        told = [seen.whole(course.unnamed[seen.item]) if seen.item in course.unnamed else seen for seen in left]
        bound = [by_own_rows(seen, course.noise) if seen.item.family in CHANGES else seen for seen in told]
        rest = [course.rivals.get(seen.item) or self.trials.answers.unfound(seen, course.energy) for seen in bound]
        # A moment that something else was taken for is no question of its own.
        rest = [
            fault
            for fault, seen in zip(rest, bound, strict=True)
            if not seen.item.stretch or fault.answer is Answer.UNDECIDABLE
        ]
        # A length is undone in the description, and beside one that is wrong sensors are not what they seem.
        another = any(item.family is Family.LENGTH for item in course.found)
        unnamed = {*course.unnamed, *(item for item in course.found if item.family is Family.PLAY)}
        named = () if another else tuple(s for s in course.record.sizes if s.item not in unnamed)
        certain = tuple(s for s in named if s.item not in course.doubtful and s.item.family is not Family.TILT)
        mixed = mixed_faults(
            self.trials,
            course.record,
            course.drifts,
            course.noise,
            held_out_error=course.held_out_error,
            known=course.candidates,
            share=self._share,
        )
        return Detection(
            faults=(*course.found.values(), *rest, *mixed, *self._scale(course)),
            undone=replace(course.record, sizes=with_deviations(certain, course.found)) if certain else None,
            named=replace(course.record, sizes=named) if named else None,
        )

    def _scale(self, course: _Course) -> tuple[Fault, ...]:
        """Common gain and payload. Bodies that are all too heavy or too light alike deny a clock, or weight, that was undone."""
        faults = self.trials.scale(course.record, course.drifts)
        if not any(item.family in (Family.CLOCK, Family.WEIGHT) for item in course.found):
            return faults
        return tuple(replace(f, large=f.large or (f.kind == COMMON_GAIN and f.answer is Answer.FOUND)) for f in faults)

    @cached_property
    def _changes(self) -> Changes:
        return Changes(trials=self.trials, several=self.several, share=self._share)

    @cached_property
    def _share(self) -> float:
        """Of the shares that a fault must explain: each channel is weighed by its noise, so that one of many holds little."""
        return share_of_channels(len(self.trials.answers.channels))

    def _look_again(self, course: _Course) -> None:
        """Every candidate alone, slow drifts of joints without a drift that was found among them; what was refused is open."""
        course.seen, course.energy = self._looked(course)
        course.refused.clear()

    def _looked(self, course: _Course) -> tuple[list[Seen], float]:
        record, drifts, noise = course.record, course.drifts, course.noise
        seen, energy = self.trials.train.scan(record, drifts, course.candidates, noise)
        return [*seen, *self._changes.beside(record, drifts, noise, seen, energy)], energy

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
