"""Work on a cluster: the same answer as here for any number of workers, also when one of them is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.cluster.workers import ClusterError, in_order, open_workers
from armid.errors import InputError
from armid.fleets.table import read_visits
from armid.fleets.visit import VisitTask, identify_visit
from support.fleet_logs import write_fleet

WORDS = {"friction": "viscous,coulomb,offset"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    write_fleet(folder, 4, 2, seconds=6.0)
    return folder


@pytest.fixture(scope="module")
def here(place):
    return armid.fleet(place / "fleet.csv", **WORDS)


def same(a, b):
    """Bit by bit: every visit is identified by one worker, and sums are formed in one order."""
    for one, other in zip(a.visits, b.visits, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.covariance, other.covariance)
    np.testing.assert_array_equal(a.population.mean, b.population.mean)
    np.testing.assert_array_equal(a.population.spread, b.population.spread)
    assert [d.as_dict() for d in a.drift] == [d.as_dict() for d in b.drift]


def test_without_a_cluster_dask_is_not_loaded():
    code = "import armid.cluster.workers as w, armid.fleets.fleet, sys\nwith w.open_workers() as p: list(p.map(abs, [1]))\n"
    code += "assert not {'dask', 'distributed'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("word", ["local:0", "local:x", "remote", "tcp://", "tcp://host", "local:-1", ""])
def test_words_that_are_no_cluster_are_refused(word):
    with pytest.raises(InputError, match=r"expected local, local:N, or the scheduler's address"), open_workers(word):
        pass


def test_a_scheduler_that_does_not_answer_is_said(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("armid.cluster.dask_workers._PATIENCE", 1)
    with pytest.raises(ClusterError, match="no Dask scheduler answers"), open_workers("tcp://127.0.0.1:9"):
        pass


def test_two_processes_of_this_machine_give_the_answer_of_one(place, here):
    pytest.importorskip("distributed")
    said = []
    there = armid.fleet(place / "fleet.csv", **WORDS, cluster="local:2", progress=said.append)
    same(here, there)
    assert (there.workers, there.retries) == (2, 0)
    assert "visits: 8 done, 0 left, 2 workers" in said


@pytest.fixture(scope="module")
def client():
    """Two processes of this machine, behind a client of the user's own."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_runs_of_a_benchmark_are_the_same(client, tmp_path):
    words = {"methods": ("ols",), "noise": ("low",), "runs": 2, "seconds": 1.0}
    here = armid.benchmark("tx40", **words)
    there = armid.benchmark("tx40", **words, cluster=client, out=tmp_path)
    for one, other in zip(here.runs, there.runs, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    assert len(list((tmp_path / "runs").glob("low-*.json"))) == 2


def test_starts_of_a_design_end_in_the_same_motion(client):
    words = {"friction": "viscous", "period": 5.0, "harmonics": 2, "seconds": None, "starts": 4, "seed": 3}
    here, there = (
        armid.design_motion("cylindrical", **words, workers=1, cluster=cluster) for cluster in (None, client)
    )
    np.testing.assert_array_equal(here.search.best.coefficients, there.search.best.coefficients)
    assert here.search.explored == there.search.explored == 4


def test_a_study_is_the_same(client, tmp_path):
    words = {"seconds": 4.0, "motions": 1, "repetitions": 2, "poses": 6, "torques": "link"}
    here = armid.study("cylindrical", **words)
    there = armid.study("cylindrical", **words, cluster=client, out=tmp_path)
    for one, other in zip(here.cases, there.cases, strict=True):
        np.testing.assert_array_equal(one.estimates, other.estimates)
        np.testing.assert_array_equal(one.residuals, other.residuals)
    assert (there.as_dict()["workers"], there.as_dict()["retries"]) == (2, 0)


def test_many_logs_are_checked_there_and_the_answer_is_the_same(client, place):
    logs = [place / "r00" / "2026-01-05.csv", place / "r01" / "2026-01-05.csv", place / "torn.csv"]
    (place / "torn.csv").write_text("not a log\n")
    words = {**WORDS, "sensitivity": False, "validate": place / "r00" / "2026-02-02.csv"}
    here, there = (armid.identify(place / "elbow.yaml", logs, cluster=cluster, **words) for cluster in (None, client))
    np.testing.assert_array_equal(here.estimate.values, there.estimate.values)
    np.testing.assert_array_equal(here.estimate.covariance, there.estimate.covariance)
    assert [note.code for note in there.notes].count("log-set-aside") == 1
    (note,) = (note for note in there.notes if note.code == "checked-on-cluster")
    assert note.message.startswith("3 of 3 logs read and checked by 2 workers")


def test_interrupted_work_is_cancelled_on_the_cluster(client):
    from operator import neg

    with open_workers(client) as workers:
        work = workers.map(neg, list(range(20)))
        next(work)
        with pytest.raises(KeyboardInterrupt):
            work.throw(KeyboardInterrupt)
    waiting = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    assert waiting <= 1


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler and two workers, started by hand on the loopback."""
    pytest.importorskip("distributed")
    file, processes = tmp_path / "scheduler.json", []

    def start(*words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words, "--scheduler-file", str(file), "--no-dashboard"]
        processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return processes[-1]

    start("scheduler", "--host", "127.0.0.1", "--port", "0")
    workers = [start("worker", "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1") for _ in range(2)]
    for _ in range(300):
        if file.is_file() and file.stat().st_size:
            break
        time.sleep(0.1)
    yield file, workers
    for process in processes:
        process.kill()
        process.wait()


def address(file: Path) -> str:
    return str(json.loads(file.read_text())["address"])


def test_a_killed_worker_costs_time_and_nothing_else(place, here, scheduler, monkeypatch):
    file, workers = scheduler
    monkeypatch.setattr("armid.cluster.dask_workers.DaskWorkers.sees", lambda self, paths: [False] * len(paths))
    killed = []

    def progress(text: str) -> None:
        if text.startswith("visits: 2 done") and not killed:
            killed.append(workers[0].pid)
            os.kill(workers[0].pid, signal.SIGKILL)

    from distributed import Client

    with Client(address(file), timeout=20) as client:
        client.wait_for_workers(2, timeout=60)
    there = armid.fleet(place / "fleet.csv", **WORDS, cluster=address(file), progress=progress)
    assert killed
    same(here, there)
    assert there.retries >= 1


def test_another_version_is_refused(scheduler, monkeypatch):
    file, _ = scheduler
    monkeypatch.setattr("armid.cluster.dask_workers.__version__", "0.0.1")
    with pytest.raises(ClusterError, match=r"has armid .*, here it is 0\.0\.1"), open_workers(address(file)):
        pass


def test_files_that_only_the_client_sees_are_sent(place, here, tmp_path):
    visit = read_visits(place / "fleet.csv")[0]
    task = VisitTask(visit=visit, words={**WORDS, "sensitivity": False})
    sent = {path: Path(path).read_bytes() for path in task.files}
    away = VisitTask(visit=visit, words=task.words, sent=sent)
    with open_workers() as workers:
        (one,) = in_order(workers, identify_visit, [away], "visits")
    np.testing.assert_array_equal(one.values, here.visits[0].values)
    assert one.visit == visit
