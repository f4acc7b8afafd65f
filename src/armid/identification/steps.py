"""What is another from some moment on: a torque sensor or an encoder that jumps, a joint that begins to rub.

A step is a column x (a constant, the torque, friction, what a zero changes) that is there before or after some moment only, for
either half may be the one that is right. Rows reduced block of time by block of time give every such step at once: with G_k the
Gram matrix of the rows [A x y] of block k, what is there from block K on has the products

    z_K^T [A z_K y] = sum_(k >= K) x_k^T [A x y]_k

and the base parameters are solved for once. Of as many moments chance alone makes the largest deviation about the root of twice
the logarithm of their number; a step counts by what it is beyond that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log, sqrt

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, each_run
from armid.identifiability.base import BaseParameters
from armid.identification.candidates import DRIFTS, Seen
from armid.identification.elapsed import Place, places
from armid.identification.imperfection_rows import RowNoise, RowsBeside
from armid.identification.thresholds import FAR_APART
from armid.identification.wandering import THINNED
from armid.robot.robot import Robot
from armid.rows.imperfections import MOMENTS, STEPS, ColumnReference, Imperfection, imperfections

_STRETCHES = tuple(stretch for k in range(1, MOMENTS) for stretch in ((k / MOMENTS, 1.0), (0.0, k / MOMENTS)))
"""After and before every moment."""

_CHOICE = sqrt(2.0 * log(len(_STRETCHES)))
"""Deviations that the largest of as many has by chance."""

_LEAST = FAR_APART.value**2 + _CHOICE**2
"""Twice the logarithm by which a step must make the rows of its joint likelier to be looked at closely."""

_EDGE = MOMENTS // 10
"""Blocks at the begin and the end of a motion, where arms break loose and come to rest: what is there alone is no step."""

_TO_AND_FRO = 2.0
"""Reversals."""

_FAR = 0.25
"""Of its range, by which a joint must go for them to be reversals of a motion."""

_RIDGE = 1e-12
"""Of scaled columns: base parameters that the motion hardly determines stay where they are."""

_SEEN = 1e-6
"""Share of a step's squared column that base parameters must leave of it."""


def stepped(
    robot: Robot,
    runs: Sequence[Run],
    base: BaseParameters,
    reference: ColumnReference,
    noise: RowNoise,
    *,
    found_on: int,
    beside: Sequence[Imperfection],
    energy: float,
    others: Sequence[Seen],
) -> list[Seen]:
    """Steps that explain more, beyond chance, than what grows evenly at their joint; of each kind the likeliest moment.

    Args:
        robot: as the runs have it.
        runs: freed from what was found.
        base: parameters to fit beside them.
        reference: where columns are taken.
        noise: of the rows.
        found_on: samples that the noise was found on, at most.
        beside: what may be there as well, as large as the rows say.
        energy: squared error to which what is taken away refers.
        others: everything else as the rows show it.
    """
    every = imperfections(robot, torque_source(runs).effects, reference, STEPS)
    whole = [replace(item, stretch=(0.0, 1.0)) for item in every]
    rows = RowsBeside(runs, base, (*beside, *whole), most=THINNED)
    factors = rows.blocks(reference, rows.thinned(noise, found_on), folds=MOMENTS).factors
    drifts = sum(item.family in DRIFTS for item in beside)
    # Sized beside torque of the position, which a slow motion takes along with time; but ranked without it, as drifts are.
    sized, ranked = (_Moments.of(factors, len(base) + count, len(whole)) for count in (len(beside), drifts))
    apart = _moves_on_either_side(runs, robot.n_joints)
    out = []
    for k, item in enumerate(whole):
        open_ = np.where(apart[:, int(item.joint or 0)], sized.taken[:, k], 0.0)
        at = int(np.argmax(open_))
        taken, size = float(open_[at]), float(sized.size[at, k])
        rest = max((s.taken for s in others if s.item.joint == item.joint and s.item.family in STEPS), default=0.0)
        if taken > rest * sized.whole / energy and _evidence(taken, sized.whole / robot.n_joints) > _LEAST:
            moment = replace(item, stretch=_STRETCHES[at])
            alone = float(ranked.taken[at, k]) * energy / ranked.whole
            out.append(Seen(item=moment, size=size, deviation=abs(size) / sqrt(taken), taken=alone))
    return out


