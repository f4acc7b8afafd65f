"""Long work that survives being killed: finished pieces are kept, and the same question asked again goes on from them.

The pieces lie in one file of the folder that the answer will be saved to, with a digest of everything that was asked. They are
used for the same question only. An answer of the same kind that is saved in the folder takes their place (`folders`).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from armid.documents import read_json, write_json
from armid.errors import InputError
from armid.folders import missing_folders, unfinished_file
from armid.notes import Note, Severity

_SCHEMA = "armid.unfinished/1"
_WHAT = "finished pieces of work that was interrupted"
_MOST_TIME = 0.05
"""Share of the time that may go into writing: with many small pieces some writes are left out, and a kill loses those few."""


class UnfinishedWork:
    """Finished pieces of one question, by name.

    Args:
        folder: where the answer will be saved; None keeps nothing.
        by: the kind of answer, as in the manifest of the folder.
        question: everything the answer depends on: dataclasses, mappings, sequences, arrays and plain values.
    """

    def __init__(self, folder: str | Path | None, by: str, question: object = None) -> None:
        self.path = None if folder is None else Path(folder) / unfinished_file(by)
        self.notes: tuple[Note, ...] = ()
        self._pieces: dict[str, Any] = {}
        self._began, self._writing = time.monotonic(), 0.0
        if self.path is not None:
            self._made = missing_folders(self.path.parent)
            self._digest = question_digest(question)
            self._read(self.path)

    def get(self, name: str) -> Any:
        """A finished piece as plain values; None when there is none."""
        return self._pieces.get(name)

    def put(self, name: str, piece: Any) -> None:
        """Keeps a finished piece: dictionaries, lists, numbers and text.

        A disk that takes no more ends the keeping, not the work; a note says so.
        """
        self._pieces[name] = piece
        began = time.monotonic()
        if self.path is None or self._writing > _MOST_TIME * (began - self._began):
            return
        try:
            write_json(self.path, {"schema": _SCHEMA, "question": self._digest, "pieces": self._pieces}, indent=None)
        except InputError as error:
            self._note("not-kept", Severity.WARNING, f"finished pieces cannot be kept ({error}); killed, all is lost")
            self._remove_folders()
            self.path = None
        self._writing += time.monotonic() - began

    def drop(self) -> None:
        """Forgets everything: the work has ended without an answer, and would end so again."""
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
                self._remove_folders()

    def _remove_folders(self) -> None:
        """Takes away the folders that were made for the file, unless something else lies there by now."""
        with suppress(OSError):
            for empty in self._made:
                empty.rmdir()

    def _read(self, path: Path) -> None:
        if not os.path.lexists(path):
            return
        try:
            if path.is_symlink() or path.stat().st_uid != os.geteuid():
                raise InputError(path, "is not a file of this user")
            kept = read_json(path, _WHAT, schema=_SCHEMA)
        except (InputError, OSError) as error:
            self._note("unfinished-not-used", Severity.INFO, f"{error}; started afresh")
            return
        if kept.get("question") != self._digest or not isinstance(kept.get("pieces"), dict):
            text = f"{path.parent} holds the beginning of other work, which is not used: something asked is different"
            self._note("unfinished-not-used", Severity.INFO, text)
            return
        self._pieces = kept["pieces"]
        self._note("resumed", Severity.INFO, f"went on from what an interrupted run had left in {path.parent}")

    def _note(self, code: str, severity: Severity, text: str) -> None:
        self.notes = (*self.notes, Note(code, severity, text))


def question_digest(question: object) -> str:
    """SHA-256 of everything that was asked, and of the version that was asked.

    Raises:
        TypeError: a value of a kind that has no definite text.
    """
    from armid import __version__

    text = json.dumps([_SCHEMA, __version__, _definite(question)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _definite(value: Any) -> Any:
    """Values with one spelling only; floats to their last bit."""
    if isinstance(value, Enum):
        return _definite(value.value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, {f.name: _definite(getattr(value, f.name)) for f in fields(value)}]
    if isinstance(value, Mapping):
        return {str(_definite(key)): _definite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_definite(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(_definite(item)) for item in value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return _definite(value.tolist())
    raise TypeError(f"{type(value).__name__} has no definite text")
