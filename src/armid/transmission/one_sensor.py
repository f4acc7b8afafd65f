"""Elasticity of a transmission from the link's encoder and the motor's torque alone; [Gaz2014] eqs. 4-5, eq. 4 corrected.

With the motor's position eliminated, tau = tau_J + rho tau_J'' + B qdd + tau_F, rho = B / K: linear in everything but rho,
which is found by Gauss-Newton steps on what the rest cannot explain (variable projection).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.kernels.evaluate import evaluate_rows
from armid.logs.log import Channel, Log
from armid.notes import Note, Severity
from armid.parameters.effects import Effects
from armid.robot.robot import Robot
from armid.rows.elastic import OneSensorRows, four_derivatives
from armid.signals.differentiate import Differentiator, derivatives
from armid.signals.filters import LowPass, low_pass
from armid.transmission.two_encoders import EVEN, STILL

SEEN = 3.0
"""Deviations: a ratio closer to zero than this is no elasticity that was seen."""

_MOTION_SHARE = 2.0
"""The motion passes this many times the cut-off of the rows, which its own filter then leaves alone."""

_CUTOFFS = (0.75, 1.33)
"""Of the cut-off, tried besides it: noise of the fourth derivative and what the model lacks grow with it, elasticity does not, so
that what they move the ratio by is part of its deviation."""

_END_SHARE = 3
"""Of the nine decades by which a filter settles: a thousandth is left of what a fourth derivative makes up beyond either end.
After one period of the cut-off it is a fifth, and B / K came out three times too large where motion began or ended at speed."""

_STEPS = 30
_SETTLED = 1e-8
"""Relative change of the ratio that ends the iteration."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OneSensorJoint:
    """Elasticity of one joint without its motor's encoder.

    Args:
        joint: its name.
        ratio: B / K [s^2]; its root is the period of the rotor on its spring, over 2 pi.
        ratio_deviation: standard deviation: of the noise, and of the choice of the cut-off.
        motor_inertia: B as given [kg m^2]; NaN when it was not.
        stiffness: K = B / ratio [N m/rad]; NaN without B, infinite when no elasticity was seen.
        stiffness_deviation: standard deviation.
        relative_error: of the explained motor torque; `relative_error_rigid` the same with a rigid joint.
        rate: of the recording [Hz].
        notes: what a reader must know.
    """

    joint: str
    ratio: float
    ratio_deviation: float
    motor_inertia: float
    stiffness: float
    stiffness_deviation: float
    relative_error: float
    relative_error_rigid: float
    rate: float = float("inf")
    notes: tuple[Note, ...] = ()

    @property
    def resonance(self) -> float:
        """Of the motor on its spring with the link held [Hz]; infinite when no elasticity was seen."""
        return resonance(self.ratio)

    def as_dict(self) -> dict[str, Any]:
        values = asdict(self)
        del values["rate"]
        return values | {"notes": [note.as_dict() for note in self.notes]}


