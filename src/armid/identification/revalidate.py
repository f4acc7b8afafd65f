"""A stored result against logs it has never seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from armid.errors import InputError
from armid.estimation.recording import runs_of
from armid.estimation.run import Run
from armid.estimation.torque_error import JointErrors, stacked_relative_error
from armid.identification.gate import held_out_checks, log_checks, nominal_checks
from armid.identification.metrics import against_nominal, held_out_errors
from armid.identification.result import Result
from armid.logs.conditioning import Conditioning, Differentiator, VelocitySource, condition
from armid.logs.log import Channel, Log
from armid.outcome import Check


@dataclass(frozen=True, eq=False, kw_only=True)
class Revalidation:
    """How a result does on other motion.

    Args:
        joints: errors of the consistent estimate; `joints_raw` of the unconstrained one; training errors as stored.
        relative_error: all joints stacked.
        checks: conditions with their outcome; those of the stored result that failed stay failed.
        conditioning: as it was for the stored result.
    """

    joints: tuple[JointErrors, ...]
    joints_raw: tuple[JointErrors, ...]
    relative_error: float
    checks: tuple[Check, ...]
    conditioning: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(check.message for check in self.checks if check.decisive and not check.passed))

    @property
    def verdict(self) -> str:
        return "untrusted" if self.reasons else "trusted"


ABOUT_MOTION = ("held-out", "joint-unexplained", "worse-than-constant", "joint-overfitted", "not-worse-than-nominal")
"""Checks of the stored result that the new motion decides afresh."""


def revalidate(result: Result, logs: Sequence[Log], *, accept: tuple[str, ...] = ()) -> Revalidation:
    """Errors and verdict on other logs, conditioned as the training logs were.

    Raises:
        InputError: no logs, or currents without the result's gains.
    """
    if not logs:
        raise InputError("logs", "there are none", "give at least one recording")
    settings = stored_conditioning(result, accept)
    runs = [run for log in logs for run in stored_runs(result, log, settings)]
    joints, raw = (
        held_out_errors(runs, standard, known)
        for standard, known in ((result.standard, result.joints), (result.estimate.standard, result.joints_raw))
    )
    error = stacked_relative_error(runs, result.standard)
    relative = {"held_out": error}
    checks = (
        *(check for check in result.checks if check.code not in ABOUT_MOTION),
        *held_out_checks(joints, relative),
        *nominal_checks(against_nominal(runs, result.robot, result.consistent.values, result.consistent.names)),
        *log_checks([note for log in logs for note in log.notes], torque_delay=settings.torque_delay),
    )
    return Revalidation(
        joints=joints, joints_raw=raw, relative_error=error, checks=checks, conditioning=result.conditioning
    )


def stored_conditioning(result: Result, accept: tuple[str, ...]) -> Conditioning:
    """The conditioning a result was made with."""
    stored = result.conditioning
    return Conditioning(
        cutoff=stored["cutoff_hz"] or np.inf,
        torque_cutoff=stored["torque_cutoff_hz"] or np.inf,
        order=int(stored["filter_order"]),
        differentiator=Differentiator(stored["differentiator"]),
        velocity=VelocitySource(stored["velocity"]),
        torque_delay=stored.get("torque_delay_s", 0.0),
        accept=accept,
    )


def stored_runs(result: Result, log: Log, settings: Conditioning) -> tuple[Run, ...]:
    """Runs of one log as the result's own were made: same rows, same friction, currents times gains."""
    if settings.velocity is VelocitySource.MEASURED and Channel.VELOCITY not in log:
        settings = replace(settings, velocity=VelocitySource.POSITION)
    samples = condition(log, result.robot, settings)
    runs = runs_of(samples, result.robot, result.effects, shapes=result.shapes)
    if samples.channel(result.effects.torques) is not Channel.CURRENT:
        return runs
    if not result.gains:
        raise InputError(log.name, "motor currents, but the result has no drive gains", "identify from currents first")
    gains = np.array([result.gains[name][0] for name in runs[0].channels])
    return tuple(replace(run, y=run.y * gains, y_raw=None if run.y_raw is None else run.y_raw * gains) for run in runs)
