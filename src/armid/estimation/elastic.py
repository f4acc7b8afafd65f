"""Stiffness and motor inertia of elastic transmissions, where both sides are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.experiments.elastic import check_long_enough
from armid.experiments.torque import TorqueRows
from armid.kernels.evaluate import evaluate_rows
from armid.logs.conditioning.differentiate import derivatives
from armid.logs.conditioning.filters import LowPass, low_pass
from armid.logs.conditioning.settings import Differentiator
from armid.logs.log import Channel, Log
from armid.notes import Note, Severity
from armid.robot.robot import Robot

STILL = 1e-3
"""[rad] A joint that travels less than this is at rest."""

NOTICED_LAG = 0.25
"""Samples by which the two encoders may be out of step without a word."""

LARGEST_LAG = 2.0
"""Samples: beyond this they were not recorded together."""


@dataclass(frozen=True, eq=False)
class Transmission:
    """The drive of one elastic joint.

    Args:
        joint: its name.
        stiffness: [N m/rad].
        rotor_inertia: motor inertia times gear ratio squared [kg m^2].
        viscous, coulomb: friction on the motor's side; viscous friction is only known as far as the encoders are in step.
        offset: constant torque; the encoders' zero difference times the stiffness is in it.
        lag: of the link's encoder behind the motor's [s] that would explain the viscous term by itself. It acts as
            viscous friction -K lag, so a positive one is a true lag (friction is not negative) and leaves K and B alone.
        standard_deviations: of stiffness, rotor inertia, viscous, Coulomb, offset, shape [5].
        relative_error: of the explained motor torque.
        notes: what a reader must know.
    """

    joint: str
    stiffness: float
    rotor_inertia: float
    viscous: float
    coulomb: float
    offset: float
    lag: float
    standard_deviations: FloatArray
    relative_error: float
    notes: tuple[Note, ...] = ()


Part = tuple[FloatArray, FloatArray, FloatArray, int]
"""Rows, the same projected on instruments (or as they are), torque, samples per block."""


@dataclass(frozen=True, slots=True)
class TransmissionSearch:
    """Least squares of the motor equation B thetadd + K (theta - q) + F(thetad) = tau, [Gaz2014] eq. 2.

    Args:
        cutoff: of the zero-phase low-pass on everything [Hz].
        trim: left out at both ends [s].
        block: [s] over which residuals are taken to hang together, for the standard deviations.
    """

    cutoff: float = 10.0
    trim: float = 0.3
    block: float = 0.5

    def fit(self, logs: Sequence[Log], joint: str, robot: Robot | None = None) -> Transmission:
        """One joint from recordings that hold motor position, link position and motor torque.

        The deflection is a small difference of two encoders, with errors of its own (gear errors above all) that pull plain
        least squares towards too soft a joint. With a robot, the columns of its rigid model along the motion serve as
        instruments: they go with the torque but not with the encoders' errors.

        Args:
            logs: of one arm.
            joint: name.
            robot: kinematics, for the instruments; joints in the order of the logs' columns.

        Raises:
            UnknownNameError: a channel or joint is missing.
            InputError: the joint stands still, or its two encoders are not synchronised.
        """
        parts = [self.rows(log, joint) for log in logs]
        if robot is not None:
            parts = [
                projected(part, instruments(robot, log, joint, self)) for part, log in zip(parts, logs, strict=True)
            ]
        A, H, y = (np.concatenate([part[k] for part in parts]) for k in range(3))
        norms = np.linalg.norm(H, axis=0)
        # Normal equations of two-stage least squares: the projected columns H carry the weight, the measured ones the model.
        x = np.linalg.solve((H / norms).T @ (A / norms), (H / norms).T @ y) / norms
        covariance = self.covariance(parts, x, norms)
        deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        relative = float(np.linalg.norm(y - A @ x) / np.linalg.norm(y))
        lag = -float(x[2] / x[0])
        step = float(np.median(np.diff(logs[0].time)))
        # A stiffness nobody knows turns any friction into any lag: then the encoders are not to blame.
        known = x[0] > 3.0 * deviation[0]
        notes = [*(synchronisation(joint, lag, step) if known else []), *findings(joint, x, deviation)]
        return Transmission(
            joint,
            float(x[0]),
            float(x[1]),
            float(x[2]),
            float(x[3]),
            float(x[4]),
            lag,
            deviation,
            relative,
            tuple(notes),
        )

    def rows(self, log: Log, joint: str) -> Part:
        """Rows, torque and samples per block of one recording."""
        for channel in (Channel.POSITION, Channel.MOTOR_POSITION, Channel.MOTOR_TORQUE):
            if channel not in log:
                raise UnknownNameError(f"channel in {log.name}", channel.value, [c.value for c in log.channels])
        if joint not in log.joints:
            raise UnknownNameError("joint", joint, log.joints)
        j = log.joints.index(joint)
        rate = 1.0 / float(np.median(np.diff(log.time)))
        filter = LowPass(rate, self.cutoff, 4)
        check_long_enough(log.name, len(log), filter)
        q, theta, tau = (
            low_pass(log[c][:, j : j + 1], filter)[:, 0]
            for c in (Channel.POSITION, Channel.MOTOR_POSITION, Channel.MOTOR_TORQUE)
        )
        if np.ptp(q) < STILL:
            raise InputError(
                f"{log.name}: {joint}", "the link does not move, or has no encoder", "choose another joint"
            )
        thetad, thetadd = (x[:, 0] for x in derivatives(theta[:, np.newaxis], rate, Differentiator.CENTRAL_8))
        A = np.column_stack([theta - q, thetadd, thetad, np.sign(thetad), np.ones_like(q)])
        cut = int(self.trim * rate)
        inside = slice(cut, len(q) - cut)
        return A[inside], A[inside], tau[inside], max(1, int(self.block * rate))

    def covariance(self, parts: Sequence[Part], x: FloatArray, norms: FloatArray) -> FloatArray:
        """B (sum of block scores) B: residuals of elastic joints are correlated over a fraction of a second."""
        G = sum((H / norms).T @ (A / norms) for A, H, *_ in parts)
        meat = np.zeros((len(x), len(x)))
        for A, H, y, block in parts:
            scores = (H / norms) * (y - A @ x)[:, np.newaxis]
            count = len(scores) // block
            sums = scores[: count * block].reshape(count, block, -1).sum(axis=1)
            meat += sums.T @ sums
        B = np.linalg.inv(np.asarray(G))
        return B @ meat @ B.T / np.outer(norms, norms)


def instruments(robot: Robot, log: Log, joint: str, settings: TransmissionSearch) -> FloatArray:
    """Columns of the rigid model of one joint along the motors' motion, shape [n_samples, n_columns]."""
    rate = 1.0 / float(np.median(np.diff(log.time)))
    theta = log[Channel.MOTOR_POSITION]
    still = np.ptp(log[Channel.POSITION], axis=0) < STILL
    # Joints without a link encoder, or at rest, stay where they are on average.
    q = low_pass(np.where(still, theta.mean(axis=0), theta), LowPass(rate, settings.cutoff, 4))
    qd, qdd = derivatives(q, rate, Differentiator.CENTRAL_8)
    W = evaluate_rows(TorqueRows(robot), np.hstack([q, qd, qdd]))[:, log.joints.index(joint)]
    cut = int(settings.trim * rate)
    inside = W[cut : len(W) - cut]
    return inside[:, np.linalg.norm(inside, axis=0) > 0.0]