def _moves_on_either_side(runs: Sequence[Run], n_joints: int) -> npt.NDArray[np.bool_]:
    """Whether a joint goes to and fro before a moment and after it, shape [len(_STRETCHES), n_joints].

    Where it does not, a step is not told from torque that goes with the motion. A joint at rest turns around by its noise alone.
    """
    ways, turns, least, most = zip(*each_run(runs, partial(_ways, n_joints), places(runs, ())), strict=True)
    either = np.ones((MOMENTS - 1, n_joints), dtype=bool)
    enough = _FAR * (np.max(most, axis=0) - np.min(least, axis=0))
    for parts, needed in ((ways, enough), (turns, _TO_AND_FRO)):
        gone = np.cumsum(np.sum(parts, axis=0), axis=0)
        either &= (gone[:-1] >= needed) & (gone[-1] - gone[:-1] >= needed)
    either[: _EDGE - 1] = either[len(either) - _EDGE + 1 :] = False
    return np.repeat(either, 2, axis=0)


def _ways(n_joints: int, run: Run, place: Place) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """How far every joint of a run goes and how often it turns around in every block of time, and the ends of its range."""
    q, at = run.inputs[:, :n_joints], place.elapsed(len(run))
    ways, turns = np.zeros((MOMENTS, n_joints)), np.zeros((MOMENTS, n_joints))
    np.add.at(ways, _block(at), np.abs(np.diff(q, axis=0, prepend=q[:1])))
    for j, times in enumerate(run.reversals[:n_joints]):
        np.add.at(turns[:, j], _block((place.before + times) / max(place.total, 1)), 1.0)
    return ways, turns, q.min(axis=0), q.max(axis=0)


def _block(share: FloatArray) -> npt.NDArray[np.intp]:
    return np.clip((share * MOMENTS).astype(np.intp), 0, MOMENTS - 1)


def _evidence(taken: float, energy: float) -> float:
    """Twice the logarithm by which a step makes the rows of a joint likelier, whose noise nobody knows beforehand.

    Beside the noise that it makes itself a step that explains all of its joint's error is no surer than that error is long.
    """
    return -energy * log(max(1.0 - taken / energy, 1.0 / MOMENTS))


def beyond_moments(seen: Seen) -> Seen:
    """A step with the deviation that holds the choice of its moment."""
    ratio = abs(seen.size) / seen.deviation
    return replace(seen, deviation=abs(seen.size) / max(ratio - _CHOICE, 1.0))


@dataclass(frozen=True, eq=False)
class _Moments:
    """Steps before and after the begin of every block but the first.

    Args:
        size, taken: of every step, and the squared error it takes away, shape [len(_STRETCHES), columns].
        whole: squared error without any.
    """

    size: FloatArray
    taken: FloatArray
    whole: float

    @staticmethod
    def of(factors: Sequence[FloatArray], base: int, count: int) -> _Moments:
        """From `[A Z x y]` of every block as a triangular factor.

        Args:
            factors: of blocks of time.
            base: columns to solve for, the first ones.
            count: of columns x, the last but y.
        """
        grams = np.array([factor.T @ factor for factor in factors])
        total = grams.sum(axis=0)
        scale = 1.0 / np.sqrt(np.maximum(np.diag(total), 1e-300))
        total = total * np.outer(scale, scale)
        x = slice(-1 - count, -1)
        before = np.cumsum(grams[:-1, x] * scale[x, np.newaxis] * scale, axis=0)
        products = np.stack([total[x] - before, before], axis=1).reshape(-1, count, len(total))
        own = np.einsum("kcc->kc", products[:, :, x])
        L = np.linalg.cholesky(total[:base, :base] + _RIDGE * np.eye(base))
        W = np.linalg.solve(L, products[:, :, :base].reshape(-1, base).T)
        z = np.linalg.solve(L, total[:base, -1])
        left = own - np.sum(W**2, axis=0).reshape(own.shape)
        with_y = products[:, :, -1] - (z @ W).reshape(own.shape)
        seen = left > _SEEN * np.maximum(own, _SEEN)
        left = np.where(seen, left, 1.0)
        energy = 1.0 / scale[-1] ** 2
        size = np.where(seen, with_y / left, 0.0) * scale[x] / scale[-1]
        taken = np.where(seen, with_y**2 / left, 0.0) * energy
        return _Moments(size, taken, float(max(total[-1, -1] - z @ z, 1e-300) * energy))
