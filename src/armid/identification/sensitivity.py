"""How far parameters move with choices that could have been others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.essential import BackwardElimination, Rule
from armid.estimation.folds import CrossValidation, Fold, left_out_logs, left_out_motions
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import information_of
from armid.identification.fit import Fit
from armid.identification.gains import DriveGains
from armid.identification.prepare import Data, choice_runs, choice_samples
from armid.identification.records import CrossValidated, EssentialChoice, Sensitivity, Shift
from armid.identification.settings import Identification
from armid.information.information import Information
from armid.information.status import EstimationError
from armid.logs.conditioning import Conditioning
from armid.robot.robot import Robot

_CUTOFF_FACTORS = (0.5, 2.0)


def sensitivities(
    robot: Robot,
    settings: Identification,
    data: Data,
    fit: Fit,
    gains: DriveGains | None,
    held_out: Information | None,
) -> Sensitivity:
    """How far base parameters move, in their own deviations, with the cut-off and without each file."""
    shifts = []
    cutoff = data.conditioning.cutoff
    if cutoff is not None and np.isfinite(cutoff):
        reference = _cutoff_reference(robot, settings, data, fit, gains)
        for factor in _CUTOFF_FACTORS:
            changed = replace(
                data.conditioning,
                cutoff=cutoff * factor,
                rate=None,
                torque_cutoff=None
                if data.conditioning.torque_cutoff is None
                else data.conditioning.torque_cutoff * factor,
            )
            shifts.append(_other_cutoff(robot, changed, settings, data, fit, gains, reference))
    out = Sensitivity(cutoff=tuple(shifts))
    if settings.prior is None:
        out = _with_left_out(out, data, fit)
    if settings.essential is not None:
        out = replace(out, essential=essential(fit, held_out, settings.essential))
    return out


def _with_left_out(out: Sensitivity, data: Data, fit: Fit) -> Sensitivity:
    """What leaving out each file does, and k-fold over motions where the logs hold several."""
    try:
        logs, parts = left_out_logs(data.train, fit.estimate), left_out_motions(data.train, fit.estimate)
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


def essential(fit: Fit, held_out: Information | None, rule: Rule) -> EssentialChoice:
    """Backward elimination on the training motion alone; held-out error only prices what was removed."""
    found = BackwardElimination(largest_cost=float("inf"), rule=rule).fit(fit.information, fit.estimate, held_out)
    return EssentialChoice(
        rule=rule.value,
        kept=found.names,
        stopped=found.stopped,
        removals=found.removals,
        values={name: float(found.estimate.values[i]) for name, i in zip(found.names, found.kept, strict=True)},
    )


def _cutoff_reference(
    robot: Robot, settings: Identification, data: Data, fit: Fit, gains: DriveGains | None
) -> FloatArray:
    """Base values that other cut-offs are compared with: the estimate, or that of the part on which choices rest."""
    if _all_chosen(data):
        return fit.estimate.values
    runs = choice_runs(robot, data.choice, settings.effects, data.shapes, gains)
    return WeightedLeastSquares().fit(information_of(runs), fit.estimate.base).values


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
    reference: FloatArray,
) -> Shift:
    """Shift of the base parameters under another cut-off."""
    entry = Shift(cutoff_hz=conditioning.cutoff)
    try:
        resolved = max(data.recordings[0], key=len).resolved(conditioning)
        samples = choice_samples(data.recordings[0], resolved)
        runs = choice_runs(robot, samples, settings.effects, data.shapes, gains)
        values = WeightedLeastSquares().fit(information_of(runs), fit.estimate.base).values
    except (EstimationError, InputError):
        return entry
    shift = (values - reference) / np.maximum(fit.estimate.standard_deviations, 1e-300)
    return replace(_shift_of(shift, fit.estimate.names), cutoff_hz=conditioning.cutoff)