def projected(part: Part, Z: FloatArray) -> Part:
    """The rows with their first column, the deflection, replaced by what the instruments and the other columns explain of it."""
    A, _, y, block = part
    every = np.column_stack([Z, A[:, 1:]])
    U, s, _ = np.linalg.svd(every / np.linalg.norm(every, axis=0), full_matrices=False)
    U = U[:, s > 1e-8 * s[0]]
    return A, np.column_stack([U @ (U.T @ A[:, 0]), A[:, 1:]]), y, block


def synchronisation(joint: str, lag: float, step: float) -> list[Note]:
    """Whether the two encoders were read at the same time.

    Raises:
        InputError: they were not.
    """
    if abs(lag) > LARGEST_LAG * step:
        raise InputError(
            f"joint {joint!r}",
            f"motor and link encoder are not synchronised: they differ with velocity as if {1e3 * abs(lag):.3g} ms apart",
            "record both with one clock, or align them first",
        )
    if lag > NOTICED_LAG * step:
        text = f"the link's encoder is late by {1e3 * lag:.2g} ms or more; stiffness and inertia stand, viscous friction does not"
        return [Note("encoder-lag", Severity.WARNING, text, joint)]
    return []


def findings(joint: str, x: FloatArray, deviation: FloatArray) -> list[Note]:
    notes = []
    for k, name in ((0, "stiffness"), (1, "rotor inertia")):
        if x[k] <= 0.0:
            text = (
                f"{name} comes out as {x[k]:.3g}: torque or one encoder has the wrong sign, or the motion is too slow"
            )
            notes.append(Note("impossible-transmission", Severity.ERROR, text, joint))
        elif deviation[k] > 0.2 * x[k]:
            text = f"{name} {x[k]:.3g} is known to {100 * deviation[k] / x[k]:.0f} % only: accelerate more"
            notes.append(Note("weak-transmission", Severity.WARNING, text, joint))
    return notes
