"""Two clocks: is torque late against motion, or early?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.dynamics import regressor
from armid.logs.health.probe import Probe
from armid.logs.log import Channel
from armid.logs.samples import Samples, Segment
from armid.signals.filters import low_pass
from armid.signals.spline import CubicSpline

Index = npt.NDArray[np.intp]

_LAG_SAMPLES = 1000
"""Samples used: the lag is one number."""

_MIN_ROWS = 50
"""Rows of a joint below which it is left out."""

_RANK = 1e-6
"""Singular values below this fraction of the largest are rounding: the usual gap of rigid-body regressors lies there."""

_ROUNDING = 1e-10
"""Of the largest column's size: what is smaller is rounding of zeros."""

_REVERSAL = 0.15
"""Of the largest speed. Near reversal friction changes over by a law of its own that looks like a lag."""

_ITERATIONS = 5
"""Each shifts torque by the lag found so far: first order in the lag is not enough for fast motion."""

_WEIGHINGS = 2
"""Iterations after which the weights of the joints stay: they hardly change once torque is shifted."""

_SETTLED = 0.1
"""Of the deviation: a smaller step ends the iteration."""

_MAX_LAG = 0.25
"""[s] Beyond this the two channels have nothing to do with each other."""

_BLOCKS = 10
"""Stretches of time left out one by one to see how far the lag depends on any of them."""


