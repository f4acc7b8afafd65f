"""Where to measure axis inertias so that they can be predicted everywhere: poses and axes by the expected error of prediction.

A small condition number says that no combination of parameters is much worse known than another, whatever its use. What
counts is the inertia of every axis at poses where nothing was measured: with measurements of deviations s_i the variance of a
prediction is d(q)^T C d(q), C = (sum d_i d_i^T / s_i^2)^-1, and its mean over all poses, relative to the inertia itself, is a
trace (I-optimality, [Atkinson2007]). Which axis is measured how often is part of the choice: axes share parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import qr

from armid.arrays import FloatArray
from armid.design.pose_candidates import Candidates, IntArray, PoseSettings, axis_pool, leverage_subset
from armid.design.pose_selection import SHORTLIST, Pool, smallest
from armid.errors import InputError
from armid.identifiability.smooth import FLOOR, Merit
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.motions.limits import InfeasibleError, MotionLimits
from armid.motions.sweep import sweep_motion
from armid.robot.robot import Robot
from armid.rows.axis_inertia import described_inertia
from armid.scene.scene import Scene

_PER_PARAMETER = 2
"""Measurements per base parameter by default: enough left over to see whether they agree."""

_POOL = (4000,)
"""Poses generated per axis: the rows of an axis are products of a few sines, which thousands of poses cover."""

_FRESH = 2000
"""Poses at which predictions are judged, uniform within the limits."""

TORQUE_NOISE = 3e-3
"""Of the torque limit, per sample: torque from motor current. Only its ratio between axes matters to the choice."""

_AXES_POWER = 8.0
"""p of the norm over axes: close to the worst axis, and still smooth."""


@dataclass(frozen=True, eq=False)
class PredictionError(Merit):
    """Log of the p-norm over axes of the root-mean-square relative deviation of predicted inertias.

    Args:
        power: p.
        weights: mean of d d^T / J^2 over fresh poses per axis, shape [n_axes, r, r].
    """

    power: float = _AXES_POWER
    weights: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def __call__(self, G: FloatArray) -> tuple[float, FloatArray]:
        """Value and derivative by the Gram matrix of the measured rows, each divided by its deviation."""
        inverse = floored_inverse(G)
        traces = np.einsum("kij,ji->k", self.weights, inverse)
        peak = traces.max()
        shares = (traces / peak) ** (self.power / 2)
        value = 0.5 * float(np.log(peak)) + float(np.log(shares.sum())) / self.power
        mixed = np.tensordot(0.5 * shares / (shares.sum() * traces), self.weights, axes=1)
        return value, -inverse @ mixed @ inverse

    def values(self, G: FloatArray) -> FloatArray:
        traces = np.einsum("kij,nji->nk", self.weights, floored_inverse(G))
        peak = traces.max(axis=1)
        shares = ((traces / peak[:, np.newaxis]) ** (self.power / 2)).sum(axis=1)
        return np.asarray(0.5 * np.log(peak) + np.log(shares) / self.power)


def floored_inverse(G: FloatArray) -> FloatArray:
    """Inverse of symmetric matrices, shape [..., r, r], eigenvalues kept above round-off of the scaled matrix."""
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(G, axis1=-2, axis2=-1), 1e-300))
    by = scale[..., :, np.newaxis] * scale[..., np.newaxis, :]
    w, V = np.linalg.eigh(G * by)
    w = np.maximum(w, FLOOR * w[..., -1:])
    return np.asarray(((V / w[..., np.newaxis, :]) @ np.swapaxes(V, -1, -2)) * by)


def _prediction_weights(robot: Robot, rows: Restricted, poses: FloatArray) -> FloatArray:
    """Mean of d d^T / J^2 over poses for every axis, shape [n_axes, r, r].

    Raises:
        InputError: the description has no masses to be relative to.
    """
    inertia = described_inertia(robot, poses)
    scaled = evaluate_rows(rows, poses) / inertia[:, :, np.newaxis]
    return np.asarray(np.einsum("nki,nkj->kij", scaled, scaled) / len(poses))


def _axis_deviations(robot: Robot, limits: MotionLimits) -> FloatArray:
    """Deviation of one measurement of every axis at usual settings [kg m^2 or kg], shape [n_axes]."""
    found = []
    for k, name in enumerate(robot.joint_names):
        limit = robot.joints[k].limits.torque
        noise = TORQUE_NOISE * (limit if np.isfinite(limit) else 100.0)
        found.append(sweep_motion(robot, limits.middle, name).deviation(noise, 1000.0))
    return np.array(found)


def prediction_candidates(
    robot: Robot,
    rows: Restricted,
    settings: PoseSettings,
    limits: MotionLimits,
    scene: Scene,
    rng: np.random.Generator,
) -> tuple[Candidates, PredictionError, int, int]:
    """Free poses of every axis as one pool, rows divided by what a measurement of that axis is good to.

    Returns:
        Candidates, the criterion, and how many poses were generated and how many of them are free.
    """
    n, deviation = robot.n_joints, _axis_deviations(robot, limits)
    chosen = PoseSettings(reference=settings.reference, spread=settings.spread, pool=settings.pool or _POOL)
    poses, generated, free = [], 0, 0
    for axis in range(n):
        own, made = axis_pool(axis, chosen, limits, scene, rng)
        kept = own[leverage_subset(evaluate_rows(rows, own)[:, [axis]], rng)]
        poses.append(kept)
        generated, free = generated + made, free + len(own)
    groups = np.repeat(np.arange(n), [len(p) for p in poses])
    together = np.vstack(poses)
    channels = (np.eye(n) / deviation)[groups]
    blocks = (evaluate_rows(rows, together) * channels[:, :, np.newaxis])[np.arange(len(groups)), groups]
    count = settings.count or _PER_PARAMETER * len(rows.columns)
    if count < len(rows.columns):
        raise InputError("count", f"{count} measurements", f"{len(rows.columns)} parameters need at least as many")
    pool = Pool(np.ascontiguousarray(blocks[:, np.newaxis]), np.zeros(len(groups), dtype=np.intp), (count,))
    movable = (np.arange(n) > groups[:, np.newaxis]).astype(np.float64)
    fresh = rng.uniform(limits.lower, limits.upper, size=(_FRESH, n))
    quality = PredictionError(weights=_prediction_weights(robot, rows, fresh))
    candidates = Candidates(
        source=rows, poses=together, channels=channels, movable=movable, pool=pool, limits=limits, scene=scene
    )
    return candidates, quality, generated, free


def greedy_choice(pool: Pool, quality: PredictionError) -> IntArray:
    """Rows that span all parameters by pivoting, then one measurement after the other where it helps most.

    Exchanges from random sets end in poor minima here: rows of different axes differ in size by orders of magnitude.
    """
    rows = pool.blocks[:, 0]
    norms = np.linalg.norm(rows, axis=0)
    if not (norms > 0.0).all():
        raise InfeasibleError("the free poses do not show all base parameters; leave more room, or fewer obstacles")
    chosen = [int(i) for i in qr((rows / norms).T, mode="economic", pivoting=True)[2][: rows.shape[1]]]
    everyone = np.arange(len(rows), dtype=np.intp)
    while len(chosen) < pool.quotas[0]:
        G = pool.gram(np.array(chosen))
        best = smallest(everyone, pool.slopes(quality(G)[1], everyone), SHORTLIST)
        trials = G + rows[best][:, :, np.newaxis] * rows[best][:, np.newaxis, :]
        chosen.append(int(best[np.argmin(quality.values(trials))]))
    return np.array(chosen, dtype=np.intp)


def evenly_random(candidates: Candidates, rng: np.random.Generator) -> IntArray:
    """As many random poses, every axis as often: what one would do without a choice."""
    axes = np.argmax(candidates.channels, axis=1)
    count = candidates.pool.quotas[0]
    return np.array([rng.choice(np.flatnonzero(axes == k % (axes.max() + 1))) for k in range(count)], dtype=np.intp)
