"""What one motion, planned or recorded, excites of the parameters that could be identified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.identifiability.base import BaseParameters
from armid.identifiability.detection import detected_base, residual_noise
from armid.identifiability.excitation import Excitation, excitation
from armid.identifiability.expectation import assumed_noise
from armid.information.accumulate import accumulate
from armid.inspection.inspection import Inspection, Quantity, sources_for
from armid.kernels.source import RowSource
from armid.logs.conditioning.condition import condition
from armid.logs.log import Log


@dataclass(frozen=True, eq=False)
class RecordedExcitation:
    """What a recording excites, and what of it stands out of its noise.

    Args:
        excitation: of its motion.
        detected: base parameters above the noise, with the rank decision; None without measured torque.
        noise: standard deviation of each channel's rows [N m, or N].
    """

    excitation: Excitation
    detected: BaseParameters | None = None
    noise: Mapping[str, float] | None = None


def recorded_excitation(found: Inspection, log: Log, *, noise: npt.ArrayLike | None = None) -> RecordedExcitation:
    """What a recorded motion excites, and which base parameters its torque can tell from noise.

    Args:
        found: what torque can identify of this arm at all.
        log: with torque, or with the motion alone.
        noise: standard deviation of the torque per channel [N m, or N]; by default what the log's own best fit leaves,
            counted for the correlation that low-passing brings.

    Raises:
        InputError: something else than torque is measured, or the torque drowns in the noise.
    """
    source = torque_rows(found)
    samples = condition(log, found.robot)
    x = samples.inputs()
    given = None if noise is None else named_noise(source, noise)
    if not samples.torques:
        return RecordedExcitation(excitation_of(found, x, noise=noise))
    torque = samples.torque(found.effects.torques)
    information = accumulate(source, x, torque)
    cutoff = samples.cutoff_hz
    correlated = max(1.0, samples.rate / (2.0 * cutoff)) if cutoff else 1.0
    own = given or residual_noise(information, samples_per_independent=correlated)
    return RecordedExcitation(
        excitation(information, found.base, own), detected_base(information, found.base, own), own
    )


def torque_rows(found: Inspection) -> RowSource:
    """The rows of measured torque.

    Raises:
        InputError: something else is measured; then poses matter, not motions.
    """
    if found.quantities != (Quantity.TORQUE,):
        measured = " and ".join(found.quantities)
        raise InputError("excitation", f"{measured} is measured", "a motion excites the parameters in torque alone")
    return sources_for(found.robot, found.quantities, found.effects)[0]


def named_noise(source: RowSource, noise: npt.ArrayLike) -> dict[str, float]:
    """One deviation per channel, by name; one number stands for all."""
    values = np.atleast_1d(np.asarray(noise, dtype=np.float64))
    n = len(source.channels)
    if values.shape not in ((1,), (n,)) or not (np.isfinite(values) & (values > 0.0)).all():
        raise InputError("noise", f"{values.tolist()}", f"one positive number, or {n}: one for each torque channel")
    return dict(zip(source.channels, map(float, np.broadcast_to(values, n)), strict=True))


def excitation_of(found: Inspection, inputs: npt.ArrayLike, *, noise: npt.ArrayLike | None = None) -> Excitation:
    """Which of the base parameters a motion excites, and how well: the persistent-excitation test of [Khosla1985].

    Args:
        found: what torque can identify of this arm at all.
        inputs: q, qd, qdd of the motion in drive coordinates [rad or m, /s, /s^2], shape [n_samples, 3 n_joints].
        noise: standard deviation of the torque per channel [N m, or N]; by default what excitation design assumes
            (half a per cent of the torque limits).

    Raises:
        InputError: something else than torque is measured; then poses matter, not motions.
    """
    source = torque_rows(found)
    x: FloatArray = np.asarray(inputs, dtype=np.float64)
    information = accumulate(source, x, np.zeros((len(x), len(source.channels))))
    deviations = assumed_noise(found.robot, len(source.channels)) if noise is None else noise
    return excitation(information, found.base, named_noise(source, deviations))
