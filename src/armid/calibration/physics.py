"""What was found beside what can be: signs, sizes, and joint ranges beyond which nothing was measured."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.thresholds import BEYOND_RANGE, LARGEST_ECCENTRICITY, WRONG_SIGN
from armid.kinematics.measurement import Measurements
from armid.kinematics.model import KinematicModel, TermBasis
from armid.notes import Note, Severity


def physics_notes(fit: KinematicFit) -> list[Note]:
    """Joints that rise under their load, and once-per-turn errors larger than a gear allows."""
    model, values, sigma = fit.model, fit.after.values, np.sqrt(np.diag(fit.after.covariance))
    notes = []
    giving = [term.parameter for term in model.terms if term.basis is TermBasis.TORQUE]
    limit = NormalDist().inv_cdf(1.0 - WRONG_SIGN.value / max(len(giving), 1))
    for k in giving:
        if values[k] > limit * max(sigma[k], 1e-300):
            text = (
                f"{model.names[k]} = {values[k]:.2g} +- {sigma[k]:.1g} {model.parameters[k].unit}: the joint would rise under "
                "its load; masses, the direction of gravity or the sign of a joint are wrong, or it stands for something else"
            )
            notes.append(Note("compliance-sign", Severity.WARNING, text, model.names[k]))
    for joint, name in enumerate(model.robot.joint_names):
        pair = [t.parameter for t in model.terms if t.joint == joint and t.basis in (TermBasis.SIN, TermBasis.COS)]
        size = float(np.linalg.norm(values[pair])) if pair else 0.0
        if size > LARGEST_ECCENTRICITY.value:
            text = (
                f"eccentricity of {name} is {1e3 * size:.1f} mrad, more than a gear or an encoder leaves: a range too short to "
                f"tell it from the zero, or another error in its place{_counting(model, joint)}"
            )
            notes.append(Note("eccentricity-size", Severity.WARNING, text, name))
    return notes


def _counting(model: KinematicModel, joint: int) -> str:
    """What tells an encoder that counts too much or too little, where no term of the model does."""
    if any(t.joint == joint and t.basis is TermBasis.POSITION for t in model.terms):
        return ""
    return ", such as an encoder or a gear that counts too much (try --terms offset,gain)"


def load_notes(fit: KinematicFit, measurements: Measurements) -> list[Note]:
    """Under which torque joints give way, where it is not the described arm's own weight."""
    if not any(term.basis is TermBasis.TORQUE for term in fit.model.terms) or measurements.torque is None:
        return []
    share = float(np.isfinite(measurements.torque).all(axis=1).mean())
    text = f"compliance under measured joint torque in {100 * share:.0f} % of the rows"
    if not fit.model.robot.inertial.any():
        text += "; the description has no masses, so that compensate and predictions elsewhere leave the sag out"
    return [Note("measured-torque", Severity.INFO, text)]


def beyond_range(calibrated: FloatArray, used: FloatArray) -> npt.NDArray[np.bool_]:
    """Which joint positions leave the range where they were calibrated, by more than the edge of a grid.

    Args:
        calibrated: configurations of the fit, or the two ends of their ranges, shape [n, n_joints].
        used: configurations where it is applied, shape [m, n_joints].
    """
    low, high = calibrated.min(axis=0), calibrated.max(axis=0)
    margin = np.maximum(BEYOND_RANGE.value * (high - low), 1e-6)
    return np.asarray((used < low - margin) | (used > high + margin))


def range_notes(names: Sequence[str], calibrated: FloatArray, used: FloatArray, what: str) -> list[Note]:
    """Joints that leave the range where they were calibrated.

    Args:
        names: of the joints.
        calibrated: configurations of the fit, or the two ends of their ranges, shape [n, n_joints].
        used: configurations where it is applied, shape [m, n_joints].
        what: these, in words.
    """
    low, high = calibrated.min(axis=0), calibrated.max(axis=0)
    furthest = np.maximum(low - used, used - high).max(axis=0, initial=-np.inf)
    leaving = np.unique(np.nonzero(beyond_range(calibrated, used))[1])
    outside = [f"{names[k]} by {furthest[k]:.2g} beyond {low[k]:.2g} to {high[k]:.2g}" for k in leaving]
    if not outside:
        return []
    text = f"{what} leave the calibrated joint ranges ({', '.join(outside)}; rad or m): errors there were not measured"
    return [Note("beyond-range", Severity.WARNING, text)]
