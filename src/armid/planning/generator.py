"""The motion generator alpha theta'' + beta theta'^2 + gamma = u of a virtual holonomic constraint ([Kolyubin2017] eq. 28).

Without friction and with u = 0 the squared speed x(theta) obeys a linear equation, x' = -2 (beta x + gamma) / alpha, so
that every motion lies on a closed-form level curve; around a centre those curves close and the motion is periodic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt

import numpy as np
from scipy.integrate import quad, solve_ivp
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from armid.arrays import FloatArray, read_only
from armid.errors import ArmidError, InputError
from armid.planning.reduced import ScalarDynamics

Input = Callable[[float, float], float]
"""u as a function of theta and theta'."""

_SINGULAR = 1e-6
"""|alpha| relative to its largest value, below which theta'' is not determined."""

RELATIVE_ACCURACY, ABSOLUTE_ACCURACY = 1e-10, 1e-12

_STICKING = 1e-9
"""|theta'| relative to the largest speed so far, below which dry friction may hold the motion."""


class SingularGeneratorError(ArmidError):
    """alpha passes zero: the combination of rows does not determine the motion there."""

    def __init__(self, theta: float) -> None:
        self.theta = theta
        super().__init__(
            f"alpha vanishes at theta = {theta:.4g}, so theta'' is not determined there "
            "(choose another combination of rows, or a part of the path without that place)"
        )


