"""Workers that are lost: killed, cut off, out of memory, interrupted. The work is done again, and the answer is the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import armid
from armid.cluster.workers import ClusterError, open_workers
from support.fleet_logs import write_fleet
from support.greedy import greedy_once

distributed = pytest.importorskip("distributed")

FLEET = {"friction": "viscous,coulomb,offset"}
WORDS = {**FLEET, "sensitivity": False, "imperfections": "none"}
WORKERS = 4


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lost")
    write_fleet(folder, 3, 2, seconds=6.0)
    return folder


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """Address of a scheduler with workers, started by hand on the loopback; every test may take one of them away."""
    file, processes = tmp_path_factory.mktemp("scheduler") / "scheduler.json", []

    def start(*words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words, "--scheduler-file", str(file), "--no-dashboard"]
        processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return processes[-1]

    start("scheduler", "--host", "127.0.0.1", "--port", "0")
    for _ in range(WORKERS):
        start("worker", "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1")
    for _ in range(300):
        if file.is_file() and file.stat().st_size:
            break
        time.sleep(0.1)
    address = str(json.loads(file.read_text())["address"])
    with distributed.Client(address, timeout=20) as client:
        client.wait_for_workers(WORKERS, timeout=60)
    yield address
    for process in processes:
        process.kill()
        process.wait()


class Killer:
    """A progress that kills the worker that holds most when something is said for the first time."""

    def __init__(self, address: str, when: str) -> None:
        self.address, self.when, self.done = address, when, False

    def __call__(self, text: str) -> None:
        if not text.startswith(self.when) or self.done:
            return
        self.done = True
        with distributed.Client(self.address, timeout=20, set_as_default=False) as client:
            held = client.has_what()
            busiest = max(held, key=lambda worker: len(held[worker]))
            process = client.run(os.getpid, workers=[busiest])[busiest]
        os.kill(process, signal.SIGKILL)


def test_a_worker_killed_during_a_fleet_costs_time_and_nothing_else(place, scheduler, monkeypatch):
    address = scheduler
    monkeypatch.setattr("armid.cluster.dask_workers.DaskWorkers.sees", lambda self, paths: [False] * len(paths))
    here = armid.fleet(place / "fleet.csv", **FLEET)
    killer = Killer(address, "visits: 1 done")
    there = armid.fleet(place / "fleet.csv", **FLEET, cluster=address, progress=killer)
    assert killer.done
    for one, other in zip(here.visits, there.visits, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.covariance, other.covariance)
    # Whether the worker had a visit in its hands at that moment is chance; the next test kills one that has.


def test_a_worker_killed_with_conditioned_logs_in_its_hands_costs_time_and_nothing_else(place, scheduler):
    address = scheduler
    logs = sorted(place.glob("r*/*.csv"))
    here = armid.identify(place / "elbow.yaml", logs, **WORDS)
    killer = Killer(address, f"logs conditioned: {len(logs) - 1} done")
    there = armid.identify(place / "elbow.yaml", logs, **WORDS, cluster=address, progress=killer)
    assert killer.done
    np.testing.assert_array_equal(here.estimate.values, there.estimate.values)
    np.testing.assert_array_equal(here.consistent.values, there.consistent.values)
    assert here.relative_error == there.relative_error
    assert there.retries >= 1
    assert there.as_dict()["retries"] == there.retries


def test_a_worker_that_loses_its_connection_costs_time_and_nothing_else(scheduler):
    address = scheduler
    with distributed.Client(address) as client, open_workers(client) as workers:
        work = workers.map(time.sleep, [0.3] * 8)
        next(work)
        cut = next(iter(client.nthreads()))
        client.run(lambda dask_worker: dask_worker.batched_stream.abort(), workers=[cut], on_error="ignore")
        assert len(list(work)) == 7
        assert workers.retries >= 1


def test_a_worker_out_of_memory_costs_time_and_nothing_else(tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="512MiB", dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
        open_workers(client) as workers,
    ):
        assert dict(workers.map(greedy_once, [str(tmp_path / "begun")])) == {0: "twice"}
        assert workers.retries == 1


def test_an_interrupt_cancels_what_is_on_the_cluster(scheduler):
    address = scheduler
    code = (
        "import signal, time\nfrom armid.cluster.workers import open_workers\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in what is started in the background
        f"with open_workers({address!r}, progress=print) as w: list(w.map(time.sleep, [0.5] * 200, label='naps'))"
    )
    command = [sys.executable, "-u", "-c", code]
    with (
        distributed.Client(address) as client,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("naps: 0 done, 200 left")
            os.kill(process.pid, signal.SIGINT)
            assert process.wait(timeout=60) != 0
        finally:
            process.kill()
        for _ in range(50):
            if not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
                return
            time.sleep(0.1)
    raise AssertionError("work is left on the cluster")


def test_another_version_is_refused(scheduler, monkeypatch):
    address = scheduler
    monkeypatch.setattr("armid.cluster.dask_workers.__version__", "0.0.1")
    with pytest.raises(ClusterError, match=r"has armid .*, here it is 0\.0\.1"), open_workers(address):
        pass
