"""Work on a cluster: the same answer as here for any number of workers, also when one of them is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from operator import neg
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.cluster.workers import ClusterError, in_order, open_workers
from armid.errors import InputError
from armid.estimation.run_maker import RunMaker
from armid.fleets.table import read_visits
from armid.fleets.visit import VisitTask, identify_visit
from armid.logs.read import open_log
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
    assert [there.as_dict()[name] for name in ("workers", "retries")] == [2, 0]


def test_starts_of_a_design_end_in_the_same_motion(client):
    words = {"friction": "viscous", "period": 5.0, "harmonics": 2, "seconds": None, "starts": 4, "seed": 3}
    here, there = (
        armid.design_motion("cylindrical", **words, workers=1, cluster=cluster) for cluster in (None, client)
    )
    np.testing.assert_array_equal(here.search.best.coefficients, there.search.best.coefficients)
    assert here.search.explored == there.search.explored == 4
    assert [there.as_dict()[name] for name in ("workers", "retries")] == [2, 0]


def test_a_study_is_the_same(client, tmp_path):
    words = {"seconds": 4.0, "motions": 1, "repetitions": 2, "poses": 6, "torques": "link"}
    here = armid.study("cylindrical", **words)
    there = armid.study("cylindrical", **words, cluster=client, out=tmp_path)
    for one, other in zip(here.cases, there.cases, strict=True):
        np.testing.assert_array_equal(one.estimates, other.estimates)
        np.testing.assert_array_equal(one.residuals, other.residuals)
    assert (there.as_dict()["workers"], there.as_dict()["retries"]) == (2, 0)


RUN_ONLY = {"seconds", "peak_memory_mb", "workers", "retries", "consistency_seconds"}
"""What an answer says of how it came about; all the rest is the same wherever it did."""


def same_result(here, there):
    """Everything a result says, to the last bit."""
    one, other = here.as_dict(), there.as_dict()
    assert {key for key in one if key not in RUN_ONLY and repr(one[key]) != repr(other[key])} == set()
    np.testing.assert_array_equal(here.estimate.covariance, there.estimate.covariance)
    for mine, theirs in zip(here.information.channels, there.information.channels, strict=True):
        np.testing.assert_array_equal(mine.factor, theirs.factor)
    assert sorted(here.traces) == sorted(there.traces)


@pytest.fixture(scope="module")
def several(place):
    """Logs of one arm, and one that cannot be read."""
    (place / "torn.csv").write_text("not a log\n")
    return [place / "r00" / "2026-01-05.csv", place / "r00" / "2026-02-02.csv", place / "r01" / "2026-01-05.csv"]


@pytest.fixture(scope="module")
def identified_here(place, several):
    return armid.identify(place / "elbow.yaml", [*several, place / "torn.csv"], **WORDS)


def test_many_logs_are_gone_through_there_and_every_word_of_the_answer_is_the_same(
    client, place, several, identified_here, monkeypatch
):
    def never(*_):
        raise AssertionError("a recording that the workers see is not read here more than the longest of them")

    monkeypatch.setattr("armid.estimation.run_maker.RunMaker._here", never)
    there = armid.identify(place / "elbow.yaml", [*several, place / "torn.csv"], **WORDS, cluster=client)
    same_result(identified_here, there)
    assert [note.code for note in there.notes].count("log-set-aside") == 1
    assert (there.workers, there.retries) == (2, 0)
    assert there.as_dict()["workers"] == 2


def test_ways_friction_turns_around_and_other_cutoffs_are_tried_by_the_workers(client, place, several, monkeypatch):
    words = {**WORDS, "sensitivity": True}
    here = armid.identify(place / "elbow.yaml", several, **words)

    def never(*_):
        raise AssertionError("the motion that choices rest on is gone through by whoever read it")

    monkeypatch.setattr("armid.identification.turning._Turnings.__call__", never)
    monkeypatch.setattr("armid.identification.sensitivity._ClassedRows.__call__", never)
    same_result(here, armid.identify(place / "elbow.yaml", several, **words, cluster=client))


def test_workers_are_counted_once_a_second_while_progress_is_told(client, monkeypatch):
    from armid.cluster.dask_workers import DaskWorkers

    asked = []
    monkeypatch.setattr(DaskWorkers, "count", property(lambda _: asked.append(0) or 2))
    said = []
    assert in_order(DaskWorkers(client, said.append), neg, range(5), "numbers") == [0, -1, -2, -3, -4]
    assert 1 < len(said) <= 6
    assert len(asked) == 1
    assert said[-1] == "numbers: 5 done, 0 left, 2 workers"


def test_rows_of_one_long_file_are_divided_and_the_estimate_is_the_same(client, place, monkeypatch):
    monkeypatch.setattr("armid.logs.recording.HELD_BYTES", 10_000)
    monkeypatch.setattr("armid.logs.conditioning.stream.CHUNK_ROWS", 700)
    monkeypatch.setattr("armid.logs.row_groups.CHUNK_ROWS", 700)
    monkeypatch.setattr("armid.logs.conditioning.windows.PIECE_SAMPLES", 60)
    path = long_log(place)
    # Where one log ends and the next begins the arm leaps, which is no motion.
    words = {**WORDS, "sensitivity": False, "accept": "position-leap"}
    here = armid.identify(place / "elbow.yaml", path, **words)
    said: list[str] = []
    for way in ("_here", "_pieces"):  # in which runs would be made by the client
        monkeypatch.delattr(RunMaker, way)
    there = armid.identify(place / "elbow.yaml", path, **words, cluster=client, progress=said.append)
    assert any(text.startswith("groups of rows conditioned: 3 done") for text in said)
    np.testing.assert_allclose(there.estimate.values, here.estimate.values, rtol=1e-12)
    np.testing.assert_allclose(there.estimate.covariance, here.estimate.covariance, rtol=1e-9)
    for mine, theirs in zip(here.information.channels, there.information.channels, strict=True):
        np.testing.assert_allclose(theirs.factor, mine.factor, rtol=1e-12, atol=1e-12 * np.abs(mine.factor).max())
    assert (there.workers, there.retries, there.verdict) == (2, 0, here.verdict)


def long_log(place):
    """All logs of an arm, one after the other without a gap."""
    names = (place / "r00" / "2026-01-05.csv").read_text().partition("\n")[0].split(",")
    parts = [np.loadtxt(path, delimiter=",", skiprows=1) for path in sorted(place.glob("r00/*.csv"))]
    step = parts[0][1, 0] - parts[0][0, 0]
    whole = np.concatenate([*parts, *parts])
    whole[:, 0] = step * np.arange(len(whole))
    np.savetxt(place / "long.csv", whole, delimiter=",", header=",".join(names), comments="")
    return place / "long.csv"


def test_logs_that_only_the_client_sees_are_sent_once(client, place, several, monkeypatch):
    words = {**WORDS, "sensitivity": False, "imperfections": "none"}
    here = armid.identify(place / "elbow.yaml", several, **words)
    sent = []
    pieces = RunMaker._pieces
    monkeypatch.setattr("armid.cluster.dask_workers.DaskWorkers.sees", lambda self, paths: [False] * len(paths))
    monkeypatch.setattr(
        RunMaker,
        "_pieces",
        lambda self, parts: (sent.append(pile) or pile for pile in pieces(self, parts)),
    )
    there = armid.identify(place / "elbow.yaml", several, validate=None, **words, cluster=client)
    same_result(here, there)
    assert len(sent) == 2 * len(several)  # training and held-out part of each


def test_interrupted_work_is_cancelled_on_the_cluster(client):
    with open_workers(client) as workers:
        for work in (workers.map(neg, list(range(20))), workers.each(neg, workers.keep(neg, list(range(50))))):
            next(work)
            with pytest.raises(KeyboardInterrupt):
                work.throw(KeyboardInterrupt)
    for _ in range(50):
        if not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            return
        time.sleep(0.1)
    raise AssertionError("work is left on the cluster")


def test_a_worker_that_joins_with_another_version_is_refused():
    from armid.cluster.dask_workers import _call, _Piece

    with pytest.raises(ClusterError, match=r"a worker has armid .*, the client 0\.0\.1"):
        _call(1, piece=_Piece("0.0.1", neg))


def test_errors_come_back_as_they_were(client):
    with open_workers(client) as workers, pytest.raises(InputError, match="no such file") as caught:
        list(workers.each(partial(open_log, robot=None), workers.keep(str, ["nowhere.csv"])))
    assert caught.value.problem == "no such file"


def test_files_that_only_the_client_sees_are_sent(place, here, tmp_path):
    visit = read_visits(place / "fleet.csv")[0]
    task = VisitTask(visit=visit, words={**WORDS, "sensitivity": False})
    sent = {path: Path(path).read_bytes() for path in task.files}
    away = VisitTask(visit=visit, words=task.words, sent=sent)
    with open_workers() as workers:
        (one,) = in_order(workers, identify_visit, [away], "visits")
    np.testing.assert_array_equal(one.values, here.visits[0].values)
    assert one.visit == visit
