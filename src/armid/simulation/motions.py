"""Commanded motions: anything with a duration that can be sampled, from files or put together from others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import NotFiniteError, ShapeError
from armid.motions.trajectory import quintic, quintic_through
from armid.robot.robot import Robot
from armid.simulation.faults import CommandError


@runtime_checkable
class CommandedMotion(Protocol):
    """A commanded motion in drive coordinates."""

    @property
    def duration(self) -> float:
        """[s]."""
        ...

    def sample(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Position, velocity, acceleration at the times t [s], each of shape [len(t), n_joints]."""
        ...


@dataclass(frozen=True, eq=False)
class Approached:
    """A motion with a smooth way to its start: from rest at `start` [n_joints] in `seconds`."""

    start: FloatArray
    seconds: float
    motion: CommandedMotion

    def __post_init__(self) -> None:
        if not self.seconds > 0.0:
            raise CommandError("approach", f"{self.seconds:g} s", "a positive time")

    @property
    def duration(self) -> float:
        return self.seconds + self.motion.duration

    def sample(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        t = np.asarray(t, dtype=np.float64)
        goal = self.motion.sample(np.zeros(1))
        rest = (np.asarray(self.start, dtype=np.float64)[np.newaxis], np.zeros_like(goal[0]), np.zeros_like(goal[0]))
        q, qd, qdd = (np.empty((len(t), goal[0].shape[1])) for _ in range(3))
        early, h = t < self.seconds, self.seconds
        way = quintic_through([x * h**k for k, x in enumerate(rest)], [x * h**k for k, x in enumerate(goal)])
        s = (t[early] / h)[:, np.newaxis]
        for k, out in enumerate((q, qd, qdd)):
            out[early] = quintic(way, s, k) / h**k
        q[~early], qd[~early], qdd[~early] = self.motion.sample(t[~early] - h)
        return q, qd, qdd


@dataclass(frozen=True, eq=False)
class Held:
    """Standing still at q [n_joints] for some time [s]."""

    q: FloatArray
    duration: float

    def sample(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        q = np.tile(np.asarray(self.q, dtype=np.float64), (len(t), 1))
        return q, np.zeros_like(q), np.zeros_like(q)


@dataclass(frozen=True, eq=False)
class Reference:
    """A motion at the ticks of a controller.

    Args:
        time: [s], shape [n_ticks].
        q, qd, qdd: commanded, shape [n_ticks, n_joints].
    """

    time: FloatArray
    q: FloatArray
    qd: FloatArray
    qdd: FloatArray


# Beyond this a position controller's first command is a blow, not a start.
_START_TOLERANCE = 1e-3
"""[rad or m, rad/s or m/s]"""

_LIMIT_SLACK = 1e-3
"""A command may pass a limit by this share of it: designs certified to round-off must not be refused."""


def sampled_reference(
    motion: CommandedMotion, robot: Robot, rate_hz: float, start: npt.ArrayLike | None = None
) -> Reference:
    """The motion at every tick, after checking that this arm can be asked to follow it.

    Args:
        motion: what is commanded.
        robot: for names and limits of position and velocity.
        rate_hz: ticks per second.
        start: where the arm stands at rest, shape [n_joints]; None when it is already in the motion's first state.

    Raises:
        CommandError: commands that are not finite, leave the limits, or begin elsewhere than the arm stands.
    """
    if not np.isfinite(motion.duration) or motion.duration <= 0.0:
        raise CommandError("motion", f"lasts {motion.duration} s", "a positive duration")
    motion = in_joint_order(motion, robot)
    count = max(2, int(np.floor(motion.duration * rate_hz + 1e-9)) + 1)
    time = np.arange(count) / rate_hz
    q, qd, qdd = (np.ascontiguousarray(x, dtype=np.float64) for x in motion.sample(time))
    for name, values in (("q", q), ("qd", qd), ("qdd", qdd)):
        if values.shape != (count, robot.n_joints):
            raise ShapeError(f"commanded {name}", values.shape, f"[{count}, {robot.n_joints}], one column per joint")
    _check_finite(robot, time, q, qd, qdd)
    _check_limits(robot, time, q, qd)
    if start is not None:
        _check_start(robot, np.asarray(start, dtype=np.float64), q[0], qd[0])
    return Reference(read_only(time), read_only(q), read_only(qd), read_only(qdd))


@dataclass(frozen=True, eq=False)
class Reordered:
    """A motion with its columns in another order."""

    motion: CommandedMotion
    order: tuple[int, ...]

    @property
    def duration(self) -> float:
        return self.motion.duration

    def sample(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        q, qd, qdd = self.motion.sample(t)
        return q[:, self.order], qd[:, self.order], qdd[:, self.order]


def in_joint_order(motion: CommandedMotion, robot: Robot) -> CommandedMotion:
    """The motion with its columns matched to the robot's joints by name, when it has names that are the robot's."""
    names = getattr(motion, "joint_names", None)
    if names is None or tuple(names) == robot.joint_names:
        return motion
    if len(names) != robot.n_joints:
        raise CommandError("motion", f"moves {len(names)} joints, {robot.name} has {robot.n_joints}")
    if set(names) == set(robot.joint_names):
        return Reordered(motion, tuple(names.index(name) for name in robot.joint_names))
    if set(names) & set(robot.joint_names):
        unknown = sorted(set(names) - set(robot.joint_names))
        raise CommandError("motion", f"joint {unknown[0]!r} is not one of {', '.join(robot.joint_names)}")
    # A table without names: its columns are the joints from base to tip.
    return motion


_ACCELERATION_RATE_HZ = 500.0
"""Of the instants at which acceleration is compared with its limit."""


def _check_finite(robot: Robot, time: FloatArray, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> None:
    bad = ~(np.isfinite(q) & np.isfinite(qd) & np.isfinite(qdd))
    if bad.any():
        tick, joint = (int(i) for i in np.argwhere(bad)[0])
        raise CommandError(
            f"command of joint {robot.joint_names[joint]!r}",
            f"{int(bad.sum())} value(s) that are not finite, the first at {time[tick]:.3f} s",
            "NaN and infinity cannot be commanded",
        )


def _check_limits(robot: Robot, time: FloatArray, q: FloatArray, qd: FloatArray) -> None:
    lower, upper, velocity = robot.limit("lower"), robot.limit("upper"), robot.limit("velocity")
    span = np.where(np.isfinite(upper - lower), _LIMIT_SLACK * (upper - lower), 0.0)
    for what, values, low, high in (
        ("position", q, lower - span, upper + span),
        ("velocity", qd, -velocity * (1.0 + _LIMIT_SLACK), velocity * (1.0 + _LIMIT_SLACK)),
    ):
        beyond = (values < low) | (values > high)
        if beyond.any():
            tick, joint = (int(i) for i in np.argwhere(beyond)[0])
            raise CommandError(
                f"command of joint {robot.joint_names[joint]!r}",
                f"{what} {values[tick, joint]:.4g} at {time[tick]:.3f} s, limits {low[joint]:.4g} to {high[joint]:.4g}",
                "stay within the limits, or remove them from the description if they are wrong",
            )


def check_acceleration(robot: Robot, motion: CommandedMotion) -> None:
    """Whether a motion keeps the acceleration limits its user gave; a description's own are no law of the simulated arm.

    Raises:
        CommandError: names the joint, the value, the time and the limit.
    """
    time = np.linspace(0.0, motion.duration, max(2, round(motion.duration * _ACCELERATION_RATE_HZ)))
    values = np.asarray(motion.sample(time)[2], dtype=np.float64)
    limit = robot.limit("acceleration") * (1.0 + _LIMIT_SLACK)
    beyond = np.abs(values) > limit
    if beyond.any():
        tick, joint = (int(i) for i in np.argwhere(beyond)[0])
        raise CommandError(
            f"command of joint {robot.joint_names[joint]!r}",
            f"acceleration {values[tick, joint]:.4g} at {time[tick]:.3f} s, limit {limit[joint]:.4g}",
            "design the motion with the same limits",
        )


def _check_start(robot: Robot, start: FloatArray, q0: FloatArray, qd0: FloatArray) -> None:
    if start.shape != (robot.n_joints,):
        raise ShapeError("start", start.shape, f"[{robot.n_joints}]")
    if not np.isfinite(start).all():
        raise NotFiniteError("start", int((~np.isfinite(start)).sum()), (int(np.flatnonzero(~np.isfinite(start))[0]),))
    for what, gap in (("position", np.abs(q0 - start)), ("velocity", np.abs(qd0))):
        worst = int(np.argmax(gap))
        if gap[worst] > _START_TOLERANCE:
            raise CommandError(
                f"command of joint {robot.joint_names[worst]!r}",
                f"starts {gap[worst]:.4g} away in {what} from where the arm stands",
                "put an approach before the motion, or start the arm where the motion starts",
            )
