"""One long file divided among workers: every group of rows gives the very samples of one pass over the file."""

from __future__ import annotations

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armid.logs import recording as recordings
from armid.logs import row_groups
from armid.logs.checked import referenced
from armid.logs.conditioning import stream as streaming
from armid.logs.conditioning import windows
from armid.logs.conditioning.settings import Conditioning
from armid.logs.recording import open_recording
from armid.robot.load import load_robot

RATE, ROWS, JOINTS = 500.0, 32_000, 3


@pytest.fixture
def small(monkeypatch):
    """Everything counts as long, and comes in small pieces."""
    for module in (streaming, row_groups):
        monkeypatch.setattr(module, "CHUNK_ROWS", 3000)
    monkeypatch.setattr(windows, "PIECE_SAMPLES", 500)
    monkeypatch.setattr(recordings, "HELD_BYTES", 10_000)
    monkeypatch.setattr("armid.logs.readers.npz.HELD_BYTES", 10_000)


def columns(kind: str) -> dict[str, np.ndarray]:
    """A motion, even, with gaps and spikes, or with stamps that jitter."""
    rng = np.random.default_rng(3)
    t = np.arange(ROWS) / RATE
    if kind == "jitter":
        t = t + rng.uniform(-0.2, 0.2, ROWS) / RATE
    w = np.array([0.7, 1.1, 1.9])
    q, qd = np.sin(t[:, None] * w), w * np.cos(t[:, None] * w)
    tau = 5.0 * np.cos(q) + 0.8 * np.sign(qd) + rng.normal(0.0, 0.05, q.shape)
    table = {"t": t}
    for name, values in (("q", q), ("qd", qd + rng.normal(0.0, 1e-3, q.shape)), ("tau", tau)):
        table |= {f"{name}{j + 1}": values[:, j] for j in range(JOINTS)}
    keep = np.ones(ROWS, dtype=bool)
    if kind == "gaps":
        keep[9000:9400] = keep[[1234, 17_000, 17_500]] = keep[28_000:29_000] = False
        table["q2"][[4000, 21_000]] = 50.0
        table["q1"][25_001] = table["q1"][25_000]
    return {name: values[keep] for name, values in table.items()}


def written(path, table):
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path, row_group_size=7000)
    elif path.suffix == ".npz":
        np.savez(path, **table)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name, values in table.items():
                file[name] = values
    else:
        np.savetxt(path, np.column_stack(list(table.values())), delimiter=",", header=",".join(table), comments="")
    return path


def opened(path):
    return referenced(open_recording(path, load_robot("cylindrical"), check=False), str(path), None)


def same(one, other):
    """Bit by bit, with everything that goes with the samples."""
    for name in ("time", "q", "qd", "qdd", "velocities_between"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for channel in one.torques:
        np.testing.assert_array_equal(one.torques[channel], other.torques[channel])
        np.testing.assert_array_equal(one.noise[channel], other.noise[channel])
    assert one.segments == other.segments
    assert (one.settings, one.sources, one.notes) == (other.settings, other.sources, other.notes)


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [(".parquet", "even"), (".parquet", "gaps"), (".npz", "jitter"), (".h5", "gaps"), (".csv", "gaps")],
)
def test_groups_of_rows_give_the_samples_of_one_pass(tmp_path, small, suffix, kind):
    path = written(tmp_path / f"log{suffix}", columns(kind))
    settings = Conditioning(accept=("clock-drift",), torque_delay=0.003 if kind == "jitter" else 0.0)
    for part, other in zip(opened(path).split(0.6), opened(path).split(0.6), strict=True):
        assert part.streamed
        whole = list(part.samples(settings, context=60))
        for size in (1, 4):
            groups = other.row_groups(settings, context=60, size=lambda _, size=size: size)
            assert len(groups) == -(-len(whole) // size)
            found = [samples for group in groups for samples in group.samples(load_robot("cylindrical"))]
            assert len(found) == len(whole)
            for one, two in zip(whole, found, strict=True):
                same(one, two)


def test_a_worker_reads_its_own_rows_and_little_more(tmp_path, small, monkeypatch):
    monkeypatch.setattr(windows, "PIECE_SAMPLES", 100)
    for module in (streaming, row_groups):
        monkeypatch.setattr(module, "CHUNK_ROWS", 1000)
    path = written(tmp_path / "log.parquet", columns("even"))
    groups = opened(path).row_groups(Conditioning(), context=60, size=lambda count: -(-count // 4))
    read = [sum(group.place.lengths) for group in groups]
    assert len(groups) == 4
    # Its quarter, and on either side a neighbouring piece with what the filters need.
    assert groups[-1].place.rows > 0.5 * ROWS
    assert max(read) < 0.75 * ROWS


def test_a_text_with_lines_that_are_no_rows_is_read_from_its_beginning(tmp_path, small):
    path = written(tmp_path / "log.csv", columns("even"))
    lines = path.read_text().splitlines()
    lines.insert(8000, "")
    path.write_text("\n".join(lines) + "\n")
    whole = list(opened(path).samples(Conditioning(), context=60))
    groups = opened(path).row_groups(Conditioning(), context=60, size=lambda _: 3)
    found = [samples for group in groups for samples in group.samples(load_robot("cylindrical"))]
    for one, two in zip(whole, found, strict=True):
        same(one, two)
