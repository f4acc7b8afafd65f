"""External torque from motion and measured torque: directly, and by the generalised momentum.

With measured torque `tau` and external torque `e`, `M qdd + C qd + g + f = tau + e`. The direct residual is the left side less
`tau`. The momentum observer `r' = K (e - r)` needs no acceleration: with `p = M qd` it rests on
`p' = tau + e - (C qd + g + f) + M' qd`. Over one step `p' - M' qd` is the inertia matrix times the change of velocity, so that
each step of the observer is one evaluation of inverse dynamics with that change over the step in place of the acceleration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.single import SingleRows
from armid.parameters.effects import Effects
from armid.robot.described import described_values
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from armid.signals.causal import CausalDifferentiator, LocalPolynomial
from armid.words import number

ResidualWord = Literal["momentum", "direct"]

_WINDOW = 0.02
"""[s] over which positions and torques are smoothed, half of it on either side; all is late by half."""

_FEWEST = 4
"""Samples on either side of a window's middle: a quartic needs five points."""

REVERSAL_MEMORY = 0.05
"""[s] for which a reversal is felt: gears wind up over some milliradians."""

_REST_SPEED = 0.005
"""Of the fastest speed: below it friction may be anything up to Coulomb friction."""


def smoothing(rate_hz: float) -> LocalPolynomial:
    """How derivatives are taken from samples at a rate: from the past only."""
    return LocalPolynomial(rate_hz, half_window=max(round(_WINDOW * rate_hz / 2), _FEWEST))


@dataclass(frozen=True, eq=False, kw_only=True)
class ObservedMotion:
    """A motion as the observer sees it: everything late by `delay`.

    Args:
        time: of the states, not of their arrival [s], shape [n].
        q, qd, qdd, torque: shape [n, n_joints].
        turning: where a joint turned back within the window, so that its friction is smoothed over a jump, [n, n_joints].
        delay: between a state and the moment it is known [s].
    """

    time: FloatArray
    q: FloatArray
    qd: FloatArray
    qdd: FloatArray
    torque: FloatArray
    turning: npt.NDArray[np.bool_]
    delay: float

    @property
    def step(self) -> float:
        """Between samples [s]."""
        return float(np.median(np.diff(self.time)))


def observed_motion(time: FloatArray, q: FloatArray, torque: FloatArray) -> ObservedMotion:
    """Positions and torques at even steps, smoothed and differentiated as a live observer would."""
    step = float(np.median(np.diff(time)))
    even = np.arange(time[0], time[-1], step)
    columns = np.column_stack([np.interp(even, time, x) for x in (*q.T, *torque.T)])
    polynomial = smoothing(1.0 / step)
    windows = np.lib.stride_tricks.sliding_window_view(columns, polynomial.width, axis=0)
    n = q.shape[1]
    value, first, second = (windows @ weights for weights in polynomial.weights)
    speeds = np.stack([first[:, :n], *(windows[:, :n] @ weights for weights in polynomial.slopes)])
    half = polynomial.half_window
    return ObservedMotion(
        time=even[half : half + len(value)],
        q=value[:, :n],
        qd=first[:, :n],
        qdd=second[:, :n],
        torque=value[:, n:],
        turning=(speeds.min(axis=0) <= 0.0) & (speeds.max(axis=0) >= 0.0),
        delay=polynomial.delay,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Residuals:
    """External torque along a motion [N m or N], each of shape [n, n_joints].

    Args:
        direct: from the acceleration.
        momentum: from the generalised momentum, late by the observer's time constant besides.
        direct_band, momentum_band: what friction of joints that stand or turn back may hide: it is anything up to Coulomb
            friction there, and what the observer makes of that bound afterwards.
        reversal: Coulomb friction that turned around a short while ago: no friction law is good there.
    """

    direct: FloatArray
    momentum: FloatArray
    direct_band: FloatArray
    momentum_band: FloatArray
    reversal: FloatArray


def rest_speed(robot: Robot) -> FloatArray:
    """[rad/s or m/s] below which a joint counts as standing, shape [n_joints]."""
    fastest = robot.limit("velocity")
    return _REST_SPEED * np.where(np.isfinite(fastest), fastest, 1.0)


def _decay(bandwidth_hz: float, step: float) -> float:
    """What is left of the observer's error after one step [s]."""
    if not 0.0 < number("bandwidth", bandwidth_hz) <= 0.5 / step:
        raise InputError(
            "bandwidth", f"{bandwidth_hz:g} Hz", f"positive, and at most half of the {1.0 / step:g} samples per second"
        )
    return float(np.exp(-2.0 * np.pi * bandwidth_hz * step))


def residuals(robot: Robot, motion: ObservedMotion, bandwidth_hz: float) -> Residuals:
    """External torque by both ways, over a whole motion.

    Args:
        robot: the model: bodies, friction, offsets, rotor inertias.
        motion: even steps.
        bandwidth_hz: of the momentum observer.

    Raises:
        InputError: a bandwidth that samples this far apart do not have.
    """
    resting = motion.turning | (np.abs(motion.qd) < rest_speed(robot))
    # A joint that stands or turns back has no sign of friction; up to Coulomb friction is then charged to nobody.
    qd = np.where(resting, 0.0, motion.qd)
    direct = inverse_dynamics(robot, motion.q, qd, motion.qdd, drives=True) - motion.torque
    step = float(np.median(np.diff(motion.time)))
    change = np.diff(motion.qd, axis=0, prepend=motion.qd[:1]) / step
    pushed = inverse_dynamics(robot, motion.q, qd, change, drives=True) - motion.torque
    pushed[0] = 0.0
    decay = _decay(bandwidth_hz, step)
    band = np.where(resting, robot.drive("coulomb"), 0.0)
    return Residuals(
        direct=direct,
        momentum=_followed(pushed, decay),
        direct_band=band,
        # A push of at most this size at every instant moves the observer by at most what it makes of the size itself.
        momentum_band=_followed(band, decay),
        reversal=_followed(band, float(np.exp(-step / REVERSAL_MEMORY))),
    )


def _followed(x: FloatArray, decay: float) -> FloatArray:
    """R with r' = K (x - r), exactly for values held over a step."""
    out = np.zeros_like(x)
    for k in range(1, len(x)):
        out[k] = decay * out[k - 1] + (1.0 - decay) * x[k]
    return out


def beyond_rest(found: Residuals, which: ResidualWord) -> FloatArray:
    """External torque less what friction at rest may hide, shape [n, n_joints]."""
    momentum = which == "momentum"
    raw, band = (found.momentum, found.momentum_band) if momentum else (found.direct, found.direct_band)
    return np.sign(raw) * np.maximum(np.abs(raw) - band, 0.0)


class _OneSample:
    """Torque of the model for one sample after the other, without the overhead of batches."""

    def __init__(self, robot: Robot) -> None:
        rows = TorqueRows(robot, Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True))
        self._rows = SingleRows(rows)
        values = described_values(robot, rows.space)
        self._weights = values[self._rows.columns]
        self._channels, self._n = self._rows.channels, robot.n_joints

    def __call__(self, state: FloatArray) -> FloatArray:
        packed = self._rows(state) * self._weights
        return np.bincount(self._channels, weights=packed, minlength=self._n).astype(np.float64)


