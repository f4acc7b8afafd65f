"""From recordings to a judged result: condition, estimate, make consistent, validate, judge."""

from __future__ import annotations

import platform
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from armid.cluster.workers import Workers
from armid.consistency.consistent import Consistency
from armid.estimation.determined import described_structure, structure_of
from armid.estimation.run import information_of
from armid.estimation.runs import map_runs
from armid.identification.aids import Aids, aids_of
from armid.identification.candidates import position_faults
from armid.identification.data import Data
from armid.identification.doubts import (
    Shaped,
    freed,
    paired_torque,
    perfected,
    suspected,
    with_method,
    without_sensors,
)
from armid.identification.faults import Answer, Fault, beside_unexplained, without_stand_ins
from armid.identification.fit import Fit, fitted
from armid.identification.gains import DriveGains
from armid.identification.gate import checks_of, with_suspects
from armid.identification.gravity import GravityDirection, with_gravity
from armid.identification.half_tick import HeldTorque
from armid.identification.held_out import judged_joints
from armid.identification.imperfections import Weighed
from armid.identification.judged import judged
from armid.identification.logs_apart import apart_faults
from armid.identification.mistakes import Looked, looked_at, mistakes
from armid.identification.origins import LogRecord
from armid.identification.possible_choice import beside_possible_bodies
from armid.identification.prepare import drive_gains, in_torque_units, prepared
from armid.identification.provenance import check_apart, check_new, log_record, provenance
from armid.identification.records import FrictionShapes
from armid.identification.result import Result
from armid.identification.sensitivity import cutoff_check, cutoff_moves, sensitivities, widened_by_cutoff
from armid.identification.settings import Identification, Method
from armid.identification.thresholds import TURNED
from armid.identification.torque_offsets import offset_faults
from armid.identification.unexplained import unexplained_faults
from armid.identification.unsteady import jitter_faults
from armid.logs.log import Channel, Log
from armid.logs.recording import Recording, open_recording
from armid.notes import Note, Severity
from armid.outcome import Check
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot
from armid.threads import one_blas_thread

__all__ = ["Identification", "Progress", "run_identification"]

Progress = Callable[[str], None]

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
    records = _records(learned, tested, settings)
    progress("conditioning")
    settings = _settled(settings)
    data = prepared(robot, learned, tested, replace(settings, effects=settings.effects.linear), workers)
    data, gains = _in_newtons(robot, data, settings, progress)
    if settings.find_gravity:
        progress("direction of gravity")
        robot, data = levelled(robot, data, settings)
    progress("estimating")
    data, held_since = paired_torque(robot, data, settings, gains)
    if settings.method is Method.AUTO:
        settings, data = with_method(robot, data, settings, gains)
    measured = data.choice[0].channel(settings.effects.torques)
    aids = aids_of(robot, learned, data.train, data.conditioning, settings, torque=measured)
    data = without_sensors(robot, data, settings, gains)
    estimated = _estimated(robot, data, settings, gains, aids, progress)
    progress("judging")
    result = _judged(robot, estimated, settings, gains, held_since, progress)
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return replace(
        result,
        notes=(*settings.remarks, *(note for note in result.notes if not _was_said(note, settings))),
        checks=checks_of(result),
        provenance=provenance(robot, *records, settings),
        seconds=time.perf_counter() - started,
        peak_memory_mb=usage / (1024.0**2 if platform.system() == "Darwin" else 1024.0),
    )


def _was_said(note: Note, settings: Identification) -> bool:
    """Whether a note is about what the settings say themselves: the side of the drives on which torque was measured."""
    return note.code == "torque-side-assumed" and settings.effects.torques is not TorqueSide.LINK


def recorded(log: Recording | Log, robot: Robot) -> Recording:
    """A recording; a log in memory is taken as it is, with the notes it has."""
    return open_recording(log, robot, check=False) if isinstance(log, Log) else log


