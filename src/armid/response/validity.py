"""Whether the assumptions behind a frequency response hold; [RWTH2021] eq. 8."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import RELATIVE_LIMIT
from armid.notes import Note, Severity
from armid.outcome import Check
from armid.response.axis_fit import Excited
from armid.response.phasors import phasors
from armid.robot.robot import Robot

if TYPE_CHECKING:
    from armid.response.frequency_response import AxisMeasurement

_OTHER_TRAVEL = 0.02
"""Travel of another axis relative to the moving one's: above this Coriolis torque is no longer small."""

_OTHER_SWING = 0.15
"""Swing of another axis at the excited frequencies. Its coupling torque is taken out to first order and counts as doubt;
from here on the second order would be a per cent."""

_SLOPE_SHARE = 0.02
"""Of w^2 J: a gravity slope larger than this shifts J by as much unless it is fitted."""

_YIELDED_SHARE = 0.005
"""Of J: other axes that give way by more are worth a word."""

_BELOW_ZERO = 4.0
"""Standard deviations: viscous friction of a few of them below zero is noise, not a wrong sign."""

_CHIRP_LINES = 7
"""Frequencies of a chirp's band at which other axes are looked at, its two ends left out."""

Validity = tuple[tuple[Check, ...], tuple[Note, ...]]


def validity(
    measured: AxisMeasurement, excited: Excited, t: FloatArray, q: FloatArray, robot: Robot, axis: int
) -> Validity:
    """What one measurement is held against, and what a reader must know of it.

    Args:
        measured: one axis at one pose.
        excited: its frequencies.
        t: [s], shape [n_samples].
        q: positions of all joints, shape [n_samples, n_joints].
        robot: the arm.
        axis: that moves, 0-based.
    """
    parts = (
        _velocity_keeps_its_sign(measured, excited, t, q[:, axis]),
        _other_axes_stand_still(measured, excited, t, q, robot, axis),
        _possible_response(measured),
        _known_well(measured),
        ((), _gravity_slope(measured, excited)),
    )
    return tuple(c for checks, _ in parts for c in checks), tuple(n for _, notes in parts for n in notes)


def _velocity_keeps_its_sign(measured: AxisMeasurement, excited: Excited, t: FloatArray, q: FloatArray) -> Validity:
    """Coulomb friction stays at 0 Hz only as long as the velocity keeps its sign."""
    v = _steady_velocity(t, q, excited)
    offset = float((q[-1] - q[0]) / (t[-1] - t[0]))
    slowest = float((v * np.sign(offset)).min())
    text = (
        f"velocity changes sign (offset {abs(offset):.3g}, slowest {slowest:.3g}): Coulomb friction enters the response"
    )
    check = Check(
        code="velocity-keeps-sign",
        passed=slowest > 0.0,
        value=slowest,
        limit=0.0,
        message=f"{measured.axis}: {text}",
        subject=measured.axis,
    )
    return (check,), _told(check, "velocity-reverses", text, measured.axis)


def _steady_velocity(t: FloatArray, q: FloatArray, excited: Excited) -> FloatArray:
    """Velocity without encoder noise: mean plus the sines, or a moving average short against the fastest period."""
    if excited.lines:
        waves = phasors(t, q, excited.lines) * np.exp(2j * np.pi * np.outer(t, excited.lines))
        swing = (waves * (2j * np.pi * np.asarray(excited.lines))).real.sum(axis=1)
        return np.asarray(swing + (q[-1] - q[0]) / (t[-1] - t[0]))
    width = max(3, int(0.15 / (excited.high * float(np.median(np.diff(t))))))
    return np.asarray((q[width:] - q[:-width]) / (t[width:] - t[:-width]))


def _other_axes_stand_still(
    measured: AxisMeasurement, excited: Excited, t: FloatArray, q: FloatArray, robot: Robot, axis: int
) -> Validity:
    """Other axes must stand still: travel brings Coriolis torque, swing brings their share of the inertia matrix."""
    lines = excited.lines or tuple(np.linspace(excited.low, excited.high, _CHIRP_LINES)[1:-1])
    own = np.abs(phasors(t, q[:, axis], lines))
    way = max(abs(float(q[-1, axis] - q[0, axis])), 1e-12)
    worst, name, notes = 0.0, "", []
    for k, other in enumerate(robot.joint_names):
        if k == axis:
            continue
        swing = float((np.abs(phasors(t, q[:, k], lines)) / own).max())
        travel = float(np.abs(q[-1, k] - q[0, k])) / way
        use = max(swing / _OTHER_SWING, travel / _OTHER_TRAVEL)
        if use > 1.0:
            text = (
                f"moves too ({100 * max(swing, travel):.1f} % of {measured.axis}): Coriolis and coupling torque enter"
            )
            notes.append(Note("other-axis-moves", Severity.ERROR, text, other))
        if use > worst:
            worst, name = use, other
    check = Check(
        code="others-stand-still",
        passed=worst <= 1.0,
        value=worst,
        limit=1.0,
        message=f"{name} moves while {measured.axis} is measured, {worst:.2g} times what can be taken out",
        subject=measured.axis,
    )
    if measured.coupling > _YIELDED_SHARE and not notes:
        text = f"other axes gave way; {100 * measured.coupling:.1f} % of the torque was theirs and is taken out"
        notes.append(Note("axes-give-way", Severity.INFO, text, measured.axis))
    return (check,), tuple(notes)


def _possible_response(measured: AxisMeasurement) -> Validity:
    """Inertia is positive, and friction does not drive."""
    J, mu = measured.inertia, measured.viscous
    score = mu / measured.viscous_deviation if measured.viscous_deviation > 0.0 else (0.0 if mu >= 0.0 else -np.inf)
    text = f"inertia {J:.3g}, viscous friction {mu:.3g}: torque of the wrong sign or lagging"
    check = Check(
        code="possible-response",
        passed=J > 0.0 and score >= -_BELOW_ZERO,
        value=float(score),
        limit=-_BELOW_ZERO,
        message=f"{measured.axis}: {text}",
        subject=measured.axis,
    )
    return (check,), _told(check, "impossible-response", text, measured.axis)


def _known_well(measured: AxisMeasurement) -> Validity:
    """Whether the inertia is known well enough to be of use."""
    relative = measured.inertia_deviation / abs(measured.inertia) if measured.inertia else np.inf
    check = Check(
        code="inertia-known",
        passed=not relative > RELATIVE_LIMIT,
        value=float(relative),
        limit=RELATIVE_LIMIT,
        message=f"{measured.axis}: its inertia is known to {100 * relative:.0f} % only: excite it more, or longer",
        subject=measured.axis,
        decisive=False,
    )
    return (check,), ()


def _gravity_slope(measured: AxisMeasurement, excited: Excited) -> tuple[Note, ...]:
    ratio = abs(measured.slope) / ((2.0 * np.pi * excited.low) ** 2 * abs(measured.inertia))
    if not ratio > _SLOPE_SHARE:
        return ()
    text = (
        f"gravity changes along the axis: its slope is {100 * ratio:.1f} % of w^2 J at the slowest sine, and was fitted"
    )
    return (Note("gravity-slope", Severity.INFO, text, measured.axis),)


def _told(check: Check, code: str, text: str, subject: str) -> tuple[Note, ...]:
    """A failing check as a finding."""
    return () if check.passed else (Note(code, Severity.ERROR, text, subject),)
