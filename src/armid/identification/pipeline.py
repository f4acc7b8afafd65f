"""From recordings to a judged result: condition, estimate, make consistent, validate, judge."""

from __future__ import annotations

import platform
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from armid.cluster.workers import Workers
from armid.consistency.certificates import certify
from armid.consistency.consistent import Consistency
from armid.errors import InputError
from armid.estimation.covariance import row_inflation
from armid.estimation.reversals import classed_information
from armid.estimation.run import information_of
from armid.estimation.runs import map_runs
from armid.estimation.torque_error import JointErrors, paired
from armid.identifiability.base import BaseParameters
from armid.identification.auto_method import choose_method
from armid.identification.both_sides import faults_of_both_sides
from armid.identification.candidates import not_looked_for, position_faults, undone_faults
from armid.identification.described_bodies import drive_gain_faults
from armid.identification.detection import detect
from armid.identification.driving_friction import driving_friction_checks
from armid.identification.elsewhere import elsewhere_checks
from armid.identification.faults import Fault
from armid.identification.figures import evidence_of, tested_notes
from armid.identification.fit import (
    Fit,
    condition_numbers,
    described_structure,
    fitted,
    gravity_errors,
    refitted,
    structure_of,
    usable_base,
)
from armid.identification.gains import DriveGains
from armid.identification.gate import checks_of, judge, with_suspects
from armid.identification.gravity import GravityDirection, with_gravity
from armid.identification.half_tick import HeldTorque, paired_with_motion
from armid.identification.imperfections import Weighed, weighed
from armid.identification.late_torque import confirmed, without_delays
from armid.identification.methods import Aids, aids_of
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
from armid.identification.mistakes import mistakes
from armid.identification.omitted import missing_rotors, unfelt_rotors
from armid.identification.plausibility import plausibility_checks
from armid.identification.prepare import Data, drive_gains, in_torque_units, prepared, turned_on_time, turning_at_once
from armid.identification.provenance import check_apart, check_new, log_record, provenance
from armid.identification.records import FrictionShapes, Gain
from armid.identification.result import Result
from armid.identification.sensitivity import cutoff_check, cutoff_moves, sensitivities, widened_by_cutoff
from armid.identification.sensors import Imperfections, corrected_runs
from armid.identification.settings import Identification, Method
from armid.identification.shaping import friction_record, paying_check, shaped
from armid.identification.stamped_clock import clock_fault, clock_record, stamped_clock
from armid.identification.thresholds import TURNED
from armid.information.information import Information
from armid.logs.conditioning import Conditioning, VelocitySource
from armid.logs.log import Channel, Log
from armid.logs.recording import Recording, open_recording
from armid.notes import Note, Severity
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot
from armid.rows.imperfections import Family
from armid.threads import one_blas_thread

__all__ = ["Identification", "Progress", "identify", "run_identification"]

Progress = Callable[[str], None]

_ONE_SIDE = (TorqueSide.LINK, TorqueSide.MOTOR)
"""Torques whose sensors can be told apart from the arm: both sides of the drives together have other rows."""

SETTLED_BY_GRAVITY = ("gravity-reversed", "mounting")
"""Errors of logs that a search for the direction of gravity answers."""


