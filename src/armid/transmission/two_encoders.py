"""Stiffness and motor inertia of elastic transmissions, where both sides are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.identifiability.structure import structural_rows
from armid.kernels.evaluate import evaluate_rows
from armid.logs.log import Channel, Log
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.rows.elastic import check_long_enough
from armid.rows.gravity import GravityRows
from armid.rows.torque import TorqueRows
from armid.signals.differentiate import Differentiator, derivatives
from armid.signals.filters import LowPass, low_pass

STILL = 1e-3
"""[rad] A joint that travels less than this is at rest."""

_NOTICED_LAG = 0.25
"""Samples by which the two encoders may be out of step without a word."""

_LARGEST_LAG = 2.0
"""Samples: beyond this they were not recorded together."""

_SAME_SCALE = 2.0
"""Factor by which motor and link position may run apart; soft springs come near it, gear ratios and signs are beyond."""

EVEN = 1.5
"""Longest over typical time step: beyond this samples are missing, and no filter may run across the gap."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ElasticJoint:
    """The drive of one elastic joint, with encoders on both of its sides.

    Args:
        joint: its name.
        stiffness: [N m/rad].
        rotor_inertia: motor inertia times gear ratio squared [kg m^2].
        viscous, coulomb: friction on the motor's side; viscous friction is only known as far as the encoders are in step.
        offset: constant torque; the encoders' zero difference times the stiffness is in it.
        lag: of the link's encoder behind the motor's [s] that would explain the viscous term by itself. It acts as
            viscous friction -K lag, so a positive one is a true lag (friction is not negative) and leaves K and B alone.
        standard_deviations: of stiffness, rotor inertia, viscous, Coulomb, offset, shape [5]; zero for what was given.
        relative_error: of the explained motor torque.
        load_deflection: root mean square of the deflection that goes with the load and with nothing else in the equation
            [rad]: what stiffness is found from. NaN without a robot, whose model says what the load is.
        encoder_error: root mean square of the deflection that the load does not explain [rad].
        rate: of the recording [Hz].
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
    load_deflection: float = float("nan")
    encoder_error: float = float("nan")
    rate: float = float("inf")
    notes: tuple[Note, ...] = ()

    @property
    def resonance(self) -> float:
        """Of the motor on its spring with the link held, sqrt(K / B) / (2 pi) [Hz]; NaN when there is none."""
        ratio = self.stiffness / self.rotor_inertia if self.rotor_inertia > 0.0 else -1.0
        return float(np.sqrt(ratio) / (2.0 * np.pi)) if ratio > 0.0 else float("nan")

    def as_dict(self) -> dict[str, Any]:
        return {
            "joint": self.joint,
            "stiffness": self.stiffness,
            "rotor_inertia": self.rotor_inertia,
            "viscous": self.viscous,
            "coulomb": self.coulomb,
            "offset": self.offset,
            "encoder_lag": self.lag,
            "standard_deviations": dict(zip(_NAMES, self.standard_deviations.tolist(), strict=True)),
            "relative_error": self.relative_error,
            "load_deflection": self.load_deflection,
            "encoder_error": self.encoder_error,
            "notes": [note.as_dict() for note in self.notes],
        }


_NAMES = ("stiffness", "rotor_inertia", "viscous", "coulomb", "offset")
"""What the motor equation holds, in the order of its columns."""

Part = tuple[FloatArray, FloatArray, FloatArray, int]
"""Rows, the same projected on instruments (or as they are), torque, samples per block."""


@dataclass(frozen=True, kw_only=True)
class TransmissionSearch:
    """Least squares of the motor equation B thetadd + K (theta - q) + F(thetad) = tau, [Gaz2014] eq. 2.

    Args:
        cutoff: of the zero-phase low-pass on everything [Hz].
        trim: left out at both ends [s].
        block: [s] over which residuals are taken to hang together, for the standard deviations.
        motor_inertia: joint -> motor inertia times gear ratio squared [kg m^2], where it is known from the motor's data sheet;
            then it is not fitted. Where gravity does not load a joint, stiffness needs it.
        eccentric: whether the encoders may be off centre, an error once per turn of the joint; None: where gravity does not
            load the joint. Elsewhere gravity goes with the position too and cannot be told from it.
    """

    cutoff: float = 10.0
    trim: float = 0.3
    block: float = 0.5
    motor_inertia: Mapping[str, float] = field(default_factory=dict)
    eccentric: bool | None = None

    def fit(self, logs: Sequence[Log], joint: str, robot: Robot | None = None) -> ElasticJoint:
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
            InputError: the joint stands still, its encoders do not belong together, or values are missing.
        """
        if not logs:
            raise InputError("recordings", "there are none", "motor and link position, and motor torque")
        unloaded = robot is not None and not gravity_loads(
            robot, logs[0].joints.index(joint) if joint in logs[0].joints else 0
        )
        eccentric = unloaded if self.eccentric is None else self.eccentric
        known = self.motor_inertia.get(joint)
        parts = [self._rows(log, joint, known, eccentric=eccentric) for log in logs]
        strength = [(float("nan"), float("nan"))]
        if robot is not None:
            columns = [_instruments(robot, log, joint, self) for log in logs]
            strength = [_strengths(part, Z) for part, Z in zip(parts, columns, strict=True)]
            parts = [_projected(part, Z) for part, Z in zip(parts, columns, strict=True)]
        x, deviation, relative = self._solved(parts)
        x, deviation = (
            (np.insert(v, 1, w) for v, w in ((x, known), (deviation, 0.0))) if known is not None else (x, deviation)
        )
        step = float(np.median(np.diff(logs[0].time)))
        lag = -float(x[2] / x[0])
        seen, error = (float(np.sqrt(np.mean(np.square(values)))) for values in zip(*strength, strict=True))
        # A stiffness nobody knows turns any friction into any lag: then the encoders are not to blame.
        clear = x[0] > 3.0 * deviation[0]
        notes = [*(_synchronisation(joint, lag, step) if clear else []), *_findings(joint, x, deviation, seen, error)]
        if unloaded and known is None:
            notes.append(_unloaded_note(joint))
        K, B, viscous, coulomb, offset = (float(v) for v in x[: len(_NAMES)])
        return ElasticJoint(
            joint=joint,
            stiffness=K,
            rotor_inertia=B,
            viscous=viscous,
            coulomb=coulomb,
            offset=offset,
            lag=lag,
            standard_deviations=deviation[: len(_NAMES)],
            relative_error=relative,
            load_deflection=seen,
            encoder_error=error,
            rate=1.0 / step,
            notes=tuple(notes),
        )

    def _solved(self, parts: Sequence[Part]) -> tuple[FloatArray, FloatArray, float]:
        """Values, standard deviations, relative error.

        Normal equations of two-stage least squares: the projected columns H carry the weight, the measured ones the model.
        """
        A, H, y = (np.concatenate([part[k] for part in parts]) for k in range(3))
        norms = np.linalg.norm(H, axis=0)
        x = np.linalg.solve((H / norms).T @ (A / norms), (H / norms).T @ y) / norms
        deviation = np.sqrt(np.maximum(np.diag(self._covariance(parts, x, norms)), 0.0))
        return x, deviation, float(np.linalg.norm(y - A @ x) / np.linalg.norm(y))

    def _rows(self, log: Log, joint: str, known: float | None = None, *, eccentric: bool = False) -> Part:
        """Rows, torque (less that of a known motor inertia) and samples per block of one recording."""
        for channel in (Channel.POSITION, Channel.MOTOR_POSITION, Channel.MOTOR_TORQUE):
            if channel not in log:
                raise UnknownNameError(f"channel in {log.name}", channel.value, [c.value for c in log.channels])
        if joint not in log.joints:
            raise UnknownNameError("joint", joint, log.joints)
        j = log.joints.index(joint)
        _check_values(log, j)
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
        _check_scale(log.name, joint, q, theta)
        thetad, thetadd = (x[:, 0] for x in derivatives(theta[:, np.newaxis], rate, Differentiator.CENTRAL_8))
        columns = [theta - q, thetadd, thetad, np.sign(thetad), np.ones_like(q)]
        if eccentric:
            columns += [np.sin(theta), np.cos(theta)]
        if known is not None:
            del columns[1]
            tau = tau - known * thetadd
        cut = int(self.trim * rate)
        inside = slice(cut, len(q) - cut)
        A = np.column_stack(columns)[inside]
        return A, A, tau[inside], max(1, int(self.block * rate))

    def _covariance(self, parts: Sequence[Part], x: FloatArray, norms: FloatArray) -> FloatArray:
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


