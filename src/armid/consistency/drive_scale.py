"""How far friction and offsets of a drive may be from their prior: in proportion to the torque its joint shows.

A constant of some newton metres would crush the friction of a large robot and leave that of a small one free. A joint's own
torque has the right size whatever the arm and the units.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.prior import Prior, nominal_prior, scaled_to_data
from armid.information.information import Information
from armid.robot.robot import Robot

_OTHERS = ("rotor_inertia", "motor_rotor_inertia")
"""Quantities of a drive whose prior follows from the bodies."""


def prior_of_rows(robot: Robot, rows: Information) -> Prior:
    """The description's bodies, or stand-ins scaled to the torque, and drives doubted in proportion to it.

    Whatever is estimated together with bodies must be pulled by this one prior: what the data leave open otherwise settles
    differently from one estimate to the next.

    Args:
        robot: as the rows have it.
        rows: in units of their noise.
    """
    return with_drive_scales(scaled_to_data(nominal_prior(robot, rows.parameters), rows), rows)


def with_drive_scales(prior: Prior, information: Information) -> Prior:
    """The prior with one unit of doubt of every friction and offset: what would make up all of its joint's torque.

    Args:
        prior: as the description has it.
        information: rows over its parameters; units of noise may be left in, for only ratios within a channel count. A
            parameter that no row contains keeps its scale.
    """
    largest = torque_sizes(information)
    scale = np.array(prior.scale)
    for k, parameter in enumerate(prior.parameters):
        if parameter.of_joint and parameter.quantity not in _OTHERS and largest[k] > 0.0:
            scale[k] = largest[k]
    return replace(prior, scale=scale)


def torque_sizes(information: Information) -> FloatArray:
    """For every parameter the value at which its own torque is as large as the measured one, shape [p]; zero where none has it.

    Root mean squares of a channel's measured values over those of the parameter's column, the largest over the channels.
    """
    out = np.zeros(information.n_parameters)
    for channel in information.pooled().channels:
        size = float(np.linalg.norm(channel.factor[:, -1]))
        columns = np.linalg.norm(channel.R, axis=0)
        seen = columns > 1e-12 * columns.max(initial=0.0)
        out[channel.columns[seen]] = np.maximum(out[channel.columns[seen]], size / columns[seen])
    return out
