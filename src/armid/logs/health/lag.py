"""Two clocks: is torque late against motion, or early?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.dynamics import regressor
from armid.logs.health.probe import Probe
from armid.logs.samples import Samples, Segment

LAG_SAMPLES = 800
"""Samples used: the lag is one number."""

RANK = 1e-6
"""Singular values below this fraction of the largest are rounding: the usual gap of rigid-body regressors lies there."""


@dataclass(frozen=True, eq=False)
class Lag:
    """How late torque is against motion.

    Args:
        seconds: positive when torque comes late [s].
        deviation: standard deviation of that, from the noise and from how the joints disagree [s].
        per_joint: shape [n]; nan where a joint says nothing.
    """

    seconds: float
    deviation: float
    per_joint: FloatArray

    @property
    def confidence(self) -> float:
        """In standard deviations."""
        return abs(self.seconds) / self.deviation if self.deviation > 0.0 else 0.0


def torque_lag(probe: Probe) -> Lag | None:
    """The lag that explains best what the rigid-body model with friction leaves over.

    Torque that comes d late satisfies `tau(t + d) = W(t) p`, to first order `tau = W p - d dtau/dt`. The base parameters p are
    free, so the nominal masses do not matter; d is the slope on dtau/dt once W has taken its share. None without enough data.
    """
    s = probe.samples
    if not s.segments or len(s) < 100:
        return None
    pick = np.unique(np.linspace(0, len(s) - 1, min(len(s), LAG_SAMPLES)).astype(int))
    Y = regressor(probe.robot, s.q[pick], s.qd[pick], s.qdd[pick])
    blocks = [joint_rows(Y, s.qd[pick], s.qdd[pick], j) for j in range(s.n_joints)]
    A = np.vstack([block[0] for block in blocks])
    away = [block[1] for block in blocks]
    if len(A) <= A.shape[1] + 100:
        return None
    joint = np.repeat(np.arange(s.n_joints), [int(mask.sum()) for mask in away])
    total = 0.0
    lag = None
    for _ in range(ITERATIONS):
        tau = advanced(probe.torque, s, total)
        y, z = (
            np.concatenate([x[pick, j][mask] for j, mask in enumerate(away)])
            for x in (tau, derivative_within(tau, s.segments, s.rate))
        )
        step = weighted_lag(A, y, z, joint, s.rate / max(s.cutoff_hz or s.rate, 1e-9))
        if step is None:
            return None
        lag = Lag(total + step.seconds, step.deviation, total + step.per_joint)
        if abs(step.seconds) < 0.3 * step.deviation or abs(lag.seconds) > MAX_LAG:
            break
        total = lag.seconds
    return lag


ITERATIONS = 5
"""Each shifts torque by the lag found so far: first order in the lag is not enough for fast motion."""

MAX_LAG = 0.25
"""[s] Beyond this the two channels have nothing to do with each other."""


def advanced(values: FloatArray, samples: Samples, by: float) -> FloatArray:
    """Columns `by` seconds earlier, within each segment; ends are held."""
    if by == 0.0:
        return values
    out = values.copy()
    for segment in samples.segments:
        t = samples.time[segment.slice]
        for j in range(values.shape[1]):
            out[segment.slice, j] = np.interp(t + by, t, values[segment.slice, j])
    return out


REVERSAL = 0.15
"""Of the largest speed. Near reversal friction changes over by a law of its own that looks like a lag."""


def joint_rows(Y: FloatArray, qd: FloatArray, qdd: FloatArray, j: int) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Rows of joint j away from its reversals: inertial columns shared by all joints, and four of its own drive."""
    n = qd.shape[1]
    away = np.abs(qd[:, j]) > REVERSAL * float(np.abs(qd[:, j]).max())
    drive = np.zeros((len(qd), 4 * n))
    drive[:, 4 * j : 4 * j + 4] = np.column_stack([qd[:, j], np.sign(qd[:, j]), qdd[:, j], np.ones(len(qd))])
    return np.hstack([Y[:, j], drive])[away], away


def weighted_lag(
    A: FloatArray, y: FloatArray, z: FloatArray, joint: npt.NDArray[np.intp], per_period: float
) -> Lag | None:
    """One lag for all joints and one for each, rows weighted by the joint's own residual.

    Args:
        A, y: rows and torques.
        z: time derivative of the torques.
        joint: of each row.
        per_period: samples per period of the cut-off; neighbours within half of one are not independent.
    """
    n = int(joint.max()) + 1
    Q = orthonormal(A)
    first = y - Q @ (Q.T @ y)
    spread = np.array([np.sqrt(np.mean(first[joint == j] ** 2)) if (joint == j).any() else np.inf for j in range(n)])
    if not (spread > 0.0).all():
        return None
    w = (1.0 / spread)[joint]
    Q = orthonormal(A * w[:, np.newaxis])
    left, late = (x * w - Q @ (Q.T @ (x * w)) for x in (y, z))
    power = float(late @ late)
    if power <= 0.0:
        return None
    mean = -float(late @ left) / power
    each = np.column_stack([np.where(joint == j, z, 0.0) * w for j in range(n)])
    each -= Q @ (Q.T @ each)
    per_joint = -np.asarray(np.linalg.lstsq(each, left, rcond=1e-9)[0], dtype=np.float64)
    share = np.array([float(column @ column) for column in each.T])
    share /= share.sum()
    variance = float(((left + mean * late) ** 2).sum()) / (len(y) - Q.shape[1] - 1)
    noise = float(np.sqrt(max(1.0, per_period / 2.0) * variance / power))
    effective = 1.0 / float(share @ share)
    scatter = float(np.sqrt(share @ (per_joint - mean) ** 2 / max(effective - 1.0, 0.5)))
    return Lag(mean, max(noise, scatter), per_joint)


def derivative_within(values: FloatArray, segments: tuple[Segment, ...], rate: float) -> FloatArray:
    """Central differences that do not cross from one segment to the next."""
    out = np.zeros_like(values)
    for segment in segments:
        if len(segment) >= 2:
            out[segment.slice] = np.gradient(values[segment.slice], 1.0 / rate, axis=0)
    return out


def orthonormal(A: FloatArray) -> FloatArray:
    """An orthonormal basis of the columns."""
    scale = np.linalg.norm(A, axis=0)
    U, sigma, _ = np.linalg.svd(A[:, scale > 0.0] / scale[scale > 0.0], full_matrices=False)
    return np.asarray(U[:, sigma > RANK * sigma[0]]) if len(sigma) else np.empty((len(A), 0))