@one_blas_thread
def run_identification(
    robot: Robot,
    train: Sequence[Recording | Log],
    held_out: Sequence[Recording | Log],
    settings: Identification,
    *,
    workers: Workers | None = None,
    progress: Progress = lambda _: None,
) -> Result:
    """A judged result under given settings; `armid.identify` makes them from words.

    Args:
        robot: as described.
        train: recordings to learn from.
        held_out: recordings no part of which is used for any choice.
        settings: see there.
        workers: who read and condition recordings, keep their runs and go through them; None for this process.
        progress: told in words what is being done.

    Raises:
        ArmidError: unusable input; nothing is written then.
    """
    started = time.perf_counter()
    learned, tested = ([recorded(log, robot) for log in logs] for logs in (train, held_out))
    records = [[log_record(log) for log in logs] for logs in (learned, tested)]
    check_apart(*records)
    if settings.prior is not None:
        for part, what in zip(
            records, ("adding it would count it twice", "held out, it would be no test"), strict=True
        ):
            check_new(settings.prior.provenance.train, part, what)
    progress("conditioning")
    if settings.find_gravity:
        settings = replace(settings, conditioning=_accepting(settings.conditioning, SETTLED_BY_GRAVITY))
    settings = _with_earlier_delay(settings)
    linear = replace(settings, effects=settings.effects.linear)
    data = prepared(robot, learned, tested, linear, workers)
    gains = None
    measured = data.choice[0].channel(settings.effects.torques)
    if measured is Channel.CURRENT and settings.effects.torques is not TorqueSide.LINK:
        progress("drive gains")
        gains = drive_gains(robot, data)
        data = in_torque_units(data, gains)
    if settings.find_gravity:
        progress("direction of gravity")
        robot, data = levelled(robot, data, settings)
    progress("estimating")
    data, held_since = paired_torque(robot, data, settings, gains)
    friction: FrictionShapes | None = None
    suspects: tuple[Fault, ...] = ()
    if settings.method is Method.AUTO:
        settings, data = with_method(robot, data, settings, gains)
    aids = aids_of(robot, learned, data.train, data.conditioning, settings, torque=measured)
    if settings.sensors is not None:
        data = _freed(data, _one_sided(settings.sensors, settings))
    progress("what could be wrong")
    if settings.effects.shapes:
        _, suspects = suspected(robot, data, replace(settings, correct=False), gains)
        data, fit, friction = _with_shapes(robot, data, settings, gains, progress, aids)
    else:
        data, suspects = suspected(robot, data, settings, gains)
        progress("imperfections")
        data, beside = perfected(robot, data, settings, gains)
        suspects = (*suspects, *position_faults(None if beside is None else beside.found))
        progress("estimating")
        fit = fitted(
            robot,
            data.train,
            settings,
            structural=data.structural,
            intended=data.intended,
            aids=aids,
            beside=beside,
        )
    progress("judging")
    held = information_of(data.held_out) if len(data.held_out) else None
    moves = cutoff_moves(robot, settings, data, fit, gains) if settings.sensitivity else ()
    by_noise = fit.estimate
    fit = replace(fit, estimate=widened_by_cutoff(by_noise, moves))
    if held_since is not None:
        fit = replace(fit, estimate=held_since.widened(fit.estimate))
    result = judged(robot, data, fit, settings, gains, held)
    progress("what could be wrong")
    result = with_suspects(result, mistakes(robot, data.train, fit, settings))
    result = replace(result, checks=(*result.checks, *cutoff_check(by_noise, moves)))
    if friction is not None:
        result = replace(result, friction=friction, checks=(*result.checks, *paying_check(friction)))
    result = replace(result, suspects=(*result.suspects, *suspects))
    if settings.sensitivity:
        deviations = by_noise.standard_deviations
        result = replace(result, sensitivity=sensitivities(settings, data, fit, held, moves, deviations))
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return replace(
        result,
        notes=(*settings.remarks, *(note for note in result.notes if not _was_said(note, settings))),
        checks=checks_of(result),
        provenance=provenance(robot, records[0], records[1], settings),
        seconds=time.perf_counter() - started,
        peak_memory_mb=usage / (1024.0**2 if platform.system() == "Darwin" else 1024.0),
    )


def _was_said(note: Note, settings: Identification) -> bool:
    """Whether a note is about what the settings say themselves: the side of the drives on which torque was measured."""
    return note.code == "torque-side-assumed" and settings.effects.torques is not TorqueSide.LINK


def recorded(log: Recording | Log, robot: Robot) -> Recording:
    """A recording; a log in memory is taken as it is, with the notes it has."""
    return open_recording(log, robot, check=False) if isinstance(log, Log) else log


