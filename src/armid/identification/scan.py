"""Candidates for what is wrong with a recording beside its rows: one at a time, without any belief, bodies free.

Each candidate is a column; its size and deviation follow from rows counted by their independent samples, beside what the arm
itself may have: shapes of friction, torque that goes with the angle of a joint, rotors that nobody described.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.eliminated import Eliminated
from armid.estimation.estimate import Estimate
from armid.estimation.imperfections import FACTORS, block_spreads
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.reversals import classed_information
from armid.estimation.run import Run, each_run
from armid.estimation.runs import changed_runs, lengths_of
from armid.identifiability.base import BaseParameters
from armid.identification.candidates import DRIFTS, Seen, nothing_told
from armid.identification.elapsed import places
from armid.identification.freed_runs import WithoutDrifts, seconds_of
from armid.identification.imperfection_rows import RowNoise, RowsBeside, every_of
from armid.identification.sensors import Imperfections, Sized, corrected_runs
from armid.logs.health.channels import minimum_range
from armid.robot.robot import Robot
from armid.rows.imperfections import STRIBECK_SCALES, ColumnReference, Family, Imperfection, imperfections
from armid.rows.presliding import CANDIDATES as PRESLIDING

LOOKED_AT = 5000
"""Samples of a motion, spread evenly: residuals hold together for longer than that thins them out."""

_RIVALS = (
    Family.ASYMMETRIC,
    Family.QUADRATIC,
    Family.CUBIC,
    Family.STRIBECK,
    Family.POSITION_SINE,
    Family.POSITION_COSINE,
    Family.REVERSAL,
    Family.ROTOR,
)
"""What stands beside every candidate, so that the arm itself is not taken for a sensor: shapes of friction with their base
tolerance, Coulomb friction that turns around late or early, and rotor inertias that no parameter describes, which look like
torque that comes too early. With friction's own turning beside it, only smooth torque shows a delay: presliding, a velocity that
was smoothed and what filters leave at reversals move the jump of Coulomb friction by tens of milliseconds on sound sensors.
Torque of a joint's angle (a cable, a hose, ripple of a gear) makes zeros and gear ratios of wrists."""

_UNBOUNDED = (*DRIFTS, Family.REVERSAL, Family.ROTOR, Family.LOAD)
"""Beside a candidate these are as large as the rows say: a drift that was found, friction that turns around late, a rotor inertia
that nobody knows, and beside a sensor that reads by direction friction that grows with the load."""

_OF_ANGLE = (Family.POSITION_SINE, Family.POSITION_COSINE)
"""As large as they may be in the model: three times their tolerance."""

_OF_POSITION = (Family.SPRING, Family.ZERO, Family.ZERO_DRIFT, Family.SCALE, Family.ECCENTRICITY, Family.PLAY)
"""Families of what is there by the position of one joint alone."""

_PRESLIDING = 3.0
"""Of the longest distance over which friction turns around: it is 95 % of its way then."""

_FREE = 1e3
"""Tolerances: as large as the rows say."""