@dataclass(frozen=True, eq=False)
class GeneratedMotion:
    """A motion of the generator.

    Args:
        time: [s], shape [n].
        theta, speed: parameter and its rate.
        ended: why it ended: `time`, `start of path`, `end of path`, or `held by friction`.
    """

    time: FloatArray
    theta: FloatArray
    speed: FloatArray
    ended: str

    def __post_init__(self) -> None:
        for name in ("time", "theta", "speed"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


@dataclass(frozen=True, eq=False, kw_only=True)
class PeriodicMotion:
    """A closed orbit between two turning points.

    Args:
        centre: equilibrium inside it.
        low, high: turning points.
        period: [s].
        theta, speed: upper half of the orbit, from low to high, shape [n].
    """

    centre: float
    low: float
    high: float
    period: float
    theta: FloatArray
    speed: FloatArray


@dataclass(frozen=True, eq=False)
class MotionGenerator:
    """Eq. 28 as something that can be integrated.

    Args:
        dynamics: sampled coefficients; cubic splines between.
    """

    dynamics: ScalarDynamics

    def __post_init__(self) -> None:
        alpha = self.dynamics.alpha
        small = np.abs(alpha) < _SINGULAR * np.abs(alpha).max()
        crossing = np.concatenate([alpha[:-1] * alpha[1:] <= 0.0, [False]])
        if (small | crossing).any():
            raise SingularGeneratorError(float(self.dynamics.theta[int(np.argmax(small | crossing))]))

    @cached_property
    def _coefficients(self) -> CubicSpline:
        d = self.dynamics
        return CubicSpline(d.theta, np.stack([d.alpha, d.beta, d.gamma, d.viscous, d.coulomb, d.offset], axis=1))

    @property
    def range(self) -> tuple[float, float]:
        return float(self.dynamics.theta[0]), float(self.dynamics.theta[-1])

    def acceleration(self, theta: float, speed: float, u: float, direction: float) -> float:
        """The acceleration theta'' with friction for motion in the given direction (+1, -1, or 0 for none)."""
        alpha, beta, gamma, viscous, coulomb, offset = self._coefficients(theta)
        return float((u - beta * speed**2 - gamma - viscous * speed - coulomb * direction - offset) / alpha)

    def integrate(self, theta: float, speed: float, seconds: float, *, u: Input | float = 0.0) -> GeneratedMotion:
        """The motion from a state, until the time is over, the path ends, or dry friction holds it.

        Friction keeps its sign between reversals; at each reversal the motion goes on the other way if the rest of the
        equation is strong enough, and stays otherwise.

        Args:
            theta, speed: initial state.
            seconds: how long.
            u: driving input, a number or a function of theta and theta'.
        """
        low, high = self.range
        if not low <= theta <= high:
            raise InputError("theta", f"{theta:g}", f"the path goes from {low:g} to {high:g}")
        drive: Input = u if callable(u) else lambda _theta, _speed: float(u)
        pieces: list[FloatArray] = []
        t, state, ended = 0.0, (theta, speed), "time"
        while t < seconds:
            direction = self._direction(*state, drive(*state))
            if direction == 0.0:
                ended = "held by friction"
                break
            piece = self._piece(t, state, seconds, drive, direction)
            pieces.append(piece.y if not pieces else piece.y[:, 1:])
            times = piece.t if len(pieces) == 1 else piece.t[1:]
            t, state = float(piece.t[-1]), (float(piece.y[0, -1]), float(piece.y[1, -1]))
            pieces[-1] = np.vstack([times, pieces[-1]])
            if piece.status == 1 and len(piece.t_events[1]):
                ended = "end of path" if state[0] > 0.5 * (low + high) else "start of path"
                break
        if not pieces:
            return GeneratedMotion(np.zeros(1), np.array([theta]), np.array([speed]), ended)
        time, positions, speeds = np.hstack(pieces)
        return GeneratedMotion(time, positions, speeds, ended)

    def _direction(self, theta: float, speed: float, u: float) -> float:
        """Which way it moves on from a state; 0 when dry friction holds it."""
        if abs(speed) > _STICKING:
            return float(np.sign(speed))
        for way in (1.0, -1.0):
            if self.acceleration(theta, 0.0, u, way) * way > 0.0:
                return way
        return 0.0

    def _piece(self, t: float, state: tuple[float, float], seconds: float, drive: Input, direction: float) -> solve_ivp:
        """Integration up to the next reversal or the end of the path."""
        low, high = self.range

        def rate(_t: float, y: FloatArray) -> tuple[float, float]:
            return y[1], self.acceleration(y[0], y[1], drive(y[0], y[1]), direction)

        def reversal(now: float, y: FloatArray) -> float:
            # A piece that starts at rest must first get going.
            return direction * y[1] if now > t else direction

        def border(_t: float, y: FloatArray) -> float:
            return min(y[0] - low, high - y[0]) + 1e-12 * (high - low)

        reversal.terminal, reversal.direction = True, -1.0  # type: ignore[attr-defined]
        border.terminal, border.direction = True, -1.0  # type: ignore[attr-defined]
        speed = state[1] if abs(state[1]) > _STICKING else 0.0
        return solve_ivp(
            rate,
            (t, seconds),
            (state[0], speed),
            method="DOP853",
            events=(reversal, border),
            rtol=RELATIVE_ACCURACY,
            atol=ABSOLUTE_ACCURACY,
            max_step=max(seconds / 200.0, 1e-6),
        )

    def squared_speed(self, theta: float, speed: float) -> Callable[[FloatArray], FloatArray]:
        """x(theta) on the frictionless level curve through a state with u = 0; negative where the curve does not exist.

        x = exp(-P) (x0 - integral of 2 gamma / alpha exp(P)), P the integral of 2 beta / alpha, both from the state on.
        """
        P, G = self._integrals
        start = float(np.exp(P(theta))) * speed**2 + float(G(theta))
        return lambda at: np.asarray((start - G(at)) * np.exp(-P(at)))

    @cached_property
    def _integrals(self) -> tuple[CubicSpline, CubicSpline]:
        d = self.dynamics
        grid = np.linspace(*self.range, 4 * len(d.theta))
        c = self._coefficients(grid)
        P = CubicSpline(grid, 2.0 * c[:, 1] / c[:, 0]).antiderivative()
        G = CubicSpline(grid, 2.0 * c[:, 2] / c[:, 0] * np.exp(P(grid))).antiderivative()
        return P, G

    def equilibria(self) -> tuple[tuple[float, bool], ...]:
        """Where gamma vanishes, and whether it is a centre: motions oscillate around it without friction."""
        d = self.dynamics
        roots = CubicSpline(d.theta, d.gamma).roots(extrapolate=False) if d.gamma.any() else np.empty(0)
        # A root on a knot is found from both sides.
        distinct = [at for k, at in enumerate(roots) if k == 0 or at - roots[k - 1] > 1e-9 * (d.theta[-1] - d.theta[0])]
        return tuple((float(at), self._stiffness(float(at)) > 0.0) for at in distinct)

    def _stiffness(self, theta: float) -> float:
        """Square of the frequency of small oscillations about an equilibrium."""
        return float(self._coefficients(theta, 1)[2] / self._coefficients(theta)[0])

    def small_period(self, centre: float) -> float:
        """Period of small oscillations about a centre [s]."""
        return 2.0 * pi / sqrt(self._stiffness(centre))

    def periodic(self, low: float, *, centre: float | None = None) -> PeriodicMotion:
        """The closed orbit that turns at `low`, without friction and with u = 0.

        Args:
            low: left turning point.
            centre: equilibrium it goes round; the first centre to the right of `low` by default.

        Raises:
            InputError: no centre, or the orbit leaves the path before it turns.
        """
        centres = [at for at, stable in self.equilibria() if stable and at > low]
        if centre is None and not centres:
            raise InputError(
                "theta", f"{low:g}", "no centre to the right of it: gamma does not change sign upwards there"
            )
        middle = centres[0] if centre is None else centre
        x = self.squared_speed(low, 0.0)
        grid = np.linspace(middle, self.range[1], 2000)
        outside = np.flatnonzero(x(grid) < 0.0)
        if not len(outside) or outside[0] == 0 or float(x(np.array(0.5 * (low + middle)))) <= 0.0:
            raise InputError(
                "theta", f"{low:g}", "the motion that starts at rest there does not turn back on this path"
            )
        k = int(outside[0])
        high = float(brentq(lambda at: float(x(np.array(at))), grid[k - 1], grid[k], xtol=1e-14))
        # theta = middle - radius cos(phi) takes the square roots at both turning points away.
        mean, radius = 0.5 * (low + high), 0.5 * (high - low)

        def slowness(phi: float) -> float:
            at = mean - radius * np.cos(phi)
            return float(radius * np.sin(phi) / np.sqrt(max(float(x(np.array(at))), 1e-300)))

        half, _ = quad(slowness, 0.0, pi, limit=400, epsabs=1e-10, epsrel=1e-9)
        theta = mean - radius * np.cos(np.linspace(0.0, pi, 201))
        return PeriodicMotion(
            centre=middle, low=low, high=high, period=2.0 * half, theta=theta, speed=np.sqrt(np.maximum(x(theta), 0.0))
        )

    def portrait(self, curves: int = 12, points: int = 300) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """Level curves of the frictionless motion: (theta, speed) of the upper half, each ending where speed vanishes.

        Through speeds from slow to fast at the middle of the path, and through rest at equally spaced places.
        """
        low, high = self.range
        theta = np.linspace(low, high, points)
        scale = float(np.sqrt(np.abs(self._integrals[1](theta) - self._integrals[1](low)).max()))
        scale = scale if scale > 0.0 else 1.0
        states = [(0.5 * (low + high), scale * k / curves) for k in range(1, curves + 1)]
        states += [(float(at), 0.0) for at in np.linspace(low, high, curves + 2)[1:-1]]
        out = []
        for state in states:
            x = self.squared_speed(*state)(theta)
            out.append((theta, np.where(x >= 0.0, np.sqrt(np.maximum(x, 0.0)), np.nan)))
        return tuple(out)