def _instruments(robot: Robot, log: Log, joint: str, settings: TransmissionSearch) -> FloatArray:
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


def _projected(part: Part, Z: FloatArray) -> Part:
    """The rows with their first column, the deflection, replaced by what the instruments and the other columns explain of it."""
    A, _, y, block = part
    U = _span(np.column_stack([Z, A[:, 1:]]))
    return A, np.column_stack([U @ (U.T @ A[:, 0]), A[:, 1:]]), y, block


def _strengths(part: Part, Z: FloatArray) -> tuple[float, float]:
    """Root mean square of the deflection that only the load explains, and of what it does not explain [rad]."""
    A = part[0]
    U, others = _span(np.column_stack([Z, A[:, 1:]])), _span(A[:, 1:])
    load = U @ (U.T @ A[:, 0])
    error = A[:, 0] - load
    only = load - others @ (others.T @ load)
    return float(np.sqrt(np.mean(only**2))), float(np.sqrt(np.mean(error**2)))


def _span(columns: FloatArray) -> FloatArray:
    """Orthonormal basis of the columns' span."""
    U, s, _ = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), full_matrices=False)
    return np.asarray(U[:, s > 1e-8 * s[0]])


def gravity_loads(robot: Robot, joint: int) -> bool:
    """Whether gravity can load a joint at all: not a vertical axis."""
    rows = structural_rows(GravityRows(robot), count=30)
    return bool(np.abs(rows[:, joint]).max() > 1e-9 * max(float(np.abs(rows).max()), 1e-300))


