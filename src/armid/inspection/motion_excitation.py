"""What one motion, planned or recorded, excites of the parameters that could be identified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.identifiability.base import BaseParameters
from armid.identifiability.criteria import condition_numbers
from armid.identifiability.detection import detected_base, residual_noise
from armid.identifiability.excitation import Excitation, excitation
from armid.identifiability.expectation import assumed_noise, excitation_inputs
from armid.information.accumulate import accumulate
from armid.rows.torque import TorqueRows

if TYPE_CHECKING:
    from armid.logs.log import Log
    from armid.motions.trajectory import Trajectory


@dataclass(frozen=True, eq=False, kw_only=True)
class MotionExcitation:
    """What a motion excites, and what of it stands out of a recording's noise.

    Args:
        excitation: of the motion.
        condition_number: 2-norm, of the stacked base columns in SI units; what [Halper2024] minimises.
        condition_number_scaled: the same with columns of unit norm.
        detected: base parameters above the noise, with the rank decision; None without measured torque.
        noise: standard deviation of each channel's rows [N m, or N]; None without measured torque.
    """

    excitation: Excitation
    condition_number: float
    condition_number_scaled: float
    detected: BaseParameters | None = None
    noise: Mapping[str, float] | None = None

    @property
    def lost(self) -> tuple[str, ...]:
        """Base parameters that disappear in the noise; none without measured torque."""
        above = self.excitation.names if self.detected is None else self.detected.names
        return tuple(name for name in self.excitation.names if name not in above)

    def as_dict(self) -> dict[str, Any]:
        motion = self.excitation
        rows = zip(motion.names, motion.strength, motion.standard_deviations, motion.excited, strict=True)
        return {
            "persistent": motion.is_persistent,
            "condition_number": self.condition_number,
            "condition_number_scaled": self.condition_number_scaled,
            "alpha": motion.bounds[0],
            "beta": motion.bounds[1],
            "not_excited": list(motion.not_excited),
            "parameters": [
                {"name": name, "strength": float(strength), "standard_deviation": float(deviation), "excited": excited}
                for name, strength, deviation, excited in rows
            ],
            "open_directions": [direction.as_dict() for direction in motion.unexcited_directions],
            **self._detection(),
        }

    def _detection(self) -> dict[str, Any]:
        """The rank decision tied to the noise of a log; nothing for a planned motion."""
        if self.detected is None:
            return {}
        decision = self.detected.decision
        return {
            "noise": dict(self.noise or {}),
            "above_noise": {
                "base_parameters": len(self.detected),
                **decision.as_dict(),
                "lost": list(self.lost),
            },
        }


def recorded_excitation(
    source: TorqueRows, base: BaseParameters, log: Log, *, noise: npt.ArrayLike | None = None
) -> MotionExcitation:
    """What a recorded motion excites, and which base parameters its torque can tell from noise.

    Args:
        source: rows of the measured torque.
        base: what torque can identify of this arm at all.
        log: with torque, or with the motion alone.
        noise: standard deviation of the torque per channel [N m, or N]; by default what the log's own best fit leaves,
            counted for the correlation that low-passing brings.

    Raises:
        InputError: the torque drowns in the noise.
    """
    from armid.logs.conditioning.condition import (
        condition as conditioned,
    )  # filters load SciPy, which only a recording needs

    samples = conditioned(log, source.robot)
    if not samples.torques:
        return _excitation_of(source, base, samples.inputs(), noise=noise)
    information = accumulate(source, samples.inputs(), samples.torque(source.effects.torques))
    cutoff = samples.cutoff_hz
    correlated = max(1.0, samples.rate / (2.0 * cutoff)) if cutoff else 1.0
    own = (
        residual_noise(information, samples_per_independent=correlated)
        if noise is None
        else _named_noise(source, noise)
    )
    condition, scaled = condition_numbers(information, base)
    return MotionExcitation(
        excitation=excitation(information, base, own),
        condition_number=condition,
        condition_number_scaled=scaled,
        detected=detected_base(information, base, own),
        noise=own,
    )


def planned_excitation(
    source: TorqueRows, base: BaseParameters, trajectory: Trajectory, *, noise: npt.ArrayLike | None = None
) -> MotionExcitation:
    """What a planned motion excites.

    Raises:
        InputError: it moves other joints than the arm has.
    """
    names = source.robot.joint_names
    if set(trajectory.joint_names) != set(names):
        raise InputError("trajectory", f"moves {', '.join(trajectory.joint_names)}", ", ".join(names))
    n = len(names)
    order = [trajectory.joint_names.index(name) for name in names]
    x = excitation_inputs(trajectory)
    ordered = np.hstack([x[:, k * n : (k + 1) * n][:, order] for k in range(3)])
    return _excitation_of(source, base, ordered, noise=noise)


def _excitation_of(
    source: TorqueRows, base: BaseParameters, inputs: npt.ArrayLike, *, noise: npt.ArrayLike | None = None
) -> MotionExcitation:
    """Which of the base parameters a motion excites, and how well: the persistent-excitation test of [Khosla1985].

    Args:
        source: rows of the measured torque.
        base: what torque can identify of this arm at all.
        inputs: q, qd, qdd of the motion in drive coordinates [rad or m, /s, /s^2], shape [n_samples, 3 n_joints].
        noise: standard deviation of the torque per channel [N m, or N]; by default what excitation design assumes
            (half a per cent of the torque limits).
    """
    x: FloatArray = np.asarray(inputs, dtype=np.float64)
    information = accumulate(source, x, np.zeros((len(x), len(source.channels))))
    deviations = assumed_noise(source.robot, len(source.channels)) if noise is None else noise
    condition, scaled = condition_numbers(information, base)
    return MotionExcitation(
        excitation=excitation(information, base, _named_noise(source, deviations)),
        condition_number=condition,
        condition_number_scaled=scaled,
    )


def _named_noise(source: TorqueRows, noise: npt.ArrayLike) -> dict[str, float]:
    """One deviation per channel, by name; one number stands for all."""
    values = np.atleast_1d(np.asarray(noise, dtype=np.float64))
    n = len(source.channels)
    if values.shape not in ((1,), (n,)) or not (np.isfinite(values) & (values > 0.0)).all():
        raise InputError("noise", f"{values.tolist()}", f"one positive number, or {n}: one for each torque channel")
    return dict(zip(source.channels, map(float, np.broadcast_to(values, n)), strict=True))
