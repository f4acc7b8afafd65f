"""Equations of motion under modulating functions: exact relations between recorded signals, without differentiating any.

Multiply an equation by phi(t) = w(t) exp(-i w_m t), with w smooth and zero at both ends together with its first three
derivatives, and integrate by parts ([Shinbrot1957]):

    int phi q'' = int phi'' q,     int phi q' = -int phi' q,     int phi q''' = -int phi''' q

so that only position and torque themselves are needed. It holds for any signal: sines whose periods do not fit the window and
chirps as well, nothing leaks. For sines and w = 1 these are the phasors of [RWTH2021].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray

Complex = npt.NDArray[np.complex128]

_TAPER = 0.12
"""Of the window at either end: what it rises and falls in. Short, because samples there count for little."""

_LONGEST_TAPER = 0.25


@dataclass(frozen=True, eq=False)
class Modulation:
    """Modulating functions over one window.

    Args:
        start, end: of the window [s].
        frequencies: [Hz], shape [m].
        taper: share of the window in which it rises, and falls.
    """

    start: float
    end: float
    frequencies: FloatArray
    taper: float = _TAPER

    def functions(self, t: FloatArray, order: int = 0) -> Complex:
        """The function phi or one of its first three derivatives, times the sampling step (trapezium rule), shape [m, n_samples].

        Args:
            t: [s], increasing; outside of the window phi is zero.
            order: of the derivative.
        """
        return self.carried(self.carriers(t), t, order)

    def carriers(self, t: FloatArray) -> Complex:
        """exp(-i w t) from the start of the window on, times the sampling step, shape [m, n_samples]."""
        return np.asarray(np.exp(self.rates * (t - self.start)) * steps(t))

    @property
    def rates(self) -> Complex:
        """-i w, shape [m, 1]."""
        return np.asarray(-2j * np.pi * self.frequencies[:, np.newaxis], dtype=np.complex128)

    def carried(self, carriers: Complex, t: FloatArray, order: int) -> Complex:
        """The same as `functions` from ready carriers, which take most of the time."""
        # Leibniz' rule: the k-th derivative of exp(s t) is s^k exp(s t).
        binomial = ((1,), (1, 1), (1, 2, 1), (1, 3, 3, 1))[order]
        total = sum(c * self.window(t, order - k) * self.rates**k for k, c in enumerate(binomial))
        return np.asarray(total * carriers)

    def window(self, t: FloatArray, order: int = 0) -> FloatArray:
        """The window or a derivative of it: one in the middle, a polynomial of degree seven at either end, shape [n_samples]."""
        length = self.end - self.start
        h = self.taper * length
        rise, fall = (t - self.start) / h, (self.end - t) / h
        out = np.where((rise > 0.0) & (fall > 0.0), 1.0 if order == 0 else 0.0, 0.0)
        for x, sign in ((rise, 1.0), (fall, -1.0)):
            inside = (x > 0.0) & (x < 1.0)
            out[inside] = _smooth_step(x[inside], order) * (sign / h) ** order
        return out


def _smooth_step(x: FloatArray, order: int) -> FloatArray:
    """35 x^4 - 84 x^5 + 70 x^6 - 20 x^7: from 0 to 1 with three derivatives zero at both ends; or a derivative of it."""
    return np.asarray(np.polynomial.Polynomial([0, 0, 0, 0, 35, -84, 70, -20]).deriv(order)(x))


def steps(t: FloatArray) -> FloatArray:
    """Weights of the trapezium rule [s]."""
    d = np.diff(t)
    return np.concatenate([[0.5 * d[0]], 0.5 * (d[1:] + d[:-1]), [0.5 * d[-1]]])


def modulation(t: FloatArray, slowest: float, frequencies: npt.ArrayLike) -> Modulation:
    """Over a whole recording; the taper is at least half a period of the slowest signal."""
    length = float(t[-1] - t[0])
    taper = min(max(_TAPER, 0.5 / (slowest * length)), _LONGEST_TAPER)
    return Modulation(float(t[0]), float(t[-1]), np.asarray(frequencies, dtype=np.float64), taper)


@dataclass(frozen=True, eq=False, kw_only=True)
class Moments:
    """Integrals of one axis' motion against the modulating functions, each of shape [m].

    Args:
        velocity, acceleration, jerk: of position, by parts.
        constant: of one.
        gravity: of the functions gravity is made of along the axis, shape [k, m].
    """

    velocity: Complex
    acceleration: Complex
    jerk: Complex
    constant: Complex
    gravity: Complex


def moments(m: Modulation, t: FloatArray, q: FloatArray, gravity: FloatArray) -> Moments:
    """All integrals of one axis' motion.

    Args:
        m: modulating functions.
        t: [s], shape [n_samples].
        q: position, shape [n_samples].
        gravity: functions of position, shape [k, n_samples].
    """
    carriers = m.carriers(t)
    phi, first, second, third = (m.carried(carriers, t, order) for order in range(4))
    return Moments(
        velocity=-(first @ q),
        acceleration=second @ q,
        jerk=-(third @ q),
        constant=phi.sum(axis=1),
        gravity=gravity @ phi.T,
    )
