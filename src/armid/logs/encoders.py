"""What a calibration knows about encoders, applied to a recording; see `armid.kinematics.encoders`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kinematics.encoders import encoder_shift, encoder_terms
from armid.kinematics.model import KinematicModel
from armid.logs.log import Channel, Log, matched
from armid.notes import Note, Severity

Mask = npt.NDArray[np.bool_]

ENCODERS_CORRECTED = "encoders-corrected"
"""Code of the note on a log whose motion was corrected."""

_STEP = 1e-3
"""[s] of the differences along the motion. What they neglect is a millionth of a correction that is itself a thousandth."""

_ABSURD = 1e6
"""[rad or m] Rows beyond this are corrupt packets, which conditioning leaves out; they are passed on as they are."""


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
    sound = _believable(q)
    channels[Channel.POSITION] = shifted(q, encoder_shift(model, values, q[sound]), sound)
    if Channel.VELOCITY in ordered:
        qd = ordered[Channel.VELOCITY]
        moving = sound & _believable(qd)
        ahead, behind = (encoder_shift(model, values, q[moving] + h * qd[moving]) for h in (_STEP, -_STEP))
        channels[Channel.VELOCITY] = shifted(qd, (ahead - behind) / (2.0 * _STEP), moving)
        if Channel.ACCELERATION in ordered:
            qdd = ordered[Channel.ACCELERATION]
            moving = moving & _believable(qdd)
            channels[Channel.ACCELERATION] = shifted(
                qdd, _bend(model, values, q[moving], qd[moving], qdd[moving]), moving
            )
    names = ", ".join(model.names[term.parameter] for term in terms)
    note = Note(ENCODERS_CORRECTED, Severity.INFO, f"recorded motion corrected for {names}", log.name)
    return replace(ordered, channels=channels).with_notes((note,))


def _bend(model: KinematicModel, values: FloatArray, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Second time derivative of the shift along the motion, shape [n, n_joints]."""
    ahead, here, behind = (encoder_shift(model, values, q + h * qd + 0.5 * h**2 * qdd) for h in (_STEP, 0.0, -_STEP))
    return np.asarray((ahead - 2.0 * here + behind) / _STEP**2)


def shifted(values: FloatArray, shift: FloatArray, rows: Mask) -> FloatArray:
    """A channel with a shift added to some of its rows."""
    out = np.array(values)
    out[rows] += shift
    return out


def _believable(values: FloatArray) -> Mask:
    """Rows that are numbers of a sensible size, shape [n]."""
    return np.asarray(np.all(np.abs(values) < _ABSURD, axis=1), dtype=bool)
