"""How far parameters move with choices that could have been others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from armid.errors import InputError
from armid.estimation.essential import BackwardElimination, Rule
from armid.estimation.folds import leave_one_out, motions
from armid.estimation.friction_columns import Shapes
from armid.estimation.gains import DriveGains
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import runs_of
from armid.estimation.run import information_of
from armid.estimation.status import EstimationError
from armid.logs.conditioning import Conditioning
from armid.logs.log import Log
from armid.robot.robot import Robot
from armid.validation.fitting import Fit
from armid.validation.preparation import (
    Data,
    conditioned,
)
from armid.validation.settings import Identification

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
                data.conditioning, cutoff=cutoff * factor, rate=None,
                torque_cutoff=None if data.conditioning.torque_cutoff is None else data.conditioning.torque_cutoff * factor,
            )  # fmt: skip
            out["cutoff"].append(other_cutoff(robot, train, changed, settings, fit, gains, data.shapes))
    parts = motions(data.train)
    if len(parts) > 1 and settings.prior is None:
        try:
            folds = leave_one_out(parts, fit.estimate)
        except EstimationError:
            # One of the files alone carries the excitation; that is what the entry would have said.
            folds = ()
        out["leave_one_out"] = [
            {
                "name": fold.name,
                "largest_shift": float(np.abs(fold.shift).max()),
                "relative_error": dict(fold.relative_error),
            }
            for fold in folds
        ]
    if settings.essential is not None:
        out["essential"] = essential(data, fit, settings.essential)
    return out


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
    shift = np.abs(values - fit.estimate.values) / np.maximum(fit.estimate.standard_deviations, 1e-300)
    worst = int(np.argmax(shift))
    return entry | {"largest_shift": float(shift[worst]), "parameter": fit.estimate.names[worst]}
