"""What a calibration knows about encoders, applied to a recording: from what they showed to where the joints stood.

A correction holds two kinds of joint terms. Zeros and couplings belong to the arm: they are constants of its chain and
of its transmission, and torque passes through them (`tau_drive = C^T tau_joint`). Scale, eccentricity and the sag under
gravity lie between the joint and the encoder that reports it: torque knows nothing of them, so they change the recorded
motion instead. The calibration was made with the same encoders, whichever side of the transmission they sit on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.calibrated import calibrated_robot
from armid.calibration.model import Basis, JointTerm, KinematicModel, basis_values
from armid.kernels.dynamics import gravity
from armid.logs.log import Channel, Log, matched
from armid.notes import Note, Severity

Mask = npt.NDArray[np.bool_]

ENCODER = (Basis.POSITION, Basis.SIN, Basis.COS, Basis.TORQUE)
"""Terms that change the recorded motion: joint gain, eccentricity (two harmonics) and compliance."""

ENCODERS_CORRECTED = "encoders-corrected"
"""Code of the note on a log whose motion was corrected."""

STEP = 1e-3
"""[s] of the differences along the motion. What they neglect is a millionth of a correction that is itself a thousandth."""

ABSURD = 1e6
"""[rad or m] Rows beyond this are corrupt packets, which conditioning leaves out; they are passed on as they are."""


def encoder_terms(model: KinematicModel, values: FloatArray) -> tuple[JointTerm, ...]:
    """The terms of a correction that lie between joint and encoder, those with a value only."""
    return tuple(term for term in model.terms if term.basis in ENCODER and values[term.parameter] != 0.0)


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
    torque = gravity(model.robot, q) if any(term.basis is Basis.TORQUE for term in terms) else None
    out = np.zeros_like(q)
    for term in terms:
        out[:, term.joint] += values[term.parameter] * basis_values(term, q, torque)
    coupling = calibrated_robot(model, without_encoder_terms(model, values)).coupling
    return out if coupling is None else np.asarray(np.linalg.solve(coupling, out.T).T)


def corrected_log(log: Log, model: KinematicModel, values: FloatArray) -> Log:
    """The recording with the motion the joints really made; the same log when the correction has no encoder terms.

    Positions are shifted; recorded velocities and accelerations get the first and second time derivative of that shift
    along the motion. Commands, motor positions and torque stay as they were.

    Args:
        log: as recorded.
        model, values: of a correction made with the same encoders.
    """
    terms = encoder_terms(model, values)
    if not terms or Channel.POSITION not in log:
        return log
    ordered = matched(log, model.robot)
    channels = dict(ordered.channels)
    q = ordered[Channel.POSITION]
    sound = believable(q)
    channels[Channel.POSITION] = shifted(q, encoder_shift(model, values, q[sound]), sound)
    if Channel.VELOCITY in ordered:
        qd = ordered[Channel.VELOCITY]
        moving = sound & believable(qd)
        ahead, behind = (encoder_shift(model, values, q[moving] + h * qd[moving]) for h in (STEP, -STEP))
        channels[Channel.VELOCITY] = shifted(qd, (ahead - behind) / (2.0 * STEP), moving)
        if Channel.ACCELERATION in ordered:
            qdd = ordered[Channel.ACCELERATION]
            moving = moving & believable(qdd)
            channels[Channel.ACCELERATION] = shifted(
                qdd, bend(model, values, q[moving], qd[moving], qdd[moving]), moving
            )
    names = ", ".join(model.names[term.parameter] for term in terms)
    note = Note(ENCODERS_CORRECTED, Severity.INFO, f"recorded motion corrected for {names}", log.name)
    return replace(ordered, channels=channels).with_notes((note,))


def bend(model: KinematicModel, values: FloatArray, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Second time derivative of the shift along the motion, shape [n, n_joints]."""
    ahead, here, behind = (
        encoder_shift(model, values, q + h * qd + 0.5 * h**2 * qdd) for h in (STEP, 0.0, -STEP)
    )  # fmt: skip
    return np.asarray((ahead - 2.0 * here + behind) / STEP**2)


def shifted(values: FloatArray, shift: FloatArray, rows: Mask) -> FloatArray:
    """A channel with a shift added to some of its rows."""
    out = np.array(values)
    out[rows] += shift
    return out


def believable(values: FloatArray) -> Mask:
    """Rows that are numbers of a sensible size, shape [n]."""
    return np.asarray(np.all(np.abs(values) < ABSURD, axis=1), dtype=bool)
