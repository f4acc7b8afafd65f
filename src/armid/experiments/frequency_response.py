"""Inertia and viscous friction of one axis from its response to sines; seed 002 eqs. 8-11.

    J qdd + mu qd = tau   =>   Gamma / Omega = mu + i (w J - k / w) + w^2 J d

with the phasors Omega of velocity and Gamma of torque at w. The slope k of gravity along the axis and the time d by which
torque is stamped late are zero in the seed; with enough frequencies both are fitted, because a lag of a single
sample passes for viscous friction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.experiments.sweep_motion import check_frequencies
from armid.logs.log import Channel, Log
from armid.notes import Note, Severity
from armid.robot.robot import Robot

Complex = npt.NDArray[np.complex128]

FEWEST_PERIODS = 3.0
"""Of the slowest sine: with fewer, drift and sine cannot be told apart."""

DRIFT_DEGREE = 3
"""Of the polynomial that takes up constant velocity, Coulomb friction and gravity along the way."""

SEGMENTS = 6
"""Stretches the steady part is divided into for the standard deviation."""

OTHER_AXES = 0.02
"""Velocity of another axis relative to the moving one's: above this Coriolis torque and coupling are no longer small."""

SLOPE_SHARE = 0.02
"""Of w^2 J: a gravity slope larger than this shifts J by as much unless it is fitted."""


@dataclass(frozen=True, eq=False)
class Line:
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


@dataclass(frozen=True, eq=False)
class AxisMeasurement:
    """One axis at one pose.

    Args:
        axis: name of the joint.
        pose: mean position of all joints, shape [n_joints].
        inertia: load side, rotor included [kg m^2 or kg].
        viscous: [N m s/rad or N s/m].
        slope: of gravity along the axis [N m/rad or N/m]; zero when it was not fitted.
        lag: of torque behind position [s]; zero when it was not fitted.
        inertia_deviation, viscous_deviation: standard deviations from stretches of the recording.
        lines: the response at each frequency.
        notes: what a reader must know; one of severity error makes the measurement unusable.
    """

    axis: str
    pose: FloatArray
    inertia: float
    viscous: float
    slope: float
    lag: float
    inertia_deviation: float
    viscous_deviation: float
    lines: tuple[Line, ...]
    notes: tuple[Note, ...] = ()

    @property
    def usable(self) -> bool:
        return not any(note.severity is Severity.ERROR for note in self.notes)


@dataclass(frozen=True, slots=True)
class ResponseSettings:
    """How a recording is analysed.

    Args:
        frequencies: [Hz]; found in the spectrum when empty.
        slope: fit the slope of gravity too; None: when there are two frequencies or more.
        lag: fit a lag of torque too; None: when there are three frequencies or more.
        window: (start, end) [s] of the steady part; found by the velocity when None.
        torque: channel; the motor side's by default.
    """

    frequencies: tuple[float, ...] = ()
    slope: bool | None = None
    lag: bool | None = None
    window: tuple[float, float] | None = None
    torque: Channel | None = None


def axis_response(log: Log, robot: Robot, settings: ResponseSettings | None = None) -> AxisMeasurement:
    """Inertia and viscous friction of the axis that moves in a recording.

    Raises:
        InputError: no torque, no axis that moves alone, frequencies above Nyquist, too few periods.
    """
    settings = settings or ResponseSettings()
    channel = torque_channel(log, settings)
    axis = moving_axis(log, robot)
    window = settings.window or steady_window(log, axis)
    inside = (log.time >= window[0]) & (log.time <= window[1])
    t, q, tau = log.time[inside], log[Channel.POSITION][inside], log[channel][inside, axis]
    rate = sampling_rate(log.name, t)
    name = robot.joint_names[axis]
    frequencies = settings.frequencies or found_frequencies(t, q[:, axis], rate, name)
    check_frequencies(name, frequencies, rate)
    check_length(log.name, t, frequencies)
    lines = response(t, q[:, axis], tau, frequencies)
    options = {
        "slope": len(lines) > 1 if settings.slope is None else settings.slope,
        "lag": len(lines) > 2 if settings.lag is None else settings.lag,
    }
    inertia, viscous, slope, lag = fitted(lines, **options)
    parts = [fitted(part, **options) for part in stretches(t, q[:, axis], tau, frequencies)]
    deviation = np.std(np.array(parts), axis=0, ddof=1) / np.sqrt(len(parts)) if len(parts) > 1 else np.full(4, inf)
    measured = AxisMeasurement(
        name, q.mean(axis=0), inertia, viscous, slope, lag, float(deviation[0]), float(deviation[1]), lines
    )
    return replace(measured, notes=tuple(validity(measured, log, robot, axis, inside)))


