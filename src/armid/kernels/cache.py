"""Compiled code on disk: only what this user's own key vouches for is ever executed.

An entry is the code with an HMAC of its name and content under a key that only the user can read. The key lies outside the
cache, so that a cache somebody else filled, or could have written to, is worth nothing. A digest beside the content would not
do: whoever forges the one writes the other.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

from armid.errors import InputError
from armid.folders import new_file, sweep

_MAC = 32
_KEY_BYTES = 32


class CacheWarning(UserWarning):
    """Compiled code is not kept: the disk takes no more, or somebody else could change what is kept; says where."""


def cache_directory() -> Path:
    """Where compiled code is kept: `$ARMID_CACHE`, else the user's cache directory."""
    chosen = os.environ.get("ARMID_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "armid"


def key_file() -> Path:
    """Where the user's key is: beside the user's settings, never in the cache."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "armid" / "cache.key"


def read_object(path: Path) -> bytes | None:
    """Code from disk; None when it is absent, damaged, forged, or others could have written it."""
    key = _usable_key(path.parent)
    if key is None:
        return None
    try:
        data = _own_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _say(f"{path} is not used: {error.strerror}")
        return None
    mac, code = data[:_MAC], data[_MAC:]
    return code if hmac.compare_digest(mac, _mac(key, path.name, code)) else None


def write_object(path: Path, code: bytes) -> None:
    """Code to disk. A cache that cannot be written is not an error: the code is compiled again next time."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = _usable_key(path.parent)
        if key is None:
            return
        sweep(path.parent)
        with new_file(path, mode=0o600) as file:
            file.write(_mac(key, path.name, code) + code)
    except InputError as error:
        _say(f"compiled code is not kept in {path.parent}: {error.problem}; compiled again in every run")
    except OSError as error:
        _say(f"compiled code is not kept in {path.parent}: {error.strerror}; compiled again in every run")


def _mac(key: bytes, name: str, code: bytes) -> bytes:
    return hmac.digest(key, name.encode() + b"\0" + code, "sha256")


def _usable_key(directory: Path) -> bytes | None:
    """The user's key, when the cache is the user's own; None says to compile without one."""
    try:
        if not stat.S_ISDIR(directory.stat().st_mode):
            return None
    except OSError:
        return None
    try:
        _check_own(directory.stat(), "directory")
        return _key(key_file())
    except OSError as error:
        _say(f"compiled code is not kept in {directory}: {error.strerror}")
        return None


def _check_own(found: os.stat_result, what: str) -> None:
    """Refuses what another user owns or others may write."""
    if found.st_uid != os.geteuid():
        raise PermissionError(1, f"the {what} belongs to another user; choose another one by ARMID_CACHE")
    if found.st_mode & 0o022:
        raise PermissionError(1, f"others may write the {what}; take that right away (chmod go-w)")


def _own_bytes(path: Path) -> bytes:
    """The content of a regular file that only this user can write; the file that was checked is the one that is read."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise PermissionError(1, "it is no regular file")
        _check_own(found, "file")
        return file.read()


def _key(path: Path) -> bytes:
    """The user's key, made when there is none.

    Raises:
        OSError: it can be neither read nor made, or others could read it.
    """
    if not path.exists():
        _make_key(path)
    _check_own(path.parent.stat(), f"directory of {path}")
    key = _own_bytes(path)
    if path.stat().st_mode & 0o077 or len(key) != _KEY_BYTES:
        raise PermissionError(1, f"others may read the key {path}, or it is damaged; delete it, a new one will be made")
    return key


def _make_key(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # another process was first: its key counts
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@cache
def _say(message: str) -> None:
    """Once per process and reason."""
    warnings.warn(message, CacheWarning, stacklevel=2)
