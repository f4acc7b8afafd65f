"""Excitation of one axis at a time: sines on top of a constant velocity; seed 002 sec. 2.4, [Gruendel2021].

The offset keeps the velocity from changing sign, so that Coulomb friction stays at 0 Hz; the other axes stand still, so that
there is neither Coriolis nor centrifugal torque in the axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.design.trajectory import quintic, quintic_through, times
from armid.errors import InputError
from armid.robot.robot import Robot

VELOCITY_SHARE = 0.2
"""Of the velocity limit: the offset. Slow, so that gravity changes slowly, and far from any limit."""

SINE_SHARE = 0.6
"""Of the offset: the sum of all amplitudes. The velocity never comes near zero."""

ACCELERATION_SHARE = 0.6
"""Of the acceleration limit."""

DEFAULT_FREQUENCIES = (2.5, 4.0, 6.5)
"""[Hz] Fast enough for inertia to outweigh friction and gravity, slow enough to stay below the resonances of large arms; three
of them tell inertia, viscous friction, gravity slope and a lag of the torque apart, and none is a multiple of another."""

FEWEST_PERIODS = 8
"""Of the slowest sine in the steady part."""

NYQUIST_SHARE = 0.8
"""Of the Nyquist frequency: faster sines alias or meet the anti-alias filter of the drive."""

RAMP = 0.5
"""[s] From rest to the steady part, and back."""


class Signal(StrEnum):
    """What rides on the constant velocity."""

    SINES = "sines"
    """One or several fixed frequencies."""
    CHIRP = "chirp"
    """One frequency that runs linearly from the first to the last."""


@dataclass(frozen=True, eq=False)
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
        q = self.pose[self.axis] + self.offset * (t - 0.5 * self.seconds)
        v, a, j = np.full_like(t, self.offset), np.zeros_like(t), np.zeros_like(t)
        for frequency, amplitude, phase in self.lines():
            w = 2.0 * np.pi * frequency
            x = w * t + phase
            q = q - amplitude / w * np.cos(x)
            v = v + amplitude * np.sin(x)
            a = a + amplitude * w * np.cos(x)
            j = j - amplitude * w**2 * np.sin(x)
        if self.signal is Signal.CHIRP:
            return self.chirp_axis(t)
        return q, v, a, j

    def lines(self) -> list[tuple[float, float, float]]:
        """Frequency, amplitude, phase of every sine; phases after [Schroeder1970], so that they do not peak together."""
        if self.signal is Signal.CHIRP:
            return []
        n = len(self.frequencies)
        pairs = zip(self.frequencies, self.amplitudes, strict=True)
        return [(f, a, -np.pi * k * (k - 1) / n) for k, (f, a) in enumerate(pairs, start=1)]

    def chirp_axis(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The same for a chirp: position oscillates, so that all derivatives are closed forms.

        q = pose + offset t - B sin(phi), B chosen so that the velocity's amplitude stays below the given one.
        """
        low, high = self.frequencies[0], self.frequencies[-1]
        rate = (high - low) / self.seconds
        w, wd = 2.0 * np.pi * (low + rate * t), 2.0 * np.pi * rate
        phi = 2.0 * np.pi * (low * t + 0.5 * rate * t**2)
        B = self.amplitudes[0] / (2.0 * np.pi * high)
        c, s = np.cos(phi), np.sin(phi)
        q = self.pose[self.axis] + self.offset * (t - 0.5 * self.seconds) - B * s
        return (
            q,
            self.offset - B * w * c,
            B * (w**2 * s - wd * c),
            B * (3.0 * w * wd * s + w**3 * c),
        )

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


def sweep_motion(
    robot: Robot,
    pose: npt.ArrayLike,
    axis: str,
    frequencies: Sequence[float],
    *,
    rate_hz: float = 1000.0,
    signal: Signal = Signal.SINES,
    seconds: float | None = None,
) -> SweepMotion:
    """An excitation of one axis around a pose, amplitudes chosen within its limits.

    Args:
        robot: for limits.
        pose: [rad or m], shape [n_joints].
        axis: name of the joint.
        frequencies: [Hz]; two (from, to) for a chirp.
        rate_hz: at which it will be recorded.
        signal: sines, or a chirp.
        seconds: of the steady part; eight periods of the slowest sine by default.

    Raises:
        InputError: frequencies above Nyquist, or no room within the position limits.
    """
    k = robot.joint_index(axis)
    lines = tuple(float(f) for f in frequencies)
    check_frequencies(axis, lines, rate_hz, signal)
    limits = robot.joints[k].limits
    velocity = limits.velocity if np.isfinite(limits.velocity) else 1.0
    acceleration = limits.acceleration if np.isfinite(limits.acceleration) else 10.0 * velocity
    length = FEWEST_PERIODS / min(lines) if seconds is None else float(seconds)
    offset = VELOCITY_SHARE * velocity
    x = np.asarray(pose, dtype=np.float64)
    room = 2.0 * min(limits.upper - x[k], x[k] - limits.lower)
    # The way there and back is half the offset velocity each; a little is left for the sines.
    travel = offset * (length + 1.1 * RAMP)
    if travel > room:
        offset *= room / travel
    if offset < 0.02 * velocity:
        raise InputError(
            f"joint {axis!r}", f"no room to move around {x[k]:.3g} within its limits", "choose a pose further inside"
        )
    count = 1 if signal is Signal.CHIRP else len(lines)
    share = SINE_SHARE * offset / count
    fastest = 2.0 * np.pi * max(lines)
    slow = [min(share, ACCELERATION_SHARE * acceleration / (count * 2.0 * np.pi * f)) for f in lines]
    amplitudes = (min(share, ACCELERATION_SHARE * acceleration / fastest),) if signal is Signal.CHIRP else tuple(slow)
    return SweepMotion(robot.joint_names, x, k, offset, lines, amplitudes, length, signal)


def check_frequencies(axis: str, frequencies: Sequence[float], rate_hz: float, signal: Signal = Signal.SINES) -> None:
    """Refuses frequencies that the recording cannot hold."""
    if not frequencies or min(frequencies) <= 0.0:
        raise InputError(f"frequencies of {axis!r}", f"{list(frequencies)} Hz", "positive numbers")
    if signal is Signal.CHIRP and len(frequencies) != 2:
        raise InputError(f"frequencies of {axis!r}", f"{len(frequencies)} for a chirp", "two: from, to")
    if max(frequencies) > NYQUIST_SHARE * 0.5 * rate_hz:
        raise InputError(
            f"frequencies of {axis!r}",
            f"{max(frequencies):g} Hz at {rate_hz:g} samples per second",
            f"at most {NYQUIST_SHARE * 0.5 * rate_hz:g} Hz, a little below the Nyquist frequency",
        )
