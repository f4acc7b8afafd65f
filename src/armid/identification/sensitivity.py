"""How far parameters move with choices that could have been others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.folds import CrossValidation, Fold, left_out_logs, left_out_motions
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.reversals import classed_information, classes_of, with_whole_channels
from armid.estimation.run import Run
from armid.estimation.run_maker import choice_runs, choice_sum
from armid.identification.data import Data
from armid.identification.fit import Fit
from armid.identification.gains import DriveGains, gain_values
from armid.identification.prepare import longest
from armid.identification.records import CrossValidated, EssentialChoice, Sensitivity, Shift
from armid.identification.sensors import Imperfections, corrected_runs
from armid.identification.settings import Identification
from armid.identification.thresholds import CUTOFF_SHARE
from armid.information.information import Information, added
from armid.information.status import EstimationError
from armid.logs.conditioning import Conditioning
from armid.logs.samples import Samples
from armid.memory import give_back
from armid.outcome import Check
from armid.parameters.effects import Effects
from armid.robot.robot import Robot
from armid.rows.friction import Shapes

if TYPE_CHECKING:
    from armid.estimation.essential import Rule

_CUTOFF_FACTORS = (0.5, 2.0)


@dataclass(frozen=True, eq=False)
class CutoffMove:
    """What another cut-off does to the base parameters.

    Args:
        cutoff_hz: the other one [Hz].
        move: of the base values, shape [r]; None when nothing could be estimated with it.
        chance: standard deviation of the move by noise alone, shape [r]: that of the rows that only one of the two has.
    """

    cutoff_hz: float | None
    move: FloatArray | None = None
    chance: FloatArray | None = None

    @property
    def excess(self) -> FloatArray | None:
        """The move beyond what noise explains, shape [r]."""
        if self.move is None or self.chance is None:
            return None
        return np.sign(self.move) * np.sqrt(np.maximum(self.move**2 - self.chance**2, 0.0))


def cutoff_moves(
    robot: Robot, settings: Identification, data: Data, fit: Fit, gains: DriveGains | None
) -> tuple[CutoffMove, ...]:
    """How far base parameters move with half and twice the cut-off; none where nothing was filtered."""
    cutoff = data.conditioning.cutoff
    if cutoff is None or not np.isfinite(cutoff):
        return ()
    reference = _cutoff_reference(robot, settings, data, fit, gains)
    moves = []
    for factor in _CUTOFF_FACTORS:
        give_back()
        changed = replace(
            data.conditioning,
            cutoff=cutoff * factor,
            rate=None,
            torque_cutoff=None if data.conditioning.torque_cutoff is None else data.conditioning.torque_cutoff * factor,
        )
        moves.append(_other_cutoff(robot, changed, settings, data, fit, gains, reference))
    return tuple(moves)


def widened_by_cutoff(estimate: Estimate, moves: Sequence[CutoffMove]) -> Estimate:
    """The estimate with what the choice of the cut-off adds to its covariance.

    Friction, elasticity and the controller put into the rows what the model lacks, and how much of it passes is a matter of the
    cut-off: the truth may lie as far away as a neighbouring octave would have put it. C + sum_k d_k d_k^T with the moves d_k
    beyond chance.
    """
    found = [move.excess for move in moves if move.excess is not None]
    if not found:
        return estimate
    added = sum((np.outer(d, d) for d in found), np.zeros_like(estimate.covariance))
    return estimate.with_covariance(estimate.covariance + added, estimate.covariance_kind)


def cutoff_check(estimate: Estimate, moves: Sequence[CutoffMove]) -> tuple[Check, ...]:
    """Whether intervals rest on noise rather than on the choice of the cut-off.

    Args:
        estimate: before it was widened.
        moves: beyond chance they are compared with its deviations.
    """
    found = [np.abs(move.excess) for move in moves if move.excess is not None]
    if not found:
        return ()
    ratio = np.max(found, axis=0) / np.maximum(estimate.standard_deviations, 1e-300)
    share = float(np.mean(ratio > 1.0))
    worst = estimate.names[int(np.argmax(ratio))]
    text = f"another cut-off moves {100 * share:.0f} % of the parameters by more than their noise would, most of all {worst}"
    return (
        Check(
            code="cutoff-choice",
            passed=share <= CUTOFF_SHARE.value,
            value=share,
            limit=CUTOFF_SHARE.value,
            message=text
            if share <= CUTOFF_SHARE.value
            else f"{text}: the model lacks something of the friction or the controller; try --friction stribeck or smooth",
            subject=worst,
            decisive=False,
        ),
    )


def sensitivities(
    settings: Identification,
    data: Data,
    fit: Fit,
    held_out: Information | None,
    moves: Sequence[CutoffMove],
    deviations: FloatArray,
) -> Sensitivity:
    """How far base parameters move, in their own deviations, with the cut-off and without each file.

    Args:
        settings: see there.
        data: with the training runs.
        fit: of them.
        held_out: Information of the motion held out.
        moves: with other cut-offs.
        deviations: that moves are measured in: those by noise alone, shape [r].
    """
    out = Sensitivity(cutoff=tuple(_cutoff_shift(move, fit.estimate.names, deviations) for move in moves))
    if settings.prior is None:
        out = _with_left_out(out, data, fit)
    if settings.essential is not None:
        out = replace(out, essential=essential(fit, held_out, settings.essential, settings))
    return out


def _cutoff_shift(move: CutoffMove, names: Sequence[str], deviations: FloatArray) -> Shift:
    """The record of a move."""
    if move.move is None:
        return Shift(cutoff_hz=move.cutoff_hz)
    return replace(_shift_of(move.move / np.maximum(deviations, 1e-300), names), cutoff_hz=move.cutoff_hz)


def _with_left_out(out: Sensitivity, data: Data, fit: Fit) -> Sensitivity:
    """What leaving out each file does, and k-fold over motions where the logs hold several."""
    try:
        logs = left_out_logs(data.train, fit.estimate)
        parts = left_out_motions(data.train, fit.estimate, logs)
    except EstimationError as error:
        # One of the motions alone carries the excitation.
        text = f"without one of the motions the others do not determine the parameters: {error}"
        return replace(out, left_out_failed=text)
    return replace(
        out,
        leave_one_out=() if logs is None else tuple(_fold_shift(fold, fit) for fold in logs.folds),
        cross_validation=None if parts is None else _cross_validated(parts, fit),
    )


def _cross_validated(found: CrossValidation, fit: Fit) -> CrossValidated:
    """The record of it."""
    return CrossValidated(
        k=found.k,
        motions=found.motions,
        relative_error=dict(found.relative_error),
        folds=tuple(_fold_shift(fold, fit) for fold in found.folds),
    )


def _fold_shift(fold: Fold, fit: Fit) -> Shift:
    """What leaving out some motions changed."""
    moved = _shift_of(fold.shift, fit.estimate.names)
    return replace(moved, name=fold.name, relative_error=dict(fold.relative_error))


def _shift_of(shift: FloatArray, names: Sequence[str]) -> Shift:
    """The largest shift, whose it is, and all of them by parameter; in standard deviations."""
    worst = int(np.argmax(np.abs(shift)))
    return Shift(
        largest_shift=float(np.abs(shift[worst])),
        parameter=names[worst],
        shifts={name: float(value) for name, value in zip(names, shift, strict=True)},
    )


def essential(fit: Fit, held_out: Information | None, rule: Rule, settings: Identification) -> EssentialChoice:
    """Backward elimination on the training motion alone; held-out error only prices what was removed."""
    from armid.estimation.essential import BackwardElimination  # few ask for it

    search = BackwardElimination(largest_cost=float("inf"), rule=rule, keep=settings.keep, drop=settings.drop)
    found = search.fit(fit.information, fit.estimate, held_out)
    deviations = found.estimate.standard_deviations
    return EssentialChoice(
        rule=rule.value,
        kept=found.names,
        stopped=found.stopped,
        removals=found.removals,
        values={name: float(found.estimate.values[i]) for name, i in zip(found.names, found.kept, strict=True)},
        standard_deviations={name: float(deviations[i]) for name, i in zip(found.names, found.kept, strict=True)},
    )


def _cutoff_reference(
    robot: Robot, settings: Identification, data: Data, fit: Fit, gains: DriveGains | None
) -> Estimate:
    """What other cut-offs are compared with: weighted least squares on the training motion, or the part on which choices rest.

    Whatever the method of the estimate, both sides are weighted least squares: a belief about the parameters would be taken for a
    move otherwise.
    """
    every = _all_chosen(data)
    rows = (
        classed_information(data.train) if every else _rows_of_choice(robot, data.conditioning, settings, data, gains)
    )
    return WeightedLeastSquares().fit(_with_earlier(rows, settings), fit.estimate.base)


def _with_earlier(information: Information, settings: Identification) -> Information:
    """Rows of the runs beside those of an earlier result, whose cut-off was chosen then: only what is new moves."""
    return information if settings.prior is None else information + settings.prior.information


def _rows_of_choice(
    robot: Robot, conditioning: Conditioning, settings: Identification, data: Data, gains: DriveGains | None
) -> Information:
    """What the motion that choices rest on tells under some conditioning, piece by piece, where its recordings are."""
    told = _ClassedRows(
        robot=robot,
        effects=settings.effects,
        shapes=data.shapes,
        gains=gains,
        imperfections=data.imperfections,
    )
    known = data.choice if conditioning == data.conditioning else None
    return with_whole_channels(
        choice_sum(data.recordings[0], conditioning, told, added, known=known, workers=data.workers)
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _ClassedRows:
    """What samples tell in classes near reversals, freed from the imperfections that the data were freed from."""

    robot: Robot
    effects: Effects
    shapes: Shapes
    gains: DriveGains | None
    imperfections: Imperfections | None

    def __call__(self, pieces: Sequence[Samples]) -> Information:
        runs: Sequence[Run] = choice_runs(self.robot, pieces, self.effects, self.shapes, gain_values(self.gains))
        return classes_of(runs if self.imperfections is None else corrected_runs(runs, self.imperfections))


def _all_chosen(data: Data) -> bool:
    """Whether choices rest on all of the training motion."""
    return sum(len(samples) for samples in data.choice) >= data.record().samples_train


def _other_cutoff(
    robot: Robot,
    conditioning: Conditioning,
    settings: Identification,
    data: Data,
    fit: Fit,
    gains: DriveGains | None,
    reference: Estimate,
) -> CutoffMove:
    """Move of the base parameters under another cut-off, and how much of it is chance.

    Of two estimates from nested rows the better one is uncorrelated with their difference, whose variance is therefore the
    difference of theirs ([Hausman1978]). Both count rows as independent, at rates in proportion to the cut-off: their ratio is
    that of honest variances.
    """
    try:
        resolved = longest(data.recordings[0]).resolved(conditioning)
        rows = _rows_of_choice(robot, resolved, settings, data, gains)
        other = WeightedLeastSquares().fit(_with_earlier(rows, settings), fit.estimate.base)
    except (EstimationError, InputError):
        return CutoffMove(conditioning.cutoff)
    ratio = np.diag(other.covariance) / np.maximum(np.diag(reference.covariance), 1e-300)
    chance = fit.estimate.standard_deviations * np.sqrt(np.abs(ratio - 1.0))
    return CutoffMove(conditioning.cutoff, other.values - reference.values, chance)
