"""The view of a log that the torque checks share: conditioned samples next to what a nominal arm would need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from armid.arrays import FloatArray
from armid.kernels.dynamics import gravity, inverse_dynamics
from armid.logs.health.nominal import has_inertials, rods
from armid.logs.log import Channel, Log
from armid.logs.samples import Samples
from armid.robot.robot import Robot

_MAX_SAMPLES = 4000
"""Enough for five unknowns per joint; keeps the checks in tens of milliseconds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Probe:
    """Measured torque and nominal torque of the same samples.

    Args:
        log: where it comes from.
        robot: mounted as the log says.
        samples: conditioned, thinned to `_MAX_SAMPLES`.
        whole: conditioned, with its segments, for what depends on the order in time.
        channel: the torque channel under test.
        inertial: nominal parameters used, shape [10 n].
        real: whether they come from the description; stand-in rods otherwise.
    """

    log: Log
    robot: Robot
    samples: Samples
    whole: Samples
    channel: Channel
    inertial: FloatArray
    real: bool

    @property
    def torque(self) -> FloatArray:
        return self.samples.torques[self.channel]

    def weight(self) -> FloatArray:
        """Nominal gravity torque, shape [n_samples, n_joints]."""
        return gravity(self.robot, self.samples.q, inertial=self.inertial)

    def inertia(self) -> FloatArray:
        """Nominal torque of the motion without gravity, shape [n_samples, n_joints]."""
        s, still = self.samples, under_gravity(self.robot, (0.0, 0.0, 0.0))
        return inverse_dynamics(still, s.q, s.qd, s.qdd, inertial=self.inertial)


@lru_cache(maxsize=32)
def under_gravity(robot: Robot, gravity: tuple[float, float, float]) -> Robot:
    """The arm under another gravity [m/s^2]; the same object for the same arm, so that its kernels are compiled once."""
    return robot.with_gravity(gravity)


def probe(log: Log, robot: Robot, channel: Channel, samples: Samples) -> Probe:
    """The view of one torque channel.

    Args:
        log: where it comes from.
        robot: nominal arm, mounted as its description says.
        channel: the torque under test.
        samples: of the log, conditioned.
    """
    if log.conditions.mounting is not None:
        robot = under_gravity(robot, log.conditions.mounting)
    every = -(-len(samples) // _MAX_SAMPLES)
    real = has_inertials(robot)
    return Probe(
        log=log,
        robot=robot,
        samples=thinned(samples, every),
        whole=samples,
        channel=channel,
        inertial=robot.inertial if real else rods(robot),
        real=real,
    )


def thinned(samples: Samples, every: int) -> Samples:
    """Every k-th sample; for checks only, segments are given up."""
    return samples if every == 1 else samples.with_arrays(lambda _, array: array[::every], segments=())
