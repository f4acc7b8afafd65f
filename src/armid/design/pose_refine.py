"""Moving chosen poses off the pool's grid: a descent over all their joint angles at once, within limits and clearances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import fmin_l_bfgs_b

from armid.arrays import FloatArray
from armid.identifiability.smooth import Merit
from armid.kernels.evaluate import compiled_rows
from armid.kernels.source import RowSource
from armid.motions.limits import MotionLimits
from armid.scene.scene import Scene

Places = Callable[[FloatArray], FloatArray]
"""From poses [n, n_joints] to their scaled places [n, k]; two are the same pose when no entry differs by one."""

_CLEARANCE_SCALE = 0.02
"""[m or rad]: a clearance broken by this much costs as much as an e-fold of the criterion."""

_ROUNDS = 3
_ITERATIONS = 60


def refined_poses(
    source: RowSource,
    poses: FloatArray,
    channels: FloatArray,
    quality: Merit,
    limits: MotionLimits,
    scene: Scene,
    *,
    movable: FloatArray | None = None,
    rounds: int = _ROUNDS,
    places: Places | None = None,
) -> FloatArray:
    """Poses with a smaller criterion; never worse, and free wherever the given ones are.

    Args:
        source: rows as functions of the pose alone; only its independent columns.
        poses: shape [n_poses, n_joints].
        channels: weight of each channel's row at each pose, shape [n_poses, n_channels]; zero where it is not measured.
        quality: the criterion.
        limits: positions.
        scene: clearances.
        movable: one where a joint of a pose may move, zero where it stays, shape [n_poses, n_joints].
        rounds: of growing sharpness.
        places: of poses, as in `Pool`: poses that are apart in them stay apart. None when poses may become the same.
    """
    free = np.ones_like(poses) if movable is None else movable
    value, _ = set_value(source, poses, channels, quality)
    best = poses
    power = quality.power
    for k in range(rounds):
        sharper = replace(quality, power=power * 1.7**k)
        moved = _descend(source, best, channels, sharper, limits, scene, free)
        candidate = _settle(moved, best, scene)
        if places is not None:
            candidate = _keep_apart(candidate, best, places)
        trial, _ = set_value(source, candidate, channels, quality)
        if trial < value:
            best, value = candidate, trial
    return best


def set_value(source: RowSource, poses: FloatArray, channels: FloatArray, quality: Merit) -> tuple[float, FloatArray]:
    """Criterion of a set of poses and its gradient by them, shape [n_poses, n_joints]."""
    compiled = compiled_rows(source)
    A = compiled.dense(poses) * channels[:, :, np.newaxis]
    rows = A.reshape(-1, A.shape[2])
    value, S = quality(rows.T @ rows)
    bar = 2.0 * (A @ S) * channels[:, :, np.newaxis]
    return value, compiled.vjp(poses, bar)


def _descend(
    source: RowSource,
    poses: FloatArray,
    channels: FloatArray,
    quality: Merit,
    limits: MotionLimits,
    scene: Scene,
    movable: FloatArray,
) -> FloatArray:
    """L-BFGS within bounds, clearances as a penalty."""

    def value(x: FloatArray) -> tuple[float, FloatArray]:
        q = x.reshape(poses.shape)
        total, gradient = set_value(source, q, channels, quality)
        if len(scene):
            short = np.maximum(-scene.clearances(q) / _CLEARANCE_SCALE + 0.05, 0.0)
            total += float((short**2).sum())
            gradient = gradient + scene.gradient(q, -2.0 / _CLEARANCE_SCALE * short)
        return total, (gradient * movable).ravel()

    bounds = [(low, high) for _ in poses for low, high in zip(limits.lower, limits.upper, strict=True)]
    start = np.clip(poses, limits.lower, limits.upper)
    end: FloatArray = fmin_l_bfgs_b(value, start.ravel(), bounds=bounds, m=20, maxiter=_ITERATIONS)[0]
    return end.reshape(poses.shape)


def _settle(moved: FloatArray, before: FloatArray, scene: Scene) -> FloatArray:
    """Each pose as far along its move as it stays free: all of it, half, a quarter, ... or not at all."""
    out = before.copy()
    waiting = np.ones(len(moved), dtype=np.bool_)
    for share in (1.0, 0.9, 0.7, 0.5, 0.25, 0.1):
        trial = before + share * (moved - before)
        good = waiting & scene.is_free(trial)
        out[good] = trial[good]
        waiting &= ~good
    return out


def _keep_apart(moved: FloatArray, before: FloatArray, places: Places) -> FloatArray:
    """The moved poses, those taken back that have become the same as another; all of them if need be."""
    out = moved.copy()
    back = np.zeros(len(out), dtype=np.bool_)
    for _ in range(len(out)):
        twins = np.triu(_same(places(out)), 1) & ~(back[:, np.newaxis] & back)
        if not twins.any():
            break
        first, second = np.argwhere(twins)[0]
        k = first if back[second] else second
        out[k], back[k] = before[k], True
    return out


def _same(places: FloatArray) -> npt.NDArray[np.bool_]:
    """Which pairs are the same pose, shape [n, n]."""
    return np.asarray(np.all(np.abs(places[:, np.newaxis] - places) < 1.0, axis=2))
