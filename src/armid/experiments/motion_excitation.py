"""What one motion, planned or recorded, excites of the parameters that could be identified."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.design.expectation import assumed_noise
from armid.errors import InputError
from armid.experiments.inspection import Inspection, Quantity, sources_for
from armid.identifiability.excitation import Excitation, excitation
from armid.information.accumulate import accumulate
from armid.logs.conditioning.condition import condition
from armid.logs.log import Log
from armid.robot.robot import Robot


def recorded_inputs(log: Log, robot: Robot) -> FloatArray:
    """Positions, velocities and accelerations of a log after conditioning, shape [n_samples, 3 n_joints]."""
    samples = condition(log, robot)
    return np.hstack([samples.q, samples.qd, samples.qdd])


def excitation_of(found: Inspection, inputs: npt.ArrayLike) -> Excitation:
    """Which of the base parameters a motion excites, and how well: the persistent-excitation test of seed 001.

    Deviations are predicted for the torque noise that excitation design assumes (half a per cent of the torque limits).

    Args:
        found: what torque can identify of this arm at all.
        inputs: q, qd, qdd of the motion in drive coordinates [rad or m, /s, /s^2], shape [n_samples, 3 n_joints].

    Raises:
        InputError: something else than torque is measured; then poses matter, not motions.
    """
    if found.quantities != (Quantity.TORQUE,):
        measured = " and ".join(found.quantities)
        raise InputError("excitation", f"{measured} is measured", "a motion excites the parameters in torque alone")
    source = sources_for(found.robot, found.quantities, found.effects)[0]
    x = np.asarray(inputs, dtype=np.float64)
    information = accumulate(source, x, np.zeros((len(x), len(source.channels))))
    noise = assumed_noise(found.robot, len(source.channels))
    return excitation(information, found.base, dict(zip(source.channels, map(float, noise), strict=True)))