def _records(
    learned: Sequence[Recording], tested: Sequence[Recording], settings: Identification
) -> tuple[list[LogRecord], list[LogRecord]]:
    """Of training and held-out recordings, none of which may be known already.

    Raises:
        InputError: one is among the others, or in an earlier result.
    """
    records = [log_record(log) for log in learned], [log_record(log) for log in tested]
    check_apart(*records)
    if settings.prior is not None:
        earlier = settings.prior.provenance.train
        check_new(earlier, records[0], "adding it would count it twice")
        check_new(earlier, records[1], "held out, it would be no test")
    return records


def _settled(settings: Identification) -> Identification:
    """Settings with what a search for gravity answers accepted, and the delay of torque that an earlier result found.

    Unless a delay is given: the sensors are the same.
    """
    conditioning = settings.conditioning
    if settings.find_gravity:
        accept = tuple(dict.fromkeys((*conditioning.accept, *SETTLED_BY_GRAVITY)))
        conditioning = replace(conditioning, accept=accept)
    if settings.prior is not None and not conditioning.torque_delay:
        conditioning = replace(conditioning, torque_delay=settings.prior.conditioning.torque_delay_s)
    return replace(settings, conditioning=conditioning)


def _in_newtons(
    robot: Robot, data: Data, settings: Identification, progress: Progress
) -> tuple[Data, DriveGains | None]:
    """The data with torque in its unit, and the gains of the drives where currents were measured."""
    torques = settings.effects.torques
    if data.choice[0].channel(torques) is not Channel.CURRENT or torques is TorqueSide.LINK:
        return data, None
    progress("drive gains")
    gains = drive_gains(robot, data)
    return in_torque_units(data, gains), gains


@dataclass(frozen=True, eq=False, kw_only=True)
class _Estimated:
    """A fit, and what was found on the way to it.

    Args:
        data: that the fit rests on.
        recorded: the same before it was freed from imperfections, which were chosen to explain all of it together.
        fit: see there.
        suspects: what could be wrong with the recordings.
        friction: shapes of friction, where they were asked for.
        checks: whether these pay.
        mistaken: discrete mistakes of the recordings.
    """

    data: Data
    recorded: Data
    fit: Fit
    mistaken: tuple[Fault, ...]
    suspects: tuple[Fault, ...] = ()
    friction: FrictionShapes | None = None
    checks: tuple[Check, ...] = ()


def _estimated(
    robot: Robot,
    data: Data,
    settings: Identification,
    gains: DriveGains | None,
    aids: Aids,
    progress: Progress,
) -> _Estimated:
    """Faults looked for, imperfections weighed or friction shaped, and the fit to what is left."""
    if settings.effects.shapes:
        return _with_shapes(robot, data, settings, gains, progress, aids)
    progress("what could be wrong")
    recorded, suspects = suspected(robot, data, settings, gains)
    suspects = without_stand_ins(suspects)
    seen = Looked(train=looked_at(recorded.train), held_out=looked_at(recorded.held_out))
    progress("imperfections")
    data, beside = perfected(robot, recorded, settings, gains)

    def fit_to(data: Data, beside: Weighed | None) -> Fit:
        return fitted(
            robot,
            data.train,
            settings,
            structural=data.structural,
            intended=data.intended,
            aids=aids,
            beside=beside,
        )

    progress("estimating")
    fit = fit_to(data, beside)
    progress("what could be wrong")
    mistaken = mistakes(robot, seen, data.train, fit, settings)
    # What makes bodies possible again may stand in for a mistake of the recording.
    if beside is not None and not any(fault.answer is Answer.FOUND for fault in mistaken):
        more = beside_possible_bodies(beside.choice)
        if more is not None and more.found is not None:
            data, beside = freed(recorded, more.found), more
            fit = fit_to(data, beside)
    placed = position_faults(None if beside is None else beside.found)
    return _Estimated(data=data, recorded=recorded, fit=fit, suspects=(*suspects, *placed), mistaken=mistaken)


