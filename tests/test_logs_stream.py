"""A log in pieces gives the samples of the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armid.errors import InputError
from armid.logs import (
    Channel,
    Conditioning,
    LogRefusedError,
    concatenated,
    condition,
    condition_stream,
    open_log,
    read_log,
)
from armid.logs.conditioning import stream as streaming
from recordings import arm, recording

TAU = Channel.LINK_TORQUE
FIXED = Conditioning(cutoff=4.0, rate=40.0)


def written(tmp_path, log, *, keep=None):
    keep = slice(None) if keep is None else keep
    columns = {"t": log.time[keep]}
    for name, channel in (("q", Channel.POSITION), ("qd", Channel.VELOCITY), ("tau", TAU)):
        columns |= {f"{name}{i + 1}": log[channel][keep][:, i] for i in range(4)}
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=5000)
    return path


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(streaming, "CHUNK_ROWS", 3000)


@pytest.mark.parametrize("settings", [FIXED, replace(FIXED, order=12, torque_cutoff=6.0), replace(FIXED, rate=np.inf)])
def test_pieces_equal_the_whole(tmp_path, settings):
    path = written(tmp_path, recording(seconds=90.0))
    pieces = list(condition_stream(open_log(path, arm()), arm(), settings))
    assert len(pieces) > 3
    whole, joined = condition(read_log(path, arm()), arm(), settings), concatenated(pieces)
    np.testing.assert_allclose(joined.time, whole.time, atol=1e-9)
    for name in ("q", "qd", "qdd"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), atol=2e-6)
    np.testing.assert_allclose(joined.torques[TAU], whole.torques[TAU], atol=1e-6)
    np.testing.assert_allclose(joined.raw_torques[TAU], whole.raw_torques[TAU], atol=1e-9)


def test_gaps_split_and_lost_rows_are_filled(tmp_path):
    log = recording(seconds=90.0)
    keep = np.ones(len(log), dtype=bool)
    keep[7000:9000] = False
    keep[12345] = keep[15000:15003] = False
    path = written(tmp_path, log, keep=keep)
    joined = concatenated(condition_stream(open_log(path, arm()), arm(), FIXED))
    whole = condition(read_log(path, arm()), arm(), FIXED)
    assert len(whole.segments) == 2
    assert not ((joined.time > log.time[6995]) & (joined.time < log.time[9005])).any()
    common, at, where = np.intersect1d(np.round(joined.time, 6), np.round(whole.time, 6), return_indices=True)
    assert len(common) > 0.95 * len(whole)
    np.testing.assert_allclose(joined.qdd[at], whole.qdd[where], atol=1e-3)
    np.testing.assert_allclose(joined.torques[TAU][at], whole.torques[TAU][where], atol=2e-2)


def test_irregular_clock_in_pieces(tmp_path):
    log = recording(seconds=60.0)
    keep = np.sort(np.random.default_rng(0).choice(len(log), len(log) * 4 // 5, replace=False))
    path = written(tmp_path, log, keep=keep)
    joined = concatenated(condition_stream(open_log(path, arm()), arm(), FIXED))
    truth = condition(log, arm(), replace(FIXED, rate=np.inf))
    for j in range(4):
        np.testing.assert_allclose(joined.qdd[:, j], np.interp(joined.time, truth.time, truth.qdd[:, j]), atol=0.02)
    assert np.diff(joined.time).std() < 1e-6


def test_open_choices_are_made_on_the_first_piece(tmp_path):
    path = written(tmp_path, recording(seconds=60.0))
    pieces = list(condition_stream(open_log(path, arm()), arm()))
    assert len({piece.settings for piece in pieces}) == 1
    assert pieces[0].settings.cutoff == pytest.approx(5.0, rel=0.5)
    assert any(note.code == "cutoff-chosen" for note in pieces[0].notes)


def test_corrupt_rows_are_refused_unless_accepted(tmp_path):
    log = recording(seconds=60.0)
    tau = np.array(log[TAU])
    tau[5000:5400] = np.nan
    path = written(tmp_path, replace(log, channels={**log.channels, TAU: tau}))
    with pytest.raises(LogRefusedError, match="corrupt-values"):
        list(condition_stream(open_log(path, arm()), arm(), FIXED))
    accepted = replace(FIXED, accept=("corrupt-values",))
    assert len(concatenated(condition_stream(open_log(path, arm()), arm(), accepted))) > 100


def test_periods_need_the_whole_log(tmp_path):
    path = written(tmp_path, recording(seconds=20.0))
    with pytest.raises(InputError, match="repetitions"):
        list(condition_stream(open_log(path, arm()), arm(), Conditioning(period=10.0)))
