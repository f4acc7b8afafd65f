"""An arm that drifts while it moves: everything of `watched` as random walks beside the arm of a result.

With the torque tau0 of the arm that the estimator started from, a channel reads what `watch_kernels.columns_of` says. Every
size wanders by its tolerance in `_WALK` seconds; one Kalman filter follows them all, for a zero, a tilt and a load are felt by
several channels, and what looks like what is told from how they agree. In an arm that hardly moves an offset, a gain and a zero
are the same, and their deviations stay wide. Parameters that are estimated on-line would take a drift for another arm; the arm
it started from does not.

Residuals remember for `CORRELATION_TIME`: samples are averaged over blocks as long, and a block is one measurement. Averaging
also takes the noise out of accelerations, which would pull gains towards nothing.

What changes at once does not wander. Where a residual is beyond its noise, or a size moves faster than it wanders, anything may
have changed: every size may be many tolerances (`Watched.jump`) from where it was, and is learnt anew.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.identification.result import Result
from armid.kernels.single import SingleJacobian, SingleRows
from armid.online.drifts import ImperfectionDrift, News, Sizes
from armid.online.teller import Teller
from armid.online.watch_kernels import columns_of, follow, predict
from armid.online.watched import base_values, known_sizes, layout_of
from armid.parameters.effects import TorqueSide
from armid.parameters.inertial import N_INERTIAL
from armid.parameters.space import OwnerKind
from armid.rows.gravity import GravityRows
from armid.rows.imperfections import tilted
from armid.rows.torque import TorqueRows

CORRELATION_TIME = 0.1
"""[s] Over which residuals of an identified arm remember: friction not quite as modelled. Samples count by their share of it."""

_WALK = 100.0
"""[s] in which anything may wander by its tolerance: warming up takes minutes."""

_BEYOND = 5.0
"""Deviations beyond which a residual, or the energy of many, says that something has changed at once."""

_SETTLING = 10.0
"""[s] at the start in which the noise of residuals is learnt, and nothing is taken for a change."""

_NOISE_MEMORY, _CLIPPED = 20.0, 3.0
"""[s] over which that noise is learnt later, and deviations beyond which a residual is none."""

_ENERGY = 5.0
"""[s] Over which the energy of residuals is averaged: that of torque that is late comes and goes with the motion."""

_WAY = 10.0
"""[s] Over which the way of a size is held against what it wanders."""

_FAR = 4.0
"""Deviations beyond which it says the same: fewer, for what is hardly seen moves slowly, and doubting costs only time."""

_TURNED = 0.05
"""[s] after a joint has turned back, in which its torque is not counted: Coulomb friction turns around when it likes."""

_KNOWN = 0.5
"""Tolerances within which a zero must be known before torque is taken there: beside a wrong one every derivative is wrong."""

_JUDGED = 1.0
"""[s] between two looks at what has drifted."""


class DriftWatch:
    """Follows what may change; fixed memory and time per sample.

    Args:
        known: the result whose arm it is.
        source: of its rows.
        sigma: noise of every channel's residual [N m or N], shape [m].
        rate: [Hz].
    """

    def __init__(self, known: Result, source: TorqueRows, sigma: FloatArray, *, rate: float) -> None:
        layout = layout_of(known, source)
        m, n, N = layout.channels, layout.joints, len(layout.states)
        self.layout, self._rate = layout, float(rate)
        self._length = max(round(CORRELATION_TIME * rate), 1)
        self._step = self._length / self._rate
        self._prediction = _Prediction(known, source)
        self._start = known_sizes(known, layout)
        self._state, self._covariance = self._start.copy(), np.eye(N)
        self._tolerances, self._jumps = layout.tolerances, layout.jumps
        self._walk = layout.walks**2 * self._step / _WALK
        self._zeros = self._start[layout.zeros]
        self._earlier = self._start.copy(), np.ones(N)
        self._residuals = _Residuals(np.asarray(sigma, dtype=np.float64) ** 2, self._step)
        self._places = _places(m, n, N)
        self._H, self._expected, self._room = np.zeros(self._places.shape), np.zeros(m), np.zeros(N)
        self._teller = Teller(np.asarray(known.standard), source, layout, np.asarray(sigma))
        self._three = [_Block(m, n) for _ in range(3)]
        self._blocks = 0
        self.reset()

    def reset(self) -> None:
        """After a gap in the stream: blocks begin anew."""
        n = self.layout.joints
        self._way, self._since = np.zeros(n), np.zeros(n)
        self._held = 0
        self._three[-1].begin(self._zeros)

    def update(self, inputs: FloatArray, torque: FloatArray, counted: npt.NDArray[np.bool_] | None) -> tuple[News, ...]:
        """One sample; what has just been found to have drifted.

        Args:
            inputs: of the rows, shape [n_inputs].
            torque: measured, shape [m].
            counted: channels that count; all by default.
        """
        n, block = self.layout.joints, self._three[-1]
        x = inputs.copy()
        x[:n] -= block.zeros * self._tolerances[self.layout.zeros]
        share = 1.0 / self._length
        self._prediction.add(x, share, block)
        velocity = x[n : 2 * n]
        block.torque += share * torque
        block.velocity += share * velocity
        block.way += share * self._counted(velocity, counted, block)
        block.samples += 1
        return self._next() if block.samples == self._length else ()

    def _counted(self, velocity: FloatArray, counted: npt.NDArray[np.bool_] | None, block: _Block) -> FloatArray:
        """Direction of every joint; a channel counts whose joint keeps it throughout a block, and has for a while."""
        way: FloatArray = np.sign(velocity)
        if counted is not None:
            block.counted &= counted
        if self._prediction.turns:
            self._since = np.where((way == self._way) & (way != 0.0), self._since + 1.0, 0.0)
            self._way = way
            block.counted &= np.tile(self._since > _TURNED * self._rate, len(block.counted) // len(way))
        return way

    def _next(self) -> tuple[News, ...]:
        """A block is full: the one before it has neighbours on either side now, for the slope of its torque."""
        before, block, after = self._three
        self._held += 1
        news = self._measured(block, (after.smooth - before.smooth) / (2.0 * self._step)) if self._held > 2 else ()
        self._three = [block, after, before]
        before.begin(self._zeros)
        return news

    def _measured(self, block: _Block, slope: FloatArray) -> tuple[News, ...]:
        """A block as one measurement."""
        columns_of(
            block.expected,
            slope,
            block.jacobian,
            block.way,
            block.velocity,
            block.tilt,
            block.load,
            block.zeros,
            self._tolerances,
            self._state,
            self._places,
            self._H,
            self._expected,
        )
        residuals = self._residuals
        follow(
            block.torque - self._expected,
            self._H,
            self._places,
            block.counted,
            residuals.variance,
            self._walk,
            self._state,
            self._covariance,
            residuals.left,
            residuals.score,
            self._room,
        )
        changed = residuals.changed(block.counted)
        self._blocks += 1
        if changed or (self._every(_WAY) and self._moves_too_fast()):
            self._doubt()
        if self._every(_JUDGED):
            return self._look()
        # Half way to the next look, so that no sample pays for both.
        return self._teller.likeliest(self.sizes) if self._every(_JUDGED, 0.5) else ()

    def _every(self, seconds: float, phase: float = 0.0) -> bool:
        """Whether a period is over, or that share of it."""
        count = max(round(seconds / self._step), 1)
        return self._blocks % count == int(phase * count)

    def _look(self) -> tuple[News, ...]:
        zeros, variances = self.layout.zeros, np.diagonal(self._covariance)
        self._zeros = np.where(variances[zeros] < _KNOWN**2, self._state[zeros], self._zeros)
        return self._teller.proven(self.sizes)

    def _moves_too_fast(self) -> bool:
        """Whether some size has moved farther than it wanders and than what was learnt since allows."""
        variance = np.diagonal(self._covariance).copy()
        state, earlier = self._earlier
        allowed = np.maximum(earlier - variance, 0.0) + _WAY / self._step * self._walk
        moved = self._state - state
        self._earlier = self._state.copy(), variance
        return bool(np.any(moved**2 > _FAR**2 * allowed)) and not self._residuals.settling

    def _doubt(self) -> None:
        """Anything may have changed at once."""
        diagonal = np.diag_indices_from(self._covariance)
        more = np.maximum(self._jumps**2 - self._covariance[diagonal], 0.0)
        self._covariance[diagonal] += more
        self._earlier = self._earlier[0], self._earlier[1] + more

    @property
    def sizes(self) -> Sizes:
        """Where everything is now, beyond what the result knew."""
        return Sizes(self._state - self._start, self._covariance)

    @property
    def drifts(self) -> tuple[ImperfectionDrift, ...]:
        """The same as records, what the arm carries left out."""
        return self.sizes.records(self.layout)


class _Prediction:
    """Torque of an identified arm and its derivatives, sample by sample.

    Args:
        known: the result.
        source: of its rows.
    """

    def __init__(self, known: Result, source: TorqueRows) -> None:
        n = known.robot.n_joints
        self._n, self._parameters = n, base_values(known.estimate, len(source.columns))
        self._standard = np.asarray(known.standard, dtype=np.float64)
        self._coulomb = np.array([p.quantity in ("coulomb", "motor_coulomb") for p in source.space], dtype=np.bool_)
        self._first = source.space.start(OwnerKind.LINK, n - 1)
        self._rows, self._jacobian = SingleRows(source), SingleJacobian(source, self._parameters, n)
        self._gravity = _tilt_rows(known, source)
        self.turns = bool(self._coulomb.any())

    def add(self, x: FloatArray, share: float, block: _Block) -> None:
        """A sample's share of its block.

        Args:
            x: inputs of the rows, shape [n_inputs].
            share: one over the samples of a block.
            block: that it belongs to.
        """
        rows, m = self._rows, len(block.torque)
        predict(
            rows(x),
            rows.channels,
            rows.columns,
            self._parameters,
            self._coulomb,
            self._first,
            share,
            block.smooth,
            block.expected,
            block.load,
        )
        block.jacobian += share * self._jacobian(x)[:, :m]
        for k, gravity in enumerate(self._gravity):
            torque = gravity(x[: self._n]) * self._standard[gravity.columns]
            per_joint = np.bincount(gravity.channels, weights=torque, minlength=self._n)
            block.tilt[k] += share * np.tile(per_joint, m // self._n)


class _Residuals:
    """How large residuals of blocks are, and whether that is more than noise.

    Args:
        least: variance that the result knows, shape [m].
        step: duration of a block [s].
    """

    def __init__(self, least: FloatArray, step: float) -> None:
        self._least, self._step = least, step
        self.variance, self._noise, self._seen = least.copy(), np.zeros(len(least)), np.zeros(len(least))
        self.left, self.score, self._energy = np.zeros((3, len(least)))
        self._blocks = 0

    @property
    def settling(self) -> bool:
        """Whether it is too early to tell noise from anything else."""
        return self._blocks * self._step < _SETTLING

    def changed(self, counted: npt.NDArray[np.bool_]) -> bool:
        """Takes one more residual of every channel that counts; whether they are too large for chance."""
        self._blocks += 1
        squares = self.left**2
        if not self.settling:
            squares = np.minimum(squares, _CLIPPED**2 * self.variance)
        self._seen = np.minimum(self._seen + counted, _NOISE_MEMORY / self._step)
        self._noise += np.where(counted, (squares - self._noise) / np.maximum(self._seen, 1.0), 0.0)
        np.maximum(self._least, self._noise, out=self.variance)
        self._energy += np.where(counted, min(self._step / _ENERGY, 1.0) * (self.score - self._energy), 0.0)
        much = 1.0 + _BEYOND * (2.0 * self._step / _ENERGY) ** 0.5
        beyond = counted & ((self.score > _BEYOND**2) | (self._energy > much))
        if self.settling or not beyond.any():
            return False
        self._energy[:] = 0.0
        return True


class _Block:
    """Means over a block of what its samples say, of m channels and n joints; see `watch_kernels.columns_of`."""

    def __init__(self, m: int, n: int) -> None:
        self.smooth, self.expected, self.torque = np.zeros((3, m))
        self.jacobian = np.zeros((n, m))
        self.way, self.velocity, self.zeros = np.zeros((3, n))
        self.tilt, self.load = np.zeros((2, m)), np.zeros((m, N_INERTIAL))
        self.counted, self.samples = np.ones(m, dtype=np.bool_), 0

    def begin(self, zeros: FloatArray) -> None:
        """Anew, at these zeros."""
        for mean in (
            self.smooth,
            self.expected,
            self.torque,
            self.jacobian,
            self.way,
            self.velocity,
            self.tilt,
            self.load,
        ):
            mean[:] = 0.0
        self.zeros[:] = zeros
        self.counted[:], self.samples = True, 0


def _places(m: int, n: int, N: int) -> npt.NDArray[np.intp]:
    """States that each channel depends on, in the order of its columns, shape [m, 17 + n]."""
    shared = np.arange(3 * m + 2 * n, N)
    own = [[k, m + k, 2 * m + k, 3 * m + k % n, 3 * m + n + k % n] for k in range(m)]
    return np.array([[*five, *shared] for five in own], dtype=np.intp)


def _tilt_rows(known: Result, source: TorqueRows) -> tuple[SingleRows, ...]:
    """Torque per tilt of the base about either axis; none without gravity, or where no torque holds the links."""
    if not np.any(known.robot.gravity) or source.effects.torques is TorqueSide.DIFFERENCE:
        return ()
    return tuple(SingleRows(GravityRows(tilted(source.robot, part), source.effects)) for part in ("first", "second"))
