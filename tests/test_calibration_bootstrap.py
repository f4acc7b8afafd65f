"""Intervals from redrawn recordings, and the same calibration on a cluster."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import armid
from armid.calibration.bootstrap import bootstrapped
from armid.calibration.fit import fit
from armid.calibration.intervals import spread_of
from armid.cluster.workers import InProcess
from armid.errors import InputError
from tests.support.calibration_cells import Cell


def test_redrawn_recordings_agree_with_the_scores_where_nothing_is_left_out():
    cell, rng = Cell.drawn("ur10e", seed=21), np.random.default_rng(21)
    m = cell.measured(60, rng)
    found = fit(cell.robot, m)
    scores = spread_of(found, m)
    both = bootstrapped(scores, found, m, 8, seed=0)
    kept = found.after.selection.kept
    wider = np.sqrt(np.diag(both.covariance())[kept] / np.diag(scores.covariance())[kept])
    assert wider.min() >= 1.0
    assert np.median(wider) < 1.3


def test_redrawn_recordings_show_gear_errors_too():
    cell, rng = Cell.drawn("ur10e", seed=22, size=0.15), np.random.default_rng(22)
    m = cell.measured(80, rng, joints=lambda q: 8e-4 * np.sin(2.0 * q + 0.5))
    found = fit(cell.robot, m)
    scores = spread_of(found, m)
    redrawn = bootstrapped(scores, found, m, 8, seed=0)
    kept = found.after.selection.kept
    plain, alone = np.diag(scores.plain)[kept], np.diag(replaced(redrawn).covariance())[kept]
    assert np.median(np.sqrt(alone / plain)) > 1.3


def replaced(spread):
    """What redrawn recordings say alone."""
    from dataclasses import replace

    return replace(spread, ways=spread.redrawn, redrawn=())


def test_the_same_on_two_workers(tmp_path):
    """Bit by bit, and without workers nothing of Dask is loaded (tests/test_cluster.py)."""
    distributed = pytest.importorskip("distributed")
    cell, rng = Cell.drawn("ur10e", seed=23), np.random.default_rng(23)
    m = cell.measured(60, rng)
    words = {"terms": "offset", "folds": 3, "bootstrap": 4}
    here = armid.calibrate(cell.robot, m, **words)
    said: list[str] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        distributed.Client(local) as client,
    ):
        there = armid.calibrate(cell.robot, m, **words, cluster=client, progress=said.append)
    np.testing.assert_array_equal(here.fit.after.covariance, there.fit.after.covariance)
    np.testing.assert_array_equal(here.held_out.after.position, there.held_out.after.position)
    np.testing.assert_array_equal(here.held_out_blocked.after.position, there.held_out_blocked.after.position)
    assert here.verdict is there.verdict
    assert any("held-out parts: 0 done, 3 left" in text for text in said)
    assert any("redrawn recordings" in text for text in said)


def test_one_redrawn_recording_is_refused():
    with pytest.raises(InputError, match="show no spread"):
        armid.calibrate("ur10e", "nowhere.csv", bootstrap=1)


def test_lost_workers_are_told(monkeypatch):
    class Unlucky(InProcess):
        retries = 2

    @contextmanager
    def unlucky(cluster, *, progress):
        yield Unlucky(progress)

    monkeypatch.setattr("armid.calibration.calibrate.open_workers", unlucky)
    cell, rng = Cell.drawn("ur10e", seed=24), np.random.default_rng(24)
    found = armid.calibrate(cell.robot, cell.measured(20, rng), terms="offset", folds=2)
    (note,) = (n for n in found.notes if n.code == "lost-workers")
    assert note.message.startswith("2 pieces")
    assert [found.as_dict()[name] for name in ("workers", "retries")] == [1, 2]
