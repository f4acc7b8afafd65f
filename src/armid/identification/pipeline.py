"""From logs to a judged result: condition, estimate, make consistent, validate, judge. The one call behind `armid identify`."""

from __future__ import annotations

import platform
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from armid.consistency.certificates import certify
from armid.consistency.consistent import Consistency
from armid.estimation.torque_error import joint_errors, stacked_relative_error
from armid.identification.fit import Fit, condition_numbers, fitted, gravity_errors, row_inflation
from armid.identification.gains import DriveGains
from armid.identification.gate import judge
from armid.identification.gravity import GravityDirection, with_gravity
from armid.identification.methods import Aids, aids_of
from armid.identification.metrics import against_constant, against_nominal, nominal_standard, traces
from armid.identification.omitted import missing_rotors
from armid.identification.prepare import (
    Data,
    conditioning_of,
    drive_gains,
    in_torque_units,
    prepared,
)
from armid.identification.provenance import provenance
from armid.identification.result import Result
from armid.identification.sensitivity import sensitivities
from armid.identification.settings import Identification
from armid.identification.shaping import friction_record, paying_check, shaped
from armid.logs.conditioning import Conditioning
from armid.logs.log import Channel, Log
from armid.notes import Note, Severity
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot

__all__ = ["Identification", "identify"]

Progress = Callable[[str], None]

SETTLED_BY_GRAVITY = ("gravity-reversed", "mounting")
"""Errors of logs that a search for the direction of gravity answers."""
NOTABLE_TURN = 20.0
"""[deg]; a mounting this far from the description is another mounting, not a base out of level."""


def identify(
    robot: Robot,
    train: Sequence[Log],
    held_out: Sequence[Log],
    settings: Identification,
    *,
    progress: Progress = lambda _: None,
) -> Result:
    """A judged result.

    Args:
        robot: as described.
        train: logs to learn from.
        held_out: logs no part of which is used for any choice.
        settings: see there.
        progress: told in words what is being done.

    Raises:
        ArmidError: unusable input; nothing is written then.
    """
    started = time.perf_counter()
    progress("conditioning")
    if settings.find_gravity:
        settings = replace(settings, conditioning=accepting(settings.conditioning, SETTLED_BY_GRAVITY))
    linear = replace(settings, effects=settings.effects.linear)
    data = prepared(robot, train, held_out, linear)
    gains = None
    if (
        data.samples.channel(settings.effects.torques) is Channel.CURRENT
        and settings.effects.torques is not TorqueSide.LINK
    ):
        progress("drive gains")
        gains = drive_gains(robot, data)
        data = in_torque_units(data, gains)
    if settings.find_gravity:
        progress("direction of gravity")
        robot, data = levelled(robot, data, settings)
    progress("estimating")
    friction: dict[str, Any] = {}
    aids = aids_of(robot, train, data.train, data.conditioning, settings)
    if settings.effects.shapes:
        data, fit, friction = with_shapes(robot, data, settings, gains, progress, aids)
    else:
        fit = fitted(robot, data.train, settings, aids=aids)
    progress("judging")
    sensitivity = sensitivities(robot, train, held_out, settings, data, fit, gains) if settings.sensitivity else {}
    result = judged(robot, data, fit, settings, gains)
    if friction:
        result = replace(result, friction=friction, checks=(*result.checks, *paying_check(friction)))
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return replace(
        result,
        sensitivity=sensitivity,
        provenance=provenance(robot, train, held_out, settings),
        seconds=time.perf_counter() - started,
        peak_memory_mb=usage / (1024.0**2 if platform.system() == "Darwin" else 1024.0),
    )


def with_shapes(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None, progress: Progress, aids: Aids
) -> tuple[Data, Fit, dict[str, Any]]:
    """Data and fit with the shapes of friction asked for, and the record of them beside linear friction."""
    plain = fitted(robot, data.train, replace(settings, effects=settings.effects.linear, prior=None), aids=aids)
    progress("shape of friction")
    shaping = shaped(robot, data, settings, plain, gains)
    progress("estimating")
    fit = fitted(
        robot,
        shaping.data.train,
        settings,
        aids=aids,
        widen=lambda estimate: shaping.widened(estimate, settings.covariance),
    )
    fit = replace(fit, notes=(*fit.notes, *shaping.notes))
    return shaping.data, fit, friction_record(settings, shaping, fit, data, plain, fit.scale_deviations)


