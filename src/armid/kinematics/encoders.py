"""What a calibration knows about encoders: from what they show to where the joints stand.

A correction holds two kinds of joint terms. Zeros and couplings belong to the arm: they are constants of its chain and
of its transmission, and torque passes through them (`tau_drive = C^T tau_joint`). Scale, eccentricity and the sag under
gravity lie between the joint and the encoder that reports it: torque knows nothing of them, so they change the recorded
motion instead. The calibration was made with the same encoders, whichever side of the transmission they sit on.
"""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.dynamics import gravity
from armid.kinematics.calibrated import calibrated_robot
from armid.kinematics.model import JointTerm, KinematicModel, TermBasis, basis_values

_ENCODER = (TermBasis.POSITION, TermBasis.SIN, TermBasis.COS, TermBasis.TORQUE)
"""Terms that change the recorded motion: joint gain, eccentricity (two harmonics) and compliance."""


def encoder_terms(model: KinematicModel, values: FloatArray) -> tuple[JointTerm, ...]:
    """The terms of a correction that lie between joint and encoder, those with a value only."""
    return tuple(term for term in model.terms if term.basis in _ENCODER and values[term.parameter] != 0.0)


def without_encoder_terms(model: KinematicModel, values: FloatArray) -> FloatArray:
    """The parameters that belong to the arm itself."""
    out = np.array(values)
    for term in encoder_terms(model, values):
        out[term.parameter] = 0.0
    return out


def encoder_shift(model: KinematicModel, values: FloatArray, q: FloatArray) -> FloatArray:
    """Where the joints stand minus what their encoders show, in drive coordinates [rad or m], shape [n, n_joints].

    `C^-1 sum parameter * basis(q)`: the terms act on geometric coordinates, `q_geometric = C q + terms`, with the
    corrected coupling C.

    Args:
        model, values: of the correction.
        q: what the encoders show, shape [n, n_joints].
    """
    terms = encoder_terms(model, values)
    torque = gravity(model.robot, q) if any(term.basis is TermBasis.TORQUE for term in terms) else None
    out = np.zeros_like(q)
    for term in terms:
        out[:, term.joint] += values[term.parameter] * basis_values(term, q, torque)
    coupling = calibrated_robot(model, without_encoder_terms(model, values)).coupling
    return out if coupling is None else np.asarray(np.linalg.solve(coupling, out.T).T)
