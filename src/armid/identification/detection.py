"""Which imperfection is wrong, and by how much: one at a time, without any belief, bodies free, rivals in friction beside it.

Each candidate is a column; its size and deviation follow from rows counted by their independent samples. The one that explains
most is undone exactly, by Gauss-Newton, and the others are looked at again, until nothing significant above its tolerance is
left.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite, nan

import numpy as np

from armid.estimation.estimate import NORMAL_95, Estimate
from armid.estimation.imperfections import FACTORS, Eliminated, block_spreads
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.reversals import classed_information
from armid.estimation.run import Run, each_run, information_of
from armid.estimation.runs import before, changed_runs, lengths_of
from armid.identifiability.base import BaseParameters
from armid.identification.candidates import (
    CHANGES,
    DRIFTS,
    EXPERIMENTS,
    MIXED,
    SUSPECTED,
    Seen,
    possible_size,
    share_of_channels,
    significant,
    simplest,
    tied,
    together,
    undoing_words,
    unless,
    within_chance,
    worth_undoing,
)
from armid.identification.described_bodies import scale_faults
from armid.identification.described_ways import way_words
from armid.identification.faults import Answer, Fault
from armid.identification.freed_runs import Squares, WithoutDrifts, seconds_of
from armid.identification.imperfection_rows import RowNoise, RowsBeside, reference_of
from armid.identification.sensors import Imperfections, Sized, corrected_runs
from armid.identification.thresholds import (
    FAR_APART,
    FAULT_DECISIVE,
    FAULT_DEVIATIONS,
    FAULT_EXCLUDED,
    FAULT_PHASE,
    FAULT_SHARE,
)
from armid.identification.wandering import beyond_choice, by_own_rows, of_position, wanders
from armid.robot.robot import Robot
from armid.rows.imperfections import KINDS, ColumnReference, Family, Imperfection, imperfections

_RIVALS = (Family.ASYMMETRIC, Family.QUADRATIC, Family.CUBIC, Family.STRIBECK, Family.REVERSAL, Family.ROTOR)
"""What stands beside every candidate, so that the arm itself is not taken for a sensor: shapes of friction with their base
tolerance, Coulomb friction that turns around late or early, and rotor inertias that no parameter describes, which look like
torque that comes too early. With friction's own turning beside it, only smooth torque shows a delay: presliding, a velocity that
was smoothed and what filters leave at reversals move the jump of Coulomb friction by tens of milliseconds on sound sensors."""

_UNBOUNDED = (*DRIFTS, Family.REVERSAL, Family.ROTOR, Family.POSITION_SINE, Family.POSITION_COSINE, Family.LOAD)
"""Beside a candidate these are as large as the rows say: a drift that was found, friction that turns around late, a rotor inertia
that nobody knows, beside a slow drift torque that goes with the position of the joint, and beside a sensor that reads by
direction friction that grows with the load."""

_LIKE_MIXED = (Family.GAIN, Family.LOAD, Family.ASYMMETRIC, Family.SPRING)
"""What a sensor that reads by direction may be taken for, beside torque of the position: where torque is mostly friction it is
friction that differs by direction, where a cable pulls it is the cable."""

_LOOKED_AT = 5000
"""Samples of the training motion, spread evenly: residuals hold together for longer than that thins them out."""

_BLOCKS = (5, 20)
"""Fewest and most blocks of time that are left out in turn; of one second where that makes as many."""

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

_KEPT = 3
"""Freed runs at hand, one for each of the candidates that are refined."""

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
    """
    as_it_is = _FreedRuns(train, base)
    reference = reference_of(train, as_it_is.estimate.standard, recorded_velocity=recorded_velocity)
    effects = torque_source(train).effects
    settled = {Family.GAIN: gains_known, Family.CLOCK: clock_known}
    # The shape of a slow drift is found by itself, and what changes with time beside it; what mixes torques comes last.
    apart = (Family.SLOW_DRIFT, *CHANGES, *MIXED)
    families = [f for f in SUSPECTED if f not in apart and not settled.get(f, False)]
    candidates = imperfections(robot, effects, reference, families)
    rivals = tuple(i for i in imperfections(robot, effects, reference, _RIVALS) if i.scale in (0.0, 0.1))
    search = _Detector(
        robot=robot,
        train=train,
        held_out=held_out,
        base=base,
        rivals=rivals,
        reference=reference,
        noise=as_it_is.noise,
        kept={((), (), None): as_it_is},
        gains_known=gains_known,
        in_newtons=in_newtons,
        delay=0.0 if cutoff_hz is None or not isfinite(cutoff_hz) else FAULT_PHASE.value / cutoff_hz,
    )
    return search.run(candidates)


