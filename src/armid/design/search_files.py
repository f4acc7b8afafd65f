"""A search to go on from later: its good motions as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from armid.design.candidate import Candidate
from armid.design.candidate_values import candidate_of, candidate_values
from armid.design.search import Search
from armid.documents import read_json, restored, write_json
from armid.errors import InputError
from armid.motions.basis import Basis

_FORMAT = "armid-search"
_WHAT = "a search to resume"


def save_search(result: Search, path: Path) -> Path:
    """Writes the pool of good motions, to resume from."""
    pool = [candidate_values(c) for c in result.pool]
    head = {"format": _FORMAT, "version": 1, "explored": result.explored, "seconds": result.seconds}
    return write_json(path, head | {"history": result.history, "pool": pool}, indent=None)


def load_search(path: Path, bases: tuple[Basis, ...], n_joints: int) -> Search:
    """Reads what `save_search` wrote.

    Raises:
        InputError: not such a file, or of another family of motions.
    """
    values = read_json(path, _WHAT, schema=_FORMAT, key="format")
    pool: tuple[Candidate, ...] = restored(path, values, _candidates, _WHAT)
    for c in pool:
        if c.family >= len(bases) or c.coefficients.shape != (bases[c.family].size, n_joints):
            raise InputError(path, "a search with another period, number of harmonics or start pose", "start afresh")
    if not pool:
        raise InputError(path, "an empty search", "start afresh")
    return Search(best=pool[0], explored=0, polished=0, evaluations=0, seconds=0.0, history=(), pool=pool)


def _candidates(values: dict[str, Any]) -> tuple[Candidate, ...]:
    return tuple(candidate_of(c) for c in values["pool"])
