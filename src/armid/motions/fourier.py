"""Finite Fourier series in both published forms.

Position form ([Kolyubin2017] eq. 23):   q(t) = q0 + sum_k a_k sin(k w t) + b_k cos(k w t)
Velocity form ([Halper2024] eq. 3.55b):   q(t) = sum_k A_k/(k w) sin(k w t) - B_k/(k w) cos(k w t)

They differ by the bias and by what the coefficients bound: amplitudes of position, or of velocity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import InputError, ShapeError
from armid.motions.trajectory import Motion, times


@dataclass(frozen=True, eq=False)
class FourierTrajectory:
    """A periodic motion; the same harmonics for every joint.

    Args:
        joint_names: columns.
        period: of the fundamental [s].
        offset: bias q0 [rad or m], shape [n_joints].
        sine, cosine: a_k, b_k of the position form [rad or m], shape [n_joints, n_harmonics].
        repetitions: how many periods are run.
    """

    joint_names: tuple[str, ...]
    period: float
    offset: FloatArray
    sine: FloatArray
    cosine: FloatArray
    repetitions: int = 1

    def __post_init__(self) -> None:
        for name in ("offset", "sine", "cosine"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        n = len(self.joint_names)
        if self.offset.shape != (n,):
            raise ShapeError("offset", self.offset.shape, f"[{n}]")
        if self.sine.ndim != 2 or len(self.sine) != n or self.sine.shape[1] == 0:
            raise ShapeError("sine", self.sine.shape, f"[{n}, n_harmonics]")
        if self.cosine.shape != self.sine.shape:
            raise ShapeError("cosine", self.cosine.shape, str(list(self.sine.shape)))
        if not self.period > 0.0:
            raise InputError("period", f"{self.period} s", "a period must be positive")
        if self.repetitions < 1:
            raise InputError("repetitions", f"{self.repetitions}", "at least one period must be run")

    @property
    def duration(self) -> float:
        return self.period * self.repetitions

    @property
    def n_harmonics(self) -> int:
        return int(self.sine.shape[1])

    @property
    def frequencies(self) -> FloatArray:
        """Angular frequency of each harmonic [rad/s], shape [n_harmonics]."""
        return (2.0 * np.pi / self.period) * np.arange(1.0, self.n_harmonics + 1.0)

    def sample(self, t: npt.ArrayLike) -> Motion:
        time = times(t)
        return self.derivative(time, 0), self.derivative(time, 1), self.derivative(time, 2)

    def jerk(self, t: npt.ArrayLike) -> FloatArray:
        return self.derivative(times(t), 3)

    def derivative(self, t: FloatArray, order: int) -> FloatArray:
        """The derivative of that order, shape [n_samples, n_joints]: each one turns the phase by 90 degrees."""
        w = self.frequencies
        phase = np.outer(t, w) + order * np.pi / 2
        values = np.sin(phase) @ (self.sine * w**order).T + np.cos(phase) @ (self.cosine * w**order).T
        return values + self.offset if order == 0 else values

    def derivative_bound(self, order: int) -> FloatArray:
        """sum_k (k w)^order |(a_k, b_k)|: no instant exceeds it (without the bias), shape [n_joints]."""
        return np.hypot(self.sine, self.cosine) @ self.frequencies**order

    def repeated(self, repetitions: int) -> FourierTrajectory:
        """The same motion run that many times."""
        return replace(self, repetitions=repetitions)

    def slowed(self, factor: float) -> FourierTrajectory:
        """The same path, each period `factor` times as long."""
        return replace(self, period=self.period * factor)

    @property
    def velocity_form(self) -> tuple[FloatArray, FloatArray]:
        """(A, B) of the velocity form, shape [n_joints, n_harmonics]; the bias is not part of it."""
        w = self.frequencies
        return self.sine * w, -self.cosine * w


def from_velocity_form(
    joint_names: tuple[str, ...],
    period: float,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    offset: npt.ArrayLike | None = None,
    repetitions: int = 1,
) -> FourierTrajectory:
    """From the coefficients of the [Halper2024] (eq. 3.55b).

    Args:
        joint_names: columns.
        period: [s].
        a: velocity amplitudes of the cosine [rad/s or m/s], shape [n_joints, n_harmonics].
        b: velocity amplitudes of the sine, same shape.
        offset: bias [rad or m]; none in the thesis.
        repetitions: how many periods are run.
    """
    A, B = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if A.ndim != 2 or A.shape != B.shape:
        raise ShapeError("b", B.shape, f"{list(A.shape)}, as a")
    w = 2.0 * np.pi / period * np.arange(1, A.shape[1] + 1)
    bias = np.zeros(len(joint_names)) if offset is None else np.asarray(offset, dtype=np.float64)
    return FourierTrajectory(joint_names, period, bias, sine=A / w, cosine=-B / w, repetitions=repetitions)


def published_bounds(
    trajectory: FourierTrajectory, position: npt.ArrayLike, velocity: npt.ArrayLike
) -> dict[str, FloatArray]:
    """Usage of the [Halper2024]' analytic bounds, per joint; at most 1 where a bound holds.

    Sufficient, not necessary: a motion may exceed them and still stay within its limits. Eq. 3.55f is used
    without its division by the number of harmonics: as printed it excludes the trajectory the thesis publishes.

    Args:
        trajectory: the motion.
        position: largest displacement from the bias [rad or m], shape [n_joints].
        velocity: [rad/s or m/s], shape [n_joints].

    Returns:
        `position` (eq. 3.55d), `velocity` (eq. 3.55e), `coefficient` (eq. 3.55f), each of shape [n_joints].
    """
    q_max, v_max = np.asarray(position, dtype=np.float64), np.asarray(velocity, dtype=np.float64)
    A, B = trajectory.velocity_form
    w = 2.0 * np.pi / trajectory.period
    largest = np.minimum(np.outer(q_max, w * np.arange(1, trajectory.n_harmonics + 1)), v_max[:, np.newaxis])
    return {
        "position": trajectory.derivative_bound(0) / q_max,
        "velocity": trajectory.derivative_bound(1) / v_max,
        "coefficient": (np.maximum(np.abs(A), np.abs(B)) / largest).max(axis=1),
    }