class MomentumObserver:
    """External torque of a live arm, one sample after the other.

    Args:
        robot: the model.
        rate_hz: of the samples.
        bandwidth_hz: of the observer.
    """

    def __init__(self, robot: Robot, rate_hz: float, bandwidth_hz: float = 10.0) -> None:
        self.robot, self.step = robot, 1.0 / rate_hz
        self._decay = _decay(bandwidth_hz, self.step)
        self._derive = CausalDifferentiator(smoothing(rate_hz), robot.n_joints, robot.n_joints)
        self._model = _OneSample(robot)
        self._rest, self._coulomb = rest_speed(robot), robot.drive("coulomb")
        self._before: FloatArray | None = None
        self.external = np.zeros(robot.n_joints)
        """Torque that somebody else gives [N m or N]."""
        self.band = np.zeros(robot.n_joints)
        """What friction of joints that stand or turn back may hide of it [N m or N]."""
        self.state = np.zeros((3, robot.n_joints))
        """Position, velocity and acceleration `delay` ago."""
        self.resting = np.zeros(robot.n_joints, dtype=np.bool_)
        """Joints that stand or turn back."""

    @property
    def delay(self) -> float:
        """[s] by which everything it says is late, besides its own time constant."""
        return self._derive.polynomial.delay

    def reset(self) -> None:
        """Starts over, after a missing sample: the window and the velocity before it are gone."""
        self._derive.reset()
        self._before = None
        self.external, self.band = np.zeros_like(self.external), np.zeros_like(self.band)

    def push(self, q: FloatArray, torque: FloatArray) -> FloatArray | None:
        """One sample; the external torque `delay` ago once enough samples have come, shape [n_joints].

        A sample with a number that is not finite is a missing one.
        """
        if not (np.isfinite(q).all() and np.isfinite(torque).all()):
            self.reset()
            return None
        known = self._derive.push(q, torque)
        if known is None:
            return None
        self.state = known[0].reshape(3, -1)
        x, v, _ = self.state
        if self._before is not None:
            self.resting = resting = ~self._derive.one_way | (np.abs(v) < self._rest)
            moving = np.where(resting, 0.0, v)
            change = (v - self._before) / self.step
            pushed = self._model(np.concatenate([x, moving, change])) - known[1]
            self.external = self._decay * self.external + (1.0 - self._decay) * pushed
            self.band = self._decay * self.band + (1.0 - self._decay) * np.where(resting, self._coulomb, 0.0)
        self._before = v.copy()
        return self.external
