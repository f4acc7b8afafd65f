"""Small motions and arms for tests of the simulated arm."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from armid.parameters.inertial import from_centre_of_mass
from armid.robot import Drive, Elementary, Joint, JointKind, Link, Move, Robot
from armid.robot.geometry import Geometry


@dataclass(frozen=True)
class Sines:
    """q_i = centre_i + amplitude_i sin(2 pi f_i t)."""

    centre: np.ndarray
    amplitude: np.ndarray
    frequency: np.ndarray
    duration: float = 1.0

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        w = 2.0 * np.pi * self.frequency
        phase = np.asarray(t)[:, np.newaxis] * w
        return (
            self.centre + self.amplitude * np.sin(phase),
            self.amplitude * w * np.cos(phase),
            -self.amplitude * w**2 * np.sin(phase),
        )


def sines(robot: Robot, duration: float = 1.0, amplitude: float = 0.2) -> Sines:
    """A moderate motion around the middle of the robot's limits."""
    lower, upper = robot.limit("lower"), robot.limit("upper")
    bounded = np.isfinite(lower) & np.isfinite(upper)
    middle = np.where(bounded, 0.5 * (np.where(bounded, lower, 0.0) + np.where(bounded, upper, 0.0)), 0.0)
    span = upper - lower
    n = robot.n_joints
    return Sines(middle, np.minimum(amplitude, 0.2 * span), np.linspace(0.4, 0.9, n), duration)


@dataclass(frozen=True)
class Broken:
    """A motion of one joint with something wrong in it."""

    q: np.ndarray
    duration: float = 0.1
    extra: dict = field(default_factory=dict)

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q = np.interp(t, np.linspace(0.0, self.duration, len(self.q)), self.q)[:, np.newaxis]
        zero = np.zeros_like(q)
        return q, self.extra.get("qd", zero), zero


def pendulum(drive: Drive | None = None, gravity: float = 0.0, geometry: tuple[Geometry, ...] = ()) -> Robot:
    """One revolute joint about x with 0.2 kg m^2 about it."""
    inertial = from_centre_of_mass(2.0, [0.0, 0.0, 0.3], np.diag([0.02, 0.02, 0.01]))
    joint = Joint(
        name="hinge",
        kind=JointKind.REVOLUTE,
        transforms=(Elementary(motion=Move.RX, variable=True),),
        drive=drive or Drive(),
    )
    return Robot(
        name="pendulum",
        joints=(joint,),
        links=(Link("arm", inertial, geometry),),
        gravity=np.array([0.0, 0.0, -gravity]),
    )
