"""Recordings of the study: MuJoCo moves the arm that is really there, sensors write what they see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.logs.conditioning import Conditioning, condition
from armid.logs.samples import Samples, concatenated
from armid.motions.needed_torque import torque_limits
from armid.motions.trajectory import Trajectory
from armid.parameters.inertial import from_centre_of_mass
from armid.robot.robot import Robot
from armid.simulation.measure import measure
from armid.simulation.physics import Physics
from armid.simulation.run import SimulatedRun, run_motion
from armid.simulation.sensors import typical_sensors

SENSED_FRICTION = 0.5
"""Share of friction on the links' side of the torque sensors: the rest is in the drives, as model 2 assumes."""

_RATE_HZ = 500.0
"""Of controller, integration and log: fifty samples per period of the low-pass."""

_PAYLOAD_CENTRE = (0.05, 0.03, 0.16)
"""[m] in the last link's frame: beside the last axis, so that its inertia shows."""

_PAYLOAD_SIZE = 0.12
"""[m] Edge of the cube that the payload is."""


def payload_body(mass: float) -> FloatArray:
    """Ten standard parameters of the payload in the last link's frame."""
    inertia = mass * _PAYLOAD_SIZE**2 / 6.0 * np.eye(3)
    return from_centre_of_mass(mass, np.array(_PAYLOAD_CENTRE), inertia)


def carry_out(
    nominal: Robot, specimen: Robot, motion: Trajectory, payloads: Sequence[FloatArray | None]
) -> tuple[SimulatedRun, ...]:
    """The motion once with every payload; the controller believes in the described arm."""
    plain = Physics(step=1.0 / _RATE_HZ, control_rate_hz=_RATE_HZ, sensed_friction=SENSED_FRICTION)
    return tuple(run_motion(specimen, motion, physics=replace(plain, payload=p), declared=nominal) for p in payloads)


def record_runs(nominal: Robot, runs: Sequence[SimulatedRun], cutoff: float, seed: Sequence[int]) -> Samples:
    """Sensor readings of these runs with noise of their own, conditioned."""
    sensors = typical_sensors(torque_limits(nominal))
    parts = []
    for k, run in enumerate(runs):
        chance = int(np.random.default_rng([*seed, k]).integers(2**31))
        log = replace(measure(run, sensors, declared=nominal, seed=chance), name=f"run {k + 1}")
        parts.append(condition(log, nominal, Conditioning(cutoff=cutoff)))
    return concatenated(parts)