@dataclass(frozen=True, eq=False)
class Lag:
    """How late torque is against motion.

    Args:
        seconds: positive when torque comes late [s].
        deviation: standard deviation of that [s]: noise, disagreement of the joints and of parts of the log together.
        per_joint: shape [joints that say something].
    """

    seconds: float
    deviation: float
    per_joint: FloatArray

    @property
    def confidence(self) -> float:
        """In standard deviations."""
        return abs(self.seconds) / self.deviation if self.deviation > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class JointRows:
    """Rows of one joint, as an orthonormal basis and a small factor: `A = Q R` over the columns it sees.

    Args:
        joint: whose they are.
        rows: among those of all joints.
        Q: shape [its rows, r].
        R: over all columns of the model, shape [r, columns].
    """

    joint: int
    rows: slice
    Q: FloatArray
    R: FloatArray


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the torque model away from reversals, joints one after another.

    Args:
        joints: that move.
        joint: of each row.
        sample: of each row.
        shared: whether the joints share the inertial columns; currents of unknown gain cannot.
    """

    joints: tuple[JointRows, ...]
    joint: Index
    sample: Index
    shared: bool

    def __len__(self) -> int:
        return len(self.joint)


@dataclass(frozen=True, eq=False)
class LagBasis:
    """Rows and an orthonormal basis of their weighted columns."""

    rows: Index
    Q: FloatArray


def torque_lag(probe: Probe) -> Lag | None:
    """The lag that explains best what the rigid-body model with friction leaves over; None without enough data.

    Torque that comes d late satisfies `tau(t + d) = W(t) p`, to first order `tau = W p - d dtau/dt`. The base parameters p are
    free, so the nominal masses do not matter; d is the slope on dtau/dt once W has taken its share. Signs of velocity pass the
    low-pass of the torque, or its smoothed corners would look like a lag.
    """
    s = probe.whole
    rows = _model_rows(probe, s)
    if rows is None:
        return None
    # Samples per period of the cut-off; neighbours within half of one are not independent.
    spacing = s.rate / max(s.cutoff_hz or s.rate, 1e-9) * min(1.0, _LAG_SAMPLES / len(s))
    weights, bases = np.ones(len(rows)), _bases_of(rows, np.ones(len(rows)))
    total, lag = 0.0, None
    for iteration in range(_ITERATIONS):
        tau = _advanced(s.torques[probe.channel], s, total)
        y, z = (x[rows.sample, rows.joint] for x in (tau, _derivative_within(tau, s.segments, s.rate)))
        if iteration < _WEIGHINGS:
            found = _joint_weights(rows, _projected(y * weights, bases) / weights)
            if found is None:
                return None
            weights = found
            bases = _bases_of(rows, weights)
        step = _weighted_lag(rows, bases, y * weights, z * weights, spacing)
        if step is None:
            return None
        lag = Lag(total + step.seconds, step.deviation, total + step.per_joint)
        done = iteration >= _WEIGHINGS - 1 and abs(step.seconds) < _SETTLED * step.deviation
        if done or abs(lag.seconds) > _MAX_LAG:
            break
        total = lag.seconds
    return lag


def _model_rows(probe: Probe, s: Samples) -> Rows | None:
    """Rows of every joint that moves; None when there are too few."""
    if not s.segments or len(s) < 100:
        return None
    pick = np.unique(np.linspace(0, len(s) - 1, min(len(s), _LAG_SAMPLES)).astype(np.intp))
    q, qd, qdd = s.q[pick], s.qd[pick], s.qdd[pick]
    direction = _smoothed_signs(s)[pick]
    Y = regressor(probe.robot, q, qd, qdd)
    n = s.n_joints
    blocks, joint, sample = [], [], []
    for j in range(n):
        away = np.abs(qd[:, j]) > _REVERSAL * float(np.abs(qd[:, j]).max())
        if away.sum() < _MIN_ROWS:
            continue
        drive = np.zeros((len(pick), 4 * n))
        drive[:, 4 * j : 4 * j + 4] = np.column_stack([qd[:, j], direction[:, j], qdd[:, j], np.ones(len(pick))])
        blocks.append(np.hstack([Y[:, j], drive])[away])
        joint.append(np.full(int(away.sum()), j, dtype=np.intp))
        sample.append(pick[away])
    shared = probe.channel is not Channel.CURRENT
    if not blocks or sum(len(block) for block in blocks) <= blocks[0].shape[1] + 100:
        return None
    return Rows(
        _factored(blocks, [int(own[0]) for own in joint]), np.concatenate(joint), np.concatenate(sample), shared
    )


def _factored(blocks: list[FloatArray], joints: list[int]) -> tuple[JointRows, ...]:
    """The rows of every joint as a basis and a factor: however they are weighed, the tall part of the work is done."""
    out, start = [], 0
    for A, joint in zip(blocks, joints, strict=True):
        seen = np.flatnonzero(np.any(A != 0.0, axis=0))
        Q, own = np.linalg.qr(A[:, seen])
        R = np.zeros((len(own), A.shape[1]))
        R[:, seen] = own
        out.append(JointRows(joint, slice(start, start + len(A)), Q, R))
        start += len(A)
    return tuple(out)


def _smoothed_signs(s: Samples) -> FloatArray:
    """Signs of velocity after the low-pass that the torque has passed, shape [n_samples, n_joints]."""
    signs = np.sign(s.qd)
    if s.settings is None or s.settings.torque_cutoff is None:
        return signs
    for segment in s.segments:
        filter = s.settings.low_pass(segment.rate, s.settings.torque_cutoff)
        if len(segment) > 8:
            signs[segment.slice] = low_pass(signs[segment.slice], filter)
    return signs


def _bases_of(rows: Rows, weights: FloatArray) -> list[LagBasis]:
    """Orthonormal bases of the weighted columns: one for all joints, or one for each.

    Args:
        rows: of the model.
        weights: of every row; one for all rows of a joint.
    """
    groups = [rows.joints] if rows.shared else [(own,) for own in rows.joints]
    return [_basis_of(group, weights) for group in groups]


def _basis_of(joints: Sequence[JointRows], weights: FloatArray) -> LagBasis:
    """Of the weighted columns of some joints: the small factors stacked have the same, in the bases of the joints."""
    S = _orthonormal(np.vstack([own.R * weights[own.rows.start] for own in joints]))
    edges = np.cumsum([0, *(len(own.R) for own in joints)])
    Q = np.vstack([own.Q @ S[a:b] for own, a, b in zip(joints, edges[:-1], edges[1:], strict=True)])
    every = np.concatenate([np.arange(own.rows.start, own.rows.stop) for own in joints])
    return LagBasis(every, Q)


def _projected(x: FloatArray, bases: list[LagBasis]) -> FloatArray:
    """What the columns leave of x, one column or several."""
    out = x.copy()
    for basis in bases:
        out[basis.rows] -= basis.Q @ (basis.Q.T @ x[basis.rows])
    return out


def _joint_weights(rows: Rows, residual: FloatArray) -> FloatArray | None:
    """One over the spread of each joint's residual, per row; None when a joint is explained to the last digit."""
    out = np.empty(len(residual))
    for j in np.unique(rows.joint):
        own = rows.joint == j
        spread = float(np.sqrt(np.mean(residual[own] ** 2)))
        if not spread > 0.0:
            return None
        out[own] = 1.0 / spread
    return out


