"""Files are read with one kind of complaint and written whole or not at all."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from armid.documents import (
    new_file,
    plain,
    read_arrays,
    read_json,
    read_text,
    restored,
    write_arrays,
    write_json,
    write_text,
)
from armid.errors import InputError
from armid.outcome import Verdict


def test_what_is_written_is_read_back(tmp_path: Path):
    value = {"schema": "x/1", "a": np.arange(3), "b": (1.5, float("nan")), "c": Path("x"), "d": Verdict.TRUSTED}
    path = write_json(tmp_path / "new" / "a.json", value)
    assert read_json(path, "a test file", schema="x/1") == plain(value)
    assert read_json(path, "a test file")["b"] == [1.5, None]
    assert read_json(path, "a test file")["d"] == "trusted"
    arrays = read_arrays(write_arrays(tmp_path / "a.npz", {"x": np.eye(2)}), "arrays")
    np.testing.assert_array_equal(arrays["x"], np.eye(2))


def test_arrays_that_do_not_shrink_are_stored_as_they_are(tmp_path: Path):
    noise, steps = np.random.default_rng(0).normal(size=(5000, 3)), np.arange(15_000) // 100
    path = write_arrays(
        tmp_path / "a.npz", {"noise": noise, "steps": steps, "none": np.empty(0), "one": np.float64(2.5)}
    )
    with zipfile.ZipFile(path) as archive:
        packed = {entry.filename: entry.compress_type == zipfile.ZIP_DEFLATED for entry in archive.infolist()}
    assert (packed["noise.npy"], packed["steps.npy"]) == (False, True)
    arrays = read_arrays(path, "arrays")
    np.testing.assert_array_equal(arrays["noise"], noise)
    np.testing.assert_array_equal(arrays["steps"], steps)
    assert (arrays["none"].size, float(arrays["one"])) == (0, 2.5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not JSON"),
        (b"[1]", "holds a list"),
        (b'{"schema": "y/1"}', "schema 'y/1'"),
        (b"\xff\xfe", "not text"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_bad_json_is_one_complaint(tmp_path: Path, content: bytes, message: str):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_json(tmp_path / "a.json", "a test file", schema="x/1")


def test_missing_files_folders_and_pipes_are_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for name, message in (("none", "does not exist"), (".", "is not a file"), ("pipe", "is not a file")):
        with pytest.raises(InputError, match=message):
            read_text(tmp_path / name, "a test file")
        with pytest.raises(InputError, match=message):
            read_arrays(tmp_path / name, "a test file")
    (tmp_path / "large").write_text("x" * 11)
    with pytest.raises(InputError, match="11 bytes are more"):
        read_text(tmp_path / "large", "a test file", most=10)


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 nothing", b"\x93NUMPY"])
def test_damaged_arrays_are_one_complaint(tmp_path: Path, damage: bytes):
    (tmp_path / "a.npz").write_bytes(damage)
    with pytest.raises(InputError, match="damaged"):
        read_arrays(tmp_path / "a.npz", "arrays")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(ValueError, match="closed"), new_file(tmp_path / "a.txt", text=True) as file:
        file.close()
    with pytest.raises(InputError, match="cannot be written: No space left"), new_file(tmp_path / "a.txt", text=True):
        raise OSError(28, "No space left on device")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_place_that_cannot_be_written_is_refused():
    with pytest.raises(InputError, match="cannot be written"):
        write_text("/proc/nowhere/a.txt", "x")


def test_the_mode_of_a_replaced_file_stays(tmp_path: Path):
    path = write_text(tmp_path / "a.txt", "old")
    path.chmod(0o600)
    write_text(path, "new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_missing_field_is_named():
    with pytest.raises(InputError, match="field 'x' is missing"):
        restored("a.json", {}, lambda value: value["x"], "a test file")
    with pytest.raises(InputError, match="wrong kind"):
        restored("a.json", {"x": "no"}, lambda value: float(value["x"]), "a test file")
