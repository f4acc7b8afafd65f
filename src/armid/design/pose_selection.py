"""Choosing poses from a pool: exchange in the manner of Fedorov and DETMAX, and a tabu search that may climb.

A candidate contributes a block of rows; the Gram matrix of the chosen blocks decides. With S the criterion's
derivative by the Gram matrix, adding block B changes it by <S, B^T B> to first order, so that the best exchanges among
tens of thousands are found with one matrix product and then tried exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.identifiability.smooth import Merit

IntArray = npt.NDArray[np.intp]

SHORTLIST = 8
"""Additions and removals tried exactly in one exchange."""

_MOST_EXCHANGES = 2000

_IMPROVEMENT = 1e-6
"""Smallest gain worth an exchange: a millionth of the condition number."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates.

    Args:
        blocks: rows each contributes, shape [n_candidates, n_rows, r].
        groups: which quota each counts towards, shape [n_candidates]; zeros when there is one.
        quotas: how many to choose from each group.
        places: where each stands, scaled so that two candidates are the same pose when no entry differs by one,
            shape [n_candidates, k]; None when any candidate may be chosen twice.
    """

    blocks: FloatArray
    groups: IntArray
    quotas: tuple[int, ...]
    places: FloatArray | None = None

    def gram(self, chosen: IntArray) -> FloatArray:
        """Sum of B^T B over the chosen, shape [r, r]."""
        rows = self.blocks[chosen].reshape(-1, self.blocks.shape[2])
        return rows.T @ rows

    def slopes(self, S: FloatArray, which: IntArray) -> FloatArray:
        """<S, B^T B> of candidates, shape [len(which)]."""
        B = self.blocks[which]
        return np.asarray(np.einsum("pcr,pcr->p", B @ S, B))

    def distinct(self, which: IntArray, chosen: IntArray) -> IntArray:
        """Those of some candidates that are not the same pose as one already chosen."""
        if self.places is None or not len(chosen):
            return which
        taken = np.zeros(len(which), dtype=np.bool_)
        for place in self.places[chosen]:
            taken |= (np.abs(self.places[which] - place) < 1.0).all(axis=1)
        return which[~taken]

    def random(self, rng: np.random.Generator) -> IntArray:
        """A random choice that fills every quota; no pose twice while there are others."""
        parts = []
        for group, quota in enumerate(self.quotas):
            own = np.flatnonzero(self.groups == group)
            drawn = rng.choice(own, size=quota, replace=len(own) < quota)
            parts.append(drawn if self.places is None else self._apart(drawn, rng.permutation(own)))
        return np.concatenate(parts).astype(np.intp)

    def _apart(self, drawn: IntArray, others: IntArray) -> IntArray:
        """A draw whose repeated poses are replaced by others, as far as there are any."""
        kept = np.empty(0, dtype=np.intp)
        for candidate in (*drawn, *others):
            if len(kept) == len(drawn):
                break
            kept = np.concatenate([kept, self.distinct(np.array([candidate], dtype=np.intp), kept)])
        return np.concatenate([kept, drawn[: len(drawn) - len(kept)]])


def exchange(pool: Pool, start: IntArray, quality: Merit) -> tuple[IntArray, float]:
    """Swaps one candidate at a time while that improves the criterion; each swap stays within a group.

    Returns:
        The chosen candidates and the criterion's value.
    """
    chosen = start.copy()
    members = [np.flatnonzero(pool.groups == group) for group in range(len(pool.quotas))]
    value, S = quality(pool.gram(chosen))
    idle, group = 0, 0
    for _ in range(_MOST_EXCHANGES):
        swap = _best_exchange(pool, chosen, members[group], group, S, quality, value)
        idle = idle + 1 if swap is None else 0
        if idle == len(members):
            break
        if swap is None:
            group = (group + 1) % len(members)
            continue
        chosen[swap[0]] = swap[1]
        value, S = quality(pool.gram(chosen))
    return chosen, value


def _best_exchange(
    pool: Pool, chosen: IntArray, members: IntArray, group: int, S: FloatArray, quality: Merit, value: float
) -> tuple[int, int] | None:
    """The exchange within a group that lowers the criterion most among the promising ones; None when none does."""
    places = np.flatnonzero(pool.groups[chosen] == group)
    others = pool.distinct(members, chosen)
    if not len(others):
        return None
    adds = smallest(others, pool.slopes(S, others), SHORTLIST)
    removes = smallest(places, -pool.slopes(S, chosen[places]), SHORTLIST)
    G = pool.gram(chosen)
    gains, losses = (blocks.transpose(0, 2, 1) @ blocks for blocks in (pool.blocks[adds], pool.blocks[chosen[removes]]))
    trials = G + gains[np.newaxis] - losses[:, np.newaxis]
    values = quality.values(trials.reshape(-1, *G.shape))
    best = int(np.argmin(values))
    if values[best] >= value - _IMPROVEMENT:
        return None
    return int(removes[best // len(adds)]), int(adds[best % len(adds)])


def smallest(items: IntArray, keys: FloatArray, count: int) -> IntArray:
    """The items with the smallest keys."""
    if len(items) <= count:
        return items
    return items[np.argpartition(keys, count)[:count]]


def multi_start_exchange(
    pool: Pool, quality: Merit, *, starts: int, rng: np.random.Generator, first: IntArray | None = None
) -> tuple[IntArray, float]:
    """The best of several exchanges: from a given choice, from D-optimal ones, from random ones."""
    from armid.identifiability.smooth import SmoothCriterion

    spread = Merit(SmoothCriterion.LOG_DET)
    best: tuple[IntArray, float] | None = None
    for k in range(starts):
        start = first if k == 0 and first is not None else exchange(pool, pool.random(rng), spread)[0]
        found = exchange(pool, start, quality)
        if best is None or found[1] < best[1]:
            best = found
    assert best is not None
    return best


_HANDFUL = 32
"""Random candidates among which a tabu step picks."""


def tabu_search(
    pool: Pool, start: IntArray, quality: Merit, *, iterations: int, tenure: int, rng: np.random.Generator
) -> tuple[IntArray, float]:
    """The iterative meta-heuristic with tabu rule of [Kolyubin2017] fig. 2, after [Daney2005].

    Every iteration exchanges the member that matters least for the best of a random handful of candidates, even when
    that is worse than before; what was removed is tabu for a while, so that the search cannot fall back into the
    minimum it came from. The best set met on the way is kept.
    """
    chosen = start.copy()
    best, best_value = chosen.copy(), quality(pool.gram(chosen))[0]
    tabu: dict[int, int] = {}
    for k in range(iterations):
        _, S = quality(pool.gram(chosen))
        place = int(np.argmax(pool.slopes(S, chosen)))
        group = pool.groups[chosen[place]]
        allowed = [
            c for c in rng.choice(np.flatnonzero(pool.groups == group), size=_HANDFUL) if tabu.get(int(c), -1) < k
        ]
        others = pool.distinct(np.array(allowed, dtype=np.intp), np.delete(chosen, place))
        if not len(others):
            continue
        blocks = pool.blocks[others]
        values = quality.values(pool.gram(np.delete(chosen, place)) + blocks.transpose(0, 2, 1) @ blocks)
        tabu[int(chosen[place])] = k + tenure
        chosen[place] = others[int(np.argmin(values))]
        if values.min() < best_value - _IMPROVEMENT:
            best, best_value = chosen.copy(), float(values.min())
    return best, best_value
