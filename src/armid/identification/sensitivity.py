"""How far parameters move with choices that could have been others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.essential import BackwardElimination, Rule
from armid.estimation.folds import Fold, k_fold, leave_one_out, motions
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import runs_of
from armid.estimation.run import information_of
from armid.identification.fit import Fit
from armid.identification.gains import DriveGains
from armid.identification.prepare import (
    Data,
    conditioned,
)
from armid.identification.settings import Identification
from armid.information.status import EstimationError
from armid.logs.conditioning import Conditioning
from armid.logs.log import Log
from armid.robot.robot import Robot
from armid.rows.friction import Shapes

CUTOFF_FACTORS = (0.5, 2.0)


def sensitivities(
    robot: Robot,
    train: Sequence[Log],
    held_out: Sequence[Log],
    settings: Identification,
    data: Data,
    fit: Fit,
    gains: DriveGains | None,
) -> dict[str, Any]:
    """How far base parameters move, in their own deviations, with the cut-off and without each file."""
    out: dict[str, Any] = {"cutoff": [], "leave_one_out": []}
    cutoff = data.conditioning.cutoff
    if cutoff is not None and np.isfinite(cutoff):
        for factor in CUTOFF_FACTORS:
            changed = replace(
                data.conditioning,
                cutoff=cutoff * factor,
                rate=None,
                torque_cutoff=None
                if data.conditioning.torque_cutoff is None
                else data.conditioning.torque_cutoff * factor,
            )
            out["cutoff"].append(other_cutoff(robot, train, changed, settings, fit, gains, data.shapes))
    if settings.prior is None:
        out |= left_out(data, fit)
    if settings.essential is not None:
        out["essential"] = essential(data, fit, settings.essential)
    return out


def left_out(data: Data, fit: Fit) -> dict[str, Any]:
    """What leaving out each file does, and k-fold over motions where the logs hold several."""
    out: dict[str, Any] = {}
    parts = motions(data.train)
    try:
        if len(data.train) > 1:
            out["leave_one_out"] = [fold_entry(fold, fit) for fold in leave_one_out(data.train, fit.estimate)]
        if len(parts) > 1:
            found = k_fold(parts, fit.estimate)
            out["cross_validation"] = {
                "k": found.k,
                "motions": len(parts),
                "relative_error": dict(found.relative_error),
                "folds": [fold_entry(fold, fit) for fold in found.folds],
            }
    except EstimationError as error:
        # One of the motions alone carries the excitation.
        out["left_out_failed"] = f"without one of the motions the others do not determine the parameters: {error}"
    return out


def fold_entry(fold: Fold, fit: Fit) -> dict[str, Any]:
    """What leaving out some motions changed."""
    return {
        "name": fold.name,
        "relative_error": dict(fold.relative_error),
        **shift_entry(fold.shift, fit.estimate.names),
    }


def shift_entry(shift: FloatArray, names: Sequence[str]) -> dict[str, Any]:
    """The largest shift, whose it is, and all of them by parameter; in standard deviations."""
    worst = int(np.argmax(np.abs(shift)))
    return {
        "largest_shift": float(np.abs(shift[worst])),
        "parameter": names[worst],
        "shifts": {name: float(value) for name, value in zip(names, shift, strict=True)},
    }


def essential(data: Data, fit: Fit, rule: Rule) -> dict[str, Any]:
    """Backward elimination on the training motion alone; held-out error only prices what was removed."""
    held_out = information_of(data.held_out) if data.held_out else None
    found = BackwardElimination(largest_cost=float("inf"), rule=rule).fit(fit.information, fit.estimate, held_out)
    return {
        "rule": rule.value,
        "kept": list(found.names),
        "stopped": found.stopped,
        "removals": [asdict(step) for step in found.removals],
        "values": {name: float(found.estimate.values[i]) for name, i in zip(found.names, found.kept, strict=True)},
    }


def other_cutoff(
    robot: Robot,
    logs: Sequence[Log],
    conditioning: Conditioning,
    settings: Identification,
    fit: Fit,
    gains: DriveGains | None,
    shapes: Shapes,
) -> dict[str, Any]:
    """Shift of the base parameters under another cut-off."""
    entry: dict[str, Any] = {"cutoff_hz": conditioning.cutoff, "largest_shift": None, "parameter": None}
    try:
        samples, _ = conditioned(robot, logs, conditioning)
        runs = runs_of(samples, robot, settings.effects, shapes=shapes)
        if gains is not None:
            runs = tuple(replace(run, y=run.y * gains.values) for run in runs)
        values = WeightedLeastSquares().fit(information_of(runs), fit.estimate.base).values
    except (EstimationError, InputError):
        return entry
    shift = (values - fit.estimate.values) / np.maximum(fit.estimate.standard_deviations, 1e-300)
    return entry | shift_entry(shift, fit.estimate.names)
