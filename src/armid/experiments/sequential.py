"""Stages of a sequential identification: which joint's torque, what moved, what was locked; [Khosla1985] sec. 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only, samples
from armid.errors import InputError
from armid.logs.log import Channel, Log
from armid.logs.samples import Samples
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot

LOCKED_TRAVEL = 1e-3
"""[rad or m] A joint on its brake moves less than this: the give of a brake and the noise of an encoder together."""


class ErrorStructure(StrEnum):
    """Which motion the model's torque is computed from; [Khosla1985] fig. 1. The estimators are the same."""

    INPUT = "input-error"
    """The measured motion: the model in series behind the robot, for measurements."""
    OUTPUT = "output-error"
    """The commanded motion, given to robot and model alike: for simulation studies, where both follow it exactly."""


@dataclass(frozen=True, eq=False)
class Stage:
    """The data of one stage.

    Args:
        joint: whose torque is used.
        inputs: (q, qd, qdd) of all joints side by side, shape [n_samples, 3 n_joints].
        torque: of that joint [N m or N], shape [n_samples].
        locked: names of joints that stood still.
    """

    joint: str
    inputs: FloatArray
    torque: FloatArray
    locked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", read_only(self.inputs))
        object.__setattr__(self, "torque", read_only(self.torque))


def moving_stages(robot: Robot, inputs: npt.ArrayLike, torque: npt.ArrayLike) -> tuple[Stage, ...]:
    """One motion of all joints, looked at joint by joint from the tip (the on-line procedure).

    Args:
        robot: the arm.
        inputs: shape [n_samples, 3 n_joints].
        torque: of every joint, shape [n_samples, n_joints].
    """
    x = samples("inputs", inputs, 3 * robot.n_joints)
    tau = samples("torque", torque, robot.n_joints)
    return tuple(Stage(robot.joint_names[i], x, tau[:, i]) for i in reversed(range(robot.n_joints)))


def locked_stage(
    robot: Robot, joint: str, inputs: npt.ArrayLike, torque: npt.ArrayLike, locked: Sequence[str]
) -> Stage:
    """A stage whose locked joints are checked to have stood still.

    Raises:
        InputError: a joint that should be locked moved.
    """
    n = robot.n_joints
    x = samples("inputs", inputs, 3 * n)
    tau = samples("torque", torque, n)
    for name in locked:
        i = robot.joint_index(name)
        travel = float(np.ptp(x[:, i]))
        if travel > LOCKED_TRAVEL:
            raise InputError(
                f"stage of {joint!r}", f"joint {name!r} should be locked but moved by {travel:.3g}", "apply its brake"
            )
    return Stage(joint, x, tau[:, robot.joint_index(joint)], tuple(locked))


def stage_of_samples(samples: Samples, robot: Robot, joint: str, locked: Sequence[str] = ()) -> Stage:
    """A stage of conditioned measurements: the input-error structure."""
    return locked_stage(robot, joint, samples.inputs(), samples.torque(TorqueSide.LINK), locked)


def commanded_inputs(log: Log, rate: float) -> FloatArray:
    """(q, qd, qdd) of the commanded motion, for the output-error structure, shape [n_samples, 3 n_joints].

    Raises:
        UnknownNameError: the log holds no commanded position.
    """
    from armid.logs.conditioning.differentiate import derivatives
    from armid.logs.conditioning.settings import Differentiator

    q = log[Channel.COMMANDED_POSITION]
    qd, qdd = derivatives(q, rate, Differentiator.CENTRAL_8)
    return np.hstack([q, qd, qdd])