def torque_channel(log: Log, settings: ResponseSettings) -> Channel:
    """The motor side's torque; a joint torque sensor would not see the rotor."""
    order = (Channel.MOTOR_TORQUE, Channel.COMMANDED_TORQUE, Channel.LINK_TORQUE)
    wanted = (settings.torque,) if settings.torque else order
    for channel in wanted:
        if channel in log:
            return channel
    raise InputError(
        log.name, f"no torque to respond to; there is {', '.join(c.value for c in log.channels)}", "record motor torque"
    )


def moving_axis(log: Log, robot: Robot) -> int:
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


def steady_window(log: Log, axis: int) -> tuple[float, float]:
    """Where the axis moves: its velocity, averaged over half a second, is at least half of the largest."""
    t, q = log.time, log[Channel.POSITION][:, axis]
    rate = sampling_rate(log.name, t)
    width = max(3, int(0.5 * rate))
    slow = np.convolve(np.gradient(q, t), np.ones(width) / width, mode="same")
    moving = np.flatnonzero(np.abs(slow) > 0.5 * np.abs(slow).max())
    # Half of the averaging window is still on the ramp.
    return float(t[moving[0]] + 0.5), float(t[moving[-1]] - 0.5)


def sampling_rate(name: str, t: FloatArray) -> float:
    steps = np.diff(t)
    if len(t) < 16 or not (steps > 0.0).all():
        raise InputError(name, "time does not increase, or too few samples", "a recording at a constant rate")
    return float(1.0 / np.median(steps))


def found_frequencies(t: FloatArray, q: FloatArray, rate: float, name: str) -> tuple[float, ...]:
    """Peaks of the velocity's spectrum that stand out, refined between its lines."""
    v = np.gradient(q, t)
    trend = np.polynomial.polynomial.Polynomial.fit(t, v, DRIFT_DEGREE)(t)
    window = np.hanning(len(v))
    size = np.abs(np.fft.rfft((v - trend) * window, 8 * len(v)))
    f = np.fft.rfftfreq(8 * len(v), 1.0 / rate)
    floor = np.median(size[f < 0.4 * rate])
    peaks = [
        i
        for i in range(1, len(size) - 1)
        if size[i] >= size[i - 1] and size[i] > size[i + 1] and size[i] > 0.2 * size.max()
    ]
    if not peaks or size.max() < 10.0 * floor:
        raise InputError(f"joint {name!r}", "no sine stands out of its velocity", "give --frequency-hz")
    return refined(t, q, [float(f[i]) for i in peaks])


def refined(t: FloatArray, q: FloatArray, frequencies: Sequence[float], *, iterations: int = 8) -> tuple[float, ...]:
    """Frequencies that explain the position best, by Gauss-Newton from near ones: a hundredth of a hertz off shifts phases."""
    f = np.array(frequencies)
    middle = 0.5 * (t[0] + t[-1])
    for _ in range(iterations):
        c = phasors(t, q, f.tolist())
        waves = c * np.exp(2j * np.pi * np.outer(t, f))
        s = 2.0 * (t - t[0]) / (t[-1] - t[0]) - 1.0
        drift = np.polynomial.legendre.legvander(s, DRIFT_DEGREE)
        # Derivative by frequency around the middle of the window, where it is not confused with the phase.
        by_frequency = (2j * np.pi * (t - middle)[:, np.newaxis] * waves).real
        A = np.hstack([by_frequency, drift, waves.real, waves.imag])
        window = (np.cos(0.5 * np.pi * s) + 1e-9)[:, np.newaxis]
        norms = np.linalg.norm(A * window, axis=0)
        step = np.linalg.lstsq(A * window / norms, (q * window[:, 0]), rcond=None)[0] / norms
        f = f + step[: len(f)]
    return tuple(float(x) for x in f)


def check_length(name: str, t: FloatArray, frequencies: Sequence[float]) -> None:
    periods = (t[-1] - t[0]) * min(frequencies)
    if periods < FEWEST_PERIODS:
        raise InputError(
            name,
            f"{periods:.2g} periods of {min(frequencies):g} Hz in the steady part",
            f"record at least {FEWEST_PERIODS:g}",
        )


def phasors(t: FloatArray, x: FloatArray, frequencies: Sequence[float]) -> Complex:
    """Complex amplitudes c with x = sum of Re(c exp(i w t)) + drift, by weighted least squares over all lines at once.

    The window falls to zero at both ends, so that what is left of the drift leaks nowhere; fitting all lines and the drift
    together leaves no leakage between them.

    Args:
        t: [s], shape [n_samples].
        x: shape [n_samples].
        frequencies: [Hz].
    """
    s = 2.0 * (t - t[0]) / (t[-1] - t[0]) - 1.0
    drift = np.polynomial.legendre.legvander(s, DRIFT_DEGREE)
    w = 2.0 * np.pi * np.asarray(frequencies)
    angle = t[:, np.newaxis] * w
    A = np.hstack([drift, np.cos(angle), -np.sin(angle)])
    window = np.cos(0.5 * np.pi * s) + 1e-9
    solution = np.linalg.lstsq(A * window[:, np.newaxis], x * window, rcond=None)[0]
    n, first = len(w), drift.shape[1]
    return np.asarray(solution[first : first + n] + 1j * solution[first + n :])