def _check_values(log: Log, joint: int) -> None:
    """Refuses gaps and values that are no measurements: a filter would spread them."""
    steps = np.diff(log.time)
    if len(steps) < 2 or not (steps > 0.0).all() or float(steps.max()) > EVEN * float(np.median(steps)):
        longest = float(steps.max()) if len(steps) else 0.0
        raise InputError(
            log.name,
            f"samples are missing or out of order (longest step {longest:.3g} s)",
            "give a stretch without gaps",
        )
    for channel in (Channel.POSITION, Channel.MOTOR_POSITION, Channel.MOTOR_TORQUE):
        bad = int((~np.isfinite(log[channel][:, joint])).sum())
        if bad:
            raise InputError(log.name, f"{bad} values of {channel.value} are not finite", "cut them out")


def _check_scale(name: str, joint: str, q: FloatArray, theta: FloatArray) -> None:
    """Refuses a motor position that is not scaled to the joint, or runs the other way."""
    slope = float(np.polyfit(q, theta, 1)[0])
    if not 1.0 / _SAME_SCALE < slope < _SAME_SCALE:
        raise InputError(
            f"{name}: {joint}",
            f"the motor's position runs {slope:.3g} times as far as the link's",
            "scale it by the gear ratio (and its sign) in the mapping; both encoders are in joint coordinates",
        )


def _unloaded_note(joint: str) -> Note:
    text = (
        "gravity does not load it: its torque is all acceleration, so motor and link inertia go together and stiffness cannot "
        "be told from them; give the motor's inertia (--motor-inertia)"
    )
    return Note("unloaded-joint", Severity.WARNING, text, joint)


def _synchronisation(joint: str, lag: float, step: float) -> list[Note]:
    """Whether the two encoders were read at the same time.

    Raises:
        InputError: they were not.
    """
    if abs(lag) > _LARGEST_LAG * step:
        raise InputError(
            f"joint {joint!r}",
            f"motor and link encoder are not synchronised: they differ with velocity as if {1e3 * abs(lag):.3g} ms apart",
            "record both with one clock, or align them first",
        )
    if lag > _NOTICED_LAG * step:
        text = f"the link's encoder is late by {1e3 * lag:.2g} ms or more; stiffness and inertia stand, viscous friction does not"
        return [Note("encoder-lag", Severity.WARNING, text, joint)]
    return []


def _findings(joint: str, x: FloatArray, deviation: FloatArray, seen: float, error: float) -> list[Note]:
    """What speaks against the values."""
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
    if seen < error:
        text = (
            f"of the deflection {seen:.2g} rad go with the load and with nothing else, {error:.2g} rad are the encoders' errors: "
            "load it more, or take better encoders"
        )
        notes.append(Note("weak-deflection", Severity.WARNING, text, joint))
    return notes