def _with_shapes(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None, progress: Progress, aids: Aids
) -> _Estimated:
    """Data and fit with the shapes of friction asked for, and the record of them beside linear friction."""
    from armid.identification.shaping import Shaping, friction_record, paying_check, shaped  # few ask for shapes

    linear = replace(settings, effects=settings.effects.linear, prior=None)

    def settled(data: Data) -> tuple[Fit, Shaping]:
        plain = fitted(robot, data.train, linear, structural=data.structural, intended=data.intended, aids=aids)
        return plain, shaped(robot, data, settings, plain, gains)

    progress("shape of friction")
    plain, shaping = settled(data)
    progress("what could be wrong")
    beside = Shaped(data=shaping.data, anew=lambda other: settled(other)[1].data)
    sound, suspects = suspected(robot, data, settings, gains, beside)
    suspects = without_stand_ins(suspects)
    if sound is not data:
        data = sound
        plain, shaping = settled(data)
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
    friction = friction_record(settings, shaping, fit, data, plain, fit.scale_deviations)
    # Runs hold shapes of friction as recorded, and those of a turned joint are others: linear friction stands in.
    seen = Looked(train=looked_at(data.train), held_out=looked_at(data.held_out))
    mistaken = mistakes(robot, seen, data.train, plain, linear)
    return _Estimated(
        data=shaping.data,
        recorded=shaping.data,
        fit=fit,
        mistaken=mistaken,
        suspects=suspects,
        friction=friction,
        checks=paying_check(friction),
    )


def _judged(
    robot: Robot,
    estimated: _Estimated,
    settings: Identification,
    gains: DriveGains | None,
    held_since: HeldTorque | None,
    progress: Progress,
) -> Result:
    """The fit judged with intervals that also hold what other cut-offs and a held torque would do to it."""
    data, by_noise = estimated.data, estimated.fit.estimate
    held = information_of(data.held_out) if len(data.held_out) else None
    moves = cutoff_moves(robot, settings, data, estimated.fit, gains) if settings.sensitivity else ()
    estimate = widened_by_cutoff(by_noise, moves)
    fit = replace(estimated.fit, estimate=estimate if held_since is None else held_since.widened(estimate))
    result = judged(robot, data, fit, settings, gains, held)
    result = with_suspects(result, (*estimated.mistaken, *_apart(estimated.recorded, fit, result)))
    told = beside_unexplained(estimated.suspects, _unexplained(result))
    suspects = (*result.suspects, *told, *_bounded(robot, data, fit, result))
    result = replace(
        result,
        checks=(*result.checks, *cutoff_check(by_noise, moves), *estimated.checks),
        friction=estimated.friction,
        suspects=suspects,
    )
    if not settings.sensitivity:
        return result
    deviations = by_noise.standard_deviations
    return replace(result, sensitivity=sensitivities(settings, data, fit, held, moves, deviations))


def _unexplained(result: Result) -> frozenset[str]:
    """Joints whose torque the model does not explain."""
    if result.evidence is None:
        return frozenset()
    return frozenset(joint.name for joint in judged_joints(result.joints, result.evidence) if joint.unexplained)


def _bounded(robot: Robot, data: Data, fit: Fit, result: Result) -> Iterator[Fault]:
    """What is in the model as it is, or left over by it: constant torque, what nothing explains, delays that come and go."""
    if result.evidence is None:
        return
    yield from offset_faults(robot, fit.estimate, result.evidence.train)
    standard = fit.consistent.values
    yield from unexplained_faults(result.joints, result.evidence, data.train, data.held_out, standard)
    yield from jitter_faults(data.held_out, standard)


def _apart(data: Data, fit: Fit, result: Result) -> Iterator[Fault]:
    """Whether training logs contradict each other."""
    if result.evidence is not None:
        yield from apart_faults(data.train, fit.estimate.base, judged_joints(result.joints, result.evidence))


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
