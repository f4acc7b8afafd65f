"""Inertia and viscous friction of one axis from its response to sines or a chirp; [RWTH2021] eqs. 8-11.

    J qdd + mu qd = tau   =>   Gamma / Omega = mu + i w J

with the phasors Omega of velocity and Gamma of torque at w: magnitude and phase give J and mu line by line. Gravity along the
axis, a late torque and other axes that give way are nought in the seed; the fit over all frequencies (`axis_fit`) has
them too, because on a large arm each of them is several per cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.log import Channel, Log
from armid.motions.sweep import check_frequencies
from armid.notes import Note, Severity
from armid.response.axis_fit import AxisFit, Excited, fit_axis
from armid.response.modulation import Complex
from armid.robot.robot import JointKind, Robot

FEWEST_PERIODS = 3.0
"""Of the slowest sine: with fewer, drift and sine cannot be told apart."""

DRIFT_DEGREE = 3
"""Of the polynomial that takes up constant velocity, Coulomb friction and gravity along the way, line by line."""

OTHER_TRAVEL = 0.02
"""Travel of another axis relative to the moving one's: above this Coriolis torque is no longer small."""

OTHER_SWING = 0.15
"""Swing of another axis at the excited frequencies. Its coupling torque is taken out to first order and counts as doubt;
from here on the second order would be a per cent."""

MOST_LINES = 12
"""More peaks than this are the ripples of a chirp."""

CHIRP_RESIDUAL = 0.2
"""Of the oscillation: when sines at all peaks leave more, it was no sum of sines."""

CHIRP_FLOOR = 0.5
"""Of its level: where the spectrum of a chirp is above this the axis was excited."""

SLOPE_SHARE = 0.02
"""Of w^2 J: a gravity slope larger than this shifts J by as much unless it is fitted."""

YIELDED_SHARE = 0.005
"""Of J: other axes that give way by more are worth a word."""


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
    lines: tuple[ResponseLine, ...]
    coupling: float = 0.0
    notes: tuple[Note, ...] = ()

    @property
    def usable(self) -> bool:
        return not any(note.severity is Severity.ERROR for note in self.notes)


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
    channel = torque_channel(log, settings)
    axis = moving_axis(log, robot)
    window = settings.window or steady_window(log, axis)
    inside = (log.time >= window[0]) & (log.time <= window[1])
    t, q, tau = log.time[inside], log[Channel.POSITION][inside], log[channel][inside]
    excited = excitation_of(t, q[:, axis], settings, robot.joint_names[axis], log.name)
    check_length(log.name, t, excited.low)
    gravity = gravity_functions(robot, axis, q[:, axis]) if settings.slope else np.zeros((0, len(t)))
    others = [(q[:, j], tau[:, j]) for j in range(robot.n_joints) if j != axis]
    lag = excited.several if settings.lag is None else settings.lag
    fit = fit_axis(t, q[:, axis], tau[:, axis], gravity, excited, lag=lag, others=others)
    measured = AxisMeasurement(
        axis=robot.joint_names[axis],
        pose=q.mean(axis=0),
        inertia=fit.inertia,
        viscous=fit.viscous,
        slope=mean_slope(fit, gravity, q[:, axis]),
        lag=fit.lag,
        inertia_deviation=fit.inertia_deviation,
        viscous_deviation=fit.viscous_deviation,
        lines=response(t, q[:, axis], tau[:, axis], excited.lines),
        coupling=fit.coupling,
    )
    return replace(measured, notes=tuple(validity(measured, excited, t, q, robot, axis)))


def excitation_of(t: FloatArray, q: FloatArray, settings: ResponseSettings, axis: str, name: str) -> Excited:
    """The frequencies given, or those the spectrum shows.

    Raises:
        InputError: above Nyquist, not positive, or none to be seen.
    """
    rate = sampling_rate(name, t)
    if settings.band is not None:
        check_frequencies(axis, settings.band, rate)
        return Excited(min(settings.band), max(settings.band))
    if settings.frequencies:
        check_frequencies(axis, settings.frequencies, rate)
        return Excited(min(settings.frequencies), max(settings.frequencies), settings.frequencies)
    return found_excitation(t, q, rate, axis)


