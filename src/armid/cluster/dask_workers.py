"""Workers of Dask: processes of this machine, or a cluster that exists. Nothing here loads unless a cluster is asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, TypeVar
from uuid import uuid4
from weakref import WeakSet

from armid import __version__
from armid.cluster.tree import Plus, tree_sum
from armid.cluster.workers import ClusterError, Kept, Progress
from armid.threads import one_blas_thread

dask: Any = import_module("dask")
distributed: Any = import_module("distributed")  # much of it has no types
Client: Any = distributed.Client

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_ALLOWED_FAILURES = 10
"""Lost workers that one piece survives; Dask's own three are few for machines that come and go."""
_PATIENCE = 20
"""[s] for a scheduler to answer, and for the first worker to be there."""
_SCHEDULER = "all"
"""Topic under which a scheduler notes what happens to it."""
_LOST = ("processing-tasks", "lost-computed-tasks")
"""What it notes of a worker that is gone: pieces it was to do, and those whose answers it alone had."""
_FETCHED = 32
"""Answers of a pass that are fetched at a time: the client holds no more of them."""

_UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""A cluster watches itself for its pages, which nobody opens of one that lasts as long as a command: what its workers do, a
hundred times a second, whether its loops run on time, fifty times, and how loaded it is, twice. Here the client pays for it."""
_COUNTED = 1.0
"""[s] for which a number of workers is taken to be true while progress is told: asking costs as much as a small task."""


@contextmanager
def connected(cluster: Any, count: int | None, progress: Progress) -> Iterator[DaskWorkers]:
    """Workers of a cluster; see `open_workers`."""
    if not isinstance(cluster, str):
        with closing(DaskWorkers(cluster, progress)) as workers:
            yield workers
        return
    with dask.config.set({"distributed.scheduler.allowed-failures": _ALLOWED_FAILURES, **_UNWATCHED}):
        if count is None:
            with _reached(cluster) as client, closing(DaskWorkers(client, progress)) as workers:
                yield workers
            return
        with (
            distributed.LocalCluster(
                n_workers=count or os.cpu_count() or 1,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",  # any free port: the usual one may be another cluster's
                silence_logs=50,
            ) as local,
            Client(local, direct_to_workers=True) as client,
            closing(DaskWorkers(client, progress)) as workers,
        ):
            yield workers


@contextmanager
def _reached(address: str) -> Iterator[Client]:
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(f"no Dask scheduler answers at {address} ({type(error).__name__})") from None
    with client:
        yield client


class DaskWorkers:
    """See `Workers`. What is kept is a future: Dask makes it anew from what it was made of when its worker is lost.

    Raises:
        ClusterError: no worker comes, or one has another armid.
    """

    def __init__(self, client: Client, progress: Progress) -> None:
        self.client, self._progress = client, progress
        self._token = uuid4().hex[:12]
        self._kept: WeakSet[Any] = WeakSet()
        self._counted = (-_COUNTED, 0)
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
            versions = client.run(_version)
        except TimeoutError:
            raise ClusterError("the scheduler has no workers (start some with `dask worker ADDRESS`)") from None
        except ModuleNotFoundError as error:
            raise ClusterError(f"a worker has no module {error.name} (install armid {__version__} there)") from None
        other = {where: version for where, version in versions.items() if version != __version__}
        if other:
            where, version = next(iter(other.items()))
            raise ClusterError(f"worker {where} has armid {version}, here it is {__version__} (install the same)")

    @property
    def retries(self) -> int:
        """Pieces that were in the hands of a worker when it was lost: others were given them, as the scheduler notes."""
        events = (said for _, said in self.client.get_events(_SCHEDULER) or () if isinstance(said, dict))
        lost = (said for said in events if said.get("action") == "remove-worker")
        keys = (key for said in lost for name in _LOST for key in said.get(name, ()))
        return sum(self._token in str(key) for key in keys)

    def close(self) -> None:
        """Lets go of everything that is kept; the client stays as it is."""
        self.client.cancel(list(self._kept), force=True)

    @property
    def count(self) -> int:
        # Not `scheduler_info`: the client's own clock empties its list of workers now and then.
        return len(self.client.nthreads())

    def map(
        self, function: Callable[[Item], Answer], items: Sequence[Item], *, label: str = ""
    ) -> Iterator[tuple[int, Answer]]:
        futures = self._sent(function, items)
        place = {future.key: k for k, future in enumerate(futures)}
        done: set[str] = set()
        try:
            self._say(label, 0, len(items))
            for batch in distributed.as_completed(futures).batches():
                # What is finished by now comes in one message; a piece that lost its worker may finish twice.
                fresh = list({future.key: future for future in batch if future.key not in done}.values())
                for future, answer in zip(fresh, self.client.gather(fresh), strict=True):
                    done.add(future.key)
                    yield place[future.key], answer
                self._say(label, len(done), len(items))
        except BaseException:
            self.client.cancel(futures, force=True)
            raise

    def _sent(self, function: Callable[..., Any], *items: Sequence[Any]) -> list[Any]:
        """A future per item; the function travels once, and from worker to worker.

        Within each task it would be there sooner, but sums then came out another in their last digits; why is not known (arrays
        that are unpacked with another alignment are suspected).
        """
        if not items[0]:
            return []
        whole = self.client.submit(_itself, _Piece(__version__, function), pure=False)
        return list(
            self.client.map(_call, *items, piece=whole, pure=False, key=f"armid-{_name(function)}-{self._token}")
        )

    def _one(self, plus: Plus[Answer], parts: Sequence[Kept]) -> Kept:
        """The sum of a few, as a future."""
        piece = _Piece(__version__, plus)
        return self.client.submit(
            _call, list(parts), piece=piece, pure=False, key=f"armid-sum-{self._token}-{uuid4().hex}"
        )

    def _say(self, label: str, done: int, all_of_them: int) -> None:
        now = time.monotonic()
        if now - self._counted[0] > _COUNTED:
            self._counted = now, self.count
        self._progress(f"{label}: {done} done, {all_of_them - done} left, {self._counted[1]} workers")

    def sees(self, paths: Sequence[str]) -> list[bool]:
        answers = self.client.run(_readable, list(paths))
        return [all(answer[k] for answer in answers.values()) for k in range(len(paths))]

    def keep(
        self, function: Callable[..., Any], items: Sequence[Any], *along: Sequence[Any], label: str = ""
    ) -> list[Kept]:
        futures = self._sent(function, items, *along)
        self._kept.update(futures)
        try:
            for done, _ in enumerate(distributed.as_completed(futures) if label else (), start=1):
                self._say(label, done, len(items))
        except BaseException:
            self.client.cancel(futures, force=True)
            raise
        return futures

    def each(self, function: Callable[..., Answer], kept: Sequence[Kept], *along: Sequence[Any]) -> Iterator[Answer]:
        futures = self._sent(function, kept, *along)
        try:
            for first in range(0, len(futures), _FETCHED):
                yield from self.client.gather(futures[first : first + _FETCHED])
                futures[first : first + _FETCHED] = [None] * len(futures[first : first + _FETCHED])
        except BaseException:
            self.client.cancel([future for future in futures if future is not None], force=True)
            raise

    def summed(
        self,
        function: Callable[..., Answer],
        kept: Sequence[Kept],
        plus: Plus[Answer],
        *along: Sequence[Any],
        heights: Sequence[int] = (),
    ) -> Answer:
        # Only the last sum is held: workers let go of the others when they have been added.
        whole = tree_sum(self._sent(function, kept, *along), partial(self._one, plus), heights)
        try:
            answer: Answer = whole.result()
        except BaseException:
            self.client.cancel([whole], force=True)
            raise
        return answer


@dataclass(frozen=True)
class _Piece:
    """What a worker is to do with an item.

    Args:
        version: of armid here.
        function: of the item.
    """

    version: str
    function: Callable[..., Any]


def _itself(value: Any) -> Any:
    return value


def _name(function: Callable[..., Any]) -> str:
    """For people who look at the cluster's own pages."""
    return getattr(function, "__name__", type(function).__name__)


def _version() -> str:
    return __version__


def _readable(paths: list[str]) -> list[bool]:
    return [os.access(path, os.R_OK) for path in paths]


@one_blas_thread
def _call(*items: Any, piece: _Piece) -> Any:
    """One piece, on a worker: one that joined late is asked for its version too."""
    if piece.version != __version__:
        raise ClusterError(f"a worker has armid {__version__}, the client {piece.version} (install the same)")
    return piece.function(*items)