def accepting(conditioning: Conditioning, codes: tuple[str, ...]) -> Conditioning:
    """Conditioning that accepts further errors of logs."""
    return replace(conditioning, accept=tuple(dict.fromkeys((*conditioning.accept, *codes))))


def levelled(robot: Robot, data: Data, settings: Identification) -> tuple[Robot, Data]:
    """Robot and runs under the gravity that the training torque shows; a note says how far it is from the description's."""
    found = GravityDirection(consistency=Consistency(settings.regulariser, settings.bounds)).fit(data.train)
    text = f"gravity {np.round(found.gravity, 4).tolist()} m/s^2 found, {np.rad2deg(found.tilt):.2f} deg from the description"
    note = Note("gravity-found", Severity.WARNING if found.notes else Severity.INFO, text)
    # What the log check said about a reversed or tilted mounting is settled when the torque shows another direction.
    turned = found.tilt > np.deg2rad(NOTABLE_TURN)
    kept = [n for n in data.notes if not (turned and n.code in SETTLED_BY_GRAVITY)]
    train, held_out = (tuple(with_gravity(run, found.gravity) for run in runs) for runs in (data.train, data.held_out))
    return robot.with_gravity(found.gravity), replace(data, train=train, held_out=held_out, notes=(*kept, note))


def judged(robot: Robot, data: Data, fit: Fit, settings: Identification, gains: DriveGains | None) -> Result:
    """Errors, certificates and verdict."""
    free, values = fit.estimate.standard, fit.consistent.values
    joints, raw = (joint_errors(data.train, data.held_out, x) for x in (values, free))
    nominal = joint_errors(data.train, data.held_out, nominal_standard(robot, fit.information.parameters))
    cost = {j.name: j.train.rmse / max(r.train.rmse, 1e-300) - 1.0 for j, r in zip(joints, raw, strict=True)}
    certificates = certify(robot, fit.consistent, fit.estimate, cost, seed=settings.seed)
    relative = {"train": stacked_relative_error(data.train, values)}
    relative["held_out"] = stacked_relative_error(data.held_out, values) if data.held_out else float("nan")
    checks = judge(
        fit.estimate,
        fit.consistent,
        certificates,
        joints,
        raw,
        structural_rank=len(fit.structural),
        relative_error=relative,
        against_nominal=against_nominal(data.held_out, robot, values, fit.information.parameters),
        gravity_error=gravity_errors(data.train, settings),
        log_notes=data.notes,
        torque_delay=data.conditioning.torque_delay,
        against_constant=against_constant(data.train, data.held_out, values),
    )
    condition_number, scaled = condition_numbers(fit)
    return Result(
        robot=robot,
        effects=settings.effects,
        estimate=fit.estimate,
        consistent=fit.consistent,
        certificates=certificates,
        joints=joints,
        joints_raw=raw,
        joints_nominal=nominal,
        relative_error=relative,
        condition_number=condition_number,
        condition_number_scaled=scaled,
        checks=checks,
        gains=gains_of(gains, row_inflation(fit.information, fit.estimate)),
        conditioning=conditioning_of(data),
        sensitivity={},
        provenance={},
        notes=tuple(dict.fromkeys((*data.notes, *fit.notes, *missing_rotors(data.train, fit.estimate)))),
        traces=traces(data.held_out, values, free, temperatures=data.temperatures),
    )


def gains_of(gains: DriveGains | None, inflation: float) -> dict[str, tuple[float, float]]:
    """Gain and standard deviation per joint; the latter widened like those of the parameters."""
    if gains is None:
        return {}
    return {
        name: (float(k), inflation * float(s))
        for name, k, s in zip(gains.channels, gains.values, gains.standard_deviations, strict=True)
    }
