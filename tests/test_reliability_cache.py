"""Native code from a cache: only what this user's own key vouches for is executed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from armid.folders import new_file
from armid.kernels import cache
from armid.kernels.cache import CacheWarning, key_file, read_object, write_object
from armid.kernels.evaluate import CompiledRows
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from support.chains import random_robot
from support.elbow_logs import ROBOT, write_elbow_log


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and a key of this test's own."""
    monkeypatch.setenv("ARMID_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    cache._say.cache_clear()
    return tmp_path / "cache"


def from_cache() -> bool:
    """Whether a small kernel came from the disk; that it works is tested on the way."""
    rows = CompiledRows(TorqueRows(random_robot(np.random.default_rng(3), 1)))
    assert np.isfinite(rows.dense(np.ones((2, 3)))).all()
    return rows.store_kernel.loaded.from_cache


def test_code_is_kept_with_a_key_only_its_user_can_read(folder):
    assert not from_cache()
    assert from_cache()
    assert key_file().stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not key_file().is_relative_to(folder)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_cache_others_can_write_is_neither_read_nor_written_and_that_is_said(folder, mode):
    from_cache()
    (entry,) = folder.glob("*.o")
    entry.unlink()
    folder.chmod(mode)
    with pytest.warns(CacheWarning, match=r"others may write the directory.*chmod"):
        assert not from_cache()
    assert not list(folder.iterdir())


def test_an_entry_others_can_write_is_not_executed(folder):
    from_cache()
    (entry,) = folder.glob("*.o")
    entry.chmod(0o666)
    with pytest.warns(CacheWarning, match="others may write the file"):
        assert not from_cache()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_cache_or_entry_of_another_user_is_not_executed(folder):
    from_cache()
    (entry,) = folder.glob("*.o")
    os.chown(entry, 65534, 65534)
    with pytest.warns(CacheWarning, match="the file belongs to another user"):
        assert not from_cache()
    os.chown(folder, 65534, 65534)
    with pytest.warns(CacheWarning, match="the directory belongs to another user"):
        assert not from_cache()


def test_forged_and_exchanged_entries_are_compiled_anew(folder):
    from_cache()
    (entry,) = folder.glob("*.o")
    good = entry.read_bytes()
    entry.write_bytes(hashlib.sha256(b"evil").digest() + b"evil")  # a digest beside the content proves nothing
    assert read_object(entry) is None
    other = folder / f"{'0' * 64}.o"
    other.write_bytes(good)  # authentic code under another name
    assert read_object(other) is None
    assert not from_cache()
    assert entry.read_bytes() == good


def test_a_cache_that_came_with_a_key_of_its_own_is_worth_nothing(folder, tmp_path, monkeypatch):
    from_cache()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another user"))
    assert not from_cache()


@pytest.mark.parametrize("harm", ["readable", "damaged"])
def test_a_key_others_could_know_is_not_used(folder, harm):
    from_cache()
    if harm == "readable":
        key_file().chmod(0o644)
    else:
        key_file().write_bytes(b"")
    with pytest.warns(CacheWarning, match="delete it, a new one will be made"):
        assert not from_cache()


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_an_entry_that_is_no_regular_file_is_not_waited_for(folder, kind, tmp_path):
    folder.mkdir(mode=0o700)
    path = folder / "a.o"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        write_object(tmp_path / "a.o", b"code")
        path.symlink_to(tmp_path / "a.o")
    with pytest.warns(CacheWarning, match="is not used"):
        assert read_object(path) is None


def test_a_full_cache_leaves_nothing_behind(folder, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        write_object(folder / "first.o", b"makes the key")
        patch.setattr(os, "fsync", full)
        with pytest.warns(CacheWarning, match=r"not kept.*No space left.*compiled again"):
            write_object(folder / "a.o", b"code")
    assert [path.name for path in folder.iterdir()] == ["first.o"]
    child = os.fork()
    if child == 0:  # dies in the midst of writing
        with new_file(folder / "half.o") as file:
            file.write(b"half")
            os._exit(9)
    os.waitpid(child, 0)
    assert len(list(folder.iterdir())) == 2
    write_object(folder / "b.o", b"code")
    assert {path.name for path in folder.iterdir()} == {"first.o", "b.o"}


def test_the_command_line_says_it_in_one_line(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    (tmp_path / "elbow.yaml").write_text(ROBOT)
    write_elbow_log(tmp_path / "log.csv", load_robot(tmp_path / "elbow.yaml"), 1, seconds=6.0)
    done = subprocess.run(
        [sys.executable, "-m", "armid", "check", "elbow.yaml", "log.csv"],
        cwd=tmp_path,
        env={**os.environ, "ARMID_CACHE": str(tmp_path / "cache"), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "compiled code is not kept" in line]
    assert len(said) == 1
    assert said[0].startswith("armid: ")


NUMBA = """
import warnings
import numpy as np
from armid.scene import distance_kernels as k

warnings.simplefilter("default")
p = np.empty((2, 3)); R = np.empty((2, 3, 3)); axes = np.empty((1, 3)); origins = np.empty((1, 3))
joints = np.zeros((1, 27)); joints[0, [0, 4, 8]] = joints[0, [15, 19, 23]] = 1.0; joints[0, 13:15] = 1.0
k.link_frames(np.zeros(1), joints, R, p, axes, origins)
print("frames", np.isfinite(R).all(), "hits", sum(k.link_frames.stats.cache_hits.values()))
"""


def numba_run(tmp_path: Path, prepare: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"ARMID_CACHE": str(tmp_path / "cache"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return subprocess.run(
        [sys.executable, "-c", prepare + NUMBA],
        env={**os.environ, **environment, **more},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_numba_compiles_is_kept_under_the_same_key(tmp_path):
    assert numba_run(tmp_path).stdout == "frames True hits 0\n"
    assert numba_run(tmp_path).stdout == "frames True hits 1\n"
    for entry in (tmp_path / "cache").glob("link_frames*.nbc"):
        entry.write_bytes(entry.read_bytes()[:-1] + b"x")
    assert numba_run(tmp_path).stdout == "frames True hits 0\n"


def test_no_pickle_of_a_stranger_is_opened(tmp_path):
    """Numba's own cache would: it unpickles whatever lies in its folder under the right name."""
    numba_run(tmp_path)
    forged = b"cos\nsystem\n(S'touch %s'\ntR." % str(tmp_path / "owned").encode()
    for entry in (tmp_path / "cache").glob("*.nbc"):
        entry.write_bytes(hashlib.sha256(forged).digest() + forged)
    assert numba_run(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache")).stdout == "frames True hits 0\n"
    assert not (tmp_path / "owned").exists()


def test_a_first_run_on_a_full_disk_compiles_without_a_cache_and_says_so(tmp_path):
    numba_run(tmp_path)  # makes the key
    for entry in (tmp_path / "cache").iterdir():
        entry.unlink()
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))\n"
    done = numba_run(tmp_path, full)
    assert done.stdout == "frames True hits 0\n", done.stderr
    assert done.stderr.count("CacheWarning: compiled code is not kept") == 1
    assert "compiled again in every run" in done.stderr
    assert not list((tmp_path / "cache").iterdir())


def test_a_home_that_cannot_be_written_is_no_reason_to_stop(tmp_path):
    (tmp_path / "file").write_text("no folder")
    done = numba_run(tmp_path, ARMID_CACHE=str(tmp_path / "file" / "cache"))
    assert done.stdout == "frames True hits 0\n", done.stderr
    assert "CacheWarning: compiled code is not kept" in done.stderr
