"""Workers of Dask: processes of this machine, or a cluster that exists. Nothing here loads unless a cluster is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from armid import __version__
from armid.cluster.workers import ClusterError, Progress

dask: Any = import_module("dask")
distributed: Any = import_module("distributed")  # much of it has no types
Client: Any = distributed.Client

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_ALLOWED_FAILURES = 10
"""Lost workers that one piece survives; Dask's own three are few for machines that come and go."""
_PATIENCE = 20
"""[s] for a scheduler to answer, and for the first worker to be there."""


@contextmanager
def connected(cluster: Any, count: int | None, progress: Progress) -> Iterator[DaskWorkers]:
    """Workers of a cluster; see `open_workers`."""
    if not isinstance(cluster, str):
        yield DaskWorkers(cluster, progress)
        return
    with dask.config.set({"distributed.scheduler.allowed-failures": _ALLOWED_FAILURES}):
        if count is None:
            with _reached(cluster) as client:
                yield DaskWorkers(client, progress)
            return
        with (
            distributed.LocalCluster(
                n_workers=count or os.cpu_count() or 1,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",  # any free port: the usual one may be another cluster's
                silence_logs=50,
            ) as local,
            Client(local) as client,
        ):
            yield DaskWorkers(client, progress)


@contextmanager
def _reached(address: str) -> Iterator[Client]:
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(f"no Dask scheduler answers at {address} ({type(error).__name__})") from None
    with client:
        yield client


class DaskWorkers:
    """See `Workers`.

    Raises:
        ClusterError: no worker comes, or one has another armid.
    """

    def __init__(self, client: Client, progress: Progress) -> None:
        self.client, self._progress = client, progress
        self.retries = 0
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
    def count(self) -> int:
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def map(
        self, function: Callable[[Item], Answer], items: Sequence[Item], *, label: str = ""
    ) -> Iterator[tuple[int, Answer]]:
        calls = [(__version__, function, item) for item in items]
        futures = self.client.map(_call, calls, pure=False, key=f"armid-{function.__name__}")
        place = {future.key: k for k, future in enumerate(futures)}
        done: set[str] = set()
        try:
            self._say(label, 0, len(items))
            for future, answer in distributed.as_completed(futures, with_results=True):
                if future.key in done:
                    continue
                done.add(future.key)
                self._say(label, len(done), len(items))
                yield place[future.key], answer
            self.retries += int(self.client.run_on_scheduler(_lost, keys=list(place)))
        except BaseException:
            self.client.cancel(futures, force=True)
            raise

    def _say(self, label: str, done: int, all_of_them: int) -> None:
        self._progress(f"{label}: {done} done, {all_of_them - done} left, {self.count} workers")

    def sees(self, paths: Sequence[str]) -> list[bool]:
        answers = self.client.run(_readable, list(paths))
        return [all(answer[k] for answer in answers.values()) for k in range(len(paths))]


def _version() -> str:
    return __version__


def _readable(paths: list[str]) -> list[bool]:
    return [os.access(path, os.R_OK) for path in paths]


def _call(call: tuple[str, Callable[[Any], Any], Any]) -> Any:
    """One piece, on a worker: one that joined late is asked for its version too."""
    version, function, item = call
    if version != __version__:
        raise ClusterError(f"a worker has armid {__version__}, the client {version} (install the same)")
    return function(item)


def _lost(dask_scheduler: Any, keys: list[str]) -> int:
    """How often a worker was lost with one of these pieces in its hands."""
    return sum(dask_scheduler.tasks[key].suspicious for key in keys if key in dask_scheduler.tasks)
