"""Which base parameters of given data stand out of the measurement noise: a rank decision tied to that noise.

Rows divided by their noise, columns scaled to unit length: a direction with singular value s is known to 1 / s, while a
parameter vector of length |z| gives a torque of at most s_1 |z|. A direction therefore disappears in the noise when

    s / s_1  <  DETECTED / |y / noise|,

that is when a vector as long as the measured torque allows, laid along it, would not exceed its own uncertainty by the
factor asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armid.errors import InputError
from armid.identifiability.base import BaseParameters, base_parameters
from armid.information.information import Information

DETECTED = 3.0
"""A direction counts when it can exceed three of its standard deviations."""


def residual_noise(information: Information, *, samples_per_independent: float = 1.0) -> dict[str, float]:
    """Standard deviation of what each channel's own best fit leaves, as if rows were independent.

    Args:
        information: with measured values in it.
        samples_per_independent: how many rows one independent one stands for; low-passed samples are correlated.
    """
    return {
        c.name: float(np.sqrt(samples_per_independent * c.residual_energy / max(c.count - len(c.columns), 1.0)))
        for c in information.channels
    }


def noise_tolerance(information: Information, noise: Mapping[str, float]) -> float:
    """The relative singular value below which a direction disappears in the noise.

    Args:
        information: with measured values in it.
        noise: standard deviation of every channel's rows.

    Raises:
        InputError: a channel without noise, or data that noise alone explains.
    """
    energy = 0.0
    for channel in information.channels:
        deviation = noise.get(channel.name, 0.0)
        if not deviation > 0.0:
            raise InputError(f"noise of channel {channel.name!r}", f"{deviation}", "a positive standard deviation")
        energy += float(channel.z @ channel.z + channel.residual_energy) / deviation**2
    tolerance = DETECTED / np.sqrt(energy) if energy > 0.0 else np.inf
    if not tolerance < 1.0:
        raise InputError("noise", "the measured torque is no larger than it", "is anything measured?")
    return float(tolerance)


def detected_base(information: Information, base: BaseParameters, noise: Mapping[str, float]) -> BaseParameters:
    """Those of the structural base parameters that the data can tell from noise, with the decision and its gap.

    Args:
        information: of a log, with its measured torque.
        base: what could be identified with the best of motions.
        noise: standard deviation of every channel's rows.
    """
    if information.parameters != base.parameters:
        raise InputError("detection", "information and base parameters are about different parameter vectors")
    tolerance = noise_tolerance(information, noise)
    weights = {name: 1.0 / deviation for name, deviation in noise.items()}
    whitened = information.weighted(weights).select(base.independent)
    why = f"tolerance {tolerance:.2g} tied to the noise of the torque"
    return base_parameters(whitened, tolerance=tolerance, why=why, what="torque above its noise")
