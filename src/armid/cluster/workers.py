"""Independent pieces of work, here or on a cluster, with the same answer.

Whoever has many pieces writes one function at the top of a module that takes one picklable item and gives one picklable answer,
and asks `open_workers(cluster)` for workers. Results come in the order of the items, and sums are formed along the same
tree everywhere, so that the answer does not depend on how many workers there are. What is gone through again and again is made
once and kept where it was made (`keep`); passes over it bring back something small (`each`), or only the sum of it (`summed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, runtime_checkable

from armid.cluster.tree import Plus, tree_sum
from armid.errors import ArmidError, InputError, MissingDependencyError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Progress = Callable[[str], None]

Kept = Any
"""A piece that stays with a worker: what it is, only the workers know."""

Cluster = Any
"""`local`, `local:4`, `tcp://HOST:PORT`, a Dask client, workers that are there already, or None for this process."""


class ClusterError(ArmidError):
    """A cluster that cannot be used: not there, or with another armid than here."""


@runtime_checkable
class Workers(Protocol):
    """Those who do the work."""

    @property
    def count(self) -> int:
        """How many there are now."""

    @property
    def retries(self) -> int:
        """Pieces that had to be done again because their worker was lost."""

    def map(
        self, function: Callable[[Item], Answer], items: Sequence[Item], *, label: str = ""
    ) -> Iterator[tuple[int, Answer]]:
        """Number and answer of every item, as they are finished.

        Args:
            function: at the top of a module, so that a worker can import it.
            items: small and picklable; each travels to one worker.
            label: for the progress.
        """

    def sees(self, paths: Sequence[str]) -> list[bool]:
        """Whether every worker can read each of these files."""

    def keep(
        self, function: Callable[..., Any], items: Sequence[Any], *along: Sequence[Any], label: str = ""
    ) -> list[Kept]:
        """What the function makes of every item, left with whoever made it.

        Args:
            function: picklable; what it makes is picklable too, and never changed.
            items: picklable, or pieces that are kept already.
            along: what else the function is given, one of each per item.
            label: for the progress.
        """

    def each(self, function: Callable[..., Answer], kept: Sequence[Kept], *along: Sequence[Any]) -> Iterator[Answer]:
        """What the function says of every kept piece, in order: something small, for it travels here.

        Args:
            function: picklable.
            kept: by `keep`.
            along: what else the function is given, one of each per piece.
        """

    def summed(
        self,
        function: Callable[..., Answer],
        kept: Sequence[Kept],
        plus: Plus[Answer],
        *along: Sequence[Any],
        heights: Sequence[int] = (),
    ) -> Answer:
        """The sum of what the function says of every kept piece, along the tree of `tree_sum`; only it travels here.

        Args:
            function: picklable.
            kept: by `keep`.
            plus: picklable.
            along: what else the function is given, one of each per piece.
            heights: of the pieces in the tree; see `tree_sum`.
        """


class InProcess:
    """The work is done here, one piece after the other."""

    count = 1
    retries = 0

    def __init__(self, progress: Progress = lambda _: None) -> None:
        self._progress = progress

    def map(
        self, function: Callable[[Item], Answer], items: Sequence[Item], *, label: str = ""
    ) -> Iterator[tuple[int, Answer]]:
        for k, item in enumerate(items):
            self._progress(f"{label}: {k} of {len(items)} done")
            yield k, function(item)

    def sees(self, paths: Sequence[str]) -> list[bool]:
        return [True] * len(paths)

    def keep(
        self, function: Callable[..., Any], items: Sequence[Any], *along: Sequence[Any], label: str = ""
    ) -> list[Kept]:
        return list(map(function, items, *along))

    def each(self, function: Callable[..., Answer], kept: Sequence[Kept], *along: Sequence[Any]) -> Iterator[Answer]:
        return map(function, kept, *along)

    def summed(
        self,
        function: Callable[..., Answer],
        kept: Sequence[Kept],
        plus: Plus[Answer],
        *along: Sequence[Any],
        heights: Sequence[int] = (),
    ) -> Answer:
        return tree_sum(map(function, kept, *along), plus, heights)


@contextmanager
def open_workers(cluster: Cluster = None, *, progress: Progress = lambda _: None) -> Iterator[Workers]:
    """Workers for the time of a `with` block; those of `local` end with it, an existing cluster stays.

    Args:
        cluster: see `Cluster`.
        progress: told how many pieces are done, and by how many workers.

    Raises:
        InputError: a word that is none of these.
        MissingDependencyError: Dask is not installed.
        ClusterError: it cannot be reached, or has another version of armid.
    """
    if cluster is None or isinstance(cluster, Workers):
        yield InProcess(progress) if cluster is None else cluster
        return
    count = _local_count(cluster) if isinstance(cluster, str) else None
    try:
        from armid.cluster.dask_workers import connected
    except ImportError:
        raise MissingDependencyError("distributed", "--cluster", "cluster") from None
    with connected(cluster, count, progress) as workers:
        yield workers


def _local_count(word: str) -> int | None:
    """Processes of `local[:N]`, 0 for as many as there are cores; None for an address.

    Raises:
        InputError: neither.
    """
    kind, _, rest = word.partition(":")
    if kind == "local" and (not rest or (rest.isascii() and rest.isdecimal() and 0 < int(rest) <= 1024)):
        return int(rest or 0)
    if kind in ("tcp", "tls", "ucx") and rest.startswith("//") and ":" in rest[2:]:
        return None
    raise InputError("--cluster", repr(word), "expected local, local:N, or the scheduler's address tcp://HOST:PORT")


def in_order(workers: Workers, function: Callable[[Item], Answer], items: Sequence[Item], label: str) -> list[Answer]:
    """Answers in the order of the items."""
    found = dict(workers.map(function, items, label=label))
    return [found[k] for k in range(len(items))]
