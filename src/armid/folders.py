"""Answers in folders: whole or not at all, and never over a file that is not ours.

Every folder armid writes answers to has a manifest, `.armid.json`: the files armid wrote there, with their digests. Only
those are replaced, and only while they are as armid left them; what else lies in the folder stays.

An answer of several files is written under temporary names in the folder itself and flushed to the disk. One rename then puts
the journal in its place, which says where each file belongs; from that moment on the new answer counts, before it the old one.
Whoever next reads or writes the folder carries out what a killed process left of its journal.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import socket
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from armid.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")

MANIFEST = ".armid.json"
"""What armid wrote in a folder, and what it looked like."""
JOURNAL = ".armid-journal.json"
"""Where the files of an answer belong; there only while they are being put there."""
UNFINISHED = ".armid-unfinished-{}.json"
"""Finished pieces of an answer that is still being worked on; the answer takes its place."""
_SCHEMA = "armid.folder/1"
_SUFFIX = ".armid-tmp"
_HOST = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
"""Temporary names carry it, and the process: on a shared disk another machine's files are not taken for abandoned."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file of ours: its SHA-256, and the kind of answer it belongs to."""

    sha256: str
    by: str


@dataclass(eq=False)
class _Answer:
    """An answer that is being written: where, what it is, and the temporary file of every name so far."""

    folder: Path
    by: str
    staged: dict[str, Path] = field(default_factory=dict)


_OPEN: ContextVar[tuple[_Answer, ...]] = ContextVar("open answers", default=())


@contextmanager
def answer_folder(folder: str | Path, by: str) -> Iterator[Path]:
    """Everything written into the folder inside this context appears there together at its end, or not at all.

    Files of an earlier answer of the same kind that the new one does not have are taken away. A context within another one
    on the same folder is part of it.

    Args:
        folder: created when missing.
        by: the kind of answer, for the manifest.

    Raises:
        InputError: it cannot be written, or a file in the way is not ours.
    """
    folder = Path(folder)
    if any(_same_folder(answer.folder, folder) for answer in _OPEN.get()):
        yield folder
        return
    answer, made = _Answer(folder, by), missing_folders(folder)
    token = _OPEN.set((*_OPEN.get(), answer))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        settle(folder)
        yield folder
        _commit(answer)
        made = []
    except OSError as error:
        raise InputError(folder, f"cannot be written: {error.strerror or error}") from None
    finally:
        _OPEN.reset(token)
        for temporary in answer.staged.values():
            temporary.unlink(missing_ok=True)
        _remove_empty(made)


def _remove_empty(made: Iterable[Path]) -> None:
    """Takes away folders that were made for files that never came; one that holds something stays."""
    with suppress(OSError):
        for empty in made:
            empty.rmdir()


def whole(save: Callable[P, T], by: str) -> Callable[P, T]:
    """A method `save(self, folder, ...)` whose files appear together at its end, or not at all."""

    @functools.wraps(save)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        folder: Any = kwargs.get("folder", args[1] if len(args) > 1 else None)
        if folder is None or Path(folder).suffix == ".npz":  # a log may also be given the name of its file
            return save(*args, **kwargs)
        with answer_folder(folder, by):
            return save(*args, **kwargs)

    return run


