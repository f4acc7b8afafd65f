"""What a description says about an arm: its own parameters, in the order of any vector of them, and what is odd about it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from armid.arrays import FloatArray
from armid.notes import Note, Severity
from armid.parameters.inertial import N_INERTIAL
from armid.parameters.space import Parameter
from armid.robot.robot import Robot


def described_values(robot: Robot, parameters: Iterable[Parameter]) -> FloatArray:
    """The description's own standard parameters, shape [p]; zero where it says nothing (a payload, shapes of friction).

    A description has one friction per drive. It stands on the joint's side, and on the motor's only where the vector has
    no friction of the joint's, so that it is never counted twice.

    Args:
        robot: the arm.
        parameters: a `ParameterSpace`, or any choice of parameters in their order; of stored names, `named_parameter` gives
            them.
    """
    wanted = tuple(parameters)
    held = {(p.kind, p.body, p.quantity) for p in wanted}
    inertial = robot.inertial.reshape(robot.n_joints, N_INERTIAL)
    values = np.zeros(len(wanted))
    for i, p in enumerate(wanted):
        if p.of_link and p.component is not None:
            values[i] = inertial[p.body, p.component]
        elif p.of_joint and p.drive_quantity is not None:
            counted = p.is_motor_side and (p.kind, p.body, p.drive_quantity) in held
            values[i] = 0.0 if counted else getattr(robot.joints[p.body].drive, p.drive_quantity)
    return values


_ALWAYS_TOLD = ("angle-rounded", "tip-chosen")
"""Notes of a description that are no warnings and still decide what is identified, and of which arm."""

_SAID_WHERE_USED = ("limits-missing", "limits-empty")
"""Warnings that whoever needs the limits says with the values assumed (`limit-assumed`)."""


def description_notes(robot: Robot) -> tuple[Note, ...]:
    """What the reader of the file found and whoever uses the arm must know: warnings, exact angles, the tip that was chosen."""
    warned = {n for n in robot.notes if n.severity is not Severity.INFO and n.code not in _SAID_WHERE_USED}
    return tuple(n for n in robot.notes if n in warned or n.code in _ALWAYS_TOLD)
