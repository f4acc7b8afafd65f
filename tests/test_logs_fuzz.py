"""Damaged and hostile files of every kind: read, or refused in one line; no traceback, no crash, no flood of memory."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import scipy.io

from armid.errors import ArmidError, InputError
from armid.logs import Channel, condition_stream, open_log, unchecked_log
from armid.logs.readers.rosbag import MCAP_MAGIC
from support.recordings import NAMES, arm, motion
from test_logs_readers import write_bag

T, Q, _, _ = motion(1.0, 60.0)
TAU = np.cos(Q) * 10.0
TABLE = np.column_stack([T, Q, TAU])
HEADER = ["t", *(f"q{i + 1}" for i in range(4)), *(f"tau{i + 1}" for i in range(4))]
COLUMNS = {name: TABLE[:, i] for i, name in enumerate(HEADER)}
ROUNDS = 30


def csv(path: Path) -> None:
    np.savetxt(path, TABLE, delimiter=",", header=",".join(HEADER), comments="")


def hdf5(path: Path) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        file["time"], file["tau"] = T, TAU.T
        file.create_dataset("q", data=Q, compression="gzip", chunks=(20, 4))


def compound(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["log"] = np.rec.fromarrays([T, *Q.T, *TAU.T], names=HEADER)


def arrow_stream(path: Path) -> None:
    table = pa.table({"t": T, "q": pa.array(list(Q)), "tau": pa.array(list(TAU))})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def json_lines(path: Path) -> None:
    rows = [{"t": t, "name": list(NAMES), "position": list(q), "effort": list(q)} for t, q in zip(T, Q, strict=True)]
    path.write_text("\n".join(json.dumps(row) for row in rows))


def mcap(path: Path) -> None:
    folder = path.parent / "whole"
    write_bag(folder, [2, 0, 3, 1], "mcap")
    next(folder.glob("*.mcap")).rename(path)


WRITERS: dict[str, Callable[[Path], object]] = {
    "csv": csv,
    "npz": lambda path: np.savez_compressed(path, times=T, positions=Q, torques=TAU),
    "npy": lambda path: np.save(path, np.rec.fromarrays([T, *Q.T, *TAU.T], names=HEADER)),
    "parquet": lambda path: pq.write_table(pa.table(COLUMNS), path),
    "feather": lambda path: pa.feather.write_feather(pa.table(COLUMNS), path),
    "arrows": arrow_stream,
    "mat": lambda path: scipy.io.savemat(path, {"time": T, "s": {"q": Q, "tau": TAU}}),
    "compressed.mat": lambda path: scipy.io.savemat(path, {"time": T, "q": Q, "tau": TAU}, do_compression=True),
    "v4.mat": lambda path: scipy.io.savemat(path, {"time": T, "q": Q, "tau": TAU}, format="4"),
    "v73.mat": hdf5,
    "h5": compound,
    "jsonl": json_lines,
    "mcap": mcap,
}


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut off, bytes changed anywhere or near either end, or a piece missing."""
    out, size = bytearray(content), len(content)
    way = rng.integers(4)
    if way == 0:
        return bytes(out[: rng.integers(size)])
    edge = min(size, 600)
    first = (0, 0, size - edge)[rng.integers(3)]
    for _ in range(rng.integers(1, 6)):
        place = rng.integers(size) if way == 1 else first + rng.integers(edge)
        out[place] = rng.integers(256)
    if way == 3:
        place = rng.integers(size)
        del out[place : place + rng.integers(1, 32)]
    return bytes(out)


@pytest.mark.parametrize("kind", WRITERS)
def test_damaged_files_are_read_or_refused(tmp_path, kind):
    path = tmp_path / f"log.{kind}"
    WRITERS[kind](path)
    whole, rng, robot = path.read_bytes(), np.random.default_rng(11), arm()
    assert len(unchecked_log(path, robot)) == len(T) or kind == "mcap"
    refused = 0
    for _ in range(ROUNDS):
        path.write_bytes(damaged(whole, rng))
        try:
            log = unchecked_log(path, robot)
        except ArmidError as error:
            assert "\n" not in str(error)[:400]  # noqa: PT017
            refused += 1
        else:
            assert log[Channel.POSITION].shape[1] == 4
    assert refused > 0


