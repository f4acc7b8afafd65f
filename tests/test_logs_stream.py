"""A log in pieces gives the samples of the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armid.logs import (
    Channel,
    Conditioning,
    Log,
    LogRefusedError,
    concatenated,
    condition,
    condition_stream,
    open_log,
    unchecked_log,
)
from armid.logs.conditioning import stream as streaming
from support.recordings import NAMES, arm, motion, recording

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


def both(path, settings=FIXED, robot=None):
    """The samples of the whole log, and those of its pieces joined."""
    robot = robot or arm()
    return condition(unchecked_log(path, robot), robot, settings), concatenated(
        condition_stream(open_log(path, robot), robot, settings)
    )


def agree(joined, whole, tolerance=1e-9):
    """Same instants, same numbers; accelerations in units of the rate squared, which magnifies rounding."""
    np.testing.assert_allclose(joined.time, whole.time, atol=1e-9)
    assert [s.stop for s in joined.segments][-1] == [s.stop for s in whole.segments][-1]
    for name in ("q", "qd", "qdd"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), atol=tolerance)
    scale = float(np.abs(whole.torques[TAU]).max())
    np.testing.assert_allclose(joined.torques[TAU], whole.torques[TAU], atol=tolerance * scale)
    np.testing.assert_allclose(joined.raw_torques[TAU], whole.raw_torques[TAU], atol=tolerance * scale)


@pytest.mark.parametrize("settings", [FIXED, replace(FIXED, order=12, torque_cutoff=6.0), replace(FIXED, rate=np.inf)])
def test_pieces_equal_the_whole(tmp_path, settings):
    path = written(tmp_path, recording(seconds=90.0))
    assert len(list(condition_stream(open_log(path, arm()), arm(), settings))) > 3
    whole, joined = both(path, settings)
    agree(joined, whole)


def stamped(log, edit):
    return replace(log, time=edit(np.array(log.time)))


def jitter(scale, seed=0):
    rng = np.random.default_rng(seed)
    return lambda t: t + rng.normal(0.0, scale, len(t))


def test_stamps_that_jitter_give_the_samples_of_the_whole(tmp_path):
    """Samples are even, their stamps are not: a line through the stamps, fitted over the whole log in one pass for them alone."""
    path = written(tmp_path, stamped(recording(seconds=90.0), jitter(4e-4)))
    whole, joined = both(path)
    assert any(note.code == "stamp-jitter-ignored" for note in whole.notes)
    assert any(note.code == "stamp-jitter-ignored" for note in joined.notes)
    agree(joined, whole)


def test_jitter_lost_rows_and_gaps_together(tmp_path):
    log = stamped(recording(seconds=120.0), jitter(2e-4))
    keep = np.ones(len(log), dtype=bool)
    keep[[1234, 7000, 7001, 15000]] = keep[9000:9400] = False
    whole, joined = both(written(tmp_path, log, keep=keep))
    assert len(whole.segments) == 2
    agree(joined, whole, 1e-8)


def test_uneven_sampling_gives_the_samples_of_the_whole(tmp_path):
    log = recording(seconds=90.0)
    keep = np.sort(np.random.default_rng(0).choice(len(log), len(log) * 4 // 5, replace=False))
    whole, joined = both(written(tmp_path, log, keep=keep))
    agree(joined, whole, 1e-8)


def test_lost_rows_of_an_exact_clock(tmp_path):
    log = recording(seconds=90.0)
    keep = np.ones(len(log), dtype=bool)
    keep[[3000, 5999, 6000, 12345]] = False
    whole, joined = both(written(tmp_path, log, keep=keep))
    agree(joined, whole, 1e-8)


@pytest.mark.parametrize("row", [2998, 2999, 3000, 3001, 6002, 8000])
def test_spikes_where_pieces_meet(tmp_path, row):
    log = recording(seconds=60.0)
    q = np.array(log[Channel.POSITION])
    q[row, 1] += 0.5
    whole, joined = both(written(tmp_path, replace(log, channels={**log.channels, Channel.POSITION: q})))
    agree(joined, whole, 1e-8)


@pytest.mark.parametrize("row", [2999, 3000, 3001])
def test_repeated_rows_where_pieces_meet(tmp_path, row):
    log = recording(seconds=60.0)
    index = np.arange(len(log))
    index[row] -= 1
    whole, joined = both(written(tmp_path, replace(log.selected(index), time=log.time)))
    agree(joined, whole, 1e-8)


@pytest.mark.parametrize("delay", [0.012, -0.0205])
def test_torque_is_moved_in_pieces_too(tmp_path, delay):
    whole, joined = both(written(tmp_path, recording(seconds=60.0)), replace(FIXED, torque_delay=delay))
    agree(joined, whole, 1e-8)


@pytest.mark.parametrize("edit", [lambda t: t, jitter(4e-4)])
def test_repetitions_are_averaged_in_one_period_of_memory(tmp_path, edit):
    path = written(tmp_path, stamped(recording(seconds=95.0), edit))
    settings = Conditioning(cutoff=4.0, rate=np.inf, period=10.0)
    whole, joined = both(path, settings)
    assert len(whole) == 2000
    agree(joined, whole, 1e-8)
    np.testing.assert_allclose(joined.variances[TAU], whole.variances[TAU], rtol=1e-6, atol=1e-12)


def test_a_polled_controller_is_refused_unless_stamps_are_accepted(tmp_path):
    """Rows at whole ticks, some repeated, some missed, stamped when the reader got them: time is only known from the whole."""
    rng = np.random.default_rng(0)
    _, q, qd, _ = motion(21.0, 1000.0)
    stamps = np.cumsum(rng.uniform(0.75e-3, 1.3e-3, 19_000))
    row = np.floor(stamps * 1000.0).astype(int)
    channels = {Channel.POSITION: np.round(q[row], 6), Channel.VELOCITY: np.round(qd[row], 6), TAU: np.cos(q[row])}
    path = written(tmp_path, Log(name="polled", joints=NAMES, time=stamps, channels=channels))
    with pytest.raises(LogRefusedError, match="clock-ticks"):
        list(condition_stream(open_log(path, arm()), arm(), FIXED))
    accepted = replace(FIXED, accept=("clock-ticks",))
    assert len(concatenated(condition_stream(open_log(path, arm()), arm(), accepted))) > 100


def test_a_clock_that_slips_later_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "EVIDENCE_ROWS", 3000)

    def slipping(t):
        return jitter(4e-4)(t) + np.where(t > 30.0, 4e-3 * np.sin(t - 30.0), 0.0)

    path = written(tmp_path, stamped(recording(seconds=90.0), slipping))
    with pytest.raises(LogRefusedError, match="clock-drift"):
        list(condition_stream(open_log(path, arm()), arm(), FIXED))


def test_corrupt_rows_that_leave_a_gap_split_the_log(tmp_path):
    log = recording(seconds=60.0)
    tau = np.array(log[TAU])
    tau[5000:5025, 2] = np.nan
    path = written(tmp_path, replace(log, channels={**log.channels, TAU: tau}))
    whole, joined = both(path)
    assert len(whole.segments) == 2
    agree(joined, whole, 1e-8)


def test_open_choices_are_made_on_the_first_rows(tmp_path):
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
