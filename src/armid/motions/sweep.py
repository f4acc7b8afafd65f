"""Excitation of one axis at a time: sines on top of a constant velocity; [RWTH2021] sec. 2.4, [Gruendel2021].

The offset keeps the velocity from changing sign, so that Coulomb friction stays at 0 Hz; the other axes stand still, so that
there is neither Coriolis nor centrifugal torque in the axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import InputError
from armid.kernels.dynamics import inverse_dynamics
from armid.motions.limits import motion_limits
from armid.motions.trajectory import quintic, quintic_through, times
from armid.robot.robot import Robot

_LIMIT_SHARE = 0.9
"""Of the limits of velocity, acceleration, jerk and torque: the rest is for the controller, which may overshoot."""

_SINE_SHARE = 0.75
"""Of the offset: the peak of all sines together. The velocity never comes near zero, even when the controller overshoots."""

_HARMONICS = (3, 5, 7)
"""Of a common fundamental: none is a multiple of another, and together they repeat, so that their peaks can be kept apart."""

_HARMONIC_SHARES = (0.5, 1.0, 0.5)
"""Acceleration of each. A carrier with two side lines can be phased like a frequency modulation, whose envelope is nearly
constant: of the sets tried this has the most acceleration (root mean square 0.66 of the peak; a single sine has 0.71)."""

_BELOW_CORNER = 0.9
"""Of jerk limit / acceleration limit: middle line at which both limits are reached together, side lines included."""

_FREQUENCY_RANGE = (1.5, 5.0)
"""[Hz] Of the middle line. Inertia shows by acceleration, which every frequency reaches alike until jerk ends it: the best one is
jerk limit / acceleration limit. Slower ones travel too far, faster ones meet the resonances of large arms."""

_USUAL_FREQUENCY = 4.0
"""[Hz] Of the middle line when there is no limit of jerk."""

_FEWEST_PERIODS = 8
"""Of the slowest sine in the steady part."""

USUAL_SECONDS = 8.0
"""[s] Of the steady part, room permitting: torque noise of 0.3 % of the limit then leaves some tenths of a per cent."""

_PHASES_TRIED = 400
"""Random sets of phases among which the one with the lowest peaks is taken; the best of three sines is found among 100."""

COUNTED = 0.8
"""Of the steady part: what the window of the analysis and its search for the steady part leave."""

_SMALLEST_SHARE = 0.1
"""Of the amplitude the limits allow: with less room or torque than that the pose is not worth measuring at."""

_NYQUIST_SHARE = 0.8
"""Of the Nyquist frequency: faster sines alias or meet the anti-alias filter of the drive."""

RAMP = 0.5
"""[s] From rest to the steady part, and back."""


class Signal(StrEnum):
    """What rides on the constant velocity."""

    SINES = "sines"
    """One or several fixed frequencies."""
    CHIRP = "chirp"
    """One frequency that runs linearly from the first to the last."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SweepMotion:
    """One axis moves around a pose with velocity `offset + sum of sines`, the others stand still.

    Args:
        joint_names: of the arm.
        pose: reached by the axis in the middle, shape [n_joints].
        axis: which joint, 0-based.
        offset: velocity [rad/s or m/s].
        frequencies: [Hz]; first and last for a chirp.
        amplitudes: of velocity [rad/s or m/s], one per frequency; one for a chirp.
        seconds: of the steady part.
        signal: sines or chirp.
        ramp: [s].
        phases: of the sines [rad]; after [Schroeder1970] when empty.
    """

    joint_names: tuple[str, ...]
    pose: FloatArray
    axis: int
    offset: float
    frequencies: tuple[float, ...]
    amplitudes: tuple[float, ...]
    seconds: float
    signal: Signal = Signal.SINES
    ramp: float = RAMP
    phases: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", read_only(self.pose))

    @property
    def duration(self) -> float:
        return self.seconds + 2.0 * self.ramp

    @property
    def steady(self) -> tuple[float, float]:
        """Start and end of the part that is analysed [s]."""
        return self.ramp, self.ramp + self.seconds

    def steady_axis(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Position, velocity, acceleration, jerk of the axis t seconds into the steady part."""
        swing = self.chirp(t) if self.signal is Signal.CHIRP else self.sines(t)
        q, v = self.pose[self.axis] + self.offset * (t - 0.5 * self.seconds), np.full_like(t, self.offset)
        return q + swing[0], v + swing[1], swing[2], swing[3]

    def sines(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """What the sines add to position, velocity, acceleration, jerk."""
        w = 2.0 * np.pi * np.array(self.frequencies)[:, np.newaxis]
        a = np.array(self.amplitudes)[:, np.newaxis]
        x = w * t + np.array(self.phases or _schroeder(len(w)))[:, np.newaxis]
        s, c = np.sin(x), np.cos(x)
        parts = (-a / w * c, a * s, a * w * c, -a * w**2 * s)
        return parts[0].sum(axis=0), parts[1].sum(axis=0), parts[2].sum(axis=0), parts[3].sum(axis=0)

    def chirp(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The same for a chirp of constant velocity amplitude, which excites its band evenly.

        Its position is a Fresnel integral: with phi = pi r x^2 - b, x = t + low / r, b = pi low^2 / r,
        int sin(phi) = (cos b S(z) - sin b C(z)) / sqrt(2 r), z = sqrt(2 r) x.
        """
        from scipy.special import fresnel

        low, high = self.frequencies
        r, V = (high - low) / self.seconds, self.amplitudes[0]
        b, x = np.pi * low**2 / r, t + low / r
        phi = np.pi * r * x**2 - b
        S, C = fresnel(np.sqrt(2.0 * r) * x)
        w, wd = 2.0 * np.pi * r * x, 2.0 * np.pi * r
        s, c = np.sin(phi), np.cos(phi)
        q = V * (np.cos(b) * S - np.sin(b) * C) / np.sqrt(2.0 * r)
        middle = V * (np.cos(b) - np.sin(b)) / (2.0 * np.sqrt(2.0 * r))
        return q - middle, V * s, V * w * c, V * (wd * c - w**2 * s)

    @property
    def mean_square_acceleration(self) -> float:
        """Of the steady part [(rad/s^2)^2 or (m/s^2)^2]: what inertia is measured with."""
        t = np.linspace(0.0, self.seconds, 1 + int(40 * self.seconds * max(self.frequencies)))
        return float(np.mean(self.steady_axis(t)[2] ** 2))

    def deviation(self, torque_noise: float, rate_hz: float) -> float:
        """Standard deviation of the inertia to expect from white torque noise [kg m^2 or kg]."""
        return torque_noise / float(np.sqrt(self.mean_square_acceleration * rate_hz * COUNTED * self.seconds))

    def sample(self, t: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Positions, velocities, accelerations, each [n_samples, n_joints]; at rest before and after."""
        instants = np.clip(times(t), 0.0, self.duration)
        parts = [self.axis_at(instants, order) for order in range(3)]
        q = np.tile(self.pose, (len(instants), 1))
        qd, qdd = np.zeros_like(q), np.zeros_like(q)
        for array, values in zip((q, qd, qdd), parts, strict=True):
            array[:, self.axis] = values
        return q, qd, qdd

    def jerk(self, t: npt.ArrayLike) -> FloatArray:
        instants = np.clip(times(t), 0.0, self.duration)
        out = np.zeros((len(instants), len(self.pose)))
        out[:, self.axis] = self.axis_at(instants, 3)
        return out

    def axis_at(self, t: FloatArray, order: int) -> FloatArray:
        """Derivative of the axis' position: quintics from and to rest around the steady part."""
        h, (start, end) = self.ramp, self.steady
        out = self.steady_axis(np.clip(t - start, 0.0, self.seconds))[order]
        for edge, rising in ((start, True), (end, False)):
            state = [x[0] for x in self.steady_axis(np.array([0.0 if rising else self.seconds]))][:3]
            # From rest so far away that the mean velocity of the ramp is half of the one it ends with.
            rest = [state[0] - 0.5 * h * state[1] * (1.0 if rising else -1.0), 0.0, 0.0]
            ends = (rest, state) if rising else (state, rest)
            scaled = [[np.array([[x * h**k]]) for k, x in enumerate(side)] for side in ends]
            way = quintic_through(*scaled)
            inside = t < edge if rising else t > edge
            s = ((t[inside] - (edge - h if rising else edge)) / h)[:, np.newaxis]
            out[inside] = quintic(way, s, order)[:, 0] / h**order
        return out


def _schroeder(n: int) -> tuple[float, ...]:
    """Phases of n sines that do not peak together; [Schroeder1970]."""
    return tuple(-np.pi * k * (k - 1) / n for k in range(1, n + 1))


def sweep_motion(
    robot: Robot,
    pose: npt.ArrayLike,
    axis: str,
    frequencies: Sequence[float] | None = None,
    *,
    rate_hz: float = 1000.0,
    signal: Signal = Signal.SINES,
    seconds: float | None = None,
    within: tuple[float, float] | None = None,
) -> SweepMotion:
    """An excitation of one axis around a pose, as strong as its limits allow.

    What a measurement says about inertia grows with its mean square acceleration and its duration. So acceleration comes first:
    phases with low peaks, amplitudes up to the limits of acceleration and jerk; then the slowest offset that keeps the velocity
    positive; then the time the room allows. Where there is no room for eight periods the amplitudes are lowered.

    Args:
        robot: for limits.
        pose: [rad or m], shape [n_joints].
        axis: name of the joint.
        frequencies: [Hz]; two (from, to) for a chirp; chosen by the limits when None.
        rate_hz: at which it will be recorded.
        signal: sines, or a chirp.
        seconds: of the steady part at most; 8 s by default.
        within: positions the axis may use; its limits by default.

    Raises:
        InputError: frequencies above Nyquist, no room within the position limits, or too little torque.
    """
    k = robot.joint_index(axis)
    lines = tuple(float(f) for f in frequencies) if frequencies else _usual_frequencies(robot, k, signal)
    check_frequencies(axis, lines, rate_hz, signal)
    x = np.asarray(pose, dtype=np.float64)
    length = USUAL_SECONDS if seconds is None else float(seconds)
    unit = SweepMotion(
        joint_names=robot.joint_names,
        pose=x,
        axis=k,
        offset=0.0,
        frequencies=lines,
        amplitudes=(1.0,),
        seconds=length,
        signal=signal,
    )
    if signal is Signal.SINES:
        shares = (1.0,) * len(lines) if frequencies else _HARMONIC_SHARES
        amplitudes = tuple(s / (2.0 * np.pi * f) for s, f in zip(shares, lines, strict=True))
        unit = _quietest(replace(unit, amplitudes=amplitudes), _motion_bounds(robot, k))
    strong = _scale(unit, _strongest(unit, _motion_bounds(robot, k)))
    placed = _fit_to_room(strong, _room_around(robot, k, x[k], within))
    return _within_torque(robot, placed)


def _usual_frequencies(robot: Robot, axis: int, signal: Signal) -> tuple[float, ...]:
    """Lines (or the ends of a chirp) around the frequency at which acceleration and jerk reach their limits together."""
    limits = robot.joints[axis].limits
    corner = (
        _BELOW_CORNER * limits.jerk / (2.0 * np.pi * limits.acceleration)
        if np.isfinite(limits.jerk)
        else _USUAL_FREQUENCY
    )
    middle = float(np.clip(corner, *_FREQUENCY_RANGE)) if np.isfinite(corner) else _USUAL_FREQUENCY
    lines = tuple(round(h * middle / _HARMONICS[1], 4) for h in _HARMONICS)
    return (lines[0], lines[-1]) if signal is Signal.CHIRP else lines


def _motion_bounds(robot: Robot, axis: int) -> tuple[float, float, float]:
    """Velocity, acceleration and jerk that may be used; stand-ins where a description gives none."""
    limits = motion_limits(robot)[0]
    jerk = robot.joints[axis].limits.jerk
    return (
        _LIMIT_SHARE * float(limits.velocity[axis]),
        _LIMIT_SHARE * float(limits.acceleration[axis]),
        _LIMIT_SHARE * jerk,
    )


def _peaks(motion: SweepMotion) -> tuple[float, float, float]:
    """Largest velocity, acceleration and jerk of the oscillation alone."""
    t = np.linspace(0.0, motion.seconds, 1 + int(30 * motion.seconds * max(motion.frequencies)))
    swing = motion.chirp(t) if motion.signal is Signal.CHIRP else motion.sines(t)
    v, a, j = (float(np.abs(part).max()) for part in swing[1:])
    return v, a, j


def _strongest(motion: SweepMotion, bounds: tuple[float, float, float]) -> float:
    """By how much the oscillation may grow; the offset that goes with it included."""
    v, a, j = _peaks(motion)
    return min(bounds[0] / (v * (1.0 + 1.0 / _SINE_SHARE)), bounds[1] / a, bounds[2] / j)


def _quietest(motion: SweepMotion, bounds: tuple[float, float, float]) -> SweepMotion:
    """The same sines with the phases that let them grow most."""
    rng = np.random.default_rng(0)
    n = len(motion.frequencies)
    trials = [
        _schroeder(n),
        *(tuple(p) for p in rng.uniform(0.0, 2.0 * np.pi, size=(_PHASES_TRIED if n > 1 else 0, n))),
    ]
    # Peaks repeat with the sines: two periods of a common fundamental show them, or all of it when there is none.
    short = replace(motion, seconds=min(motion.seconds, 2.0 * max(_HARMONICS) / min(motion.frequencies)))
    best = max(trials, key=lambda phases: _strongest(replace(short, phases=phases), bounds))
    return replace(motion, phases=best)


def _scale(motion: SweepMotion, factor: float) -> SweepMotion:
    """Amplitudes times a factor, and the slowest offset that keeps the velocity away from zero."""
    grown = replace(motion, amplitudes=tuple(factor * a for a in motion.amplitudes))
    return replace(grown, offset=_peaks(grown)[0] / _SINE_SHARE)


def _room_around(robot: Robot, axis: int, position: float, within: tuple[float, float] | None) -> float:
    """[rad or m] The axis may travel, centred at its position."""
    limits = motion_limits(robot)[0]
    low, high = within or (-np.inf, np.inf)
    return 2.0 * float(min(min(high, limits.upper[axis]) - position, position - max(low, limits.lower[axis])))


def _fit_to_room(motion: SweepMotion, room: float) -> SweepMotion:
    """As long as the room allows; smaller when it does not allow eight periods of the slowest sine."""
    least = min(_FEWEST_PERIODS / min(motion.frequencies), motion.seconds)
    shortened = replace(motion, seconds=least)
    needed = _travel(shortened)
    if needed > room:
        if room < _SMALLEST_SHARE * needed:
            name = motion.joint_names[motion.axis]
            text = f"no room to move around {motion.pose[motion.axis]:.3g} within its limits"
            raise InputError(f"joint {name!r}", text, "choose a pose further inside")
        return _scale(shortened, room / needed)
    excess = _travel(motion) - room
    # Two steps: where the sines stand at either end changes with the length.
    while excess > 0.0:
        motion = replace(motion, seconds=max(motion.seconds - excess / motion.offset - 1e-3, least))
        excess = _travel(motion) - room if motion.seconds > least else 0.0
    return motion


def _travel(motion: SweepMotion) -> float:
    """Twice the largest distance from the pose, ramps and sines included [rad or m]."""
    q = motion.sample(np.linspace(0.0, motion.duration, 2000))[0][:, motion.axis]
    return 2.0 * float(np.abs(q - motion.pose[motion.axis]).max())


def _within_torque(robot: Robot, motion: SweepMotion) -> SweepMotion:
    """Smaller when the described arm could not follow; unchanged when its masses or torque limits are not known."""
    limit = robot.joints[motion.axis].limits.torque
    if not (np.isfinite(limit) and robot.inertial.any()):
        return motion
    t = np.linspace(0.0, motion.duration, 400)
    q, qd, qdd = motion.sample(t)
    held = inverse_dynamics(robot, q, qd, np.zeros_like(qdd), drives=True)[:, motion.axis]
    moved = inverse_dynamics(robot, q, qd, qdd, drives=True)[:, motion.axis] - held
    spare = _LIMIT_SHARE * limit - float(np.abs(held).max())
    share = spare / max(float(np.abs(moved).max()), 1e-12)
    if share >= 1.0:
        return motion
    name = motion.joint_names[motion.axis]
    if share < _SMALLEST_SHARE:
        text = f"gravity and friction leave {max(spare, 0.0):.3g} of its {limit:.3g} N m for the excitation"
        raise InputError(f"joint {name!r}", text, "choose a pose that asks for less torque")
    return _scale(motion, share)


def check_frequencies(axis: str, frequencies: Sequence[float], rate_hz: float, signal: Signal = Signal.SINES) -> None:
    """Refuses frequencies that the recording cannot hold."""
    if not frequencies or min(frequencies) <= 0.0:
        raise InputError(f"frequencies of {axis!r}", f"{list(frequencies)} Hz", "positive numbers")
    if signal is Signal.CHIRP and len(frequencies) != 2:
        raise InputError(f"frequencies of {axis!r}", f"{len(frequencies)} for a chirp", "two: from, to")
    if signal is Signal.CHIRP and not frequencies[0] < frequencies[1]:
        raise InputError(
            f"frequencies of {axis!r}", f"a chirp from {frequencies[0]:g} to {frequencies[1]:g} Hz", "upwards"
        )
    if max(frequencies) > _NYQUIST_SHARE * 0.5 * rate_hz:
        raise InputError(
            f"frequencies of {axis!r}",
            f"{max(frequencies):g} Hz at {rate_hz:g} samples per second",
            f"at most {_NYQUIST_SHARE * 0.5 * rate_hz:g} Hz, a little below the Nyquist frequency",
        )