@dataclass(frozen=True)
class OneSensorSearch:
    """Settings.

    Args:
        cutoff: of the zero-phase low-pass on position and torque [Hz]; the fourth derivative multiplies noise by (2 pi cutoff)^4.
        effects: friction on the motor's side.
        motor_inertia: joint -> motor inertia times gear ratio squared [kg m^2]; turns the ratio into a stiffness.
        block: [s] over which residuals are taken to hang together, for the standard deviation.
    """

    cutoff: float = 6.0
    effects: Effects = field(default_factory=lambda: Effects(viscous=True, coulomb=True, offset=True))
    motor_inertia: Mapping[str, float] = field(default_factory=dict)
    block: float = 0.5

    def fit(self, logs: Sequence[Log], joint: str, robot: Robot) -> OneSensorJoint:
        """One joint from recordings of link position and motor torque.

        Raises:
            UnknownNameError: a channel or joint is missing.
            InputError: the joint stands still, or samples are missing.
        """
        if not logs:
            raise InputError("recordings", "there are none", "link position and motor torque")
        parts = [self._rows(log, joint, robot) for log in logs]
        A, A2, y = (np.concatenate([part[k] for part in parts]) for k in range(3))
        ratio, x = _solved(A, A2, y)
        moved = max(abs(replace(self, cutoff=f * self.cutoff)._ratio(logs, joint, robot) - ratio) for f in _CUTOFFS)
        g = _unexplained(A + ratio * A2, A2 @ x)
        e = y - (A + ratio * A2) @ x
        block = parts[0][3]
        count = len(e) // block
        sums = (g * e)[: count * block].reshape(count, block).sum(axis=1)
        noise = float(np.sqrt(np.sum(sums**2)) / max(float(g @ g), 1e-300))
        deviation = float(np.hypot(noise, moved))
        rigid = _unexplained(A, y)
        size = float(np.linalg.norm(y))
        found = self._judged(
            joint, ratio, deviation, error=float(np.linalg.norm(e)) / size, rigid=float(np.linalg.norm(rigid)) / size
        )
        return replace(found, rate=1.0 / float(np.median(np.diff(logs[0].time))))

    def _ratio(self, logs: Sequence[Log], joint: str, robot: Robot) -> float:
        """B / K alone [s^2]."""
        parts = [self._rows(log, joint, robot) for log in logs]
        A, A2, y = (np.concatenate([part[k] for part in parts]) for k in range(3))
        return _solved(A, A2, y)[0]

    def _judged(self, joint: str, ratio: float, deviation: float, *, error: float, rigid: float) -> OneSensorJoint:
        B = float(self.motor_inertia.get(joint, np.nan))
        notes = []
        K, spread = (B / ratio, B * deviation / ratio**2) if ratio > SEEN * deviation else (np.inf, np.inf)
        if ratio < -SEEN * deviation:
            text = f"B / K comes out as {ratio:.3g} s^2: torque has the wrong sign or is out of step with the position"
            notes.append(Note("impossible-transmission", Severity.ERROR, text, joint))
        elif ratio <= SEEN * deviation:
            bound = max(ratio, 0.0) + 2.0 * deviation  # a ratio below zero is noise, and no reason for a smaller bound
            text = (
                f"B / K cannot be found from this recording ({ratio:.2g} +- {deviation:.2g} s^2, choice of cut-off included): "
                f"no elasticity is seen, it is below {bound:.2g} s^2, a resonance above {resonance(bound):.2g} Hz; "
                "move faster, or record the motors' positions"
            )
            notes.append(Note("rigid-joint", Severity.WARNING, text, joint))
        if np.isnan(B):
            text = "stiffness needs the motor's inertia (--motor-inertia): this motion shows B / K only"
            notes.append(Note("motor-inertia-unknown", Severity.WARNING, text, joint))
        return OneSensorJoint(
            joint=joint,
            ratio=ratio,
            ratio_deviation=deviation,
            motor_inertia=B,
            stiffness=float(K),
            stiffness_deviation=float(spread),
            relative_error=error,
            relative_error_rigid=rigid,
            notes=tuple(notes),
        )

    def _rows(self, log: Log, joint: str, robot: Robot) -> tuple[FloatArray, FloatArray, FloatArray, int]:
        """Rows of the rigid equation, rows of tau_J'', torque, samples per block."""
        for channel in (Channel.POSITION, Channel.MOTOR_TORQUE):
            if channel not in log:
                raise UnknownNameError(f"channel in {log.name}", channel.value, [c.value for c in log.channels])
        if joint not in log.joints:
            raise UnknownNameError("joint", joint, log.joints)
        j = log.joints.index(joint)
        step = _check(log, j)
        x = four_derivatives(log[Channel.POSITION], 1.0 / step, _MOTION_SHARE * self.cutoff, name=log.name)
        n = robot.n_joints
        # One filter on both sides of the equation: friction's corners pass it as the torque does.
        filter = LowPass(1.0 / step, self.cutoff, 6)
        rigid, elastic = (
            low_pass(evaluate_rows(OneSensorRows(robot, self.effects, ratios), x)[:, j], filter)
            for ratios in ((0.0,) * n, tuple(float(k == j) for k in range(n)))
        )
        tau = low_pass(log[Channel.MOTOR_TORQUE][:, j : j + 1], filter)
        # A torque that is stamped early or late by a fraction of a sample lacks its own rate of change.
        late = derivatives(tau, 1.0 / step, Differentiator.CENTRAL_8)[0]
        cut = min(int(filter.settling / _END_SHARE), len(tau) // 4)
        inside = slice(cut, len(tau) - cut)
        second = np.column_stack([elastic - rigid, np.zeros(len(tau))])
        return np.column_stack([rigid, late])[inside], second[inside], tau[inside, 0], max(1, int(self.block / step))


def _solved(A: FloatArray, A2: FloatArray, y: FloatArray) -> tuple[float, FloatArray]:
    """The ratio and the other parameters: Gauss-Newton on |y - (A + rho A2) x| with x eliminated."""
    ratio, x = 0.0, np.zeros(A.shape[1])
    for _ in range(_STEPS):
        whole = A + ratio * A2
        x = _pseudo_solution(whole, y)
        g = _unexplained(whole, A2 @ x)
        step = float(g @ (y - whole @ x)) / max(float(g @ g), 1e-300)
        ratio += step
        if abs(step) <= _SETTLED * abs(ratio):
            break
    return ratio, _pseudo_solution(A + ratio * A2, y)


def _basis(A: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Thin SVD of the columns scaled to unit length, without what is round-off, and the scales."""
    norms = np.linalg.norm(A, axis=0)
    scale = np.where(norms > 0.0, norms, 1.0)
    U, s, Vt = np.linalg.svd(A / scale, full_matrices=False)
    kept = s > 1e-9 * s[0]
    return U[:, kept], s[kept], Vt[kept], scale


def _pseudo_solution(A: FloatArray, y: FloatArray) -> FloatArray:
    U, s, Vt, scale = _basis(A)
    return np.asarray((Vt.T @ ((U.T @ y) / s)) / scale)


def _unexplained(A: FloatArray, y: FloatArray) -> FloatArray:
    """What the columns of A do not explain of y."""
    U = _basis(A)[0]
    return np.asarray(y - U @ (U.T @ y))


def resonance(ratio: float) -> float:
    """Of a rotor on its spring with the link held, 1 / (2 pi sqrt(B / K)) [Hz]."""
    return float(1.0 / (2.0 * np.pi * np.sqrt(ratio))) if ratio > 0.0 else float("inf")


def _check(log: Log, joint: int) -> float:
    """The time step [s]; refuses gaps, holes and a joint at rest."""
    steps = np.diff(log.time)
    if len(steps) < 2 or not (steps > 0.0).all() or float(steps.max()) > EVEN * float(np.median(steps)):
        raise InputError(log.name, "samples are missing or out of order", "give a stretch without gaps")
    for channel, values in (
        (Channel.POSITION, log[Channel.POSITION]),
        (Channel.MOTOR_TORQUE, log[Channel.MOTOR_TORQUE]),
    ):
        if not np.isfinite(values).all():
            raise InputError(log.name, f"{channel.value} holds values that are not finite", "cut them out")
    if float(np.ptp(log[Channel.POSITION][:, joint])) < STILL:
        raise InputError(f"{log.name}: {log.joints[joint]}", "the link does not move", "choose another joint")
    return float(np.median(steps))
