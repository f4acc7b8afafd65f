"""Inertia and viscous friction of one axis from its response to sines or a chirp; [RWTH2021] eqs. 8-11.

    J qdd + mu qd = tau   =>   Gamma / Omega = mu + i w J

with the phasors Omega of velocity and Gamma of torque at w: magnitude and phase give J and mu line by line. Gravity along the
axis, a late torque and other axes that give way are nought in [RWTH2021]; the fit over all frequencies (`axis_fit`) has
them too, because on a large arm each of them is several per cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.log import Channel, Log
from armid.notes import Note
from armid.outcome import Check
from armid.response.axis_fit import AxisFit, fit_axis
from armid.response.excitation import check_length, excitation_of, sampling_rate
from armid.response.phasors import phasors
from armid.response.validity import validity
from armid.robot.robot import JointKind, Robot


@dataclass(frozen=True, eq=False)
class ResponseLine:
    """The response at one frequency.

    Args:
        frequency: [Hz].
        velocity: phasor of the axis' velocity [rad/s or m/s].
        torque: phasor of its torque [N m or N].
    """

    frequency: float
    velocity: complex
    torque: complex

    @property
    def omega(self) -> float:
        return 2.0 * np.pi * self.frequency

    @property
    def magnitude(self) -> float:
        """|Omega / Gamma|; eq. 9."""
        return abs(self.velocity / self.torque)

    @property
    def phase(self) -> float:
        """arg(Omega / Gamma) [rad]; -pi/2 without friction; eq. 10."""
        return float(np.angle(self.velocity / self.torque))

    @property
    def inertia(self) -> float:
        """Eq. 11."""
        return 1.0 / (self.omega * self.magnitude * float(np.sqrt(1.0 + 1.0 / np.tan(self.phase) ** 2)))

    @property
    def viscous(self) -> float:
        """Eq. 10."""
        return -self.omega * self.inertia / float(np.tan(self.phase))

    def as_dict(self) -> dict[str, float]:
        return {
            "frequency_hz": self.frequency,
            "magnitude": self.magnitude,
            "phase": self.phase,
            "inertia": self.inertia,
            "viscous": self.viscous,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class AxisMeasurement:
    """One axis at one pose.

    Args:
        axis: name of the joint.
        pose: mean position of all joints, shape [n_joints].
        inertia: load side, rotor included [kg m^2 or kg].
        viscous: [N m s/rad or N s/m].
        slope: mean slope of gravity along the axis [N m/rad or N/m]; zero when it was not fitted.
        lag: of torque behind position [s]; zero when it was not fitted.
        inertia_deviation, viscous_deviation: standard deviations, from the torque around the excited frequencies.
        lines: the response at each frequency; a chirp has none.
        coupling: what other axes that gave way would have added to the inertia, relative.
        checks: what the measurement was held against; a decisive one that fails makes it unusable.
        notes: what a reader must know.
    """

    axis: str
    pose: FloatArray
    inertia: float
    viscous: float
    slope: float
    lag: float
    inertia_deviation: float
    viscous_deviation: float
    lines: tuple[ResponseLine, ...]
    coupling: float = 0.0
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether every decisive check holds."""
        return all(check.passed for check in self.checks if check.decisive)

    def as_dict(self) -> dict[str, Any]:
        return {
            "axis": self.axis,
            "inertia": self.inertia,
            "viscous": self.viscous,
            "standard_deviation": self.inertia_deviation,
            "standard_deviation_viscous": self.viscous_deviation,
            "gravity_slope": self.slope,
            "torque_lag": self.lag,
            "coupling": self.coupling,
            "pose": self.pose,
            "lines": [line.as_dict() for line in self.lines],
            "usable": self.usable,
            "notes": [note.as_dict() for note in self.notes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSettings:
    """How a recording is analysed.

    Args:
        frequencies: of the sines [Hz]; found in the spectrum when empty.
        band: lowest and highest frequency of a chirp [Hz]; found in the spectrum when there are no sines.
        slope: fit gravity along the axis.
        lag: fit a lag of torque too; None: when frequencies are far enough apart.
        window: (start, end) [s] of the steady part; found by the velocity when None.
        torque: channel; the motor side's by default.
    """

    frequencies: tuple[float, ...] = ()
    band: tuple[float, float] | None = None
    slope: bool = True
    lag: bool | None = None
    window: tuple[float, float] | None = None
    torque: Channel | None = None


def axis_response(log: Log, robot: Robot, settings: ResponseSettings | None = None) -> AxisMeasurement:
    """Inertia and viscous friction of the axis that moves in a recording.

    Raises:
        InputError: no torque, no axis that moves alone, frequencies above Nyquist, too few periods.
    """
    settings = settings or ResponseSettings()
    channel = _torque_channel(log, settings)
    axis = _moving_axis(log, robot)
    window = settings.window or _steady_window(log, axis)
    inside = (log.time >= window[0]) & (log.time <= window[1])
    t, q, tau = log.time[inside], log[Channel.POSITION][inside], log[channel][inside]
    excited = excitation_of(
        t, q[:, axis], settings.frequencies, settings.band, axis=robot.joint_names[axis], name=log.name
    )
    check_length(log.name, t, excited.low)
    gravity = _gravity_functions(robot, axis, q[:, axis]) if settings.slope else np.zeros((0, len(t)))
    others = [(q[:, j], tau[:, j]) for j in range(robot.n_joints) if j != axis]
    lag = excited.several if settings.lag is None else settings.lag
    fit = fit_axis(t, q[:, axis], tau[:, axis], gravity, excited, lag=lag, others=others)
    measured = AxisMeasurement(
        axis=robot.joint_names[axis],
        pose=q.mean(axis=0),
        inertia=fit.inertia,
        viscous=fit.viscous,
        slope=_mean_slope(fit, gravity, q[:, axis]),
        lag=fit.lag,
        inertia_deviation=fit.inertia_deviation,
        viscous_deviation=fit.viscous_deviation,
        lines=_response(t, q[:, axis], tau[:, axis], excited.lines),
        coupling=fit.coupling,
    )
    checks, notes = validity(measured, excited, t, q, robot, axis)
    return replace(measured, checks=checks, notes=notes)


def _gravity_functions(robot: Robot, axis: int, q: FloatArray) -> FloatArray:
    """What gravity along one moving axis is made of, shape [k, n_samples].

    An axis that turns alone carries one rigid body: its torque is one sine of its angle. A prismatic one carries a constant.
    A drive that turns several joints at once carries several sines; a parabola follows them over the way of a measurement.
    """
    if robot.coupling is not None and np.count_nonzero(robot.coupling[:, axis]) > 1:
        x = q - q.mean()
        return np.array([x, x**2])
    if robot.joints[axis].kind is JointKind.PRISMATIC:
        return np.zeros((0, len(q)))
    angle = q if robot.coupling is None else q * robot.coupling[axis, axis]
    return np.array([np.cos(angle), np.sin(angle)])


def _mean_slope(fit: AxisFit, gravity: FloatArray, q: FloatArray) -> float:
    """Mean derivative of the fitted gravity by position: its change over the way, plus nothing else.

    The regression slope over all samples, since the sines swing around every one of them.
    """
    if not len(gravity):
        return 0.0
    return float(np.polynomial.polynomial.polyfit(q - q.mean(), fit.gravity @ gravity, 1)[1])


def _torque_channel(log: Log, settings: ResponseSettings) -> Channel:
    """The motor side's torque; a joint torque sensor would not see the rotor."""
    order = (Channel.MOTOR_TORQUE, Channel.COMMANDED_TORQUE, Channel.LINK_TORQUE)
    wanted = (settings.torque,) if settings.torque else order
    for channel in wanted:
        if channel in log:
            return channel
    raise InputError(
        log.name, f"no torque to respond to; there is {', '.join(c.value for c in log.channels)}", "record motor torque"
    )


def _moving_axis(log: Log, robot: Robot) -> int:
    """The joint that travels furthest.

    Raises:
        InputError: nothing moves.
    """
    if Channel.POSITION not in log:
        raise InputError(log.name, "no joint positions", "record them")
    travel = np.ptp(log[Channel.POSITION], axis=0)
    axis = int(np.argmax(travel))
    if not travel[axis] > 1e-3:
        raise InputError(log.name, f"no joint moves more than {travel[axis]:.2g}", "record the excitation of one axis")
    assert len(travel) == robot.n_joints
    return axis


def _steady_window(log: Log, axis: int) -> tuple[float, float]:
    """Where the axis moves: its velocity, averaged over half a second, is at least half of the largest."""
    t, q = log.time, log[Channel.POSITION][:, axis]
    rate = sampling_rate(log.name, t)
    width = max(3, int(0.5 * rate))
    slow = np.convolve(np.gradient(q, t), np.ones(width) / width, mode="same")
    moving = np.flatnonzero(np.abs(slow) > 0.5 * np.abs(slow).max())
    # Half of the averaging window is still on the ramp.
    return float(t[moving[0]] + 0.5), float(t[moving[-1]] - 0.5)


def _response(t: FloatArray, q: FloatArray, tau: FloatArray, frequencies: Sequence[float]) -> tuple[ResponseLine, ...]:
    """Phasors of velocity (i w times the position's, no differentiation) and torque at every frequency."""
    if not frequencies:
        return ()
    Q, T = phasors(t, q, frequencies), phasors(t, tau, frequencies)
    return tuple(
        ResponseLine(float(f), complex(2j * np.pi * f * Q[k]), complex(T[k])) for k, f in enumerate(frequencies)
    )