@dataclass(frozen=True, eq=False)
class _FreedRuns:
    """Training runs freed from something, and the fit to them when it is asked for.

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
        return WeightedLeastSquares().fit(classed_information(self.runs), self.base)

    @cached_property
    def noise(self) -> RowNoise:
        return RowsBeside(self.runs, self.base, (), most=_LOOKED_AT).noise(self.estimate)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Detector:
    robot: Robot
    train: Sequence[Run]
    held_out: Sequence[Run]
    base: BaseParameters
    rivals: tuple[Imperfection, ...]
    reference: ColumnReference
    noise: RowNoise
    gains_known: bool
    in_newtons: bool
    delay: float
    kept: dict[Hashable, _FreedRuns] = field(default_factory=dict)

    def run(self, candidates: Sequence[Imperfection]) -> Detection:
        record = Imperfections(
            joints=tuple(self.train[0].channels),
            names=tuple(self.train[0].source.columns),
            reference=self.reference,
            moves=True,
        )
        found: dict[Imperfection, Fault] = {}
        drifts: tuple[Sized, ...] = ()
        refused: set[Imperfection] = set()
        needless: set[int | None] = set()
        rivals: dict[Imperfection, Fault] = {}
        doubtful: set[Imperfection] = set()
        ordinary: dict[Imperfection, float] = {}
        noise, before = self.noise, self._held_out_error(record)
        seen, energy = self._looked(record, drifts, candidates, noise)
        while len(found) + len(ordinary) < _MOST_FAULTS:
            open_ = [s for s in seen if s.item not in {*found, *refused, *ordinary}]
            best = self._best([s for s in open_ if s.item.family not in DRIFTS or s.item.joint not in needless], energy)
            if not best:
                break
            if best[0].item.family in DRIFTS:
                seen_best = self._likeliest_drift(record, drifts, best, noise)
                item = seen_best.item
                steady, quiet, own = self._steadied(record, drifts, seen_best)
                if abs(own.size) <= FAULT_DEVIATIONS.value * own.deviation:
                    refused.add(item)
                    continue
                found[item] = self._fault(own, Answer.FOUND, explains=seen_best.taken / energy)
                record, noise, drifts = steady, quiet, (*drifts, Sized(item, own.size, nan))
                for other in self._needless(record, drifts):
                    del found[other.item]
                    needless.add(other.item.joint)
                    drifts = tuple(drift for drift in drifts if drift is not other)
                refused.clear()
                seen, energy = self._looked(record, drifts, candidates, noise)
                continue
            refined = [self._refined(record, drifts, s, noise) for s in best if s.item.family not in DRIFTS]
            left = min(rest for _, rest in refined)
            trial, *as_good = self._described([trial for trial, rest in refined if tied(energy, left, rest)], drifts)
            as_good += [
                other for other, rest in refined if within_chance(left, rest) and other not in (trial, *as_good)
            ]
            trial, quiet, own = self._settled(trial, drifts)
            item, size = trial.sizes[-1].item, trial.sizes[-1].value
            after = self._held_out_error(trial)
            change, explains = float(np.exp(after - before)) - 1.0, 1.0 - left / energy
            unsure = abs(size) <= FAULT_DEVIATIONS.value * own.whole(size).deviation
            if unsure or explains < self._share * FAULT_SHARE.value or change >= 0.0:
                refused.add(item)
                continue
            record, noise, before = trial, quiet, after
            refused.clear()
            seen, energy = self._looked(record, drifts, candidates, noise)
            own = next(s for s in seen if s.item == item).whole(size)
            if abs(size) <= item.tolerance:
                ordinary[item] = size
                continue
            found[item] = self._fault(own, Answer.FOUND, explains=explains, change=change)
            if as_good:
                others = {other.sizes[-1].item: self._rival(other.sizes[-1], found[item]) for other in as_good}
                found[item] = unless(found[item], [rival.name for rival in others.values()])
                rivals |= others
                doubtful.add(item)
        told = (s.whole(ordinary[s.item]) if s.item in ordinary else s for s in seen if s.item not in found)
        bound = (by_own_rows(s, noise) if s.item.family in CHANGES else s for s in told)
        rest = [rivals.get(s.item) or self._answered(s, energy) for s in bound]
        rest += self._mixed(record, drifts, noise, before)
        # A length is undone in the description, and beside one that is wrong sensors are not what they seem.
        another = any(item.family is Family.LENGTH for item in found)
        certain = () if another else tuple(s for s in record.sizes if s.item not in {*doubtful, *ordinary})
        undone = replace(record, sizes=certain) if certain else None
        return Detection(faults=(*found.values(), *rest, *self._scale(record, drifts)), undone=undone)

    def _looked(
        self,
        record: Imperfections,
        drifts: Sequence[Sized],
        candidates: Sequence[Imperfection],
        noise: RowNoise,
    ) -> tuple[list[Seen], float]:
        """Every candidate alone, slow drifts of joints without a drift that was found among them; and the squared error."""
        seen, energy = self._scan(record, drifts, candidates, noise)
        slow = wanders(
            self.robot,
            self._kept(record, drifts).runs,
            self.base,
            record.reference,
            noise,
            found_on=_LOOKED_AT,
            beside=(*(drift.item for drift in drifts), *of_position(self.robot, record.reference)),
            energy=energy,
        )
        known = {drift.item.joint for drift in drifts if drift.item.family not in CHANGES}
        return [*seen, *(s for s in slow if s.item.family in CHANGES or s.item.joint not in known)], energy

    def _mixed(
        self, record: Imperfections, drifts: Sequence[Sized], noise: RowNoise, before: float
    ) -> tuple[Fault, ...]:
        """Sensors that read by direction or load, or what another joint carries, once all else is undone; one for each joint.

        Gains, friction that grows with the load and torque of the position look alike, and stand beside them; rows of a joint
        count by how long its own residuals hold together. Found is the one that explains most, where its interval leaves what is
        ordinary and it does so on other motion too.
        """
        effects = torque_source(self.train).effects
        alike = imperfections(self.robot, effects, record.reference, _LIKE_MIXED)
        alike = (*alike, *of_position(self.robot, record.reference))
        candidates = imperfections(self.robot, effects, record.reference, MIXED)
        seen, energy = self._scan(record, drifts, candidates, noise, alike)
        seen = sorted(seen, key=lambda s: -s.taken)
        out: dict[tuple[Family, int | None], Fault] = {}
        for best in [s for s in seen if significant(s, energy, self._share)][:1]:
            with_it = replace(record, sizes=(*record.sizes, Sized(best.item, best.size, nan)))
            trial, quiet, left = self._settled(with_it, drifts, alike)
            own = by_own_rows(left.whole(trial.sizes[-1].value), quiet)
            change = float(np.exp(self._held_out_error(trial) - before)) - 1.0
            beyond = abs(own.size) - own.half > own.item.tolerance
            if beyond and abs(own.size) > FAULT_DEVIATIONS.value * left.deviation and not change >= 0.0:
                found = self._fault(own, Answer.FOUND, explains=best.taken / energy, change=change)
                out[best.item.family, best.item.joint] = found
        for other in seen:
            out.setdefault((other.item.family, other.item.joint), self._answered(by_own_rows(other, noise), energy))
        return tuple(out.values())

    def _likeliest_drift(
        self, record: Imperfections, drifts: Sequence[Sized], best: Sequence[Seen], noise: RowNoise
    ) -> Seen:
        """Of those that change with time at the joint of the best, the one that leaves least once it is undone."""
        same = [s for s in best if s.item.family in DRIFTS and s.item.joint == best[0].item.joint]
        if len(same) == 1:
            return same[0]

        def left(seen: Seen) -> float:
            with_it = (*drifts, Sized(seen.item, seen.size, nan))
            return self._scan(self._fitted(record, with_it)[0], with_it, (seen.item,), noise)[1]

        return min(same, key=left)

    def _steadied(
        self, record: Imperfections, drifts: Sequence[Sized], seen: Seen
    ) -> tuple[Imperfections, RowNoise, Seen]:
        """The record with the model that fits runs without this drift too, their noise, and the drift as that shows it."""
        with_it = (*drifts, Sized(seen.item, seen.size, nan))
        steady, quiet = self._fitted(record, with_it)
        # As `wanders` sized it: a motion that does not come back takes torque of the position along with time.
        rivals = () if seen.item.family is Family.DRIFT else of_position(self.robot, record.reference)
        (left,), _ = self._scan(steady, with_it, (seen.item,), quiet, rivals)
        own = replace(seen, size=seen.size + left.size, deviation=left.deviation)
        if seen.item.family is Family.SLOW_DRIFT:
            return steady, quiet, beyond_choice(own, quiet)
        return steady, quiet, by_own_rows(own, quiet) if own.item.family in CHANGES else own

    def _needless(self, record: Imperfections, drifts: Sequence[Sized]) -> list[Sized]:
        """Drifts found earlier that the last one explains: a joint whose torque wanders bends the model of the others."""
        out = []
        for drift in drifts[:-1]:
            others = [d for d in drifts if d is not drift]
            steady, quiet = self._fitted(record, others)
            (seen,), energy = self._scan(steady, others, (drift.item,), quiet)
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
        freed = self._kept(record, drifts)
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

    def _rival(self, sized: Sized, found: Fault) -> Fault:
        """What explains as much as something that was found, and may be there in its place."""
        item, other = sized.item, f"explains as much as {found.name}, and one of the two is there"
        if item.family is Family.LENGTH:
            other += (
                f" (it would be undone in the description: {way_words(self.robot, int(item.joint or 0), sized.value)})"
            )
        return Fault(
            kind=f"{item.family.value} {item.part}".strip(),
            joint=None if item.joint is None else self.train[0].channels[item.joint],
            estimate=sized.value,
            unit=item.unit,
            tolerance=item.tolerance,
            explains=found.explains,
            experiment=f"{other}: {EXPERIMENTS[item.family]}",
        )

    def _freed(self, record: Imperfections, drifts: Sequence[Sized]) -> Sequence[Run]:
        """The training runs without what a record holds and without drifts."""
        runs = corrected_runs(self.train, record)
        if not drifts:
            return runs
        lengths = lengths_of(runs)
        return changed_runs(runs, WithoutDrifts(drifts, sum(lengths), record.reference), before(lengths))

    def _fitted(self, record: Imperfections, drifts: Sequence[Sized]) -> tuple[Imperfections, RowNoise]:
        """The record with the model that fits runs freed from what it holds, and the noise of their rows.

        A fault makes the residuals of its joint large and smooth. Beside these its own deviation would grow as it does, and the
        largest fault would be no surer than a small one; so it is held against what is left once it is undone. Columns are
        derivatives of the model, and that of a recording with a large fault is wrong.
        """
        freed = self._kept(record, drifts)
        reference = replace(record.reference, standard=np.array(freed.estimate.standard))
        return replace(record, reference=reference), freed.noise

    def _kept(self, record: Imperfections, drifts: Sequence[Sized]) -> _FreedRuns:
        """The training runs without these, and what follows from them: the last few are at hand.

        A trial is fitted, looked at, settled and held against the description: all on the same runs.
        """
        model = id(record.reference) if record.needs_model else None
        key = record.sizes, tuple(drifts), model
        freed = self.kept.pop(key, None)
        if freed is None:
            freed = _FreedRuns(self._freed(record, drifts), self.base, record)
        self.kept[key] = freed
        if len(self.kept) > _KEPT:
            del self.kept[next(iter(self.kept))]
        return freed

    def _scan(
        self,
        record: Imperfections,
        drifts: Sequence[Sized],
        candidates: Sequence[Imperfection],
        noise: RowNoise,
        rivals: Sequence[Imperfection] = (),
    ) -> tuple[list[Seen], float]:
        """Every candidate alone beside the usual rivals and further ones, and the squared error without any."""
        runs = self._kept(record, drifts).runs
        beside = (*self.rivals, *rivals, *(d.item for d in drifts if (d.item,) != tuple(candidates)))
        rows = RowsBeside(runs, self.base, (*beside, *candidates), most=_LOOKED_AT)
        blocks = self._blocks if len(candidates) > 1 else 1
        factors = rows.blocks(record.reference, noise, folds=blocks).factors
        b, m = len(self.base), len(beside)
        belief = np.zeros((m, b + m + len(candidates) + 1))
        widths = np.array([i.tolerance * (1e3 if i.family in _UNBOUNDED else 1.0) for i in beside])
        belief[:, b : b + m] = np.diag(1.0 / widths) if m else np.zeros((0, 0))
        left = Eliminated.of(b + m, [*factors, belief])
        energy = float(np.sum(left.factor[b + m :, -1] ** 2))
        spreads = block_spreads(b + m, factors, belief) if blocks > 1 else np.zeros(len(candidates))
        seen = []
        for k, (item, spread) in enumerate(zip(candidates, spreads, strict=True)):
            size, deviation, taken = left.alone(k)
            seen.append(Seen(item=item, size=size, deviation=deviation, taken=taken, spread=float(spread)))
        return seen, energy

    @property
    def _share(self) -> float:
        """Of the shares that a fault must explain: each channel is weighed by its noise, so that one of many holds little."""
        return share_of_channels(len(self.train[0].channels))

    @property
    def _blocks(self) -> int:
        """Blocks of time that are left out in turn."""
        seconds = sum(each_run(self.train, seconds_of))
        return int(np.clip(seconds, *_BLOCKS))

    def _refined(
        self, record: Imperfections, drifts: Sequence[Sized], seen: Seen, noise: RowNoise
    ) -> tuple[Imperfections, float]:
        """The record with this candidate undone exactly, and the squared error that is left."""
        size, item = seen.size, seen.item
        energy, trial = inf, record
        for _ in range(_STEPS):
            with_it = (*record.sizes, Sized(item, possible_size(item, size), nan))
            trial, _ = self._fitted(replace(trial, sizes=with_it), drifts)
            scaled = _in_units_of(trial, record, noise)
            (again,), energy = self._scan(trial, drifts, (item,), scaled)
            if not isfinite(again.deviation) or abs(again.size) < _SETTLED * max(abs(size), item.tolerance):
                break
            size = together(item, possible_size(item, size), again.size)
        return trial, energy

    def _settled(
        self, trial: Imperfections, drifts: Sequence[Sized], rivals: Sequence[Imperfection] = ()
    ) -> tuple[Imperfections, RowNoise, Seen]:
        """The trial with its last size as rows weighed by the noise of sound ones have it, that noise, and what is left of it.

        With the noise that the fault made its own joint hardly counted, and the others said how large it is.
        """
        item = trial.sizes[-1].item
        for _ in range(_STEPS):
            trial, noise = self._fitted(trial, drifts)
            (left,), _ = self._scan(trial, drifts, (item,), noise, rivals)
            size = trial.sizes[-1].value
            if not isfinite(left.deviation) or abs(left.size) < _WITHIN * left.deviation:
                break
            better = possible_size(item, together(item, size, left.size))
            trial = replace(trial, sizes=(*trial.sizes[:-1], Sized(item, better, nan)))
        return trial, noise, left

    def _held_out_error(self, record: Imperfections) -> float:
        """Logarithm of the error on held-out motion in recorded units, mean over channels, bodies free; nan without any.

        The likelihood when no channel's noise is known beforehand. In units of the noise that a fault has made, undoing the
        fault would change little, the less the larger it is.
        """
        if not len(self.held_out):
            return nan
        base = WeightedLeastSquares().fit(information_of(corrected_runs(self.train, record)), self.base)
        squares = each_run(corrected_runs(self.held_out, record), Squares(base.standard))
        total, count = (sum(parts) for parts in zip(*squares, strict=True))
        return 0.5 * float(np.mean(np.log(np.maximum(total, 1e-300) / count)))

    def _answered(self, seen: Seen, whole: float) -> Fault:
        """What is said of a candidate that was not found.

        Excluded is only what the interval neither reaches nor lies beyond. A size that is beyond its tolerance without doubt, yet
        explains too little or does not help on other motion, is not excluded: something is there that this log cannot name.
        """
        tolerance = seen.item.tolerance
        beyond = abs(seen.size) - seen.half > tolerance
        reached = abs(seen.size) + seen.half > FAULT_EXCLUDED.value * tolerance
        answer = Answer.UNDECIDABLE if beyond or reached else Answer.EXCLUDED
        return self._fault(seen, answer, explains=seen.taken / whole if isfinite(seen.deviation) else 0.0)

    def _fault(self, seen: Seen, answer: Answer, *, explains: float, change: float = nan) -> Fault:
        item, half = seen.item, seen.half
        delays = item.family in (Family.DELAY, Family.COMMON_DELAY)
        # A gain that the model holds is undone up to there; one that changes is not, and which one it fits is chance.
        factor = 1.0 if item.family in (Family.GAIN_DRIFT, *MIXED) else FACTORS[-1]
        limit = max(factor * item.tolerance, self.delay if delays else 0.0)
        # Beyond the limit without doubt, or likely so and what is wrong with the recording: a fault near the limit stays a note.
        doubt = half / NORMAL_95 if explains > self._share * FAULT_DECISIVE.value else half
        large = answer is Answer.FOUND and KINDS[item.family].sensors and abs(seen.size) - doubt > limit
        known = isfinite(seen.deviation)
        return Fault(
            kind=f"{item.family.value} {item.part}".strip(),
            joint=None if item.joint is None else self.train[0].channels[item.joint],
            estimate=seen.size if known else nan,
            standard_deviation=half / NORMAL_95,
            low=seen.size - half if known else -inf,
            high=seen.size + half if known else inf,
            unit=item.unit,
            tolerance=item.tolerance,
            answer=answer,
            explains=float(np.clip(explains, 0.0, 1.0)),
            held_out_change=change,
            words=_undoing(self.robot, self.train[0].channels, item, seen.size) if answer is Answer.FOUND else "",
            experiment=EXPERIMENTS[item.family] if answer is Answer.UNDECIDABLE else "",
            large=large,
        )


def _undoing(robot: Robot, channels: Sequence[str], item: Imperfection, size: float) -> str:
    """Words that undo it: in the description, in the mapping, or on the command line."""
    if item.family is Family.LENGTH:
        return way_words(robot, int(item.joint or 0), size)
    return undoing_words(item, size, channels)


def _in_units_of(trial: Imperfections, record: Imperfections, noise: RowNoise) -> RowNoise:
    """Noise of a record's rows for those of a trial, in which torques have other gains: errors of both compare."""
    ratio = (1.0 + record.gains) / (1.0 + trial.gains)
    return replace(noise, sigma=noise.sigma * ratio)