def _with_shapes(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None, progress: Progress, aids: Aids
) -> tuple[Data, Fit, FrictionShapes]:
    """Data and fit with the shapes of friction asked for, and the record of them beside linear friction."""
    linear = replace(settings, effects=settings.effects.linear, prior=None)
    plain = fitted(robot, data.train, linear, structural=data.structural, intended=data.intended, aids=aids)
    progress("shape of friction")
    shaping = shaped(robot, data, settings, plain, gains)
    progress("estimating")
    fit = fitted(
        robot,
        shaping.data.train,
        settings,
        structural=shaping.data.structural,
        intended=shaping.data.intended,
        aids=aids,
        widen=lambda estimate: shaping.widened(estimate, settings.covariance),
    )
    fit = replace(fit, notes=(*fit.notes, *shaping.notes))
    return shaping.data, fit, friction_record(settings, shaping, fit, data, plain, fit.scale_deviations)


def with_method(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None
) -> tuple[Identification, Data]:
    """Settings with the method that `auto` stands for, and data with a note that says why.

    Weighted least squares is tried as it would be used, with imperfections beside it.
    """
    weighted = replace(settings, method=Method.WEIGHTED)
    if settings.prior is not None:
        return weighted, data
    known = data if settings.sensors is None else _freed(data, settings.sensors)
    freed = known if settings.effects.shapes else perfected(robot, known, weighted, gains)[0]
    base, _ = usable_base(data.train, information_of(data.train), data.structural, data.intended)
    chosen = choose_method(known.train, freed.train, base)
    return replace(settings, method=chosen.method), replace(data, notes=(*data.notes, chosen.note))


def paired_torque(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None
) -> tuple[Data, HeldTorque | None]:
    """Data whose torque is paired with the motion of its half tick, and what is not known of that.

    Nothing where the delay is known (given, or in an earlier result), where a simulated loop holds its torque itself, and where
    delays are not to enter the model.
    """
    known = settings.conditioning.torque_delay or settings.prior is not None or settings.method.in_loop
    allowed = Family.DELAY in settings.imperfections.families
    base = None if known or not allowed else _determined(data)
    return (data, None) if base is None else paired_with_motion(robot, data, settings, gains, base)


def suspected(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None
) -> tuple[Data, tuple[Fault, ...]]:
    """What could be wrong with the recordings; with `correct` the runs are freed from what was found.

    Whatever the method of the estimate, faults are looked for by least squares, beside what an earlier result knows of sensors.
    """
    if settings.effects.torques is TorqueSide.BOTH:
        return data, faults_of_both_sides(robot, data, settings, gains, lambda d, s: suspected(robot, d, s, None)[1])
    if settings.effects.torques not in _ONE_SIDE:
        return data, not_looked_for("identify from one side of the drives (--torques link or motor)")
    known = None if settings.prior is None else settings.prior.imperfections
    looked = turning_at_once(robot, data, settings.effects.linear, gains)
    looked = looked if known is None else _freed(looked, known)
    recorded = data.conditioning.velocity is VelocitySource.MEASURED
    clock = stamped_clock(robot, data.recordings[0], looked.imperfections)
    on_time = data
    if clock is not None:
        record = clock_record(robot, clock, recorded_velocity=recorded)
        looked, on_time = _freed(looked, record), _freed(data, record)
    told = () if clock is None else (clock_fault(clock, corrected=settings.correct),)
    base = _determined(looked)
    if base is None:
        others = not_looked_for("record a motion that excites all joints (armid design)")
        return data, (*told, *(fault for fault in others if clock is None or fault.kind != Family.CLOCK.value))
    found = detect(
        robot,
        looked.train,
        looked.held_out,
        base,
        recorded_velocity=recorded,
        gains_known=gains is not None,
        clock_known=clock is not None,
        in_newtons=gains is not None or data.choice[0].channel(settings.effects.torques) is not Channel.CURRENT,
        cutoff_hz=data.conditioning.torque_cutoff or data.conditioning.cutoff,
    )
    told = (*told, *drive_gain_faults(gains))
    if found.undone is not None and found.undone.late:
        turning = _freed(on_time, without_delays(found.undone))
        late = turned_on_time(robot, on_time, settings, gains, found.undone)
        found = confirmed(found, turning.train, late.train, base)
    if not settings.correct:
        return data, (*told, *found.faults)
    if found.undone is not None and found.undone.late:
        on_time = turned_on_time(robot, on_time, settings, gains, found.undone)
    elif found.undone is not None:
        on_time = _freed(on_time, found.undone)
    return on_time, (*told, *undone_faults(found.faults, found.undone))


