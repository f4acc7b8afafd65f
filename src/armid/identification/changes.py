"""What changes with time, along a line, in waves or at once: the likeliest at a joint, undone, and what that makes needless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, log, nan

from armid.estimation.recording import torque_source
from armid.identification.candidates import CHANGES, DRIFTS, Seen, shape_numbers, significant
from armid.identification.imperfection_rows import RowNoise
from armid.identification.scan import LOOKED_AT
from armid.identification.sensors import Imperfections, Sized
from armid.identification.steps import beyond_moments, stepped
from armid.identification.trials import Trials
from armid.identification.wandering import beyond_choice, by_own_rows, of_position, wanders
from armid.rows.imperfections import ColumnReference, Family, Imperfection, imperfections

_STEPS = 5
"""At most, in which what changes with time is undone."""

_SETTLED = 0.02
"""Tolerances by which it may still move then."""

_MOST = {Family.GAIN_DRIFT: (-0.9, 2.0), Family.ZERO_DRIFT: (-0.5, 0.5)}
"""Changes of a gain (to a tenth, to three times) and of a zero (30 degrees, half a metre) beyond which other things are wrong:
the joint's error says so."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Changes:
    """What changes with time in one recording.

    Args:
        trials: on the recording.
        several: whether there is more than one, so that something may change in each of them alike.
        share: of the shares that a fault must explain.
    """

    trials: Trials
    several: bool
    share: float

    def beside(
        self, record: Imperfections, drifts: Sequence[Sized], noise: RowNoise, seen: Sequence[Seen], energy: float
    ) -> list[Seen]:
        """What wanders, changes along a line or at once beside what was found, as the rows show it.

        Args:
            record, drifts: what the runs are freed from.
            noise: of their rows.
            seen, energy: everything else, and the squared error to which shares refer.
        """
        there = (*(drift.item for drift in drifts), *of_position(self.trials.robot, record.reference))
        where = (
            self.trials.robot,
            self.trials.train.freed(record, drifts).runs,
            self.trials.train.base,
            record.reference,
            noise,
        )
        slow = wanders(*where, found_on=LOOKED_AT, beside=there, energy=energy, several=self.several)
        known = {drift.item.joint for drift in drifts if drift.item.family not in CHANGES}
        slow = [s for s in slow if s.item.family in CHANGES or s.item.joint not in known]
        others = [*seen, *slow]
        at_once = stepped(*where, found_on=LOOKED_AT, beside=there, energy=energy, others=others)
        return [one for one in (*slow, *at_once) if possible_change(one)]

    def likeliest(
        self, record: Imperfections, drifts: Sequence[Sized], noise: RowNoise, best: Sequence[Seen], energy: float
    ) -> Seen:
        """Of those that change with time at the joint of the best, the one that costs least."""
        same = [s for s in best if s.item.family in DRIFTS and s.item.joint == best[0].item.joint]
        if len(same) == 1:
            return same[0]
        return min(same, key=lambda seen: self.cost(record, drifts, noise, seen, energy))

    def cost(self, record: Imperfections, drifts: Sequence[Sized], noise: RowNoise, seen: Seen, energy: float) -> float:
        """What one leaves once it is undone, in units of the noise, and what its shape costs.

        Every number that the rows chose of its shape counts against it as much as the logarithm of the independent rows.
        """
        with_it = (*drifts, Sized(seen.item, seen.size, nan))
        steady, _ = self.trials.train.fitted(record, with_it)
        left = self.trials.train.scan(steady, with_it, (seen.item,), noise, spreads=False)[1]
        return left + shape_numbers(seen.item) * log(max(energy, 1.0))

    def steadied(
        self, record: Imperfections, drifts: Sequence[Sized], seen: Seen
    ) -> tuple[Imperfections, RowNoise, Seen]:
        """The record with the model that fits runs without this drift too, their noise, and the drift as that shows it.

        What is multiplied, or moved, by a model that holds the drift itself is not undone in one step.
        """
        item, size, steady = seen.item, seen.size, record
        beside = self._rubbing(item, record.reference)
        for _ in range(_STEPS):
            with_it = (*drifts, Sized(item, size, nan))
            steady, quiet = self.trials.train.fitted(steady, with_it)
            (left,), _ = self.trials.train.scan(steady, with_it, (item,), quiet, beside, spreads=False)
            size += left.size
            if not isfinite(left.deviation) or abs(left.size) < _SETTLED * item.tolerance:
                break
        (left,), _ = self.trials.train.scan(steady, with_it, (item,), quiet, beside)
        own = replace(left, size=size)
        if item.family is Family.SLOW_DRIFT:
            return steady, quiet, beyond_choice(replace(own, spread=seen.spread, freedom=seen.freedom), quiet)
        if item.stretch is not None:
            return steady, quiet, beyond_moments(by_own_rows(own, quiet))
        return steady, quiet, by_own_rows(own, quiet) if item.family in CHANGES else own

    def needless(self, record: Imperfections, drifts: Sequence[Sized]) -> list[Sized]:
        """Drifts found earlier that the last one explains: a joint whose torque wanders bends the model of the others."""
        out = []
        for drift in drifts[:-1]:
            others = [d for d in drifts if d is not drift]
            steady, quiet = self.trials.train.fitted(record, others)
            (seen,), energy = self.trials.train.scan(steady, others, (drift.item,), quiet, spreads=False)
            if not significant(seen, energy, self.share):
                out.append(drift)
        return out

    def _rubbing(self, item: Imperfection, reference: ColumnReference) -> tuple[Imperfection, ...]:
        """Beside a gain that changes, friction of that joint that does: an arm that warms up is no sensor."""
        if item.family is not Family.GAIN_DRIFT:
            return ()
        effects = torque_source(self.trials.train.runs).effects
        every = imperfections(self.trials.robot, effects, reference, (Family.FRICTION_DRIFT,))
        return tuple(replace(one, part=item.part, stretch=item.stretch) for one in every if one.joint == item.joint)


def possible_change(seen: Seen) -> bool:
    """Whether a change is one that anything makes: what a model lacks asks for sizes that its derivative says nothing of."""
    least, most = _MOST.get(seen.item.family, (-inf, inf))
    return least <= seen.size <= most
