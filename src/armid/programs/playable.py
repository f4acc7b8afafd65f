"""From a trajectory to a motion a controller can run: from rest to rest, in few knots that a short loop can evaluate."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import MotionLimits
from armid.motions.trajectory import Motion, SampledTrajectory, Trajectory, times

_AT_REST = 1e-6
"""[rad/s or m/s, and per s^2]: slower than any encoder shows."""

KNOT_ERROR = 1e-7
"""[rad or m] by which a knot table may miss the motion at a tick: a tenth of what a controller resolves."""

_COARSEST = 0.2
"""[s] between knots: fine enough to follow with the eye when something goes wrong."""

_RAMP_TIMES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""[s] tried in turn for the soft start."""


@dataclass(frozen=True, eq=False)
class SoftEnds:
    """A periodic motion entered and left along its own path, so that the arm starts and stops at rest.

    Before time `lead` the path is run with a rate that grows smoothly from zero to one; after `lead + motion.duration` it
    fades out likewise. In between it is the motion itself, later by `lead`.

    Args:
        motion: periodic.
        ramp: time the rate takes to grow [s].
    """

    motion: FourierTrajectory
    ramp: float

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.motion.joint_names

    @property
    def lead(self) -> float:
        """When the motion itself begins [s]."""
        return self.ramp

    @property
    def duration(self) -> float:
        return self.motion.duration + 2.0 * self.ramp

    def sample(self, t: npt.ArrayLike) -> Motion:
        s, rate, change, _ = self._path_time(times(t))
        q, by_s, by_ss = self.motion.sample(s[:, 0])
        return q, by_s * rate, by_ss * rate**2 + by_s * change

    def jerk(self, t: npt.ArrayLike) -> FloatArray:
        s, rate, change, second = self._path_time(times(t))
        _, by_s, by_ss = self.motion.sample(s[:, 0])
        third = self.motion.jerk(s[:, 0])
        return third * rate**3 + 3.0 * by_ss * rate * change + by_s * second

    def _path_time(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Time along the motion and its first three derivatives by the clock, each [n, 1]."""
        clipped = np.clip(t, 0.0, self.duration)
        into = np.clip(clipped / self.ramp, 0.0, 1.0)
        out = np.clip((self.duration - clipped) / self.ramp, 0.0, 1.0)
        # The rate 10 x^3 - 15 x^4 + 6 x^5 has no slope at either end; its integral over the ramp is half the ramp.
        start, end = self._grown(into), self._grown(out)
        middle = np.clip(clipped - self.ramp, 0.0, self.motion.duration)
        s = -self.ramp / 2 + start[0] + middle + (self.ramp / 2 - end[0])
        moving = (into < 1.0, out < 1.0)
        rate = np.where(moving[0], start[1], np.where(moving[1], end[1], 1.0))
        change = np.where(moving[0], start[2], np.where(moving[1], -end[2], 0.0))
        second = np.where(moving[0], start[3], np.where(moving[1], end[3], 0.0))
        return s[:, np.newaxis], rate[:, np.newaxis], change[:, np.newaxis], second[:, np.newaxis]

    def _grown(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Path time gained while the rate grows, the rate and its two derivatives, at a fraction x of the ramp."""
        gained = self.ramp * (2.5 * x**4 - 3.0 * x**5 + x**6)
        rate = 10.0 * x**3 - 15.0 * x**4 + 6.0 * x**5
        change = (30.0 * x**2 - 60.0 * x**3 + 30.0 * x**4) / self.ramp
        second = (60.0 * x - 180.0 * x**2 + 120.0 * x**3) / self.ramp**2
        return gained, rate, change, second


def from_rest_to_rest(trajectory: Trajectory, limits: MotionLimits) -> tuple[Trajectory, float]:
    """A motion that starts and ends at rest, and when the given one begins in it [s].

    A motion that does so already stays as it is. A periodic one is entered and left along its own path, which is as free of
    contact as the motion itself; the ramp is as long as the acceleration limits ask.

    Raises:
        InputError: it moves at its ends and is not periodic, or no ramp keeps the limits.
    """
    _, qd, qdd = trajectory.sample([0.0, trajectory.duration])
    if max(np.abs(qd).max(), np.abs(qdd).max()) < _AT_REST:
        return trajectory, 0.0
    if not isinstance(trajectory, FourierTrajectory):
        raise InputError(
            "trajectory",
            f"moves at its ends (up to {np.abs(qd).max():.3g} rad/s or m/s)",
            "a program must start and stop at rest: design it with --home, which adds the way in and out",
        )
    for ramp in _RAMP_TIMES:
        soft = SoftEnds(trajectory, ramp)
        ends = np.concatenate([np.linspace(0.0, ramp, 200), np.linspace(soft.duration - ramp, soft.duration, 200)])
        if (np.abs(soft.sample(ends)[2]) <= limits.acceleration + 1e-9).all():
            return soft, soft.lead
    raise InputError(
        "trajectory", "cannot be entered within the acceleration limits", "design it with --home, or less fast"
    )


def knots_of(trajectory: Trajectory, tick: float) -> SampledTrajectory:
    """The motion as quintics between few knots, each a whole number of ticks long.

    The interval is halved until no tick is missed by more than `KNOT_ERROR`; motions whose acceleration jumps may end at one
    knot per tick.

    Args:
        trajectory: from rest to rest.
        tick: of the controller [s].
    """
    count = ceil(trajectory.duration / tick - 1e-9)
    instants = tick * np.arange(count + 1)
    wanted = trajectory.sample(instants)
    step = max(int(_COARSEST / tick), 1)
    while True:
        index = np.append(np.arange(0, count, step), count)
        table = SampledTrajectory(trajectory.joint_names, instants[index], *(x[index] for x in wanted))
        if step == 1 or np.abs(table.sample(instants)[0] - wanted[0]).max() <= KNOT_ERROR:
            return table
        step = max(step // 2, 1)