@contextmanager
def new_file(path: str | Path, *, text: bool = False, mode: int = 0o644) -> Iterator[IO[Any]]:
    """A file to write to that takes its place when complete, or vanishes if anything goes wrong.

    Within `answer_folder` it takes its place with the others of the answer. Outside, a file that was there is replaced:
    whoever calls has named it.

    Args:
        path: where it will be; missing folders are created.
        text: for text in UTF-8, else for bytes.
        mode: permissions, unless it replaces a file, whose permissions stay.

    Raises:
        InputError: it cannot be written; what was there before is untouched.
    """
    path = Path(path)
    temporary: Path | None = None
    made = missing_folders(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = _temporary(path)
        with os.fdopen(handle, "w" if text else "wb", encoding="utf-8" if text else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _place(temporary, path, mode)
        temporary, made = None, []
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        _remove_empty(made)


@contextmanager
def new_files(folder: str | Path) -> Iterator[Path]:
    """A fresh folder of the same name to let another library write into; its files then take their places like `new_file`'s.

    Args:
        folder: where the files will be; no folders inside it.

    Raises:
        InputError: they cannot be written, or one in the way is not ours.
    """
    folder = Path(folder)
    with answer_folder(folder, folder.name), tempfile.TemporaryDirectory(dir=folder, suffix=_SUFFIX) as room:
        yield Path(room) / folder.name
        for made in sorted((Path(room) / folder.name).iterdir()):
            with made.open("rb") as file:
                os.fsync(file.fileno())
            handle, temporary = _temporary(folder / made.name)
            os.close(handle)
            made.replace(temporary)
            _place(temporary, folder / made.name)


def settle(folder: Path) -> None:
    """Ends what a killed process began: once its journal is in place, its answer counts.

    Raises:
        InputError: there is such a journal, and it cannot be carried out.
    """
    if not (folder / JOURNAL).is_file():
        return
    try:
        with _locked(folder):
            _carry_out(folder)
            sweep(folder)
    except OSError as error:
        problem = f"an interrupted write cannot be finished: {error.strerror or error}"
        raise InputError(folder / JOURNAL, problem, "whoever owns the folder has to read or write it once") from None


def manifest(folder: Path) -> dict[str, Written]:
    """The files that armid wrote in a folder; none without a manifest, or with one that cannot be read."""
    try:
        if not (folder / MANIFEST).is_file():  # a pipe of that name would be waited for
            return {}
        entries = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return {str(name): Written(str(one["sha256"]), str(one["by"])) for name, one in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def foreign(path: Path, listed: Mapping[str, Written]) -> str:
    """Why a file may not be replaced; empty when it may: it is not there, or it is ours and as we left it.

    Args:
        path: of the file.
        listed: the manifest of its folder.
    """
    if not os.path.lexists(path):
        return ""
    if path.is_symlink() or not path.is_file():
        return "is no regular file"
    if path.name not in listed:
        return "was not written by armid"
    return "" if _digest(path) == listed[path.name].sha256 else "has been changed since armid wrote it"


def refuse_foreign(path: Path, listed: Mapping[str, Written]) -> None:
    """Refuses to replace what is not ours.

    Raises:
        InputError: with what the file is.
    """
    reason = foreign(path, listed)
    if reason:
        raise InputError(path, f"{reason}, and would be replaced", "move it away, or choose another --out")


def unfinished_file(by: str) -> str:
    """Name of the file with finished pieces of an answer of this kind."""
    return UNFINISHED.format(by)


def missing_folders(folder: Path) -> list[Path]:
    """The folders that have to be made, innermost first."""
    return [place for place in (folder, *folder.absolute().parents) if not place.exists()]


def _same_folder(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()


def _temporary(path: Path) -> tuple[int, Path]:
    """A new file beside its later place."""
    stem = path.name[:100]
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{stem}-{_HOST}-{os.getpid()}-", suffix=_SUFFIX)
    return handle, Path(name)


def _place(temporary: Path, path: Path, mode: int = 0o644) -> None:
    """Hands a complete file to the answer being written, or puts it in its place when there is none."""
    if path.name in (MANIFEST, JOURNAL) or len(path.name.encode()) > os.pathconf(path.parent, "PC_NAME_MAX"):
        raise OSError(36, "not a name a file of ours can have")
    temporary.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else mode)
    for answer in reversed(_OPEN.get()):
        if _same_folder(answer.folder, path.parent):
            former = answer.staged.get(path.name)
            answer.staged[path.name] = temporary
            if former is not None:
                former.unlink(missing_ok=True)
            return
    temporary.replace(path)
    _flush_folder(path.parent)


def _commit(answer: _Answer) -> None:
    """Checks that nothing foreign is in the way, then lets the new answer count."""
    if not answer.staged:
        return
    folder = answer.folder
    with _locked(folder):
        _carry_out(folder)
        listed = manifest(folder)
        for name in answer.staged:
            refuse_foreign(folder / name, listed)
        stale = [name for name, one in listed.items() if one.by == answer.by and name not in answer.staged]
        stale = [name for name in stale if not foreign(folder / name, listed)]
        new = {name: Written(_digest(temporary), answer.by) for name, temporary in answer.staged.items()}
        kept = {name: one for name, one in listed.items() if name not in stale}
        journal = {
            "schema": _SCHEMA,
            "moves": {temporary.name: name for name, temporary in answer.staged.items()},
            "stale": {name: listed[name].sha256 for name in stale},
            "files": {name: {"sha256": one.sha256, "by": one.by} for name, one in sorted((kept | new).items())},
        }
        _write_now(folder / JOURNAL, journal)
        answer.staged.clear()  # from here on they belong to the journal
        _carry_out(folder)
        with suppress(OSError):
            (folder / unfinished_file(answer.by)).unlink()
        sweep(folder)


def _carry_out(folder: Path) -> None:
    """Does what the journal says, as far as it is not done yet; the manifest comes last."""
    path = folder / JOURNAL
    if not path.is_file():
        return
    if path.stat().st_uid != os.geteuid() or path.is_symlink():
        raise OSError(1, "the journal belongs to another user")
    moves, stale, files = _journal(path)
    for temporary, name in moves.items():
        with suppress(FileNotFoundError):
            (folder / temporary).replace(folder / name)
    for name, digest in stale.items():
        if (folder / name).is_file() and _digest(folder / name) == digest:
            (folder / name).unlink()
    _write_now(folder / MANIFEST, {"schema": _SCHEMA, "files": files})
    path.unlink()
    _flush_folder(folder)


def _journal(path: Path) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
    """Moves, stale files and manifest; only names of this folder, and only from temporary names of ours."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        moves, stale, files = value["moves"], value["stale"], value["files"]
        names = [*moves, *moves.values(), *stale, *files]
        plain = all(isinstance(name, str) and name == Path(name).name and name not in ("", "..") for name in names)
        if plain and all(name.endswith(_SUFFIX) for name in moves) and value["schema"] == _SCHEMA:
            return moves, stale, files
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise OSError(22, "the journal is damaged")


def _write_now(path: Path, value: Mapping[str, Any]) -> None:
    """A file of the bookkeeping, in its place at once."""
    handle, temporary = _temporary(path)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(value, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
        _flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Takes away temporary files of processes of this machine that are no more."""
    for path in folder.glob(f".*-{_HOST}-*{_SUFFIX}"):
        process = path.name.rsplit("-", 3)[-3]
        if process.isdecimal() and not _alive(int(process)):
            with suppress(OSError):
                path.unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time; a file system without locks goes without."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        except (ImportError, OSError):
            pass
        yield
    finally:
        os.close(handle)


def _flush_folder(folder: Path) -> None:
    """Lets renames reach the disk; a file system that cannot do so for folders goes without."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