def gravity_functions(robot: Robot, axis: int, q: FloatArray) -> FloatArray:
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


def mean_slope(fit: AxisFit, gravity: FloatArray, q: FloatArray) -> float:
    """Mean derivative of the fitted gravity by position: its change over the way, plus nothing else.

    The regression slope over all samples, since the sines swing around every one of them.
    """
    if not len(gravity):
        return 0.0
    return float(np.polynomial.polynomial.polyfit(q - q.mean(), fit.gravity @ gravity, 1)[1])


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


def found_excitation(t: FloatArray, q: FloatArray, rate: float, axis: str) -> Excited:
    """Sines that stand out of the velocity's spectrum, refined between its bins; or the band of a chirp."""
    v = np.gradient(q, t)
    trend = np.polynomial.polynomial.Polynomial.fit(t, v, DRIFT_DEGREE)(t)
    f = np.asarray(np.fft.rfftfreq(8 * len(v), 1.0 / rate), dtype=np.float64)
    size, flat = (np.abs(np.fft.rfft((v - trend) * w, 8 * len(v))) for w in (np.hanning(len(v)), np.ones(len(v))))
    if size.max() < 10.0 * np.median(size[f < 0.4 * rate]):
        raise InputError(f"joint {axis!r}", "no sine stands out of its velocity", "give --frequency-hz")
    inner = size[1:-1]
    peaks = np.flatnonzero((inner >= size[:-2]) & (inner > size[2:]) & (inner > 0.2 * size.max())) + 1
    lines = refined(t, q, [float(f[i]) for i in peaks]) if len(peaks) <= MOST_LINES else ()
    if lines and unexplained(t, q, lines) < CHIRP_RESIDUAL:
        return Excited(min(lines), max(lines), lines)
    # The ends of a chirp lie at the ends of the recording, where a window would hide them.
    return Excited(*widest(f, flat > CHIRP_FLOOR * np.median(flat[flat > 0.5 * flat.max()])))


def unexplained(t: FloatArray, q: FloatArray, lines: Sequence[float]) -> float:
    """Share of the oscillation that these sines leave."""
    s = 2.0 * (t - t[0]) / (t[-1] - t[0]) - 1.0
    drift = np.polynomial.legendre.legvander(s, DRIFT_DEGREE)
    angle = 2.0 * np.pi * np.outer(t - t[0], lines)
    left = []
    for A in (drift, np.hstack([drift, np.cos(angle), np.sin(angle)])):
        left.append(float(np.linalg.norm(q - A @ np.linalg.lstsq(A, q, rcond=None)[0])))
    return left[1] / left[0]