def perfected(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None
) -> tuple[Data, Weighed | None]:
    """Runs freed from the imperfections that the training motion shows, and what is known of these.

    Those of an earlier result are taken as they are: the sensors are the same.
    """
    if settings.prior is not None:
        known = settings.prior.imperfections
        return (data, None) if known is None else (_freed(data, known), None)
    settled = {Family.GAIN: gains is not None, Family.TILT: settings.find_gravity}
    wanted = tuple(family for family in settings.imperfections.families if not settled.get(family, False))
    if settings.method is not Method.WEIGHTED or settings.effects.torques not in _ONE_SIDE or not wanted:
        return data, None
    base = _determined(data)
    if base is None:
        return data, None
    found = weighed(
        robot,
        data.train,
        data.held_out,
        base,
        settings.bodies,
        replace(settings.imperfections, families=wanted),
        recorded_velocity=data.conditioning.velocity is VelocitySource.MEASURED,
    )
    return (data, found) if found is None or found.found is None else (_freed(data, found.found), found)


def _determined(data: Data) -> BaseParameters | None:
    """Base parameters beside which imperfections can be weighed; None where they are not.

    A motion that does not even determine the parameters says nothing about what stands beside them.
    """
    # In classes, as every fit wants the rows: one pass for both.
    rows = classed_information(data.train)
    base, structural = usable_base(data.train, rows, data.structural, data.intended)
    return base if len(base) >= len(structural) else None


def _one_sided(sensors: Imperfections, settings: Identification) -> Imperfections:
    """The sensors of a file, which are those of one side of the drives.

    Raises:
        InputError: torques of both sides are fitted.
    """
    if settings.effects.torques in _ONE_SIDE:
        return sensors
    raise InputError(
        "a sensor file (--sensors, or sensors of a mapping)",
        f"with --torques {settings.effects.torques.value}",
        "use it with --torques link or --torques motor",
    )


def _freed(data: Data, found: Imperfections) -> Data:
    """The data without these imperfections."""
    train, held_out = (corrected_runs(runs, found) for runs in (data.train, data.held_out))
    return replace(data, train=train, held_out=held_out, imperfections=found.after(data.imperfections))


def _with_earlier_delay(settings: Identification) -> Identification:
    """Settings with the delay of torque that an earlier result found, unless one is given: the sensors are the same."""
    if settings.prior is None or settings.conditioning.torque_delay:
        return settings
    delay = settings.prior.conditioning.torque_delay_s
    return replace(settings, conditioning=replace(settings.conditioning, torque_delay=delay))


def _accepting(conditioning: Conditioning, codes: tuple[str, ...]) -> Conditioning:
    """Conditioning that accepts further errors of logs."""
    return replace(conditioning, accept=tuple(dict.fromkeys((*conditioning.accept, *codes))))


