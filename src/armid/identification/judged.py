"""Errors, certificates and verdict of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from armid.arrays import FloatArray
from armid.consistency.certificates import Certificates, certify
from armid.estimation.covariance import row_inflation
from armid.identification.data import Data
from armid.identification.driving_friction import driving_friction_checks
from armid.identification.elsewhere import elsewhere_checks
from armid.identification.evidence import Evidence
from armid.identification.figures import evidence_of, tested_notes, told_apart
from armid.identification.fit import Fit, condition_numbers, gravity_errors, refitted
from armid.identification.gains import DriveGains
from armid.identification.gate import judge
from armid.identification.metrics import (
    CONSISTENT,
    FREE,
    NOMINAL,
    Predicted,
    Traces,
    has_masses,
    nominal_models,
    predicted,
)
from armid.identification.motion import MotionSums, joined_course
from armid.identification.omitted import missing_rotors, unfelt_rotors
from armid.identification.plausibility import plausibility_checks
from armid.identification.records import Gain
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.identification.torque_error import JointErrors, paired
from armid.information.information import Information
from armid.notes import Note
from armid.outcome import Check
from armid.robot.robot import Robot


@dataclass(frozen=True, eq=False, kw_only=True)
class ErrorTables:
    """Torque errors of every model, training and held-out.

    Args:
        joints, raw, nominal: of the consistent and the unconstrained estimate and of the description.
        relative: of the consistent estimate, all joints stacked.
    """

    joints: tuple[JointErrors, ...]
    raw: tuple[JointErrors, ...]
    nominal: tuple[JointErrors, ...]
    relative: dict[str, float]

    @property
    def cost(self) -> dict[str, float]:
        """By how much of itself the training error of every joint grows with bodies that can exist."""
        pairs = zip(self.joints, self.raw, strict=True)
        return {j.name: j.train.rmse / max(r.train.rmse, 1e-300) - 1.0 for j, r in pairs}


def _errors_of(train: Predicted, held_out: Predicted) -> ErrorTables:
    """From the predictions of both."""
    joints, raw, nominal = (
        paired(train.sums[name].errors(), held_out.sums[name].errors()) for name in (CONSISTENT, FREE, NOMINAL)
    )
    relative = {"train": train.sums[CONSISTENT].stacked_relative()}
    relative["held_out"] = held_out.sums[CONSISTENT].stacked_relative()
    return ErrorTables(joints=joints, raw=raw, nominal=nominal, relative=relative)


def _predictions(robot: Robot, data: Data, fit: Fit) -> tuple[Predicted, Predicted, Traces]:
    """Torque by every model, in training and held-out motion, and the course of the latter."""
    known = nominal_models(robot, fit.information.parameters)
    found = {CONSISTENT: fit.consistent.values, FREE: fit.estimate.standard}
    train = predicted(data.train, {**found, NOMINAL: known[NOMINAL]})
    traces = Traces(data.held_out, data.temperatures)
    tested = predicted(
        data.held_out,
        {**found, **known},
        constant=train.mean,
        traces=traces,
        speeds=None if train.motion is None else train.motion.speeds,
    )
    return train, tested, traces


def _checks(
    robot: Robot,
    data: Data,
    fit: Fit,
    settings: Identification,
    errors: ErrorTables,
    certificates: Certificates,
    evidence: Evidence,
) -> tuple[Check, ...]:
    """Every condition on the fit."""
    return (
        *judge(
            fit.estimate,
            fit.consistent,
            certificates,
            errors.joints,
            errors.raw,
            relative_error=errors.relative,
            evidence=evidence,
        ),
        *plausibility_checks(robot, fit.consistent),
        *driving_friction_checks(robot.joint_names, settings.effects, fit.estimate, evidence.train),
        *elsewhere_checks(robot, data.train, fit.estimate, seed=settings.seed),
    )


def _notes(data: Data, fit: Fit, settings: Identification) -> tuple[Note, ...]:
    """Everything said about recordings and fit, once."""
    every = (
        *data.notes,
        *tested_notes(data),
        *fit.notes,
        *missing_rotors(data.train, fit.estimate),
        *unfelt_rotors(settings.effects, data.choice[0].torques),
    )
    return told_apart(tuple(dict.fromkeys(every)), [recording for part in data.recordings for recording in part])


def judged(
    robot: Robot,
    data: Data,
    fit: Fit,
    settings: Identification,
    gains: DriveGains | None,
    held_out: Information | None,
) -> Result:
    """Errors, certificates and verdict."""
    train, tested, traces = _predictions(robot, data, fit)
    errors = _errors_of(train, tested)
    certificates = certify(robot, fit.consistent, fit.estimate, errors.cost, seed=settings.seed)
    evidence = evidence_of(
        data,
        train,
        tested,
        gains,
        refit=lambda information: refitted(robot, information, fit, settings),
        standard=fit.consistent.values,
        structural_rank=len(fit.structural),
        gravity_error=gravity_errors(data.train, settings, fit.rows),
        against_nominal=tested.against_description() if has_masses(robot) else (),
    )
    checks = _checks(robot, data, fit, settings, errors, certificates, evidence)
    condition_number, scaled = condition_numbers(fit.information, fit.structural)
    return Result(
        described=robot,
        effects=settings.effects,
        estimate=fit.estimate,
        consistent=fit.consistent,
        certificates=certificates,
        joints=errors.joints,
        joints_raw=errors.raw,
        joints_nominal=errors.nominal,
        relative_error=errors.relative,
        condition_number=condition_number,
        condition_number_scaled=scaled,
        information=fit.information,
        held_out_information=held_out,
        checks=checks,
        evidence=evidence,
        gains=_gains_of(gains, row_inflation(fit.information, fit.estimate)),
        conditioning=data.record(),
        notes=_notes(data, fit, settings),
        traces=traces.arrays,
        imperfections=data.imperfections,
        course=learned_course(train.motion, settings.prior),
    )


def learned_course(motion: MotionSums | None, earlier: Result | None) -> FloatArray | None:
    """Course of the training motion, after that of an earlier result it is added to; None when neither is known."""
    parts = (None if earlier is None else earlier.course, None if motion is None else motion.course())
    return joined_course(*parts)


def _gains_of(gains: DriveGains | None, inflation: float) -> dict[str, Gain]:
    """Gain and standard deviation per joint; the latter widened like those of the parameters."""
    if gains is None:
        return {}
    return {
        name: Gain(float(k), inflation * float(s))
        for name, k, s in zip(gains.channels, gains.values, gains.standard_deviations, strict=True)
    }
