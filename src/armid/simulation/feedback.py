"""What a controller really sees of its rotors: coarse, noisy positions, and velocities differenced from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.simulation.sensors import PerJoint, per_joint, quantised


@dataclass(frozen=True)
class Feedback:
    """Encoders inside the control loop.

    position = round((theta + noise) / resolution) * resolution; velocity is its backward difference through a first-order
    low-pass, v_k = v_{k-1} + a ((p_k - p_{k-1}) / dt - v_{k-1}) with a = 1 - exp(-2 pi cutoff dt).

    Args:
        resolution: of the position [rad or m]; 0 for none.
        noise: of the position, standard deviation [rad or m].
        cutoff_hz: of the velocity's low-pass; it delays the damping, so that loops near their limit may lose stability.
        seed: of the noise.
    """

    resolution: PerJoint = 0.0
    noise: PerJoint = 0.0
    cutoff_hz: float = 200.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.cutoff_hz > 0.0:
            raise InputError("cutoff_hz", f"{self.cutoff_hz}", "a positive frequency")


class Encoders:
    """Encoders bound to one motion; remembers the last reading."""

    def __init__(self, feedback: Feedback, q0: FloatArray, qd0: FloatArray, ticks: int, period: float) -> None:
        n = len(q0)
        self.resolution = per_joint("resolution", feedback.resolution, n)
        self.noise = np.random.default_rng(feedback.seed).standard_normal((ticks, n)) * per_joint(
            "noise", feedback.noise, n
        )
        self.gain = 1.0 - np.exp(-2.0 * np.pi * feedback.cutoff_hz * period)
        self.period = period
        self.position = quantised(q0 - qd0 * period, self.resolution)
        self.velocity = np.array(qd0)

    def read(self, k: int, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Position and velocity as the controller sees them at tick k."""
        position = quantised(theta + self.noise[k], self.resolution)
        self.velocity = self.velocity + self.gain * ((position - self.position) / self.period - self.velocity)
        self.position = position
        return position, self.velocity