def response(t: FloatArray, q: FloatArray, tau: FloatArray, frequencies: Sequence[float]) -> tuple[Line, ...]:
    """Phasors of velocity (i w times the position's, no differentiation) and torque at every frequency."""
    Q, T = phasors(t, q, frequencies), phasors(t, tau, frequencies)
    return tuple(Line(float(f), complex(2j * np.pi * f * Q[k]), complex(T[k])) for k, f in enumerate(frequencies))


def fitted(lines: Sequence[Line], *, slope: bool = False, lag: bool = False) -> tuple[float, float, float, float]:
    """J, mu, gravity slope k and lag d by complex least squares of Gamma = (mu + i (w J - k / w) + w^2 J d) Omega."""
    if slope + lag + 2 > 2 * len(lines):
        raise InputError("frequencies", f"{len(lines)} for {slope + lag + 2} unknowns", "excite more frequencies")
    rows, y = [], []
    for line in lines:
        w, v = line.omega, line.velocity
        entries = [1j * w * v, v, *([-1j / w * v] if slope else []), *([w**2 * v] if lag else [])]
        rows += [[e.real for e in entries], [e.imag for e in entries]]
        y += [line.torque.real, line.torque.imag]
    A = np.array(rows)
    norms = np.linalg.norm(A, axis=0)
    x = np.linalg.lstsq(A / norms, np.array(y), rcond=None)[0] / norms
    return float(x[0]), float(x[1]), float(x[2]) if slope else 0.0, float(x[-1] / x[0]) if lag else 0.0


def stretches(t: FloatArray, q: FloatArray, tau: FloatArray, frequencies: Sequence[float]) -> list[tuple[Line, ...]]:
    """The response of each of several stretches, as long as they hold enough periods."""
    periods = (t[-1] - t[0]) * min(frequencies)
    count = int(min(SEGMENTS, periods // FEWEST_PERIODS))
    bounds = np.linspace(0, len(t), count + 1).astype(int)
    pairs = pairwise(bounds)
    return [response(t[a:b], q[a:b], tau[a:b], frequencies) for a, b in pairs] if count > 1 else []


def validity(measured: AxisMeasurement, log: Log, robot: Robot, axis: int, inside: npt.NDArray[np.bool_]) -> list[Note]:
    """Whether the assumptions behind eq. 8 hold."""
    q, t = log[Channel.POSITION][inside], log.time[inside]
    lines = measured.lines
    offset = float((q[-1, axis] - q[0, axis]) / (t[-1] - t[0]))
    notes = []
    swing = sum(abs(line.velocity) for line in lines)
    if swing >= abs(offset):
        text = f"velocity changes sign (offset {offset:.3g}, sine {swing:.3g}): Coulomb friction enters the response"
        notes.append(Note("velocity-reverses", Severity.ERROR, text, measured.axis))
    for k, name in enumerate(robot.joint_names):
        if k != axis:
            others = np.abs(phasors(t, q[:, k], [line.frequency for line in lines]))
            own = np.array([abs(line.velocity) / line.omega for line in lines])
            share = float((others / own).max())
            drift = float(np.abs(q[-1, k] - q[0, k]) / max(abs(q[-1, axis] - q[0, axis]), 1e-12))
            if max(share, drift) > OTHER_AXES:
                text = f"moves too ({100 * max(share, drift):.1f} % of {measured.axis}): Coriolis and coupling torque enter"
                notes.append(Note("other-axis-moves", Severity.ERROR, text, name))
    slowest = min(line.omega for line in lines)
    ratio = abs(measured.slope) / (slowest**2 * abs(measured.inertia))
    if ratio > SLOPE_SHARE:
        text = f"gravity changes along the axis: its slope is {100 * ratio:.1f} % of w^2 J at the slowest sine, and was fitted"
        notes.append(Note("gravity-slope", Severity.INFO, text, measured.axis))
    if measured.inertia <= 0.0 or measured.viscous < 0.0:
        text = f"inertia {measured.inertia:.3g}, viscous friction {measured.viscous:.3g}: torque of the wrong sign or lagging"
        notes.append(Note("impossible-response", Severity.ERROR, text, measured.axis))
    return notes
