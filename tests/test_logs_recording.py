"""A recording: one grid for everybody, the same numbers held or streamed, and memory that stays flat."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armid.errors import InputError
from armid.logs import Channel, Conditioning, LogRefusedError, VelocitySource, condition, open_recording
from armid.logs import recording as recordings
from armid.logs.conditioning import held as holding
from armid.logs.conditioning import stream as streaming
from armid.logs.conditioning import windows
from armid.logs.shelf import Shelf
from armid.signals.differentiate import Differentiator
from support.recordings import arm, recording

TAU = Channel.LINK_TORQUE


def written(tmp_path, log, name="log.parquet"):
    columns = {"t": log.time}
    for label, channel in (("q", Channel.POSITION), ("qd", Channel.VELOCITY), ("tau", TAU)):
        columns |= {f"{label}{i + 1}": log[channel][:, i] for i in range(4)}
    pq.write_table(pa.table(columns), tmp_path / name, row_group_size=5000)
    return tmp_path / name


@pytest.fixture
def small(monkeypatch):
    """Everything counts as long, and comes in small pieces."""
    monkeypatch.setattr(streaming, "CHUNK_ROWS", 3000)
    monkeypatch.setattr(windows, "PIECE_SAMPLES", 700)
    monkeypatch.setattr(recordings, "HELD_BYTES", 10_000)


@pytest.fixture
def grids(monkeypatch):
    """Calls of the function that puts a log on its grid."""
    calls = []
    plain = holding.uniform_parts

    def counted(log, settings):
        calls.append(log.name)
        return plain(log, settings)

    monkeypatch.setattr(holding, "uniform_parts", counted)
    return calls


def gap_in(log):
    keep = np.ones(len(log), dtype=bool)
    keep[9000:9400] = keep[[1234, 7000]] = False
    return log.selected(keep)


def same(one, other, tolerance=1e-8):
    np.testing.assert_allclose(one.time, other.time, atol=1e-9)
    assert [(s.start, s.stop, s.log) for s in one.segments] == [(s.start, s.stop, s.log) for s in other.segments]
    for name in ("q", "qd", "qdd"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=tolerance)
    scale = float(np.abs(other.torques[TAU]).max())
    for kind in ("torques", "raw_torques"):
        np.testing.assert_allclose(getattr(one, kind)[TAU], getattr(other, kind)[TAU], atol=tolerance * scale)
    assert one.settings == other.settings


def test_check_fit_both_velocities_and_other_cutoffs_share_one_grid(grids):
    whole = open_recording(recording(seconds=60.0), arm())
    train, held_out = whole.split(0.6)
    chosen = train.resolved()
    for part in (train, held_out):
        part.condition(chosen)
        part.condition(replace(chosen, velocity=VelocitySource.MEASURED))
        part.condition(replace(chosen, cutoff=0.5 * chosen.cutoff))
    assert len(grids) == 1


def test_the_check_and_a_fit_share_the_samples(monkeypatch):
    calls = []
    plain = holding.conditioned

    def counted(part, settings):
        calls.append(settings)
        return plain(part, settings)

    monkeypatch.setattr(holding, "conditioned", counted)
    whole = open_recording(recording(seconds=30.0), arm())
    assert len(calls) == 1
    whole.condition(Conditioning(accept=("torque-lag",)))
    assert len(calls) == 1


def test_a_log_that_will_be_split_is_filtered_once_for_check_training_and_held_out(monkeypatch):
    calls = []
    plain = holding.conditioned

    def counted(part, settings):
        calls.append((part.log.name, settings.cutoff))
        return plain(part, settings)

    monkeypatch.setattr(holding, "conditioned", counted)
    train, held_out = open_recording(recording(seconds=60.0), arm(), fraction=0.6).split(0.6)
    chosen = train.resolved()
    for part in (train, held_out):
        part.condition(chosen)
        part.condition(replace(chosen, velocity=VelocitySource.MEASURED))
    assert calls == [(train.name, chosen.cutoff), (held_out.name, chosen.cutoff)]
    train.condition(replace(chosen, cutoff=0.5 * chosen.cutoff), alone=True)
    assert calls[2:] == [(train.name, 0.5 * chosen.cutoff)]
    # Whoever asks for the last part has had the first, which may have had to make room for other logs meanwhile.
    held_out.condition(replace(chosen, cutoff=2.0 * chosen.cutoff))
    assert calls[3:] == [(held_out.name, 2.0 * chosen.cutoff)]


def test_nothing_of_the_training_part_reaches_the_held_out_samples():
    log = recording(seconds=60.0)
    before = log.time < log.time[0] + 0.6 * (log.time[-1] - log.time[0])
    changed = {
        c: values + 0.3 * before[:, np.newaxis] * np.cos(3.0 * log.time)[:, np.newaxis]
        for c, values in log.channels.items()
    }
    settings = Conditioning(cutoff=4.0, accept=("position-leap",))  # that is how the change ends
    one, other = (
        open_recording(each, arm(), fraction=0.6).split(0.6)[1].condition(settings)
        for each in (log, replace(log, channels=changed))
    )
    same(one, other, 0.0)


@pytest.mark.parametrize("fraction", [0.6, 0.9999])
def test_the_check_of_parts_finds_what_the_check_of_the_whole_does(fraction):
    log = recording(seconds=30.0)
    wrong = replace(log, channels={**log.channels, TAU: -log[TAU]})
    parts, whole = (open_recording(wrong, arm(), fraction=each) for each in (fraction, None))
    assert not parts.ok
    assert [(note.code, note.severity) for note in parts.notes] == [(note.code, note.severity) for note in whole.notes]


def test_the_whole_is_what_condition_gives():
    log = recording(seconds=60.0)
    one, other = open_recording(log, arm(), check=False).condition(), condition(log, arm())
    same(one, other, 0.0)
    assert one.notes == other.notes
    assert set(one.noise) == set(other.noise)


@pytest.mark.parametrize("edit", [lambda log: log, gap_in])
@pytest.mark.parametrize("velocity", list(VelocitySource))
def test_streamed_and_held_give_the_same_choices_and_samples(tmp_path, small, monkeypatch, edit, velocity):
    path = written(tmp_path, edit(recording(seconds=120.0)))
    streamed = open_recording(path, arm())
    monkeypatch.setattr(recordings, "HELD_BYTES", 1 << 30)
    held = open_recording(path, arm())
    assert streamed.streamed
    assert not held.streamed
    settings = Conditioning(velocity=velocity)
    for one, other in zip((streamed, *streamed.split(0.6)), (held, *held.split(0.6)), strict=True):
        assert (one.name, len(one)) == (other.name, len(other))
        assert one.start_s == other.start_s
        assert one.end_s == other.end_s
        assert one.resolved(settings) == other.resolved(settings)
        same(one.condition(settings), other.condition(settings))
        for channel, level in one.condition(settings).noise.items():
            np.testing.assert_allclose(level, other.condition(settings).noise[channel], rtol=1e-6)


def test_a_split_is_that_of_the_log():
    log = recording(seconds=40.0)
    for part, own in zip(open_recording(log, arm(), check=False).split(0.6), log.split(0.6), strict=True):
        assert part.name == own.name
        np.testing.assert_array_equal(part.log.time, own.time)
        np.testing.assert_array_equal(part.log[TAU], own[TAU])
        same(part.condition(Conditioning(cutoff=4.0)), condition(own, arm(), Conditioning(cutoff=4.0)), 1e-9)


def test_parts_of_a_streamed_log_are_conditioned_in_one_pass(tmp_path, small, monkeypatch):
    whole = open_recording(written(tmp_path, recording(seconds=60.0)), arm())
    train, held_out = whole.split(0.6)
    chosen = train.resolved()
    passes = []
    plain = streaming.StreamedGrid.raw
    monkeypatch.setattr(streaming.StreamedGrid, "raw", lambda self: passes.append(1) or plain(self))
    train.condition(chosen)  # and the noise levels, from the first rows
    passes.clear()
    for _ in range(2):
        list(train.samples(chosen))
        list(held_out.samples(chosen))
    assert not passes


def test_a_part_alone_is_the_same_part(tmp_path, small):
    path = written(tmp_path, recording(seconds=60.0))
    (one, _), (other, _) = (open_recording(path, arm()).split(0.6) for _ in range(2))
    same(one.condition(alone=True), other.condition(), 0.0)


def test_samples_too_many_to_put_aside_are_conditioned_again(tmp_path, small, monkeypatch):
    path = written(tmp_path, recording(seconds=60.0))
    expected = open_recording(path, arm()).condition()
    monkeypatch.setattr(streaming, "SPOOL_SAMPLES", 100)
    crowded = open_recording(path, arm())
    for _ in range(2):
        same(crowded.condition(), expected, 0.0)


@pytest.mark.parametrize("streamed", [False, True])
def test_pieces_are_bounded_and_never_cross_a_gap(tmp_path, request, streamed):
    if streamed:
        request.getfixturevalue("small")
    log = gap_in(recording(seconds=120.0))
    opened = open_recording(written(tmp_path, log), arm())
    assert opened.streamed is streamed
    pieces = list(opened.samples())
    assert all(len(piece.segments) == 1 for piece in pieces)
    assert sum(not piece.segments[0].continues for piece in pieces) == 2
    for before, after in pairwise(pieces):
        step = after.time[0] - before.time[-1]
        assert bool(step < 1.5 / before.rate) is after.segments[0].continues


def test_context_repeats_the_neighbours(tmp_path, small):
    opened = open_recording(written(tmp_path, recording(seconds=120.0)), arm())
    plain, wide = list(opened.samples()), list(opened.samples(context=50))
    assert len(plain) > 3
    for own, with_more in zip(plain, wide, strict=True):
        (segment,) = with_more.segments
        kept = slice(segment.lead, len(with_more) - segment.trail)
        np.testing.assert_array_equal(with_more.qdd[kept], own.qdd)
    assert [s.segments[0].lead for s in wide] == [0] + [50] * (len(wide) - 1)
    assert [s.segments[0].trail for s in wide][-1] == 0
    np.testing.assert_array_equal(wide[1].time[:50], plain[0].time[-50:])
    np.testing.assert_array_equal(wide[0].time[-50:], plain[1].time[:50])


def test_raw_rows_come_in_order(tmp_path, small):
    log = recording(seconds=40.0)
    first, last = open_recording(written(tmp_path, log), arm()).split(0.6)
    times = np.concatenate([piece.time for part in (first, last) for piece in part.pieces()])
    np.testing.assert_array_equal(times, log.time)
    with pytest.raises(InputError, match="more than is held"):
        _ = first.log


@pytest.mark.parametrize("streamed", [False, True])
def test_rows_can_be_changed(tmp_path, request, streamed):
    """Twice the torque, row by row, is twice the conditioned torque."""
    if streamed:
        request.getfixturevalue("small")
    opened = open_recording(written(tmp_path, recording(seconds=40.0)), arm())
    doubled = opened.changed(lambda log: replace(log, channels={**log.channels, TAU: 2.0 * log[TAU]}))
    settings = opened.resolved()
    np.testing.assert_allclose(
        doubled.condition(settings).torques[TAU], 2.0 * opened.condition(settings).torques[TAU], rtol=1e-9, atol=1e-9
    )


def test_errors_are_refused_unless_accepted():
    log = recording(seconds=30.0)
    wrong = open_recording(replace(log, channels={**log.channels, TAU: -log[TAU]}), arm())
    assert not wrong.ok
    with pytest.raises(LogRefusedError, match="torque-sign"):
        next(wrong.samples())
    codes = tuple({note.code for note in wrong.notes})
    assert len(wrong.condition(Conditioning(accept=codes))) > 100


def test_a_checked_log_is_not_checked_again(grids):
    checked = open_recording(recording(seconds=30.0), arm()).log
    assert checked.checked
    assert open_recording(checked, arm()).notes == checked.notes
    assert len(grids) == 1


def test_what_has_made_room_is_read_again(tmp_path, monkeypatch):
    """Many recordings, room for one: every number is the same as with room for all."""
    paths = [written(tmp_path, recording(seconds=20.0), f"log{k}.parquet") for k in range(4)]
    expected = [open_recording(path, arm()).condition() for path in paths]
    monkeypatch.setattr(holding, "SHELF", Shelf(1 << 16))
    opened = [open_recording(path, arm()) for path in paths]
    for _ in range(2):
        for one, other in zip(opened, expected, strict=True):
            same(one.condition(), other, 0.0)


def test_the_shelf_keeps_what_fits_and_forgets_with_the_owner():
    shelf = Shelf(1000)

    class OwnerKind:
        pass

    owner = OwnerKind()
    number = shelf.owner(owner)
    made = []

    def get(key):
        return shelf.get(number, key, lambda: made.append(key) or key, lambda _: 600)

    get("a")
    get("a")
    get("b")
    assert made == ["a", "b"]
    get("a")
    assert made == ["a", "b", "a"]
    shelf.get(number, "small", lambda: made.append("small"), lambda _: 1)
    get("b")
    get("a")
    shelf.get(number, "small", lambda: made.append("small"), lambda _: 1)
    assert made.count("small") == 1
    del owner
    assert not shelf._values
    assert shelf._bytes == 0


def test_whoever_wants_the_beginning_gets_it_without_the_rest_of_the_file(tmp_path, small, monkeypatch):
    """The first piece is that of the whole, and no more of the file is read than it needs; nothing is put aside."""
    path = written(tmp_path, recording(seconds=240.0))
    expected = next(open_recording(path, arm()).samples())
    other = open_recording(path, arm())
    read = []
    plain = streaming.StreamedGrid.raw

    def counted(grid):
        for piece in plain(grid):
            read.append(len(piece))
            yield piece

    same(next(other.samples(begin=True)), expected, 0.0)
    monkeypatch.setattr(streaming.StreamedGrid, "raw", counted)
    for _ in range(2):
        read.clear()
        same(next(other.samples(begin=True)), expected, 0.0)
        assert 0 < sum(read) < 0.6 * len(other)


@pytest.mark.parametrize("differentiator", ["central", "least-squares-causal"])
def test_velocity_as_recorded_beside_the_derived_one_filters_nothing_else_again(monkeypatch, differentiator):
    log = gap_in(recording(seconds=60.0))
    wanted = replace(Conditioning(), differentiator=Differentiator(differentiator))
    first, second = (open_recording(log, arm(), check=False) for _ in range(2))
    derived = first.resolved(wanted)
    recorded = replace(derived, velocity=VelocitySource.MEASURED)
    alone = second.condition(recorded)
    first.condition(derived)
    monkeypatch.setattr(holding, "_conditioned_parts", None)
    beside = first.condition(recorded)
    same(beside, alone, tolerance=0.0)
    if alone.velocities_between is None:
        assert beside.velocities_between is None
    else:
        np.testing.assert_array_equal(beside.velocities_between, alone.velocities_between)
    assert not np.array_equal(beside.qd, first.condition(derived).qd)


def test_samples_described_otherwise_share_their_numbers():
    samples = condition(recording(), arm(), Conditioning(cutoff=20.0))
    other = samples.described(notes=(), noise={TAU: np.ones(4)})
    assert other.q is samples.q
    assert other.torques is samples.torques
    assert (other.notes, samples.notes == other.notes) == ((), not samples.notes)
    with pytest.raises(TypeError):
        other.noise[TAU] = np.zeros(4)
    with pytest.raises(AssertionError):
        samples.described(q=np.zeros(3))
