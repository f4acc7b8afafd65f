"""What the recordings have wrong: looked for, and taken away from the runs before the fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from armid.errors import InputError
from armid.estimation.determined import usable_base
from armid.estimation.reversals import classed_information
from armid.estimation.run import information_of
from armid.identifiability.base import BaseParameters
from armid.identification.auto_method import choose_method
from armid.identification.both_sides import faults_of_both_sides
from armid.identification.candidates import not_looked_for, undone_faults
from armid.identification.data import Data
from armid.identification.described_bodies import drive_gain_faults
from armid.identification.detection import detect
from armid.identification.faults import Fault, bounded_widths
from armid.identification.gains import DriveGains
from armid.identification.half_tick import HeldTorque, paired_with_motion
from armid.identification.imperfections import Weighed, weighed
from armid.identification.late_torque import confirmed, without_delays
from armid.identification.sensors import Imperfections, corrected_runs
from armid.identification.settings import Identification, Method
from armid.identification.stamped_clock import clock_fault, clock_record, stamped_clock
from armid.identification.turning import turned_on_time, turning_at_once
from armid.logs.conditioning import VelocitySource
from armid.logs.log import Channel
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot
from armid.rows.imperfections import Family

_ONE_SIDE = (TorqueSide.LINK, TorqueSide.MOTOR)
"""Torques whose sensors can be told apart from the arm: both sides of the drives together have other rows."""


def with_method(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None
) -> tuple[Identification, Data]:
    """Settings with the method that `auto` stands for, and data with a note that says why.

    Weighted least squares is tried as it would be used, with imperfections beside it.
    """
    weighted = replace(settings, method=Method.WEIGHTED)
    if settings.prior is not None:
        return weighted, data
    known = without_sensors(robot, data, settings, gains)
    clean = known if settings.effects.shapes else perfected(robot, known, weighted, gains)[0]
    base, _ = usable_base(data.train, information_of(data.train), data.structural, data.intended)
    chosen = choose_method(known.train, clean.train, base)
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Shaped:
    """Data with the shapes of friction asked for, beside which faults are looked for: known friction is no fault of a sensor.

    Args:
        data: with shapes as settled on the torque as recorded.
        anew: the same of other data with linear friction, freed from their imperfections.
    """

    data: Data
    anew: Callable[[Data], Data]


def suspected(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None, shaped: Shaped | None = None
) -> tuple[Data, tuple[Fault, ...]]:
    """What could be wrong with the recordings; with `correct` the runs are freed from what was found.

    Whatever the method of the estimate, faults are looked for by least squares, beside what an earlier result knows of sensors.

    Args:
        robot, settings: as elsewhere.
        data: with linear friction.
        gains: of the drives, when currents were measured.
        shaped: with the shapes of friction asked for; None for linear friction.
    """
    if settings.effects.torques is TorqueSide.BOTH:
        return data, faults_of_both_sides(robot, data, settings, gains, lambda d, s: suspected(robot, d, s, None)[1])
    if settings.effects.torques not in _ONE_SIDE:
        return data, not_looked_for("identify from one side of the drives (--torques link or motor)")
    known = None if settings.prior is None else settings.prior.imperfections
    own, effects = (data, settings.effects.linear) if shaped is None else (shaped.data, settings.effects)
    looked = turning_at_once(robot, own, effects, gains)
    looked = looked if known is None else freed(looked, known)
    recorded = data.conditioning.velocity is VelocitySource.MEASURED
    clock = stamped_clock(robot, data.recordings[0], looked.imperfections, settings.imperfections)
    on_time = data
    if clock is not None:
        record = clock_record(robot, clock, recorded_velocity=recorded)
        looked, on_time, own = (freed(one, record) for one in (looked, data, own))
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
        bodies=settings.bodies,
        tolerances=settings.imperfections,
    )
    found = replace(found, faults=bounded_widths(found.faults))
    told = (*told, *drive_gain_faults(gains))
    if found.named is not None and found.named.late:
        turning = freed(own, without_delays(found.named))
        late = turned_on_time(robot, on_time, settings, gains, found.named)
        late = late if shaped is None else shaped.anew(late)
        found = confirmed(found, turning.train, late.train, base)
    if not settings.correct:
        return data, (*told, *found.faults)
    if found.undone is not None and found.undone.late:
        on_time = turned_on_time(robot, on_time, settings, gains, found.undone)
    elif found.undone is not None:
        on_time = freed(on_time, found.undone)
    return on_time, (*told, *undone_faults(found.faults, found.undone))


def perfected(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None
) -> tuple[Data, Weighed | None]:
    """Runs freed from the imperfections that the training motion shows, and what is known of these.

    Those of an earlier result are taken as they are: the sensors are the same.
    """
    if settings.prior is not None:
        known = settings.prior.imperfections
        return (data, None) if known is None else (freed(data, known), None)
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
    return (data, found) if found is None or found.found is None else (freed(data, found.found), found)


def _determined(data: Data) -> BaseParameters | None:
    """Base parameters beside which imperfections can be weighed; None where they are not.

    A motion that does not even determine the parameters says nothing about what stands beside them.
    """
    # In classes, as every fit wants the rows: one pass for both.
    rows = classed_information(data.train)
    base, structural = usable_base(data.train, rows, data.structural, data.intended)
    return base if len(base) >= len(structural) else None


def without_sensors(robot: Robot, data: Data, settings: Identification, gains: DriveGains | None) -> Data:
    """The data without the errors of a sensor file; where torque was late by it, friction is settled on torque that is on time.

    Raises:
        InputError: torques of both sides are fitted.
    """
    if settings.sensors is None:
        return data
    sensors = one_sided(settings.sensors, settings)
    # Whether a clock is in the velocities depends on whether the recording's own are used.
    recorded = data.conditioning.velocity is VelocitySource.MEASURED
    sensors = replace(sensors, reference=replace(sensors.reference, recorded_velocity=recorded))
    return turned_on_time(robot, data, settings, gains, sensors) if sensors.late else freed(data, sensors)


def one_sided(sensors: Imperfections, settings: Identification) -> Imperfections:
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


def freed(data: Data, found: Imperfections) -> Data:
    """The data without these imperfections."""
    train, held_out = (corrected_runs(runs, found) for runs in (data.train, data.held_out))
    return replace(data, train=train, held_out=held_out, imperfections=found.after(data.imperfections))