def _weighted_lag(rows: Rows, bases: list[LagBasis], y: FloatArray, z: FloatArray, spacing: float) -> Lag | None:
    """One lag for all joints and one for each.

    Args:
        rows: of the model.
        bases: of its weighted columns.
        y, z: weighted torque and its time derivative.
        spacing: samples per period of the cut-off.
    """
    left, late = _projected(y, bases), _projected(z, bases)
    power = float(late @ late)
    freedom = len(y) - sum(basis.Q.shape[1] for basis in bases) - 1
    if power <= 0.0 or freedom < _MIN_ROWS:
        return None
    mean = -float(late @ left) / power
    each = _projected(np.column_stack([np.where(rows.joint == j, z, 0.0) for j in np.unique(rows.joint)]), bases)
    per_joint = -np.asarray(np.linalg.lstsq(each, left, rcond=1e-9)[0], dtype=np.float64)
    share = np.array([float(column @ column) for column in each.T])
    share /= share.sum()
    variance = float(((left + mean * late) ** 2).sum()) / freedom
    noise = float(np.sqrt(max(1.0, spacing / 2.0) * variance / power))
    effective = 1.0 / float(share @ share)
    scatter = float(np.sqrt(share @ (per_joint - mean) ** 2 / max(effective - 1.0, 0.5)))
    # Three views of one error that overlap: added up, they err on the side of silence.
    return Lag(mean, float(np.sqrt(noise**2 + scatter**2 + _block_deviation(rows, bases, y, z) ** 2)), per_joint)


def _block_deviation(rows: Rows, bases: list[LagBasis], y: FloatArray, z: FloatArray) -> float:
    """Standard deviation by leaving out one stretch of time after another (jackknife over blocks).

    Errors of the model last: within a block they may be as correlated as they like.
    """
    edges = np.quantile(rows.sample, np.linspace(0.0, 1.0, _BLOCKS + 1)[1:-1])
    block = np.searchsorted(edges, rows.sample, side="right")
    cross, power = np.zeros(_BLOCKS), np.zeros(_BLOCKS)
    for basis in bases:
        X = np.column_stack([basis.Q, y[basis.rows], z[basis.rows]])
        whole, own = X.T @ X, block[basis.rows]
        for b in range(_BLOCKS):
            part = X[own == b]
            G = whole - part.T @ part
            r = basis.Q.shape[1]
            x = np.linalg.lstsq(G[:r, :r], G[:r, r:], rcond=1e-9)[0]
            rest = G[r:, r:] - G[r:, :r] @ x
            cross[b] += rest[0, 1]
            power[b] += rest[1, 1]
    without = -cross / np.maximum(power, 1e-300)
    return float(np.sqrt((_BLOCKS - 1) / _BLOCKS * ((without - without.mean()) ** 2).sum()))


def _advanced(values: FloatArray, samples: Samples, by: float) -> FloatArray:
    """Columns `by` seconds earlier, within each segment, by cubic splines; ends are held.

    Straight lines would smooth the torque, and smoother torque leaves less unexplained: half a sample would look like a lag.
    """
    if by == 0.0:
        return values
    out = values.copy()
    for segment in samples.segments:
        t = samples.time[segment.slice]
        if len(t) > 4:
            curve = CubicSpline.through(t, values[segment.slice])
            out[segment.slice] = curve(np.clip(t + by, t[0], t[-1]))
    return out


def _derivative_within(values: FloatArray, segments: tuple[Segment, ...], rate: float) -> FloatArray:
    """Central differences that do not cross from one segment to the next."""
    out = np.zeros_like(values)
    for segment in segments:
        if len(segment) >= 2:
            out[segment.slice] = np.gradient(values[segment.slice], 1.0 / rate, axis=0)
    return out


def _orthonormal(A: FloatArray) -> FloatArray:
    """An orthonormal basis of the columns, from the singular values of their triangular factor; rounding errors are left out."""
    size = np.linalg.norm(A, axis=0)
    kept = size > _ROUNDING * float(size.max(initial=0.0))
    if not kept.any():
        return np.empty((len(A), 0))
    Q, R = np.linalg.qr(A[:, kept] / size[kept])
    U, singular, _ = np.linalg.svd(R)
    return np.asarray(Q @ U[:, : int((singular > _RANK * singular[0]).sum())], dtype=np.float64)
