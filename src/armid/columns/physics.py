"""What the numbers of a column say: clock, derivative, range, weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.dynamics import inverse_dynamics
from armid.logs.units import ANGLE, TIME
from armid.robot.robot import JointKind, Robot

_RATE_BAND = (20.0, 20_000.0)
"""[Hz] of robot recordings."""

RATIO_MARGIN = 1.1
"""A derivative within this factor of what a unit makes it settles the unit: units are at least 1.7 times apart."""

_MOVES = 1e-3
"""[rad or m] of travel below which a joint says nothing about units."""

_EXPLAINED = 0.6
"""Share of a torque's variance that weight, inertia and friction must explain before their scale is believed."""

_WEIGHS = 0.1
"""Share of it that weight and inertia alone must carry."""

_SMOOTHING = 0.05
"""[s] over which positions are averaged before they are differentiated."""

_COMPARED = 2000
"""Rows of a comparison."""

_UNTIMED_STEP = 0.01
_UNTIMED_WIDTH = 5
"""[s] and rows: of a table without a clock; only the sign of velocity is taken from it."""

_SIGN_WIDTH = 0.02
"""[rad/s or m/s] over which friction turns around."""


@dataclass(frozen=True, slots=True)
class UnitFinding:
    """A unit that the numbers ask for, and why; the unit is empty when they do not decide."""

    unit: str
    why: str


def is_clock(values: FloatArray) -> bool:
    """Whether a column rises at almost constant steps."""
    steps = np.diff(values[np.isfinite(values)])
    if len(steps) < 10 or not np.median(steps) > 0.0:
        return False
    return bool(np.mean(steps > 0.0) > 0.99 and np.mean(np.abs(steps / np.median(steps) - 1.0) < 0.5) > 0.9)


def clock_unit(values: FloatArray) -> UnitFinding:
    """The unit in which the steps are those of a robot's recording; empty when two would do."""
    step = float(np.median(np.diff(values[np.isfinite(values)])))
    fitting = [u for u in ("s", "ms", "us", "ns") if _RATE_BAND[0] <= 1.0 / (step * TIME[u]) <= _RATE_BAND[1]]
    if len(fitting) == 1:
        return UnitFinding(fitting[0], f"a step of {step:g} {fitting[0]} is {1.0 / (step * TIME[fitting[0]]):.4g} Hz")
    return UnitFinding("", f"a step of {step:g} fits {' and '.join(fitting) or 'no unit'}")


def position_unit(values: FloatArray, robot: Robot, joint: int) -> UnitFinding:
    """The unit in which a joint stays within its range; empty when more than one would do."""
    kind, limits = robot.joints[joint].kind, robot.joints[joint].limits
    candidates = ("rad", "deg") if kind is JointKind.REVOLUTE else ("m", "mm")
    reach = float(np.nanmax(np.abs(values), initial=0.0))
    most = max(abs(limits.lower), abs(limits.upper))
    most = most if np.isfinite(most) else (2.0 * np.pi if kind is JointKind.REVOLUTE else 3.0)
    fitting = [u for u in candidates if reach * ANGLE[u] <= 1.05 * most]
    if len(fitting) == 1 and fitting[0] == candidates[1]:
        return UnitFinding(
            fitting[0], f"reaches {reach:.4g}: {robot.joint_names[joint]} goes to {most:.3g} {candidates[0]}"
        )
    return UnitFinding("", f"reaches {reach:.4g}, possible in {' and '.join(fitting) or 'neither unit'}")


def derivative_ratio(x: FloatArray, v: FloatArray, time: FloatArray) -> float | None:
    """By what v must be multiplied to be the derivative of x; None when it does not follow it.

    Over five samples, so that quantisation and repeated rows do not hide it.
    """
    finite = x[np.isfinite(x)]
    if not len(finite) or np.ptp(finite) < _MOVES:
        return None
    with np.errstate(all="ignore"):
        change = (x[5:] - x[:-5]) / (time[5:] - time[:-5])
    mean = np.convolve(v, np.ones(6) / 6.0, mode="valid")
    good = np.isfinite(change) & np.isfinite(mean)
    if good.sum() < 50:
        return None
    a, b = change[good], mean[good]
    size = float(np.sqrt((a @ a) * (b @ b)))
    if size == 0.0 or float(a @ b) / size < 0.9:
        return None
    return float((a @ b) / (b @ b))


@dataclass(frozen=True, eq=False, slots=True)
class TorqueFinding:
    """How torque compares with the description's weight and inertia.

    Args:
        scale: N m per unit of every column; nan where the model does not explain it.
        explained: share of every column's variance that model, friction and offset explain, shape [n_joints].
    """

    scale: FloatArray
    explained: FloatArray

    def clearly_better_than(self, other: TorqueFinding) -> bool:
        """Whether it leaves less than half of what the other leaves, over the joints together."""
        return bool((1.0 - self.explained).sum() < 0.5 * (1.0 - other.explained).sum())


def torque_finding(robot: Robot, q: FloatArray, time: FloatArray | None, torque: FloatArray) -> TorqueFinding:
    """Recorded torque against the description's weight and inertia.

    Args:
        robot: with masses.
        q: positions in SI units, shape [n, n_joints].
        time: [s]; None when unknown: then by weight alone.
        torque: as recorded, shape [n, n_joints].
    """
    count = len(q)
    step = max(count // _COMPARED, 1)
    if time is not None and not np.isfinite(time).all():
        time = None  # cells that are no numbers: by weight alone
    width = _UNTIMED_WIDTH if time is None else max(int(_SMOOTHING / max(float(np.median(np.diff(time))), 1e-6)), 1)
    smooth = _averaged(q, width)
    qd = np.gradient(smooth, np.arange(count) * _UNTIMED_STEP if time is None else time, axis=0)
    qdd = np.zeros_like(qd) if time is None else np.gradient(_averaged(qd, width), time, axis=0)
    keep = slice(3 * width, count - 3 * width, step)
    moving = qd[keep] if time is not None else np.zeros_like(qd[keep])
    nominal = np.atleast_2d(inverse_dynamics(robot, smooth[keep], moving, qdd[keep]))
    scale, explained = np.full(robot.n_joints, np.nan), np.zeros(robot.n_joints)
    for j in range(robot.n_joints):
        own, measured = nominal[:, j], torque[keep, j]
        if not (np.isfinite(measured).all() and np.isfinite(own).all()) or own.std() == 0.0 or measured.std() == 0.0:
            continue
        # Friction and offset beside the model, so that they do not bend its scale.
        A = np.column_stack([own, np.tanh(qd[keep, j] / _SIGN_WIDTH), qd[keep, j], np.ones(len(own))])
        solution, *_ = np.linalg.lstsq(A, measured, rcond=None)
        explained[j] = 1.0 - (measured - A @ solution).var() / measured.var()
        weighs = (own * solution[0]).var() > _WEIGHS * measured.var()
        if explained[j] > _EXPLAINED and solution[0] != 0.0 and weighs:
            scale[j] = 1.0 / solution[0]
    return TorqueFinding(scale, explained)


def _averaged(x: FloatArray, width: int) -> FloatArray:
    kernel = np.ones(width) / width
    return np.column_stack([np.convolve(column, kernel, mode="same") for column in x.T])
