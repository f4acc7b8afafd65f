"""What a motion may use: the robot's limits, less a margin, with stated values where the data sheet gives none."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.errors import ArmidError, InputError
from armid.notes import Note, Severity
from armid.robot.robot import JointKind, Robot

_RISE_TIME = 0.25
"""[s] from rest to full velocity where no acceleration limit is known: what industrial arms take at full load."""

_JERK_TIME = 0.1
"""[s] from zero to full acceleration where no jerk limit is known: too slow to excite structural modes near 10 Hz."""

_FULL_TURN = 2.0 * np.pi
"""[rad] used to either side of a revolute joint without position limits: cables do not like more."""

_SLIDE_TRAVEL = 1.0
"""[m] used to either side of a prismatic joint without position limits."""

_DEFAULT_SPEED = 1.0
"""[rad/s or m/s] where the description gives no velocity limit."""


DEFAULT_MARGIN = 0.05
"""Fraction of every limit a motion leaves unused: tracking overshoot and model error of the torques."""


class InfeasibleError(ArmidError):
    """A motion that cannot exist within the limits; says which constraint fails and by how much."""


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits of all joints, each of shape [n_joints]; torque may be infinite.

    Args:
        lower, upper: positions [rad or m].
        velocity, acceleration, jerk: magnitudes.
        torque: magnitudes [N m or N].
    """

    lower: FloatArray
    upper: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    jerk: FloatArray
    torque: FloatArray

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, read_only(getattr(self, field.name)))
        for k, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not low < high:
                raise InfeasibleError(
                    f"position limits of joint {k + 1} leave no room: {high - low:g} between {low:g} and {high:g}"
                )
        for name in ("velocity", "acceleration", "jerk", "torque"):
            values = getattr(self, name)
            if not (values > 0.0).all():
                k = int(np.argmin(values))
                raise InfeasibleError(
                    f"{name} limit of joint {k + 1} is {values[k]:g}; it must be positive to move at all"
                )

    @property
    def middle(self) -> FloatArray:
        return (self.lower + self.upper) / 2

    @property
    def half_range(self) -> FloatArray:
        return (self.upper - self.lower) / 2

    def within(self, margin: float) -> MotionLimits:
        """Every limit reduced by a fraction: ranges shrink about their middle, magnitudes are scaled."""
        if not 0.0 <= margin < 1.0:
            raise InputError("margin", f"{margin}", "a fraction between 0 and 1")
        keep = 1.0 - margin
        return MotionLimits(
            lower=self.middle - keep * self.half_range,
            upper=self.middle + keep * self.half_range,
            velocity=keep * self.velocity,
            acceleration=keep * self.acceleration,
            jerk=keep * self.jerk,
            torque=keep * self.torque,
        )

    def but(self, **values: FloatArray | float) -> MotionLimits:
        """The same with some fields replaced; a number stands for all joints."""
        full = {name: np.broadcast_to(np.asarray(v, dtype=np.float64), self.lower.shape) for name, v in values.items()}
        return replace(self, **full)


def motion_limits(robot: Robot) -> tuple[MotionLimits, tuple[Note, ...]]:
    """The robot's limits, completed where the description is silent, and a note for each kind that was completed."""
    notes: list[Note] = []
    turns = np.array([joint.kind is JointKind.REVOLUTE for joint in robot.joints])
    travel = np.where(turns, _FULL_TURN, _SLIDE_TRAVEL)
    lower = _complete(robot, "lower", -travel, notes)
    upper = _complete(robot, "upper", travel, notes)
    _check_not_held(robot, lower, upper)
    velocity = _complete(robot, "velocity", np.full(robot.n_joints, _DEFAULT_SPEED), notes)
    acceleration = _complete(robot, "acceleration", velocity / _RISE_TIME, notes)
    jerk = _complete(robot, "jerk", acceleration / _JERK_TIME, notes)
    limits = MotionLimits(
        lower=lower,
        upper=upper,
        velocity=velocity,
        acceleration=acceleration,
        jerk=jerk,
        torque=robot.limit("torque"),
    )
    return limits, tuple(notes)


def _check_not_held(robot: Robot, lower: FloatArray, upper: FloatArray) -> None:
    """Refuses a joint that is called moving and whose limits hold it in one place."""
    for name, low, high in zip(robot.joint_names, lower, upper, strict=True):
        if low == high:
            raise InfeasibleError(
                f"joint {name!r} has both position limits at {low:g} and cannot move: make it fixed in the description, with "
                "that position in its origin, or state its range (--limits-file)"
            )


def _complete(robot: Robot, which: str, default: FloatArray, notes: list[Note]) -> FloatArray:
    """One kind of limit; where it is infinite, the default, with a note that says so."""
    values = robot.limit(which)
    missing = ~np.isfinite(values)
    if missing.any():
        names = ", ".join(name for name, gone in zip(robot.joint_names, missing, strict=True) if gone)
        used = ", ".join(f"{x:.3g}" for x in default[missing])
        notes.append(
            Note(
                "limit-assumed",
                Severity.WARNING,
                f"{robot.name} gives no {which} limit for {names}; {used} is used (state yours with --limits-file)",
                which,
            )
        )
    return np.where(missing, default, values)
