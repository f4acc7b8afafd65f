"""Recorded velocity over the derivative of recorded position: a common ratio is the clock, one joint alone its own scale.

Over a window from a to b a velocity sensor with gain r, lag d and further smoothing e gives

    integral of qd = r (q(b) - q(a)) - d (qd(b) - qd(a)) + e (qdd(b) - qdd(a)) + bias (b - a)

with qd and qdd on the right from differences of positions. Stamps that are too long by a share k make every r equal to 1 + k.
Positions are the regressors because encoders have little noise; with a share s of the integral left unexplained, noise in them
could lower r by at most s^2, which is part of its deviation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.logs.conditioning.uniform import increasing_mask
from armid.logs.health.channels import minimum_range
from armid.logs.health.rows import ABSURD, corrupt, spikes, within
from armid.logs.health.thresholds import CLOCK_RATE, RATIO_CONFIDENCE, RATIO_LEFT
from armid.logs.log import Channel, Clock, Log
from armid.robot.robot import Robot
from armid.signals.spline import CubicSpline

Index = npt.NDArray[np.intp]

_WINDOW = 0.2
"""[s]; long enough for noise to average out, short enough for the velocity to change from one window to the next."""
_FEWEST_STEPS = 4
"""In a window of a slow log."""
_FEWEST_WINDOWS = 40
_BLOCKS = 10
"""Stretches of time left out one by one."""
_REMAINS = 0.001
"""Share by which ratios on sound recordings differ from one beyond their scatter: what jitter and filters of recorders leave."""


@dataclass(frozen=True, eq=False, kw_only=True)
class VelocityRatios:
    """Recorded velocity over the derivative of recorded position.

    Args:
        joints: names.
        ratio: shape [n_joints]; nan where the recording cannot tell.
        deviation: standard deviations, shape [n_joints].
    """

    joints: tuple[str, ...]
    ratio: FloatArray
    deviation: FloatArray

    @property
    def known(self) -> Index:
        """Places of the joints that tell something."""
        return np.flatnonzero(np.isfinite(self.ratio))

    @property
    def common(self) -> tuple[float, float] | None:
        """The ratio that all joints have, with its deviation; None when fewer than two tell one, or most have their own."""
        r, s = self.ratio[self.known], self.deviation[self.known]
        if len(r) < 2:
            return None
        middle = float(np.median(r))
        agree = np.abs(r - middle) <= np.maximum(CLOCK_RATE * middle, RATIO_CONFIDENCE * s)
        if 2 * agree.sum() <= len(r) or agree.sum() < 2:
            return None
        scatter = float(np.sqrt(np.mean((r[agree] - middle) ** 2) / agree.sum()))
        own = float(np.median(s[agree]))
        return middle, float(np.linalg.norm([_REMAINS * middle, 1.25 * scatter, own]))

    @property
    def clock(self) -> tuple[float, float] | None:
        """Share by which time was stamped too long, and its deviation; None unless it is beyond tolerance and doubt."""
        if self.common is None:
            return None
        value, deviation = self.common[0] - 1.0, self.common[1]
        return (value, deviation) if abs(value) > max(CLOCK_RATE, RATIO_CONFIDENCE * deviation) else None

    @property
    def usual(self) -> float:
        """The middle one; of fewer than three joints one."""
        return float(np.median(self.ratio[self.known])) if len(self.known) > 2 else 1.0

    @property
    def apart(self) -> Index:
        """Places of joints whose own ratio differs from the usual one beyond tolerance and doubt."""
        if self.common is not None and len(self.known) == 2:
            return np.empty(0, dtype=np.intp)
        off = np.abs(self.ratio - self.usual) > np.maximum(CLOCK_RATE * self.usual, RATIO_CONFIDENCE * self.deviation)
        return np.flatnonzero(np.isfinite(self.ratio) & off)


def velocity_ratios(log: Log, robot: Robot) -> VelocityRatios | None:
    """The ratios; None for a log without recorded velocity, or whose clock was inferred from it.

    Args:
        log: columns in the robot's order.
        robot: which joints revolve, and how far they must move to tell anything.
    """
    if Channel.VELOCITY not in log or log.clock not in (Clock.COLUMN, Clock.STEP):
        return None
    rows = _fresh(log, usable_rows(log))
    t, q, qd = log.time[rows], log[Channel.POSITION][rows], log[Channel.VELOCITY][rows]
    n = q.shape[1]
    found = VelocityRatios(joints=log.joints, ratio=np.full(n, np.nan), deviation=np.full(n, np.inf))
    if len(t) < 4 * _FEWEST_WINDOWS:
        return found
    step = float(np.median(np.diff(t)))
    k = max(_FEWEST_STEPS, round(_WINDOW / max(step, 1e-9)))
    h = max(1, k // 8)
    at = np.arange(h, len(t) - k - h, max(1, k // 4))
    span = t[at + k + h] - t[at - h]
    at = at[np.abs(span - (k + 2 * h) * step) < 0.1 * span] if len(at) else at
    if len(at) < _FEWEST_WINDOWS:
        return found
    area = _integral(t, qd)
    for j in range(n):
        if np.ptp(q[:, j]) > minimum_range(robot, j):
            found.ratio[j], found.deviation[j] = _ratio(
                _regressors(t, q[:, j], at, k, h), area[at + k, j] - area[at, j]
            )
    return found


def usable_rows(log: Log) -> Index:
    """Places of rows in which time advances and neither positions nor velocities are corrupt."""
    good = increasing_mask(log.time)
    for channel in (Channel.POSITION, Channel.VELOCITY):
        if not within(log[channel], ABSURD[channel]):
            good &= ~corrupt(log[channel], ABSURD[channel]).any(axis=1)
    good &= ~spikes(log[Channel.POSITION], good).any(axis=1)
    return np.flatnonzero(good)


def _fresh(log: Log, rows: Index) -> Index:
    """Those of the rows that do not repeat the positions of the one before.

    Positions that are held for four rows fall behind by none to three of them; windows of 25 rows that begin at even ones then
    cover 24 rows of motion, and a clock that runs true would seem to run 4 % fast.
    """
    q = log[Channel.POSITION][rows]
    return rows[np.concatenate([[True], (q[1:] != q[:-1]).any(axis=1)])] if len(rows) else rows


def _integral(t: FloatArray, qd: FloatArray) -> FloatArray:
    """Of the spline through the velocities, from the first row on, shape [n, n_joints]."""
    slopes = CubicSpline.through(t, qd).slopes
    step = np.diff(t)[:, np.newaxis]
    pieces = 0.5 * step * (qd[1:] + qd[:-1]) + step**2 / 12.0 * (slopes[:-1] - slopes[1:])
    return np.concatenate([np.zeros((1, qd.shape[1])), np.cumsum(pieces, axis=0)])


def _regressors(t: FloatArray, q: FloatArray, at: Index, k: int, h: int) -> FloatArray:
    """Differences of position, velocity and acceleration over every window, and its length, shape [n_windows, 4]."""

    def speed(i: Index) -> FloatArray:
        return np.asarray((q[i + h] - q[i - h]) / (t[i + h] - t[i - h]))

    def acceleration(i: Index) -> FloatArray:
        return np.asarray((q[i + h] - 2.0 * q[i] + q[i - h]) * 4.0 / (t[i + h] - t[i - h]) ** 2)

    return np.column_stack(
        [
            q[at + k] - q[at],
            speed(at + k) - speed(at),
            acceleration(at + k) - acceleration(at),
            t[at + k] - t[at],
        ]
    )


def _ratio(X: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Coefficient of the difference of position and its deviation; nan where too much is left."""
    scale = np.linalg.norm(X, axis=0)
    if not scale.all() or not np.any(y):
        return np.nan, np.inf
    X = X / scale
    c = np.linalg.lstsq(X, y, rcond=None)[0]
    left = float(np.linalg.norm(y - X @ c) / np.linalg.norm(y))
    if left > RATIO_LEFT:
        return np.nan, np.inf
    block = np.arange(len(y)) * _BLOCKS // len(y)
    G, h = X.T @ X, X.T @ y
    others = []
    for b in range(_BLOCKS):
        own = X[block == b]
        others.append(np.linalg.lstsq(G - own.T @ own, h - own.T @ y[block == b], rcond=1e-12)[0][0])
    spread = np.sqrt((_BLOCKS - 1) / _BLOCKS * np.sum((np.array(others) - np.mean(others)) ** 2)) / scale[0]
    value = float(c[0] / scale[0])
    return value, float(np.hypot(spread, left**2 * abs(value)))