def widest(f: FloatArray, above: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """First and last frequency of the longest run; gaps of a few bins (ripples of a chirp) do not end one."""
    places = np.flatnonzero(above)
    runs = np.split(places, np.flatnonzero(np.diff(places) > 8) + 1)
    best = max(runs, key=lambda run: int(run[-1] - run[0]))
    return float(f[best[0]]), float(f[best[-1]])


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
        if np.abs(step[: len(f)]).max() < 1e-7:
            break
    return tuple(float(x) for x in f)


def check_length(name: str, t: FloatArray, slowest: float) -> None:
    periods = (t[-1] - t[0]) * slowest
    if periods < FEWEST_PERIODS:
        raise InputError(
            name, f"{periods:.2g} periods of {slowest:g} Hz in the steady part", f"record at least {FEWEST_PERIODS:g}"
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


def response(t: FloatArray, q: FloatArray, tau: FloatArray, frequencies: Sequence[float]) -> tuple[ResponseLine, ...]:
    """Phasors of velocity (i w times the position's, no differentiation) and torque at every frequency."""
    if not frequencies:
        return ()
    Q, T = phasors(t, q, frequencies), phasors(t, tau, frequencies)
    return tuple(
        ResponseLine(float(f), complex(2j * np.pi * f * Q[k]), complex(T[k])) for k, f in enumerate(frequencies)
    )


def validity(
    measured: AxisMeasurement, excited: Excited, t: FloatArray, q: FloatArray, robot: Robot, axis: int
) -> list[Note]:
    """Whether the assumptions behind eq. 8 hold."""
    return [
        *reversal_notes(measured, excited, t, q[:, axis]),
        *other_axes_notes(measured, excited, t, q, robot, axis),
        *response_notes(measured, excited),
    ]


def reversal_notes(measured: AxisMeasurement, excited: Excited, t: FloatArray, q: FloatArray) -> list[Note]:
    """Coulomb friction stays at 0 Hz only as long as the velocity keeps its sign."""
    v = steady_velocity(t, q, excited)
    offset = float((q[-1] - q[0]) / (t[-1] - t[0]))
    slowest = float((v * np.sign(offset)).min())
    if slowest > 0.0:
        return []
    text = (
        f"velocity changes sign (offset {abs(offset):.3g}, slowest {slowest:.3g}): Coulomb friction enters the response"
    )
    return [Note("velocity-reverses", Severity.ERROR, text, measured.axis)]


def steady_velocity(t: FloatArray, q: FloatArray, excited: Excited) -> FloatArray:
    """Velocity without encoder noise: mean plus the sines, or a moving average short against the fastest period."""
    if excited.lines:
        waves = phasors(t, q, excited.lines) * np.exp(2j * np.pi * np.outer(t, excited.lines))
        swing = (waves * (2j * np.pi * np.asarray(excited.lines))).real.sum(axis=1)
        return np.asarray(swing + (q[-1] - q[0]) / (t[-1] - t[0]))
    width = max(3, int(0.15 / (excited.high * float(np.median(np.diff(t))))))
    return np.asarray((q[width:] - q[:-width]) / (t[width:] - t[:-width]))


def other_axes_notes(
    measured: AxisMeasurement, excited: Excited, t: FloatArray, q: FloatArray, robot: Robot, axis: int
) -> list[Note]:
    """Other axes must stand still: travel brings Coriolis torque, swing brings their share of the inertia matrix."""
    lines = excited.lines or tuple(np.linspace(excited.low, excited.high, 7)[1:-1])
    own = np.abs(phasors(t, q[:, axis], lines))
    way = max(abs(float(q[-1, axis] - q[0, axis])), 1e-12)
    notes = []
    for k, name in enumerate(robot.joint_names):
        if k == axis:
            continue
        share = float((np.abs(phasors(t, q[:, k], lines)) / own).max())
        drift = float(np.abs(q[-1, k] - q[0, k])) / way
        if drift > OTHER_TRAVEL or share > OTHER_SWING:
            text = f"moves too ({100 * max(share, drift):.1f} % of {measured.axis}): Coriolis and coupling torque enter"
            notes.append(Note("other-axis-moves", Severity.ERROR, text, name))
    if measured.coupling > YIELDED_SHARE and not notes:
        text = f"other axes gave way; {100 * measured.coupling:.1f} % of the torque was theirs and is taken out"
        notes.append(Note("axes-give-way", Severity.INFO, text, measured.axis))
    return notes


def response_notes(measured: AxisMeasurement, excited: Excited) -> list[Note]:
    notes = []
    ratio = abs(measured.slope) / ((2.0 * np.pi * excited.low) ** 2 * abs(measured.inertia))
    if ratio > SLOPE_SHARE:
        text = f"gravity changes along the axis: its slope is {100 * ratio:.1f} % of w^2 J at the slowest sine, and was fitted"
        notes.append(Note("gravity-slope", Severity.INFO, text, measured.axis))
    # Viscous friction of a few standard deviations below zero is noise, not a wrong sign.
    if measured.inertia <= 0.0 or measured.viscous < -4.0 * measured.viscous_deviation:
        text = f"inertia {measured.inertia:.3g}, viscous friction {measured.viscous:.3g}: torque of the wrong sign or lagging"
        notes.append(Note("impossible-response", Severity.ERROR, text, measured.axis))
    return notes