def levelled(robot: Robot, data: Data, settings: Identification) -> tuple[Robot, Data]:
    """Robot and runs under the gravity that the training torque shows; a note says how far it is from the description's."""
    found = GravityDirection(consistency=Consistency(settings.regulariser, settings.bounds)).fit(data.train)
    text = f"gravity {np.round(found.gravity, 4).tolist()} m/s^2 found, {np.rad2deg(found.tilt):.2f} deg from the description"
    note = Note("gravity-found", Severity.WARNING if found.notes else Severity.INFO, text)
    # What the log check said about a reversed or tilted mounting is settled when the torque shows another direction.
    turned = found.tilt > np.deg2rad(TURNED.value)
    kept = [n for n in data.notes if not (turned and n.code in SETTLED_BY_GRAVITY)]
    train, held_out = (
        map_runs(runs, partial(with_gravity, gravity=found.gravity)) for runs in (data.train, data.held_out)
    )
    fresh = replace(
        data,
        train=train,
        held_out=held_out,
        structural=structure_of(train),
        intended=described_structure(train, settings.described),
        notes=(*kept, note),
    )
    return robot.with_gravity(found.gravity), fresh


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


def _errors_of(train: Predicted, held_out: Predicted) -> ErrorTables:
    """From the predictions of both."""
    joints, raw, nominal = (
        paired(train.sums[name].errors(), held_out.sums[name].errors()) for name in (CONSISTENT, FREE, NOMINAL)
    )
    relative = {"train": train.sums[CONSISTENT].stacked_relative()}
    relative["held_out"] = held_out.sums[CONSISTENT].stacked_relative()
    return ErrorTables(joints=joints, raw=raw, nominal=nominal, relative=relative)


def judged(
    robot: Robot,
    data: Data,
    fit: Fit,
    settings: Identification,
    gains: DriveGains | None,
    held_out: Information | None,
) -> Result:
    """Errors, certificates and verdict."""
    free, values = fit.estimate.standard, fit.consistent.values
    known = nominal_models(robot, fit.information.parameters)
    train = predicted(data.train, {CONSISTENT: values, FREE: free, NOMINAL: known[NOMINAL]})
    traces = Traces(data.held_out, data.temperatures)
    tested = predicted(
        data.held_out,
        {CONSISTENT: values, FREE: free, **known},
        constant=train.mean,
        traces=traces,
        speeds=None if train.motion is None else train.motion.speeds,
    )
    errors = _errors_of(train, tested)
    cost = {
        j.name: j.train.rmse / max(r.train.rmse, 1e-300) - 1.0 for j, r in zip(errors.joints, errors.raw, strict=True)
    }
    certificates = certify(robot, fit.consistent, fit.estimate, cost, seed=settings.seed)
    compared = tested.against_description() if has_masses(robot) else ()
    evidence = evidence_of(
        data,
        train,
        tested,
        gains,
        refit=lambda information: refitted(robot, information, fit, settings),
        standard=values,
        structural_rank=len(fit.structural),
        gravity_error=gravity_errors(data.train, settings, fit.rows),
        against_nominal=compared,
    )
    checks = judge(
        fit.estimate,
        fit.consistent,
        certificates,
        errors.joints,
        errors.raw,
        relative_error=errors.relative,
        evidence=evidence,
    )
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
        checks=(
            *checks,
            *plausibility_checks(robot, fit.consistent),
            *driving_friction_checks(robot.joint_names, settings.effects, fit.estimate, evidence.train),
            *elsewhere_checks(robot, data.train, fit.estimate, seed=settings.seed),
        ),
        evidence=evidence,
        gains=_gains_of(gains, row_inflation(fit.information, fit.estimate)),
        conditioning=data.record(),
        notes=tuple(
            dict.fromkeys(
                (
                    *data.notes,
                    *tested_notes(data),
                    *fit.notes,
                    *missing_rotors(data.train, fit.estimate),
                    *unfelt_rotors(settings.effects, data.choice[0].torques),
                )
            )
        ),
        traces=traces.arrays,
        imperfections=data.imperfections,
    )


def _gains_of(gains: DriveGains | None, inflation: float) -> dict[str, Gain]:
    """Gain and standard deviation per joint; the latter widened like those of the parameters."""
    if gains is None:
        return {}
    return {
        name: Gain(float(k), inflation * float(s))
        for name, k, s in zip(gains.channels, gains.values, gains.standard_deviations, strict=True)
    }


identify = run_identification
"""The same under the name by which studies know it."""