@contextmanager
def limited(megabytes: int) -> Iterator[None]:
    """What is inside may add no more than this to the memory of the process, not even for a moment."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = resident("VmRSS")
    yield
    assert resident("VmHWM") - before < megabytes


def resident(key: str) -> float:
    """Of this process, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


def test_unwritten_chunks_of_hdf5_are_no_samples(tmp_path):
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        for name, width in (("t", 1), ("q", 4), ("tau", 4)):
            file.create_dataset(name, shape=(10**11, width), chunks=(1000, width), dtype="f8")
    with pytest.raises(InputError, match="promise"):
        unchecked_log(path, arm())


def test_constant_columns_of_parquet_are_no_samples(tmp_path):
    path = tmp_path / "log.parquet"
    zero = np.zeros(1_000_000)
    table = pa.table(dict.fromkeys(HEADER, zero))
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(table)
    with limited(200), pytest.raises(InputError, match="promise"):
        unchecked_log(path, arm())


def test_compressed_matlab_bomb(tmp_path):
    machine = zlib.compressobj(9)
    packed = b"".join(machine.compress(bytes(1 << 20)) for _ in range(100)) + machine.flush()
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    path = tmp_path / "log.mat"
    path.write_bytes(header + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(InputError, match="would expand"):
        unchecked_log(path, arm())


def test_mcap_chunks_that_promise_too_much(tmp_path):
    path = tmp_path / "log.mcap"
    chunk = bytes(16) + struct.pack("<Q", 1 << 50) + bytes(40)
    path.write_bytes(MCAP_MAGIC + bytes([6]) + struct.pack("<Q", len(chunk)) + chunk)
    with pytest.raises(InputError, match="would expand"):
        unchecked_log(path, arm())


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"a":' * 50_000,
        '{"q": [1e999, -1e999, 1, 2], "tau": [1, 2, 3, 4]}',
        '{"q": ' + "9" * 5000 + "}",
        '{"q": {"q": {"q": {"q": 1}}}, "t": [[[[1]]]]}',
        '{"q": [1, 2, 3, null], "tau": [1, 2, 3, 4], "t": "now"}',
        '{"name": ["a", "a", "b", "c"], "position": [1, 2, 3, 4], "effort": [1, 2, 3, 4], "time": 1}',
        "null",
        "\x00",
    ],
)
def test_hostile_json_lines(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([line] * 3))
    with pytest.raises(ArmidError):
        list(condition_stream(open_log(path, arm()), arm()))


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"{chr(98 + k)}: &{chr(98 + k)} [{', '.join(['*' + chr(97 + k)] * 9)}]" for k in range(9)
)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (BOMB, "anchors"),
        ("a: &a [*a]", "anchors"),
        ("[" * 100, "nested too deeply"),
        ("!!python/object/apply:os.system ['true']", "tag .* is not read"),
        ("file: a.csv\nfile: b.csv", "twice"),
        ("file: a.csv\nchannels: {position: {columns: '1:99999999999'}}", "columns"),
        ("file: a.csv\nchannels: {position: {columns: q, gear_ratio: .inf}}", "finite"),
        ("x" * (2 << 20), "bytes are more than a mapping file can have"),
        ("\x00\x01", "YAML"),
        ("- a\n- b", "expected a mapping file"),
        ("", "empty file"),
    ],
)
def test_hostile_mappings(tmp_path, content, match):
    path = tmp_path / "log.yaml"
    path.write_text(content)
    with limited(200), pytest.raises(ArmidError, match=match):
        unchecked_log(path, arm())


@pytest.mark.parametrize("wide", [b"1," * 5000, b"1" * (3 << 20), b"1,2\n" * 3 + b"9" * (2 << 20)])
def test_absurd_text(tmp_path, wide):
    path = tmp_path / "log.csv"
    path.write_bytes(wide)
    with pytest.raises(InputError):
        unchecked_log(path, arm())
