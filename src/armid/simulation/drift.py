"""Friction that falls as the drives warm up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionDrift:
    """Drive temperature T(t) = end + (start - end) exp(-t / time_constant), and friction linear in it.

    viscous(T) = viscous * max(0, 1 - viscous_per_kelvin (T - reference)), and likewise for Coulomb friction. The
    robot's own coefficients are those at the reference temperature.

    Args:
        start, end: drive temperature at the beginning and after a long time [degrees Celsius].
        reference: temperature at which the robot's coefficients hold [degrees Celsius].
        time_constant: [s].
        viscous_per_kelvin, coulomb_per_kelvin: relative fall per kelvin.
    """

    start: float = 25.0
    end: float = 25.0
    reference: float = 25.0
    time_constant: float = 600.0
    viscous_per_kelvin: float = 0.02
    coulomb_per_kelvin: float = 0.005

    def __post_init__(self) -> None:
        if not self.time_constant > 0.0:
            raise InputError("time_constant", f"{self.time_constant} s", "a positive time")

    @property
    def active(self) -> bool:
        """Whether friction differs from the robot's coefficients at any time."""
        return not self.start == self.end == self.reference

    def temperature(self, time: FloatArray) -> FloatArray:
        """[degrees Celsius], shape of time."""
        return self.end + (self.start - self.end) * np.exp(-np.asarray(time) / self.time_constant)

    def scales(self, time: FloatArray) -> FloatArray:
        """Factors on viscous and on Coulomb friction, shape [n, 2]."""
        if not self.active:
            return np.ones((len(time), 2))
        warm = self.temperature(time)[:, np.newaxis] - self.reference
        return np.maximum(0.0, 1.0 - warm * np.array([self.viscous_per_kelvin, self.coulomb_per_kelvin]))
