"""A clock that runs fast or slow, told by recorded velocities: no torque is needed, and no model."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np

from armid.estimation.estimate import NORMAL_95
from armid.estimation.imperfections import FACTORS
from armid.identification.faults import Answer, Fault
from armid.identification.sensor_file import sensor_sizes
from armid.identification.sensors import Imperfections, Sized
from armid.identification.tolerances import DEFAULT, ImperfectionTolerances
from armid.logs.health.velocity import velocity_ratios
from armid.logs.log import Log
from armid.logs.recording import Recording
from armid.robot.robot import Robot
from armid.rows.imperfections import KINDS, ColumnReference, Family, Imperfection


def stamped_clock(
    robot: Robot,
    recordings: Sequence[Recording],
    undone: Imperfections | None,
    tolerances: ImperfectionTolerances = DEFAULT,
) -> Sized | None:
    """Share by which time was stamped too long in all recordings alike; None unless it is beyond tolerance and doubt.

    Velocities that agree with the stamps exclude nothing: a recorder may have derived them from positions and these very stamps.

    Args:
        robot: the arm.
        recordings: with their velocities; of a long one the first piece.
        undone: what the recordings are freed from already.
        tolerances: up to which sizes are ordinary.
    """
    return clock_of_logs(robot, [next(iter(recording.pieces())) for recording in recordings], undone, tolerances)


def clock_of_logs(
    robot: Robot, logs: Sequence[Log], undone: Imperfections | None, tolerances: ImperfectionTolerances = DEFAULT
) -> Sized | None:
    """The same of logs whose columns are in the robot's order."""
    found = []
    for log in logs:
        ratios = velocity_ratios(log, robot)
        if ratios is None or ratios.clock is None:
            return None
        found.append(ratios.clock)
    values, deviations = np.array(found).T
    if np.ptp(values) > KINDS[Family.CLOCK].tolerance:
        return None
    known = sensor_sizes(undone).get((Family.CLOCK, "", None), (0.0, 0.0))[0] if undone else 0.0
    left = (1.0 + float(np.mean(values))) / (1.0 + known) - 1.0
    kind = KINDS[Family.CLOCK]
    item = tolerances.applied(Imperfection(family=Family.CLOCK, joint=None, unit=kind.unit, tolerance=kind.tolerance))
    return Sized(item, left, float(np.max(deviations))) if abs(left) > item.tolerance else None


def clock_record(robot: Robot, clock: Sized, *, recorded_velocity: bool) -> Imperfections:
    """What frees runs of this clock.

    Args:
        robot: the arm.
        clock: its size.
        recorded_velocity: whether velocities were recorded and not derived.
    """
    reference = ColumnReference.without_model(robot.n_joints, recorded_velocity=recorded_velocity)
    return Imperfections(joints=robot.joint_names, sizes=(clock,), reference=reference)


def clock_fault(clock: Sized, *, corrected: bool) -> Fault:
    """The same as something that was found."""
    half = NORMAL_95 * clock.standard_deviation
    return Fault(
        kind=Family.CLOCK.value,
        estimate=clock.value,
        standard_deviation=clock.standard_deviation,
        low=clock.value - half,
        high=clock.value + half,
        unit=clock.item.unit,
        tolerance=clock.item.tolerance,
        answer=Answer.FOUND,
        explains=0.0,
        held_out_change=nan,
        words=clock_words(clock.value),
        large=abs(clock.value) > FACTORS[-1] * clock.item.tolerance,
        corrected=corrected,
    )


def clock_words(size: float) -> str:
    """What undoes a clock in a mapping."""
    return f"clock: {{gain: {1.0 / (1.0 + size):.4g}}}"
