"""What a motion will tell: its information, condition numbers, and the deviations to expect."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.identifiability.base import BaseParameters
from armid.identifiability.criteria import condition_numbers
from armid.identifiability.structure import structural_base
from armid.information.accumulate import accumulate
from armid.information.information import Information
from armid.motions.needed_torque import torque_limits
from armid.motions.trajectory import Trajectory
from armid.parameters.effects import Effects
from armid.robot.described import described_values
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows

REPORT_RATE_HZ = 100.0
"""Rate at which condition numbers are reported: that of the [Halper2024]; more samples change the third digit."""


def excitation_inputs(trajectory: Trajectory, rate_hz: float = REPORT_RATE_HZ) -> FloatArray:
    """Samples of one period, the end left out when it is the start again, shape [n_samples, 3 n_joints]."""
    count = max(round(trajectory.duration * rate_hz), 2)
    return np.hstack(trajectory.sample(np.arange(count) * (trajectory.duration / count)))


def excitation_information(rows: TorqueRows, trajectory: Trajectory) -> Information:
    """What one run of a motion tells about the standard parameters, with measured values left at zero."""
    x = excitation_inputs(trajectory)
    return accumulate(rows, x, np.zeros((len(x), len(rows.channels))))


def trajectory_condition(robot: Robot, effects: Effects, trajectory: Trajectory) -> float:
    """Condition number of any motion for the base parameters of a robot with these effects."""
    rows = TorqueRows(robot, effects)
    return condition_numbers(excitation_information(rows, trajectory), structural_base(rows, what="joint torque"))[0]


_NOISE_OF_LIMIT = 0.005
"""Torque noise assumed where none is given, as a fraction of the torque limit."""


def assumed_noise(robot: Robot, channels: int) -> FloatArray:
    """Standard deviation of each channel's torque [N m or N], shape [n_channels].

    Half a percent of the torque limit; of what a drive would need where no limit is described, and 1 N m where no mass is either.
    """
    limits = torque_limits(robot)
    own = np.where(limits > 0.0, _NOISE_OF_LIMIT * limits, 1.0)
    return np.tile(own, channels // robot.n_joints)


def nominal_base(robot: Robot, rows: TorqueRows, base: BaseParameters) -> FloatArray:
    """Base parameters of the robot's own nominal values, shape [r]."""
    return base.values(described_values(robot, rows.space))


_SCALE_FLOOR = 0.05
"""Of the largest nominal value with the same unit: a parameter that is nominally zero need not be known to infinite precision."""


def deviation_scale(robot: Robot, rows: TorqueRows, base: BaseParameters) -> FloatArray:
    """Magnitudes relative deviations refer to, shape [r]."""
    nominal = np.abs(nominal_base(robot, rows, base))
    units = np.array([rows.space.units[i] for i in base.independent])
    floor_of = {unit: _SCALE_FLOOR * max(float(nominal[units == unit].max()), 1e-6) for unit in set(units)}
    return np.maximum(nominal, [floor_of[unit] for unit in units])


WEAKLY_KNOWN = 0.15
"""A parameter expected to deviate by more than this share of its value is named: what the gate allows the torque."""


def relative_deviations(robot: Robot, rows: TorqueRows, base: BaseParameters, deviations: FloatArray) -> FloatArray:
    """Deviations over the magnitude of the described value (at least 5 % of the largest with the same unit), shape [r].

    Not a number where the description gives no value with that unit at all (friction of a plain URDF).
    """
    nominal = np.abs(nominal_base(robot, rows, base))
    units = np.array([rows.space.units[i] for i in base.independent])
    described = np.array([nominal[units == unit].max() > 0.0 for unit in units])
    return np.where(described, deviations / deviation_scale(robot, rows, base), np.nan)
