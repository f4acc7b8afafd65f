"""The arm that an observer knows: its model, which torque it predicts, and how well."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.identification.inputs import is_result, result_of, robot_of
from armid.identification.result import Result
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.logs.log import MEASURED_TORQUES, Channel, Log, matched
from armid.notes import Note, Severity
from armid.observation.levels import Features
from armid.observation.residuals import ObservedMotion, Residuals, observed_motion
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows

_MOTOR_FIRST = (Channel.MOTOR_TORQUE, Channel.CURRENT, Channel.COMMANDED_TORQUE, Channel.LINK_TORQUE)


@dataclass(frozen=True, eq=False)
class ObservedArm:
    """An identified arm, or a robot taken at its word.

    Args:
        robot: the model.
        result: it comes from, if any.
    """

    robot: Robot
    result: Result | None = None

    @property
    def side(self) -> TorqueSide:
        """Where the torque acts that the model predicts."""
        return TorqueSide.LINK if self.result is None else self.result.effects.torques

    @property
    def gains(self) -> FloatArray | None:
        """Torque per ampere, shape [n_joints]; None when the result does not know."""
        if self.result is None or not self.result.gains:
            return None
        return np.array([self.result.gains[name][0] for name in self.robot.joint_names])

    def motion(self, log: Log) -> ObservedMotion:
        """Positions and the torque that the model predicts, joints in the robot's order.

        Raises:
            InputError: no torque, currents without drive gains, or a result of two torques at once.
        """
        ordered = matched(log, self.robot)
        if self.side not in (TorqueSide.LINK, TorqueSide.MOTOR):
            raise InputError("result", f"identified from {self.side.value} torques", "an observer takes one side's")
        order = MEASURED_TORQUES if self.side is TorqueSide.LINK else _MOTOR_FIRST
        there = [channel for channel in order if channel in ordered.channels]
        if not there:
            raise InputError(log.name, "no torque", "an observer needs measured torque of every joint")
        torque = ordered.channels[there[0]]
        if there[0] is Channel.CURRENT:
            if self.gains is None:
                raise InputError(
                    log.name, "motor currents, but no drive gains are known", "record torque, or identify gains"
                )
            torque = torque * self.gains
        return observed_motion(ordered.time, ordered.channels[Channel.POSITION], torque)

    @cached_property
    def doubt(self) -> tuple[Restricted, FloatArray] | None:
        """Rows of the base parameters, and a factor F of their covariance F F^T; None for a robot taken at its word."""
        if self.result is None:
            return None
        rows = TorqueRows(self.robot, self.result.effects)
        values, vectors = np.linalg.eigh(self.result.estimate.covariance)
        source = Restricted(rows, tuple(int(k) for k in self.result.estimate.base.independent))
        return source, vectors * np.sqrt(np.maximum(values, 0.0))

    def features(self, motion: ObservedMotion, found: Residuals) -> Features:
        """What the spread of the residual depends on."""
        deviation = np.zeros_like(motion.q)
        if self.doubt is not None:
            source, factor = self.doubt
            A = evaluate_rows(source, np.hstack([motion.q, motion.qd, motion.qdd]))[:, : self.robot.n_joints]
            deviation = np.linalg.norm(A @ factor, axis=2)
        return Features(
            speed=np.abs(motion.qd), acceleration=np.abs(motion.qdd), deviation=deviation, reversal=found.reversal
        )

    def notes(self) -> tuple[Note, ...]:
        """What a reader must know of the model."""
        if self.result is None:
            return (Note("no-covariance", Severity.INFO, "a robot taken at its word has no covariance"),)
        shapes = ", ".join(self.result.effects.shapes)
        text = f"friction shapes {shapes} are not part of the observer's model; levels account for it"
        return (Note("shapes-left-out", Severity.INFO, text),) if shapes else ()


def observed_arm(arm: str | Path | Result | Robot, *, force: bool = False) -> ObservedArm:
    """The arm from a result (or its folder) or a robot.

    Raises:
        UntrustedError: the result is untrusted, and not forced.
    """
    if not is_result(arm):
        return ObservedArm(robot_of(str(arm) if isinstance(arm, Path) else arm))  # type: ignore[arg-type]
    result = result_of(arm)  # type: ignore[arg-type]
    if not force:
        result.raise_if_untrusted()
    return ObservedArm(result.robot, result)