_HUMP = STRIBECK_SCALES[len(STRIBECK_SCALES) // 2]
"""Of the humps near standstill that friction may have, the one that stands for all of them beside a candidate."""

_BLOCKS = (5, 20)
"""Fewest and most blocks of time that are left out in turn; of one second where that makes as many."""

_KEPT = 6
"""Freed runs at hand, one for each of the candidates that are refined and compared."""


def usual_rivals(robot: Robot, runs: Sequence[Run], reference: ColumnReference) -> tuple[Imperfection, ...]:
    """What stands beside every candidate."""
    every = imperfections(robot, torque_source(runs).effects, reference, _RIVALS)
    return tuple(item for item in every if item.scale in (0.0, _HUMP))


@dataclass(frozen=True, eq=False)
class FreedRuns:
    """Runs freed from something, and the fit to them when it is asked for.

    Args:
        runs: see there.
        base: that is estimated.
        record: what they were freed from; it lives as long as they do.
    """

    runs: Sequence[Run]
    base: BaseParameters
    record: Imperfections | None = None

    @cached_property
    def estimate(self) -> Estimate:
        """By weighted least squares."""
        return WeightedLeastSquares().fit(classed_information(self.runs), self.base)

    @cached_property
    def noise(self) -> RowNoise:
        """Of their rows."""
        return RowsBeside(self.runs, self.base, (), most=LOOKED_AT).noise(self.estimate)


@dataclass(frozen=True, eq=False, kw_only=True)
class Scanner:
    """Candidates beside the rows of some runs.

    Args:
        runs: as recorded.
        base: parameters to fit beside every candidate.
        rivals: that stand beside every candidate.
        kept: freed runs at hand.
    """

    runs: Sequence[Run]
    base: BaseParameters
    rivals: tuple[Imperfection, ...]
    kept: dict[Hashable, FreedRuns] = field(default_factory=dict)

    def freed(self, record: Imperfections, drifts: Sequence[Sized] = ()) -> FreedRuns:
        """The runs without these, and what follows from them: the last few are at hand.

        A trial is fitted, looked at, settled and held against the description: all on the same runs.
        """
        model = id(record.reference) if record.needs_model else None
        key = record.sizes, tuple(drifts), model
        freed = self.kept.pop(key, None)
        if freed is None:
            freed = FreedRuns(self._without(record, drifts), self.base, record)
        self.kept[key] = freed
        if len(self.kept) > _KEPT:
            del self.kept[next(iter(self.kept))]
        return freed

    def _without(self, record: Imperfections, drifts: Sequence[Sized]) -> Sequence[Run]:
        runs = corrected_runs(self.runs, record)
        if not drifts:
            return runs
        return changed_runs(
            runs, WithoutDrifts(drifts, record.reference), places(runs, [drift.item for drift in drifts])
        )

    def fitted(self, record: Imperfections, drifts: Sequence[Sized]) -> tuple[Imperfections, RowNoise]:
        """The record with the model that fits runs freed from what it holds, and the noise of their rows.

        A fault makes the residuals of its joint large and smooth. Beside these its own deviation would grow as it does, and the
        largest fault would be no surer than a small one; so it is held against what is left once it is undone. Columns are
        derivatives of the model, and that of a recording with a large fault is wrong.
        """
        freed = self.freed(record, drifts)
        reference = replace(record.reference, standard=np.array(freed.estimate.standard))
        return replace(record, reference=reference), freed.noise

    def scan(
        self,
        record: Imperfections,
        drifts: Sequence[Sized],
        candidates: Sequence[Imperfection],
        noise: RowNoise,
        rivals: Sequence[Imperfection] = (),
        *,
        spreads: bool = True,
    ) -> tuple[list[Seen], float]:
        """Every candidate alone beside the usual rivals and further ones, and the squared error without any.

        Args:
            record, drifts: what the runs are freed from.
            candidates: looked at.
            noise: of the rows.
            rivals: further ones.
            spreads: whether blocks of time are left out in turn, to see what that changes.
        """
        runs = self.freed(record, drifts).runs
        further = (*rivals, *(d.item for d in drifts if (d.item,) != tuple(candidates)))
        beside = tuple(dict.fromkeys((*self.rivals, *further)))
        rows = RowsBeside(runs, self.base, (*beside, *candidates), most=LOOKED_AT)
        blocks = self._blocks if spreads else 1
        factors = rows.blocks(record.reference, noise, folds=blocks).factors
        b, m = len(self.base), len(beside)
        belief = np.zeros((m, b + m + len(candidates) + 1))
        belief[:, b : b + m] = np.diag([1.0 / _width(item) for item in beside])
        left = Eliminated.of(b + m, [*factors, belief])
        energy = float(np.sum(left.factor[b + m :, -1] ** 2))
        moved = block_spreads(b + m, factors, belief) if spreads else np.zeros(len(candidates))
        seen = []
        for k, (item, spread) in enumerate(zip(candidates, moved, strict=True)):
            size, deviation, taken = left.alone(k)
            seen.append(
                Seen(item=item, size=size, deviation=deviation, taken=taken, spread=float(spread), freedom=blocks - 1.0)
            )
        return [nothing_told(s) if self._turns_all_along(s.item) else s for s in seen], energy

    def _turns_all_along(self, item: Imperfection) -> bool:
        """Whether it is about the position of a joint that moves so little that its friction turns around all the way.

        Over a distance of presliding friction is a spring: it pulls back in proportion to the way, by as much as it likes.
        """
        if item.family not in _OF_POSITION or item.joint is None:
            return False
        robot = torque_source(self.runs).robot
        return bool(self._travel[item.joint] < max(_PRESLIDING * PRESLIDING[-1], minimum_range(robot, item.joint)))

    @cached_property
    def _travel(self) -> FloatArray:
        """Between the extremes of every joint over all runs [rad or m]."""
        low, high = zip(*each_run(self.runs, _extremes), strict=True)
        return np.asarray(np.max(high, axis=0) - np.min(low, axis=0))

    def independent_rows(self, noise: RowNoise) -> float:
        """How many rows that are looked at tell anything of their own."""
        looked_at = -(-sum(lengths_of(self.runs)) // every_of(self.runs, LOOKED_AT))
        return looked_at * len(noise.sigma) / noise.rows_per_sample

    @property
    def _blocks(self) -> int:
        """Blocks of time that are left out in turn."""
        seconds = sum(each_run(self.runs, seconds_of))
        return int(np.clip(seconds, *_BLOCKS))


def _extremes(run: Run) -> tuple[FloatArray, FloatArray]:
    """Least and greatest position of every joint [rad or m]."""
    q = run.inputs[:, : torque_source([run]).robot.n_joints]
    return q.min(axis=0), q.max(axis=0)


def _width(item: Imperfection) -> float:
    """Of what is believed about a rival."""
    if item.family in _UNBOUNDED:
        return item.tolerance * _FREE
    return item.tolerance * (FACTORS[-1] if item.family in _OF_ANGLE else 1.0)
