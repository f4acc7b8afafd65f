"""How the arm is simulated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.simulation.drift import FrictionDrift
from armid.simulation.feedback import Feedback
from armid.simulation.sensors import PerJoint, per_joint


class OnFault(StrEnum):
    """What to do when a motion has to be stopped."""

    RAISE = "raise"
    RECORD = "record"
    """Keep what was measured until then, with the fault in the record."""


_USUAL_CONTROL_RATES = (1000.0, 8000.0)
"""[Hz] Of arm controllers, and what the controllers here are tested at."""

SLOWEST_LOOP, FASTEST_LOOP = 50.0, 100_000.0
"""[Hz] Below, no torque controller holds an arm; above, a record of a minute no longer fits in memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Physics:
    """How the arm is simulated.

    Args:
        step: longest integration step [s]; shortened to fit the control period a whole number of times, and further
            when a transmission is so stiff that it would not be resolved.
        control_rate_hz: of the controller and of the record.
        elastic: simulate transmissions of finite stiffness.
        stiffness: of the transmissions instead of the robot's own [N m/rad or N/m]; None leaves them.
        damping: of the transmissions instead of the robot's own [N m s/rad or N s/m]; None leaves it.
        sensed_friction: share of friction and offset on the links' side of the joint torque sensor, 0 to 1; what the arm's
            description says of its sensors when None: all of it where it says nothing.
        drift: how friction changes as the drives warm up.
        payload: ten standard parameters of a body fixed to the last link, in its frame, or None.
        locked: names of joints held by their brakes.
        collisions: stop when links touch each other or the base.
        tracking_limit: stop when a joint is further than this from its command [rad or m].
        feedback: encoders inside the control loop; the controller sees the true rotors when None.
        on_fault: raise, or keep the record until then.
    """

    step: float = 1e-3
    control_rate_hz: float = 1000.0
    elastic: bool = False
    stiffness: PerJoint | None = None
    damping: PerJoint | None = None
    sensed_friction: float | None = None
    drift: FrictionDrift = field(default_factory=FrictionDrift)
    payload: FloatArray | None = None
    locked: tuple[str, ...] = ()
    collisions: bool = True
    tracking_limit: float = 0.5
    feedback: Feedback | None = None
    on_fault: OnFault = OnFault.RAISE

    def __post_init__(self) -> None:
        for name in ("step", "control_rate_hz", "tracking_limit"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise InputError(name, f"{value}", "a positive number")
        if not SLOWEST_LOOP <= self.control_rate_hz <= FASTEST_LOOP:
            raise InputError(
                "control_rate_hz",
                f"{self.control_rate_hz:g}",
                f"{SLOWEST_LOOP:g} to {FASTEST_LOOP:g}; 1000 to 8000 are usual",
            )

    @property
    def notes(self) -> tuple[Note, ...]:
        """A warning when the control loop is slower or faster than those it is tried at."""
        low, high = _USUAL_CONTROL_RATES
        if low <= self.control_rate_hz <= high:
            return ()
        message = (
            f"the controller runs at {self.control_rate_hz:g} Hz, outside {low:g} to {high:g} Hz: default gains are made "
            "for those rates, and a slow loop may track badly or become unstable"
        )
        return (Note("control-rate", Severity.WARNING, message, "control_rate_hz"),)

    def transmissions(self, robot: Robot) -> Robot:
        """The arm with the stiffness and damping asked for; refuses elastic joints of an arm that has none."""
        for name in ("stiffness", "damping"):
            given = getattr(self, name)
            if given is not None:
                values = per_joint(name, given, robot.n_joints)
                joints = zip(robot.joints, values, strict=True)
                changed = tuple(replace(j, drive=replace(j.drive, **{name: float(x)})) for j, x in joints)
                robot = replace(robot, joints=changed)
        if self.elastic and not np.isfinite(robot.drive("stiffness")).any():
            raise InputError(robot.name, "no drive has a finite stiffness", "give `stiffness` beside `elastic`")
        return robot
